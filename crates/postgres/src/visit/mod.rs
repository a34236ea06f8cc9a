//! A running server of others as a target of a study.
//!
//! ```text
//! Visit::of ──> intentions (shown, asked once) ──> database, load ──> runs ──> database dropped
//! ```
//!
//! What a visit changes: it makes a database of its own and drops it. Settings are those of its
//! sessions. It restarts and reloads nothing, writes no setting to a file, resets no counter and
//! takes no checkpoint. A setting that a session cannot set is refused before anything is made.
//!
//! The database has a comment with host, boot and process. A later visit from there drops what a
//! dead process left; `drop database` does it otherwise.
//!
//! All receipts are the server's word: an address does not say which processes of which machine
//! serve it. What other databases do in a run is counted by the server and is a finding of the run.
//!
//! Rejected: plumb's tables in a schema of an existing database. Its catalogs would grow, and
//! autovacuum, statistics and locks of the owner's tables would meet those of the study.
//!
//! Limits: workloads that write nothing but their own index (`large-sort`). No reload-level
//! settings. Pages stay in the caches between runs, the same for all arms.

mod run;
mod target;

pub use target::VisitedTarget;

use crate::PostgresError;
use crate::address::ServerAddress;
use crate::receipts::rule_of;
use crate::run::WORDS;
use crate::session::ServerSession;
use crate::workload;
use crate::workload::parameter;
use plumb_study::definition::Study;
use plumb_study::machine;
use plumb_units::TakesEffect;
use std::fs;
use std::path::Path;

/// Start of the names of databases.
pub const PREFIX: &str = "plumb_";
const OLDEST: i32 = 140_000;
/// Start of the comment of a database: then host and process.
const MARK: &str = "made by plumb on ";
/// Facts of a server and of the rights of a session.
const FACTS: &str = "select current_setting('server_version'), current_setting('server_version_num')::int, \
                     pg_is_in_recovery(), current_setting('default_transaction_read_only') = 'on', \
                     (select rolcreatedb or rolsuper from pg_roles where rolname = current_user), current_user::text";
/// Databases of visits, each with its comment.
const LEFT: &str = "select datname::text, coalesce(shobj_description(oid, 'pg_database'), '') from pg_database \
                    where datname like 'plumb\\_%'";

/// A server that a study may use.
#[derive(Clone)]
pub struct Visit {
    address: ServerAddress,
    version: String,
    /// Databases that dead processes of this host left.
    left: Vec<String>,
}

impl Visit {
    /// Connects to a server and reads what it is; nothing is changed.
    ///
    /// # Errors
    /// If it does not answer, is too old, in recovery or read-only, or the user may make no
    /// database.
    pub fn of(address: &ServerAddress) -> Result<Visit, PostgresError> {
        const DURING: &str = "the server is looked at";
        let mut session = ServerSession::connect(address, "plumb visit")?;
        let rows = session.rows(DURING, FACTS, &[])?;
        let failed = |error: postgres::Error| address.failed(DURING, &error);
        let [row] = &rows[..] else { return Err(PostgresError::Unfit(format!("{address}: no facts"))) };
        let version: String = row.try_get(0).map_err(failed)?;
        let number: i32 = row.try_get(1).map_err(failed)?;
        let user: String = row.try_get(5).map_err(failed)?;
        let is = |column: usize| row.try_get::<_, bool>(column).unwrap_or_default();
        let refused = match () {
            () if number < OLDEST => Some(format!("it is PostgreSQL {version}, expected 14 or later")),
            () if is(2) => Some("it is in recovery, and a study makes a database; name its primary".to_string()),
            () if is(3) => Some(
                "default_transaction_read_only is on, and a study makes a database; name a user that may write"
                    .to_string(),
            ),
            () if !is(4) => Some(format!(
                "{user} may not make a database; `alter role {user} createdb`, or name another user"
            )),
            () => None,
        };
        if let Some(why) = refused {
            return Err(PostgresError::Unfit(format!("{address}: {why}")));
        }
        let found = session.rows(DURING, LEFT, &[])?;
        let named = found.iter().filter_map(|row| {
            let (name, comment) = (row.try_get::<_, String>(0).ok()?, row.try_get::<_, String>(1).ok()?);
            is_left(&comment).then_some(name)
        });
        Ok(Visit { address: address.clone(), version, left: named.collect() })
    }

    /// Returns what a study would do to the server, a sentence each.
    ///
    /// # Errors
    /// If the study needs a setting that a session cannot set, or its workload writes.
    pub fn intentions(&self, study: &Study) -> Result<Vec<String>, PostgresError> {
        let mut set: Vec<&str> = Vec::new();
        for assignment in study.all_settings().filter(|set| parameter(&set.name).is_none()) {
            let name = assignment.name.as_str();
            let is_word = WORDS.contains(&name);
            let takes_effect = rule_of(name).map(|rule| rule.takes_effect);
            if is_word || takes_effect != Some(TakesEffect::Session) {
                return Err(PostgresError::Unfit(format!(
                    "{name} = {}: a server of others takes settings of a session alone, and nothing is restarted or \
                     reloaded; leave --target out of this study",
                    assignment.value
                )));
            }
            if !set.contains(&name) {
                set.push(name);
            }
        }
        let work = study.work.as_ref().map(|work| work.workload.name).unwrap_or_default();
        let execution = workload::execution(work)?;
        if execution.writes() {
            return Err(PostgresError::Unfit(format!(
                "workload {work} commits to the log that all sessions of {} wait for; a server of others takes large-sort",
                self.address
            )));
        }
        let room = study.work.as_ref().map(|work| execution.room(work)).unwrap_or_default();
        let mut all = vec![
            format!(
                "make a database {PREFIX}... on {} (PostgreSQL {}), and drop it at the end",
                self.address, self.version
            ),
            format!(
                "load {} rows into it, and build an index in each run; that takes up to {room} of its disk",
                study.rows()
            ),
        ];
        if !set.is_empty() {
            all.push(format!("set in its own sessions: {}", set.join(", ")));
        }
        if !self.left.is_empty() {
            all.push(format!("drop what a killed study of this machine left: {}", self.left.join(", ")));
        }
        Ok(all)
    }

    /// Returns the server in a line, with the limits of its receipts.
    fn described(&self) -> String {
        format!("PostgreSQL {} at {}, receipts: inside only", self.version, self.address)
    }
}

/// Returns the comment of a database of this process.
fn mark() -> String {
    format!("{MARK}{} by process {}", origin(), std::process::id())
}

/// Returns the host with all that gives a process's number its meaning: a host's name alone is no
/// proof, because two machines or containers may share it.
fn origin() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let space = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    format!("{}, boot {}, {}", machine::describe().name, boot.trim(), space.display())
}

/// True for the comment of a process that has ended, as seen from this one.
fn is_left(comment: &str) -> bool {
    let made = comment.strip_prefix(MARK).and_then(|rest| rest.rsplit_once(" by process "));
    let Some((found, process)) = made else { return false };
    let is_dead =
        process.parse::<u32>().is_ok_and(|process| !Path::new(&format!("/proc/{process}")).exists());
    found == origin() && is_dead
}

/// Returns a name in quotes for a statement.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_database_of_a_dead_process_of_this_place_is_left() {
        let of = |process: u32| format!("{MARK}{} by process {process}", origin());
        assert!(!is_left(&mark()), "this process is alive");
        // Above the largest number that the kernel gives.
        assert!(is_left(&of(u32::MAX)));
        assert!(!is_left(&of(u32::MAX).replace("boot ", "boot 0")), "another boot");
        assert!(!is_left(""));
    }
}
