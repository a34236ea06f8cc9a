//! Files and rows of servers of each version, recorded by `examples/transcript.rs`.

use plumb_host::readings::OpenFlags;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) const VERSIONS: std::ops::RangeInclusive<u32> = 14..=18;

pub(crate) fn text(version: u32, name: &str) -> String {
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/recorded");
    let path = recorded.join(version.to_string()).join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the columns of each line.
pub(crate) fn rows(version: u32, name: &str) -> Vec<Vec<String>> {
    let columns = |line: &str| line.split('\t').map(str::to_string).collect();
    text(version, name).lines().map(columns).collect()
}

/// Returns the open files with their flags, those of several processes together.
pub(crate) fn open_files(version: u32) -> BTreeMap<PathBuf, OpenFlags> {
    let mut open: BTreeMap<PathBuf, OpenFlags> = BTreeMap::new();
    for row in rows(version, "flags.tsv") {
        let flags = OpenFlags::of_bits(u32::from_str_radix(&row[1], 8).expect("octal digits"));
        open.entry(PathBuf::from(&row[0])).and_modify(|known| *known = known.with(flags)).or_insert(flags);
    }
    open
}
