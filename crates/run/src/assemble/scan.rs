//! Full scans by stream and by instance.

use super::Evidence;
use plumb_record::{ColumnSum, Scan};

pub(super) fn scan(seen: &Evidence) -> Option<Scan> {
    let done = seen.measured.outcome.scan.as_ref()?;
    let first = done.streams.first()?;
    let sums = done.columns.iter().zip(&first.totals.sums);
    Some(Scan {
        rows: first.totals.row_count,
        sums: sums.map(|(column, sum)| ColumnSum { column: column.clone(), sum: sum.to_string() }).collect(),
        streams_ns: done.streams.iter().map(|stream| stream.elapsed.0).collect(),
        extents: done.extents,
        instances: done.instances_of(&seen.measured.period),
    })
}
