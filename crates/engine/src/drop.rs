//! Drops tables and indexes: out of the control file first, then the space: what follows in this database takes it, and
//! the disk gets what lies at the end of the files, down to what they were made with.

use crate::EngineError;
use crate::instance::Instance;
use crate::storage::control::{Index, SegmentExtent, Table, listed, stored_name};
use crate::storage::tablespace::Purpose;
use plumb_events::{Role, Session};

/// What a drop removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dropped {
    /// The table, if the name was a table's.
    pub table: Option<String>,
    /// The indexes: those of the table, or the one of that name.
    pub indexes: Vec<String>,
}

/// Drops the table of that name with its indexes, or the index of that name.
///
/// # Errors
/// When there is neither, or the control file cannot be written; then nothing
/// has changed.
pub fn drop_named(instance: &Instance, name: &str) -> Result<Dropped, EngineError> {
    let session = instance.recorder.session(Role::Drop);
    let name = stored_name(name);
    let (tables, indexes): (Vec<Table>, Vec<Index>) = {
        let catalog = instance.catalog();
        let tables = catalog.tables.iter().filter(|table| table.name == name).cloned().collect();
        let ours = |index: &&Index| index.name == name || index.table == name;
        (tables, catalog.indexes.iter().filter(ours).cloned().collect())
    };
    if let Some(kind) = instance.catalog().live_kind(&name) {
        return Err(EngineError::Contradiction {
            first: format!("a drop of {kind} {name}"),
            second: "the transactions that change it".to_string(),
            why:
                "such a table cannot be dropped yet; delete its rows, or load the rest into another database"
                    .to_string(),
        });
    }
    if tables.is_empty() && indexes.is_empty() {
        let known = listed(instance.catalog().segments().map(String::as_str));
        return Err(EngineError::Missing { kind: "table or index", name, known });
    }
    instance.change_catalog(&session, |catalog| {
        catalog.tables.retain(|table| table.name != name);
        catalog.indexes.retain(|index| index.name != name && index.table != name);
    })?;
    release(instance, &session, &tables, &indexes);
    Ok(Dropped {
        table: tables.into_iter().next().map(|table| table.name),
        indexes: indexes.into_iter().map(|index| index.name).collect(),
    })
}

fn release(instance: &Instance, session: &Session, tables: &[Table], indexes: &[Index]) {
    let extents = |list: &[SegmentExtent]| list.iter().map(|extent| extent.extent).collect::<Vec<_>>();
    for table in tables {
        instance.cache().discard(session, extents(&table.extents));
        instance.tablespace(Purpose::Users).release(extents(&table.extents));
    }
    for index in indexes {
        for segment in [&index.leaves, &index.branches] {
            // Look-ups may have left blocks of it in the cache.
            instance.cache().discard(session, extents(segment));
            instance.tablespace(Purpose::Indx).release(extents(segment));
        }
    }
    for purpose in [Purpose::Users, Purpose::Indx] {
        // They are dropped; a file that cannot be shortened keeps the space for what follows.
        let _ = instance.tablespace(purpose).give_back();
    }
}
