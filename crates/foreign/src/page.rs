//! The page of an import: the checks of another program's report, and the report itself.
//!
//! The checks come first, because a reader should not trust a figure that contradicts others. Then
//! each table of the report follows, in its order, under its own headings, with the texts of its
//! cells. Columns that plumb derives stand behind them and begin with `+`. The record is not shown:
//! its figures are rounded to whole nanoseconds and bytes, and a reader knows the printed ones.

use crate::figure::shown::scaled;
use crate::import::Import;
use crate::stored::{StoredRow, StoredTable};
use plumb_record::{Consistency, Consistent, Finding, Imported, ImportedFigure, Record};
use plumb_report::table::{Alignment, Cell, Column, Facts, Table, Tone};
use plumb_report::{Document, Headline, ReportAnswer, Section, State, Summary, cells, text};
use plumb_units::visible;
use std::collections::BTreeMap;

/// Most checks that the page lists.
const CHECKS_MOST: usize = 60;
/// Most figures shown that belong to no row.
const FIGURES_MOST: usize = 40;
/// Letters of a line of a column's title, at least.
const TITLE_LEAST: usize = 9;

impl Import {
    /// Returns the page of the report, with the sections of its findings behind the checks.
    #[must_use]
    pub fn page(&self, findings: Vec<Section>) -> Document {
        let tables: Vec<StoredTable> = self.report.sheets.iter().map(StoredTable::from).collect();
        let found = self.judged().map_or(&[][..], |record| &record.findings);
        let data = match &self.record {
            Some(record) => serde_json::to_string(record),
            None => serde_json::to_string(&self.imported),
        };
        let data = data.unwrap_or_else(|_| "null".to_string());
        document(answered(&self.imported, found, data), &self.imported, &tables, findings)
    }
}

/// Returns the page of a kept record with the tables that its bundle has.
#[must_use]
pub fn of_record(
    record: &Record,
    imported: &Imported,
    tables: &[StoredTable],
    findings: Vec<Section>,
) -> Document {
    let data = serde_json::to_string(record).unwrap_or_else(|_| "null".to_string());
    document(answered(imported, &record.findings, data), imported, tables, findings)
}

/// Returns the page without sections, with the answer of the report.
fn answered(imported: &Imported, findings: &[Finding], data: String) -> Document {
    let page = page(imported, data);
    Document { answer: answer(imported, findings, &page), ..page }
}

/// Figures of the sentence; the lines below it have more.
const FIGURES_IN_SENTENCE: usize = 2;

/// Returns the first finding and the first figures of the report, with the result of its checks.
fn answer(imported: &Imported, findings: &[Finding], page: &Document) -> ReportAnswer {
    let figure = |figure: &Headline| format!("{} {}", figure.name, figure.line());
    let figures = page.headline.iter().take(FIGURES_IN_SENTENCE).map(figure);
    let failed = imported.failed.first().map(|error| format!("the run failed: {}", visible(error)));
    let finding = findings.first().filter(|_| failed.is_none());
    let what = finding.map(|finding| ReportAnswer::part(&finding.what));
    let found: Vec<String> = failed.into_iter().chain(what).chain(figures).collect();
    ReportAnswer {
        asked: format!("{} of {}", imported.kind, imported.file),
        found: if found.is_empty() {
            "no figure of its first lines is known".to_string()
        } else {
            found.join("; ")
        },
        sure: format!("{}: {}", page.state.word, page.basis),
        advice: finding
            .filter(|finding| !finding.advice.is_empty())
            .map_or(String::new(), |finding| format!("next: {}", finding.advice)),
        lines: page.headline.clone(),
    }
}

fn document(
    mut document: Document,
    imported: &Imported,
    tables: &[StoredTable],
    findings: Vec<Section>,
) -> Document {
    let (of_rows, others) = of_rows(imported, tables);
    document.sections = vec![origin(imported), tallies(imported)];
    document.sections.extend(failures(imported));
    document.sections.extend(figures(&others));
    document.sections.extend(findings);
    document.sections.extend(tables.iter().enumerate().map(|(at, table)| section(at, table, &of_rows)));
    document
}

/// Figures that follow from single rows, by table and row.
type OfRows<'i> = BTreeMap<(usize, usize), Vec<(&'i str, &'i ImportedFigure)>>;

fn derived(imported: &Imported) -> &[ImportedFigure] {
    &imported.figures[..(imported.derived as usize).min(imported.figures.len())]
}

/// Returns the derived figures of single rows, and those that belong to none. One figure of a name
/// that several rows have, such as the mean of a device over its samples, belongs to none of them.
fn of_rows<'i>(imported: &'i Imported, tables: &[StoredTable]) -> (OfRows<'i>, Vec<&'i ImportedFigure>) {
    let split = |figure: &'i ImportedFigure| figure.name.split_once(": ");
    let mut rows: BTreeMap<&str, Vec<(usize, usize)>> =
        derived(imported).iter().filter_map(split).map(|(name, _)| (name, Vec::new())).collect();
    let tables = if rows.is_empty() { &[] } else { tables };
    for (number, table) in tables.iter().enumerate() {
        for (at, row) in table.rows.iter().enumerate() {
            for cell in &row.cells {
                if let Some(own) = rows.get_mut(cell.trim_end_matches(':')) {
                    own.push((number, at));
                }
            }
        }
    }
    let mut same: BTreeMap<&str, usize> = BTreeMap::new();
    derived(imported).iter().for_each(|figure| *same.entry(&figure.name).or_default() += 1);
    let (mut of_rows, mut others) = (OfRows::new(), Vec::new());
    for figure in derived(imported) {
        let place = split(figure).and_then(|(name, what)| {
            let named = &rows[name];
            let covers = |(table, row): &&(usize, usize)| tables[*table].rows[*row].has(figure.line);
            let place = *named.iter().find(covers)?;
            let of_table = named.iter().filter(|(table, _)| *table == place.0);
            (same[figure.name.as_str()] > 1 || of_table.take(2).count() == 1).then_some((place, what))
        });
        match place {
            Some((place, what)) => of_rows.entry(place).or_default().push((what, figure)),
            None => others.push(figure),
        }
    }
    (of_rows, others)
}

impl StoredRow {
    fn has(&self, line: u32) -> bool {
        (self.line..=self.last.max(self.line)).contains(&line)
    }
}

/// Returns a table of the report as a section, with the derived columns behind its own.
fn section(at: usize, stored: &StoredTable, of_rows: &OfRows<'_>) -> Section {
    let none = Vec::new();
    let own = |row: usize| of_rows.get(&(at, row)).unwrap_or(&none);
    let mut added: Vec<&str> = Vec::new();
    for (what, _) in (0..stored.rows.len()).flat_map(own) {
        if !added.contains(what) {
            added.push(what);
        }
    }
    let columns = (0..stored.columns.len()).map(|column| stored.column(column));
    let marked = added.iter().map(|what| Column::number(in_lines(&format!("+ {what}"), TITLE_LEAST)));
    let mut table = Table::new(columns.chain(marked).collect());
    for (number, row) in stored.rows.iter().enumerate() {
        let derived = own(number);
        let of = |what: &&str| {
            let figure = derived.iter().find(|(own, _)| own == what);
            Cell::from(figure.map_or(String::new(), |(_, figure)| scaled(figure.value, &figure.unit)))
        };
        table.row(row.cells.iter().map(|raw| Cell::from(&**raw)).chain(added.iter().map(of)).collect());
    }
    let title = match stored.heading.is_empty() {
        true => format!("Table of line {}", stored.line),
        false => visible(&stored.heading).into_owned(),
    };
    let section = Section::detail(format!("table-{}", at + 1), title);
    let section =
        notes(&stored.notes).into_iter().fold(section, |section, note| section.note(visible(&note)));
    let section =
        if added.is_empty() { section } else { section.note("columns with + follow from the others") };
    section.table(table)
}

/// Returns the remarks of a table without their arrows; the second line of one goes on behind it.
fn notes(lines: &[String]) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for line in lines {
        match (line.trim_start().strip_prefix("->"), notes.last_mut()) {
            (None, Some(above)) => {
                above.push(' ');
                above.push_str(line.trim());
            }
            (own, _) => notes.push(own.unwrap_or(line).trim().to_string()),
        }
    }
    notes
}

impl StoredTable {
    /// Returns a column with its printed heading; figures stand at its right edge.
    fn column(&self, at: usize) -> Column {
        let cells = || self.rows.iter().filter_map(|row| row.cells.get(at)).filter(|cell| !cell.is_empty());
        let is_words = !cells().all(|cell| plumb_figures::is_number(cell) || plumb_figures::is_figure(cell));
        let width = cells().map(|cell| cell.chars().count()).max().unwrap_or(0);
        let title = in_lines(&self.columns[at], width.max(TITLE_LEAST));
        let alignment = if is_words { Alignment::Text } else { Alignment::Number };
        Column { title, alignment, axis: None }
    }
}

/// Breaks a title at blanks into lines of about this width.
fn in_lines(title: &str, width: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in title.split_whitespace() {
        match lines.last_mut().filter(|line| line.chars().count() + 1 + word.chars().count() <= width) {
            Some(line) => {
                line.push(' ');
                line.push_str(word);
            }
            None => lines.push(word.to_string()),
        }
    }
    lines.join("\n")
}

/// Returns the number of checks with an outcome.
fn count(imported: &Imported, outcome: Consistent) -> u64 {
    let of = |tally: &plumb_record::ConsistencyTally| match outcome {
        Consistent::Holds => tally.held,
        Consistent::Habit => tally.habits,
        Consistent::Fails => tally.failed,
        Consistent::Impossible => tally.impossible,
        Consistent::NotAsked => tally.not_asked,
    };
    imported.tallies.iter().map(of).sum()
}

/// The state of a report by its checks, with the basis of it.
fn state(imported: &Imported) -> (State, String) {
    let [held, habits, failed, impossible] =
        [Consistent::Holds, Consistent::Habit, Consistent::Fails, Consistent::Impossible]
            .map(|outcome| count(imported, outcome));
    let asked = held + habits + failed + impossible;
    let (word, tone) = match (impossible, failed, habits, asked) {
        (1.., ..) => ("IMPOSSIBLE".to_string(), Tone::Bad),
        (0, 1.., ..) => ("DOES NOT ADD UP".to_string(), Tone::Bad),
        (0, 0, 0, 0) => ("NOT CHECKED".to_string(), Tone::Open),
        (0, 0, 0, _) => ("ADDS UP".to_string(), Tone::Good),
        _ => (format!("ADDS UP BUT FOR {habits} OF {asked}"), Tone::Open),
    };
    let mut basis = vec![format!("{held} of {asked} of its own checks held")];
    let mut say = |number: u64, [one, many]: [&str; 2]| {
        basis.extend((number > 0).then(|| format!("{number} {}", if number == 1 { one } else { many })));
    };
    say(habits, ["differs by what a known habit explains", "differ by what a known habit explains"]);
    say(failed, ["contradiction", "contradictions"]);
    say(impossible, ["impossible"; 2]);
    say(count(imported, Consistent::NotAsked), ["lacks a figure", "lack a figure"]);
    // The figures of a run that failed may add up, and are those of a failed run.
    let (word, tone) = match imported.failed.is_empty() {
        true => (word, tone),
        false => (format!("OF A RUN THAT FAILED, {word}"), Tone::Bad),
    };
    (State { of: "Import".to_string(), word, tone }, basis.join(", "))
}

fn page(imported: &Imported, data: String) -> Document {
    let (state, basis) = state(imported);
    let headline = imported.answers.iter().map(|answer| Headline {
        name: answer.name.clone(),
        value: answer.value.clone(),
        aside: answer.aside.clone(),
    });
    let reason = |check: &Consistency| format!("{}: {}", check.of, said(check));
    let worst = imported.checks.iter().filter(|check| check.outcome == Consistent::Impossible);
    let failed = imported.checks.iter().filter(|check| check.outcome == Consistent::Fails);
    let errors = imported.failed.iter().take(3).map(|error| visible(error).into_owned());
    let reasons = errors.chain(worst.chain(failed).take(3).map(reason));
    let facts = [("File", imported.file.clone()), ("Kind", imported.kind.clone()), ("Checks", basis.clone())];
    Document {
        title: format!("IMPORTED {}  {}", imported.kind.to_uppercase(), imported.file),
        answer: ReportAnswer::default(),
        question: String::new(),
        running_head: "as printed".to_string(),
        width: text::WIDTH,
        state,
        basis,
        reasons: reasons.collect(),
        headline: headline.collect(),
        sections: Vec::new(),
        summary: Summary {
            subject: imported.file.clone(),
            lines: Vec::new(),
            facts: facts.map(|(name, value)| (name.to_string(), value)).to_vec(),
        },
        footer: "Figures of another program, as it printed them.".to_string(),
        data,
    }
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
        // A fact that follows from others has no line.
        let line = if fact.line == 0 { String::new() } else { fact.line.to_string() };
        table.row(cells![&fact.name, &fact.text, line]);
    }
    let section = Section::front("import", "Import").facts(facts);
    if table.rows.is_empty() { section } else { section.table(table) }
}

fn tallies(imported: &Imported) -> Section {
    let mut table = Table::default().wrapped("Check", 44).numbers([
        "Held",
        "But for\na habit",
        "Failed",
        "Impossible",
        "Lack a\nfigure",
    ]);
    for tally in &imported.tallies {
        let number = |count: u64| if count == 0 { String::new() } else { count.to_string() };
        let bad = |count: u64| {
            Cell::from(number(count)).with_tone(if count == 0 { Tone::Plain } else { Tone::Bad })
        };
        table.row(cells![
            &tally.name,
            number(tally.held),
            number(tally.habits),
            bad(tally.failed),
            bad(tally.impossible),
            number(tally.not_asked)
        ]);
    }
    Section::front("checks", "Does It Add Up?")
        .note("both sides of a check are intervals: the values that print as the report has them; it holds if they meet")
        .table(table)
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

/// Formats both sides of a check; those that would look alike show the digits that differ.
fn ends_shown(check: &Consistency) -> [String; 2] {
    let shown = [check.expected, check.found].map(|ends| interval(ends, &check.unit));
    if shown[0] != shown[1] {
        return shown;
    }
    let whole = |ends: Option<[f64; 2]>| {
        let [low, high] = ends.unwrap_or_default();
        let text = if low == high { format!("{low}") } else { format!("{low} to {high}") };
        format!("{text} {}", check.unit).trim_end().to_string()
    };
    [check.expected, check.found].map(whole)
}

fn said(check: &Consistency) -> String {
    let [expected, found] = ends_shown(check);
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
        .wrapped("Explained by", 30);
    // Those that nothing explains come first.
    let mut checks: Vec<&Consistency> = imported.checks.iter().collect();
    checks.sort_by_key(|check| std::cmp::Reverse(check.outcome));
    for check in checks.iter().take(CHECKS_MOST) {
        let [expected, found] = ends_shown(check);
        let found = match check.outcome {
            Consistent::Impossible => Cell::from(format!("IMPOSSIBLE: {found}")).with_tone(Tone::Bad),
            Consistent::Habit => Cell::from(found),
            _ => Cell::from(found).with_tone(Tone::Bad),
        };
        let explained: Vec<&str> = [&check.habit, &check.note]
            .into_iter()
            .filter(|text| !text.is_empty())
            .map(|text| &**text)
            .collect();
        table.row(cells![
            &check.name,
            &check.of,
            expected,
            found,
            used(&check.figures),
            explained.join("; ")
        ]);
    }
    let left = imported.checks.len().saturating_sub(CHECKS_MOST);
    let left = if left > 0 { format!("{left} more are in the record") } else { String::new() };
    let is_habit = checks.iter().all(|check| check.outcome == Consistent::Habit);
    let title = if is_habit { "Differences That a Known Habit Explains" } else { "Contradictions" };
    (!table.rows.is_empty()).then(|| Section::front("contradictions", title).note(left).table(table))
}

/// Returns the section of derived figures that belong to no row.
fn figures(others: &[&ImportedFigure]) -> Option<Section> {
    let mut table = Table::default()
        .wrapped("Figure", 50)
        .numbers(["Value"])
        .wrapped("Between", 30)
        .wrapped("From", 40)
        .numbers(["Line"]);
    for figure in others.iter().take(FIGURES_MOST) {
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
