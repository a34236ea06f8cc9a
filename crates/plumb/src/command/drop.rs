//! `plumb drop`: a table with its indexes, or one index.

use crate::arguments::Drop;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::outcome::Outcome;
use crate::{database, output};
use plumb_engine::Settings;
use plumb_engine::drop::drop_named;
use serde_json::json;

/// Removes a table or an index by name.
pub fn run(arguments: &Drop) -> Result<Outcome, Failure> {
    let interrupt = Interrupt::install()?;
    let instance = database::open(&arguments.path, Settings::default(), &interrupt)?;
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
