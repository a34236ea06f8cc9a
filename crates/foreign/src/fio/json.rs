//! fio's JSON, read into leaves that know their lines.
//!
//! Rejected: `serde_json::Value`, which forgets lines and the text of numbers, keeps one of two equal
//! keys, and reads nothing of a file that was cut off.

use super::{JOBS, PERCENTILES};
use crate::report::Report;
use crate::sheet::{Cell, Printed, Remark, Sheet};
use crate::source::Part;
use std::collections::BTreeMap;

/// Objects within objects at most; fio has six.
const DEPTH_MOST: usize = 64;
const DIRECTIONS: [&str; 4] = ["read", "write", "trim", "mixed"];

/// Texts by their path, as in `jobs/0/read/iops`. Of two equal paths the first one counts.
type Leaves = BTreeMap<String, Printed>;

pub(super) fn read(part: &Part<'_>) -> Report {
    let frames = vec![Frame::Object(String::new())];
    let first_line = part.first_line();
    let mut scan = Scan { text: part.text, first_line, at: 0, frames, leaves: Leaves::new() };
    scan.run();
    let (leaves, end) = (scan.leaves, scan.at);
    let find = |path: &str| leaves.get(path).cloned().unwrap_or_default();
    let mut report = Report::default();
    report.run.title = "FIO REPORT".to_string();
    for (name, path) in [("Version", "fio version"), ("Time", "time")] {
        let Printed { raw, line } = find(path);
        report.fact(name, &Cell { raw, line, reading: crate::figure::Reading::Words });
    }
    report.run.begin = find("time").raw;
    let entries = entries(&leaves);
    let is_ns = leaves.keys().any(|path| path.contains("/clat_ns/"));
    let is_kib = leaves.keys().any(|path| path.ends_with("/io_bytes"))
        && !leaves.keys().any(|path| path.ends_with("/io_kbytes"))
        && is_old(&find("fio version").raw);
    let mut jobs = sheet_of_jobs(is_ns, is_kib, find("fio version").line);
    let mut percentiles = sheet_of_percentiles(is_ns, find("fio version").line);
    for entry in &entries {
        let job = find(&format!("{entry}/jobname"));
        report.run.workload =
            if report.run.workload.is_empty() { job.raw.clone() } else { report.run.workload };
        for direction in DIRECTIONS {
            let of = format!("{entry}/{direction}");
            if find(&format!("{of}/total_ios")).raw.parse::<u64>().unwrap_or(0) == 0 {
                continue;
            }
            let row = row(&leaves, entry, direction, is_ns);
            jobs.push(find(&format!("{of}/total_ios")).line, row);
            push_percentiles(&leaves, &of, &job, &mut percentiles, is_ns);
        }
    }
    report.run.elapsed = longest(&jobs);
    report.sheets.extend([jobs, percentiles].into_iter().filter(|sheet| !sheet.rows.is_empty()));
    // Text behind the document, such as that of `--output-format=json,normal`.
    let behind = part.text[end..].lines().filter(|line| !line.trim().is_empty());
    let line = part.line_of(end);
    let remark = |(at, text): (usize, &str)| Remark {
        line: line + u32::try_from(at).unwrap_or(0),
        text: text.to_string(),
    };
    report.unread.extend(behind.enumerate().map(remark));
    report
}

/// True of versions before 2.21, whose `io_bytes` is KiB.
fn is_old(version: &str) -> bool {
    let mut parts =
        version.trim_start_matches("fio-").split(['.', '-']).map(|part| part.parse::<u32>().unwrap_or(0));
    let (major, minor) = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    major < 2 || major == 2 && minor < 21
}

/// Paths of the entries; of several machines that of all of them together is left out.
fn entries(leaves: &Leaves) -> Vec<String> {
    let mut entries: Vec<String> = Vec::new();
    for list in ["jobs", "client_stats"] {
        let named = |number: usize| format!("{list}/{number}");
        let count =
            (0..).take_while(|number| leaves.contains_key(&format!("{}/jobname", named(*number)))).count();
        let is_sum = |path: &String| {
            leaves.get(&format!("{path}/jobname")).is_some_and(|name| name.raw == "All clients")
        };
        entries.extend((0..count).map(named).filter(|path| !is_sum(path)));
    }
    entries
}

fn sheet_of_jobs(is_ns: bool, is_kib: bool, line: u32) -> Sheet {
    let (clat, lat) = if is_ns { ("clat_ns", "lat_ns") } else { ("clat", "lat") };
    let bytes = if is_kib { "io_bytes in KiB" } else { "io_bytes" };
    let names =
        ["job", "direction", bytes, "bw", "iops", "runtime", "total_ios", "short_ios"].map(String::from);
    let times = ["min", "max", "mean"].map(|of| format!("{clat} {of}"));
    let others =
        [format!("{lat} mean"), "sum of bins".into(), "bs".into(), "iodepth".into(), "numjobs".into()];
    let heading = Printed { raw: "jobs".to_string(), line };
    Sheet::new(Some(&JOBS), heading, names.into_iter().chain(times).chain(others).collect())
}

fn sheet_of_percentiles(is_ns: bool, line: u32) -> Sheet {
    let clat = if is_ns { "clat_ns" } else { "clat" };
    let names = ["job", "direction", "percentile", clat].map(String::from).to_vec();
    Sheet::new(Some(&PERCENTILES), Printed { raw: "clat percentiles".to_string(), line }, names)
}

/// The cells of an entry and a direction, in the order of [`sheet_of_jobs`].
fn row(leaves: &Leaves, entry: &str, direction: &str, is_ns: bool) -> Vec<Printed> {
    let of = format!("{entry}/{direction}");
    let find = |name: &str| leaves.get(&format!("{of}/{name}")).cloned().unwrap_or_default();
    let (clat, lat) = if is_ns { ("clat_ns", "lat_ns") } else { ("clat", "lat") };
    let job = leaves.get(&format!("{entry}/jobname")).cloned().unwrap_or_default();
    let line = find("total_ios").line;
    let mut cells = vec![job, Printed { raw: direction.to_string(), line }];
    cells.extend(["io_bytes", "bw", "iops", "runtime", "total_ios", "short_ios"].map(find));
    cells.extend(["min", "max", "mean"].map(|name| find(&format!("{clat}/{name}"))));
    cells.push(find(&format!("{lat}/mean")));
    cells.push(bins(leaves, &format!("{of}/{clat}/bins/")));
    cells.push(size(leaves, entry));
    // fio prints no option that was not given: one request at a time, one process.
    cells.push(option(leaves, entry, "iodepth").unwrap_or(Printed { raw: "1".to_string(), line }));
    let grouped = option(leaves, entry, "group_reporting").is_some_and(|option| option.raw != "0");
    let processes = option(leaves, entry, "numjobs").filter(|_| grouped);
    cells.push(processes.unwrap_or(Printed { raw: "1".to_string(), line }));
    cells
}

/// An option of a job, or of all.
fn option(leaves: &Leaves, entry: &str, name: &str) -> Option<Printed> {
    let own = leaves.get(&format!("{entry}/job options/{name}"));
    own.or_else(|| leaves.get(&format!("global options/{name}"))).cloned()
}

/// The size of every request, in bytes; blank where sizes vary.
fn size(leaves: &Leaves, entry: &str) -> Printed {
    let varies =
        ["bsrange", "bssplit", "bs_unaligned"].iter().any(|name| option(leaves, entry, name).is_some());
    let Some(Printed { raw, line }) = option(leaves, entry, "bs").filter(|_| !varies) else {
        return Printed::default();
    };
    let raw = raw.trim_end_matches(['b', 'B', 'i']).to_uppercase();
    let is_one = raw.chars().all(|letter| letter.is_ascii_digit() || "KMG".contains(letter));
    if is_one { Printed { raw, line } } else { Printed::default() }
}

/// The requests in the bins of JSON+.
fn bins(leaves: &Leaves, path: &str) -> Printed {
    let mut bins = leaves.range(path.to_string()..).take_while(|(of, _)| of.starts_with(path)).peekable();
    let Some(line) = bins.peek().map(|(_, bin)| bin.line) else { return Printed::default() };
    let sum: u64 = bins.map(|(_, bin)| bin.raw.parse::<u64>().unwrap_or(0)).fold(0, u64::saturating_add);
    Printed { raw: sum.to_string(), line }
}

fn push_percentiles(leaves: &Leaves, of: &str, job: &Printed, sheet: &mut Sheet, is_ns: bool) {
    let path = format!("{of}/{}/percentile/", if is_ns { "clat_ns" } else { "clat" });
    let of_entry = leaves.range(path.clone()..).take_while(|(leaf, _)| leaf.starts_with(&path));
    let mut rows: Vec<(f64, &str, &Printed)> = of_entry
        .filter_map(|(leaf, time)| {
            let percent = &leaf[path.len()..];
            // Early versions print places that have none as 0.00.
            percent.parse().ok().filter(|value: &f64| *value > 0.0).map(|value| (value, percent, time))
        })
        .collect();
    rows.sort_by(|one, other| one.0.total_cmp(&other.0));
    let direction = of.rsplit('/').next().unwrap_or_default();
    for (_, percent, time) in rows {
        let words = [direction, percent].map(|raw| Printed { raw: raw.to_string(), line: time.line });
        let cells = [job.clone()].into_iter().chain(words).chain([time.clone()]);
        sheet.push(time.line, cells.collect());
    }
}

/// The longest runtime of the rows: those of entries overlap.
pub(super) fn longest(jobs: &Sheet) -> Option<Cell> {
    let at = jobs.columns.iter().position(|column| column.key == "runtime")?;
    let cells = jobs.rows.iter().filter_map(|row| row.cells.get(at));
    let value = |cell: &&Cell| cell.reading.value().unwrap_or(0.0);
    cells.max_by(|one, other| value(one).total_cmp(&value(other))).cloned()
}

/// A level of the document.
#[derive(Debug)]
enum Frame {
    /// An object, with the key that is being read.
    Object(String),
    /// A list, with the place that is being read.
    List(usize),
}

/// A scan of a document from behind its first brace, up to its last one or to the end of the file.
struct Scan<'t> {
    text: &'t str,
    /// The line of the file in which the text begins.
    first_line: u32,
    at: usize,
    frames: Vec<Frame>,
    leaves: Leaves,
}

impl Scan<'_> {
    fn run(&mut self) {
        let mut line = 0;
        let (mut counted, mut key_done) = (0, false);
        while let Some(byte) = self.text.as_bytes().get(self.at).copied() {
            line += self.text[counted..self.at].matches('\n').count();
            counted = self.at;
            match byte {
                b'{' | b'[' if self.frames.len() < DEPTH_MOST => {
                    self.frames.push(if byte == b'{' {
                        Frame::Object(String::new())
                    } else {
                        Frame::List(0)
                    });
                    key_done = false;
                }
                b'{' | b'[' => return,
                b'}' | b']' => {
                    self.frames.pop();
                    if self.frames.is_empty() {
                        self.at += 1;
                        return;
                    }
                }
                b',' => {
                    key_done = false;
                    if let Some(Frame::List(place)) = self.frames.last_mut() {
                        *place += 1;
                    }
                }
                b':' => key_done = true,
                byte if byte.is_ascii_whitespace() => {}
                _ => {
                    let Some(text) = self.token() else { return };
                    let line = self.first_line + u32::try_from(line).unwrap_or(0);
                    self.take(text, line, key_done);
                    continue;
                }
            }
            self.at += 1;
        }
    }

    /// The text of a string, number or word, and the place behind it; none where the file ends in it.
    fn token(&mut self) -> Option<String> {
        let rest = &self.text[self.at..];
        if let Some(inside) = rest.strip_prefix('"') {
            let mut escaped = false;
            let end = inside.find(|letter| {
                let ends = letter == '"' && !escaped;
                escaped = letter == '\\' && !escaped;
                ends
            })?;
            self.at += end + 2;
            let quoted = &rest[..end + 2];
            return Some(serde_json::from_str(quoted).unwrap_or_else(|_| inside[..end].to_string()));
        }
        let end = rest.find(|letter: char| letter.is_whitespace() || ",:{}[]\"".contains(letter))?;
        self.at += end;
        Some(rest[..end].to_string())
    }

    /// A key, or the value of one.
    fn take(&mut self, text: String, line: u32, key_done: bool) {
        if let Some(Frame::Object(key)) = self.frames.last_mut()
            && !key_done
        {
            *key = text;
            return;
        }
        let steps = self.frames.iter().map(|frame| match frame {
            Frame::Object(key) => key.clone(),
            Frame::List(place) => place.to_string(),
        });
        let path = steps.collect::<Vec<_>>().join("/");
        self.leaves.entry(path).or_insert(Printed { raw: text, line });
    }
}
