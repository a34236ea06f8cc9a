//! Phases and the I/O profile, on one clock that starts with the first phase.
//!
//! Bytes of a phase of the build are from its sessions' counters, and sum to those of the build.
//! Only the coordinator reads the sample and joins the parts. Bytes beyond writing and reading the
//! initial runs once belong to intermediate merges. Phases outside the build are read from the
//! profile; a bucket partly inside counts in proportion.

use super::Evidence;
use super::sort::first_run_bytes;
use plumb_events::{IoStream, Operation, Phase, PhaseSpan, Profile, Role};
use plumb_record::{self as record, IoProfile, ProfileSeries};
use plumb_units::{Bytes, Nanos};

/// Largest number of points in the plot.
const POINTS_MAX: usize = 600;

/// Profile of the run, starting with the first phase.
#[derive(Debug)]
pub(super) struct Timeline {
    profile: Profile,
    /// Origin of the recorder on the monotonic clock.
    origin: Nanos,
    /// The first bucket that is kept.
    first: usize,
    /// Start of that bucket from the recorder's origin.
    zero: Nanos,
    /// Start and end of the build, from the recorder's origin.
    build: (Nanos, Nanos),
    /// Start and end of the scan; earlier reads are a sample of single blocks.
    scan: (Nanos, Nanos),
}

impl Timeline {
    pub(super) fn of(seen: &Evidence) -> Timeline {
        let (profile, origin) = (seen.inside.profile.clone(), seen.inside.origin);
        let first = (seen.asked.begin.saturating_sub(origin).0 / profile.width().0) as usize;
        let build_begin = seen.measured.begin.saturating_sub(origin);
        let build = (build_begin, build_begin + seen.measured.period.elapsed);
        let scan = seen.inside.phases.iter().find(|span| span.phase == Phase::TableScan);
        Timeline {
            origin,
            first,
            zero: Nanos(first as u64 * profile.width().0),
            build,
            scan: scan.map_or(build, |span| (span.begin, span.end)),
            profile,
        }
    }

    /// Converts a moment of the monotonic clock to nanoseconds since the first phase's bucket.
    pub(super) fn since_start(&self, at: Nanos) -> u64 {
        at.saturating_sub(self.origin).saturating_sub(self.zero).0
    }

    /// Bytes of a stream between two times from the origin. A bucket
    /// partly outside counts in proportion.
    fn bytes(&self, stream: IoStream, from: Nanos, to: Nanos) -> u64 {
        weighted(self.profile.series(stream), self.profile.width(), from, to)
    }

    fn buckets(&self, from: Nanos, to: Nanos) -> (usize, usize) {
        let width = self.profile.width().0;
        ((from.0 / width) as usize, (to.0 / width) as usize)
    }

    /// Bytes per second of a stream during the build, from its first byte to its last;
    /// `None` if it moved none.
    pub(super) fn rate_in_build(&self, stream: IoStream) -> Option<f64> {
        self.rate_between(stream, self.build)
    }

    /// Bytes per second of table reads during the scan.
    pub(super) fn rate_of_scan(&self) -> Option<f64> {
        self.rate_between(IoStream::TableReads, self.scan)
    }

    fn rate_between(&self, stream: IoStream, (from, to): (Nanos, Nanos)) -> Option<f64> {
        let moving = self.moving(stream, from, to);
        let buckets = moving.last()? + 1 - moving.first()?;
        let active = Nanos(buckets as u64 * self.profile.width().0);
        let bytes: u64 = self.profile.series(stream).take(moving.last()? + 1).skip(*moving.first()?).sum();
        Some(Bytes(bytes).per(active).0)
    }

    /// Returns the buckets of a period in which a stream moved bytes.
    fn moving(&self, stream: IoStream, from: Nanos, to: Nanos) -> Vec<usize> {
        let (first, last) = self.buckets(from, to);
        let buckets = self.profile.series(stream).enumerate().take(last + 1).skip(first);
        buckets.filter(|(_, bytes)| *bytes > 0).map(|(index, _)| index).collect()
    }
}

/// Sums buckets between two times; those at the ends are weighted by their overlap.
fn weighted(buckets: impl Iterator<Item = u64>, width: Nanos, from: Nanos, to: Nanos) -> u64 {
    let width = width.0;
    let shares = buckets.zip(0_u64..).map(|(bytes, index)| {
        let begin = index * width;
        let inside = to.0.min(begin + width).saturating_sub(from.0.max(begin));
        u128::from(bytes) * u128::from(inside) / u128::from(width)
    });
    u64::try_from(shares.sum::<u128>()).unwrap_or(u64::MAX)
}

/// Returns the phases with their bytes.
pub(super) fn phases(seen: &Evidence, timeline: &Timeline) -> Vec<record::Phase> {
    let moved = BuildBytes::of(seen);
    let phase = |span: &PhaseSpan| record::Phase {
        name: span.phase.name().to_string(),
        operation: operation(seen, span.phase).to_string(),
        start_ns: span.begin.saturating_sub(timeline.zero).0,
        end_ns: span.end.saturating_sub(timeline.zero).0,
        rows: span.rows,
        bytes: moved.of_phase(span.phase).unwrap_or_else(|| {
            let streams = streams_outside_the_work(span.phase.operation()).iter();
            streams.map(|stream| timeline.bytes(*stream, span.begin, span.end)).sum()
        }),
        direction: span.phase.direction(),
    };
    seen.inside.phases.iter().map(phase).collect()
}

/// Returns the operation that a phase belongs to.
fn operation(seen: &Evidence, phase: Phase) -> &'static str {
    match phase.operation() {
        Operation::Load => "load",
        Operation::Calibration => "calibration",
        Operation::Work => seen.asked.measures,
        Operation::Verification => "verify",
    }
}

/// Returns the streams of a phase outside the work.
fn streams_outside_the_work(operation: Operation) -> &'static [IoStream] {
    match operation {
        Operation::Load => {
            &[IoStream::DataWrites, IoStream::FileInit, IoStream::FileWrites, IoStream::LogWrites]
        }
        Operation::Calibration => &[IoStream::Probe],
        Operation::Work | Operation::Verification => {
            &[IoStream::TableReads, IoStream::IndexReads, IoStream::CacheReads, IoStream::FileReads]
        }
    }
}

/// Bytes moved by the phases of the build.
#[derive(Debug)]
struct BuildBytes {
    sample: u64,
    scan: u64,
    file_scan: u64,
    first_runs: u64,
    read_cost: u64,
    intermediate: u64,
    last_merge: u64,
    division: u64,
    join: u64,
    log: u64,
    loaded: u64,
    copied: u64,
}

impl BuildBytes {
    fn of(seen: &Evidence) -> BuildBytes {
        let period = &seen.measured.period;
        let total = |stream: IoStream| period.stream(stream).bytes;
        let coordinators = || period.sessions.iter().filter(|session| session.role == Role::Coordinator);
        let by_coordinator = |stream: IoStream| {
            coordinators().map(|session| session.streams[stream as usize].bytes).sum::<u64>()
        };
        let file_sample = by_coordinator(IoStream::FileReads);
        let sample = by_coordinator(IoStream::TableReads) + file_sample;
        let join = by_coordinator(IoStream::IndexWrites) + by_coordinator(IoStream::FileWrites);
        let division = by_coordinator(IoStream::TempReads);
        let results = total(IoStream::IndexWrites) + total(IoStream::FileWrites);
        let (written, read) = (total(IoStream::TempWrites), total(IoStream::TempReads) - division);
        // Without intermediate merges all runs are initial runs, and each is read once.
        let merged = seen.measured.outcome.servers().iter().any(|server| server.intermediate_merges > 0);
        let first_runs = if merged { first_run_bytes(seen).min(written) } else { written };
        let read_last = if merged { first_run_bytes(seen).min(read) } else { read };
        // File reads of servers that sort the file themselves, or send rows to others.
        let scans_file = seen.inside.phases.iter().any(|span| span.phase == Phase::FileScan);
        BuildBytes {
            sample,
            scan: total(IoStream::TableReads) - by_coordinator(IoStream::TableReads)
                + total(IoStream::CacheReads),
            file_scan: if scans_file { total(IoStream::FileReads) - file_sample } else { 0 },
            first_runs: first_runs + if scans_file { 0 } else { total(IoStream::FileReads) },
            read_cost: total(IoStream::Probe),
            intermediate: (written - first_runs) + (read - read_last),
            last_merge: read_last + (results - join),
            division,
            join,
            log: total(IoStream::LogWrites),
            loaded: total(IoStream::DataWrites),
            copied: total(IoStream::BackupWrites),
        }
    }

    fn of_phase(&self, phase: Phase) -> Option<u64> {
        Some(match phase {
            Phase::Sample => self.sample,
            Phase::TableScan => self.scan,
            Phase::FileScan => self.file_scan,
            Phase::RunGeneration => self.first_runs,
            Phase::ReadCost => self.read_cost,
            Phase::IntermediateMerges => self.intermediate,
            Phase::MergeAndIndex | Phase::MergeAndWrite => self.last_merge,
            Phase::Division => self.division,
            Phase::Join => self.join,
            Phase::Import => self.log,
            Phase::RandomIo => self.scan + self.log,
            Phase::CreateAsSelect => self.loaded + self.log,
            Phase::TableCopy => self.scan + self.loaded + self.log,
            Phase::Backup => self.copied,
            // Requests of the calibrator belong to no session of this run.
            Phase::MixBefore | Phase::MixAfter => 0,
            // Outside the measured period, as the load is.
            Phase::UsersBefore
            | Phase::UsersAfter
            | Phase::Load
            | Phase::IndexCreation
            | Phase::DeviceProbe
            | Phase::Verify
            | Phase::VerifyRecords => return None,
        })
    }
}

/// Streams of the profile. Probes of the device are left out: they are not the work, and would set
/// the scale for all other streams.
fn drawn() -> impl Iterator<Item = &'static IoStream> {
    IoStream::ALL.iter().filter(|stream| !matches!(stream, IoStream::Probe | IoStream::ProbeWrites))
}

/// Bytes over time, in at most [`POINTS_MAX`] buckets.
pub(super) fn profile(timeline: &Timeline) -> IoProfile {
    let recorded = drawn().map(|stream| timeline.profile.series(*stream).count()).max().unwrap_or(0);
    let shown = recorded.saturating_sub(timeline.first);
    let joined = shown.div_ceil(POINTS_MAX).max(1);
    let series = |stream: &IoStream| {
        let bytes: Vec<u64> = timeline.profile.series(*stream).skip(timeline.first).collect();
        ProfileSeries {
            name: stream.name().to_string(),
            direction: stream.direction(),
            bytes: bytes.chunks(joined).map(|chunk| chunk.iter().sum()).collect(),
        }
    };
    let bucket_ns = timeline.profile.width().0 * joined as u64;
    IoProfile {
        bucket_ns,
        y_max_mb_per_s: None,
        x_max_s: Some(Nanos(bucket_ns * shown.div_ceil(joined) as u64).seconds()),
        series: drawn().map(series).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::weighted;
    use plumb_units::Nanos;

    #[test]
    fn a_bucket_partly_inside_counts_in_proportion() {
        let sum = |from, to| weighted([100, 200, 400].into_iter(), Nanos(10), Nanos(from), Nanos(to));
        assert_eq!(sum(0, 30), 700);
        assert_eq!(sum(5, 15), 150);
        assert_eq!(sum(12, 14), 40);
        assert_eq!(sum(25, 99), 200);
        assert_eq!(sum(0, 10) + sum(10, 17) + sum(17, 30), 700);
    }
}
