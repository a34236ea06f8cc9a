//! AWR and Statspack reports, as text and as HTML, single, global and of two periods.
//!
//! A report is recognised by its first line or its title. `sections` describes the sections as
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
pub mod sections;
pub mod signals;
mod text;

use crate::reader::{self, Begins, Fill, Reader};
use crate::report::Report;

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

/// The readers of this family of reports.
pub const READERS: [Reader; 5] = [
    Reader {
        kind: "AWR compare periods report",
        begins: Begins::Line(|line| line.contains("WORKLOAD REPOSITORY COMPARE PERIOD REPORT")),
        read: text::read,
        check: checks::checks,
        derive: derived::figures,
        fill: Fill::OfPeriod(fill::fill),
    },
    Reader {
        kind: "AWR global report",
        begins: Begins::Line(|line| line.contains("WORKLOAD REPOSITORY REPORT (RAC)")),
        read: text::read,
        check: checks::checks,
        derive: derived::figures,
        fill: Fill::OfPeriod(fill::fill),
    },
    Reader {
        kind: "AWR report",
        begins: Begins::Line(|line| {
            let line = line.trim_start();
            line.starts_with("WORKLOAD REPOSITORY report for")
                || line.starts_with("WORKLOAD REPOSITORY PDB report")
        }),
        read: text::read,
        check: checks::checks,
        derive: derived::figures,
        fill: Fill::OfPeriod(fill::fill),
    },
    Reader {
        kind: "Statspack report",
        begins: Begins::Line(|line| {
            let line = line.trim_start();
            line.starts_with("STATSPACK report for") || line.starts_with("STATSPACK Statistics Report for")
        }),
        read: text::read,
        check: checks::checks,
        derive: derived::figures,
        fill: Fill::OfPeriod(fill::fill),
    },
    Reader {
        kind: "AWR page",
        begins: Begins::Page(|head| head.contains("<title>awr") || head.contains("workload repository")),
        read: page::read,
        check: checks::checks,
        derive: derived::figures,
        fill: Fill::OfPeriod(fill::fill),
    },
];

/// The readers of tables that were cut out of reports, which are asked after all others.
pub const PASTED: [Reader; 2] = [
    Reader {
        kind: reader::PASTED,
        begins: Begins::Fragments(fragment::begins),
        read: fragment::read,
        check: checks::checks,
        derive: derived::figures,
        fill: Fill::OfPeriod(fill::fill),
    },
    Reader {
        kind: reader::PASTED,
        begins: Begins::Script(|page| page.contains("<td")),
        read: fragment::read_page,
        check: checks::checks,
        derive: derived::figures,
        fill: Fill::OfPeriod(fill::fill),
    },
];
