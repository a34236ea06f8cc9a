//! I/O by function, by type of file, by tablespace and by file, and the buffer caches.
//!
//! The columns are those of an AWR report. A reader compares times only of requests of one size, so
//! reads of one block are apart from those of several, small requests from large ones, and the time
//! of 100 KB stands next to the time of a read.

use plumb_record::{
    Completion, IoFile, IoGroup, IoTally, KernelIo, LargeRequests, PoolStats, Record, TablespaceStats,
};
use plumb_report::format::{Average, Count, Decimal, Figure, PerSecond, Percent, Size, Throughput};
use plumb_report::table::{Cell, RowKind, Table};
use plumb_report::{Section, cells, table};
use plumb_units::total_of;

/// Bytes for which a read's time is stated, to compare reads of different sizes.
const TIMED_BYTES: f64 = 100.0 * 1024.0;
/// Share of the requests' bytes below which a difference to the kernel's count is not shown.
const DIFFERENCE_MIN: f64 = 0.01;

/// Shows requests, bytes and waits by function, with the streams of each.
pub(super) fn functions(record: &Record) -> Section {
    let [read_time, write_time] = times(record, ["read", "write"]);
    let mut table = Table::default().text(["Function Name"]).numbers([
        "Reads:\nReqs",
        "Reads:\nData",
        "Reads:\nMB/s",
        "Avg\nsize",
        &read_time,
        "Writes:\nReqs",
        "Writes:\nData",
        "Writes:\nMB/s",
        "Avg\nsize",
        &write_time,
        "Waits:\nCount",
        "Avg\nwait",
    ]);
    let groups = record.io_by_function();
    let elapsed_ns = record.header.elapsed_ns;
    for group in &groups {
        table.push(RowKind::Plain, group_cells(group, elapsed_ns));
        // A part of another name says more than the function alone.
        for part in group.parts.iter().filter(|part| part.function != group.name) {
            let name = format!("  {}", part.function);
            let part = IoGroup { name, reads: part.reads, writes: part.writes, ..IoGroup::default() };
            table.push(RowKind::Quiet, group_cells(&part, elapsed_ns));
        }
    }
    if groups.len() > 1 {
        table.push(RowKind::Total, group_cells(&IoGroup::total("TOTAL:", &groups), elapsed_ns));
    }
    for group in outside(record) {
        table.push(RowKind::Quiet, group_cells(&group, elapsed_ns));
    }
    let section = Section::detail("io-functions", "IOStat by Function summary")
        .note("'Data' columns suffixed with K,M,G,T are in multiples of 1024; MB/s over the whole interval")
        .note("DBWR has the writes of sort runs that go through the buffer cache; LGWR those of sessions that write the log themselves; Others has control files")
        .note(about_times(record));
    let section = match record.kernel_io.filter(|kernel| !kernel.all_direct) {
        Some(_) => section.note(
            "page cache: bytes of requests that the kernel did not move to or from a device for this process",
        ),
        None => section,
    };
    let section = match record.io_devices.is_empty() {
        true => section,
        false => section.note(
            "Last lines: the device's own time as the kernel counts it (/sys/class/block/DEV/stat), requests as it \
             split and merged them",
        ),
    };
    section.table(table)
}

/// Returns titles for times of requests, by the moment at which a request counts as complete.
fn times<const N: usize>(record: &Record, ways: [&str; N]) -> [String; N] {
    ways.map(|way| match record.completion {
        Completion::Exact => format!("Avg\n{way} time"),
        Completion::Seen => format!("Avg {way}\nseen after"),
    })
}

fn about_times(record: &Record) -> &'static str {
    match record.completion {
        Completion::Exact => "Times: of the system call that moved a request, exact",
        Completion::Seen => {
            "Seen after: from the enter that handed a request to the kernel until its session saw the completion, \
             which includes what the session did meanwhile"
        }
    }
}

/// Returns lines of bytes outside the engine: the page cache, and the devices.
fn outside(record: &Record) -> Vec<IoGroup> {
    let kernel = record.kernel_io.map(|kernel| differences(record.io_bytes(), kernel)).unwrap_or_default();
    let devices = record.io_devices.iter().map(|device| IoGroup {
        name: format!("{}, all processes", device.device),
        reads: device.reads,
        writes: device.writes,
        ..IoGroup::default()
    });
    kernel.into_iter().chain(devices).collect()
}

/// Returns the differences between the bytes of requests and those that the kernel moved.
fn differences(asked: [u64; 2], kernel: KernelIo) -> Vec<IoGroup> {
    let moved = [kernel.read_bytes, kernel.written_bytes];
    let group = |name: &str, bytes: [u64; 2]| {
        let [reads, writes] = bytes.map(|bytes| IoTally { requests: 0, bytes, time_ns: None });
        IoGroup { name: name.to_string(), reads, writes, ..IoGroup::default() }
    };
    let differs = |way: usize, bytes: u64| bytes as f64 > DIFFERENCE_MIN * asked[way].max(moved[way]) as f64;
    let kept = [0, 1].map(|way| asked[way].saturating_sub(moved[way]));
    let more = [0, 1].map(|way| moved[way].saturating_sub(asked[way]));
    let shown = [("page cache", kept), ("without a request", more)];
    let shown = shown
        .into_iter()
        .map(|(name, bytes)| (name, [0, 1].map(|way| if differs(way, bytes[way]) { bytes[way] } else { 0 })));
    shown.filter(|(_, bytes)| *bytes != [0, 0]).map(|(name, bytes)| group(name, bytes)).collect()
}

fn average(tally: IoTally) -> Option<Average> {
    tally.time_ns.map(|total_ns| Average { total_ns, count: tally.requests })
}

fn moved_cells(tally: IoTally, elapsed_ns: u64) -> [Cell; 4] {
    // A direction without bytes is blank, to make the others visible.
    let moved = (tally.requests > 0 || tally.bytes > 0).then_some(tally);
    let bytes = moved.filter(|tally| tally.requests == 0 || tally.bytes > 0);
    [
        Cell::of(moved.filter(|tally| tally.requests > 0).map(|tally| Count(tally.requests))),
        Cell::of(bytes.map(|tally| Size(tally.bytes))),
        Cell::of(bytes.map(|tally| Throughput { bytes: tally.bytes, elapsed_ns })),
        Cell::of(tally.bytes.checked_div(tally.requests).filter(|bytes| *bytes > 0).map(Size)),
    ]
}

fn group_cells(group: &IoGroup, elapsed_ns: u64) -> Vec<Cell> {
    let mut cells = cells![&group.name];
    for tally in [group.reads, group.writes] {
        cells.extend(moved_cells(tally, elapsed_ns));
        cells.push(Cell::of(average(tally)));
    }
    let waits = group.waits.filter(|waits| waits.waits > 0);
    cells.push(Cell::of(waits.map(|waits| Count(waits.waits))));
    cells.push(Cell::of(waits.map(|waits| Average { total_ns: waits.time_ns, count: waits.waits })));
    cells
}

/// Shows requests and service times by type of file; `None` without a known type.
pub(super) fn file_types(record: &Record) -> Option<Section> {
    let groups = record.io_by_file_type();
    let mut table = Table::default().text(["Filetype Name"]).numbers([
        "Reads:\nReqs",
        "Reads:\nData",
        "Reads:\nMB/s",
        "Writes:\nReqs",
        "Writes:\nData",
        "Writes:\nMB/s",
        "Small\nRead",
        "Large\nRead",
        "Small\nWrite",
        "Large\nWrite",
    ]);
    for group in &groups {
        table.row(type_cells(group, record.header.elapsed_ns));
    }
    if groups.len() > 1 {
        let total = IoGroup::total("TOTAL:", &groups);
        table.push(RowKind::Total, type_cells(&total, record.header.elapsed_ns));
    }
    let section = Section::detail("io-filetypes", "IOStat by Filetype summary")
        .note("Small and Large: average service time of requests of up to 128K, and above")
        .note(about_times(record));
    (!groups.is_empty()).then(|| section.table(table))
}

fn type_cells(group: &IoGroup, elapsed_ns: u64) -> Vec<Cell> {
    let mut cells = cells![&group.name];
    for tally in [group.reads, group.writes] {
        let [requests, data, rate, _] = moved_cells(tally, elapsed_ns);
        cells.extend([requests, data, rate]);
    }
    let small = group.small();
    let large = group.large.map(|LargeRequests { reads, writes }| [reads, writes]);
    for way in [0, 1] {
        for sizes in [small, large] {
            cells.push(Cell::of(sizes.map(|sizes| sizes[way]).and_then(average)));
        }
    }
    cells
}

/// Titles behind the name of a tablespace or file.
const TABLESPACE_COLUMNS: [&str; 14] = [
    "Reads",
    "Av\nRds/s",
    "Av\nRd",
    "Av\nBlks/Rd",
    "1-bk\nReads",
    "Av\n1-bk Rd",
    "Multi\nReads",
    "Av\nmulti Rd",
    "Rd time\nper 100K",
    "Writes",
    "Av\nWrts/s",
    "Av\nWrt",
    "Buffer\nWaits",
    "Av\nBuf Wt",
];

/// Shows the I/O of each tablespace.
pub(super) fn tablespaces(record: &Record) -> Option<Section> {
    let mut all = record.io_by_tablespace();
    all.retain(|stats| stats.reads.requests > 0 || stats.writes.requests > 0);
    let mut table = Table::default().text(["Tablespace"]).numbers(TABLESPACE_COLUMNS);
    for stats in &all {
        let mut cells = cells![&stats.tablespace];
        cells.extend(tablespace_cells(stats, record.header.elapsed_ns));
        table.row(cells);
    }
    let section = Section::detail("io-tablespaces", "Tablespace IO Stats")
        .note("ordered by IOs (Reads + Writes) desc")
        .note("1-bk and Multi: reads of one block and of several; compare times of one size, or the time per 100K")
        .note("Buffer Waits: for a block that another session reads or changes")
        .note(about_times(record));
    (!all.is_empty()).then(|| section.table(table))
}

fn tablespace_cells(stats: &TablespaceStats, elapsed_ns: u64) -> Vec<Cell> {
    let rate = |tally: IoTally| {
        let rate = PerSecond { total: tally.requests as f64, elapsed_ns };
        if tally.requests > 0 { Cell::from(rate.figure()) } else { Cell::default() }
    };
    let count = |tally: IoTally| Cell::of((tally.requests > 0).then_some(Count(tally.requests)));
    let of = |tally: Option<IoTally>| tally.filter(|tally| tally.requests > 0);
    let (reads, writes) = (stats.reads, stats.writes);
    let blocks = stats.block_bytes.filter(|_| reads.requests > 0);
    let blocks = blocks.map(|block| Decimal(reads.bytes as f64 / block as f64 / reads.requests as f64));
    let timed = reads.time_ns.filter(|_| reads.bytes > 0);
    let timed = timed.map(|ns| (ns as f64 * TIMED_BYTES / reads.bytes as f64) as u64);
    let waits = stats.buffer_waits.filter(|waits| waits.waits > 0);
    vec![
        count(reads),
        rate(reads),
        Cell::of(average(reads)),
        Cell::of(blocks),
        Cell::of(of(stats.single).map(|tally| Count(tally.requests))),
        Cell::of(of(stats.single).and_then(average)),
        Cell::of(of(stats.multiblock()).map(|tally| Count(tally.requests))),
        Cell::of(of(stats.multiblock()).and_then(average)),
        Cell::of(timed.map(|total_ns| Average { total_ns, count: 1 })),
        count(writes),
        rate(writes),
        Cell::of(average(writes)),
        Cell::of(waits.map(|waits| Count(waits.waits))),
        Cell::of(waits.map(|waits| Average { total_ns: waits.time_ns, count: waits.waits })),
    ]
}

/// Shows the same by file, log files and plain files included.
pub(super) fn files(record: &Record) -> Section {
    let mut files = record.io_files.iter().collect::<Vec<&IoFile>>();
    files.sort_by_key(|file| (&file.tablespace, &file.path));
    let directory = directory_of(&files);
    let mut table = Table::default().text(["Tablespace"]).wrapped("Filename", 24).numbers(TABLESPACE_COLUMNS);
    for file in &files {
        let mut cells = cells![&file.tablespace, &file.path[directory.len()..]];
        cells.extend(tablespace_cells(&TablespaceStats::of_file(file), record.header.elapsed_ns));
        table.row(cells);
    }
    let place = if directory.is_empty() { String::new() } else { format!("files below {directory}") };
    let section = Section::detail("io-files", "File IO Stats").note("ordered by Tablespace, File");
    section.note(place).table(table)
}

/// Returns the directory that all paths begin with, with its slash, because the columns leave no
/// room for it; empty if there is none.
fn directory_of(files: &[&IoFile]) -> String {
    let directory = |path: &str| path.rfind('/').map_or(0, |end| end + 1);
    let Some(first) = files.first() else { return String::new() };
    let mut common = first.path[..directory(&first.path)].to_string();
    while !files.iter().all(|file| file.path.starts_with(&common)) {
        common.pop();
        common.truncate(directory(&common));
    }
    common
}

/// Shows the buffer caches by block size, and the blocks in them when the work ended.
pub(super) fn pools(record: &Record) -> Option<Section> {
    let table = table!(pool in &record.buffer_pools; [
        text "Block\nSize" => Size(pool.block_bytes),
        numbers "Number of\nBuffers" => Count(pool.buffers),
        numbers "Pool\nHit%" => Percent::of(pool.counts.hits, pool.counts.gets),
        numbers "Buffer\nGets" => Count(pool.counts.gets),
        numbers "Physical\nReads" => Count(pool.counts.reads),
        numbers "Physical\nWrites" => Count(pool.counts.writes),
        numbers "Free Buff\nWait" => Count(pool.counts.free_buffer_waits),
        numbers "Writ Comp\nWait" => Count(pool.counts.write_complete_waits),
        numbers "Buffer Busy\nWaits" => Count(pool.counts.buffer_busy_waits),
    ]);
    let section = Section::detail("buffer-pools", "Buffer Pool Statistics")
        .note("a cache for each block size; reads and writes in blocks, reads ahead of need included")
        .table(table);
    let census = census(&record.buffer_pools);
    let section = match census.rows.is_empty() {
        true => section,
        false => section
            .note("Census: blocks in the caches when the measured work ended, before its result was read to verify it")
            .table(census),
    };
    (!record.buffer_pools.is_empty()).then_some(section)
}

fn census(pools: &[PoolStats]) -> Table {
    let mut table = Table::default()
        .text(["Block Size", "Tablespace"])
        .numbers(["Buffers", "% of\ncache", "Dirty"])
        .with_caption("Census of the buffer cache");
    for pool in pools.iter().filter(|pool| !pool.census.is_empty()) {
        for row in &pool.census {
            let share = Percent::of(row.blocks, pool.buffers);
            let share = Cell::of(share).with_share(share.share());
            table.row(cells![
                Size(pool.block_bytes),
                &row.tablespace,
                Count(row.blocks),
                share,
                Count(row.dirty)
            ]);
        }
        let used = total_of(pool.census.iter().map(|row| row.blocks));
        let free = pool.buffers.saturating_sub(used);
        let share = Percent::of(free, pool.buffers);
        let share = Cell::of(share).with_share(share.share());
        table.push(RowKind::Quiet, cells![Size(pool.block_bytes), "(free)", Count(free), share, ""]);
    }
    table
}

/// Shows block and extent sizes of the tablespaces; `None` in older records.
pub(super) fn shapes(record: &Record) -> Option<Section> {
    let table = table!(shape in &record.tablespaces; [
        text "Tablespace" => &shape.tablespace,
        numbers "Block\nSize" => Size(shape.block_bytes),
        numbers "Extent\nSize" => Size(shape.extent_bytes),
        numbers "Blocks per\nExtent" => shape.extent_bytes.checked_div(shape.block_bytes).map(Count),
        numbers "Files" => Count(shape.files),
        numbers "Size" => Size(shape.bytes),
    ]);
    let section = Section::detail("tablespaces", "Tablespaces and Extents")
        .note("a read never goes beyond its extent, whatever db_file_multiblock_read_count asks for");
    (!record.tablespaces.is_empty()).then(|| section.table(table))
}
