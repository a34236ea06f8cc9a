//! A run in a line: the figures that SLOB's awr_info.sh prints of an AWR report, and costs per
//! operation.
//!
//! ```text
//! FILE|SESSIONS|ELAPSED|DB CPU|DB Tm|EXECUTES|LIO|PREADS|READ_MBS|...|TOP WAIT|OP|CPU_US/OP|...|
//! ```
//! DB CPU to REDO_MBS are per second, as in a load profile; ELAPSED is in seconds, latencies in
//! microseconds. An operation is a statement, otherwise a row inserted or sorted. Its cost is that
//! of the whole process, background sessions included: CPU in user and kernel mode, context
//! switches of both kinds, and kilobytes read from and written to files. Values that a record lacks
//! are blank.

use plumb_record::figures::{FIGURES, FigureGroup, FigureRow};
use plumb_record::operation::operations;
use plumb_record::{Record, WaitEvent};
use plumb_report::format::{Figure, Percent};

/// Returns the header line with the names of the columns.
pub fn head() -> String {
    let name = |row: &FigureRow| row.name.to_string();
    row_of("FILE".to_string(), name, ["TOP WAIT", "OP"].map(String::from))
}

/// Returns the columns of a run, after the name of its bundle.
pub fn line(name: &str, run: &Record) -> String {
    let operation = operations(run).map_or("", |(name, _)| name).to_string();
    row_of(name.to_string(), |row| shown(row, run), [top_wait(run), operation])
}

/// Joins the fields of a line: the bundle, the figures of the run, top wait and kind of operation,
/// and the figures of one operation.
fn row_of(first: String, cell: impl Fn(&FigureRow) -> String, texts: [String; 2]) -> String {
    let rows = FIGURES.iter().filter(|row| row.group == FigureGroup::Line);
    let (each, whole): (Vec<_>, Vec<_>) = rows.partition(|row| row.unit == "/op");
    let mut fields = vec![first];
    fields.extend(whole.into_iter().map(&cell));
    fields.extend(texts);
    fields.extend(each.into_iter().map(&cell));
    fields.join("|") + "|"
}

fn shown(row: &FigureRow, run: &Record) -> String {
    match row.of(run) {
        None => String::new(),
        // A count, which has no unit, and microseconds are whole numbers.
        Some(value) if ["", "us"].contains(&row.unit) => format!("{value:.0}"),
        Some(value) => short(value),
    }
}

/// Prints three digits, or all digits before the point.
fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 || size == 0.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// Returns the longest of CPU and waits, with its share of DB time.
fn top_wait(run: &Record) -> String {
    let busy = run.foreground_events.iter().filter(|event| !event.is_idle());
    let longest: Option<&WaitEvent> = busy.max_by_key(|event| event.time_ns);
    let (name, time_ns) = match longest {
        Some(event) if event.time_ns > run.header.db_cpu() => (event.event.as_str(), event.time_ns),
        _ if run.header.db_cpu_ns.is_none() => return String::new(),
        _ => ("DB CPU", run.header.db_cpu()),
    };
    format!("{name} {}", Percent::of(time_ns, run.header.db_time()).figure()).trim_end().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::fixture;
    use plumb_record::ProcessUse;

    #[test]
    fn a_run_has_a_field_for_each_column() {
        let mut run = fixture::large_sort();
        run.process = Some(ProcessUse {
            cpu_ns: 34_000_000_000,
            voluntary_switches: 90_000,
            involuntary_switches: 10_000,
        });
        for run in [&run, &fixture::empty()] {
            assert_eq!(line("x", run).matches('|').count(), head().matches('|').count());
        }
        insta::assert_snapshot!(format!(
            "{}\n{}\n{}\n",
            head(),
            line("a", &run),
            line("b", &fixture::empty())
        ));
    }
}
