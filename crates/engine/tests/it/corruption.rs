//! Closed databases whose bytes were changed: detected, named, and intact again
//! once the bytes are restored.

use crate::support::{Rows, assert_green, assert_no_space_leaks, build, build_on, create_in, load, open_in};
use plumb_engine::EngineError;
use plumb_engine::check::check_table;
use plumb_engine::drop::drop_named;
use plumb_engine::storage::control::StoredAddress;
use plumb_engine::storage::tablespace::Purpose;
use plumb_units::BlockAddress;
use std::fs;
use std::path::{Path, PathBuf};

const BLOCK: usize = 2048;

/// A closed database of one table and one index of at least two levels.
struct Closed {
    directory: tempfile::TempDir,
    table: Place,
    leaf: Place,
    branch: Place,
}

/// A block in its file.
#[derive(Debug, Clone)]
struct Place {
    path: PathBuf,
    block: u32,
}

impl Place {
    fn offset(&self) -> usize {
        self.block as usize * BLOCK
    }
}

impl Closed {
    fn new() -> Closed {
        let directory = tempfile::tempdir().expect("a directory");
        let home = directory.path().join("db");
        let instance = create_in(&home, &[("db_block_size", "2K"), ("parallel_degree", "1")]);
        load(&instance, "t", &Rows::uniform(20_000, 5)).expect("loaded");
        let index = build(&instance).expect("built").index;
        assert!(index.height >= 2);
        assert_green(&instance, "t");
        let place = |purpose, address: BlockAddress| Place {
            path: instance.tablespace(purpose).path(address).to_path_buf(),
            block: address.block.0,
        };
        let extent = instance.catalog().tables[0].extents[0];
        let root: StoredAddress = index.root.expect("an index that is not empty has a root");
        Closed {
            table: place(Purpose::Users, extent.extent.address(extent.used / 2)),
            leaf: place(Purpose::Indx, index.leaves[0].extent.address(index.leaves[0].used / 2)),
            branch: place(Purpose::Indx, root.into()),
            directory,
        }
    }

    fn home(&self) -> PathBuf {
        self.directory.path().join("db")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.home().join(name)
    }

    fn examine(&self) -> Result<(), EngineError> {
        let instance = open_in(&self.home())?;
        check_table(&instance, "t").map(|_| ())
    }

    fn complaint(&self) -> String {
        let text = self.examine().expect_err("nothing wrong was found").to_string();
        assert_eq!(text.lines().count(), 1, "{text}");
        text
    }

    /// Changes a file, asserts that the error has all of `parts`, and restores it.
    fn check(&self, path: &Path, change: impl FnOnce(&mut Vec<u8>), parts: &[&str]) {
        let good = fs::read(path).expect("the file is there");
        let mut bad = good.clone();
        change(&mut bad);
        assert!(good != bad);
        fs::write(path, &bad).expect("written");
        let text = self.complaint();
        for part in parts {
            assert!(text.contains(part), "{part:?} is not in {text}");
        }
        fs::write(path, &good).expect("restored");
    }

    fn check_block(&self, place: &Place, change: impl FnOnce(&mut [u8]), parts: &[&str]) {
        let named = format!("{}: block {} (file ", place.path.display(), place.block);
        let parts: Vec<&str> = [named.as_str()].iter().chain(parts).copied().collect();
        let at = place.offset();
        self.check(&place.path, |bytes| change(&mut bytes[at..at + BLOCK]), &parts);
    }

    fn assert_green(&self) {
        self.examine().expect("all bytes are as they were");
    }
}

/// Bytes of a block that are flipped: checksum, kind, version, address, entries, used, LSN, the
/// first content, the middle, the slots.
const REGIONS: [usize; 12] = [0, 3, 4, 5, 6, 8, 12, 14, 16, 24, BLOCK / 2, BLOCK - 1];

#[test]
fn one_flipped_bit_in_a_table_block_is_found() {
    let closed = Closed::new();
    for at in REGIONS {
        closed.check_block(&closed.table, |block| block[at] ^= 0x10, &["is corrupt: checksum: found 0x"]);
    }
    closed.assert_green();
}

#[test]
fn one_flipped_bit_in_an_index_leaf_is_found() {
    let closed = Closed::new();
    for at in REGIONS {
        closed.check_block(&closed.leaf, |block| block[at] ^= 1, &["is corrupt: checksum: found 0x"]);
    }
    closed.assert_green();
}

#[test]
fn one_flipped_bit_in_an_index_branch_is_found() {
    let closed = Closed::new();
    for at in REGIONS {
        closed.check_block(&closed.branch, |block| block[at] ^= 0x80, &["is corrupt: checksum: found 0x"]);
    }
    closed.assert_green();
}

#[test]
fn one_flipped_bit_in_a_needed_file_header_is_found() {
    let closed = Closed::new();
    for name in ["users01.dbf", "users02.dbf", "indx01.dbf", "indx02.dbf"] {
        for at in [0, 4, 6, 8, BLOCK / 2, BLOCK - 1] {
            let header = Place { path: closed.file(name), block: 0 };
            closed.check_block(&header, |block| block[at] ^= 4, &["is corrupt: checksum: found 0x"]);
            assert!(open_in(&closed.home()).is_ok());
        }
    }
    closed.assert_green();
}

#[test]
fn one_flipped_bit_anywhere_in_the_control_file_is_found() {
    let closed = Closed::new();
    let path = closed.file("control.json");
    let length = fs::read(&path).expect("a control file").len();
    let named = format!("control file {}: ", path.display());
    for at in (0..10).chain((10..length).step_by(length / 40)).chain([length - 1]) {
        for flip in [1u8, 0x80] {
            closed.check(&path, |bytes| bytes[at] ^= flip, &[&named, "restore it from a copy"]);
        }
    }
    closed.check(&path, Vec::clear, &[&named]);
    closed.check(&path, |bytes| bytes.truncate(length / 2), &[&named, "its checksum is", "expected"]);
    closed.assert_green();
}

#[test]
fn a_block_in_another_ones_place_is_found() {
    let closed = Closed::new();
    let copy = fs::read(&closed.table.path).expect("a data file");
    let before = closed.table.block - 1;
    let other = copy[before as usize * BLOCK..][..BLOCK].to_vec();
    let found = format!("block {before}, expected");
    let parts = ["is corrupt: its own address: found file ", &found];
    closed.check_block(&closed.table, |block| block.copy_from_slice(&other), &parts);
    closed.assert_green();
}

#[test]
fn a_block_that_was_never_written_is_found() {
    let closed = Closed::new();
    for (place, kind) in
        [(&closed.table, "table"), (&closed.leaf, "index leaf"), (&closed.branch, "index branch")]
    {
        let expected = format!("found zeros, as in a block never written, expected a {kind} block");
        closed.check_block(place, |block| block.fill(0), &[&expected]);
    }
    closed.assert_green();
}

/// The files have grown since they were made, so only the extents in use reveal the cut, not the
/// first length in the control file.
#[test]
fn a_file_cut_short_is_named_with_lengths() {
    let closed = Closed::new();
    for place in [&closed.table, &closed.leaf] {
        let length = fs::metadata(&place.path).expect("a data file").len() as usize;
        for cut in [length - 1, length - 256 * 1024, 256 * 1024, BLOCK, 1, 0] {
            let text = format!(
                "data file {}: it was cut short: it ends at byte {cut}, expected ",
                place.path.display()
            );
            closed.check(
                &place.path,
                |bytes| bytes.truncate(cut),
                &[&text, " bytes; restore it from a copy, or"],
            );
        }
    }
    closed.assert_green();
}

#[test]
fn a_missing_file_and_files_that_changed_places_are_named() {
    let closed = Closed::new();
    let (one, two, aside) = (closed.file("users01.dbf"), closed.file("users02.dbf"), closed.file("aside"));
    let rename = |from: &Path, to: &Path| fs::rename(from, to).expect("renamed");
    rename(&one, &aside);
    let text = closed.complaint();
    assert!(text.starts_with(&format!("data file {}: it is missing; restore", one.display())), "{text}");
    rename(&two, &one);
    rename(&aside, &two);
    let text = closed.complaint();
    let swapped = "block 0 (file 1 block 0) is corrupt: its own address: found file 2 block 0";
    assert!(text.contains(swapped) || text.contains("was cut short"), "{text}");
    rename(&one, &aside);
    rename(&two, &one);
    rename(&aside, &two);
    closed.assert_green();
}

/// Regression: a temporary file truncated, lost or damaged made every command fail, and
/// the named cure failed too.
#[test]
fn a_temporary_file_is_made_anew_whatever_became_of_it() {
    let closed = Closed::new();
    let path = closed.file("temp01.dbf");
    let length = fs::metadata(&path).expect("a data file").len();
    let other = fs::read(closed.file("temp02.dbf")).expect("a data file");
    let changes: [&dyn Fn(); 5] = [
        &|| fs::remove_file(&path).expect("removed"),
        &|| fs::write(&path, "").expect("written"),
        &|| fs::write(&path, vec![7; length as usize]).expect("written"),
        &|| fs::write(&path, &other).expect("written"),
        &|| fs::write(&path, vec![0; BLOCK]).expect("written"),
    ];
    for change in changes {
        change();
        let instance = open_in(&closed.home()).expect("it holds nothing that outlives an instance");
        assert_eq!(fs::metadata(&path).expect("made anew").len(), length);
        assert_green(&instance, "t");
        drop_named(&instance, "i").expect("dropped");
        build(&instance).expect("sorts have their files");
        assert_green(&instance, "t");
    }
}

/// Tries every way to lose or damage a file, and then the cure that the message names.
#[test]
fn a_damaged_index_file_does_not_block_its_cure() {
    let changes: [fn(&Path); 4] = [
        |path| fs::remove_file(path).expect("removed"),
        |path| fs::write(path, "").expect("written"),
        |path| {
            let mut bytes = fs::read(path).expect("a data file");
            bytes[100] ^= 1;
            fs::write(path, bytes).expect("written");
        },
        |path| fs::write(path, vec![0; 4 * BLOCK]).expect("written"),
    ];
    for change in changes {
        let closed = Closed::new();
        {
            let instance = open_in(&closed.home()).expect("whole");
            load(&instance, "other", &Rows::uniform(3000, 6)).expect("loaded");
        }
        change(&closed.leaf.path);
        let instance = open_in(&closed.home()).expect("the rest can be used");
        assert_green(&instance, "other");
        let error = check_table(&instance, "t").expect_err("its index is damaged");
        assert!(error.is_damage(), "{error}");
        let text = error.to_string();
        assert!(
            text.contains("drop the tables and indexes") || text.contains("drop and rebuild what it holds"),
            "{text}"
        );
        drop_named(&instance, "i").expect("what is damaged can be dropped");
        assert_green(&instance, "t");
        drop(instance);
        let instance = open_in(&closed.home()).expect("made anew");
        build(&instance).expect("and built anew");
        assert_green(&instance, "t");
        assert_green(&instance, "other");
        assert_no_space_leaks(&instance);
    }
}

/// A load allocates no space in an unusable file.
#[test]
fn a_load_goes_past_a_damaged_file() {
    let closed = Closed::new();
    fs::remove_file(&closed.table.path).expect("removed");
    let instance = open_in(&closed.home()).expect("the rest can be used");
    load(&instance, "u", &Rows::uniform(20_000, 6)).expect("there is another file");
    assert_green(&instance, "u");
    let error = build_on(&instance, ("j", "t"), &[("k", false)]).expect_err("half of the table is gone");
    assert!(error.to_string().contains("it is missing"), "{error}");
    drop_named(&instance, "t").expect("dropped");
    drop(instance);
    let instance = open_in(&closed.home()).expect("made anew");
    assert_eq!(instance.tablespace(Purpose::Users).files.len(), 2);
    assert_green(&instance, "u");
}
