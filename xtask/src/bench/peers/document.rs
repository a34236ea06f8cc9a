//! docs/peers.md: the machine, the tables, bars, and how to repeat it.

use super::Options;
use super::peer::{Ground, Peer};
use super::table::{self, Record, Row};
use crate::bench::dataset::Keys;
use plumb_events::clock::wall;
use plumb_io::device;
use plumb_units::Bytes;
use std::fmt::Write as _;
use std::fs;

const BAR_CELLS: f64 = 50.0;
/// Parts of a cell, by eighths.
const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// The machine as it was before the first run.
#[derive(Debug)]
pub(super) struct Machine {
    lines: Vec<String>,
}

impl Machine {
    /// Reads what the kernel tells.
    pub(super) fn describe(ground: &Ground) -> Machine {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let mut lines = vec![
            format!("{processors} processors, {}", processor(&read("/proc/cpuinfo"))),
            format!("{} of memory", memory_total(&read("/proc/meminfo"))),
            format!("Linux {}", read("/proc/sys/kernel/osrelease").trim()),
            format!("load average before the first run: {}", load_average(&read("/proc/loadavg"))),
        ];
        if let Ok(described) = device::describe(&ground.directory) {
            lines.push(format!("file system: {}", described.mount.file_system));
            lines.extend(described.stack.iter().map(|layer| format!("device: {layer}")));
            lines.extend(device::notes(&described));
        }
        Machine { lines }
    }

    /// One fact a line.
    pub(super) fn show(&self) -> String {
        self.lines.iter().fold(String::new(), |text, line| text + "- " + line + "\n")
    }
}

/// Everything that the document says.
#[derive(Debug)]
pub(super) struct Findings {
    pub(super) machine: Machine,
    pub(super) records: Vec<Record>,
}

/// What the document begins with.
const INTRODUCTION: &str = "\
# plumb beside its peers

Made by `cargo xtask bench peers`, a part for each kind of keys. Do not edit: repeat.

";

/// The whole document: the part of these keys anew, the parts of others as
/// they are in `present`.
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
    text.push_str(READING);
    let _ = writeln!(text, "## How each is set up\n\n{}", set_up(peers));
    text.push_str(NEEDS);
    text
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
        date(wall().as_secs()),
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

It fetches the peers with npm and pip into the target directory (`target/peers`, half a gigabyte), which stays;
it needs python3 with venv, npm and GNU sort. As root it runs PostgreSQL as the user nobody, who must be
able to reach the directory.
";

const READING: &str = "\
## How to read it

- Time runs from the command until the result is durable: where a peer does not sync its result
  itself (files in Parquet or text), a sync is added and its share noted. What a server, an interpreter or
  a library takes to start is not part of it.
- The ratio is median over median; its range is the least and the most of the ratios within rounds.
  With few rounds it is a range, not a confidence interval.
- All start cold: before each run the page cache of the peer's own files is dropped, and caches of a server
  are new. plumb reads and writes past the page cache. The host of a virtual machine may still have the data
  in its own cache, for all alike. Peers that write runs through the page cache have its memory
  beside their limit, and need not wait for the disk as long as there is enough of it.
- CPU time is that of all threads and processes of the peer; of PostgreSQL and GNU sort in ticks of 10 ms. It is
  disturbed less than time by what else the machine does.
- Peak memory is resident memory at most, with what program and library had before the command in the column
  beside it. Of PostgreSQL it is the whole server, shared memory counted once, read every 20 ms.
- Rounds are interleaved: in each, all peers and settings run once, in a new random order.
- Every result is checked: plumb's index against its table; the index of PostgreSQL by amcheck and by a count
  and a sum of the keys in it, SQLite's by such a count and sum; sorted copies by order, count
  and sum. DuckDB's index is only looked up in the catalog.
- Ties among equal keys: plumb, PostgreSQL, SQLite and GNU sort order them by row; DuckDB and
  DataFusion are not asked to. Columnar peers read only the columns of the key, GNU sort a file of nothing else;
  plumb, PostgreSQL and SQLite read whole rows.

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
        "cargo xtask bench peers --keys {} --rows {} --memory {} --degree {} --repeat {} --seed {} --document docs/peers.md",
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

fn processor(cpuinfo: &str) -> String {
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map_or("model unknown".to_string(), |(_, model)| model.trim().to_string())
}

fn memory_total(meminfo: &str) -> Bytes {
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB"));
    Bytes(total.and_then(|kib| kib.trim().parse::<u64>().ok()).unwrap_or(0) * Bytes::K)
}

fn load_average(loadavg: &str) -> String {
    loadavg.split_whitespace().take(3).collect::<Vec<&str>>().join(" ")
}

/// Seconds since 1970 as a date, by the days of eras of 400 years.
fn date(seconds: u64) -> String {
    let days = seconds / 86_400 + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Months from March, so that the leap day is the last of the year.
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
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
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(951_782_400), "2000-02-29");
        assert_eq!(date(1_767_225_599), "2025-12-31");
        assert_eq!(date(1_767_225_600), "2026-01-01");
    }

    #[test]
    fn facts_of_the_machine_are_found_or_said_to_be_unknown() {
        assert_eq!(processor("processor\t: 0\nmodel name\t: A  CPU @ 2\n"), "A  CPU @ 2");
        assert_eq!(processor(""), "model unknown");
        assert_eq!(memory_total("MemTotal:       2048 kB\nMemFree: 1 kB\n"), Bytes(2 * Bytes::M));
        assert_eq!(load_average("0.10 0.20 0.30 1/100 4711\n"), "0.10 0.20 0.30");
    }

    #[test]
    fn the_longest_bar_is_full_and_the_shortest_is_seen() {
        assert_eq!(bar(1.0).chars().count(), 50);
        assert_eq!(bar(0.0), "▏");
        assert_eq!(bar(0.5), "█".repeat(25));
    }
}
