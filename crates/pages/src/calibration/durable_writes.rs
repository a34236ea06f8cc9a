//! Cost of durable writes: a row for each method, a column for each size.

use super::median;
use plumb_calibrate::{
    AnswerSource, Calibration, DurableMethod, DurablePoint, Estimate, LogSpace, TaskResult,
};
use plumb_io::DirectIo;
use plumb_report::plot::short_bytes;
use plumb_report::table::{Cell, Column, Table, Tone};
use plumb_report::{Section, cells};

/// A durable write and its median time, microseconds.
type Write<'a> = (&'a TaskResult, &'a DurablePoint, Estimate);

pub(super) fn durable(calibration: &Calibration) -> Option<Section> {
    let write = |result| -> Option<Write<'_>> {
        let result: &TaskResult = result;
        Some((result, result.durable()?, result.latency_micros(0, 0.5)?))
    };
    let writes: Vec<Write<'_>> = calibration.tasks.iter().filter_map(write).collect();
    if writes.is_empty() {
        return None;
    }
    let mut section = Section::front("durable", "Durable Writes")
        .note("median microseconds of one write until it is durable, one writer; the shade is its share of the longest in its column")
        .note("red: what answered is suspected to be no medium; 'write only' is there to compare with");
    if let Some(plausibility) = &calibration.plausibility {
        section = section.note(format!("plausible? {plausibility}"));
    }
    for (space, caption) in [
        (LogSpace::Zeroed, "In a log that was written with zeros before"),
        (LogSpace::Allocated, "In a log that was merely allocated"),
    ] {
        let writes: Vec<&Write<'_>> = writes.iter().filter(|(_, point, _)| point.space == space).collect();
        if !writes.is_empty() {
            section = section.table(table(&writes, caption));
        }
    }
    Some(section)
}

fn table(writes: &[&Write<'_>], caption: &str) -> Table {
    let mut sizes: Vec<u64> = writes.iter().map(|(_, point, _)| point.request_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    // A single size leaves room for further columns.
    let detailed = sizes.len() == 1;
    let columns = sizes.iter().map(|bytes| Column::number(format!("{} p50", short_bytes(*bytes as f64))));
    let names = [Column::text("Through"), Column::text("Durable by")];
    let mut columns: Vec<Column> = names.into_iter().chain(columns).collect();
    if detailed {
        columns.extend([Column::number("p99"), Column::text("Answered by")]);
    }
    let mut table = Table::new(columns).with_caption(caption);
    let rows = [DirectIo::Required, DirectIo::Off]
        .into_iter()
        .flat_map(|direct_io| DurableMethod::ALL.map(|method| (direct_io, method)));
    for (direct_io, method) in rows {
        let of = |bytes: &u64| {
            writes.iter().copied().find(|(_, point, _)| {
                (point.direct_io, point.method, point.request_bytes) == (direct_io, method, *bytes)
            })
        };
        if sizes.iter().all(|bytes| of(bytes).is_none()) {
            continue;
        }
        let through = if direct_io == DirectIo::Required { "O_DIRECT" } else { "page cache" };
        let mut cells = cells![through, method.name()];
        cells.extend(
            sizes.iter().map(|bytes| of(bytes).map_or_else(Cell::default, |write| cell(write, writes))),
        );
        if let Some((result, ..)) = sizes.first().and_then(of).filter(|_| detailed) {
            cells.push(super::median_of(result.latency_micros(0, 0.99)));
            cells.push(Cell::from(result.answer.source.name()));
        }
        cells.resize(table.columns.len(), Cell::default());
        table.row(cells);
    }
    table
}

fn cell((result, point, p50): &Write<'_>, writes: &[&Write<'_>]) -> Cell {
    let same = writes.iter().filter(|(_, other, _)| other.request_bytes == point.request_bytes);
    let longest = same.map(|(.., p50)| p50.median).fold(f64::MIN_POSITIVE, f64::max);
    let cell = median(p50).with_share(Some(p50.median / longest));
    if result.answer.source == AnswerSource::HostCacheSuspected { cell.with_tone(Tone::Bad) } else { cell }
}
