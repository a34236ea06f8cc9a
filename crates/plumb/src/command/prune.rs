//! `plumb prune`: a copy of a trace without the spans that a warm system would not have; also the
//! sums of two traces for `plumb compare`.

use super::export::NewFile;
use crate::arguments::PruneOf;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::outcome::Outcome;
use crate::output;
use plumb_prune::{ColumnMapping, DropRule, PruneError, PruneReport, PrunedTrace, SpanSums, SumsRow};
use plumb_study::bundle;
use plumb_units::{Nanos, RowCount, cut};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Rows that a table shows; `--json` has all.
const SHOWN_MOST: usize = 20;
/// Letters of a name or a statement in a table.
const NAME_LETTERS: usize = 60;

impl From<PruneError> for Failure {
    fn from(error: PruneError) -> Failure {
        match error {
            PruneError::Rule { .. } | PruneError::Mapping { .. } => Failure::usage(error.to_string()),
            _ => Failure::run(error.to_string()),
        }
    }
}

/// A writer that fails after a signal, so that the unfinished file is removed.
struct Stoppable<'a> {
    file: &'a mut NewFile,
    interrupt: &'a Interrupt,
}

impl Write for Stoppable<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.interrupt.cancel().check().is_err() {
            true => Err(io::Error::other("interrupted")),
            false => self.file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Prunes a trace and prints its sums. Fails if it is no trace, is cut off, or the copy exists.
pub fn run(arguments: &PruneOf) -> Result<Outcome, Failure> {
    let rules = arguments.drop.iter().map(|text| DropRule::parse(text)).collect::<Result<Vec<_>, _>>()?;
    let mapping = arguments.map.as_deref().map(ColumnMapping::parse).transpose()?;
    let trace = PrunedTrace::read(&arguments.trace, rules, mapping.as_ref())?;
    if let Some(out) = &arguments.out {
        let interrupt = Interrupt::install()?;
        let mut file = NewFile::create(out)?;
        interrupt.begin_reading();
        let to = Stoppable { file: &mut file, interrupt: &interrupt };
        trace.write(BufWriter::new(to)).map_err(|error| match interrupt.cancel().check().is_err() {
            true => interrupt.failure(),
            false => error.into(),
        })?;
        file.finish()?;
    }
    let report = trace.report();
    if arguments.json {
        return output::print(&bundle::json(&report)?).map(|()| Outcome::Fine);
    }
    let all = &report.all;
    let out = match &arguments.out {
        Some(out) => format!("; the others are in {}", out.display()),
        None => String::new(),
    };
    output::print(&format!(
        "{}: {} of {} removed{out}\n",
        arguments.trace.display(),
        RowCount(all.before.spans - all.after.spans),
        output::counted(all.before.spans, "span"),
    ))?;
    show(&report)
}

/// Compares two traces by statement; `None` if one is no trace.
pub fn compared(first: &Path, second: &Path) -> Option<Result<PruneReport, Failure>> {
    let are_traces = [first, second].iter().all(|path| path.is_file() && PrunedTrace::recognises(path));
    are_traces.then(|| {
        let read = |path| PrunedTrace::read(path, Vec::new(), None);
        Ok(read(first)?.compared(&read(second)?))
    })
}

/// Prints the tables of a report.
pub fn show(report: &PruneReport) -> Result<Outcome, Failure> {
    table("TOP SPAN", &report.tops, Some(&report.all))?;
    table("STATEMENT", &report.statements, None)?;
    let rules = report.rules.iter().filter(|(_, count)| *count > 0);
    for (text, count) in rules {
        output::print(&format!("{} chosen by --drop {text}\n", output::counted(*count, "span")))?;
    }
    for note in &report.notes {
        output::print(&format!("{note}\n"))?;
    }
    Ok(Outcome::Fine)
}

fn table(title: &str, rows: &[SumsRow], all: Option<&SumsRow>) -> Result<(), Failure> {
    if rows.is_empty() && all.is_none() {
        return Ok(());
    }
    let head =
        [title, "SPANS", "EXECUTIONS", "FETCHES", "DURATION", "TIME IN SQL"].map(String::from).to_vec();
    let row = |row: &SumsRow| {
        let pair = |text: fn(&SpanSums) -> String| {
            let [before, after] = [text(&row.before), text(&row.after)];
            if before == after { before } else { format!("{before} to {after}") }
        };
        vec![
            cut(&row.name, NAME_LETTERS).into_owned(),
            pair(|sums| RowCount(sums.spans).to_string()),
            pair(|sums| RowCount(sums.executions).to_string()),
            match row.before.fetches.or(row.after.fetches) {
                Some(_) => pair(|sums| match sums.fetches {
                    Some(fetches) => RowCount(fetches).to_string(),
                    None if sums.spans == 0 => "0".to_string(),
                    None => "unknown".to_string(),
                }),
                None => "unknown".to_string(),
            },
            pair(|sums| Nanos(sums.duration_ns).to_string()),
            pair(|sums| Nanos(sums.sql_ns).to_string()),
        ]
    };
    let shown = rows.iter().take(SHOWN_MOST).map(row);
    let cells: Vec<_> = std::iter::once(head).chain(shown).chain(all.map(row)).collect();
    output::print(&format!("\n{}", output::aligned_under_head(&cells)))?;
    match rows.len().saturating_sub(SHOWN_MOST) {
        0 => Ok(()),
        more => output::print(&format!("and {} more; --json lists all\n", RowCount(more as u64))),
    }
}
