//! Reasons for which a faster path is not taken: one table, for lists and for reports of runs.
//!
//! A row names the path, the reason and the change after which the path is taken. The function of
//! the row says from a record if the reason applied, with the figures. Limits: a path that a record
//! does not show has no row.

use plumb_record::{DirectIoAnswer, IoUringAnswer, Record};
use plumb_units::{Bytes, RowCount};

/// A faster path with a reason for not taking it: one row of the table.
#[derive(Debug)]
pub struct MissedPath {
    pub path: &'static str,
    pub reason: &'static str,
    /// Change after which the path is taken.
    pub cure: &'static str,
    /// Returns what a record shows; `None` if the path was taken or does not concern the run.
    pub judge: fn(&Record) -> Option<String>,
}

/// Every reason, by the layer of the path.
pub const REASONS: &[MissedPath] = &[
    MissedPath {
        path: "direct I/O to data files",
        reason: "filesystemio_options asks for the page cache",
        cure: "filesystemio_options=directio or setall",
        judge: |record| {
            let asked = setting(record, "filesystemio_options")?;
            ["none", "asynch"].contains(&asked).then(|| format!("filesystemio_options={asked}"))
        },
    },
    MissedPath {
        path: "direct I/O to data files",
        reason: "the file system has none",
        cure: "another file system: ext4, xfs",
        judge: |record| {
            record.devices.iter().find_map(|device| match &device.direct_io {
                DirectIoAnswer::Unavailable { reason } => Some(format!("{}: {reason}", device.path)),
                DirectIoAnswer::Available { .. } => None,
            })
        },
    },
    MissedPath {
        path: "io_uring",
        reason: "the kernel or a filter refuses it",
        cure: "kernel.io_uring_disabled=0, or a container profile that allows it",
        judge: |record| {
            record.devices.iter().find_map(|device| match &device.io_uring {
                IoUringAnswer::Unavailable { reason } => Some(reason.clone()),
                IoUringAnswer::Available { .. } => None,
            })
        },
    },
    MissedPath {
        path: "io_uring",
        reason: "io_method or filesystemio_options asks for another method",
        cure: "io_method=io_uring with filesystemio_options=asynch or setall",
        judge: |record| {
            let device = record.devices.iter().find(|device| {
                let could = matches!(device.io_uring, IoUringAnswer::Available { .. });
                could && !device.io_method.is_empty() && !device.io_method.starts_with("io_uring")
            })?;
            Some(format!("{}: {}", device.io_method, device.io_method_reason))
        },
    },
    MissedPath {
        path: "registered buffers",
        reason: "the limit of locked memory, or a buffer outside the arena",
        cure: "a higher RLIMIT_MEMLOCK (ulimit -l)",
        judge: |record| part(record, "ring requests with registered buffers", "ring requests"),
    },
    MissedPath {
        path: "registered files",
        reason: "the ring has no table of files, or it is full",
        cure: "fewer data files, if it is full",
        judge: |record| part(record, "ring requests with registered files", "ring requests"),
    },
    MissedPath {
        path: "requests in flight",
        reason: "kernel worker threads carry out what would block",
        cure: "direct I/O, or a deeper queue of the device (nr_requests)",
        judge: |record| found(record, "S4"),
    },
    MissedPath {
        path: "requests as large as asked",
        reason: "a request ends with its extent",
        cure: "a larger extent_size",
        judge: |record| {
            let block = record.tablespaces.iter().find(|shape| shape.tablespace == "USERS")?;
            let asked = setting(record, "db_file_multiblock_read_count")?.parse::<u64>().ok()?;
            let bytes = asked.saturating_mul(block.block_bytes);
            (bytes > block.extent_bytes && record.sort.is_some())
                .then(|| format!("{} asked, extents of {}", Bytes(bytes), Bytes(block.extent_bytes)))
        },
    },
    MissedPath {
        path: "requests as large as asked",
        reason: "the device splits them",
        cure: "a larger max_sectors_kb of the queue, or smaller requests",
        judge: |record| {
            let device = record.devices.first()?;
            let most = device.queue.max_sectors_kb? * 1024;
            let over =
                |size: &&plumb_record::IoSize| size.up_to_bytes.is_none_or(|bytes| bytes > most.max(1 << 20));
            let sizes = record.io_files.iter().flat_map(|file| &file.sizes).filter(over);
            let requests: u64 = sizes.map(|size| size.reads.requests + size.writes.requests).sum();
            let shown = || format!("{} requests above max_sectors_kb, {}", RowCount(requests), Bytes(most));
            (requests > 0 && most < 1 << 20).then(shown)
        },
    },
    MissedPath {
        path: "sort runs past the buffer cache",
        reason: "sort_direct_writes is false, or auto and the area is too small",
        cure: "sort_direct_writes=true, or a sort_area_size of ten times the write buffers",
        judge: |record| {
            let sort = record.sort.as_ref().filter(|sort| sort.runs > 0 && !sort.direct_writes_used)?;
            Some(format!("sort_direct_writes={}: {}", sort.sort_direct_writes, sort.direct_writes_reason))
        },
    },
    MissedPath {
        path: "a sort in memory",
        reason: "the rows are more than the sort areas hold",
        cure: "a larger sort_area_size or parallel_degree",
        judge: |record| {
            let sort = record.sort.as_ref().filter(|sort| sort.runs > 0)?;
            Some(format!("{} runs, {}", RowCount(sort.runs), Bytes(sort.run_bytes)))
        },
    },
    MissedPath {
        path: "a merge of all runs at once",
        reason: "the area has no room for a buffer of each run",
        cure: "a larger sort_area_size: the finding names the smallest",
        judge: |record| {
            let sort = record.sort.as_ref().filter(|sort| sort.intermediate_merges > 0)?;
            Some(format!("{} merges before the last", RowCount(sort.intermediate_merges)))
        },
    },
    MissedPath {
        path: "keys as machine words",
        reason: "the key is a text, or longer than a word",
        cure: "a key of numbers, or of fewer columns",
        judge: |record| {
            let matches = statistic(record, "sort merge matches");
            (matches > 0).then(|| format!("{} comparisons of texts in merges", RowCount(matches)))
        },
    },
    MissedPath {
        path: "parallel servers on all processors",
        reason: "a limit of threads or memory",
        cure: "a higher limit, or the parallel_degree that it allows",
        judge: |record| found(record, "D7"),
    },
    MissedPath {
        path: "log writes past the page cache",
        reason: "log_file_io is buffered, or the file system has no direct I/O",
        cure: "log_file_io=direct",
        judge: |record| {
            let log = record.log.as_ref().filter(|log| !log.direct && log.writes > 0)?;
            Some(format!("{} buffered writes, {}", RowCount(log.writes), log.sync_method))
        },
    },
    MissedPath {
        path: "blocks read ahead",
        reason: "db_block_prefetch_limit is 0",
        cure: "db_block_prefetch_limit=16",
        judge: |record| {
            let reads = statistic(record, "physical reads");
            let is_off = setting(record, "db_block_prefetch_limit") == Some("0");
            (is_off && reads > 0 && record.sort.is_none())
                .then(|| format!("{} blocks read singly", RowCount(reads)))
        },
    },
];

fn setting<'r>(record: &'r Record, name: &str) -> Option<&'r str> {
    record.settings.iter().find(|row| row.name == name).map(|row| row.value.as_str())
}

fn statistic(record: &Record, name: &str) -> u64 {
    record.statistics.iter().find(|row| row.name == name).map_or(0, |row| row.total)
}

/// Returns how many requests of `all` were not of `fast`; `None` if nearly all were.
fn part(record: &Record, fast: &str, all: &str) -> Option<String> {
    let (fast, all) = (statistic(record, fast), statistic(record, all));
    // Single requests at the ends of an operation have neither.
    let others = all.saturating_sub(fast);
    (others * 20 > all).then(|| format!("{} of {} requests without", RowCount(others), RowCount(all)))
}

/// Returns the evidence of a finding of this rule.
fn found(record: &Record, rule: &str) -> Option<String> {
    record.findings.iter().find(|finding| finding.rule == rule).map(|finding| finding.evidence.clone())
}

/// Returns the reasons that applied to a run, with what it shows.
#[must_use]
pub fn reasons_of(record: &Record) -> Vec<(&'static MissedPath, String)> {
    REASONS.iter().filter_map(|reason| Some((reason, (reason.judge)(record)?))).collect()
}
