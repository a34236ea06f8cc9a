//! The sales table, as large sorts and scans have it.
//!
//! Rows and seed are those of the embedded engine's. The table is vacuumed and analysed, so that no
//! run sets hint bits or decides on a plan by chance.

use crate::PostgresError;
use crate::copy::{table_columns, write_rows};
use crate::session::ServerSession;
use plumb_events::Cancel;
use plumb_types::RowSource;
use plumb_workload::{SalesSpec, SalesTable, Work};

pub(super) const TABLE: &str = "sales";
/// Bytes of a row in the table.
pub(super) const ROW_BYTES: u64 = 100;

pub(super) fn rows(work: &Work) -> SalesTable {
    SalesTable::new(SalesSpec { rows: work.rows(), seed: work.seed() })
}

/// Creates and loads the table.
pub(super) fn load(
    session: &mut ServerSession<'_>,
    work: &Work,
    cancel: &Cancel,
) -> Result<(), PostgresError> {
    let table = rows(work);
    let columns = table_columns(table.schema());
    // In the transaction that creates the table its rows need no log.
    session.run("the table is created", &format!("begin; create table {TABLE} ({columns})"))?;
    session.copy(&format!("copy {TABLE} from stdin (format binary, freeze)"), |writer, failed| {
        write_rows(&table, writer, cancel, failed)
    })?;
    session.run("the table is loaded", "commit")?;
    session.run("the table is vacuumed", &format!("vacuum (freeze, analyze) {TABLE}"))
}
