//! `plumb check`: tables and indexes against each other.

use crate::arguments::Check;
use crate::failure::{Failure, OF_VERIFICATION};
use crate::interrupt::Interrupt;
use crate::outcome::Outcome;
use crate::output::{self, aligned};
use crate::progress::{Audience, Watch};
use crate::{database, settings};
use plumb_engine::{EngineError, Instance, check};
use plumb_lab::Stage;
use plumb_lab::large_sort::{blocks_in_use, is_finding};

/// Checks one table or all of them.
///
/// # Errors
/// The first thing that is wrong; its exit code is that of a failed verification
/// when it is in the data, and 1 when the data cannot be reached.
pub fn run(arguments: &Check) -> Result<Outcome, Failure> {
    let settings = settings::parse_for_files(&arguments.set)?;
    let interrupt = Interrupt::install()?;
    let instance = database::open(&arguments.path, settings, &interrupt)?;
    interrupt.begin_reading();
    let tables = tables(&instance, arguments.table.as_deref())?;
    if tables.is_empty() {
        output::print("the database has no table\n")?;
    }
    let watch = Watch::start(Audience::Terminal);
    watch.stage(&Stage::Verify { instance: &instance, blocks: blocks_in_use(&instance) });
    for table in &tables {
        let checked =
            check::check_table(&instance, table).map_err(|error| failure(table, error, &interrupt))?;
        let rows = checked.iter().map(|line| {
            vec![format!("  {}", line.name), format!("{:.2} s", line.elapsed.seconds()), line.detail.clone()]
        });
        output::print(&format!("table {table}\n{}", aligned(&rows.collect::<Vec<_>>())))?;
    }
    Ok(Outcome::Fine)
}

fn tables(instance: &Instance, table: Option<&str>) -> Result<Vec<String>, EngineError> {
    let catalog = instance.catalog();
    match table {
        Some(name) => Ok(vec![catalog.table(name)?.name.clone()]),
        None => Ok(catalog.tables.iter().map(|table| table.name.clone()).collect()),
    }
}

fn failure(table: &str, error: EngineError, interrupt: &Interrupt) -> Failure {
    if let EngineError::Interrupted = error {
        return Failure::run(interrupt.message());
    }
    if is_finding(&error) {
        return Failure {
            message: format!("table {table} is not as it must be: {error}"),
            code: OF_VERIFICATION,
        };
    }
    Failure::from(error)
}
