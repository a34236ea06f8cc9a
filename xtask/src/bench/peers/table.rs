//! From runs to the rows of a table.
//!
//! There is a table for each memory limit. The ratio of a row is its median
//! over plumb's median at that limit; the range beside it is that of the
//! ratios within rounds, so what disturbs a round disturbs both. Of a sweep
//! the best setting within the limit is shown, and the best of all where that
//! lies beyond.

use super::peer::{Reach, Run, Task};
use crate::bench::Spread;
use plumb_units::Bytes;

/// The peer that all others are compared with.
pub(super) const STANDARD: &str = "plumb";

/// What became of a task, or of a peer that could not do any.
#[derive(Debug, Clone)]
pub(super) struct Record {
    pub(super) peer: &'static str,
    pub(super) version: String,
    /// `None` where the peer could not be prepared.
    pub(super) task: Option<Task>,
    /// The number of the round and its run.
    pub(super) runs: Vec<(usize, Run)>,
    /// Why there are no more runs.
    pub(super) failure: Option<String>,
}

impl Record {
    pub(super) fn seconds(&self) -> Option<Spread> {
        let seconds: Vec<f64> = self.runs.iter().map(|(_, run)| run.seconds).collect();
        (!seconds.is_empty()).then(|| Spread::of(seconds))
    }

    fn memory(&self) -> Bytes {
        self.task.as_ref().map_or(Bytes(0), |task| task.memory)
    }

    fn sort_key(&self) -> f64 {
        self.seconds().map_or(f64::INFINITY, |seconds| seconds.median)
    }
}

/// A line of the table of a limit.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) peer: &'static str,
    pub(super) version: String,
    pub(super) setting: String,
    produces: String,
    pub(super) seconds: Option<Spread>,
    ratio: Option<Spread>,
    cpu_seconds: f64,
    memory_start: Bytes,
    memory_peak: Bytes,
    output: Bytes,
    note: String,
}

/// The rows of a limit, in the order of the records.
pub(super) fn rows(records: &[Record], limit: Bytes) -> Vec<Row> {
    let standard = records.iter().find(|record| record.peer == STANDARD && record.memory() == limit);
    chosen(records, limit)
        .into_iter()
        .map(|(record, setting)| Row {
            peer: record.peer,
            version: record.version.clone(),
            setting,
            produces: record.task.as_ref().map_or(String::new(), |task| task.produces.to_string()),
            seconds: record.seconds(),
            ratio: standard.and_then(|standard| ratio(record, standard)),
            cpu_seconds: median_cpu(record),
            memory_start: median_bytes(record, |run| run.memory_start),
            memory_peak: record.runs.iter().map(|(_, run)| run.memory_peak).max().unwrap_or_default(),
            output: median_bytes(record, |run| run.output),
            note: note(record),
        })
        .collect()
}

/// Which records a limit shows, each with the words for its setting.
fn chosen(records: &[Record], limit: Bytes) -> Vec<(&Record, String)> {
    let mut chosen: Vec<(&Record, String)> = Vec::new();
    let mut swept: Vec<(&str, &str)> = Vec::new();
    for record in records {
        let Some(task) = &record.task else {
            chosen.push((record, String::new()));
            continue;
        };
        match task.reach {
            Reach::OwnLimit if task.memory == limit => chosen.push((record, task.work.to_string())),
            Reach::OwnLimit => {}
            Reach::Sweep if swept.contains(&(record.peer, task.work)) => {}
            Reach::Sweep => {
                swept.push((record.peer, task.work));
                chosen.extend(best_of_sweep(records, record.peer, task.work, limit));
            }
        }
    }
    chosen
}

fn best_of_sweep<'a>(
    records: &'a [Record],
    peer: &str,
    work: &str,
    limit: Bytes,
) -> Vec<(&'a Record, String)> {
    let best = |most: Bytes| {
        let members = records.iter().filter(|record| {
            record.peer == peer
                && record.memory() <= most
                && record.task.as_ref().is_some_and(|task| task.work == work)
        });
        members.min_by(|one, two| one.sort_key().total_cmp(&two.sort_key()))
    };
    let within =
        best(limit).map(|record| (record, format!("{work}, best within limit: {}", record.memory())));
    let beyond = best(Bytes(u64::MAX))
        .filter(|record| record.memory() > limit && record.seconds().is_some())
        .map(|record| (record, format!("{work}, best of all: {}", record.memory())));
    within.into_iter().chain(beyond).collect()
}

/// Of the rounds that both ran; so the ratio of medians lies within the range.
fn ratio(record: &Record, standard: &Record) -> Option<Spread> {
    let pair = |(round, run): &(usize, Run)| {
        let (_, other) = standard.runs.iter().find(|(other, _)| other == round)?;
        Some((run.seconds, other.seconds))
    };
    let pairs: Vec<(f64, f64)> = record.runs.iter().filter_map(pair).collect();
    if pairs.is_empty() {
        return None;
    }
    let (seconds, standard): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let median = Spread::of(seconds).median / Spread::of(standard).median;
    let range = Spread::of(pairs.iter().map(|(one, other)| one / other).collect());
    Some(Spread { median, ..range })
}

fn median_cpu(record: &Record) -> f64 {
    let seconds: Vec<f64> = record.runs.iter().map(|(_, run)| run.cpu_seconds).collect();
    if seconds.is_empty() { 0.0 } else { Spread::of(seconds).median }
}

fn median_bytes(record: &Record, value: impl Fn(&Run) -> Bytes) -> Bytes {
    let mut values: Vec<Bytes> = record.runs.iter().map(|(_, run)| value(run)).collect();
    values.sort();
    values.get(values.len() / 2).copied().unwrap_or_default()
}

fn note(record: &Record) -> String {
    let mut notes = Vec::new();
    let sync = record.runs.iter().map(|(_, run)| run.sync_seconds).collect::<Vec<f64>>();
    if sync.iter().any(|seconds| *seconds > 0.0) {
        notes.push(format!("{:.3} s of it sync of the file", Spread::of(sync).median));
    }
    if let Some((_, run)) = record.runs.last()
        && !run.note.is_empty()
    {
        notes.push(run.note.clone());
    }
    if let Some(failure) = &record.failure {
        notes.push(format!("failed: {}", shorten(failure)));
    }
    notes.join("; ")
}

/// A message on one line of the table.
pub(super) fn shorten(text: &str) -> String {
    const LENGTH_MAX: usize = 130;
    let text = text.split_whitespace().collect::<Vec<&str>>().join(" ").replace('|', "/");
    match text.char_indices().nth(LENGTH_MAX) {
        Some((end, _)) => format!("{} ...", &text[..end]),
        None => text,
    }
}

const HEAD: [&str; 12] = [
    "peer",
    "version",
    "setting",
    "produces",
    "median s",
    "least .. most",
    "ratio to plumb [range]",
    "CPU s",
    "peak MB",
    "before MB",
    "output MB",
    "note",
];

/// The rows as a Markdown table that is readable as text too.
pub(super) fn show(rows: &[Row]) -> String {
    let cells = rows.iter().map(|row| {
        let present = |text: String| if row.seconds.is_some() { text } else { "-".to_string() };
        let mb = |bytes: Bytes| present(format!("{:.0}", bytes.0 as f64 / Bytes::M as f64));
        let spread = |text: Option<String>| text.unwrap_or_else(|| "-".to_string());
        vec![
            row.peer.to_string(),
            row.version.clone(),
            row.setting.clone(),
            row.produces.clone(),
            spread(row.seconds.map(|seconds| format!("{:.3}", seconds.median))),
            spread(row.seconds.map(|seconds| format!("{:.3} .. {:.3}", seconds.least, seconds.most))),
            spread(row.ratio.map(|ratio| ratio.show(2))),
            present(format!("{:.2}", row.cpu_seconds)),
            mb(row.memory_peak),
            mb(row.memory_start),
            mb(row.output),
            row.note.clone(),
        ]
    });
    markdown(&HEAD, &cells.collect::<Vec<Vec<String>>>())
}

/// A Markdown table with columns as wide as their widest cell.
pub(super) fn markdown(head: &[&str], cells: &[Vec<String>]) -> String {
    let width = |at: usize| {
        let column = cells.iter().map(|line| line[at].chars().count());
        column.chain([head[at].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |cells: Vec<&str>| {
        let padded = cells.iter().zip(&widths).map(|(cell, width)| format!(" {cell:width$} "));
        format!("|{}|\n", padded.collect::<Vec<String>>().join("|"))
    };
    let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
    let mut text = line(head.to_vec());
    text.push_str(&line(rule.iter().map(String::as_str).collect()));
    for cells in cells {
        text.push_str(&line(cells.iter().map(String::as_str).collect()));
    }
    text
}

#[cfg(test)]
mod tests;
