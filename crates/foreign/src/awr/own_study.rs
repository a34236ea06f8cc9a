//! This program's own reports of studies, as text, HTML and Markdown.
//!
//! A study is many runs, so its record has neither events nor statistics: the medians, the least
//! and the most of each arm, and the change by each claim, are its measures. The verdicts are facts
//! of the head. Two imported studies are compared by these. All other tables are read as they are
//! headed.
//!
//! Limits: single runs and device readings are in the bundle, which `plumb compare` takes.

use super::own_sections::seconds;
use super::{page, text};
use crate::figure::FigureUnit;
use crate::markdown;
use crate::report::{ImportedRun, Report};
use crate::sheet::{Cell, Figure, Known, Printed, Section, Sheet, SheetRow, plain};
use crate::source::SourcePart;
use plumb_record::ImportedFigure;

/// Start of the title; the study's name, a colon and its title follow.
const TITLE: &str = "PLUMB STUDY REPORT";
const VERDICTS: &str = "study_verdicts";
const EFFECTS: &str = "study_effects";
const ARMS: &str = "study_arms";
/// Heading of the facts of the whole study.
const HEAD: &str = "Question";

const fn column(key: &'static str, unit: FigureUnit, headings: &'static [&'static str]) -> Known {
    Known { key, unit, headings }
}

static SECTIONS: [Section; 3] = [
    Section {
        key: EFFECTS,
        headings: &["Effects of the Claims"],
        first: &[],
        columns: &[
            column("claim", FigureUnit::TEXT, &["Claim"]),
            column("change", FigureUnit::PERCENT, &["Change"]),
            column("interval", FigureUnit::TEXT, &["Interval"]),
            column("verdict", FigureUnit::TEXT, &["Verdict"]),
        ],
    },
    Section {
        key: VERDICTS,
        headings: &["Verdicts"],
        first: &[],
        columns: &[
            column("number", FigureUnit::TEXT, &["#"]),
            column("verdict", FigureUnit::TEXT, &["Verdict"]),
            column("claimed", FigureUnit::TEXT, &["What was claimed before the run"]),
            column("outcome", FigureUnit::TEXT, &["Claim"]),
        ],
    },
    Section {
        key: ARMS,
        headings: &["Arms"],
        first: &[],
        columns: &[
            column("number", FigureUnit::TEXT, &["#"]),
            column("arm", FigureUnit::TEXT, &["Arm"]),
            column("declared", FigureUnit::BYTES, &["Declared memory"]),
            column("peak", FigureUnit::BYTES, &["Peak memory"]),
        ],
    },
];

/// True of the first line of such a report.
pub fn begins(line: &str) -> bool {
    line.trim_start_matches("# ").starts_with(TITLE)
}

pub fn of_text(part: &SourcePart<'_>) -> Report {
    let lines: Vec<(u32, &str)> = part.lines().collect();
    let is_markdown = part.text.starts_with('#');
    let report = if is_markdown {
        let tables = markdown::tables(&lines).into_iter().filter(|table| !table.rows.is_empty());
        Report { sheets: tables.map(text::sheet).collect(), ..Report::default() }
    } else {
        text::read(part)
    };
    // In Markdown the question stands between the title and the state.
    let mark = if is_markdown { "**" } else { "" };
    let state = lines.iter().skip(1).find(|(_, line)| !line.is_empty() && line.starts_with(mark));
    let state = state.map_or("", |(_, line)| line).replace('*', "");
    let (line, title) = lines.first().copied().unwrap_or_default();
    let facts = if is_markdown { named(&report) } else { below_heading(&lines) };
    // Markdown escapes the marks in a name.
    settled(report, line, [&title.replace('\\', ""), &state], facts)
}

pub fn of_page(part: &SourcePart<'_>) -> Report {
    let between = |begin: &str, end: &str| {
        let (_, behind) = part.text.split_once(begin)?;
        Some(crate::html::text(behind.split_once(end)?.0))
    };
    let title = between("<title>", "</title>").unwrap_or_default();
    let state = between("<div class=\"state", "</div>").unwrap_or_default();
    let state = state.split_once('>').map_or("", |(_, state)| state);
    let report = page::read(part);
    let facts = named(&report);
    settled(report, part.first_line(), [&title, state], facts)
}

/// Columns of the names of facts in a text; a value goes on below its start.
const NAMES_END: usize = 24;

/// Returns the facts of the whole study in a text, each with all lines of its value.
fn below_heading(lines: &[(u32, &str)]) -> Vec<(String, Cell)> {
    let heading = lines.iter().position(|(_, line)| *line == HEAD).unwrap_or(lines.len());
    let below = lines.iter().skip(heading + 2).take_while(|(_, text)| !text.trim().is_empty());
    let mut facts: Vec<(String, Cell)> = Vec::new();
    for (line, text) in below {
        let indent = text.len() - text.trim_start().len();
        if let Some((name, value)) = text.split_once(": ").filter(|_| indent < NAMES_END) {
            facts.push((name.trim().to_string(), cell(value, *line)));
        } else if let Some((_, above)) = facts.last_mut() {
            *above = cell(&format!("{} {text}", above.raw), above.line);
        }
    }
    facts
}

/// Returns the facts of the whole study in a table of names and values.
fn named(report: &Report) -> Vec<(String, Cell)> {
    let rows = report.sheets.iter().filter(|sheet| sheet.heading == HEAD).flat_map(|sheet| &sheet.rows);
    let fact = |row: &SheetRow| match row.cells.as_slice() {
        [name, value] => Some((name.raw.trim_end_matches(':').to_string(), value.clone())),
        _ => None,
    };
    rows.filter_map(fact).collect()
}

/// Gives the tables the sections of a study, and fills in the facts and the head of the record.
fn settled(
    mut report: Report,
    line: u32,
    [title, state]: [&str; 2],
    of_study: Vec<(String, Cell)>,
) -> Report {
    report.sheets = std::mem::take(&mut report.sheets).into_iter().map(resectioned).collect();
    let name = title.trim_start_matches("# ").trim_start_matches(TITLE).trim_start();
    let workload = name.split_once(": ").map_or(name, |(name, _)| name).to_string();
    let mut run = ImportedRun {
        title: format!("IMPORTED PLUMB STUDY  {workload}"),
        workload,
        ..ImportedRun::default()
    };
    for (name, value) in &of_study {
        match name.as_str() {
            "Elapsed" => run.elapsed = Some(seconds(value)),
            "Ran" => {
                let (begin, end) = value.raw.split_once(" to ").unwrap_or((&value.raw, ""));
                (run.begin, run.end) = (begin.to_string(), end.to_string());
            }
            "Host" => host(&value.raw, &mut run),
            _ => {}
        }
    }
    report.fact("Study", &cell(name, line));
    report.fact("State", &cell(state, line));
    let verdicts = verdicts(&report);
    of_study.iter().chain(&verdicts).for_each(|(name, cell)| report.fact(name, cell));
    report.run = run;
    report
}

fn cell(text: &str, line: u32) -> Cell {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    Cell { raw: words, line, reading: crate::figure::Reading::Words }
}

/// Parses `dblab03, 4 CPUs, AMD EPYC, Linux 6.12`.
fn host(printed: &str, run: &mut ImportedRun) {
    let mut parts = printed.split(", ");
    run.host = parts.next().unwrap_or("").to_string();
    run.cpus = parts.next().and_then(|cpus| cpus.split(' ').next()?.parse().ok());
    run.platform = parts.last().unwrap_or("").to_string();
}

/// Reads a table again with the columns of a study's section. Sections of a run that share a
/// heading with it would be checked by the arithmetic of runs.
fn resectioned(sheet: Sheet) -> Sheet {
    let section = SECTIONS.iter().find(|section| section.headings.contains(&sheet.heading.as_str()));
    let names = sheet.columns.into_iter().map(|column| column.name).collect();
    let mut own = Sheet::new(section, Printed { raw: sheet.heading, line: sheet.line }, names);
    for column in own.columns.iter_mut().filter(|column| section.is_some() && column.key.is_empty()) {
        // The heading ends with the measure's unit: `Median (s)`.
        let name = plain(&column.name);
        let is_of =
            |key: &&str| name.strip_prefix(key).is_some_and(|unit| unit.is_empty() || unit.starts_with('('));
        column.key = ["median", "least", "most"].into_iter().find(is_of).unwrap_or("");
    }
    own.notes = sheet.notes;
    for row in sheet.rows {
        let line = row.cells.first().map_or(sheet.line, |cell| cell.line);
        own.push(
            line,
            row.cells.into_iter().map(|cell| Printed { raw: cell.raw, line: cell.line }).collect(),
        );
    }
    own
}

fn rows<'a>(report: &'a Report, section: &'static str) -> impl Iterator<Item = (&'a Sheet, &'a SheetRow)> {
    report.sheets_of(section).flat_map(|sheet| sheet.rows.iter().map(move |row| (sheet, row)))
}

/// Returns the name of a claim and its verdict, with what became of the claim.
fn verdicts(report: &Report) -> Vec<(String, Cell)> {
    let named: Vec<&str> = rows(report, EFFECTS).map(|(sheet, row)| sheet.text(row, "claim")).collect();
    let of = |(sheet, row): (&Sheet, &SheetRow)| {
        let number = sheet.text(row, "number");
        let is_own = |name: &&&str| name.split(' ').next() == Some(number);
        let name = named.iter().find(is_own).map_or(number, |name| name);
        let verdict = sheet.cell(row, "verdict")?;
        let text = format!("{} ({})", verdict.raw, sheet.text(row, "outcome"));
        Some((format!("Claim {name}"), cell(&text, verdict.line)))
    };
    rows(report, VERDICTS).filter_map(of).collect()
}

/// Returns the figures of the arms and the changes by claim.
pub fn figures(report: &Report) -> Vec<ImportedFigure> {
    let measure = report.facts.iter().find(|fact| fact.name == "Measure");
    let measure = measure.map_or("measure", |fact| fact.text.split([',', ';']).next().unwrap_or(""));
    let of_arm = |(sheet, row): (&Sheet, &SheetRow)| {
        let arm = sheet.text(row, "arm").to_string();
        let named = [
            ("median", format!("{arm}: {measure}")),
            ("least", format!("{arm}: {measure}, least")),
            ("most", format!("{arm}: {measure}, most")),
            ("declared", format!("{arm}: declared memory")),
            ("peak", format!("{arm}: peak memory")),
        ];
        let figure = |(key, name): (&str, String)| Some(Figure { name, ..sheet.figure(row, key)? });
        named.into_iter().filter_map(figure).collect::<Vec<_>>()
    };
    let change = |(sheet, row): (&Sheet, &SheetRow)| {
        let name = format!("change by claim {}", sheet.text(row, "claim"));
        Some(Figure { name, ..sheet.figure(row, "change")? })
    };
    let figures = rows(report, ARMS).flat_map(of_arm).chain(rows(report, EFFECTS).filter_map(change));
    figures.map(|figure| ImportedFigure::from(&figure)).collect()
}
