//! I/O by function, by type of file and by tablespace, as an AWR report groups it.
//!
//! A record has one row for each stream and function, and one for each file. The groups are sums of
//! these rows, so that a total equals the sum of its parts in a run, a period and a comparison.

use super::{IoTally, Record, WaitEvent};
use plumb_events::{FileType, Function, IoStream, PoolCounts};
use plumb_units::{counters, total_of};
use serde::{Deserialize, Serialize};

/// I/O of one stream by one function, such as `temp writes` by `DBWR`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct IoFunction {
    /// Name of the stream; of an imported report that of the function.
    pub function: String,
    /// Function of `IOStat by Function`; missing in older records and in imported ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part_of: Option<String>,
    pub reads: IoTally,
    pub writes: IoTally,
    /// Requests above 128 KiB, which `reads` and `writes` include; missing in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub large: Option<LargeRequests>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct LargeRequests {
    pub reads: IoTally,
    pub writes: IoTally,
}

impl IoFunction {
    /// Returns the function of `IOStat by Function`. That of an older record follows from the
    /// stream, which does not show the blocks that DBWR wrote.
    pub fn database_function(&self) -> &str {
        let by_stream = || IoStream::named(&self.function).map(|stream| stream.function().name());
        self.part_of.as_deref().or_else(by_stream).unwrap_or(&self.function)
    }
}

/// I/O of one data file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct IoFile {
    pub tablespace: String,
    pub path: String,
    pub reads: IoTally,
    pub writes: IoTally,
    /// Block size of the tablespace; none for a file without blocks, and in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_bytes: Option<u64>,
    /// Requests by size, the smallest first; empty in older records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<IoSize>,
    /// Waits for blocks of the file that another session held; missing in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer_waits: Option<BufferWaits>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct IoSize {
    /// Bytes of the largest; none for those above all sizes.
    pub up_to_bytes: Option<u64>,
    pub reads: IoTally,
    pub writes: IoTally,
}

/// Waits for blocks that another session held: `buffer busy waits`, `read by other session`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BufferWaits {
    pub waits: u64,
    pub time_ns: u64,
}

counters!(BufferWaits { waits, time_ns });

impl IoFile {
    /// Returns the reads of one block; `None` where sizes or blocks are not known.
    pub fn single_reads(&self) -> Option<IoTally> {
        let block = self.block_bytes.filter(|_| !self.sizes.is_empty())?;
        let single = self.sizes.iter().filter(|size| size.up_to_bytes.is_some_and(|bytes| bytes <= block));
        Some(sum_of(single.map(|size| size.reads)))
    }

    /// Adds the next period of the same file.
    pub(crate) fn add(&mut self, next: &IoFile) {
        self.reads.add(&next.reads);
        self.writes.add(&next.writes);
        for size in &next.sizes {
            match self.sizes.iter_mut().find(|known| known.up_to_bytes == size.up_to_bytes) {
                Some(known) => {
                    known.reads.add(&size.reads);
                    known.writes.add(&size.writes);
                }
                None => self.sizes.push(*size),
            }
        }
        self.sizes.sort_by_key(|size| size.up_to_bytes.unwrap_or(u64::MAX));
        if let Some(more) = &next.buffer_waits {
            self.buffer_waits.get_or_insert_default().add(more);
        }
    }
}

/// A buffer cache for one block size.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolStats {
    pub block_bytes: u64,
    /// Number of buffers, a block each.
    pub buffers: u64,
    #[serde(flatten)]
    pub counts: PoolCounts,
    /// Cached blocks at the end of the work, by tablespace; empty in a period.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub census: Vec<PoolBlocks>,
}

/// Blocks of a tablespace in a cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolBlocks {
    pub tablespace: String,
    pub blocks: u64,
    /// Blocks of these that were newer than on disk.
    pub dirty: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TablespaceShape {
    pub tablespace: String,
    pub block_bytes: u64,
    pub extent_bytes: u64,
    pub files: u64,
    /// Bytes of all its files.
    pub bytes: u64,
}

/// Bytes that the kernel moved between the process and devices, from /proc/self/io.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelIo {
    pub read_bytes: u64,
    pub written_bytes: u64,
    /// True if every file bypasses the page cache, so that these are the bytes of its requests.
    pub all_direct: bool,
}

impl KernelIo {
    pub(crate) fn add(&mut self, next: &KernelIo) {
        self.read_bytes = self.read_bytes.saturating_add(next.read_bytes);
        self.written_bytes = self.written_bytes.saturating_add(next.written_bytes);
        self.all_direct &= next.all_direct;
    }
}

/// A line of `IOStat by Function` or `IOStat by Filetype`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct IoGroup {
    pub name: String,
    pub reads: IoTally,
    pub writes: IoTally,
    /// Requests above 128 KiB; none where a part does not say it.
    pub large: Option<LargeRequests>,
    /// Waits of sessions for these requests, and their time; none of a type of file.
    pub waits: Option<BufferWaits>,
    /// The streams of a function.
    pub parts: Vec<IoFunction>,
}

impl IoGroup {
    fn add(&mut self, row: &IoFunction) {
        self.large = match (self.large, row.large) {
            _ if self.parts.is_empty() => row.large,
            (Some(mut sum), Some(next)) => {
                sum.reads.add(&next.reads);
                sum.writes.add(&next.writes);
                Some(sum)
            }
            _ => None,
        };
        self.reads.add(&row.reads);
        self.writes.add(&row.writes);
        self.parts.push(row.clone());
    }

    /// Returns the requests of up to 128 KiB, reads and writes; `None` where they are not known.
    pub fn small(&self) -> Option<[IoTally; 2]> {
        let large = self.large?;
        Some([less(self.reads, large.reads), less(self.writes, large.writes)])
    }

    /// Returns the sum of some groups, under a name.
    pub fn total(name: &str, groups: &[IoGroup]) -> IoGroup {
        let mut total = IoGroup { name: name.to_string(), ..IoGroup::default() };
        groups.iter().flat_map(|group| &group.parts).for_each(|row| total.add(row));
        for waits in groups.iter().filter_map(|group| group.waits) {
            total.waits.get_or_insert_default().add(&waits);
        }
        total
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct TablespaceStats {
    pub tablespace: String,
    pub block_bytes: Option<u64>,
    pub reads: IoTally,
    pub writes: IoTally,
    /// Reads of one block; none where they are not known.
    pub single: Option<IoTally>,
    pub buffer_waits: Option<BufferWaits>,
}

impl TablespaceStats {
    /// Returns the reads of several blocks; `None` where they are not known.
    pub fn multiblock(&self) -> Option<IoTally> {
        self.single.map(|single| less(self.reads, single))
    }

    /// Returns the statistics of one file.
    pub fn of_file(file: &IoFile) -> TablespaceStats {
        TablespaceStats {
            tablespace: file.tablespace.clone(),
            block_bytes: file.block_bytes,
            reads: file.reads,
            writes: file.writes,
            single: file.single_reads(),
            buffer_waits: file.buffer_waits,
        }
    }
}

impl Record {
    /// Returns the I/O of each function, with the waits for it.
    pub fn io_by_function(&self) -> Vec<IoGroup> {
        let mut groups: Vec<IoGroup> = Vec::new();
        for row in self.io_functions.iter().filter(|row| is_moved(row)) {
            group_of(&mut groups, row.database_function()).add(row);
        }
        if self.imported.is_none() {
            let waits = self.foreground_events.iter().chain(&self.background_events);
            for (function, wait) in waits.filter_map(|wait| Some((Function::of_event(&wait.event)?, wait))) {
                group_of(&mut groups, function.name()).waits.get_or_insert_default().add(&waits_of(wait));
            }
        }
        let order = Function::ALL.map(Function::name);
        groups.sort_by_key(|group| order.iter().position(|name| *name == group.name).unwrap_or(order.len()));
        groups
    }

    /// Returns the I/O of each type of file.
    pub fn io_by_file_type(&self) -> Vec<IoGroup> {
        let mut groups: Vec<IoGroup> = Vec::new();
        for row in self.io_functions.iter().filter(|row| is_moved(row)) {
            if let Some(stream) = IoStream::named(&row.function) {
                group_of(&mut groups, stream.file_type().name()).add(row);
            }
        }
        let order = FileType::ALL.map(FileType::name);
        groups.sort_by_key(|group| order.iter().position(|name| *name == group.name));
        groups
    }

    /// Returns the I/O of each tablespace, most requests first.
    pub fn io_by_tablespace(&self) -> Vec<TablespaceStats> {
        let mut all: Vec<TablespaceStats> = Vec::new();
        for file in self.io_files.iter().filter(|file| !file.tablespace.starts_with('(')) {
            let next = TablespaceStats::of_file(file);
            let Some(known) = all.iter_mut().find(|known| known.tablespace == next.tablespace) else {
                all.push(next);
                continue;
            };
            known.reads.add(&next.reads);
            known.writes.add(&next.writes);
            known.single = known.single.zip(next.single).map(|(one, two)| sum_of([one, two].into_iter()));
            if let Some(waits) = &next.buffer_waits {
                known.buffer_waits.get_or_insert_default().add(waits);
            }
        }
        all.sort_by_key(|stats| {
            std::cmp::Reverse(stats.reads.requests.saturating_add(stats.writes.requests))
        });
        all
    }

    /// Returns the bytes of all requests, read and written.
    pub fn io_bytes(&self) -> [u64; 2] {
        let sum = |of: fn(&IoFunction) -> u64| total_of(self.io_functions.iter().map(of));
        [sum(|row| row.reads.bytes), sum(|row| row.writes.bytes)]
    }
}

fn is_moved(row: &IoFunction) -> bool {
    row.reads.requests > 0 || row.writes.requests > 0
}

fn waits_of(wait: &WaitEvent) -> BufferWaits {
    BufferWaits { waits: wait.waits, time_ns: wait.time_ns }
}

fn group_of<'g>(groups: &'g mut Vec<IoGroup>, name: &str) -> &'g mut IoGroup {
    let at = groups.iter().position(|group| group.name == name).unwrap_or_else(|| {
        groups.push(IoGroup { name: name.to_string(), ..IoGroup::default() });
        groups.len() - 1
    });
    &mut groups[at]
}

fn sum_of(tallies: impl Iterator<Item = IoTally>) -> IoTally {
    tallies.fold(IoTally::default(), |mut sum, tally| {
        sum.add(&tally);
        sum
    })
}

fn less(whole: IoTally, part: IoTally) -> IoTally {
    IoTally {
        requests: whole.requests.saturating_sub(part.requests),
        bytes: whole.bytes.saturating_sub(part.bytes),
        time_ns: whole.time_ns.zip(part.time_ns).map(|(whole, part)| whole.saturating_sub(part)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(requests: u64, bytes: u64, time_ns: u64) -> IoTally {
        IoTally { requests, bytes, time_ns: Some(time_ns) }
    }

    fn row(stream: &str, part_of: Option<&str>, writes: IoTally) -> IoFunction {
        IoFunction {
            function: stream.to_string(),
            part_of: part_of.map(str::to_string),
            writes,
            large: Some(LargeRequests { reads: IoTally::default(), writes: tally(1, writes.bytes / 2, 7) }),
            ..IoFunction::default()
        }
    }

    fn record() -> Record {
        let mut record = crate::fixture::record(1_000_000_000, 1);
        record.io_functions = vec![
            row("temp writes", Some("DBWR"), tally(10, 1000, 100)),
            row("temp writes", Some("Direct Writes"), tally(20, 4000, 300)),
            row("data writes", Some("DBWR"), tally(5, 500, 50)),
        ];
        record
    }

    #[test]
    fn totals_are_the_sums_of_their_parts() {
        let record = record();
        let [functions, types] = [record.io_by_function(), record.io_by_file_type()];
        let named = |groups: &[IoGroup], name: &str| {
            groups.iter().find(|group| group.name == name).map(|group| group.writes)
        };
        assert_eq!(named(&functions, "DBWR"), Some(tally(15, 1500, 150)));
        assert_eq!(named(&functions, "Direct Writes"), Some(tally(20, 4000, 300)));
        assert_eq!(named(&types, "Temp File"), Some(tally(30, 5000, 400)));
        assert_eq!(named(&types, "Data File"), Some(tally(5, 500, 50)));
        let totals = [&functions, &types].map(|groups| IoGroup::total("TOTAL:", groups).writes);
        assert_eq!(totals, [tally(35, 5500, 450); 2]);
        assert_eq!(record.io_bytes(), [0, 5500]);
        let small = types[1].small().expect("sizes are known");
        assert_eq!(small[1], tally(28, 2500, 386));
    }

    #[test]
    fn an_older_record_has_functions_by_stream_and_no_sizes() {
        let mut record = record();
        for row in &mut record.io_functions {
            (row.part_of, row.large) = (None, None);
        }
        let functions = record.io_by_function();
        let names: Vec<&str> = functions.iter().map(|group| group.name.as_str()).collect();
        assert_eq!(names, ["Direct Reads", "Direct Writes"], "waits alone make a line, too");
        assert_eq!(functions[1].small(), None);
    }

    #[test]
    fn a_tablespace_of_any_block_size_has_its_reads_apart() {
        let size = |up_to_bytes, reads| IoSize { up_to_bytes, reads, writes: IoTally::default() };
        let file = |path: &str| IoFile {
            tablespace: "USERS_2K".to_string(),
            path: path.to_string(),
            reads: tally(12, 40_000, 900),
            block_bytes: Some(2048),
            sizes: vec![size(Some(2048), tally(10, 20_480, 500)), size(Some(131_072), tally(2, 19_520, 400))],
            buffer_waits: Some(BufferWaits { waits: 2, time_ns: 10 }),
            ..IoFile::default()
        };
        let mut record = record();
        record.io_files = vec![file("a"), file("b")];
        let tablespaces = record.io_by_tablespace();
        assert_eq!(tablespaces.len(), 1);
        assert_eq!(tablespaces[0].single, Some(tally(20, 40_960, 1000)));
        assert_eq!(tablespaces[0].multiblock(), Some(tally(4, 39_040, 800)));
        assert_eq!(tablespaces[0].buffer_waits, Some(BufferWaits { waits: 4, time_ns: 20 }));
    }
}
