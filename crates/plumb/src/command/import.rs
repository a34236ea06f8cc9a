//! `plumb import`: reports of other programs, checked by their own arithmetic, as records of runs.

use crate::arguments::Import;
use crate::bundle;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::output;
use plumb_foreign::{Import as Imported, READERS, Source, import, stored};
use plumb_pages::run::findings;
use plumb_report::{Document, text};
use plumb_study::bundle::{Reservation, refused};
use std::fs;
use std::path::Path;

/// Imports all reports of all files. After the others, fails on the first file without a known
/// report, and with `--strict` on one that was cut short or has a line that is not understood.
pub fn run(arguments: &Import) -> Result<Outcome, Failure> {
    let mut failed = None;
    let mut all = Vec::new();
    for file in &arguments.files {
        let read = Source::read(file).and_then(|source| import(&source, READERS, env!("CARGO_PKG_VERSION")));
        match read {
            Ok(imports) => {
                let strict = imports.iter().filter(|_| arguments.strict).find_map(|import| {
                    cut_short(file, import).map(Failure::run).or_else(|| not_understood(file, import))
                });
                failed = failed.or(strict);
                remark(file, &imports, arguments);
                all.extend(imports);
            }
            Err(error) => failed = failed.or(Some(Failure::run(error.to_string()))),
        }
    }
    show(arguments, &all)?;
    if let Some(directory) = &arguments.bundle {
        keep(directory, &all)?;
    }
    failed.map_or(Ok(Outcome::Fine), Err)
}

fn show(arguments: &Import, all: &[Imported]) -> Result<(), Failure> {
    if arguments.json {
        let one = |import: &Imported| {
            let text =
                serde_json::to_string_pretty(import).map_err(|error| Failure::run(error.to_string()))?;
            Ok::<String, Failure>(document(import).answered(&text))
        };
        let all = all.iter().map(one).collect::<Result<Vec<_>, _>>()?;
        return output::print(&format!("[{}]\n", all.join(",")));
    }
    for (number, import) in all.iter().enumerate() {
        // Each report is a page of its own.
        if number > 0 {
            output::print(&format!("\n{}\n\n", "=".repeat(text::WIDTH)))?;
        }
        output::print(&if arguments.list { list(import) } else { output::report(&document(import)) })?;
    }
    if all.is_empty() || arguments.bundle.is_some() || arguments.list {
        return Ok(());
    }
    output::print("Nothing is kept: --bundle DIR keeps it for `plumb report` and `plumb compare`\n")
}

fn document(import: &Imported) -> Document {
    import.page(import.judged().and_then(findings).into_iter().collect())
}

/// Says what limits the trust in the reports of a file: cut short, of a release without a sample.
fn remark(file: &Path, imports: &[Imported], arguments: &Import) {
    for import in imports {
        // The failure says it.
        let cut = cut_short(file, import).filter(|_| !arguments.strict);
        for said in cut.into_iter().chain(untried(file, import)) {
            output::remark(&format!("{said}\n"));
        }
    }
}

/// Returns a line about a report that was cut short.
fn cut_short(file: &Path, import: &Imported) -> Option<String> {
    let cut = import.report.cut.as_ref()?;
    Some(format!(
        "{} has {} that is cut short after line {}: no `{}` ends it",
        file.display(),
        with_article(&import.report.kind),
        cut.line,
        cut.missing
    ))
}

/// Returns a line about a report whose release or form no sample was available of.
fn untried(file: &Path, import: &Imported) -> Option<String> {
    let why = plumb_foreign::awr::untried(&import.report)?;
    Some(format!(
        "{} line {}: {why}, which no sample was available of: check its figures before you use them",
        file.display(),
        import.report.line
    ))
}

fn with_article(kind: &str) -> String {
    let is_vowel = kind.starts_with(['A', 'a', 'e', 'i', 'o', 'u']);
    format!("{} {kind}", if is_vowel { "an" } else { "a" })
}

/// Returns an error with the first line that is not understood.
fn not_understood(file: &Path, import: &Imported) -> Option<Failure> {
    let unread = &import.report.unread;
    let first = unread.first()?;
    Some(Failure::run(format!(
        "{} has {} that {} not understood, the first is line {}: {}; --list shows all",
        file.display(),
        output::counted(unread.len() as u64, "line"),
        if unread.len() == 1 { "is" } else { "are" },
        first.line,
        plumb_units::cut(first.text.trim(), 60)
    )))
}

/// Returns a table of the sections and lines that were understood, and those that were not.
fn list(import: &Imported) -> String {
    let report = &import.report;
    let row = |line: u32, what: &str, rows: String, columns: String, heading: &str| {
        vec![line.to_string(), what.to_string(), rows, columns, heading.to_string()]
    };
    let mut rows: Vec<(u32, Vec<String>)> = Vec::new();
    for sheet in &report.sheets {
        let keyed = sheet.columns.iter().filter(|column| !column.key.is_empty()).count();
        let known = format!("{keyed} of {}", sheet.columns.len());
        let what = if sheet.section.is_empty() { "as headed" } else { sheet.section };
        rows.push((sheet.line, row(sheet.line, what, sheet.rows.len().to_string(), known, &sheet.heading)));
    }
    let remark = |what: &'static str| {
        move |remark: &plumb_foreign::figure::sheet::Remark| {
            let text = plumb_units::cut(remark.text.trim(), 80).into_owned();
            (remark.line, row(remark.line, what, String::new(), String::new(), &text))
        }
    };
    rows.extend(report.empty.iter().map(remark("empty")));
    rows.extend(report.unread.iter().map(remark("NOT READ")));
    // Lines that follow each other are one row.
    for lines in report.prose.chunk_by(|one, two| one.line + 1 == two.line) {
        let text = plumb_units::cut(lines[0].text.trim(), 80).into_owned();
        let line = lines[0].line;
        rows.push((line, row(line, "prose", lines.len().to_string(), String::new(), &text)));
    }
    if let Some(cut) = &report.cut {
        let text = format!("no `{}` ends the report", cut.missing);
        rows.push((cut.line, row(cut.line, "CUT SHORT", String::new(), String::new(), &text)));
    }
    rows.sort_by_key(|(line, _)| *line);
    let head = ["LINE", "SECTION", "ROWS", "KNOWN", "HEADING"].map(String::from).to_vec();
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows.into_iter().map(|(_, row)| row)).collect();
    format!(
        "{}: {}, from line {}\n{}",
        import.imported.file,
        report.kind,
        report.line,
        output::aligned_under_head(&rows)
    )
}

/// Writes each import with a record as the bundle of a run: to the directory, or if there are
/// several, to numbered ones below it.
fn keep(directory: &Path, all: &[Imported]) -> Result<(), Failure> {
    let kept: Vec<&Imported> = all.iter().filter(|import| import.record.is_some()).collect();
    for import in all.iter().filter(|import| import.record.is_none()) {
        output::remark(&format!(
            "{} line {}: no bundle, because the report does not say how long its interval was\n",
            import.imported.file, import.imported.line
        ));
    }
    if kept.is_empty() {
        return Ok(());
    }
    // One mark for all, so that a second command removes what a killed one left.
    let reservation = Reservation::named(directory)?;
    for (number, import) in (1..).zip(&kept) {
        let mut place = reservation.directory().to_path_buf();
        if kept.len() > 1 {
            place.push(format!("{number}"));
            fs::create_dir(&place).map_err(|source| refused(&place, source))?;
        }
        let Some(record) = &import.record else { continue };
        let mut files = bundle::of_run(record, &document(import))?;
        files.push((stored::FILE.to_string(), stored::text(&import.report)));
        // The record last: without it a bundle is half.
        files.rotate_left(1);
        output::print(&bundle::listed(&bundle::write(&place, &files)?))?;
    }
    Ok(())
}
