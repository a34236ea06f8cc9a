//! GNU sort: the keys as text, whole lines in the order of their bytes.

use super::child::{Child, Watch};
use super::peer::{Ground, KeyFacts, Peer, RUN_TIME_MAX, Run, Task, drop_caches};
use super::rows_text;
use crate::bench::dataset::{self, Keys};
use anyhow::Context;
use plumb_events::now;
use plumb_units::Bytes;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Command;

const INPUT: &str = "keys.txt";
const OUTPUT: &str = "sorted.txt";

/// The sort of the GNU coreutils.
#[derive(Debug, Default)]
pub(super) struct GnuSort;

impl Peer for GnuSort {
    fn name(&self) -> &'static str {
        "GNU sort"
    }

    fn form(&self) -> &'static str {
        "text file of the keys and row numbers alone, zeros in front of numbers: it scans no other columns"
    }

    fn memory(&self) -> &'static str {
        "`-S` = limit, `--parallel` = degree, `-T` beside the data, LC_ALL=C"
    }

    fn prepare(&mut self, ground: &Ground) -> anyhow::Result<String> {
        let output = Command::new("sort").arg("--version").output().context("sort cannot be started")?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let version = version(&text).context("this sort is not GNU sort")?;
        let path = ground.room(self.name())?.join(INPUT);
        let facts = rows_text::write_keys(&path, ground.text_rows(), &ground.stop)?;
        ground.facts.check(facts)?;
        Ok(version)
    }

    fn tasks(&self, limits: &[Bytes]) -> Vec<Task> {
        Task::at_each(&[("sort", "sort", "sorted copy of keys and row ids, text")], limits)
    }

    fn run(&mut self, ground: &Ground, task: &Task) -> anyhow::Result<Run> {
        let room = ground.room(self.name())?;
        let output = room.join(OUTPUT);
        drop_caches(&room)?;
        let mut command = Command::new("sort");
        command.env("LC_ALL", "C").arg("-S").arg(format!("{}K", task.memory.0 / Bytes::K));
        command.arg(format!("--parallel={}", ground.degree)).arg("-T").arg(&room);
        command.arg("-o").arg(&output).arg(room.join(INPUT));
        let child = Child::start(command, "sort", &ground.directory)?;
        let finished = child.finish(&ground.stop, RUN_TIME_MAX, Watch::Itself)?;
        let begin = now();
        File::open(&output)?.sync_all()?;
        let sync_seconds = now().saturating_sub(begin).seconds();
        let bytes = fs::metadata(&output)?.len();
        ground.facts.check(verify(&output, ground.keys, rows_text::row_digits(ground.rows))?)?;
        fs::remove_file(output)?;
        Ok(Run {
            seconds: finished.seconds + sync_seconds,
            sync_seconds,
            cpu_seconds: finished.used.cpu_seconds,
            memory_start: finished.used.memory_start,
            memory_peak: finished.used.memory_peak,
            output: Bytes(bytes),
            note: String::new(),
        })
    }
}

/// `sort (GNU coreutils) 9.1` -> `9.1`
fn version(text: &str) -> Option<String> {
    let line = text.lines().next()?;
    line.contains("GNU coreutils").then(|| line.split_whitespace().last().map(str::to_string))?
}

/// Counts the lines of a sorted file, adds up their keys, and holds each
/// against the one before.
fn verify(path: &Path, keys: Keys, row_digits: usize) -> anyhow::Result<KeyFacts> {
    let mut lines = BufReader::with_capacity(1 << 20, File::open(path)?);
    let mut facts = KeyFacts::default();
    let (mut last, mut line) = (Vec::new(), Vec::new());
    loop {
        line.clear();
        if lines.read_until(b'\n', &mut line)? == 0 {
            return Ok(facts);
        }
        let form = || format!("wrong result: line {} has another form", facts.rows + 1);
        let key = key_of_line(&line, row_digits).with_context(form)?;
        let weight = weight(key, keys).with_context(form)?;
        anyhow::ensure!(last <= line, "wrong result: line {} is out of order", facts.rows + 1);
        facts.add(weight);
        std::mem::swap(&mut last, &mut line);
    }
}

/// What stands before the tab, the row number and the end of the line.
fn key_of_line(line: &[u8], row_digits: usize) -> Option<&[u8]> {
    let key_end = line.len().checked_sub(row_digits + 2)?;
    (line[key_end] == b'\t' && line.last() == Some(&b'\n')).then(|| &line[..key_end])
}

fn weight(key: &[u8], keys: Keys) -> Option<u64> {
    if keys == Keys::Text {
        return Some(dataset::text_weight(key));
    }
    let (store, product) = key.split_at_checked(rows_text::STORE_DIGITS)?;
    let number = |digits: &[u8]| digits.iter().fold(0, |n, digit| n * 10 + u64::from(digit & 15));
    let shaped = product.len() == rows_text::PRODUCT_DIGITS + 1 && product[0] == b'\t';
    shaped.then(|| dataset::number_weight(number(store), number(&product[1..])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_gnu_sort_has_a_version() {
        assert_eq!(version("sort (GNU coreutils) 9.1\nCopyright\n").as_deref(), Some("9.1"));
        assert_eq!(version("sort from BusyBox\n"), None);
        assert_eq!(version(""), None);
    }

    #[test]
    fn a_line_out_of_order_is_found() {
        let path = std::env::temp_dir().join(format!("plumb-sorted-test-{}", std::process::id()));
        let verified = |text: &str| {
            fs::write(&path, text).expect("written");
            verify(&path, Keys::Numbers, 1)
        };
        let facts = verified("0001\t00002\t0\n0002\t00001\t1\n").expect("in order");
        assert_eq!(facts, KeyFacts { rows: 2, key_sum: 3_000_003 });
        assert!(verified("0002\t00001\t1\n0001\t00002\t0\n").is_err());
        assert!(verified("1\t2\t0\n").is_err());
        fs::write(&path, "/abcde\t0\n/abcde\t1\n").expect("written");
        let facts = verify(&path, Keys::Text, 1).expect("in order");
        assert_eq!(facts, KeyFacts { rows: 2, key_sum: 2 * dataset::text_weight(b"/abcde") });
        fs::remove_file(&path).expect("removed");
    }
}
