//! Phases and the I/O profile, on one clock that starts with the first phase.

use super::Story;
use plumb_events::{Direction, IoStream, PhaseSpan, Profile};
use plumb_report::context::{IoDirection, IoProfile, Phase, ProfileSeries};
use plumb_units::{Bytes, Nanos};

/// The engine's name of the phase in which the table is read.
const TABLE_SCAN: &str = "table scan";
/// Points of the plot at most.
const POINTS_MAX: usize = 600;

/// What was recorded over time, cut at the first phase's begin.
#[derive(Debug)]
pub(super) struct Timeline {
    profile: Profile,
    /// The bucket in which the story begins.
    first: usize,
    /// When that bucket starts, from the recorder's origin.
    zero: Nanos,
    /// The build's begin and end, from the recorder's origin.
    build: (Nanos, Nanos),
    /// Begin and end of the scan: what is read before it is a sample of single blocks.
    scan: (Nanos, Nanos),
}

impl Timeline {
    pub(super) fn of(story: &Story<'_>) -> Timeline {
        let recorder = &story.instance.recorder;
        let profile = recorder.profile();
        let first = (story.begin.saturating_sub(recorder.origin()).0 / profile.width().0) as usize;
        let build_begin = story.measured.begin.saturating_sub(recorder.origin());
        let build = (build_begin, build_begin + story.measured.period.elapsed);
        let scan = recorder.phases().into_iter().find(|span| span.name == TABLE_SCAN);
        Timeline {
            first,
            zero: Nanos(first as u64 * profile.width().0),
            build,
            scan: scan.map_or(build, |span| (span.begin, span.end)),
            profile,
        }
    }

    /// Bytes of a stream between two times from the origin, whole buckets.
    fn bytes(&self, stream: IoStream, from: Nanos, to: Nanos) -> u64 {
        let (first, last) = self.buckets(from, to);
        self.profile.series(stream).take(last + 1).skip(first).sum()
    }

    fn buckets(&self, from: Nanos, to: Nanos) -> (usize, usize) {
        let width = self.profile.width().0;
        ((from.0 / width) as usize, (to.0 / width) as usize)
    }

    /// Bytes a second of a stream during the build, from its first byte to its
    /// last; `None` when it moved none.
    pub(super) fn rate_in_build(&self, stream: IoStream) -> Option<f64> {
        self.rate_between(stream, self.build)
    }

    /// The same of the table's scan alone.
    pub(super) fn rate_of_scan(&self) -> Option<f64> {
        self.rate_between(IoStream::TableReads, self.scan)
    }

    fn rate_between(&self, stream: IoStream, (from, to): (Nanos, Nanos)) -> Option<f64> {
        let moving = self.moving(stream, from, to);
        let buckets = moving.last()? + 1 - moving.first()?;
        let active = Nanos(buckets as u64 * self.profile.width().0);
        Some(Bytes(self.bytes(stream, from, to)).per(active).0)
    }

    /// The time of the buckets in which a stream moved bytes during the build.
    pub(super) fn busy_in_build(&self, stream: IoStream) -> Nanos {
        Nanos(self.moving(stream, self.build.0, self.build.1).len() as u64 * self.profile.width().0)
    }

    /// The buckets of a stretch of time in which a stream moved bytes.
    fn moving(&self, stream: IoStream, from: Nanos, to: Nanos) -> Vec<usize> {
        let (first, last) = self.buckets(from, to);
        let buckets = self.profile.series(stream).enumerate().take(last + 1).skip(first);
        buckets.filter(|(_, bytes)| *bytes > 0).map(|(index, _)| index).collect()
    }
}

/// The phases with what they moved.
pub(super) fn phases(story: &Story<'_>, timeline: &Timeline) -> Vec<Phase> {
    let spans = story.instance.recorder.phases();
    let phase = |span: &PhaseSpan| {
        let (operation, streams) = kind(span.name);
        Phase {
            name: span.name.to_string(),
            operation: operation.to_string(),
            start_ns: span.begin.saturating_sub(timeline.zero).0,
            end_ns: span.end.saturating_sub(timeline.zero).0,
            rows: span.rows,
            bytes: streams.iter().map(|stream| timeline.bytes(*stream, span.begin, span.end)).sum(),
        }
    };
    spans.iter().map(phase).collect()
}

/// The operation that a phase is part of, and the streams that are its own:
/// phases of different servers overlap in time.
fn kind(name: &str) -> (&'static str, &'static [IoStream]) {
    match name {
        "load" => ("load", &[IoStream::DataWrites, IoStream::FileInit]),
        "sample" => ("index build", &[IoStream::TableReads]),
        TABLE_SCAN => ("index build", &[IoStream::TableReads, IoStream::CacheReads]),
        "run generation" => ("index build", &[IoStream::TempWrites]),
        "intermediate merges" => ("index build", &[IoStream::TempReads, IoStream::TempWrites]),
        "join" => ("index build", &[IoStream::IndexWrites]),
        "merge and index" => ("index build", &[IoStream::TempReads, IoStream::IndexWrites]),
        _ => ("verify", &[IoStream::TableReads, IoStream::IndexReads, IoStream::CacheReads]),
    }
}

/// Bytes over time, in few enough buckets to be drawn.
pub(super) fn profile(timeline: &Timeline) -> IoProfile {
    let recorded =
        IoStream::ALL.iter().map(|stream| timeline.profile.series(*stream).count()).max().unwrap_or(0);
    let shown = recorded.saturating_sub(timeline.first);
    let joined = shown.div_ceil(POINTS_MAX).max(1);
    let series = |stream: &IoStream| {
        let bytes: Vec<u64> = timeline.profile.series(*stream).skip(timeline.first).collect();
        ProfileSeries {
            name: stream.name().to_string(),
            direction: match stream.direction() {
                Direction::Read => IoDirection::Read,
                Direction::Write => IoDirection::Write,
            },
            bytes: bytes.chunks(joined).map(|chunk| chunk.iter().sum()).collect(),
        }
    };
    let bucket_ns = timeline.profile.width().0 * joined as u64;
    IoProfile {
        bucket_ns,
        y_max_mb_per_s: None,
        x_max_s: Some(Nanos(bucket_ns * shown.div_ceil(joined) as u64).seconds()),
        series: IoStream::ALL.iter().map(series).collect(),
    }
}
