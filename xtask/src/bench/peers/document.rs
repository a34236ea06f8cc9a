//! docs/measured/peers.md: the machine, the tables, bars, and how to repeat it.

use super::super::machine::{Machine, today, wrapped};
use super::Options;
use super::peer::Peer;
use super::table::{self, Record, Row};
use crate::bench::dataset::Keys;
use plumb_units::Bytes;
use std::fmt::Write as _;

const BAR_CELLS: f64 = 50.0;
/// Parts of a cell, by eighths.
const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// Everything that the document says.
#[derive(Debug)]
pub(super) struct Findings {
    pub(super) machine: Machine,
    pub(super) records: Vec<Record>,
}

/// What the document begins with.
const INTRODUCTION: &str = "\
# plumb and its peers

Made by `cargo xtask bench peers`, a part for each kind of keys. Do not edit: repeat.

";

/// Returns the whole document: the part of these keys as measured, the parts of others as they are
/// in `present`.
pub(super) fn render(
    options: &Options,
    findings: &Findings,
    peers: &[Box<dyn Peer>],
    present: &str,
) -> String {
    let mut text = String::from(INTRODUCTION);
    for keys in [Keys::Numbers, Keys::Text] {
        let (begin, end) = marks(keys);
        let part = match keys == options.keys {
            true => Some(part(options, findings)),
            false => between(present, &begin, &end).map(str::to_string),
        };
        if let Some(part) = part {
            let _ = writeln!(text, "{begin}{part}{end}");
        }
    }
    if let Some(part) = between(present, COMMITS.0, COMMITS.1) {
        let _ = writeln!(text, "{}{part}{}", COMMITS.0, COMMITS.1);
    }
    text.push_str(READING);
    let _ = writeln!(text, "## How each is set up\n\n{}", set_up(peers));
    text.push_str(NEEDS);
    wrapped(&text)
}

/// The part of commits, which has a bench of its own, lies between these.
const COMMITS: (&str, &str) = ("<!-- commits -->\n", "<!-- end of commits -->\n");

/// A document with this part of commits, in the place of a former one or at the end.
pub(super) fn with_commits(present: &str, part: &str) -> String {
    let (begin, end) = COMMITS;
    let part = format!("{begin}{}{end}", wrapped(part));
    match between(present, begin, end) {
        Some(former) => present.replace(&format!("{begin}{former}{end}"), &part),
        None => format!("{present}\n{part}"),
    }
}

/// Lines that a part lies between; they do not show where Markdown is rendered.
fn marks(keys: Keys) -> (String, String) {
    (format!("<!-- keys of {} -->\n", keys.name()), format!("<!-- end of keys of {} -->\n", keys.name()))
}

fn between<'t>(text: &'t str, begin: &str, end: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(begin)?;
    Some(rest.split_once(end)?.0)
}

/// The part of one kind of keys.
fn part(options: &Options, findings: &Findings) -> String {
    let mut text = format!(
        "## {}\n\nMade on {}: {} rows of {}, or the peer's nearest to it; degree {}, {} rounds.\n\n",
        options.keys.title(),
        today(),
        options.rows,
        options.keys.describe(),
        options.degree,
        options.repeat
    );
    let _ = writeln!(text, "{}", findings.machine.show());
    for limit in &options.memory {
        let rows = table::rows(&findings.records, *limit);
        let _ = writeln!(text, "### At {limit} of sort memory\n\n{}", table::show(&rows));
        let _ = writeln!(text, "Median seconds:\n\n```text\n{}```\n", bars(&rows));
    }
    let _ = writeln!(text, "### Every setting that ran\n\n{}", every_setting(&findings.records));
    let _ = writeln!(
        text,
        "To repeat it, with about {} of disk, which is free again in the end:\n\n```sh\n{}\n```",
        Bytes(options.rows.0 * 500),
        command(options)
    );
    text
}

const NEEDS: &str = "\
## What it needs

It fetches the peers with npm and pip into the target directory (`target/peers`, half a gigabyte),
which stays; it needs python3 with venv, npm and GNU sort. As root it runs PostgreSQL as the user
nobody, which must be able to reach the directory.
";

const READING: &str = "\
## How to read it

- Time runs from the command until the result is durable. Where a peer does not sync its result
  (files in Parquet or text), a sync is added and its share noted. Starting a server, an interpreter
  or a library is not part of it.
- The ratio is median over median; its range is the least and the most of the ratios within rounds.
  With few rounds it is a range, not a confidence interval.
- All start cold: before each run the page cache of the peer's own files is dropped, and caches of a
  server are new. plumb reads and writes past the page cache. The host of a virtual machine may have
  the data in its cache, for all alike. Peers that write runs through the page cache use memory
  beyond their limit, and need not wait for the disk while there is enough.
- CPU time is that of all threads and processes of the peer; of PostgreSQL and GNU sort in ticks of
  10 ms. Other work on the machine disturbs it less than time.
- Peak memory is resident memory; the column after it is what program and library had before the
  command. Of PostgreSQL it is the whole server, shared memory counted once, read every 20 ms.
- Rounds are interleaved: in each, all peers and settings run once, in a new random order.
- Every result is checked: plumb's index against its table; the index of PostgreSQL by amcheck and
  by a count and a sum of its keys, SQLite's by count and sum; sorted copies by order, count and
  sum. DuckDB's index is only looked up in the catalog.
- Ties among equal keys: plumb, PostgreSQL, SQLite and GNU sort order them by row; DuckDB and
  DataFusion are not asked to. Columnar peers read only the columns of the key, GNU sort a file of
  nothing else; plumb, PostgreSQL and SQLite read whole rows.

";

fn set_up(peers: &[Box<dyn Peer>]) -> String {
    let cells: Vec<Vec<String>> = peers
        .iter()
        .map(|peer| vec![peer.name().to_string(), peer.form().to_string(), peer.memory().to_string()])
        .collect();
    table::markdown(&["peer", "rows kept as", "memory and degree"], &cells)
}

fn every_setting(records: &[Record]) -> String {
    let cells: Vec<Vec<String>> = records
        .iter()
        .filter_map(|record| {
            let task = record.task.as_ref()?;
            let seconds = record.runs.iter().map(|(_, run)| format!("{:.3}", run.seconds));
            Some(vec![
                record.peer.to_string(),
                task.work.to_string(),
                task.memory.to_string(),
                record.seconds().map_or("-".to_string(), |seconds| format!("{:.3}", seconds.median)),
                match &record.failure {
                    Some(failure) if record.runs.is_empty() => table::shorten(failure),
                    _ => seconds.collect::<Vec<String>>().join(" "),
                },
            ])
        })
        .collect();
    table::markdown(&["peer", "work", "memory", "median s", "seconds of each round"], &cells)
}

/// The command line that measures the same again, but for the directory.
fn command(options: &Options) -> String {
    let limits: Vec<String> = options.memory.iter().map(|limit| limit.as_setting()).collect();
    format!(
        "cargo xtask bench peers --keys {} --rows {} --memory {} --degree {} --repeat {} --seed {} --document docs/measured/peers.md",
        options.keys.name(),
        options.rows.0,
        limits.join(","),
        options.degree,
        options.repeat,
        options.seed
    )
}

/// A bar for each row that ran, the longest over the whole width.
fn bars(rows: &[Row]) -> String {
    let ran: Vec<(String, f64)> = rows
        .iter()
        .filter_map(|row| Some((format!("{} {}", row.peer, row.setting), row.seconds?.median)))
        .collect();
    let most = ran.iter().map(|(_, seconds)| *seconds).fold(f64::MIN_POSITIVE, f64::max);
    let width = ran.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0);
    ran.iter().fold(String::new(), |mut text, (label, seconds)| {
        let _ = writeln!(text, "{label:width$} {} {seconds:.3}", bar(seconds / most));
        text
    })
}

fn bar(share: f64) -> String {
    let eighths = (share * BAR_CELLS * 8.0).round().max(1.0) as usize;
    let mut bar = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        bar.push(EIGHTHS[eighths % 8]);
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_keeps_what_others_wrote() {
        let (begin, end) = marks(Keys::Text);
        assert_eq!(between(&format!("before{begin}part{end}after"), &begin, &end), Some("part"));
        assert_eq!(between("no part", &begin, &end), None);
    }

    #[test]
    fn the_longest_bar_is_full_and_the_shortest_is_seen() {
        assert_eq!(bar(1.0).chars().count(), 50);
        assert_eq!(bar(0.0), "▏");
        assert_eq!(bar(0.5), "█".repeat(25));
    }
}
