//! The diagnosis of a record: its findings, gated and ordered by the table of rules.

use super::{head, result};
use plumb_record::Record;
use plumb_report::format::{Figure, Percent, Seconds};
use plumb_report::table::{Facts, Tone};
use plumb_report::{Document, Headline, ReportAnswer, Section, State, Summary, text};
use plumb_units::Nanos;

/// Why a report of a device or a benchmark has no finding.
const NO_TIME: &str = "no rule was asked: there is no DB time, of which its cost would be a share; diagnose a \
                       database's report of the same interval";

/// Returns the diagnosis of a run or of an imported report.
pub fn document(record: &Record) -> Document {
    let header = &record.header;
    let findings = &record.findings;
    // A trace is judged by its elapsed time, and a device or a load test by its own figures.
    let is_load = header.db_time_ns.is_none() && !record.measures.is_empty() && record.imported.is_some();
    let has_basis = header.db_time_ns.is_some() || record.snoop.is_some() || is_load;
    let word = match findings.len() {
        0 if !has_basis => "NOT ASKED".to_string(),
        0 => "NO FINDINGS".to_string(),
        1 => "1 FINDING".to_string(),
        count => format!("{count} FINDINGS"),
    };
    let of = match (&record.imported, &record.snoop) {
        (Some(imported), _) => imported.file.clone(),
        (None, Some(snoop)) => snoop.target.clone(),
        (None, None) => header.workload.clone(),
    };
    let kind = record.imported.as_ref().map_or("", |imported| &imported.kind);
    let name = if header.workload.is_empty() { kind } else { &header.workload };
    let front = front(record, &of, is_load, has_basis);
    let lines = findings.iter().take(3).map(|finding| ("-".to_string(), finding.what.clone()));
    Document {
        title: format!("DIAGNOSIS  {name}"),
        answer: ReportAnswer {
            asked: of.clone(),
            found: findings.first().map_or_else(String::new, |finding| finding.what.clone()),
            advice: findings.first().map_or_else(String::new, crate::advice),
            ..ReportAnswer::default()
        },
        question: String::new(),
        running_head: format!("Diagnosis: {of}"),
        width: text::WIDTH,
        state: State {
            of: "Diagnosis".to_string(),
            word,
            tone: if findings.is_empty() && has_basis { Tone::Good } else { Tone::Open },
        },
        basis: String::new(),
        reasons: Vec::new(),
        headline: headline(record),
        sections: std::iter::once(front).chain(result::findings(record)).collect(),
        summary: Summary { subject: of.clone(), lines: lines.collect(), facts: Vec::new() },
        footer: format!("plumb {}", header.plumb_version),
        data: serde_json::to_string(findings).unwrap_or_else(|_| "null".to_string()),
    }
}

/// Returns the section with the interval, its times, and the basis of the rules.
fn front(record: &Record, of: &str, is_load: bool, has_basis: bool) -> Section {
    let header = &record.header;
    let mut facts = Facts::default();
    facts.add("Of", of);
    let interval = match header.elapsed_ns {
        0 => "not printed: shares, averages and sizes are judged without it".to_string(),
        elapsed_ns => format!("{} s", Seconds(elapsed_ns).figure()),
    };
    facts.add("Interval", interval);
    if let Some(db_time_ns) = header.db_time_ns {
        facts.add("DB time", format!("{} s", Seconds(db_time_ns).figure()));
        let cpu = header.db_cpu_ns.map(|ns| format!("{}%", Percent::of(ns, db_time_ns).figure()));
        facts.add("DB CPU of it", cpu.unwrap_or_else(|| "not known".to_string()));
    }
    let basis = match (is_load, &record.snoop) {
        (true, _) => "a rule fires if the figures of a device or a job meet its threshold",
        (false, Some(_)) => {
            "a rule fires if its share of the elapsed time passes the gate and its figure the threshold"
        }
        (false, None) => "a rule fires if its share of DB time passes the gate and its figure the threshold",
    };
    let front = Section::front("diagnosis", "Diagnosis").note(basis).facts(facts);
    match (record.findings.is_empty(), has_basis) {
        (true, true) => front.note("no rule fired"),
        (true, false) => front.note(NO_TIME),
        (false, _) => front,
    }
}

/// Returns the first lines of the page: the report's own words, where it has any.
fn headline(record: &Record) -> Vec<Headline> {
    match &record.snoop {
        None if record.imported.as_ref().is_some_and(|imported| !imported.answers.is_empty()) => {
            let answers = record.imported.iter().flat_map(|imported| &imported.answers);
            let own = answers.map(|answer| Headline {
                name: answer.name.clone(),
                value: answer.value.clone(),
                aside: answer.aside.clone(),
            });
            own.collect()
        }
        // Any program's calls have no DB time.
        Some(snoop) => crate::snoop::headline(snoop, Nanos(record.header.elapsed_ns)),
        None => head::headline(record),
    }
}
