//! A run in ten to twenty-two lines for a terminal.
//!
//! Below the answer come the state, the device, the phases, and the parts of the time. It has
//! neither colours nor control characters, and nothing that the report lacks.

use super::{device, io, time};
use plumb_events::Direction;
use plumb_record::{Device, Finding, LimitShare, MixLimit, Phase, Record};
use plumb_report::Summary;
use plumb_report::format::{Count, Figure, PerSecond, Percent, Seconds, Size, Throughput};

/// Largest number of phases; the longest with rows are shown.
const PHASES_MAX: usize = 5;

pub(super) fn summary(record: &Record) -> Summary {
    let header = &record.header;
    let line = |name: &str, value: String| (name.to_string(), value);
    // The answer has the figures, the top events and the first finding.
    let mut facts = Vec::from_iter(record.devices.first().map(|device| line("Path", path(record, device))));
    facts.push(line("Limit", limit(record)));
    facts.extend(record.limits.as_ref().map(|limits| line("Device", device::limits_in_one_line(limits))));
    let phases = longest(&record.phases).into_iter();
    facts.extend(phases.map(|phase| line(&phase.name, progress(record, phase))));
    let rest = time::unaccounted(record).map(|share| share.figure());
    facts.extend(rest.map(|rest| line("Unaccounted", format!("{rest}% of all sessions' time"))));
    facts.extend(saving(record).map(|finding| line("Finding", finding.what.clone())));
    Summary { subject: format!("{} on {}", header.workload, header.host.name), lines: Vec::new(), facts }
}

/// Returns the finding that could save the most time, unless it is the first.
fn saving(record: &Record) -> Option<&Finding> {
    let saving = record.findings.iter().skip(1).find(|finding| finding.saves_ns.is_some());
    saving.filter(|_| record.findings.first().is_some_and(|first| first.saves_ns.is_none()))
}

/// Describes the device and the access to its files, and that of log files if it differs.
fn path(record: &Record, device: &Device) -> String {
    let asked = record.settings.iter().find(|row| row.name == "log_file_io").map(|row| row.value.as_str());
    let log = match (asked, device.used_direct_io) {
        (Some("buffered"), Some(true)) => ", log files through the page cache",
        (Some("direct"), Some(false)) => ", log files by direct I/O",
        _ => "",
    };
    device::in_one_line(device) + log
}

fn limit(record: &Record) -> String {
    let shares = record.calibration.as_ref().map(|found| found.shares.as_slice());
    let Some(share) = shares.and_then(<[LimitShare]>::first) else {
        return match record.mix.as_ref().and_then(MixLimit::share) {
            Some(shares) => {
                let [share, least, most] = shares.map(|part| Percent { part, whole: 1.0 }.figure());
                format!(
                    "reads and writes at {share}% ({least} to {most}) of the device's own rate for the same mix"
                )
            }
            None if record.period.is_some() => {
                "what was reached of it is known of the whole run alone".to_string()
            }
            None if record.calibrated().is_some() => {
                "no phase of this run has a rate that is held against it".to_string()
            }
            None => {
                let measured = record.calibration.as_ref();
                let unsettled = measured.and_then(|found| found.sequential_read_unsettled.as_ref());
                unsettled.map_or_else(
                    || "not calibrated: throughput has nothing to be measured against".to_string(),
                    |why| format!("no share is stated of the raw sequential read: {why}"),
                )
            }
        };
    };
    let figure = |part: f64| Percent { part, whole: 1.0 }.figure();
    let (part, ends) = share.shares();
    let ends =
        ends.map_or(String::new(), |[least, most]| format!(" ({} to {})", figure(least), figure(most)));
    format!("{} at {}%{ends} of {}", share.what, figure(part), share.limit)
}

/// Returns the longest phases in the order of their start.
fn longest(phases: &[Phase]) -> Vec<&Phase> {
    let elapsed_ns = |phase: &Phase| phase.end_ns.saturating_sub(phase.start_ns);
    let mut longest = phases.iter().filter(|phase| phase.rows > 0).collect::<Vec<_>>();
    longest.sort_by_key(|phase| std::cmp::Reverse(elapsed_ns(phase)));
    longest.truncate(PHASES_MAX);
    longest.sort_by_key(|phase| phase.start_ns);
    longest
}

fn progress(record: &Record, phase: &Phase) -> String {
    let elapsed_ns = phase.end_ns.saturating_sub(phase.start_ns);
    let mut parts = vec![format!("{} s", Seconds(elapsed_ns).figure())];
    if phase.rows > 0 {
        let rate = PerSecond { total: phase.rows as f64, elapsed_ns }.rate().round() as u64;
        parts.push(format!("{} rows ({}/s)", Count(phase.rows).figure(), Count(rate).figure()));
    }
    if phase.bytes > 0 {
        let rate = Throughput { bytes: phase.bytes, elapsed_ns }.figure();
        let share = io::phase_share(record, phase).filter(|_| record.calibrated().is_some());
        let way = match phase.direction {
            Some(Direction::Write) => "write",
            _ => "read",
        };
        let share = share.map(|share| format!(", {}% of the device's {way}", share.figure()));
        parts.push(format!("{} ({rate} MB/s{})", Size(phase.bytes).figure(), share.unwrap_or_default()));
    }
    parts.join(", ")
}
