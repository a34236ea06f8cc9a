//! One thread of a point: its channel, its buffers, the positions of its requests.
//!
//! All preparation precedes the measurement: buffers are mapped and filled, the ring is set up and
//! its buffers registered. Then each completion is followed at once by the next request of the same
//! load, so that the number outstanding is constant:
//!
//! ```text
//! ramp             measured                       drain
//! |----------------|------------------------------|------|
//! fill the queue    completions are counted here    wait for the rest
//! ```
//!
//! The clock is read once per completion: the end of one request is the start of the next.
//! Completions that arrive together get times some microseconds apart, the time to handle those
//! before them, as in any tool with one thread.
//!
//! Requests are submitted four at a time. Submitting all in one system call costs the least CPU
//! time, but the first request waits for the last, and the device for both. At 32 outstanding that
//! cost 5% of the reads per second. Submitting one at a time costs 10% to 25% more CPU time and is
//! no faster than four.
//!
//! Each request draws its own position, which costs nanoseconds of its microseconds; each repeat of
//! a point draws others. Rejected: positions drawn beforehand and reused. The load would cover only
//! that many positions, which caches hold. Each 4 KiB of a write has a unique number, so that no
//! device can deduplicate it.

use super::start::Window;
use crate::files::Place;
use crate::measure::{CpuMeter, CpuUse, Traffic};
use crate::pace::Pace;
use crate::progress::StopCheck;
use crate::random::Random;
use crate::{Buffers, CalibrateError, Files, Load, LoadMeasurement, Pattern, Point};
use plumb_events::{Event, IoStream, Session, now};
use plumb_host::readings;
use plumb_io::{Arena, Channel, File, IoBuffer, Method, Operation, Request};
use plumb_units::Nanos;
use std::ops::Range;
use std::sync::Arc;

/// Largest number of requests submitted in one system call.
const TOGETHER: usize = 4;
/// Bytes of a write with one unique number.
const STAMPED_BYTES: usize = 4096;
/// Interval at which a thread checks if it must stop.
const GUARD_INTERVAL: Nanos = Nanos(50_000_000);

/// Share of a load that one thread keeps outstanding.
#[derive(Debug, Clone)]
pub(crate) struct ThreadShare {
    /// Index of the load in the point.
    pub load_index: usize,
    pub load: Load,
    /// Number of its requests that this thread keeps outstanding.
    pub outstanding: usize,
    /// Range of the file for this thread's sequential requests, in requests.
    pub stretch: Range<u64>,
    /// Number of requests that fit in the load's part of the file.
    pub units: u64,
}

#[derive(Debug)]
pub(crate) struct ThreadResult {
    /// One for each load of the point.
    pub loads: Vec<LoadMeasurement>,
    /// All requests, ramp and drain included.
    pub asked: Traffic,
    /// Processor use of the process at the thread's last completion.
    pub cpu: CpuUse,
    pub io_wq_workers: usize,
}

/// Draws positions of a share's requests, and decides which are writes.
#[derive(Debug)]
struct Places {
    random: Random,
    units: u64,
    write_percent: u64,
    sequential: Option<(Range<u64>, u64)>,
}

impl Places {
    fn of(share: &ThreadShare, random: &mut Random) -> Places {
        let sequential = match share.load.pattern {
            Pattern::Random => None,
            Pattern::Sequential => Some((share.stretch.clone(), share.stretch.start)),
        };
        Places {
            random: Random::seeded(random.word()),
            units: share.units,
            write_percent: u64::from(share.load.write_percent),
            sequential,
        }
    }

    /// Returns the next position, in requests, and the operation there.
    #[inline]
    fn next(&mut self) -> (u64, Operation) {
        let operation = match self.write_percent {
            0 => Operation::Read,
            percent if self.random.below(100) < percent => Operation::Write,
            _ => Operation::Read,
        };
        let Some((stretch, at)) = &mut self.sequential else {
            return (self.random.below(self.units), operation);
        };
        let place = *at;
        *at = if place + 1 < stretch.end { place + 1 } else { stretch.start };
        (place, operation)
    }
}

/// An outstanding request of the thread.
#[derive(Debug, Clone, Copy)]
struct Slot {
    share: usize,
    begin: Nanos,
    operation: Operation,
}

/// A thread that is ready to start.
pub(crate) struct LoadThread<'a> {
    // Work
    session: &'a Session,
    /// Places of the point's loads.
    targets: &'a [Place<'a>],
    stop: &'a StopCheck<'a>,
    shares: Vec<ThreadShare>,

    // State
    channel: Channel,
    idle: Vec<(usize, IoBuffer)>,
    places: Vec<Places>,
    slots: Vec<Slot>,
    unsent: usize,
    stamp: u64,
    result: ThreadResult,
}

impl<'a> LoadThread<'a> {
    /// Does all preparation before the first request.
    pub(crate) fn prepare(
        session: &'a Session,
        targets: &'a [Place<'a>],
        stop: &'a StopCheck<'a>,
        method: &Method,
        point: &Point,
        shares: Vec<ThreadShare>,
        mut random: Random,
    ) -> Result<LoadThread<'a>, CalibrateError> {
        let (mut arenas, mut idle) = (Vec::new(), Vec::new());
        for (index, share) in shares.iter().enumerate() {
            let (arena, cut) = Arena::buffers(share.load.request_bytes as usize, share.outstanding)?;
            for mut buffer in cut {
                random.fill(&mut buffer);
                idle.push((index, buffer));
            }
            arenas.push(arena);
        }
        let registered: Vec<&Arena> = match point.buffers {
            Buffers::Registered => arenas.iter().collect(),
            Buffers::Ordinary => Vec::new(),
        };
        let files: Vec<&Arc<File>> = match point.ring.files {
            Files::Registered => targets.iter().flat_map(Place::files).collect(),
            Files::Ordinary => Vec::new(),
        };
        let loads = shares.iter().map(|share| share.load_index + 1).max().unwrap_or(0);
        Ok(LoadThread {
            channel: method.channel_to(&files, &registered)?,
            places: shares.iter().map(|share| Places::of(share, &mut random)).collect(),
            slots: Vec::with_capacity(idle.len()),
            unsent: 0,
            stamp: random.word(),
            result: ThreadResult {
                loads: vec![LoadMeasurement::default(); loads],
                asked: Traffic::default(),
                cpu: CpuUse::default(),
                io_wq_workers: 0,
            },
            session,
            targets,
            stop,
            shares,
            idle,
        })
    }

    /// Keeps its requests outstanding until the window ends, or as many as the pace permits.
    pub(crate) fn run(
        mut self,
        window: Window,
        mut pace: Pace,
        cpu: &CpuMeter,
    ) -> Result<ThreadResult, CalibrateError> {
        // Slots without a request: all at first, later those that the pace holds back.
        let mut waiting = Vec::with_capacity(self.idle.len());
        for (share, buffer) in std::mem::take(&mut self.idle) {
            self.slots.push(Slot { share, begin: Nanos(0), operation: Operation::Read });
            waiting.push((self.slots.len() - 1, buffer));
        }
        let (mut looked, mut at) = (now(), now());
        loop {
            while at < window.end && !waiting.is_empty() && pace.take(at) {
                let Some((slot, buffer)) = waiting.pop() else { break };
                self.submit(slot, buffer, at)?;
            }
            if self.channel.outstanding() == 0 {
                if at >= window.end {
                    break;
                }
                self.stop.check()?;
                pace.sleep();
                at = now();
                continue;
            }
            let completion = self.channel.wait(self.session, Event::DirectPathRead)?;
            at = now();
            let slot = completion.tag as usize;
            if at >= window.begin && at < window.end {
                self.count(slot, at);
            }
            waiting.push((slot, completion.buffer));
            if at.saturating_sub(looked) >= GUARD_INTERVAL {
                self.stop.check()?;
                looked = at;
            }
        }
        self.result.cpu = cpu.read();
        // Read before the channel is closed, because its workers end with it.
        self.result.io_wq_workers = readings::io_wq_workers().unwrap_or(0);
        Ok(self.result)
    }

    #[inline]
    fn count(&mut self, slot: usize, at: Nanos) {
        let slot = self.slots[slot];
        let load = &mut self.result.loads[self.shares[slot.share].load_index];
        match slot.operation {
            Operation::Read | Operation::ReadAtMost => load.reads += 1,
            _ => load.writes += 1,
        }
        load.latency.add(at.saturating_sub(slot.begin));
    }

    fn submit(&mut self, slot: usize, mut buffer: IoBuffer, at: Nanos) -> Result<(), CalibrateError> {
        let share = self.slots[slot].share;
        let (place, operation) = self.places[share].next();
        let ThreadShare { load, load_index, .. } = &self.shares[share];
        let bytes = load.request_bytes;
        let (file, offset) = self.targets[*load_index].at(place * bytes);
        self.slots[slot] = Slot { share, begin: at, operation };
        self.result.asked.requests += 1;
        let (event, stream) = match operation {
            Operation::Read | Operation::ReadAtMost => {
                self.result.asked.read_bytes += bytes;
                (Event::DirectPathRead, IoStream::Probe)
            }
            _ => {
                self.result.asked.write_bytes += bytes;
                stamp(&mut buffer, &mut self.stamp);
                (Event::DirectPathWrite, IoStream::ProbeWrites)
            }
        };
        let request = Request {
            operation,
            file: Arc::clone(file),
            offset,
            range: 0..bytes as usize,
            buffer,
            event,
            stream,
            tag: slot as u64,
        };
        self.channel.submit(self.session, request)?;
        self.unsent += 1;
        // If all fit in one system call, the wait submits them.
        if self.unsent >= TOGETHER && self.slots.len() > TOGETHER {
            self.channel.flush(self.session)?;
            self.unsent = 0;
        }
        Ok(())
    }
}

/// Makes each written part unique.
pub(crate) fn stamp(bytes: &mut [u8], number: &mut u64) {
    for part in bytes.chunks_mut(STAMPED_BYTES) {
        *number = number.wrapping_add(1);
        part[..size_of::<u64>()].copy_from_slice(&number.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(pattern: Pattern, write_percent: u8) -> ThreadShare {
        let load = Load {
            pattern,
            request_bytes: 8192,
            write_percent,
            outstanding: 4,
            zone_bytes: None,
            path: None,
        };
        ThreadShare { load_index: 0, load, outstanding: 4, stretch: 10..13, units: 1000 }
    }

    #[test]
    fn random_places_cover_the_file_and_keep_the_mix() {
        let mut places = Places::of(&share(Pattern::Random, 30), &mut Random::seeded(1));
        let (mut halves, mut writes) = ([0u32; 2], 0u32);
        let count = 1 << 16;
        for _ in 0..count {
            let (place, operation) = places.next();
            halves[usize::from(place >= 500)] += 1;
            writes += u32::from(operation == Operation::Write);
        }
        let share = |part: u32| f64::from(part) / f64::from(count);
        assert!((share(halves[0]) - 0.5).abs() < 0.01, "{halves:?}");
        assert!((share(writes) - 0.3).abs() < 0.01, "{writes}");
    }

    #[test]
    fn sequential_places_go_round_their_stretch() {
        let mut places = Places::of(&share(Pattern::Sequential, 0), &mut Random::seeded(1));
        let found: Vec<u64> = (0..5).map(|_| places.next().0).collect();
        assert_eq!(found, [10, 11, 12, 10, 11]);
    }

    /// The largest file of the modes, and a second of a fast device.
    #[test]
    fn a_long_load_covers_the_whole_file() {
        let units = (16 << 30) / 8192;
        let share = ThreadShare { units, ..share(Pattern::Random, 0) };
        let mut places = Places::of(&share, &mut Random::seeded(1));
        let count = 500_000;
        let distinct = (0..count).map(|_| places.next().0).collect::<std::collections::HashSet<_>>();
        // A uniform draw of n out of N positions hits N (1 - e^(-n/N)) of them.
        let expected = units as f64 * (1.0 - (-f64::from(count) / units as f64).exp());
        let ratio = distinct.len() as f64 / expected;
        assert!((ratio - 1.0).abs() < 0.01, "{} of {expected:.0} places", distinct.len());
        let halves = distinct.iter().filter(|place| **place >= units / 2).count();
        assert!((halves as f64 / distinct.len() as f64 - 0.5).abs() < 0.01);
    }

    #[test]
    fn no_two_stamped_pieces_are_alike() {
        let (mut bytes, mut number) = (vec![0u8; 3 * STAMPED_BYTES], 5);
        stamp(&mut bytes, &mut number);
        let stamps: Vec<u8> = bytes.chunks(STAMPED_BYTES).map(|piece| piece[0]).collect();
        assert_eq!(stamps, [6, 7, 8]);
    }
}
