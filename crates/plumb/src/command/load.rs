//! `plumb load`: a CSV file into a new table.

use super::live;
use crate::arguments::Load;
use crate::database::{self, Target};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::outcome::Outcome;
use crate::output::{self, aligned_under_head};
use crate::progress::{Audience, Watch};
use crate::{bundle, command_line, settings, types};
use plumb_engine::storage::control::{NAME_BYTES_MAX, stored_name};
use plumb_engine::storage::tablespace::Purpose;
use plumb_engine::table::load::{self, LoadOutcome, LoadTarget};
use plumb_engine::transaction::Logging;
use plumb_engine::{EngineError, Instance, Setting};
use plumb_events::{Role, clock};
use plumb_run::archiving;
use plumb_study::Stage;
use plumb_types::RowSource;
use plumb_units::{BlockSize, Bytes, Nanos, RowCount, cut};
use plumb_workload::{
    ColumnBasis, ColumnFinding, CsvFile, CsvOptions, DateForm, DateStyle, Header, SeveralLines, TextCause,
    TextReason, zone_name,
};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// Loads the file into a new table.
pub fn run(arguments: &Load) -> Result<Outcome, Failure> {
    let settings = settings::parse_for_files(&arguments.set)?;
    require_name("--table", &arguments.table)?;
    let interrupt = Interrupt::install()?;
    let bundle = bundle::reserve(arguments.bundle.as_deref(), None, &interrupt)?;
    // Checks the database before a large file is read.
    let mut target = Target::find(&arguments.path, settings, &interrupt)?;
    target.require_free(&arguments.table)?;
    live::require_sessions(arguments, &target)?;
    let kept = if arguments.file == Path::new(STDIN) { Some(Kept::read(&arguments.path)?) } else { None };
    let name = if kept.is_some() { Path::new("standard input") } else { &arguments.file };
    let source = CsvFile::open(name, options(arguments, kept.as_ref())?)?;
    if !arguments.json {
        output::print(&found(&source))?;
    }
    interrupt.begin();
    if arguments.conventional {
        let file = (&source, file_bytes(arguments, kept.as_ref()));
        return live::import(arguments, &mut target, file, bundle.as_ref(), &interrupt);
    }
    target.make()?;
    let instance = target.instance();
    let watch = Watch::start(audience(arguments));
    watch.stage(&Stage::Load { recorder: &instance.recorder, rows: source.row_count().unwrap_or(0) });
    let tablespace = tablespace(instance, arguments.block_size)?;
    let session = instance.recorder.session(Role::LoadCoordinator);
    let is_on = |setting| instance.settings.word(setting) == "on";
    let keeps_log = is_on(Setting::ForceLogging) || is_on(Setting::ArchiveLogMode);
    let transactions = keeps_log.then(|| database::open_transactions(instance, &session)).transpose()?;
    let log = transactions.as_ref().and_then(|open| open.log_of_load(Logging::Logging));
    let begin = clock::now();
    let load = || {
        load::load_into(instance, &session, LoadTarget { table: &arguments.table, tablespace, log }, &source)
    };
    let loaded = archiving::watched(transactions.as_ref(), &|why| watch.line(why), load)?;
    let elapsed = clock::now().saturating_sub(begin);
    drop(watch);
    // The next opening has nothing to recover.
    transactions.iter().try_for_each(|open| open.checkpoint(&session))?;
    let bytes = file_bytes(arguments, kept.as_ref());
    let home = target.keep();
    if arguments.json {
        let facts = (loaded.row_count, loaded.row_bytes, elapsed);
        let report =
            as_json(arguments, home, (&source, bytes), facts, json!({ "blocks": loaded.block_count }));
        return output::print(&report).map(|()| Outcome::Fine);
    }
    output::print(&done(arguments, home, (&loaded, Bytes(bytes)), elapsed))?;
    output::print(&skipped(source.skipped_lines()))?;
    Ok(Outcome::Fine)
}

/// Returns the tablespace for blocks of the requested size, and makes it if it is missing.
pub fn tablespace(instance: &Instance, block_size: Option<BlockSize>) -> Result<Purpose, EngineError> {
    let session = instance.recorder.session(Role::LoadCoordinator);
    block_size.map_or(Ok(Purpose::Users), |size| instance.tablespace_of(&session, size, Bytes(0)))
}

pub fn audience(arguments: &Load) -> Audience {
    if arguments.json { Audience::Nobody } else { Audience::Terminal }
}

/// Returns the bytes of the file on disk, compressed or not.
fn file_bytes(arguments: &Load, kept: Option<&Kept>) -> u64 {
    kept.map_or_else(|| fs::metadata(&arguments.file).map_or(0, |found| found.len()), |kept| kept.bytes)
}

/// Formats findings and results as JSON; `of_its_way` has the fields of the
/// direct path or of transactions.
pub fn as_json(
    arguments: &Load,
    home: &Path,
    (source, file_bytes): (&CsvFile, u64),
    (rows, row_bytes, elapsed): (u64, u64, Nanos),
    of_its_way: Value,
) -> String {
    let columns = source.schema().columns.iter().zip(source.findings()).map(|(column, finding)| {
        let known = finding.basis != ColumnBasis::Given;
        json!({
            "name": column.name,
            "type": column.column_type.to_string(),
            "nulls": known.then_some(finding.null_count),
            "because": because(finding),
        })
    });
    let mut report = json!({
        "table": stored_name(&arguments.table),
        "database": home.display().to_string(),
        "rows": rows,
        "row_bytes": row_bytes,
        "file_bytes": file_bytes,
        "seconds": elapsed.seconds(),
        "blank_lines_skipped": source.skipped_lines(),
        "columns": columns.collect::<Vec<_>>(),
    });
    if let (Value::Object(all), Value::Object(more)) = (&mut report, of_its_way) {
        all.extend(more);
    }
    format!("{report:#}\n")
}

/// Reports empty lines, which are no rows, so that the counts of lines and rows can be compared.
pub fn skipped(lines: u64) -> String {
    match lines {
        0 => String::new(),
        1 => "1 blank line skipped\n".to_string(),
        lines => format!("{} blank lines skipped\n", RowCount(lines)),
    }
}

const STDIN: &str = "-";

/// Standard input, copied to a file without a name, because a file is read twice. The kernel frees
/// it when this process ends.
struct Kept {
    file: File,
    bytes: u64,
}

impl Kept {
    /// Reads standard input to its end into a file in `directory`.
    fn read(directory: &Path) -> Result<Kept, Failure> {
        let refused = |error: io::Error| {
            Failure::run(format!(
                "standard input cannot be kept in {}, where it is read twice: {error}; choose another --path, or load a file",
                directory.display()
            ))
        };
        let name = directory.join(format!("plumb-load-{}", std::process::id()));
        let mut file =
            File::options().read(true).write(true).create_new(true).open(&name).map_err(refused)?;
        fs::remove_file(&name).map_err(refused)?;
        let bytes = io::copy(&mut io::stdin().lock(), &mut file).map_err(refused)?;
        Ok(Kept { file, bytes })
    }

    /// Returns a path that opens the file again.
    fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.file.as_raw_fd()))
    }
}

fn options(arguments: &Load, kept: Option<&Kept>) -> Result<CsvOptions, Failure> {
    Ok(CsvOptions {
        types: arguments.types.as_deref().map_or_else(|| Ok(Vec::new()), types::parse_types)?,
        delimiter: arguments.delimiter,
        quote: arguments.quote,
        header: header(arguments)?,
        null_text: arguments.null.clone(),
        date_form: arguments.date_format,
        decimal: arguments.decimal,
        bytes: kept.map(Kept::path),
    })
}

/// Returns the meaning of the file's first row.
fn header(arguments: &Load) -> Result<Header, Failure> {
    match (&arguments.names, arguments.no_header, arguments.header) {
        (Some(names), ..) => types::parse_names(names).map(Header::Given),
        (None, true, _) => Ok(Header::Missing),
        (None, false, true) => Ok(Header::Names),
        (None, false, false) => Ok(Header::Expected),
    }
}

/// Reports rows with a field of several lines, which a quote that is meant as text causes.
fn several_lines(found: SeveralLines) -> String {
    let SeveralLines { rows, first, lines } = found;
    let who = match rows {
        0 => return String::new(),
        1 => "1 row has a field of several lines:".to_string(),
        rows => format!("{} rows have a field of several lines, the first", RowCount(rows)),
    };
    format!(
        "{who} on lines {first} to {}; if quotes are text in this file, load again with --quote none\n",
        first + lines - 1
    )
}

/// Rejects a name that would not work in messages, lists and arguments of commands.
pub fn require_name(option: &str, table: &str) -> Result<(), Failure> {
    let plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '$' | '#');
    if !table.is_empty() && table.len() <= NAME_BYTES_MAX && table.chars().all(plain) {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{option} {:?}: a table's name has 1 to {NAME_BYTES_MAX} letters, digits, _, $ or #; choose another name",
        cut(table, NAME_BYTES_MAX)
    )))
}

/// Formats the columns with the reason of each type.
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
    let table = aligned_under_head(&std::iter::once(head).chain(rows).collect::<Vec<_>>());
    let rows = source.row_count().map_or("rows not counted".to_string(), |rows| output::counted(rows, "row"));
    format!("{}: {rows}\n{table}{}", source.path().display(), several_lines(source.several_lines()))
}

fn because(finding: &ColumnFinding) -> String {
    let basis = match &finding.basis {
        ColumnBasis::Given => "given by --types".to_string(),
        ColumnBasis::NoValues => "no row has a value".to_string(),
        ColumnBasis::Numbers { .. } => "all values are numbers".to_string(),
        ColumnBasis::Dates { style, .. } => dates(style),
        ColumnBasis::Text { reason, .. } => format!("{reason}{}", hint(reason)),
    };
    if finding.name == finding.header {
        basis
    } else {
        format!("{basis}; named {:?} in the file", finding.header)
    }
}

/// Formats the reason of a column of dates: its form unless ISO, and its zone.
fn dates(style: &DateStyle) -> String {
    let form = if style.form == DateForm::ISO { String::new() } else { format!(" written {}", style.form) };
    let zone = style.zone.map(|zone| format!(" in the zone {}, which is left out", zone_name(zone)));
    format!("all values are dates{form}{}", zone.unwrap_or_default())
}

/// Words that other programs write for a missing value.
const NULL_WORDS: [&str; 13] =
    ["NA", "N/A", "n/a", "#N/A", "NULL", "null", "None", "none", "NaN", "nan", "\\N", "-", "?"];

/// Returns the option that helps if a word for NULL or another spelling of
/// dates made a column text.
fn hint(reason: &TextReason) -> String {
    if reason.cause == TextCause::OtherSpelling {
        return "; --types makes it a DATE all the same".to_string();
    }
    let spoilt = [TextCause::NotANumber, TextCause::NotADate, TextCause::NeitherNumberNorDate];
    if !spoilt.contains(&reason.cause) || !NULL_WORDS.contains(&reason.value.as_str()) {
        return String::new();
    }
    format!("; if it means NULL, load again with --null {}", command_line::quoted(&reason.value))
}

fn done(
    arguments: &Load,
    home: &Path,
    (loaded, file_bytes): (&LoadOutcome, Bytes),
    elapsed: Nanos,
) -> String {
    format!(
        "table {} in {}: {}, {} in {}, {:.2} s, {:.1} MB/s of the file ({})\n",
        stored_name(&arguments.table),
        home.display(),
        output::counted(loaded.row_count, "row"),
        Bytes(loaded.row_bytes),
        output::counted(loaded.block_count, "block"),
        elapsed.seconds(),
        file_bytes.per(elapsed).mb_per_second(),
        file_bytes,
    )
}
