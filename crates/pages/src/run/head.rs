//! First lines: the run's state, its provenance, and the headline figures.

use super::work;
use plumb_record::figures::{ACTIVE_SESSIONS, FigureGroup, figure};
use plumb_record::{Header, Record};
use plumb_report::format::{Count, Decimal, Figure, Percent, Seconds, Size, grouped};
use plumb_report::table::{Cell, Facts, Table};
use plumb_report::{Headline, Section, table};

/// Returns the headline figures: elapsed time, what the workload is for, then DB time and memory. A
/// figure that the record lacks is left out.
pub(crate) fn headline(record: &Record) -> Vec<Headline> {
    let header = &record.header;
    let sessions = figure(record, FigureGroup::Ratio, ACTIVE_SESSIONS);
    let mut figures = vec![Headline {
        name: "Elapsed".to_string(),
        value: format!("{} s", Seconds(header.elapsed_ns).figure()),
        aside: format!("on {}", header.host.processors()),
    }];
    figures.extend(work::figures(record));
    if header.db_time_ns.is_some() {
        figures.push(Headline {
            name: "DB Time".to_string(),
            value: format!("{} s", Seconds(header.db_time()).figure()),
            aside: sessions.map_or_else(String::new, |sessions| {
                format!("{} average active sessions", Decimal(sessions).figure())
            }),
        });
    }
    if header.db_cpu_ns.is_some() {
        figures.push(Headline {
            name: "DB CPU".to_string(),
            value: format!("{} s", Seconds(header.db_cpu()).figure()),
            aside: match Percent::of(header.db_cpu(), header.db_time()).figure() {
                share if share.is_empty() => share,
                share => format!("{share}% of DB time"),
            },
        });
    }
    if let Some(peak) = record.memory.peak_rss_bytes {
        let [declared, budget] = [record.memory.declared_bytes(), record.memory.budget_bytes()].map(Size);
        let aside = format!("{} declared, budget {}", declared.figure(), budget.figure());
        figures.push(Headline { name: "Peak memory".to_string(), value: Size(peak).figure(), aside });
    }
    figures
}

/// Shows workload, machine and time of the run.
pub(super) fn run(record: &Record) -> Section {
    Section::front("run", "Run").table(identity(record)).table(host(record)).facts(period(record))
}

/// Returns the version, with the profile of a build that is no release.
fn release(header: &Header) -> String {
    match header.profile.as_deref() {
        None | Some("release" | "dist") => header.plumb_version.clone(),
        Some(profile) => format!("{} ({profile})", header.plumb_version),
    }
}

fn identity(record: &Record) -> Table {
    let header = &record.header;
    table!([
        text "Workload" => &header.workload,
        text "Release" => release(header),
        text "Revision" => header.git_revision.as_deref().unwrap_or("unknown"),
        text "Settings Hash" => &header.settings_hash,
        numbers "Seed" => header.seed.map_or(String::new(), |seed| seed.to_string()),
    ])
}

fn host(record: &Record) -> Table {
    let host = &record.header.host;
    table!([
        text "Host Name" => &host.name,
        text "Platform" => &host.kernel,
        numbers "CPUs" => match (host.cpus, host.cpu_quota) { (Some(cpus), Some(quota)) => format!("{cpus}, quota {quota}"), (cpus, _) => cpus.map(|cpus| Count(u64::from(cpus))).figure(), },
        wrapped(40) "CPU Model" => &host.cpu_model,
        numbers "Memory" => host.memory_bytes.map(Size),
    ])
}

fn period(record: &Record) -> Facts {
    let header = &record.header;
    let mut facts = Facts::default();
    facts.add("Begin", &header.begin_time);
    facts.add("End", &header.end_time);
    facts.add("Elapsed", in_seconds_and_minutes(header.elapsed_ns));
    if let Some(db_time_ns) = header.db_time_ns {
        facts.add("DB Time", in_seconds_and_minutes(db_time_ns));
    }
    let sessions = figure(record, FigureGroup::Ratio, ACTIVE_SESSIONS);
    facts.add(ACTIVE_SESSIONS, Cell::of(sessions.map(Decimal)));
    facts.add("Command", &header.command_line);
    if let Some(of) = &record.period {
        facts.add(
            "Part of the Run",
            format!("from snapshot {} to {}; checks and receipts are the run's", of.first, of.last),
        );
        facts.add("Left Out", left_out(&of.left_out));
    }
    let precision = header.clock_precision_ns.map(|ns| format!(", steps of {ns} ns"));
    let clock = header
        .clock_source
        .as_deref()
        .map(|source| format!("{source}{}", precision.as_deref().unwrap_or(", precision not measured")));
    facts.add("Clock", clock.unwrap_or_default());
    facts
}

/// Names parts of the run that a period lacks; empty if there are none.
fn left_out(names: &[String]) -> String {
    match names {
        [] => String::new(),
        names => format!("{}: kept for the whole run alone, whose report has them", names.join(", ")),
    }
}

fn in_seconds_and_minutes(ns: u64) -> String {
    format!("{} (secs)  {} (mins)", Seconds(ns).figure(), grouped(ns as f64 / 60e9, 2))
}
