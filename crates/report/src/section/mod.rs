//! The report's sections in the order a DBA reads them, each declared once.
//!
//! The order is that of an AWR report: first what ran and on what, then the
//! cache sizes and the load profile, the top events, the time model, waits by
//! class, by event and by length, the instance activity, I/O by function and by
//! file, the sort, and last the parameters. Two things stand before what AWR
//! has: the devices with their calibration, since no throughput means anything
//! without its limit, and the verification with the receipts, since no time
//! means anything without them.
//!
//! A section is notes and blocks; a block is a table, a list of facts or a
//! chart. How these look is the renderers' business. The reports of studies and of
//! comparisons declare sections of the same kind (`study/section`, `compare/section`).

mod activity;
mod device;
mod events;
mod head;
mod histogram;
mod io;
mod load;
mod result;
mod settings;
mod sort;
mod time;

pub(crate) use device::{devices_of, facts as device_facts, in_one_line as device_line};
pub(crate) use events::{TopEvent, top_events};
pub(crate) use head::{Headline, Masthead, headline, masthead};
pub(crate) use result::findings_table;
pub(crate) use settings::settings as settings_section;
pub(crate) use time::unaccounted;

use crate::ReportContext;
use crate::profile::{Chart, PairChart};
use crate::study::OrderPlot;
use crate::table::{Facts, Table};

/// What stands in place of a table without rows.
pub(crate) const NO_DATA: &str = "No data exists for this section of the report.";

/// How a section is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Setting {
    /// On the first page: the title underlined with tildes.
    Front,
    /// Behind it: the title with the run's name beside it, a ruler at the end.
    Detail,
}

/// A part of a section.
#[derive(Debug, Clone)]
pub(crate) enum Block {
    /// A table.
    Table(Table),
    /// Names and values.
    Facts(Facts),
    /// The I/O profile.
    Profile(Chart),
    /// The I/O profiles of two runs on the same axes.
    Pair(PairChart),
    /// Every run of a study in order of execution.
    Order(OrderPlot),
}

/// A section.
#[derive(Debug, Clone)]
pub(crate) struct Section {
    /// Its anchor, unique in the report.
    pub id: &'static str,
    /// Its title.
    pub title: String,
    /// How it is set.
    pub setting: Setting,
    /// What a reader must know of the columns, one sentence each.
    pub notes: Vec<String>,
    /// Its parts.
    pub blocks: Vec<Block>,
}

impl Section {
    pub(crate) fn front(id: &'static str, title: impl Into<String>) -> Section {
        let title = title.into();
        Section { id, title, setting: Setting::Front, notes: Vec::new(), blocks: Vec::new() }
    }

    pub(crate) fn detail(id: &'static str, title: impl Into<String>) -> Section {
        Section { setting: Setting::Detail, ..Section::front(id, title) }
    }

    pub(crate) fn note(mut self, note: impl Into<String>) -> Section {
        self.notes.push(note.into());
        self
    }

    pub(crate) fn table(mut self, table: Table) -> Section {
        self.blocks.push(Block::Table(table));
        self
    }

    pub(crate) fn facts(mut self, facts: Facts) -> Section {
        self.blocks.push(Block::Facts(facts));
        self
    }
}

/// All sections of a report.
pub(crate) fn sections(context: &ReportContext) -> Vec<Section> {
    let mut sections = vec![head::run(context)];
    sections.push(device::devices(&context.devices));
    sections.extend(device::calibration(context));
    sections.push(result::verification(context));
    sections.push(result::receipts(context));
    sections.extend(result::findings(context));
    sections.push(load::cache_sizes(context));
    sections.push(load::load_profile(context));
    sections.push(events::top(context));
    sections.extend(io::profile(context));
    sections.extend(load::host_cpu(context));
    sections.push(time::time_model(context));
    sections.push(events::wait_classes(context));
    sections.push(events::foreground(context));
    sections.push(events::background(context));
    sections.extend(histogram::histograms(context));
    sections.push(activity::statistics(context));
    sections.push(io::functions(context));
    sections.push(io::files(context));
    sections.extend(sort::sort(context));
    sections.push(settings::settings(&context.settings, "init.ora Parameters", settings::DESCRIPTION_WIDTH));
    sections
}
