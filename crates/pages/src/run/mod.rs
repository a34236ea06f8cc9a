//! The report of a run.
//!
//! The findings and the parts of the time follow the headline. The order after them is that of an
//! AWR report. Workload and machine come first, then cache sizes and load profile, top events, the
//! I/O profile and the time model. Waits follow by class, by event and by length, then instance
//! activity, I/O by function, type of file, tablespace and file, buffer pools, the sort, and the
//! parameters. Two parts that AWR lacks are inserted after the machine. Devices come with their
//! calibration, because throughput needs a limit to compare with. Verification and receipts follow,
//! because no time means anything without them.

mod activity;
mod answer;
mod beside;
mod device;
pub mod diagnosis;
mod events;
mod head;
mod histogram;
mod io;
mod io_stats;
mod latency;
mod load;
mod log;
mod result;
mod scan;
mod session;
mod settings;
mod snapshots;
mod sort;
mod summary;
mod time;
mod users;
mod waited_io;
mod work;

pub(super) use device::{devices_of, facts as device_facts, in_one_line as device_line};
pub(super) use events::{TopEvent, top_events};
pub(super) use io::moved;
pub use result::findings;
pub(super) use result::findings_table;
pub(super) use settings::settings as settings_section;

use plumb_record::{Record, Validity};
use plumb_report::{Document, Section, State, text};

/// Builds the report of a run.
pub fn document(record: &Record) -> Document {
    if let Some(snoop) = &record.snoop {
        return super::snoop::of_record(record, snoop);
    }
    let header = &record.header;
    let validity = record.validity();
    let state =
        State { of: "Run".to_string(), word: validity.words(), tone: super::tone_of_validity(&validity) };
    let Validity { basis, reasons, .. } = validity;
    Document {
        title: header.title.clone(),
        answer: answer::answer(record),
        question: String::new(),
        running_head: format!(
            "Run: {}/{}  Host: {}",
            header.workload, header.settings_hash, header.host.name
        ),
        width: text::WIDTH,
        state,
        basis,
        reasons,
        headline: head::headline(record),
        sections: sections(record),
        summary: summary::summary(record),
        footer: format!(
            "plumb {}, record schema {}. The record of this run is embedded in this file \
             as JSON. Plot by uPlot (MIT licence, Leon Sorokin).",
            header.plumb_version, record.schema_version
        ),
        data: serde_json::to_string(record).unwrap_or_else(|_| "null".to_string()),
    }
}

fn sections(record: &Record) -> Vec<Section> {
    let mut sections = Vec::from_iter(result::findings(record));
    sections.extend(time::parts(record));
    sections.push(head::run(record));
    sections.push(device::devices(&record.devices));
    sections.extend(device::calibration(record));
    sections.push(result::verification(record));
    sections.push(result::receipts(record));
    sections.push(load::cache_sizes(record));
    sections.push(load::load_profile(record));
    sections.extend(scan::scan(record));
    sections.extend(users::users(record));
    sections.extend(latency::responses(record));
    sections.push(events::top(record));
    sections.extend(io::profile(record));
    sections.extend(io::streams(record));
    sections.extend(load::host_cpu(record));
    sections.extend(beside::section(record));
    sections.extend(snapshots::section(record));
    sections.push(time::time_model(record));
    sections.push(events::wait_classes(record));
    sections.push(events::foreground(record));
    sections.push(events::background(record));
    sections.extend(latency::waits(record));
    sections.extend(histogram::histograms(record));
    sections.push(activity::statistics(record));
    sections.extend(session::waits(record));
    sections.extend(session::statistics(record));
    sections.push(io_stats::functions(record));
    sections.extend(io_stats::file_types(record));
    sections.extend(io_stats::tablespaces(record));
    sections.push(io_stats::files(record));
    sections.extend(io_stats::pools(record));
    sections.extend(io_stats::shapes(record));
    sections.extend(log::log(record));
    sections.extend(log::trace(record));
    sections.extend(sort::sort(record));
    sections.extend(result::paths_not_taken(record));
    sections.extend(settings::parameters(&record.parameters));
    sections.push(settings::settings(&record.settings, "init.ora Parameters", settings::DESCRIPTION_WIDTH));
    sections
}

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;
