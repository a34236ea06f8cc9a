//! A running server of others as a target of a study.
//!
//! ```text
//! Visit::of ──> intentions (shown, asked once) ──> database, load ──> runs ──> database dropped
//!  fitness, local                                    journal ──> reload ──┘──> values put back
//! ```
//!
//! What a visit changes: it makes a database of its own and drops it. Settings are those of its
//! sessions. If its terms allow a reload, it changes settings of the server's files, too, and puts
//! them back. It restarts nothing, resets no counter and takes no checkpoint. A setting that it may
//! not change is refused before anything is made.
//!
//! The database's name has machine, boot and process. A later visit from there drops what a dead
//! process left; so does `plumb clean`, by the [`record`] of the visit. The comment is for people.
//!
//! On this machine, receipts are those of plumb's own servers: the kernel's word about the server's
//! processes. Elsewhere all receipts are the server's word. The server counts the work of other
//! databases in a run: a finding and a circumstance.
//!
//! Rejected: plumb's tables in a schema of an existing database. Its catalogs would grow, and
//! autovacuum, statistics and locks of the owner's tables would meet those of the study.
//!
//! Limits: workloads that write nothing but their own index (`large-sort`). Pages stay in the
//! caches between runs, the same for all arms.

mod fitness;
pub mod journal;
mod local;
mod mark;
pub mod record;
mod reload;
mod run;
mod target;
mod unloaded;

pub use record::{address_of, drop_left};
pub use reload::{LeftJournal, Undo};
pub use target::VisitedTarget;

use crate::PostgresError;
use crate::address::ServerAddress;
use crate::run::WORDS;
use crate::session::ServerSession;
use crate::workload;
use crate::workload::parameter;
use fitness::{Facts, Fit};
use journal::ChangedSetting;
use local::{LocalServer, Whereabouts};
use plumb_study::definition::Study;
use plumb_study::machine;
use plumb_units::Bytes;
use reload::Wanted;
use std::fs;
use std::path::{Path, PathBuf};

/// Start of the comment on a study's database.
const COMMENT: &str = "made by plumb on ";

/// Permission to change settings of the server's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReloadRight {
    #[default]
    Refused,
    Allowed,
}

/// Rights and places that a user gives to a visit.
#[derive(Debug, Clone, Default)]
pub struct VisitTerms {
    pub reload: ReloadRight,
    /// Directory of undo journals; without one, no setting of the server's files is changed.
    pub journals: Option<PathBuf>,
}

/// A server that a study may use.
pub struct Visit {
    address: ServerAddress,
    facts: Facts,
    place: Whereabouts,
    terms: VisitTerms,
    /// Databases that dead processes of this host left.
    left: Vec<String>,
    /// Settings that a killed study left.
    undo: Option<Undo>,
}

/// Settings of a study by the way in which they reach the server.
#[derive(Default)]
struct Ways {
    session: Vec<String>,
    reload: Vec<Wanted>,
}

impl Visit {
    /// Connects to a server and reads what it is; nothing is changed.
    ///
    /// # Errors
    /// If it does not answer, is too old, in recovery, read-only or behind a pooler, the user may
    /// make no database, or another study changes its settings.
    pub fn of(address: &ServerAddress, terms: VisitTerms) -> Result<Visit, PostgresError> {
        let Fit { facts, place } = fitness::require(address)?;
        let left = record::left_on(address)?;
        let mut session = ServerSession::connect(address, "plumb visit")?;
        let mut undo = None;
        if let Some(directory) = &terms.journals {
            let path = journal::path_in(directory, &reload::identity(&mut session)?);
            if fs::symlink_metadata(&path).is_ok() {
                undo = Some(LeftJournal::take(&path)?.at(address)?);
            }
        }
        Ok(Visit { address: address.clone(), facts, place, terms, left, undo })
    }

    #[must_use]
    pub fn address(&self) -> &ServerAddress {
        &self.address
    }

    /// Returns the file that names the settings to put back while a study changes some.
    #[must_use]
    pub fn journal(&self) -> Option<PathBuf> {
        let directory = self.terms.journals.as_ref().filter(|_| self.terms.reload == ReloadRight::Allowed)?;
        let mut session = ServerSession::connect(&self.address, "plumb visit").ok()?;
        Some(journal::path_in(directory, &reload::identity(&mut session).ok()?))
    }

    /// Returns what a study would do to the server, a sentence each.
    ///
    /// # Errors
    /// If the study needs a setting that may not be changed, its workload writes, or the server's
    /// disk is too small.
    pub fn intentions(&self, study: &Study) -> Result<Vec<String>, PostgresError> {
        let Ways { session, reload } = self.ways(study)?;
        let work = study.work.as_ref().map(|work| work.workload.name).unwrap_or_default();
        let execution = workload::execution(work)?;
        if execution.writes() {
            return Err(PostgresError::Unfit(format!(
                "workload {work} commits to the log that all sessions of {} wait for; a server of others takes large-sort",
                self.address
            )));
        }
        let room = study.work.as_ref().map(|work| execution.room(work)).unwrap_or_default();
        let mut all = Vec::new();
        if let Some(undo) = &self.undo {
            let back = undo.intentions().map_err(|error| {
                let path = undo.path().display();
                PostgresError::Unfit(format!(
                    "{error}; a killed study left its settings there: `plumb undo {path}` puts them back, as the user of that study"
                ))
            })?;
            all.extend(back.into_iter().map(|what| format!("undo a killed study: {what}")));
        }
        if !self.left.is_empty() {
            all.push(format!("drop what a killed study of this machine left: {}", self.left.join(", ")));
        }
        all.push(format!(
            "make a database {}... on {} (PostgreSQL {}), and drop it at the end",
            mark::PREFIX,
            self.address,
            self.facts.version
        ));
        all.push(format!(
            "load {} rows into it, and build an index in each run; that takes up to {room} of its disk, {}",
            study.rows(),
            self.disk_left(room)?
        ));
        if !session.is_empty() {
            all.push(format!("set in its own sessions: {}", session.join(", ")));
        }
        let changes = self.changes(&reload)?;
        if !changes.is_empty() && !self.facts.is_superuser {
            all.push(
                "reload pg_hba.conf, pg_ident.conf and settings that only superusers see: changes of them that are \
                 not loaded yet are not seen by this user"
                    .to_string(),
            );
        }
        for set in changes {
            let back = set
                .before
                .map_or("RESET at the end".to_string(), |before| format!("{before} again at the end"));
            all.push(format!(
                "ALTER SYSTEM SET {} = {} in turn, with a reload; {back}",
                set.name,
                set.ours.join(", ")
            ));
        }
        Ok(all)
    }

    /// Returns what changes in the server's files, with the values before.
    fn changes(&self, wanted: &[Wanted]) -> Result<Vec<ChangedSetting>, PostgresError> {
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let names: Vec<&str> = wanted.iter().map(|set| set.name.as_str()).collect();
        let refused =
            |why: &str| Err(PostgresError::Unfit(format!("{}: {}: {why}", self.address, names.join(", "))));
        if self.terms.reload == ReloadRight::Refused {
            return refused(
                "a session cannot set it, only the server's files with a reload; --allow-reload allows that, and puts the \
                 value back",
            );
        }
        if self.terms.journals.is_none() {
            return refused("its old value has no place to be noted; set HOME or XDG_STATE_HOME");
        }
        let mut planned = reload::planned(&self.address, self.facts.number, wanted)?;
        // What a killed study left is no change of others, and is put back first.
        let ours = self.undo.as_ref().map(Undo::names).unwrap_or_default();
        unloaded::require_none(&self.address, self.facts.is_superuser, &ours)?;
        for set in planned.iter_mut().filter(|_| self.undo.is_some()) {
            let back = self.undo.as_ref().and_then(|undo| undo.back(&set.name));
            set.before = back.unwrap_or_else(|| set.before.take());
        }
        Ok(planned)
    }

    /// Sorts the settings of a study by the way in which they reach the server.
    fn ways(&self, study: &Study) -> Result<Ways, PostgresError> {
        let mut ways = Ways::default();
        let mut session = ServerSession::connect(&self.address, "plumb visit")?;
        for assignment in study.all_settings().filter(|set| parameter(&set.name).is_none()) {
            let (name, value) = (&assignment.name, &assignment.value);
            let refused =
                |why: &str| Err(PostgresError::Unfit(format!("{}: {name} = {value}: {why}", self.address)));
            if WORDS.contains(&name.as_str()) {
                return refused(
                    "the server of --target is one, is sampled where it can be, and keeps its page cache; leave --target out of this study",
                );
            }
            match reload::context(&mut session, name)?.as_deref() {
                Some("user" | "superuser") if !ways.session.contains(name) => ways.session.push(name.clone()),
                Some("user" | "superuser") => {}
                Some("sighup") => match ways.reload.iter_mut().find(|known| known.name == *name) {
                    Some(known) if known.values.contains(value) => {}
                    Some(known) => known.values.push(value.clone()),
                    None => ways.reload.push(Wanted { name: name.clone(), values: vec![value.clone()] }),
                },
                Some("postmaster") => {
                    return refused(
                        "it needs a restart, and plumb restarts no server of others; leave --target out of this study",
                    );
                }
                Some(context) => {
                    return refused(&format!("its context is {context}, so that no study can vary it"));
                }
                None => return refused("the server has no such setting"),
            }
        }
        Ok(ways)
    }

    /// Returns the free room of the server's disk in words.
    fn disk_left(&self, room: Bytes) -> Result<String, PostgresError> {
        match self.place.here().and_then(LocalServer::free) {
            None => Ok("whose free room is not seen from here".to_string()),
            Some(free) if free >= room => Ok(format!("of which {free} are free")),
            Some(free) => Err(PostgresError::Unfit(format!(
                "{}: {room} are needed for table, index, sort and log, and {free} are free; use fewer --rows",
                self.address
            ))),
        }
    }

    /// True if the processes of the server are those of this machine.
    #[must_use]
    pub fn sees_processes(&self) -> bool {
        self.place.here().is_some()
    }

    /// Returns the server in a line, with the limits of its receipts.
    #[must_use]
    pub fn described(&self) -> String {
        let receipts = match &self.place {
            Whereabouts::Here(_) => "on this machine, receipts: outside and inside".to_string(),
            Whereabouts::Elsewhere(why) => format!("receipts: inside only ({why})"),
        };
        format!("PostgreSQL {} at {}, {receipts}", self.facts.version, self.address)
    }
}

/// Returns the journal of settings that a killed study left on a server. Without any journal the
/// server is not asked.
#[must_use]
pub fn left_behind(address: &ServerAddress, journals: &Path) -> Option<PathBuf> {
    let names = fs::read_dir(journals).ok()?.flatten().map(|entry| entry.file_name());
    names.into_iter().find(|name| name.as_encoded_bytes().starts_with(journal::PREFIX.as_bytes()))?;
    let mut session = ServerSession::connect(address, "plumb visit").ok()?;
    let path = journal::path_in(journals, &reload::identity(&mut session).ok()?);
    journal::JournalFile::take(&path).is_ok().then_some(path)
}

/// Returns the comment of a database of this process.
fn comment() -> String {
    format!("{COMMENT}{} by process {}", machine::describe().name, std::process::id())
}

/// Returns a name in quotes for a statement.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
