//! `plumb load`: a CSV file into a new table.

use super::live;
use crate::arguments::Load;
use crate::database::Target;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::outcome::Outcome;
use crate::output::{self, aligned};
use crate::progress::{Audience, Watch};
use crate::{bundle, settings, types};
use plumb_engine::storage::control::stored_name;
use plumb_engine::table::load::{self, LoadOutcome};
use plumb_events::clock;
use plumb_lab::Stage;
use plumb_types::RowSource;
use plumb_units::{Bytes, Nanos, RowCount};
use plumb_workload::{ColumnBasis, ColumnFinding, CsvFile, CsvOptions};
use std::fs;
use std::path::Path;

/// Loads the file.
///
/// # Errors
/// When the file cannot be read, breaks its format, or the table cannot be made.
pub fn run(arguments: &Load) -> Result<Outcome, Failure> {
    let settings = settings::parse_for_files(&arguments.set)?;
    require_name(&arguments.table)?;
    let interrupt = Interrupt::install()?;
    let bundle = bundle::reserve(arguments.bundle.as_deref(), None, &interrupt)?;
    // The database refuses what it can before a large file is read.
    let mut target = Target::find(&arguments.path, settings, &interrupt)?;
    target.require_free(&arguments.table)?;
    let source = CsvFile::open(&arguments.file, options(arguments)?)?;
    output::print(&found(&source))?;
    interrupt.begin();
    if arguments.conventional {
        return live::import(arguments, &mut target, &source, bundle.as_ref(), &interrupt);
    }
    target.make()?;
    let instance = target.instance();
    let watch = Watch::start(Audience::Terminal);
    watch.stage(&Stage::Load { instance, rows: source.row_count().unwrap_or(0) });
    let begin = clock::now();
    let loaded = load::load(instance, &arguments.table, &source)?;
    let elapsed = clock::now().saturating_sub(begin);
    drop(watch);
    output::print(&done(arguments, target.keep(), &loaded, elapsed))?;
    output::print(&skipped(source.skipped_lines()))?;
    Ok(Outcome::Fine)
}

/// Empty lines are no rows: said, so that the counts of lines and rows can be compared.
pub fn skipped(lines: u64) -> String {
    match lines {
        0 => String::new(),
        1 => "1 blank line skipped\n".to_string(),
        lines => format!("{} blank lines skipped\n", RowCount(lines)),
    }
}

fn options(arguments: &Load) -> Result<CsvOptions, Failure> {
    Ok(CsvOptions {
        types: arguments.types.as_deref().map_or_else(|| Ok(Vec::new()), types::parse_types)?,
        delimiter: arguments.delimiter,
        null_text: arguments.null.clone(),
    })
}

/// Names go into messages, listings and other commands' arguments.
fn require_name(table: &str) -> Result<(), Failure> {
    let plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '$' | '#');
    if !table.is_empty() && table.len() <= 128 && table.chars().all(plain) {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "--table {table:?}: a table's name has 1 to 128 letters, digits, _, $ or #; choose another name"
    )))
}

/// The columns and why each has its type.
fn found(source: &CsvFile) -> String {
    let columns = source.schema().columns.iter().zip(source.findings());
    let head = ["COLUMN", "TYPE", "NULLS", "BECAUSE"].map(String::from).to_vec();
    let rows = columns.map(|(column, finding)| {
        let nulls = if finding.basis == ColumnBasis::Given {
            "?".to_string()
        } else {
            RowCount(finding.null_count).to_string()
        };
        vec![column.name.clone(), column.column_type.to_string(), nulls, because(finding)]
    });
    let table = aligned(&std::iter::once(head).chain(rows).collect::<Vec<_>>());
    let rows =
        source.row_count().map_or("rows not counted".to_string(), |rows| format!("{} rows", RowCount(rows)));
    format!("{}: {rows}\n{table}", source.path().display())
}

fn because(finding: &ColumnFinding) -> String {
    let basis = match &finding.basis {
        ColumnBasis::Given => "given by --types".to_string(),
        ColumnBasis::NoValues => "no row has a value".to_string(),
        ColumnBasis::Numbers { .. } => "all values are numbers".to_string(),
        ColumnBasis::Dates => "all values are dates".to_string(),
        ColumnBasis::Text { reason, .. } => reason.to_string(),
    };
    if finding.name == finding.header {
        basis
    } else {
        format!("{basis}; named {:?} in the file", finding.header)
    }
}

fn done(arguments: &Load, home: &Path, loaded: &LoadOutcome, elapsed: Nanos) -> String {
    let file_bytes = fs::metadata(&arguments.file).map_or(0, |found| found.len());
    format!(
        "table {} in {}: {} rows, {} in {} blocks, {:.2} s, {:.1} MB/s of the file ({})\n",
        stored_name(&arguments.table),
        home.display(),
        RowCount(loaded.row_count),
        Bytes(loaded.row_bytes),
        RowCount(loaded.block_count),
        elapsed.seconds(),
        Bytes(file_bytes).per(elapsed).mb_per_second(),
        Bytes(file_bytes),
    )
}
