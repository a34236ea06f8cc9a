//! `plumb export` and `plumb head`: rows of a table, for other programs and for people.
//!
//! Rows come in the table's order, or in that of an index: then each entry's row is fetched by its
//! id, some thousand at a time. `plumb load` can read the output: numbers and dates are written as
//! in the loaded file, otherwise in their shortest form, NULL as an empty field.

use crate::arguments::{Export, Format, Head};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::outcome::Outcome;
use crate::output::{self, aligned_under_head};
use crate::{database, types};
use plumb_engine::cache::CacheReader;
use plumb_engine::file_sort::unfinished;
use plumb_engine::index::btree::BTree;
use plumb_engine::storage::control::{Index, stored_name};
use plumb_engine::storage::tablespace::Purpose;
use plumb_engine::table::fetch::{self, RowFetcher};
use plumb_engine::view::predicate::Predicate;
use plumb_engine::view::{ExtentShare, TableView};
use plumb_engine::{EngineError, Instance, Settings};
use plumb_events::{Role, Session};
use plumb_host::owner::Owner;
use plumb_io::Disk;
use plumb_types::{Column, Schema, Value};
use plumb_units::RowId;
use plumb_workload::csv_writer;
use serde_json::{Value as Json, json};
use std::cell::{Cell, RefCell};
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::ops::Bound;
use std::path::{Path, PathBuf};

/// Rows of an index that are fetched at a time.
const FETCHED_ROWS: usize = 4096;
/// Bytes that are written at a time.
const WRITE_BYTES: usize = 256 * 1024;

impl Format {
    /// Writes rows in this form.
    fn write(
        self,
        rows: &Rows<'_>,
        path: &Path,
        interrupt: &Interrupt,
        to: impl Write + Send,
    ) -> Result<u64, Failure> {
        match self {
            Format::Csv => csv(rows, path, interrupt, to),
            #[cfg(feature = "parquet")]
            Format::Parquet => parquet(rows, path, interrupt, to),
        }
    }
}

/// Writes the rows to standard output or to a new file.
pub fn export(arguments: &Export) -> Result<Outcome, Failure> {
    let interrupt = Interrupt::install()?;
    let rows = Rows {
        table: &arguments.table,
        order_by: arguments.order_by.as_deref(),
        columns: arguments.columns.as_deref(),
        condition: arguments.condition.as_deref(),
        delimiter: arguments.delimiter,
        limit: arguments.limit.unwrap_or(u64::MAX),
    };
    let ended = match &arguments.output {
        // To standard error, because the rows may go into a pipe.
        None => arguments
            .format
            .write(&rows, &arguments.path, &interrupt, io::stdout())
            .map(|count| output::remark(&format!("{}\n", output::counted(count, "row")))),
        Some(path) => {
            let mut file = NewFile::create(path)?;
            interrupt.begin_reading();
            arguments
                .format
                .write(&rows, &arguments.path, &interrupt, &mut file)
                .and_then(|count| file.finish().map(|()| count))
                .and_then(|count| {
                    let shown = path.display().to_string();
                    match arguments.json {
                        true => output::print_json(&json!({ "file": shown, "rows": count })),
                        false => output::print(&format!("{shown}: {}\n", output::counted(count, "row"))),
                    }
                })
        }
    };
    ended.map(|()| Outcome::Fine).map_err(|failure| cannot_go_on(failure, &interrupt))
}

fn cannot_go_on(failure: Failure, interrupt: &Interrupt) -> Failure {
    if failure.message == EngineError::Interrupted.to_string() { interrupt.failure() } else { failure }
}

/// Shows the first rows in columns.
pub fn head(arguments: &Head) -> Result<Outcome, Failure> {
    let interrupt = Interrupt::install()?;
    let of_index = indexed_table(&arguments.path, &arguments.table, &interrupt)?;
    let (table, index) = match (&of_index, &arguments.order_by) {
        (Some(table), None) => (table.as_str(), Some(arguments.table.as_str())),
        (_, order_by) => (arguments.table.as_str(), order_by.as_deref()),
    };
    let rows = Rows {
        table,
        order_by: index,
        columns: arguments.columns.as_deref(),
        condition: arguments.condition.as_deref(),
        delimiter: b',',
        limit: arguments.limit.unwrap_or(arguments.rows),
    };
    let mut shown: Vec<Vec<Option<String>>> = Vec::new();
    let names = rows.visit(
        &arguments.path,
        &interrupt,
        |_| Ok(()),
        |values| {
            let text = |column: &Column, value: &Value| (*value != Value::Null).then(|| column.text(value));
            shown.push(values.iter().map(|(column, value)| text(column, value)).collect());
            Ok(())
        },
    )?;
    if arguments.json {
        let object = |row: Vec<Option<String>>| {
            let cell = |cell: Option<String>| cell.map_or(Json::Null, Json::from);
            Json::Object(names.iter().cloned().zip(row.into_iter().map(cell)).collect())
        };
        return output::print_json(&Json::Array(shown.into_iter().map(object).collect()))
            .map(|()| Outcome::Fine);
    }
    if shown.is_empty() {
        return output::print(&format!("no rows; its columns are {}\n", names.join(", ")))
            .map(|()| Outcome::Fine);
    }
    let null = |cell: Option<String>| cell.unwrap_or_else(|| "NULL".to_string());
    let rows = shown.into_iter().map(|row| row.into_iter().map(null).collect());
    let all: Vec<Vec<String>> = std::iter::once(names).chain(rows).collect();
    output::print(&aligned_under_head(&all)).map(|()| Outcome::Fine)
}

/// Returns the table of an index, if the name is one of an index and of no table.
fn indexed_table(path: &Path, name: &str, interrupt: &Interrupt) -> Result<Option<String>, Failure> {
    let instance = database::open_to_read(path, Settings::default(), interrupt)?;
    let (catalog, stored) = (instance.catalog(), stored_name(name));
    let is_table = catalog.tables.iter().any(|table| table.name == stored);
    let index = catalog.indexes.iter().find(|index| index.name == stored).filter(|_| !is_table);
    Ok(index.map(|index| index.table.clone()))
}

/// Writes CSV lines; returns the number of rows.
fn csv(rows: &Rows<'_>, path: &Path, interrupt: &Interrupt, to: impl Write) -> Result<u64, Failure> {
    let count = Cell::new(0);
    let to = RefCell::new(BufWriter::with_capacity(WRITE_BYTES, to));
    let line = RefCell::new(Vec::new());
    let write = |fields: &mut dyn Iterator<Item = String>| {
        let mut line = line.borrow_mut();
        line.clear();
        csv_writer::append_line(fields, rows.delimiter, &mut line);
        to.borrow_mut().write_all(&line).map_err(Written::from)
    };
    let written = rows.visit(
        path,
        interrupt,
        |names| write(&mut names.iter().cloned()),
        |values| {
            let text = |(column, value): &(&Column, &Value)| {
                if value.is_null() { String::new() } else { column.text(value) }
            };
            count.set(count.get() + 1);
            write(&mut values.iter().map(text))
        },
    );
    let written = written.and_then(|_| Ok(to.borrow_mut().flush().map_err(Written::from)?));
    match written {
        Err(failure) if failure.message == READER_GONE => Ok(count.get()),
        written => written.map(|()| count.get()),
    }
}

/// Writes a Parquet file; returns the number of rows.
#[cfg(feature = "parquet")]
fn parquet(
    rows: &Rows<'_>,
    path: &Path,
    interrupt: &Interrupt,
    to: impl Write + Send,
) -> Result<u64, Failure> {
    use plumb_parquet::{ParquetError, ParquetWriter};
    let refused = |error: ParquetError| Written(Failure::run(error.to_string()));
    let schema = rows.schema(path, interrupt)?;
    let count = Cell::new(0);
    let writer = RefCell::new(
        ParquetWriter::new(BufWriter::with_capacity(WRITE_BYTES, to), &schema).map_err(refused)?,
    );
    let push = |values: &[(&Column, &Value)]| {
        let values: Vec<&Value> = values.iter().map(|(_, value)| *value).collect();
        count.set(count.get() + 1);
        writer.borrow_mut().push(&values).map_err(refused)
    };
    rows.visit(path, interrupt, |_| Ok(()), push)?;
    let mut written = writer.into_inner().finish().map_err(refused)?;
    written.flush().map_err(Written::from)?;
    Ok(count.get())
}

/// A reader that has gone away (`plumb export T | head`) is no error.
const READER_GONE: &str = "the reader has gone";

/// Error of a writer of rows.
struct Written(Failure);

impl From<io::Error> for Written {
    fn from(error: io::Error) -> Written {
        Written(Failure::run(match error.kind() {
            ErrorKind::BrokenPipe => READER_GONE.to_string(),
            _ => format!("cannot write the rows: {error}"),
        }))
    }
}

impl From<Written> for Failure {
    fn from(written: Written) -> Failure {
        written.0
    }
}

/// Rows to export, and their order.
struct Rows<'a> {
    table: &'a str,
    order_by: Option<&'a str>,
    columns: Option<&'a str>,
    condition: Option<&'a str>,
    delimiter: u8,
    limit: u64,
}

impl Rows<'_> {
    /// Passes the columns' names, then each row by its columns; returns the names.
    fn visit(
        &self,
        path: &Path,
        interrupt: &Interrupt,
        begin: impl FnOnce(&[String]) -> Result<(), Written>,
        mut show: impl FnMut(&[(&Column, &Value)]) -> Result<(), Written>,
    ) -> Result<Vec<String>, Failure> {
        let instance = database::open_to_read(path, Settings::default(), interrupt)?;
        let schema = self.whole_schema(&instance)?;
        let places = self.places(&schema)?;
        let predicate = self.condition.map(|text| Predicate::parse(text, &schema)).transpose()?;
        let names: Vec<String> = places.iter().map(|place| schema.columns[*place].name.clone()).collect();
        begin(&names)?;
        let mut left = self.limit;
        let mut failed = None;
        // An early end of the rows is no failure of the engine.
        let mut take = |values: &[Value]| -> Result<(), EngineError> {
            if left == 0 {
                return Err(EngineError::Stopped);
            }
            left -= 1;
            let chosen: Vec<(&Column, &Value)> =
                places.iter().map(|place| (&schema.columns[*place], &values[*place])).collect();
            show(&chosen).map_err(|written| {
                failed = Some(written);
                EngineError::Stopped
            })
        };
        let ended = match database::is_live(&instance, self.table) {
            true => {
                drop(instance);
                self.of_transactions(path, interrupt, predicate.as_ref(), &mut take)
            }
            false => self.of_loaded(&instance, predicate.as_ref(), &mut take),
        };
        match (failed, ended) {
            (Some(written), _) => Err(written.into()),
            (None, Err(Failure { message, .. })) if message == EngineError::Stopped.to_string() => Ok(names),
            (None, ended) => ended.map(|()| names),
        }
    }

    fn whole_schema(&self, instance: &Instance) -> Result<Schema, EngineError> {
        let (catalog, stored) = (instance.catalog(), stored_name(self.table));
        match catalog.live_tables.iter().find(|table| table.name == stored) {
            Some(live) => Ok(live.schema.clone()),
            None => Ok(catalog.table(self.table)?.schema.clone()),
        }
    }

    /// Returns the schema of the requested columns.
    #[cfg(feature = "parquet")]
    fn schema(&self, path: &Path, interrupt: &Interrupt) -> Result<Schema, Failure> {
        let instance = database::open_to_read(path, Settings::default(), interrupt)?;
        let schema = self.whole_schema(&instance)?;
        let places = self.places(&schema)?;
        Ok(Schema { columns: places.into_iter().map(|place| schema.columns[place].clone()).collect() })
    }

    /// Returns the positions of the requested columns.
    fn places(&self, schema: &Schema) -> Result<Vec<usize>, Failure> {
        let Some(columns) = self.columns else { return Ok((0..schema.columns.len()).collect()) };
        let place = |(name, _): (String, bool)| {
            schema.position(&name).ok_or_else(|| {
                Failure::run(format!(
                    "--columns: table {} has no column {name}; it has {}",
                    self.table,
                    schema.names()
                ))
            })
        };
        types::parse_columns(columns)?.into_iter().map(place).collect()
    }

    fn of_loaded(
        &self,
        instance: &Instance,
        predicate: Option<&Predicate>,
        take: &mut dyn FnMut(&[Value]) -> Result<(), EngineError>,
    ) -> Result<(), Failure> {
        let session = instance.recorder.session(Role::User);
        let Some(name) = self.order_by else {
            let view = TableView::open(instance, None, &session, self.table)?;
            return Ok(as_they_lie(&view, &session, predicate, take)?);
        };
        let table = instance.catalog().table(self.table)?.clone();
        let index = self.index(instance, name)?;
        let blocks = RefCell::new(CacheReader::new(&session, instance.caches()));
        let tree = BTree::new(&index, instance.tablespace(Purpose::Indx), &blocks);
        let mut entries = tree.range(Bound::Unbounded, Bound::Unbounded)?;
        let holds = |image: &[u8]| predicate.map_or(Ok(true), |predicate| predicate.holds(image));
        let mut fetcher = RowFetcher::new(instance, &session, &table)?.filtered(&holds);
        let done = Cell::new(false);
        // Fetches no more rows than are needed, unless some of them may be left out.
        let needed = usize::try_from(self.limit).unwrap_or(usize::MAX).max(1);
        let at_a_time = if predicate.is_some() { FETCHED_ROWS } else { FETCHED_ROWS.min(needed) };
        while !done.get() {
            instance.cancel.check().map_err(EngineError::from)?;
            let mut rows: Vec<RowId> = Vec::with_capacity(at_a_time);
            while rows.len() < at_a_time {
                let Some(entry) = entries.next_entry()? else {
                    done.set(true);
                    break;
                };
                rows.push(entry.row);
            }
            for values in fetcher.fetch(&rows)? {
                take(&values)?;
            }
        }
        Ok(())
    }

    fn index(&self, instance: &Instance, name: &str) -> Result<Index, Failure> {
        let catalog = instance.catalog();
        let found = catalog.indexes_of(self.table).find(|index| index.name == stored_name(name)).cloned();
        found.ok_or_else(|| {
            let known: Vec<&str> = catalog.indexes_of(self.table).map(|index| index.name.as_str()).collect();
            let known = if known.is_empty() { "none".to_string() } else { known.join(", ") };
            Failure::run(format!("--order-by {name}: table {} has no such index; it has {known}", self.table))
        })
    }

    /// Reads committed rows of a table that transactions change, after recovery from a crash.
    fn of_transactions(
        &self,
        path: &Path,
        interrupt: &Interrupt,
        predicate: Option<&Predicate>,
        take: &mut dyn FnMut(&[Value]) -> Result<(), EngineError>,
    ) -> Result<(), Failure> {
        if let Some(name) = self.order_by {
            return Err(Failure::usage(format!(
                "--order-by {name}: table {} is one that transactions change, whose rows come as they lie; export it and \
                 sort the file: plumb sort FILE SORTED --delimiter , --key N,N",
                self.table
            )));
        }
        let instance = database::open(path, Settings::default(), interrupt)?;
        let session = instance.recorder.session(Role::User);
        let transactions = database::open_transactions(&instance, &session)?;
        let view = TableView::open(&instance, Some(&transactions), &session, self.table)?;
        Ok(as_they_lie(&view, &session, predicate, take)?)
    }
}

/// Passes the rows of a table that satisfy the condition, in block order.
fn as_they_lie(
    view: &TableView<'_>,
    session: &Session,
    predicate: Option<&Predicate>,
    take: &mut dyn FnMut(&[Value]) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    let (operation, granules) = (view.instance().operation(), view.granules(ExtentShare::ALL));
    view.scan(session, &operation, &granules, |image, row| {
        let holds = predicate.map_or(Ok(true), |predicate| predicate.holds(image));
        let bad = |error: plumb_types::RowError| EngineError::Verification {
            what: format!("row {row}"),
            found: error.to_string(),
            expected: "a row of its table".to_string(),
        };
        match holds.map_err(bad)? {
            true => take(&fetch::values(view.schema(), image, row)?),
            false => Ok(()),
        }
    })
}

/// A file that gets its name when it is complete.
pub(super) struct NewFile {
    file: File,
    path: PathBuf,
    unfinished: PathBuf,
    finished: bool,
    /// Distinguishes the file of a killed export from this one.
    _owner: Owner,
}

impl NewFile {
    pub(super) fn create(path: &Path) -> Result<NewFile, Failure> {
        if fs::symlink_metadata(path).is_ok() {
            return Err(EngineError::FileExists { path: path.to_path_buf() }.into());
        }
        let unfinished = unfinished(path);
        let refused = |error: io::Error| {
            let elsewhere = "name a file in a directory that may be written";
            let cure = plumb_io::cure(&error, path, elsewhere);
            Failure::run(format!("cannot make {}: {error}{cure}", path.display()))
        };
        if fs::symlink_metadata(&unfinished).is_ok() {
            return Err(EngineError::Unfinished { path: unfinished }.into());
        }
        let owner = Owner::of_file(&unfinished).map_err(refused)?;
        let file = File::create_new(&unfinished).map_err(refused)?;
        Ok(NewFile { file, path: path.to_path_buf(), unfinished, finished: false, _owner: owner })
    }

    pub(super) fn finish(mut self) -> Result<(), Failure> {
        let named = self.file.sync_all().and_then(|()| fs::rename(&self.unfinished, &self.path));
        self.finished = named.is_ok();
        named.map_err(|error| {
            let cure = plumb_io::cure(&error, &self.path, "name a file in a directory that may be written");
            Failure::run(format!("cannot finish {}: {error}{cure}", self.path.display()))
        })?;
        // A name is durable once its directory is synced.
        let around = self.path.parent().unwrap_or(Path::new(""));
        Ok(Disk::Kernel.sync_directory(around).map_err(EngineError::from)?)
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes).map_err(|error| {
            let cure = plumb_io::cure(&error, &self.unfinished, "name a file on another file system");
            io::Error::new(error.kind(), format!("{error}{cure}"))
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.finished {
            // The first error is the one to report.
            let _ = fs::remove_file(&self.unfinished);
        }
    }
}
