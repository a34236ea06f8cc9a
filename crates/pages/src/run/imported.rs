//! The report of an import: the checks of another program's report, and its figures.
//!
//! The checks come first, because a reader should not trust a figure that contradicts others. The
//! sections of a run follow, if the record has them.

use super::{activity, events, io_stats, load, settings};
use plumb_record::{Consistency, Consistent, Imported, ImportedFigure, Record};
use plumb_report::format::{Figure, Reading};
use plumb_report::table::{Cell, Facts, Table, Tone};
use plumb_report::{Document, Headline, Section, State, Summary, cells, text};

/// Most checks that the report lists.
const CHECKS_MOST: usize = 60;
/// Most figures shown; derived ones come first.
const FIGURES_MOST: usize = 40;

/// Returns the report of an import without a record, because its interval is unknown.
#[must_use]
pub fn document(imported: &Imported, plumb_version: &str) -> Document {
    let data = serde_json::to_string(imported).unwrap_or_else(|_| "null".to_string());
    let mut document = page(imported, format!("IMPORTED {}", imported.kind.to_uppercase()), data);
    document.sections = own_sections(imported);
    document.footer = footer(plumb_version);
    document
}

/// Returns the report of an imported record.
pub(super) fn of_record(record: &Record, imported: &Imported) -> Document {
    let data = serde_json::to_string(record).unwrap_or_else(|_| "null".to_string());
    let mut document = page(imported, record.header.title.clone(), data);
    document.headline.extend(super::head::headline(record));
    document.sections = own_sections(imported);
    document.sections.extend(super::result::findings(record));
    let has_row = |section: &Section| {
        section
            .blocks
            .iter()
            .all(|block| !matches!(block, plumb_report::Block::Table(table) if table.rows.is_empty()))
    };
    let of_run = [
        Some(load::cache_sizes(record)).filter(|_| !record.memory.areas.is_empty()),
        Some(load::load_profile(record)),
        Some(events::top(record)).filter(|_| !record.foreground_events.is_empty()),
        load::host_cpu(record),
        Some(events::wait_classes(record)).filter(|_| !record.foreground_events.is_empty()),
        Some(events::foreground(record)),
        Some(events::background(record)),
        Some(activity::statistics(record)),
        Some(io_stats::functions(record)),
        io_stats::tablespaces(record),
        Some(io_stats::files(record)),
        Some(settings::settings(&record.settings, "init.ora Parameters", settings::DESCRIPTION_WIDTH)),
    ];
    document.sections.extend(of_run.into_iter().flatten().filter(has_row));
    document.footer = footer(&record.header.plumb_version);
    document
}

fn footer(plumb_version: &str) -> String {
    format!("plumb {plumb_version}. Figures of another program, as it printed them.")
}

/// Returns the number of checks with an outcome.
fn count(imported: &Imported, outcome: Consistent) -> u64 {
    let of = |tally: &plumb_record::ConsistencyTally| match outcome {
        Consistent::Holds => tally.held,
        Consistent::Fails => tally.failed,
        Consistent::Impossible => tally.impossible,
        Consistent::NotAsked => tally.not_asked,
    };
    imported.tallies.iter().map(of).sum()
}

fn page(imported: &Imported, title: String, data: String) -> Document {
    let [held, failed, impossible] = [Consistent::Holds, Consistent::Fails, Consistent::Impossible]
        .map(|outcome| count(imported, outcome));
    let asked = held + failed + impossible;
    let (word, tone) = match (impossible, failed, asked) {
        (1.., ..) => ("IMPOSSIBLE", Tone::Bad),
        (0, 1.., _) => ("DOES NOT ADD UP", Tone::Bad),
        (0, 0, 0) => ("NOT CHECKED", Tone::Open),
        (0, 0, _) => ("ADDS UP", Tone::Good),
    };
    let not_asked = count(imported, Consistent::NotAsked);
    let basis = format!("{held} of {asked} of its own checks held, {not_asked} lack a figure");
    let headline = vec![Headline {
        name: "Its own checks".to_string(),
        value: format!("{held} of {asked} held"),
        aside: format!("{failed} contradictions, {impossible} impossible"),
    }];
    let reason = |check: &Consistency| format!("{}: {}", check.of, said(check));
    let reasons =
        imported.checks.iter().filter(|check| check.outcome == Consistent::Impossible).take(3).map(reason);
    let facts = [("File", imported.file.clone()), ("Kind", imported.kind.clone()), ("Checks", basis.clone())];
    Document {
        title,
        question: String::new(),
        running_head: format!("Import: {} line {}", imported.file, imported.line),
        width: text::WIDTH,
        state: State { of: "Import".to_string(), word: word.to_string(), tone },
        basis,
        reasons: reasons.collect(),
        headline,
        sections: Vec::new(),
        summary: Summary {
            subject: imported.file.clone(),
            lines: Vec::new(),
            facts: facts.map(|(name, value)| (name.to_string(), value)).to_vec(),
        },
        footer: String::new(),
        data,
    }
}

fn own_sections(imported: &Imported) -> Vec<Section> {
    let mut sections = vec![origin(imported), tallies(imported)];
    sections.extend(failures(imported));
    sections.extend(figures(imported));
    sections
}

fn origin(imported: &Imported) -> Section {
    let mut facts = Facts::default();
    facts.add("File", &imported.file);
    facts.add("SHA-256", &imported.sha256);
    facts.add("Kind", format!("{}, from line {}", imported.kind, imported.line));
    let known = imported.sections.iter().filter(|section| section.known).count();
    let all = imported.sections.len();
    facts.add("Sections", format!("{all} read, {known} of them with known columns"));
    facts.add("Not understood", format!("{} lines", imported.unread));
    if let Some(line) = imported.cut_after {
        facts.add("Cut short", format!("after line {line}"));
    }
    let mut table = Table::default().text(["Fact"]).wrapped("As printed", 60).numbers(["Line"]);
    for fact in &imported.facts {
        table.row(cells![&fact.name, &fact.text, fact.line.to_string()]);
    }
    let section = Section::front("import", "Import").facts(facts);
    if table.rows.is_empty() { section } else { section.table(table) }
}

fn tallies(imported: &Imported) -> Section {
    let mut table =
        Table::default().wrapped("Check", 44).numbers(["Held", "Failed", "Impossible", "Lack a\nfigure"]);
    for tally in &imported.tallies {
        let number = |count: u64| if count == 0 { String::new() } else { count.to_string() };
        let bad = |count: u64| {
            Cell::from(number(count)).with_tone(if count == 0 { Tone::Plain } else { Tone::Bad })
        };
        table.row(cells![
            &tally.name,
            number(tally.held),
            bad(tally.failed),
            bad(tally.impossible),
            number(tally.not_asked)
        ]);
    }
    Section::front("checks", "Does It Add Up?")
        .note("both sides of a check are intervals: the values that print as the report has them; it holds if they meet")
        .table(table)
}

const KB: f64 = 1024.0;
const MB: f64 = 1024.0 * KB;
const GB: f64 = 1024.0 * MB;

/// Formats a value in a unit that suits its size.
fn scaled(value: f64, unit: &str) -> String {
    let (factor, unit) = match (unit, value.abs()) {
        ("s", size) if size < 1e-3 => (1e6, "us"),
        ("s", size) if size < 1.0 => (1e3, "ms"),
        // Reports, and the rest of this one, have multiples of 1024.
        ("bytes", size) if size >= GB => (1.0 / GB, "GB"),
        ("bytes", size) if size >= MB => (1.0 / MB, "MB"),
        ("bytes", size) if size >= 10.0 * KB => (1.0 / KB, "KB"),
        ("bytes/s", size) if size >= GB => (1.0 / GB, "GB/s"),
        ("bytes/s", size) if size >= MB => (1.0 / MB, "MB/s"),
        (unit, _) => (1.0, unit),
    };
    format!("{} {unit}", Reading(value * factor).figure()).trim_end().to_string()
}

/// Formats an interval, or one value if both ends print the same.
fn interval(ends: Option<[f64; 2]>, unit: &str) -> String {
    let Some([low, high]) = ends else { return String::new() };
    match (scaled(low, unit), scaled(high, unit)) {
        (low, high) if low == high => low,
        (low, _) if high >= f64::MAX / 2.0 => format!("{low} and more"),
        (low, high) => format!("{low} to {high}"),
    }
}

fn said(check: &Consistency) -> String {
    let [expected, found] = [check.expected, check.found].map(|ends| interval(ends, &check.unit));
    let note = if check.note.is_empty() { String::new() } else { format!("; {}", check.note) };
    format!("found {found}, expected {expected}{note}")
}

/// Formats the figures of a check with their lines.
fn used(figures: &[ImportedFigure]) -> String {
    let shown: Vec<String> =
        figures.iter().map(|figure| format!("{} (line {})", figure.text, figure.line)).collect();
    shown.join(", ")
}

fn failures(imported: &Imported) -> Option<Section> {
    let mut table = Table::default()
        .wrapped("Check", 24)
        .wrapped("Of", 22)
        .wrapped("Expected", 20)
        .wrapped("Found", 20)
        .wrapped("Figures", 34)
        .wrapped("Note", 30);
    for check in imported.checks.iter().take(CHECKS_MOST) {
        let [expected, found] = [check.expected, check.found].map(|ends| interval(ends, &check.unit));
        let found =
            if check.outcome == Consistent::Impossible { format!("IMPOSSIBLE: {found}") } else { found };
        table.row(cells![
            &check.name,
            &check.of,
            expected,
            Cell::from(found).with_tone(Tone::Bad),
            used(&check.figures),
            &check.note
        ]);
    }
    let left = imported.checks.len().saturating_sub(CHECKS_MOST);
    let left = if left > 0 { format!("{left} more are in the record") } else { String::new() };
    (!table.rows.is_empty())
        .then(|| Section::front("contradictions", "Contradictions").note(left).table(table))
}

/// Returns the section of derived figures.
fn figures(imported: &Imported) -> Option<Section> {
    let mut table = Table::default()
        .wrapped("Figure", 50)
        .numbers(["Value"])
        .wrapped("Between", 30)
        .wrapped("From", 40)
        .numbers(["Line"]);
    let derived = imported.figures.iter().filter(|figure| {
        figure.text.contains(" / ") || figure.text.ends_with("derived") || figure.text.contains(" blocks")
    });
    for figure in derived.take(FIGURES_MOST) {
        table.row(cells![
            &figure.name,
            scaled(figure.value, &figure.unit),
            interval(Some([figure.low, figure.high]), &figure.unit),
            &figure.text,
            figure.line.to_string()
        ]);
    }
    (!table.rows.is_empty()).then(|| Section::front("derived", "What Follows").table(table))
}
