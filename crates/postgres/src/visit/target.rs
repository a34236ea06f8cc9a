//! The database of a visit, from its making to its end.

use super::{PREFIX, Visit, mark, quoted, run};
use crate::PostgresError;
use crate::address::ServerAddress;
use crate::session::ServerSession;
use crate::workload;
use crate::workload::parameter;
use plumb_events::Cancel;
use plumb_record::Record;
use plumb_study::StudyError;
use plumb_study::bundle::{Environment, Settled};
use plumb_study::definition::Study;
use plumb_study::targets::{NoRecord, Opening, Preparation, Target};
use plumb_study::vocabulary::Assignment;
use plumb_workload::Work;

/// Letters of a database's name.
const NAME_MOST: usize = 63;
/// Start of the names of studies' files, which the database's own prefix replaces.
const STUDY: &str = "plumb-study-";

/// A database that is dropped with this value.
struct OwnDatabase {
    server: ServerAddress,
    name: String,
}

impl OwnDatabase {
    fn make(server: &ServerAddress, name: &str) -> Result<OwnDatabase, PostgresError> {
        const DURING: &str = "the database is made";
        let mut session = ServerSession::connect(server, "plumb visit")?;
        session.run(DURING, &format!("create database {} template template0 locale 'C'", quoted(name)))?;
        let made = OwnDatabase { server: server.clone(), name: name.to_string() };
        let comment = mark().replace('\'', "''");
        session.run(DURING, &format!("comment on database {} is '{comment}'", quoted(name)))?;
        Ok(made)
    }

    fn drop_now(server: &ServerAddress, name: &str) -> Result<(), PostgresError> {
        let mut session = ServerSession::connect(server, "plumb visit")?;
        let drop = format!("drop database if exists {} with (force)", quoted(name));
        session.run("the database is dropped", &drop)
    }
}

impl Drop for OwnDatabase {
    fn drop(&mut self) {
        // If the server has ended, the comment lets a later visit drop it.
        let _ = OwnDatabase::drop_now(&self.server, &self.name);
    }
}

/// A study's database on a server of others.
pub struct VisitedTarget<'a> {
    opening: Opening<'a>,
    visit: Visit,
    work: Work,
    database: Option<OwnDatabase>,
}

impl<'a> VisitedTarget<'a> {
    /// # Errors
    /// If the study needs what a visit does not do.
    pub fn open(
        study: &Study,
        visit: Visit,
        opening: Opening<'a>,
    ) -> Result<VisitedTarget<'a>, PostgresError> {
        visit.intentions(study)?;
        let work = study.work.clone();
        let work =
            work.ok_or_else(|| PostgresError::Unfit(format!("study {}: it has no workload", study.name)))?;
        Ok(VisitedTarget { opening, visit, work, database: None })
    }

    fn make(&mut self, name: &str) -> Result<(), PostgresError> {
        for left in &self.visit.left {
            OwnDatabase::drop_now(&self.visit.address, left)?;
        }
        let id = name.strip_prefix(STUDY).unwrap_or(name).replace('-', "_");
        let name: String = format!("{PREFIX}{id}").chars().take(NAME_MOST).collect();
        let database = self.database.insert(OwnDatabase::make(&self.visit.address, &name)?);
        let own = database.server.at(&database.name);
        let mut session = ServerSession::connect(&own, "plumb load")?;
        workload::execution(self.work.workload.name)?.load(&mut session, &self.work, &self.opening.cancel)
    }
}

impl VisitedTarget<'_> {
    /// Rejects arms whose settings the server makes the same of, and values that it refuses.
    fn require_treatments(&self, arms: &[Vec<Assignment>]) -> Result<(), StudyError> {
        let mut known: Vec<(&Vec<Assignment>, Vec<String>)> = Vec::new();
        for arm in arms {
            let effective = self.effective(arm)?;
            if let Some((same, _)) = known.iter().find(|(_, before)| *before == effective) {
                let shown = |arm: &[Assignment]| {
                    let words = arm.iter().map(|set| format!("{}={}", set.name, set.value));
                    words.collect::<Vec<_>>().join(" ")
                };
                return Err(StudyError::OneTreatment { one: shown(same), other: shown(arm) });
            }
            known.push((arm, effective));
        }
        Ok(())
    }

    /// Returns the values that the server makes of an arm's settings.
    fn effective(&self, arm: &[Assignment]) -> Result<Vec<String>, PostgresError> {
        let mut session = ServerSession::connect(&self.visit.address, "plumb visit")?;
        let mut values = Vec::new();
        for set in arm {
            if parameter(&set.name).is_some() {
                values.push(set.value.clone());
                continue;
            }
            session.set(&set.name, &set.value)?;
            let read = "select coalesce(setting, '') from pg_settings where name = $1";
            let rows = session.rows("a setting is read", read, &[&set.name])?;
            values
                .push(rows.first().and_then(|row| row.try_get(0).ok()).unwrap_or_else(|| set.value.clone()));
        }
        Ok(values)
    }
}

impl Target for VisitedTarget<'_> {
    fn environment(&mut self) -> Result<Environment, StudyError> {
        Ok(Environment::now(self.visit.described(), Vec::new(), None, &self.opening.command_line))
    }

    fn prepare(&mut self, preparation: &Preparation<'_>) -> Result<(), StudyError> {
        self.opening.observer.begins();
        let made = self.make(preparation.name);
        self.opening.cancel.check().map_err(PostgresError::from)?;
        made?;
        if preparation.expects_same { Ok(()) } else { self.require_treatments(preparation.arms) }
    }

    /// Waits for nothing: the device is another machine's, or used by others.
    fn ready(&mut self, _: &[Assignment]) -> Result<Settled, StudyError> {
        Ok(Settled { idle: true, ..Settled::default() })
    }

    fn run(&mut self, settings: &[Assignment], cancel: &Cancel) -> Result<Record, NoRecord> {
        let Some(database) = &self.database else {
            return Err(NoRecord::Failed("no database was made".to_string().into()));
        };
        let own = database.server.at(&database.name);
        let mut work = self.work.clone();
        let (varied, set): (Vec<_>, Vec<_>) =
            settings.iter().cloned().partition(|set| parameter(&set.name).is_some());
        varied
            .iter()
            .try_for_each(|set| work.set(&set.name, &set.value))
            .map_err(|why| NoRecord::Failed(why.into()))?;
        let place = run::Place {
            server: &own,
            version: &self.visit.version,
            work: &work,
            settings: &set,
            command_line: &self.opening.command_line,
        };
        match place.run(cancel) {
            Ok(record) => Ok(record),
            Err(_) if cancel.check().is_err() => Err(NoRecord::Interrupted),
            Err(error) => Err(NoRecord::Failed(error.into())),
        }
    }
}
