//! The I/O behind the longest waits: on which type of file, and at what size.
//!
//! A wait event names the function that made the requests, and the streams of a function name the
//! type of file. An event of several types of file (a direct path read may be of a plain file)
//! shows the type with most requests. A session that waits for another one's request, as in `log
//! file sync`, waits for the function of that one.

use super::events::{TopEvent, top_events};
use plumb_events::{Direction, FileType, Function, IoStream};
use plumb_record::{IoTally, Record};
use plumb_report::format::{Average, Count, Percent, Size};
use plumb_report::table;
use plumb_report::table::Table;

/// Rows at most; shorter waits are in the list of events.
const ROWS: usize = 3;
/// Smallest share of DB time of a row.
const SHARE_MIN: f64 = 0.01;

/// Returns the table; `None` if no I/O took a share of DB time.
pub(super) fn table(record: &Record) -> Option<Table> {
    let db_time = record.header.db_time();
    let long = top_events(record)
        .into_iter()
        .filter(|event| event.time_ns as f64 >= SHARE_MIN * db_time as f64)
        .filter_map(|event| Some((requests(record, event.event)?, event)));
    let table = table!(((file_type, tally), TopEvent { event, waits, time_ns, .. }) in long.take(ROWS); {
        let mean = |total_ns: u64| Average { total_ns, count: tally.requests };
    } [
        text "Waited for" => event,
        numbers "% DB\ntime" => Percent::of(time_ns, db_time),
        numbers "Avg\nwait" => waits.map(|count| Average { total_ns: time_ns, count }),
        text "File Type" => file_type.name(),
        numbers "Requests" => Count(tally.requests),
        numbers "Avg\nsize" => tally.bytes.checked_div(tally.requests).map(Size),
        numbers "Avg\ntime" => tally.time_ns.map(mean),
    ]);
    (!table.rows.is_empty()).then(|| table.with_caption("I/O Behind the Longest Waits"))
}

/// Returns the function whose requests this event waits for, by the session or by another one.
fn function_of(event: &str) -> Option<Function> {
    match event {
        "log file sync" | "log buffer space" => Some(Function::Lgwr),
        "free buffer waits" | "write complete waits" | "local write wait" => Some(Function::Dbwr),
        "read by other session" => Some(Function::BufferCacheReads),
        event => Function::of_event(event).filter(|function| *function != Function::Others),
    }
}

/// Returns the type of file with most requests of an event, and these.
fn requests(record: &Record, event: &str) -> Option<(FileType, IoTally)> {
    let function = function_of(event)?;
    let is_direct = event.starts_with("direct path");
    let mut sums: Vec<(FileType, IoTally)> = Vec::new();
    for row in record.io_functions.iter().filter(|row| row.database_function() == function.name()) {
        let Some(stream) = IoStream::named(&row.function) else { continue };
        let file_type = stream.file_type();
        let is_own = !is_direct
            || (file_type == FileType::Temp) == event.ends_with(" temp") && file_type != FileType::Other;
        let tally = match stream.direction() {
            Direction::Read => row.reads,
            Direction::Write => row.writes,
        };
        match sums.iter_mut().find(|(known, _)| *known == file_type) {
            _ if !is_own || tally.requests == 0 => {}
            Some((_, sum)) => sum.add(&tally),
            None => sums.push((file_type, tally)),
        }
    }
    sums.into_iter().max_by_key(|(_, tally)| tally.requests)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::fixture::large_sort;

    /// Returns the rows by event and type of file.
    fn shown(record: &Record) -> Vec<[String; 2]> {
        let rows = table(record).map_or_else(Vec::new, |table| table.rows);
        rows.iter().map(|row| [&row.cells[0], &row.cells[3]].map(|cell| cell.text.clone())).collect()
    }

    fn waiting(waits: &[&str]) -> Record {
        let mut record = large_sort();
        let first = record.foreground_events[0].clone();
        let wait = |event: &&str| plumb_record::WaitEvent { event: (*event).to_string(), ..first.clone() };
        record.foreground_events = waits.iter().map(wait).collect();
        record
    }

    #[test]
    fn waits_for_scans_and_for_runs_are_of_their_own_files() {
        let record = waiting(&["direct path read", "direct path read temp"]);
        assert_eq!(
            shown(&record),
            [["direct path read", "Data File"], ["direct path read temp", "Temp File"]]
        );
    }

    #[test]
    fn a_wait_without_requests_has_no_row() {
        let mut record = waiting(&["direct path read", "latch free"]);
        assert_eq!(shown(&record).len(), 1);
        record.io_functions.clear();
        assert_eq!(shown(&record), Vec::<[String; 2]>::new());
    }

    #[test]
    fn a_commit_waits_for_the_writes_of_the_log() {
        let mut record = waiting(&["log file sync"]);
        record.io_functions = vec![plumb_record::IoFunction {
            function: "log writes".to_string(),
            part_of: None,
            reads: IoTally::default(),
            writes: IoTally { requests: 4, bytes: 4096, time_ns: Some(400_000) },
            large: None,
        }];
        assert_eq!(shown(&record), [["log file sync", "Log File"]]);
    }
}
