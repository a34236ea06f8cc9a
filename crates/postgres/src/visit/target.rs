//! The database of a visit, from its making to its end.

use super::journal::ChangedSetting;
use super::reload::{Guard, Reloads, Wanted};
use super::{PREFIX, Visit, mark, quoted, run};
use crate::PostgresError;
use crate::address::ServerAddress;
use crate::evidence::GivenSetting;
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
    /// Settings that need a reload, with their old values.
    changes: Vec<ChangedSetting>,
    /// Values that the server makes of settings.
    known: Vec<GivenSetting>,
    /// Lines about values that stay.
    said: Vec<String>,
    // Dropped in this order: settings of all sessions first.
    reloads: Option<Reloads>,
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
        let changes = visit.changes(&visit.ways(study)?.reload)?;
        let work = study.work.clone();
        let work =
            work.ok_or_else(|| PostgresError::Unfit(format!("study {}: it has no workload", study.name)))?;
        workload::require(&work)?;
        Ok(VisitedTarget {
            opening,
            visit,
            work,
            changes,
            known: Vec::new(),
            said: Vec::new(),
            reloads: None,
            database: None,
        })
    }

    fn make(&mut self, name: &str) -> Result<(), PostgresError> {
        if let Some(undo) = self.visit.undo.take() {
            self.said.extend(undo.carry_out()?);
            // Its values are those before this study.
            let wanted = |set: &ChangedSetting| Wanted { name: set.name.clone(), values: set.ours.clone() };
            self.changes = self.visit.changes(&self.changes.iter().map(wanted).collect::<Vec<_>>())?;
        }
        let guard = match self.changes.is_empty() {
            true => None,
            false => Some(Guard::take(&self.visit.address)?),
        };
        for left in &self.visit.left {
            OwnDatabase::drop_now(&self.visit.address, left)?;
        }
        let id = name.strip_prefix(STUDY).unwrap_or(name).replace('-', "_");
        let name: String = format!("{PREFIX}{id}").chars().take(NAME_MOST).collect();
        let database = self.database.insert(OwnDatabase::make(&self.visit.address, &name)?);
        let own = database.server.at(&database.name);
        let mut session = ServerSession::connect(&own, "plumb load")?;
        workload::execution(self.work.workload.name)?.load(&mut session, &self.work, &self.opening.cancel)?;
        if let Some((guard, directory)) = guard.zip(self.visit.terms.journals.as_ref()) {
            let (server, facts) = (&self.visit.address, &self.visit.facts);
            self.reloads = Some(Reloads::begin(server, directory, self.changes.clone(), guard, facts)?);
        }
        Ok(())
    }
}

impl VisitedTarget<'_> {
    /// Rejects arms whose settings the server makes the same of, and values that it refuses.
    fn require_treatments(&mut self, preparation: &Preparation<'_>) -> Result<(), StudyError> {
        let mut known: Vec<(&Vec<Assignment>, Vec<String>)> = Vec::new();
        for arm in preparation.arms {
            let effective = self.effective(arm)?;
            let same = known.iter().find(|(_, before)| *before == effective);
            if let Some((same, _)) = same.filter(|_| !preparation.expects_same) {
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

    /// Returns the values that the server makes of an arm's settings, and keeps them.
    fn effective(&mut self, arm: &[Assignment]) -> Result<Vec<String>, PostgresError> {
        let reloaded = self.reload(arm)?;
        let mut session = ServerSession::connect(&self.visit.address, "plumb visit")?;
        let mut values = Vec::new();
        for set in arm {
            let (name, value) = (set.name.clone(), set.value.clone());
            let canonical = if parameter(&name).is_some() {
                value.clone()
            } else if let Some((_, value)) = reloaded.iter().find(|(known, _)| *known == name) {
                value.clone()
            } else {
                session.set(&name, &value)?;
                let read = "select coalesce(setting, '') from pg_settings where name = $1";
                let rows = session.rows("a setting is read", read, &[&name])?;
                rows.first().and_then(|row| row.try_get(0).ok()).unwrap_or_else(|| value.clone())
            };
            values.push(canonical.clone());
            self.known.push(GivenSetting { name, value, canonical });
        }
        Ok(values)
    }

    /// Puts the settings of the server's files to those of an arm; returns the values in force.
    fn reload(&mut self, arm: &[Assignment]) -> Result<Vec<(String, String)>, PostgresError> {
        let value_of = |name: &str| arm.iter().find(|set| set.name == name).map(|set| set.value.clone());
        self.reloads.as_mut().map_or(Ok(Vec::new()), |reloads| reloads.apply(&value_of))
    }

    fn place<'p>(
        &'p self,
        own: &'p ServerAddress,
        work: &'p Work,
        asked: &'p [GivenSetting],
    ) -> run::Place<'p> {
        let is_reloaded = |name: &str| self.changes.iter().any(|set| set.name == name);
        let of_session = asked.iter().filter(|set| !is_reloaded(&set.name));
        run::Place {
            server: own,
            facts: &self.visit.facts,
            local: self.visit.place.here(),
            work,
            asked,
            session: of_session.map(|set| (set.name.clone(), set.value.clone())).collect(),
            command_line: &self.opening.command_line,
        }
    }

    fn run_once(&mut self, settings: &[Assignment], cancel: &Cancel) -> Result<Record, PostgresError> {
        let none = || PostgresError::Unfit("no database was made".to_string());
        self.reload(settings)?;
        let database = self.database.as_ref().ok_or_else(none)?;
        let own = database.server.at(&database.name);
        let mut work = self.work.clone();
        let mut asked = Vec::new();
        for set in settings {
            if parameter(&set.name).is_some() {
                work.set(&set.name, &set.value).map_err(PostgresError::Unfit)?;
                continue;
            }
            let known = self.known.iter().find(|known| known.name == set.name && known.value == set.value);
            let as_typed = || GivenSetting {
                name: set.name.clone(),
                value: set.value.clone(),
                canonical: set.value.clone(),
            };
            asked.push(known.cloned().unwrap_or_else(as_typed));
        }
        self.place(&own, &work, &asked).run(cancel)
    }
}

impl Target for VisitedTarget<'_> {
    fn environment(&mut self) -> Result<Environment, StudyError> {
        let now = Environment::now(self.visit.described(), Vec::new(), None, &self.opening.command_line);
        let reloads = match self.changes.is_empty() {
            true => "",
            false => ", the settings of the arm were written and loaded where they differ",
        };
        let between_runs = format!(
            "the index of the last run was dropped{reloads}; the server ran on, and its buffers and the page cache kept their content"
        );
        Ok(Environment { between_runs: Some(between_runs), ..now })
    }

    fn prepare(&mut self, preparation: &Preparation<'_>) -> Result<(), StudyError> {
        self.opening.observer.begins();
        let made = self.make(preparation.name);
        self.opening.cancel.check().map_err(PostgresError::from)?;
        made?;
        self.require_treatments(preparation)
    }

    /// Waits for nothing: the device is another machine's, or used by others.
    fn ready(&mut self, _: &[Assignment]) -> Result<Settled, StudyError> {
        Ok(Settled { idle: true, ..Settled::default() })
    }

    fn run(&mut self, settings: &[Assignment], cancel: &Cancel) -> Result<Record, NoRecord> {
        match self.run_once(settings, cancel) {
            Ok(record) => Ok(record),
            Err(_) if cancel.check().is_err() => Err(NoRecord::Interrupted),
            Err(error) => Err(NoRecord::Failed(error.into())),
        }
    }

    fn end(&mut self) -> Vec<String> {
        let mut said = std::mem::take(&mut self.said);
        match self.reloads.as_mut().map_or(Ok(Vec::new()), Reloads::put_back) {
            Ok(lines) => said.extend(lines),
            Err(error) => said.push(error.to_string()),
        }
        said
    }
}
