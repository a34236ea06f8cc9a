//! Drops tables and indexes: first from the control file, and then their space. This database
//! reuses the space, and free space at the end of the files returns to the disk, down to their
//! initial sizes.
//!
//! Tables that transactions change are dropped through [`Transactions`], which this opens.

use crate::EngineError;
use crate::instance::Instance;
use crate::storage::control::{Dropped, Index, Table, listed, stored_name};
use crate::storage::tablespace::Purpose;
use crate::transaction::Transactions;
use plumb_events::Role;

/// Drops the table of that name with its indexes, or the index of that name.
///
/// # Errors
/// If there is neither, or the control file cannot be written; then nothing changed. While
/// transactions are open, their tables are dropped only by [`Transactions::drop_named`].
pub fn drop_named(instance: &Instance, name: &str) -> Result<Dropped, EngineError> {
    let session = instance.recorder.session(Role::Drop);
    let name = stored_name(name);
    if instance.catalog().live_kind(&name).is_some() {
        return Transactions::open(instance, &session)?.drop_named(&session, &name);
    }
    let (tables, indexes): (Vec<Table>, Vec<Index>) = {
        let catalog = instance.catalog();
        let tables = catalog.tables.iter().filter(|table| table.name == name).cloned().collect();
        let ours = |index: &&Index| index.name == name || index.table == name;
        (tables, catalog.indexes.iter().filter(ours).cloned().collect())
    };
    if tables.is_empty() && indexes.is_empty() {
        let known = listed(instance.catalog().segments().map(String::as_str));
        return Err(EngineError::Missing { kind: "table or index", name, known });
    }
    instance.change_catalog(&session, |catalog| {
        catalog.tables.retain(|table| table.name != name);
        catalog.indexes.retain(|index| index.name != name && index.table != name);
    })?;
    tables.iter().for_each(|table| instance.release(&session, table.tablespace, &table.extents));
    for index in &indexes {
        // Look-ups may have left its blocks in the cache.
        instance.release(&session, Purpose::Indx, &index.leaves);
        instance.release(&session, Purpose::Indx, &index.branches);
    }
    instance.shorten_files();
    Ok(Dropped {
        table: tables.into_iter().next().map(|table| table.name),
        indexes: indexes.into_iter().map(|index| index.name).collect(),
    })
}
