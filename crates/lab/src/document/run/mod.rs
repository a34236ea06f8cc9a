//! The report of a run.
//!
//! Two pictures stand under the headline: where the time went, and the I/O profile. Behind them the order is that of an
//! AWR report: first what ran and on what, then the
//! cache sizes and the load profile, the top events, the time model, waits by
//! class, by event and by length, the instance activity, I/O by function and by
//! file, the sort, and last the parameters. Two things stand before what AWR
//! has: the devices with their calibration, since no throughput means anything
//! without its limit, and the verification with the receipts, since no time
//! means anything without them.

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
mod summary;
mod time;

pub(super) use device::{devices_of, facts as device_facts, in_one_line as device_line};
pub(super) use events::{TopEvent, top_events};
pub(super) use io::moved;
pub(super) use result::findings_table;
pub(super) use settings::settings as settings_section;

use crate::record::{Record, Validity};
use plumb_report::{Document, Section, State, text};

/// What a run's report says.
#[must_use]
pub fn document(context: &Record) -> Document {
    let header = &context.header;
    let Validity { state, basis, reasons } = context.validity();
    Document {
        title: header.title.clone(),
        question: String::new(),
        running_head: format!(
            "Run: {}/{}  Host: {}",
            header.workload, header.settings_hash, header.host.name
        ),
        width: text::WIDTH,
        state: State { of: "Run", word: state.word().to_string(), tone: state.tone() },
        basis,
        reasons,
        headline: head::headline(context),
        sections: sections(context),
        summary: summary::summary(context),
        footer: format!(
            "plumb {}, record schema {}. The record of this run is embedded in this file \
             as JSON. Plot by uPlot (MIT licence, Leon Sorokin).",
            header.plumb_version, context.schema_version
        ),
        data: serde_json::to_string(context).unwrap_or_else(|_| "null".to_string()),
    }
}

fn sections(context: &Record) -> Vec<Section> {
    let mut sections = Vec::from_iter(time::parts(context));
    sections.extend(io::profile(context));
    sections.push(head::run(context));
    sections.push(device::devices(&context.devices));
    sections.extend(device::calibration(context));
    sections.push(result::verification(context));
    sections.push(result::receipts(context));
    sections.extend(result::findings(context));
    sections.push(load::cache_sizes(context));
    sections.push(load::load_profile(context));
    sections.push(events::top(context));
    sections.extend(io::streams(context));
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

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;
