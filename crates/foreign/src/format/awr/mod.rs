//! AWR and Statspack reports, as text and as HTML, single, global and of two periods.
//!
//! A report is recognised by its first line or its title. `sections.toml` describes the sections as
//! data; `head` reads the facts of the run from the first tables; `text` and `page` make sheets.
//!
//! Limits: releases 10.2, 21c and 23ai and HTML of two periods are untested, because no sample was
//! available.

mod checks;
mod derived;
mod events;
mod fill;
mod fragment;
mod head;
mod page;
pub mod signals;
mod text;

use crate::reader::{self, Begins, Fill, Reader};
use crate::report::Report;
use crate::source::SourcePart;

/// Returns the release, or the form, of a report that no sample was available of.
#[must_use]
pub fn untried(report: &Report) -> Option<String> {
    const RELEASES: [&str; 3] = ["10.2.", "21.", "23."];
    let is_server = report.kind.starts_with("AWR") || report.kind.starts_with("Statspack");
    if report.kind == "AWR page" && report.sheet("compared_databases").is_some() {
        return Some("HTML of two periods".to_string());
    }
    let release = report.facts.iter().find(|fact| fact.name == "Release").filter(|_| is_server)?;
    let is_untried = RELEASES.iter().any(|untried| release.text.starts_with(untried));
    is_untried.then(|| format!("release {}", release.text))
}

/// A reader of this family: they differ in how a report begins and in its form.
const fn reader(kind: &'static str, begins: Begins, read: fn(&SourcePart<'_>) -> Report) -> Reader {
    let reader = Reader::new(kind, begins, read).checked(checks::checks);
    reader.filling(derived::figures, Fill::OfPeriod(fill::fill))
}

/// The readers of this family of reports.
pub const READERS: [Reader; 5] = [
    reader(
        "AWR compare periods report",
        Begins::Line(|line| line.contains("WORKLOAD REPOSITORY COMPARE PERIOD REPORT")),
        text::read,
    ),
    reader(
        "AWR global report",
        Begins::Line(|line| line.contains("WORKLOAD REPOSITORY REPORT (RAC)")),
        text::read,
    ),
    reader(
        "AWR report",
        Begins::Line(|line| {
            let line = line.trim_start();
            line.starts_with("WORKLOAD REPOSITORY report for")
                || line.starts_with("WORKLOAD REPOSITORY PDB report")
        }),
        text::read,
    ),
    reader(
        "Statspack report",
        Begins::Line(|line| {
            let line = line.trim_start();
            line.starts_with("STATSPACK report for") || line.starts_with("STATSPACK Statistics Report for")
        }),
        text::read,
    ),
    reader(
        "AWR page",
        Begins::Page(|head| head.contains("<title>awr") || head.contains("workload repository")),
        page::read,
    ),
];

/// The readers of tables that were cut out of reports, which are asked after all others.
pub const PASTED: [Reader; 2] = [
    reader(reader::PASTED, Begins::Fragments(fragment::begins), fragment::read),
    reader(reader::PASTED, Begins::Script(|page| page.contains("<td")), fragment::read_page),
];
