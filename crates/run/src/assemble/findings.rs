//! Facts of a run for the table of rules.
//!
//! [`plumb_findings`] judges; this file only says what the evidence shows and a record does not.

use super::phases::Timeline;
use super::{Evidence, one_pass};
use crate::settings;
use plumb_engine::Setting;
use plumb_engine::sort::summary::Divided;
use plumb_events::{Event, Function, IoStream, SessionKind, Statistic};
use plumb_findings::{Absorbed, Grown, RunFacts, Signals, SortFacts, UsersFacts};
use plumb_io::{DirectIo, MethodKind};
use plumb_record::{Fact, Finding, Record, SessionTime, UsersPart, WaitEvent};
use plumb_units::{Bytes, total_of};

pub(super) fn findings(seen: &Evidence, record: &Record) -> Vec<Finding> {
    plumb_findings::findings(&Signals::of(record).with_run(facts(seen, record)))
}

fn facts(seen: &Evidence, record: &Record) -> RunFacts {
    let access = &seen.inside.access;
    let foreground = record.sessions.iter().filter(|session| session.kind == SessionKind::Foreground);
    let memory = &record.memory;
    let (ring_workers_begin, ring_workers_most) = seen.measured.io_wq_workers;
    RunFacts {
        delay_ns: seen.inside.settings.number(Setting::DebugRequestDelay),
        stopped_ns: record.stopped_ns,
        circumstances: record.doubtful().cloned().collect(),
        grown: grown(seen),
        not_reserved_bytes: seen.measured.period.statistic(Statistic::SpaceNotReserved),
        through_page_cache: through_page_cache(seen),
        method_replaced: method_replaced(seen),
        fewer_servers: access.servers.reason.clone(),
        memory_scarce: access.memory_warning.clone(),
        absorbed: absorbed(seen),
        sessions_ns: total_of(record.sessions.iter().map(|session| session.elapsed_ns)),
        unaccounted_ns: record.sessions.iter().map(SessionTime::unaccounted_ns).sum(),
        sort: sort(seen, record),
        users: users(seen, record),
        cpu_ns: total_of(foreground.map(|session| session.cpu_ns + session.wait_cpu_ns)),
        did_nothing: did_nothing(seen, record),
        quota: record.header.host.cpu_quota.is_some() || record.is_doubtful(&[Fact::Quota]),
        shared_processors: record.is_doubtful(&[Fact::Processors, Fact::Steal]),
        ring_workers: [ring_workers_begin, ring_workers_most],
        memory_bytes: memory.peak_rss_bytes.map(|peak| [peak, memory.budget_bytes()]),
    }
}

fn grown(seen: &Evidence) -> Option<Grown> {
    let bytes = seen.measured.period.statistic(Statistic::FileBytesExtended);
    let advice = if seen.asked.files_presized {
        "the files were made too small for this run: its times include writing zeros".to_string()
    } else if let Some(index) = &seen.measured.outcome.index {
        format!("`plumb drop {index}` and build it again: the files are large enough now")
    } else {
        "the sort needed more room than the start of its input suggests: a larger sort_area_size needs less"
            .to_string()
    };
    let waited = seen.measured.period.event(Event::DataFileInitWrite, SessionKind::Foreground).time;
    (bytes > 0).then_some(Grown { bytes, waited_ns: waited.0, advice })
}

fn through_page_cache(seen: &Evidence) -> Option<String> {
    let options = seen.inside.settings.word(Setting::FilesystemioOptions);
    let asked = matches!(options, "directio" | "setall") && !seen.inside.in_memory();
    let access = &seen.inside.access;
    (asked && access.direct != DirectIo::Required).then(|| access.direct_reason.clone())
}

/// Returns the reason for different methods in one run; a ring without registered buffers is
/// still a ring.
fn method_replaced(seen: &Evidence) -> Option<String> {
    let method = &seen.inside.access.method;
    let kinds = MethodKind::ALL.into_iter().filter(|kind| method.goes_by(*kind)).count();
    method.replaced().filter(|_| kinds >= 2)
}

/// Returns writes above the raw read rate, because they cannot be on the medium yet.
fn absorbed(seen: &Evidence) -> Option<Absorbed> {
    let limit_bytes_per_s = seen.calibrated.as_ref()?.sequential_read.high;
    let timeline = Timeline::of(seen);
    let streams = [IoStream::TempWrites, IoStream::IndexWrites, IoStream::FileWrites];
    let (stream, bytes_per_s) = streams
        .into_iter()
        .filter_map(|stream| Some((stream, timeline.rate_in_build(stream)?)))
        .max_by(|one, two| one.1.total_cmp(&two.1))?;
    let moved = seen.measured.period.stream(stream).bytes;
    let layer = match seen.inside.access.direct {
        DirectIo::Required => "beneath the file system (device, hypervisor or controller)",
        DirectIo::Off => "above the device, the page cache to begin with,",
    };
    let is_above = bytes_per_s >= limit_bytes_per_s * 1.05 && moved >= 16 * Bytes::M;
    is_above.then(|| Absorbed { stream: stream.name().to_string(), bytes_per_s, limit_bytes_per_s, layer })
}

fn sort(seen: &Evidence, record: &Record) -> Option<SortFacts> {
    let sort = record.sort.as_ref()?;
    let servers = seen.measured.outcome.servers();
    Some(SortFacts {
        rows: sort.rows,
        runs: sort.runs,
        servers: servers.len() as u64,
        area: settings::shown(&seen.inside.settings, Setting::SortAreaSize),
        intermediate_merges: sort.intermediate_merges,
        merge_width: sort.merge_width,
        merge_passes: sort.merge_passes,
        one_pass_area: one_pass::area(seen).map(|area| area.as_setting()),
        direct_writes: sort.direct_writes_used,
        most_rows: servers.iter().map(|server| server.row_count).max().unwrap_or(0),
        by_key: seen.measured.outcome.sort.as_ref()?.divided == Divided::ByKey,
        mapped_bytes: total_of(servers.iter().map(|server| server.area_mapped.0)),
        mapping_ns: total_of(servers.iter().map(|server| server.area_mapping.0)),
    })
}

/// Returns the users before the build and during it.
fn users(seen: &Evidence, record: &Record) -> Option<UsersFacts> {
    let users = record.users.as_ref()?;
    let [before, during] = ["before", "during"].map(|name| users.part(name));
    let pair = [before?, during?];
    let reads = |event: &&WaitEvent| Function::of_event(&event.event) == Some(Function::BufferCacheReads);
    let waits = pair[1].time.events.iter().filter(reads);
    Some(UsersFacts {
        operations_per_s: pair.map(UsersPart::operations_per_s),
        p99_ns: pair.map(|part| part.latency.quantile(0.99).0),
        misses: pair.map(|part| part.reads as f64 / part.gets.max(1) as f64),
        evicted: pair[1].pool.counts.evicted,
        read_ns: total_of(waits.map(|event| event.time_ns)),
        scans_through_cache: !seen.inside.settings.scans_directly(seen.inside.degree),
    })
}

/// True if the run had no rows: then the time shows no bound.
fn did_nothing(seen: &Evidence, record: &Record) -> bool {
    let imported = seen.measured.outcome.import.as_ref().map(|import| import.row_count);
    imported.or(record.sort.as_ref().map(|sort| sort.rows)) == Some(0)
}
