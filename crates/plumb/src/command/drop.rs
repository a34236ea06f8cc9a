//! `plumb drop`: a table with its indexes, or one index.

use crate::arguments::Drop;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::outcome::Outcome;
use crate::{database, output};
use plumb_engine::drop::drop_named;
use plumb_engine::storage::control::stored_name;
use plumb_engine::{Instance, Settings};
use serde_json::json;

/// Removes a table or an index by name. At a terminal it asks; a script has named what it means.
pub fn run(arguments: &Drop) -> Result<Outcome, Failure> {
    let interrupt = Interrupt::install()?;
    let instance = database::open(&arguments.path, Settings::default(), &interrupt)?;
    let question = format!("drop {}, which cannot be undone? [y/N] ", named(&instance, &arguments.name));
    if !arguments.yes && !arguments.json && output::agreed(&question)? == Some(false) {
        return output::print("nothing was dropped\n").map(|()| Outcome::Fine);
    }
    interrupt.begin();
    let dropped = drop_named(&instance, &arguments.name)?;
    if arguments.json {
        output::print_json(&json!({ "table": dropped.table, "indexes": dropped.indexes }))?;
        return Ok(Outcome::Fine);
    }
    let table = dropped.table.iter().map(|name| format!("table {name}"));
    let names: Vec<String> =
        table.chain(dropped.indexes.iter().map(|name| format!("index {name}"))).collect();
    output::print(&format!("dropped {}\n", names.join(", ")))?;
    Ok(Outcome::Fine)
}

/// Names what goes: a table with its rows and indexes, otherwise the name as it was given.
fn named(instance: &Instance, name: &str) -> String {
    let (catalog, stored) = (instance.catalog(), stored_name(name));
    let Some(table) = catalog.tables.iter().find(|table| table.name == stored) else { return stored };
    let indexes: Vec<&str> = catalog.indexes_of(name).map(|index| index.name.as_str()).collect();
    let with = if indexes.is_empty() { String::new() } else { format!(" and {}", indexes.join(", ")) };
    format!("table {stored} with {}{with}", output::counted(table.row_count, "row"))
}
