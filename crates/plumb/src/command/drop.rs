//! `plumb drop`: a table with its indexes, or one index.

use crate::arguments::Drop;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::outcome::Outcome;
use crate::{database, output};
use plumb_engine::storage::control::{Catalog, SegmentExtent};
use plumb_engine::storage::tablespace::Purpose;
use plumb_engine::{EngineError, Settings};
use plumb_events::SessionKind;

/// Removes it.
///
/// # Errors
/// When there is no table and no index of that name.
pub fn run(arguments: &Drop) -> Result<Outcome, Failure> {
    let interrupt = Interrupt::install()?;
    let instance = database::open(&arguments.path, Settings::default(), &interrupt)?;
    interrupt.begin();
    let name = arguments.name.to_uppercase();
    let dropped = what_goes(&instance.catalog(), &name)?;
    let session = instance.recorder.session("drop", SessionKind::Foreground);
    instance.change_catalog(&session, |catalog| {
        catalog.tables.retain(|table| table.name != name);
        catalog.indexes.retain(|index| index.name != name && index.table != name);
    })?;
    for (purpose, extents) in [(Purpose::Users, &dropped.of_table), (Purpose::Indx, &dropped.of_indexes)] {
        instance.tablespace(purpose).release(extents.iter().map(|extent| extent.extent));
    }
    output::print(&format!("dropped {}\n", dropped.names.join(", ")))?;
    Ok(Outcome::Fine)
}

/// What a drop takes away.
struct Dropped {
    names: Vec<String>,
    of_table: Vec<SegmentExtent>,
    of_indexes: Vec<SegmentExtent>,
}

fn what_goes(catalog: &Catalog, name: &str) -> Result<Dropped, EngineError> {
    let mut dropped = Dropped { names: Vec::new(), of_table: Vec::new(), of_indexes: Vec::new() };
    for table in catalog.tables.iter().filter(|table| table.name == name) {
        dropped.names.push(format!("table {}", table.name));
        dropped.of_table.extend(&table.extents);
    }
    for index in catalog.indexes.iter().filter(|index| index.name == name || index.table == name) {
        dropped.names.push(format!("index {}", index.name));
        dropped.of_indexes.extend(index.leaves.iter().chain(&index.branches));
    }
    if dropped.names.is_empty() {
        let tables = catalog.tables.iter().map(|table| table.name.as_str());
        let known: Vec<&str> =
            tables.chain(catalog.indexes.iter().map(|index| index.name.as_str())).collect();
        let known = if known.is_empty() { "none".to_string() } else { known.join(", ") };
        return Err(EngineError::Missing { kind: "table or index", name: name.to_string(), known });
    }
    Ok(dropped)
}
