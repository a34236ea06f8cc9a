//! Lists from the tables that they describe, and the manual page.

use crate::arguments::Arguments;
use clap::CommandFactory;
use plumb_events::{IoStream, Statistic, Unit};

/// Returns the manual page of the program, with a section for each command.
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

/// Returns the statistics in columns, after a head.
pub fn statistics_list() -> Vec<Vec<String>> {
    let head = ["STATISTIC", "UNIT", "COUNTS"].map(String::from).to_vec();
    let rows = Statistic::ALL.iter().map(|statistic| {
        [statistic.name(), unit(statistic.unit()), statistic.sentence()].map(String::from).to_vec()
    });
    std::iter::once(head).chain(rows).collect()
}

/// Returns the I/O streams in columns, after a head.
pub fn streams_list() -> Vec<Vec<String>> {
    let head = ["STREAM", "FUNCTION", "FILE TYPE", "MOVES"].map(String::from).to_vec();
    let rows = IoStream::ALL.iter().map(|stream| {
        [stream.name(), stream.function().name(), stream.file_type().name(), stream.sentence()]
            .map(String::from)
            .to_vec()
    });
    std::iter::once(head).chain(rows).collect()
}

/// Returns the rules of findings in columns, after a head.
pub fn rules_list() -> Vec<Vec<String>> {
    let head = ["RULE", "SIGNAL", "THRESHOLD", "ORIGIN", "MAY MISLEAD", "ADVICE"].map(String::from).to_vec();
    let rows = plumb_findings::rules().map(|rule| {
        let cells = [rule.id, rule.signal, rule.threshold, rule.origin, rule.caveat, rule.advice];
        cells.map(String::from).to_vec()
    });
    std::iter::once(head).chain(rows).collect()
}

/// Returns the reasons for which a faster path is not taken, in columns, after a head.
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
