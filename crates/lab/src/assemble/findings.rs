//! Findings: what the figures mean, each from the figures themselves.

use super::phases::Timeline;
use super::{Evidence, one_pass};
use crate::settings;
use plumb_engine::Setting;
use plumb_engine::sort::summary::Divided;
use plumb_events::{Event, IoStream, SessionKind, Statistic};
use plumb_io::{DirectIo, MethodKind};
use plumb_record::{Circumstance, Fact, Finding, Record, capital};
use plumb_units::{Bytes, Nanos, Rate, RowCount};

/// A rule; `None` when it sees nothing.
type Rule = fn(&Evidence, &Record) -> Option<Finding>;

/// What the run itself makes of its times.
const OF_THE_RUN: &[Rule] = &[delayed, stopped];

/// The rules behind what others, and caches, make of them; what casts doubt on the run comes first.
const RULES: &[Rule] = &[
    files_grew,
    space_not_reserved,
    not_direct,
    method_replaced,
    fewer_servers,
    memory_scarce,
    cache_below,
    unaccounted,
    first_touch,
    free_buffers,
    intermediate_merges,
    fitted_in_memory,
    bound,
    workers,
    skew,
    memory_exceeded,
];

pub(super) fn findings(seen: &Evidence, record: &Record) -> Vec<Finding> {
    let found = |rules: &'static [Rule]| rules.iter().filter_map(|rule| rule(seen, record));
    found(OF_THE_RUN).chain(record.doubtful().map(circumstance)).chain(found(RULES)).collect()
}

/// What others had of the machine, or what answered instead of the device.
fn circumstance(found: &Circumstance) -> Finding {
    Finding {
        what: capital(found.fact.words().1),
        evidence: found.evidence.clone(),
        advice: found.fact.advice().to_string(),
    }
}

fn finding(
    what: impl Into<String>,
    evidence: impl Into<String>,
    advice: impl Into<String>,
) -> Option<Finding> {
    Some(Finding { what: what.into(), evidence: evidence.into(), advice: advice.into() })
}

fn percent(part: u64, whole: u64) -> f64 {
    part as f64 * 100.0 / whole.max(1) as f64
}

/// A run with delayed requests says nothing about a device, and must not be taken for a measurement of one.
fn delayed(seen: &Evidence, _: &Record) -> Option<Finding> {
    let each = seen.inside.settings.number(Setting::DebugRequestDelay);
    if each == 0 {
        return None;
    }
    finding(
        "A delay was injected into every request: the times are not the engine's",
        format!("debug_request_delay: {} before each, on average", Nanos(each)),
        "it is for tests of the laboratory; leave it out to measure",
    )
}

/// The time of a run that was stopped is not that of its work.
fn stopped(_: &Evidence, record: &Record) -> Option<Finding> {
    let stopped = Nanos(record.stopped_ns?);
    finding(
        "The run was stopped, or the machine suspended, while it was measured",
        format!("{stopped} in which none of its threads ran"),
        "its times say nothing: run it again",
    )
}

fn files_grew(seen: &Evidence, _: &Record) -> Option<Finding> {
    let grown = seen.measured.period.statistic(Statistic::FileBytesExtended);
    if grown == 0 {
        return None;
    }
    let waited = seen.measured.period.event(Event::DataFileInitWrite, SessionKind::Foreground).time;
    finding(
        "Files grew while the build was measured",
        format!("{} of zeros were written; sessions waited {waited} on Data file init write", Bytes(grown)),
        if seen.asked.files_presized {
            "the files were made too small for this run: its times include writing zeros".to_string()
        } else if let Some(index) = &seen.measured.outcome.index {
            format!("`plumb drop {index}` and build it again: the files are large enough now")
        } else {
            "the sort needed more room than its input's beginning let expect: a larger sort_area_size needs less".to_string()
        },
    )
}

/// A file system without fallocate: nothing was taken before the first record was read.
fn space_not_reserved(seen: &Evidence, _: &Record) -> Option<Finding> {
    let lengthened = seen.measured.period.statistic(Statistic::SpaceNotReserved);
    if lengthened == 0 {
        return None;
    }
    finding(
        "The output's space was not reserved before the sort",
        format!(
            "its file system has no fallocate: the file was lengthened by {} of zeros",
            Bytes(lengthened)
        ),
        "a disk that is too small shows when the output is written; write it to ext4, xfs, btrfs or tmpfs to know before",
    )
}

fn not_direct(seen: &Evidence, _: &Record) -> Option<Finding> {
    let options = seen.inside.settings.word(Setting::FilesystemioOptions);
    let asked = matches!(options, "directio" | "setall");
    if !asked || seen.inside.in_memory() || seen.inside.access.direct == DirectIo::Required {
        return None;
    }
    finding(
        "I/O went through the page cache although direct I/O is the default",
        seen.inside.access.direct_reason.clone(),
        "put the files on a file system with direct I/O to measure a device",
    )
}

/// Sessions of one run that used different methods; a ring without registered buffers is still a ring.
fn method_replaced(seen: &Evidence, _: &Record) -> Option<Finding> {
    let method = &seen.inside.access.method;
    let said = method.replaced()?;
    if MethodKind::ALL.into_iter().filter(|kind| method.goes_by(*kind)).count() < 2 {
        return None;
    }
    finding(
        "Some sessions did not get the best I/O method",
        said,
        "raise the limit, or name an io_method that all sessions can have, before comparing runs",
    )
}

fn fewer_servers(seen: &Evidence, _: &Record) -> Option<Finding> {
    finding(
        "Fewer servers were started than there are processors",
        seen.inside.access.servers.reason.clone()?,
        "raise the limit, or set the parallel_degree that it allows, before comparing runs",
    )
}

fn memory_scarce(seen: &Evidence, _: &Record) -> Option<Finding> {
    finding(
        "The settings allow more memory than was available",
        seen.inside.access.memory_warning.clone()?,
        "a machine that swaps measures its swap: lower sort_area_size, db_cache_size or parallel_degree",
    )
}

/// Writes that are faster than the raw read rate are not on the medium yet.
fn cache_below(seen: &Evidence, _: &Record) -> Option<Finding> {
    let limit = seen.calibrated.as_ref()?.sequential_read.high;
    let timeline = Timeline::of(seen);
    let streams = [IoStream::TempWrites, IoStream::IndexWrites, IoStream::FileWrites];
    let (stream, rate) = streams
        .into_iter()
        .filter_map(|stream| Some((stream, timeline.rate_in_build(stream)?)))
        .max_by(|one, two| one.1.total_cmp(&two.1))?;
    let moved = seen.measured.period.stream(stream).bytes;
    if rate < limit * 1.05 || moved < 16 * Bytes::M {
        return None;
    }
    let where_it_is = match seen.inside.access.direct {
        DirectIo::Required => "beneath the file system (device, hypervisor or controller)",
        DirectIo::Off => "above the device, the page cache to begin with,",
    };
    finding(
        "Writes are faster than the device reads",
        format!("{} ran at {}, and the raw sequential read is {}", stream.name(), Rate(rate), Rate(limit)),
        format!("a cache {where_it_is} absorbs them: sort more than it holds to see the device"),
    )
}

fn unaccounted(_: &Evidence, record: &Record) -> Option<Finding> {
    let elapsed: u64 = record.sessions.iter().map(|session| session.elapsed_ns).sum();
    let rest: i64 = record.sessions.iter().map(plumb_record::SessionTime::unaccounted_ns).sum();
    let share = rest as f64 * 100.0 / elapsed.max(1) as f64;
    if share.abs() <= 5.0 {
        return None;
    }
    finding(
        "Part of the sessions' time is not accounted for",
        format!("{share:.1}% of {:.2} s over all sessions is neither CPU nor a wait", elapsed as f64 / 1e9),
        "something is not measured: treat shares of DB time with care",
    )
}

/// A guest that gives free memory back to its host waits for it at the next touch.
fn first_touch(seen: &Evidence, record: &Record) -> Option<Finding> {
    let servers = seen.measured.outcome.servers();
    let time = Nanos(servers.iter().map(|server| server.area_mapping.0).sum());
    let share = percent(time.0, record.header.db_cpu());
    if share < 5.0 {
        return None;
    }
    let mapped: Bytes = servers.iter().map(|server| server.area_mapped).sum();
    finding(
        "The system was slow to supply the memory of the sort",
        format!("sort areas of {mapped} took {time}, {share:.0}% of the CPU time"),
        "memory that is touched for the first time costs this on machines that give free memory back to a host: \
         less sort memory costs less of it",
    )
}

fn free_buffers(seen: &Evidence, record: &Record) -> Option<Finding> {
    let waited = seen.measured.period.event(Event::FreeBufferWaits, SessionKind::Foreground);
    let share = percent(waited.time.0, record.header.db_time());
    if share < 10.0 {
        return None;
    }
    finding(
        "Sessions wait for free buffers: DBWR does not keep up",
        format!("{share:.0}% of DB time in {} waits", RowCount(waited.count)),
        "sort_direct_writes=true takes runs past the cache; otherwise more db_writer_processes",
    )
}

fn intermediate_merges(seen: &Evidence, record: &Record) -> Option<Finding> {
    let sort = record.sort.as_ref()?;
    if sort.intermediate_merges == 0 {
        return None;
    }
    finding(
        "The sort needed intermediate merges",
        format!(
            "{} before the last, runs merged at most {} at once; rows were read back up to {} times",
            if sort.intermediate_merges == 1 {
                "1 merge".to_string()
            } else {
                format!("{} merges", RowCount(sort.intermediate_merges))
            },
            sort.merge_width,
            sort.merge_passes
        ),
        match one_pass::area(seen) {
            Some(area) => format!(
                "sort_area_size={} would merge them at once, as the plan of merges works it out",
                area.as_setting()
            ),
            None => "sort fewer rows: no sort area that could be asked for merges these at once".to_string(),
        },
    )
}

fn fitted_in_memory(seen: &Evidence, record: &Record) -> Option<Finding> {
    let sort = record.sort.as_ref()?;
    if sort.runs > 0 || sort.rows == 0 {
        return None;
    }
    let area = settings::shown(&seen.inside.settings, Setting::SortAreaSize);
    finding(
        "The sort fitted in memory: nothing went to the temporary tablespace",
        match sort.servers.len() {
            1 => format!("{} rows in a sort area of {area}", RowCount(sort.rows)),
            servers => format!("{} rows in {servers} sort areas of {area}", RowCount(sort.rows)),
        },
        "to measure a disk sort, take more rows or a smaller sort_area_size",
    )
}

/// What bounds the build: the processors, or the device's sequential read.
fn bound(seen: &Evidence, record: &Record) -> Option<Finding> {
    if did_nothing(seen, record) {
        return None;
    }
    // What waits use is the processors' time too: a buffered read is a copy.
    let foreground = record.sessions.iter().filter(|session| session.kind == SessionKind::Foreground);
    let used = foreground.map(|session| session.cpu_ns + session.wait_cpu_ns).sum();
    let cpu = percent(used, record.header.db_time());
    let shares = record.calibration.iter().flat_map(|found| &found.shares);
    let reached = shares
        .filter(|share| share.limit_bytes_per_s > 0.0)
        .map(|share| (share, share.reached_bytes_per_s / share.limit_bytes_per_s * 100.0))
        .max_by(|one, two| one.1.total_cmp(&two.1));
    if let Some((share, part)) = reached.filter(|(_, part)| *part >= 85.0) {
        return finding(
            format!("The {} run at the device's limit", share.what),
            format!("{part:.0}% of {}; CPU is {cpu:.0}% of DB time", share.limit),
            "a faster device helps this part; more memory or servers do not",
        );
    }
    let share = reached.map_or(String::new(), |(share, part)| {
        format!("; {} reached {part:.0}% of {}", share.what, share.limit)
    });
    if cpu >= 70.0 {
        return finding(
            "The build is bound by the processors, not by the storage",
            format!("CPU is {cpu:.0}% of DB time{share}"),
            more_processors(record),
        );
    }
    None
}

/// Advice for a build that waits for processors: more of them, unless others or a quota have those
/// that exist.
fn more_processors(record: &Record) -> &'static str {
    if record.header.host.cpu_quota.is_some() || record.is_doubtful(&[Fact::Quota]) {
        return "storage settings will change little here; a larger CPU quota would, and more processors would not";
    }
    if record.is_doubtful(&[Fact::Processors, Fact::Steal]) {
        return "others had part of the processors: repeat it without them before you add any";
    }
    "storage settings will change little here; more processors would"
}

/// Whether there was not a row to work on: what the time went to then bounds nothing.
fn did_nothing(seen: &Evidence, record: &Record) -> bool {
    let imported = seen.measured.outcome.import.as_ref().map(|import| import.row_count);
    imported.or(record.sort.as_ref().map(|sort| sort.rows)) == Some(0)
}

fn workers(seen: &Evidence, _: &Record) -> Option<Finding> {
    let (begin, seen) = seen.measured.io_wq_workers;
    if seen <= begin {
        return None;
    }
    finding(
        "Some io_uring requests fell back to kernel worker threads",
        format!("{begin} io-wq workers at the start, at most {seen} seen"),
        "these could not be issued without blocking (a full queue, buffered I/O): compare io_method=threads",
    )
}

fn skew(seen: &Evidence, _: &Record) -> Option<Finding> {
    let servers = seen.measured.outcome.servers();
    let rows: u64 = servers.iter().map(|server| server.row_count).sum();
    let most = servers.iter().map(|server| server.row_count).max()?;
    let ratio = most as f64 * servers.len() as f64 / rows.max(1) as f64;
    if servers.len() < 2 || ratio < 1.3 {
        return None;
    }
    finding(
        "The sort servers were not equally busy",
        format!("the busiest sorted {ratio:.1} times its share of the rows"),
        match seen.measured.outcome.sort.as_ref()?.divided {
            Divided::ByKey => "the key ranges come from a sample of the input, which missed it this time",
            Divided::InMerge => {
                "servers take the next piece of the file as they finish one: look for what held one of them up"
            }
        },
    )
}

fn memory_exceeded(_: &Evidence, record: &Record) -> Option<Finding> {
    let memory = &record.memory;
    let budget = memory.budget_bytes();
    let peak = memory.peak_rss_bytes.filter(|peak| *peak > budget)?;
    finding(
        "More memory was used than was declared",
        format!("the peak resident set is {}, declared with overhead {}", Bytes(peak), Bytes(budget)),
        "plan the machine by the peak, not by the settings; a smaller sort_area_size or parallel_degree lowers both",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_processors_are_advised_only_where_none_else_has_them_and_no_quota_bounds_them() {
        let advice = |fact: Option<Fact>, quota: Option<f64>| {
            let mut record = plumb_record::fixture::record(1_000_000_000, 1);
            record.header.host.cpu_quota = quota;
            record.circumstances = fact.map(|fact| {
                let evidence = "counted".to_string();
                vec![Circumstance { fact, share: 0.5, threshold: 0.1, doubtful: true, evidence }]
            });
            more_processors(&record)
        };
        assert!(advice(None, None).ends_with("; more processors would"));
        assert!(advice(Some(Fact::Device), None).ends_with("; more processors would"));
        assert!(advice(Some(Fact::Processors), None).starts_with("others had part of the processors"));
        assert!(advice(Some(Fact::Steal), None).starts_with("others had part of the processors"));
        assert!(advice(Some(Fact::Quota), None).contains("a larger CPU quota would"));
        assert!(advice(None, Some(0.2)).contains("a larger CPU quota would"));
    }

    #[test]
    fn a_circumstance_that_is_doubtful_is_a_finding_with_its_figures() {
        let evidence = "96% of its writes, 4.31 GB of 4.48 GB".to_string();
        let found =
            Circumstance { fact: Fact::Device, share: 0.96, threshold: 0.1, doubtful: true, evidence };
        let Finding { what, evidence, .. } = circumstance(&found);
        assert_eq!((what.as_str(), evidence), ("Others used the device", found.evidence));
    }
}
