//! Patterns of the requests to one place, recognized while they pass.
//!
//! ```text
//! appends            a write begins where the one before ended
//! one block again    a write begins where an earlier one of the last 16 began
//! read-modify-write  a write lies within the read before it
//! sequential         a read begins where the one before ended
//! small sequential   the same, with requests of at most 8 KiB
//! random             begins elsewhere
//! read-ahead         the file system reads before it is asked
//! flush storm        a sync for each two writes or fewer
//! ```
//!
//! A place is a file in the view of calls, and a file on a disk in that of requests; units are
//! bytes and sectors. A pattern is named if enough requests show it, with the numbers that do.
//!
//! Limits: threads that append to one file in turns look random. Double writes are a sum over
//! files, made by the tally.

use plumb_units::RowCount;

/// Least requests of a pattern.
const LEAST: u64 = 8;
/// Share of the requests that makes one of the exclusive patterns, per cent.
const MOST: u64 = 60;
/// Share of the writes that makes rewrites worth a line, per cent.
const SOME: u64 = 10;
/// Starts of writes that are remembered.
const REMEMBERED: usize = 16;
/// Numbers that an example shows.
const SHOWN: usize = 4;
/// Largest bytes of a small request.
const SMALL: u64 = 8192;

/// Kind of a request in a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    /// A read by the file system before it was asked.
    ReadAhead,
    Write,
    Sync,
}

/// Unit of the positions of a stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Offsets in a file, bytes.
    #[default]
    Bytes,
    /// Sectors of 512 bytes of a disk.
    Sectors,
}

impl Unit {
    fn length(self, bytes: u64) -> u64 {
        match self {
            Unit::Bytes => bytes,
            Unit::Sectors => bytes.div_ceil(512),
        }
    }
}

/// Requests to one place so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stream {
    unit: Unit,
    reads: u64,
    writes: u64,
    syncs: u64,
    /// Requests whose position is known, after a first one.
    placed: [u64; 2],
    follows: [u64; 2],
    small: [u64; 2],
    again: u64,
    modified: u64,
    ahead: u64,
    /// Position and end of the last read and the last write.
    last: [Option<(u64, u64)>; 2],
    last_ahead: Option<u64>,
    starts: [Option<u64>; REMEMBERED],
    /// Run of requests that follow each other, as numbers.
    run: [Vec<(u64, u64)>; 2],
    example: [Vec<(u64, u64)>; 2],
    again_example: Option<(u64, u64)>,
    /// Start that was written again the most so far, and its writes in a row.
    again_now: (u64, u64),
    modified_example: Option<[u64; 4]>,
    ahead_example: Option<[u64; 3]>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern {
    pub name: &'static str,
    pub requests: u64,
    pub of: u64,
    pub arithmetic: String,
}

impl Stream {
    #[must_use]
    pub fn new(unit: Unit) -> Stream {
        Stream { unit, ..Stream::default() }
    }

    /// Returns the number of requests.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.reads + self.writes
    }

    /// Adds a request; `at` is none if the position is unknown.
    pub fn add(&mut self, kind: Kind, at: Option<u64>, bytes: u64) {
        match kind {
            Kind::Sync => self.syncs += 1,
            Kind::Read | Kind::ReadAhead => self.reads += 1,
            Kind::Write => self.writes += 1,
        }
        let (Some(at), true) = (at, bytes > 0 && kind != Kind::Sync) else { return };
        if kind == Kind::ReadAhead {
            self.read_ahead(at, bytes);
        }
        let side = usize::from(kind == Kind::Write);
        let end = at + self.unit.length(bytes);
        if kind == Kind::Write {
            self.written(at, end);
        }
        if let Some((_, before)) = self.last[side] {
            self.placed[side] += 1;
            if before == at {
                self.follows[side] += 1;
                self.small[side] += u64::from(bytes <= SMALL);
            } else {
                self.run[side].clear();
            }
        }
        if self.run[side].len() <= SHOWN {
            self.run[side].push((at, bytes));
            if self.run[side].len() > self.example[side].len() {
                self.example[side] = self.run[side].clone();
            }
        }
        self.last[side] = Some((at, end));
    }

    fn read_ahead(&mut self, at: u64, bytes: u64) {
        self.ahead += 1;
        let position = self.last[1].or(self.last[0]).map_or(0, |(at, _)| at);
        if let Some(before) = self.last_ahead
            && at > before
        {
            self.ahead_example = Some([bytes, at, at - before]);
        } else if self.ahead_example.is_none() {
            self.ahead_example = Some([bytes, at, at.saturating_sub(position)]);
        }
        self.last_ahead = Some(at);
    }

    fn written(&mut self, at: u64, end: u64) {
        if self.starts.contains(&Some(at)) {
            self.again += 1;
            let times = if self.again_now.0 == at { self.again_now.1 + 1 } else { 2 };
            self.again_now = (at, times);
            if self.again_example.is_none_or(|(_, most)| times > most) {
                self.again_example = Some((at, times));
            }
        } else {
            self.starts.rotate_right(1);
            self.starts[0] = Some(at);
        }
        if let Some((from, to)) = self.last[0]
            && from <= at
            && end <= to
        {
            self.modified += 1;
            self.modified_example.get_or_insert([from, to - from, at, end - at]);
        }
    }

    /// Returns the patterns that enough requests show.
    #[must_use]
    pub fn patterns(&self) -> Vec<Pattern> {
        let mut found = Vec::new();
        let mut add = |name: &'static str, requests: u64, of: u64, least: u64, arithmetic: String| {
            if requests >= LEAST && requests * 100 >= of * least {
                found.push(Pattern { name, requests, of, arithmetic });
            }
        };
        let elsewhere = |side: usize| self.placed[side] - self.follows[side];
        add("appends", self.follows[1], self.placed[1], MOST, self.chain(1));
        let again = self.again_example.map_or(String::new(), |(at, times)| {
            format!("{} {at} written {times} times in a row", self.word())
        });
        add("one block written again", self.again, self.writes, SOME, again);
        let modified = self.modified_example.map_or(String::new(), |[from, length, at, written]| {
            format!("read {from} + {length}, then write {at} + {written} within it")
        });
        add("read-modify-write", self.modified, self.writes, SOME, modified);
        let small = self.small[0] * 2 > self.follows[0];
        let name = if small { "small sequential reads" } else { "sequential reads" };
        add(name, self.follows[0], self.placed[0], MOST, self.chain(0));
        add("small appends", self.small[1], self.placed[1], MOST, "at most 8,192 bytes each".to_string());
        let share = |side: usize| format!("{} of {} begin elsewhere", elsewhere(side), self.placed[side]);
        add("random reads", elsewhere(0), self.placed[0], MOST, share(0));
        add("random writes", elsewhere(1).saturating_sub(self.again), self.placed[1], MOST, share(1));
        let ahead = self.ahead_example.map_or(String::new(), |[bytes, at, step]| {
            format!("R of {} bytes at {at}, + {step} from the one before", RowCount(bytes))
        });
        add("read-ahead by the file system", self.ahead, self.reads, SOME, ahead);
        let storm = format!("{} writes / {} syncs", self.writes, self.syncs);
        add("flush storm", self.syncs, self.writes, 50, storm);
        found
    }

    fn word(&self) -> &'static str {
        match self.unit {
            Unit::Bytes => "offset",
            Unit::Sectors => "BLOCK",
        }
    }

    /// Returns the longest run of requests that follow each other: `A + n = B, + m = C`.
    fn chain(&self, side: usize) -> String {
        let run = &self.example[side];
        let Some((first, _)) = run.first() else { return String::new() };
        let mut text = format!("{} {first}", self.word());
        for pair in run.windows(2) {
            let (bytes, next) = (pair[0].1, pair[1].0);
            text += &match self.unit {
                Unit::Bytes => format!(" + {bytes} = {next}"),
                Unit::Sectors => format!(" + {bytes}/512 = {next}"),
            };
        }
        text
    }

    /// Returns the number of requests that follow the one before, and of those that could.
    #[must_use]
    pub fn sequential(&self) -> [u64; 2] {
        [self.follows.iter().sum(), self.placed.iter().sum()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(unit: Unit, requests: &[(Kind, u64, u64)], expected: &[(&str, &str)]) {
        let mut stream = Stream::new(unit);
        requests.iter().for_each(|(kind, at, bytes)| stream.add(*kind, Some(*at), *bytes));
        let found = stream.patterns();
        let found: Vec<_> = found.iter().map(|pattern| (pattern.name, pattern.arithmetic.as_str())).collect();
        assert_eq!(found, expected);
    }

    /// Sectors and sizes of a log writer with direct I/O, as a published trace prints them.
    #[test]
    fn appends_are_shown_by_sectors_that_add_up() {
        let sizes = [512, 2560, 3072, 2560, 512, 3072, 3072, 1536, 1536, 3072, 3072];
        let mut at = 22_293_311;
        let requests: Vec<_> = sizes
            .iter()
            .map(|bytes| {
                let request = (Kind::Write, at, *bytes);
                at += bytes / 512;
                request
            })
            .collect();
        assert_eq!(requests.last().map(|request| request.1), Some(22_293_353));
        let chain = "BLOCK 22293311 + 512/512 = 22293312 + 2560/512 = 22293317 \
                     + 3072/512 = 22293323 + 2560/512 = 22293328";
        check(Unit::Sectors, &requests, &[("appends", chain), ("small appends", "at most 8,192 bytes each")]);
    }

    /// The same log writer through a page cache: each block several times, and a cluster read
    /// ahead.
    #[test]
    fn a_block_written_again_and_reads_ahead_are_recognized() {
        let mut requests = Vec::new();
        for block in 0..4_u64 {
            requests.extend([(Kind::Write, 21_946_960 + 16 * block, 8192); 4]);
            requests.push((Kind::ReadAhead, 21_949_024 + 2048 * block, 1_048_576));
        }
        requests.extend((4..9).map(|block| (Kind::ReadAhead, 21_949_024 + 2048 * block, 1_048_576)));
        check(
            Unit::Sectors,
            &requests,
            &[
                ("one block written again", "BLOCK 21946960 written 4 times in a row"),
                (
                    "sequential reads",
                    "BLOCK 21949024 + 1048576/512 = 21951072 + 1048576/512 = 21953120 \
                     + 1048576/512 = 21955168 + 1048576/512 = 21957216",
                ),
                (
                    "read-ahead by the file system",
                    "R of 1,048,576 bytes at 21965408, + 2048 from the one before",
                ),
            ],
        );
    }

    #[test]
    fn reads_before_writes_of_their_range_and_syncs_after_each_are_recognized() {
        let mut requests = Vec::new();
        for at in [9, 3, 7, 1, 8, 2, 6, 4, 0, 5] {
            requests.push((Kind::Read, 8192 * at, 8192));
            requests.push((Kind::Write, 8192 * at + 512, 512));
            requests.push((Kind::Sync, 0, 0));
        }
        check(
            Unit::Bytes,
            &requests,
            &[
                ("read-modify-write", "read 73728 + 8192, then write 74240 + 512 within it"),
                ("random reads", "9 of 9 begin elsewhere"),
                ("random writes", "9 of 9 begin elsewhere"),
                ("flush storm", "10 writes / 10 syncs"),
            ],
        );
    }

    #[test]
    fn few_requests_and_unknown_positions_show_nothing() {
        check(Unit::Bytes, &[(Kind::Read, 0, 4096); 7], &[]);
        let mut stream = Stream::new(Unit::Bytes);
        (0..100).for_each(|_| stream.add(Kind::Read, None, 4096));
        assert_eq!((stream.patterns(), stream.sequential(), stream.requests()), (Vec::new(), [0, 0], 100));
    }
}
