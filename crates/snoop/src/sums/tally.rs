//! Sums of calls and requests, of fixed size, for the record and the tables on a terminal.
//!
//! T1 Each call and each request of a traced process is in exactly one row, so that rows add up to
//! the totals; beyond [`ROWS_MAX`] rows, files share the row without a name.

use crate::kernel::syscalls::Effect;
use crate::owner::extents::{Extents, Sought};
use crate::owner::join::{CallLine, How, RequestLine, Sink};
use crate::owner::process::{FileNumber, Processes, disk_name};
use crate::sums::map::Map;
use crate::sums::pattern::{Kind, Stream};
use plumb_events::LatencyHistogram;
use plumb_record::{
    Snoop, SnoopAmplification, SnoopCalls, SnoopDepth, SnoopMap, SnoopPart, SnoopPattern, SnoopPlace,
    SnoopRequests, TraceBucket,
};
use plumb_units::{Nanos, RowCount};
use std::collections::{BTreeMap, HashMap};

/// Rows of calls and of requests, each.
pub const ROWS_MAX: usize = 8192;
/// Files whose offsets are drawn and whose patterns are sought.
const STREAMS_MAX: usize = 1024;
const MAPS_MAX: usize = 64;
/// Maps of offsets in the report.
const MAPS_SHOWN: usize = 2;
const PATTERNS_SHOWN: usize = 40;
const PLACES_SHOWN: usize = 40;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct CallKey {
    process: u32,
    name: &'static str,
    file: FileNumber,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct RequestKey {
    process: u32,
    disk: u32,
    flags: [u8; 10],
    how: How,
    call: &'static str,
    file: FileNumber,
}

/// Sectors of a file on a disk, or metadata that calls on the file read or write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct DiskPlace {
    file: FileNumber,
    disk: u32,
    is_metadata: bool,
}

/// A stream as reports show it.
struct Shown<'t> {
    view: &'static str,
    path: String,
    file: FileNumber,
    /// None for a stream of calls.
    place: Option<DiskPlace>,
    stream: &'t Stream,
}

/// Counts by powers of two, of reads and of writes with the rest.
#[derive(Debug, Clone, Copy)]
struct Buckets([[u64; 2]; 64]);

impl Buckets {
    fn add(&mut self, figure: u64, effect: Effect) {
        let bucket = figure.checked_next_power_of_two().map_or(63, u64::ilog2) as usize;
        self.0[bucket][usize::from(effect != Effect::Read)] += 1;
    }

    fn rows(&self) -> Vec<TraceBucket> {
        let used = |count: &[u64; 2]| count[0] + count[1] > 0;
        let (Some(first), Some(last)) = (self.0.iter().position(used), self.0.iter().rposition(used)) else {
            return Vec::new();
        };
        let row = |at: usize| TraceBucket { to: 1 << at, reads: self.0[at][0], writes: self.0[at][1] };
        (first..=last).map(row).collect()
    }
}

/// Figures of one operation for the table of wait events.
#[derive(Debug, Clone, Default)]
pub(crate) struct Operation {
    pub times: LatencyHistogram,
    /// Sum of these times, nanoseconds.
    pub time_ns: u64,
}

/// Sums of a trace so far.
#[derive(Debug)]
pub(crate) struct Tally {
    begin: u64,
    calls: HashMap<CallKey, SnoopCalls>,
    requests: HashMap<RequestKey, SnoopRequests>,
    others: BTreeMap<(u32, [u8; 10]), SnoopRequests>,
    sizes: [Buckets; 2],
    times: [Buckets; 2],
    /// Requests of the traced processes by disk and number in flight: of all processes, and theirs.
    depths: BTreeMap<(u32, u32), [u64; 2]>,
    call_streams: HashMap<FileNumber, Stream>,
    disk_streams: HashMap<DiskPlace, Stream>,
    call_map: Map,
    disk_map: Map,
    offsets: HashMap<FileNumber, (Map, u64)>,
    operations: BTreeMap<&'static str, (Effect, Operation)>,
    /// Bytes by relation, of reads and of writes.
    parts: BTreeMap<How, [u64; 2]>,
    asked: [u64; 2],
}

impl Tally {
    /// Creates an empty tally of a trace that began at a monotonic time.
    pub fn new(begin: u64) -> Tally {
        let empty = Buckets([[0; 2]; 64]);
        Tally {
            begin,
            calls: HashMap::new(),
            requests: HashMap::new(),
            others: BTreeMap::new(),
            sizes: [empty; 2],
            times: [empty; 2],
            depths: BTreeMap::new(),
            call_streams: HashMap::new(),
            disk_streams: HashMap::new(),
            call_map: Map::by_powers(),
            disk_map: Map::by_powers(),
            offsets: HashMap::new(),
            operations: BTreeMap::new(),
            parts: BTreeMap::new(),
            asked: [0; 2],
        }
    }

    /// Returns the operations with their times, by name.
    pub fn operations(&self) -> impl Iterator<Item = (&'static str, Effect, &Operation)> {
        self.operations.iter().map(|(name, (effect, operation))| (*name, *effect, operation))
    }

    fn add_offset(&mut self, call: &CallLine) {
        let Some(offset) = call.offset.filter(|_| call.effect != Effect::Sync && call.file != 0) else {
            return;
        };
        let room = self.offsets.len() < MAPS_MAX;
        if let Some((map, count)) = match self.offsets.get_mut(&call.file) {
            None if room => {
                let new = (Map::by_steps(offset, 4096), 0);
                Some(self.offsets.entry(call.file).or_insert(new))
            }
            found => found,
        } {
            map.add(call.begin.saturating_sub(self.begin), offset);
            *count += 1;
        }
    }

    #[must_use]
    pub fn record(&self, processes: &Processes, extents: &mut Extents) -> Snoop {
        let mut calls: Vec<SnoopCalls> = self.calls.values().cloned().collect();
        calls.sort_by(|one, two| two.time_ns.cmp(&one.time_ns).then_with(|| one.file.cmp(&two.file)));
        let mut requests: Vec<SnoopRequests> = self.requests.values().cloned().collect();
        requests.sort_by(|one, two| two.time_ns.cmp(&one.time_ns).then_with(|| one.file.cmp(&two.file)));
        Snoop {
            calls,
            requests,
            others: self.others.values().cloned().collect(),
            call_sizes: self.sizes[0].rows(),
            call_times: self.times[0].rows(),
            request_sizes: self.sizes[1].rows(),
            request_times: self.times[1].rows(),
            depths: self.depths(),
            places: self.places(processes),
            patterns: self.patterns(processes, extents),
            amplification: self.amplification(),
            maps: self.maps(processes),
            ..Snoop::default()
        }
    }

    fn depths(&self) -> Vec<SnoopDepth> {
        let row = |((disk, depth), [requests, own]): (&(u32, u32), &[u64; 2])| SnoopDepth {
            disk: disk_name(*disk),
            depth: *depth,
            requests: *requests,
            own: *own,
        };
        self.depths.iter().map(row).collect()
    }

    /// Returns the streams, the most requests first.
    fn streams(&self, processes: &Processes) -> Vec<Shown<'_>> {
        let path = |file: FileNumber| processes.file(file).path.clone();
        let of_calls = self.call_streams.iter().map(|(file, stream)| Shown {
            view: "calls",
            path: path(*file),
            file: *file,
            place: None,
            stream,
        });
        let of_disk = self.disk_streams.iter().map(|(place, stream)| Shown {
            view: "disk",
            path: if place.is_metadata { metadata_of(place.disk) } else { path(place.file) },
            file: place.file,
            place: Some(*place),
            stream,
        });
        let mut streams: Vec<_> = of_calls.chain(of_disk).collect();
        streams.sort_by(|one, two| {
            let by_requests = two.stream.requests().cmp(&one.stream.requests());
            by_requests.then_with(|| (one.view, &one.path).cmp(&(two.view, &two.path)))
        });
        streams
    }

    fn places(&self, processes: &Processes) -> Vec<SnoopPlace> {
        let row = |Shown { view, path, stream, .. }: Shown<'_>| {
            let [follows, placed] = stream.sequential();
            SnoopPlace { view: view.to_string(), file: path, requests: stream.requests(), follows, placed }
        };
        self.streams(processes).into_iter().take(PLACES_SHOWN).map(row).collect()
    }

    fn patterns(&self, processes: &Processes, extents: &mut Extents) -> Vec<SnoopPattern> {
        let mut rows: Vec<SnoopPattern> = self.double_writes().into_iter().collect();
        for Shown { view, path, file, place, stream } in self.streams(processes) {
            let elsewhere = place.map_or(Vec::new(), |place| elsewhere(place, stream, processes, extents));
            rows.extend(stream.patterns(&elsewhere).into_iter().map(|pattern| {
                let disk = place.filter(|_| pattern.is_elsewhere).map(|place| place.disk);
                let by = disk.map_or(String::new(), |_| {
                    format!(", no block of {} has it: for calls on that file", processes.file(file).path)
                });
                SnoopPattern {
                    view: view.to_string(),
                    file: disk.map_or_else(|| path.clone(), metadata_of),
                    name: pattern.name.to_string(),
                    requests: pattern.requests,
                    of: pattern.of,
                    arithmetic: pattern.arithmetic + &by,
                }
            }));
        }
        rows.truncate(PATTERNS_SHOWN);
        rows
    }

    /// Writes that the journal repeats: at least half as many bytes as the files' own.
    fn double_writes(&self) -> Option<SnoopPattern> {
        let written = |how: How| self.parts.get(&how).map_or(0, |bytes| bytes[1]);
        let journal = written(How::Journal);
        let data: u64 = [How::Call, How::Ring, How::WriteBack].into_iter().map(written).sum();
        (journal > 0 && journal * 2 >= data).then(|| SnoopPattern {
            view: "disk".to_string(),
            file: "<journal>".to_string(),
            name: "double writes".to_string(),
            requests: journal,
            of: data + journal,
            arithmetic: format!(
                "{} bytes by the journal for {} bytes of files",
                RowCount(journal),
                RowCount(data)
            ),
        })
    }

    fn amplification(&self) -> Vec<SnoopAmplification> {
        let of = |side: usize, direction: &str| {
            let parts = self.parts.iter().filter(|(_, bytes)| bytes[side] > 0);
            let parts: Vec<SnoopPart> = parts
                .map(|(how, bytes)| SnoopPart { how: how.words().to_string(), bytes: bytes[side] })
                .collect();
            SnoopAmplification {
                direction: direction.to_string(),
                call_bytes: self.asked[side],
                disk_bytes: parts.iter().map(|part| part.bytes).sum(),
                parts,
            }
        };
        let both = [of(0, "read"), of(1, "write")];
        both.into_iter().filter(|row| row.call_bytes + row.disk_bytes > 0).collect()
    }

    fn maps(&self, processes: &Processes) -> Vec<SnoopMap> {
        let row = |title: String, unit: &str, map: &Map| {
            let [row_from, row_step] = map.row_steps();
            SnoopMap {
                title,
                time_from_ns: 0,
                time_step_ns: map.time_step(),
                unit: unit.to_string(),
                row_from,
                row_step,
                cells: map.cells(),
            }
        };
        let mut maps = vec![
            row("Calls by time taken".to_string(), "ns", &self.call_map),
            row("Requests by time at the disk".to_string(), "ns", &self.disk_map),
        ];
        let mut files: Vec<_> = self.offsets.iter().collect();
        files.sort_by_key(|(file, (_, count))| (std::cmp::Reverse(*count), **file));
        maps.extend(
            files.into_iter().take(MAPS_SHOWN).map(|(file, (map, _))| {
                row(format!("Offsets in {}", processes.file(*file).path), "bytes", map)
            }),
        );
        maps.retain(|map| !map.cells.is_empty());
        maps
    }
}

/// Returns the row of a key; with too many rows that of the same key without a file.
fn row_of<K: Copy + Eq + std::hash::Hash, R>(rows: &mut HashMap<K, R>, key: K, plain: K) -> K {
    if rows.contains_key(&key) || rows.len() < ROWS_MAX { key } else { plain }
}

fn stream_of<K: Copy + Eq + std::hash::Hash>(
    streams: &mut HashMap<K, Stream>,
    key: K,
    new: impl FnOnce() -> Stream,
) -> Option<&mut Stream> {
    if streams.len() >= STREAMS_MAX && !streams.contains_key(&key) {
        return None;
    }
    Some(streams.entry(key).or_insert_with(new))
}

/// Returns the name of blocks that belong to a file system and to no file.
fn metadata_of(disk: u32) -> String {
    format!("<metadata of {}>", disk_name(disk))
}

/// Returns the sectors that were written again for a file and are no blocks of it, by its extents
/// now. The kernel marks metadata only on some ways to the disk.
fn elsewhere(place: DiskPlace, stream: &Stream, processes: &Processes, extents: &mut Extents) -> Vec<u64> {
    let rewritten = stream.rewritten();
    if rewritten.is_empty() || place.file == 0 {
        return Vec::new();
    }
    if place.is_metadata {
        return rewritten.iter().map(|(sector, _)| *sector).collect();
    }
    extents.read(place.file, processes);
    // A deleted file has no extents to compare with.
    if !extents.has(place.file) {
        return Vec::new();
    }
    let is_own = |sector: u64| {
        let found = extents.known(Sought { disk: place.disk, sector, time: 0, process: None });
        found.is_some_and(|found| found.file == place.file)
    };
    rewritten.iter().map(|(sector, _)| *sector).filter(|sector| !is_own(*sector)).collect()
}

const fn word(effect: Effect) -> &'static str {
    match effect {
        Effect::Read => "read",
        Effect::Write => "write",
        _ => "sync",
    }
}

impl Sink for Tally {
    fn call(&mut self, call: &CallLine, processes: &Processes) {
        let key = CallKey { process: call.process, name: call.name, file: call.file };
        let key = row_of(&mut self.calls, key, CallKey { file: 0, ..key });
        let row = self.calls.entry(key).or_insert_with(|| SnoopCalls {
            pid: call.process,
            process: processes.name(call.process),
            operation: call.name.to_string(),
            effect: word(call.effect).to_string(),
            file: processes.file(key.file).path.clone(),
            ..SnoopCalls::default()
        });
        row.calls += 1;
        row.durable += u64::from(call.is_durable);
        row.errors += u64::from(call.error != 0);
        row.time_ns += call.duration;
        row.max_ns = row.max_ns.max(call.duration);
        row.disk_requests += call.disk.requests;
        row.disk_bytes += call.disk.bytes;
        row.disk_time_ns += call.disk.time;
        let is_sync = call.effect == Effect::Sync;
        if !is_sync {
            row.bytes += call.bytes;
            self.sizes[0].add(call.bytes, call.effect);
            self.asked[usize::from(call.effect == Effect::Write)] += call.bytes;
        }
        self.times[0].add(call.duration, call.effect);
        self.call_map.add(call.begin.saturating_sub(self.begin), call.duration / 1000);
        self.add_offset(call);
        let kind = match call.effect {
            Effect::Read => Kind::Read,
            Effect::Write => Kind::Write,
            _ => Kind::Sync,
        };
        // Files without a name are several, and their offsets say nothing.
        if call.file != 0
            && let Some(stream) = stream_of(&mut self.call_streams, call.file, || {
                Stream::of_file(processes.file(call.file).size)
            })
        {
            stream.add(kind, call.offset, call.bytes);
        }
        let operation = self.operations.entry(call.name).or_insert((call.effect, Operation::default()));
        operation.1.times.add(Nanos(call.duration));
        operation.1.time_ns += call.duration;
    }

    fn request(&mut self, request: &RequestLine, processes: &Processes) {
        let time = request.completed.saturating_sub(request.issued);
        let queue = request.issued.saturating_sub(request.queued);
        let empty = |flags: &[u8; 10]| SnoopRequests {
            disk: disk_name(request.disk),
            flags: crate::kernel::event::comm_text(flags),
            ..SnoopRequests::default()
        };
        let row = if request.how == How::Other {
            let key = (request.disk, request.flags);
            self.others.entry(key).or_insert_with(|| empty(&request.flags))
        } else {
            let key = RequestKey {
                process: request.process,
                disk: request.disk,
                flags: request.flags,
                how: request.how,
                call: request.call,
                file: request.file,
            };
            let key = row_of(&mut self.requests, key, RequestKey { file: 0, ..key });
            self.requests.entry(key).or_insert_with(|| SnoopRequests {
                pid: request.process,
                process: processes.name(request.process),
                how: request.how.words().to_string(),
                call: request.call.to_string(),
                file: processes.file(key.file).path.clone(),
                ..empty(&request.flags)
            })
        };
        row.requests += 1;
        row.bytes += request.bytes;
        row.queue_ns += queue;
        row.time_ns += time;
        row.max_ns = row.max_ns.max(time);
        if request.how == How::Other {
            return;
        }
        self.traced(request, time);
    }
}

impl Tally {
    fn traced(&mut self, request: &RequestLine, time: u64) {
        let (kind, effect) = match (request.letter(), request.how) {
            ('R', How::ReadAhead) => (Kind::ReadAhead, Effect::Read),
            ('R', _) => (Kind::Read, Effect::Read),
            ('W', _) => (Kind::Write, Effect::Write),
            _ => (Kind::Sync, Effect::Sync),
        };
        let moved = request.moved();
        if moved > 0 {
            self.sizes[1].add(moved, effect);
            self.parts.entry(request.how).or_default()[usize::from(effect != Effect::Read)] += moved;
        }
        let depth = request.depth;
        self.depths.entry((request.disk, depth.all)).or_default()[0] += 1;
        self.depths.entry((request.disk, depth.own)).or_default()[1] += 1;
        self.times[1].add(time, effect);
        self.disk_map.add(request.issued.saturating_sub(self.begin), time / 1000);
        let is_metadata = request.how == How::Metadata;
        let key = DiskPlace { file: request.file, disk: request.disk, is_metadata };
        if let Some(stream) = stream_of(&mut self.disk_streams, key, Stream::of_disk) {
            stream.add(kind, Some(request.sector), request.bytes);
        }
    }
}
