//! What a durable write costs: a row a way to ask for it, a column a size.

use super::median;
use crate::document::calibration::context::{CalibrationContext, DurableWrite, Source};
use plumb_report::Section;
use plumb_report::plot::short_bytes;
use plumb_report::table::{Cell, Column, Table, Tone};

pub(super) fn durable(context: &CalibrationContext) -> Option<Section> {
    if context.durable.is_empty() {
        return None;
    }
    let mut section = Section::front("durable", "Durable Writes")
        .note("median microseconds of one write until it is durable, one writer; the shade is its share of the longest in its column")
        .note("red: what answered is suspected to be no medium; 'write only' is there to compare with");
    if let Some(plausibility) = &context.plausibility {
        section = section.note(format!("plausible? {plausibility}"));
    }
    let ways = ways(&context.durable);
    for (zeroed, caption) in
        [(true, "In a log that was written with zeros before"), (false, "In a log that was merely allocated")]
    {
        let writes: Vec<&DurableWrite> =
            context.durable.iter().filter(|write| write.zeroed == zeroed).collect();
        if !writes.is_empty() {
            section = section.table(table(&writes, &ways, caption));
        }
    }
    Some(section)
}

/// Whether past the page cache, and how durability was asked for.
type Way<'a> = (bool, &'a str);

/// Each once, in the order of their first appearance.
fn ways(writes: &[DurableWrite]) -> Vec<Way<'_>> {
    let mut ways: Vec<Way<'_>> = Vec::new();
    for write in writes {
        let way = (write.direct, write.method.as_str());
        if !ways.contains(&way) {
            ways.push(way);
        }
    }
    ways
}

fn table(writes: &[&DurableWrite], ways: &[Way<'_>], caption: &str) -> Table {
    let mut sizes: Vec<u64> = writes.iter().map(|write| write.request_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    // One size has room for what is worth knowing besides.
    let detailed = sizes.len() == 1;
    let columns = sizes.iter().map(|bytes| Column::number(format!("{} p50", short_bytes(*bytes as f64))));
    let names = [Column::text("Through"), Column::text("Durable by")];
    let mut columns: Vec<Column> = names.into_iter().chain(columns).collect();
    if detailed {
        columns.extend([Column::number("p99"), Column::text("Answered by")]);
    }
    let mut table = Table::new(columns).with_caption(caption);
    for (direct, method) in ways.iter().copied() {
        let of = |bytes: &u64| {
            writes.iter().find(|write| {
                (write.direct, write.method.as_str(), write.request_bytes) == (direct, method, *bytes)
            })
        };
        if sizes.iter().all(|bytes| of(bytes).is_none()) {
            continue;
        }
        let through = if direct { "O_DIRECT" } else { "page cache" };
        let mut cells = vec![Cell::from(through), Cell::from(method)];
        cells.extend(
            sizes.iter().map(|bytes| of(bytes).map_or_else(Cell::default, |write| cell(write, writes))),
        );
        if let Some(write) = sizes.first().and_then(of).filter(|_| detailed) {
            cells.extend([median(&write.p99_us), Cell::from(write.source.name())]);
        }
        cells.resize(table.columns.len(), Cell::default());
        table.row(cells);
    }
    table
}

fn cell(write: &DurableWrite, writes: &[&DurableWrite]) -> Cell {
    let same = writes.iter().filter(|other| other.request_bytes == write.request_bytes);
    let longest = same.map(|other| other.p50_us.median).fold(f64::MIN_POSITIVE, f64::max);
    let cell = median(&write.p50_us).with_share(Some(write.p50_us.median / longest));
    if write.source == Source::HostCacheSuspected { cell.with_tone(Tone::Bad) } else { cell }
}
