//! Lists and documentation pages, from the tables they describe.

use crate::arguments::{Arguments, Page};
use clap::CommandFactory;
use plumb_engine::Setting;
use plumb_events::{Event, IoStream, Statistic, Unit};
use plumb_findings::MissedPath;

/// Renders a generated page of the documentation.
#[must_use]
pub fn render(page: Page) -> String {
    match page {
        Page::Settings => settings_page(),
        Page::Events => events_page(),
        Page::Rules => rules_page(),
    }
}

/// Returns the manual page of the program, with a section for each command.
#[must_use]
pub fn manual() -> String {
    let command = Arguments::command();
    let mut page = Vec::new();
    let man = clap_mangen::Man::new(command.clone());
    // Writing to memory cannot fail.
    let _ = man.render_title(&mut page);
    let _ = man.render_name_section(&mut page);
    let _ = man.render_synopsis_section(&mut page);
    let _ = man.render_description_section(&mut page);
    page.extend(b".SH COMMANDS\n");
    let shown = || command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set());
    for subcommand in shown() {
        let about = subcommand.get_about().map(ToString::to_string).unwrap_or_default();
        page.extend(format!(".TP\n\\fB{}\\fR\n{}\n", subcommand.get_name(), roff(&about)).as_bytes());
    }
    for subcommand in shown() {
        let title = format!("plumb {}", subcommand.get_name());
        page.extend(format!(".SH {}\n", title.to_uppercase()).as_bytes());
        let man = clap_mangen::Man::new(subcommand.clone().bin_name(title));
        let _ = man.render_synopsis_section(&mut page);
        let _ = man.render_description_section(&mut page);
        let _ = man.render_options_section(&mut page);
        let _ = man.render_extra_section(&mut page);
    }
    let _ = man.render_extra_section(&mut page);
    let _ = man.render_version_section(&mut page);
    String::from_utf8_lossy(&page).into_owned()
}

/// Escapes a text for roff.
fn roff(text: &str) -> String {
    let escaped = text.replace('\\', "\\e").replace('-', "\\-");
    if escaped.starts_with(['.', '\'']) { format!("\\&{escaped}") } else { escaped }
}

/// Returns the settings shown in lists.
fn shown_settings() -> impl Iterator<Item = &'static Setting> {
    Setting::ALL.iter().filter(|setting| !setting.row().is_hidden())
}

/// Returns the settings in columns, after a head.
#[must_use]
pub fn settings_list() -> Vec<Vec<String>> {
    let head = ["NAME", "GROUP", "DEFAULT", "TAKES", "HELP"].map(String::from).to_vec();
    let rows = shown_settings().map(|setting| {
        let row = setting.row();
        let takes = row.domain.describe();
        [row.name, row.group.name(), row.default, takes.as_str(), row.help].map(String::from).to_vec()
    });
    std::iter::once(head).chain(rows).collect()
}

/// Returns the wait events in columns, after a head.
#[must_use]
pub fn events_list() -> Vec<Vec<String>> {
    let head = ["EVENT", "CLASS", "WAITS FOR"].map(String::from).to_vec();
    let rows = Event::ALL
        .iter()
        .map(|event| [event.name(), event.class().name(), event.sentence()].map(String::from).to_vec());
    std::iter::once(head).chain(rows).collect()
}

/// Returns the statistics in columns, after a head.
#[must_use]
pub fn statistics_list() -> Vec<Vec<String>> {
    let head = ["STATISTIC", "UNIT", "COUNTS"].map(String::from).to_vec();
    let rows = Statistic::ALL.iter().map(|statistic| {
        [statistic.name(), unit(statistic.unit()), statistic.sentence()].map(String::from).to_vec()
    });
    std::iter::once(head).chain(rows).collect()
}

/// The rules of findings in columns, a head first.
#[must_use]
pub fn rules_list() -> Vec<Vec<String>> {
    let head = ["RULE", "SIGNAL", "THRESHOLD", "ORIGIN", "MAY MISLEAD", "ADVICE"].map(String::from).to_vec();
    let rows = plumb_findings::rules().map(|rule| {
        let cells = [rule.id, rule.signal, rule.threshold, rule.origin, rule.caveat, rule.advice];
        cells.map(String::from).to_vec()
    });
    std::iter::once(head).chain(rows).collect()
}

/// The reasons for which a faster path is not taken, in columns, a head first.
#[must_use]
pub fn reasons_list() -> Vec<Vec<String>> {
    let head = ["PATH", "NOT TAKEN BECAUSE", "WOULD CHANGE IT"].map(String::from).to_vec();
    let rows = plumb_findings::REASONS.iter();
    let rows = rows.map(|reason| [reason.path, reason.reason, reason.cure].map(String::from).to_vec());
    std::iter::once(head).chain(rows).collect()
}

fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Count => "count",
        Unit::Bytes => "bytes",
    }
}

fn settings_page() -> String {
    let mut page = String::from(
        "# Settings\n\n\
         For users of a setting: `--set name=value`, or a factor of a study.\n\n\
         Sizes take K, M, G, T and P (powers of 1024), counts K, M and G (powers of 1000). A value out of\n\
         range is refused with the range. The receipts of a run say what each setting did. This page is\n\
         generated from `crates/engine/src/settings/table.rs`.\n",
    );
    let mut group = None;
    for setting in shown_settings() {
        let row = setting.row();
        if group != Some(row.group) {
            group = Some(row.group);
            page.push_str(&format!("\n## {}\n\n", row.group.name()));
        }
        let (default, takes) =
            (if row.default.is_empty() { "none" } else { row.default }, row.domain.describe());
        page.push_str(&entry(&format!("`{}` (default {default}; {takes}): {}", row.name, row.help)));
    }
    page
}

fn events_page() -> String {
    let mut page = String::from(
        "# Wait events, statistics and I/O streams\n\n\
         For readers of a report: each name in it. Names are Oracle's where Oracle has one. This page is\n\
         generated from `crates/events/src/table.rs`.\n\n\
         ## Wait events\n\n\
         DB time is the CPU and the non-idle waits of foreground sessions. CPU used inside a wait belongs to\n\
         the wait. For each session, elapsed = CPU + waits + idle waits + run queue + unaccounted.\n\n",
    );
    for event in Event::ALL {
        page.push_str(&entry(&format!(
            "`{}` ({}): {}",
            event.name(),
            event.class().name(),
            event.sentence()
        )));
    }
    page.push_str("\n## Statistics\n\n");
    for statistic in Statistic::ALL {
        page.push_str(&entry(&format!("`{}`: {}", statistic.name(), statistic.sentence())));
    }
    page.push_str(
        "\n## I/O streams\n\nThe parts of IOStat by Function, with the function and the type of file of each, and the lines of\n\
         the I/O profile. Writes of a database writer are DBWR's, whatever the stream.\n\n\
         The service time of a request begins at the call of the kernel. It ends when that returns (`sync`,\n\
         `threads`), or when the session sees the completion (`io_uring`; reports say \"seen after\").\n\n",
    );
    for stream in IoStream::ALL {
        page.push_str(&entry(&format!(
            "`{}` ({}, {}): {}",
            stream.name(),
            stream.function().name(),
            stream.file_type().name(),
            stream.sentence()
        )));
    }
    page
}

fn rules_page() -> String {
    let mut page = String::from(
        "# Findings: the rules\n\n\
         For readers of a finding: each rule, its threshold and where that comes from. A report orders\n\
         findings by the DB time that could be saved at most, after doubts about the figures, each with\n\
         its arithmetic. Savings overlap and do not add up. A setting is advised only if the workload\n\
         uses it. This page is generated from `crates/findings/src/rules`.\n\n",
    );
    for rule in plumb_findings::rules() {
        let caveat =
            if rule.caveat.is_empty() { String::new() } else { format!(" It may mislead: {}.", rule.caveat) };
        let advice =
            if rule.advice.is_empty() { String::new() } else { format!(" Advice: {}.", rule.advice) };
        page.push_str(&entry(&format!(
            "**{}** {}: {} ({}).{caveat}{advice}",
            rule.id, rule.signal, rule.threshold, rule.origin
        )));
    }
    page.push_str("\n## Faster paths that are not taken\n\n");
    for reason in plumb_findings::REASONS {
        let MissedPath { path, reason, cure, .. } = reason;
        page.push_str(&entry(&format!("{path}: {reason}; {cure} would change it.")));
    }
    page
}

/// Returns an entry of a list, in lines of at most 100 columns.
fn entry(text: &str) -> String {
    format!("- {}\n", plumb_report::text::wrap(text, 98).join("\n  "))
}
