//! The record of a visit: on which server a study has a database.
//!
//! ```text
//! made, synced, locked ──> CREATE DATABASE ──> ... ──> DROP DATABASE ──> removed
//!        └── killed here: `plumb clean` lists the file, and asks the server that it names
//! ```
//!
//! The file is `visit-DATABASE.json` in plumb's state directory, with mode 0600. It has the form of
//! an undo journal: a line of JSON and the hash of it. The process that made it holds its lock, so
//! that a file without a lock is what a killed process left.
//!
//! ```text
//! {"format":1,"address":"postgres://me@host:5432/sales","database":"plumb_..."}
//! ```
//!
//! The address has no password.

use super::journal::{self, HeldFile};
use super::{mark, quoted};
use crate::PostgresError;
use crate::address::{ServerAddress, environment};
use crate::session::ServerSession;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// Start of the names of these files.
pub const PREFIX: &str = "visit-";
const FORMAT: u32 = 1;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    format: u32,
    address: String,
    database: String,
}

/// A record that this process holds.
#[derive(Debug)]
pub(super) struct VisitRecord(HeldFile);

impl VisitRecord {
    /// Writes a record and syncs it.
    ///
    /// # Errors
    /// The kernel's.
    pub fn make(
        directory: &Path,
        server: &ServerAddress,
        database: &str,
    ) -> Result<VisitRecord, PostgresError> {
        let content = Content { format: FORMAT, address: server.to_string(), database: database.to_string() };
        let path = directory.join(format!("{PREFIX}{database}.json"));
        HeldFile::make(&path, &journal::written(&content)).map(VisitRecord)
    }

    /// Removes the file: the database is gone.
    pub fn remove(self) {
        // One that stays is found by `plumb clean`, which sees that the database is gone.
        let _ = self.0.remove();
    }
}

/// Reads the record of a process that has ended, and holds it from now on.
fn take(record: &Path) -> Result<(HeldFile, Content), PostgresError> {
    let (held, bytes) = HeldFile::take(record, "the study that made this record is running")?;
    let refused = |why: String| PostgresError::Unfit(format!("{}: {why}", record.display()));
    let text = journal::content(&bytes).ok_or_else(|| {
        refused("it is no whole record of a visit: its hash is not that of its content".to_string())
    })?;
    let content: Content = serde_json::from_str(text)
        .map_err(|error| refused(format!("it is no record of a visit: {error}")))?;
    if content.format != FORMAT {
        return Err(refused(format!(
            "it has the format {}, expected {FORMAT}; use the plumb that wrote it",
            content.format
        )));
    }
    match mark::is_name(&content.database) && !content.address.chars().any(char::is_control) {
        true => Ok((held, content)),
        false => Err(refused("it names no database of a study".to_string())),
    }
}

/// Returns the server that a killed study visited.
///
/// # Errors
/// If the study is running, or the file is no whole record of this user.
pub fn address_of(record: &Path) -> Result<String, PostgresError> {
    take(record).map(|(_, content)| content.address)
}

/// Drops what killed studies of this machine left on the server of a record, and removes it.
///
/// # Errors
/// If the study is running, or the server does not answer or refuses.
pub fn drop_left(record: &Path) -> Result<(), PostgresError> {
    let (held, content) = take(record)?;
    let server = ServerAddress::parse(&content.address, &environment)?;
    let mut left = left_on(&server)?;
    // Its lock is free: the process has ended, whatever the numbers say.
    if !left.contains(&content.database) {
        left.push(content.database);
    }
    left.iter().try_for_each(|database| drop_now(&server, database))?;
    held.remove()
}

/// Returns the databases that killed studies of this machine left on a server.
pub(super) fn left_on(server: &ServerAddress) -> Result<Vec<String>, PostgresError> {
    let mut session = ServerSession::connect(server, "plumb visit")?;
    let named = "select datname::text from pg_catalog.pg_database where datname like 'plumb\\_%'";
    let rows = session.rows("the server is looked at", named, &[])?;
    let names = rows.iter().filter_map(|row| row.try_get::<_, String>(0).ok());
    Ok(names.filter(|name| mark::is_left(name)).collect())
}

/// Drops a database of plumb's.
pub(super) fn drop_now(server: &ServerAddress, database: &str) -> Result<(), PostgresError> {
    let mut session = ServerSession::connect(server, "plumb visit")?;
    let drop = format!("drop database if exists {} with (force)", quoted(database));
    session.run("the database is dropped", &drop)
}

/// Removes the record of a database that is gone, if its maker has ended.
pub(super) fn forget(directory: &Path, database: &str) {
    let path = directory.join(format!("{PREFIX}{database}.json"));
    if take(&path).is_ok() {
        let _ = fs::remove_file(&path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_held_by_its_study_and_read_after_a_kill() {
        let place = tempfile::tempdir().expect("a directory");
        let server = ServerAddress::parse("postgres://me:geheim@h/d", &|_| None).expect("an address");
        let database = mark::new_name();
        let held = VisitRecord::make(place.path(), &server, &database).expect("written");
        let path = place.path().join(format!("visit-{database}.json"));
        let text = fs::read_to_string(&path).expect("a file");
        assert!(
            text.contains("\"address\":\"postgres://me@h:5432/d\"") && !text.contains("geheim"),
            "{text}"
        );
        assert!(address_of(&path).expect_err("held").to_string().contains("is running"));
        // What a kill does: the lock is gone and the file is not.
        drop(held);
        assert_eq!(address_of(&path).expect("an address"), "postgres://me@h:5432/d");
        let other = text.replace("plumb_", "sales_");
        fs::write(&path, other).expect("a file");
        assert!(address_of(&path).expect_err("changed").to_string().contains("no whole record"));
        let named = Content { format: 1, address: "postgres://h".into(), database: "sales".into() };
        fs::write(&path, journal::written(&named)).expect("a file");
        assert!(address_of(&path).expect_err("no mark").to_string().contains("names no database of a study"));
        forget(place.path(), &database);
        assert!(path.exists(), "what is no record stays");
    }
}
