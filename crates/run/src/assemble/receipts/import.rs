//! Parameters of an import that a study may vary, compared with the sessions' work.

use super::super::Evidence;
use super::{Ruling, counted};
use crate::evidence::ImportDone;
use plumb_events::Statistic;
use plumb_record::Receipt;
use plumb_units::{Bytes, RowCount};

pub(super) fn parameters(seen: &Evidence) -> Vec<Receipt> {
    let Some(import) = &seen.measured.outcome.import else { return Vec::new() };
    let arrays = match import.rows_per_commit {
        Some(rows) => rows_per_commit(import, rows).inside("commit-every", rows.to_string()),
        None => buffer(seen, import).inside("buffer", Bytes(import.array_bytes).as_setting()),
    };
    vec![arrays, sessions(seen, import).inside("sessions", import.sessions.to_string())]
}

/// Rows per commit: equal, except for the last commit of a session.
fn rows_per_commit(import: &ImportDone, asked: u64) -> Ruling {
    let evidence =
        format!("{} of {} rows", counted(import.commit_count, "commit"), RowCount(import.row_count));
    let least = import.row_count.div_ceil(asked);
    Ruling::that((least..least + import.sessions).contains(&import.commit_count), evidence)
}

/// Bytes per commit, by the counters of the sessions.
fn buffer(seen: &Evidence, import: &ImportDone) -> Ruling {
    let [rows, commits] = [Statistic::RowsInserted, Statistic::UserCommits]
        .map(|statistic| seen.measured.period.statistic(statistic));
    let mean = import.row_bytes.checked_div(commits).unwrap_or(0);
    let row = import.row_bytes.checked_div(rows).unwrap_or(0);
    let evidence = format!(
        "{} of {} each on average, {} of {}",
        counted(commits, "commit"),
        Bytes(mean),
        RowCount(rows),
        Bytes(row)
    );
    let counted_alike = rows == import.row_count && commits == import.commit_count;
    // The last array of a session has the remaining rows.
    let full = mean * 2 >= import.array_bytes || commits <= 2 * import.sessions || mean < 2 * row;
    Ruling::that(counted_alike && mean <= import.array_bytes.max(2 * row) && full, evidence)
}

/// Counts the sessions that inserted rows.
fn sessions(seen: &Evidence, import: &ImportDone) -> Ruling {
    let inserted: Vec<u64> = seen
        .measured
        .period
        .sessions
        .iter()
        .map(|session| session.statistics[Statistic::RowsInserted as usize])
        .filter(|rows| *rows > 0)
        .collect();
    let (least, most) = (inserted.iter().min().unwrap_or(&0), inserted.iter().max().unwrap_or(&0));
    let found = inserted.len() as u64;
    let evidence = format!(
        "{} inserted rows, {} to {} each",
        counted(found, "session"),
        RowCount(*least),
        RowCount(*most)
    );
    match found < import.sessions {
        // A small source has rows for few sessions.
        true => Ruling::unknown(format!("{evidence}: there were not rows for more")),
        false => Ruling::that(found == import.sessions, evidence),
    }
}
