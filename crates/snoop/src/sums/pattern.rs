//! Patterns of the requests to one place, recognized while they pass.
//!
//! ```text
//! appends            a write begins where the one before ended, and the file grows
//! sequential writes  the same within a file that does not grow, and on a disk
//! one block again    a write begins where an earlier one of the last 16 began
//! read-modify-write  a write lies within the read before it
//! sequential         a read begins where the one before ended
//! small sequential   either, with requests of at most 8 KiB
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
    /// Bytes of the file at its first sight; none if unknown, and for a disk.
    size: Option<u64>,
    /// End of the highest write so far.
    high: u64,
    reads: u64,
    writes: u64,
    syncs: u64,
    /// Requests whose position is known, after a first one.
    placed: [u64; 2],
    follows: [u64; 2],
    small: [u64; 2],
    /// Writes that follow the one before below the highest end: the file does not grow by them.
    within: u64,
    again: u64,
    /// Starts with the number of times that they were written again, the most frequent ones.
    rewritten: Vec<(u64, u64)>,
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
    /// True if it is of starts that belong to no block of the stream's file.
    pub is_elsewhere: bool,
}

impl Stream {
    /// Creates a stream of calls on a file with this size at its first sight.
    pub fn of_file(size: Option<u64>) -> Stream {
        Stream { size, ..Stream::default() }
    }

    /// Creates a stream of requests of a disk.
    pub fn of_disk() -> Stream {
        Stream { unit: Unit::Sectors, ..Stream::default() }
    }

    /// Returns starts that were written again, with the number of times, about the most frequent.
    pub fn rewritten(&self) -> &[(u64, u64)] {
        &self.rewritten
    }

    /// Returns the number of requests.
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
                self.within += u64::from(side == 1 && end <= self.high);
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
        if side == 1 {
            self.high = self.high.max(end);
        }
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
            self.note_again(at);
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

    fn note_again(&mut self, at: u64) {
        if let Some((_, count)) = self.rewritten.iter_mut().find(|(start, _)| *start == at) {
            *count += 1;
        } else if self.rewritten.len() < REMEMBERED {
            self.rewritten.push((at, 1));
        } else if let Some(least) = self.rewritten.iter_mut().min_by_key(|(_, count)| *count) {
            *least = (at, 1);
        }
    }

    /// True if most writes that follow each other lie below an end that the file had already.
    fn stays(&self) -> bool {
        let follows = self.follows[1];
        self.size.is_some_and(|size| size > self.high) || (follows - self.within) * 100 < follows * MOST
    }

    /// Returns the rewrites: those of the file's own blocks, and those of starts elsewhere.
    fn rewrites(&self, elsewhere: &[u64]) -> [Pattern; 2] {
        let of_file = |is_elsewhere: bool| {
            let starts = self.rewritten.iter().filter(|(at, _)| elsewhere.contains(at) == is_elsewhere);
            starts.copied().max_by_key(|(_, count)| *count)
        };
        let times = |is_elsewhere| {
            of_file(is_elsewhere).map_or(String::new(), |(at, count)| {
                format!("{} {at} written {} times", self.word(), RowCount(count + 1))
            })
        };
        let of_others = self.rewritten.iter().filter(|(at, _)| elsewhere.contains(at));
        let of_others: u64 = of_others.map(|(_, count)| count).sum();
        let in_a_row = self.again_example.filter(|(at, _)| !elsewhere.contains(at));
        let own = in_a_row.map_or_else(
            || times(false),
            |(at, times)| format!("{} {at} written {times} times in a row", self.word()),
        );
        let pattern = |requests, arithmetic, is_elsewhere| Pattern {
            name: "one block written again",
            requests,
            of: self.writes,
            arithmetic,
            is_elsewhere,
        };
        [pattern(self.again - of_others, own, false), pattern(of_others, times(true), true)]
    }

    /// Returns the patterns that enough requests show. `elsewhere` has starts that were written
    /// again and are no blocks of the file.
    pub fn patterns(&self, elsewhere: &[u64]) -> Vec<Pattern> {
        let mut found = Vec::new();
        let mut keep = |pattern: Pattern, least: u64| {
            if pattern.requests >= LEAST && pattern.requests * 100 >= pattern.of * least {
                found.push(pattern);
            }
        };
        let rewrites = self.rewrites(elsewhere);
        let (appends, small_appends) = match (self.unit, self.stays()) {
            (Unit::Bytes, false) => ("appends", "small appends"),
            _ => ("sequential writes", "small sequential writes"),
        };
        let still = if self.unit == Unit::Bytes && self.stays() { "; the file does not grow" } else { "" };
        let moved = |side: usize| self.placed[side] - self.follows[side];
        let chain = self.chain(1) + still;
        keep(plain(appends, self.follows[1], self.placed[1], chain), MOST);
        rewrites.into_iter().for_each(|pattern| keep(pattern, SOME));
        let mut add = |name: &'static str, requests: u64, of: u64, least: u64, arithmetic: String| {
            keep(plain(name, requests, of, arithmetic), least);
        };
        let modified = self.modified_example.map_or(String::new(), |[from, length, at, written]| {
            format!("read {from} + {length}, then write {at} + {written} within it")
        });
        add("read-modify-write", self.modified, self.writes, SOME, modified);
        let small = self.small[0] * 2 > self.follows[0];
        let name = if small { "small sequential reads" } else { "sequential reads" };
        add(name, self.follows[0], self.placed[0], MOST, self.chain(0));
        add(small_appends, self.small[1], self.placed[1], MOST, "at most 8,192 bytes each".to_string());
        let share = |side: usize| format!("{} of {} begin elsewhere", moved(side), self.placed[side]);
        add("random reads", moved(0), self.placed[0], MOST, share(0));
        add("random writes", moved(1).saturating_sub(self.again), self.placed[1], MOST, share(1));
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
    pub fn sequential(&self) -> [u64; 2] {
        [self.follows.iter().sum(), self.placed.iter().sum()]
    }
}

fn plain(name: &'static str, requests: u64, of: u64, arithmetic: String) -> Pattern {
    Pattern { name, requests, of, arithmetic, is_elsewhere: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(mut stream: Stream, requests: &[(Kind, u64, u64)], expected: &[(&str, &str)]) {
        requests.iter().for_each(|(kind, at, bytes)| stream.add(*kind, Some(*at), *bytes));
        let found = stream.patterns(&[]);
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
        let small = ("small sequential writes", "at most 8,192 bytes each");
        check(Stream::of_disk(), &requests, &[("sequential writes", chain), small]);
    }

    /// A log that is written round and round, one whose space was reserved, and one that grows.
    #[test]
    fn a_file_is_appended_to_only_if_it_grows() {
        let round = |rounds: u64| -> Vec<_> {
            (0..10 * rounds).map(|at| (Kind::Write, 16_384 * (at % 10), 16_384)).collect()
        };
        let names = |size, requests: &[(Kind, u64, u64)]| {
            let mut stream = Stream::of_file(size);
            requests.iter().for_each(|(kind, at, bytes)| stream.add(*kind, Some(*at), *bytes));
            let found = stream.patterns(&[]);
            found.into_iter().map(|pattern| (pattern.name, pattern.arithmetic)).collect::<Vec<_>>()
        };
        let chain = "offset 0 + 16384 = 16384 + 16384 = 32768 + 16384 = 49152 + 16384 = 65536";
        let stays = format!("{chain}; the file does not grow");
        assert_eq!(names(Some(0), &round(1)), [("appends", chain.to_string())]);
        assert_eq!(names(Some(1 << 20), &round(1)), [("sequential writes", stays.clone())]);
        assert_eq!(names(Some(0), &round(5))[0], ("sequential writes", stays.clone()));
        assert_eq!(names(None, &round(5))[0], ("sequential writes", stays));
    }

    /// Blocks of 512 bytes at a time, each with the block of its inode.
    #[test]
    fn rewrites_of_metadata_are_apart_from_those_of_the_file() {
        let mut stream = Stream::of_disk();
        for write in 0..120_u64 {
            stream.add(Kind::Write, Some(80_000 + 8 * (write / 8)), 4096);
            stream.add(Kind::Write, Some(1_000), 4096);
        }
        let all = |elsewhere: &[u64]| {
            let found = stream.patterns(elsewhere).into_iter();
            let found = found.filter(|pattern| pattern.name == "one block written again");
            found
                .map(|found| (found.requests, found.of, found.is_elsewhere, found.arithmetic))
                .collect::<Vec<_>>()
        };
        assert_eq!(all(&[])[0].0, 105 + 119);
        let [own, other] = &all(&[1_000])[..] else { panic!("{:?}", all(&[1_000])) };
        assert_eq!((own.0, own.1, own.2), (105, 240, false));
        assert!(own.3.contains(" written ") && !own.3.starts_with("BLOCK 1000 "), "{}", own.3);
        assert_eq!(*other, (119, 240, true, "BLOCK 1000 written 120 times".to_string()));
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
            Stream::of_disk(),
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
            Stream::default(),
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
        check(Stream::default(), &[(Kind::Read, 0, 4096); 7], &[]);
        let mut stream = Stream::default();
        (0..100).for_each(|_| stream.add(Kind::Read, None, 4096));
        assert_eq!((stream.patterns(&[]), stream.sequential(), stream.requests()), (Vec::new(), [0, 0], 100));
    }
}
