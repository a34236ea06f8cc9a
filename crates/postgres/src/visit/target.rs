//! The database of a visit, from its making to its end.

use super::journal::ChangedSetting;
use super::record::{self, VisitRecord};
use super::reload::{Guard, Reloads, Wanted};
use super::{Visit, comment, mark, quoted, run};
use crate::PostgresError;
use crate::address::{SCHEMA, ServerAddress};
use crate::evidence::GivenSetting;
use crate::explain;
use crate::session::ServerSession;
use crate::target::no_record;
use crate::workload;
use crate::workload::parameter;
use plumb_events::Cancel;
use plumb_record::Record;
use plumb_study::StudyError;
use plumb_study::bundle::{Environment, Settled};
use plumb_study::definition::Study;
use plumb_study::targets::{ExplainedPlan, NoRecord, Opening, Preparation, Target};
use plumb_study::vocabulary::Assignment;
use plumb_workload::Work;
use std::path::Path;

/// A database that is dropped with this value.
struct OwnDatabase {
    server: ServerAddress,
    name: String,
    record: Option<VisitRecord>,
}

impl OwnDatabase {
    /// Makes a database with a schema that nobody else may create in. The record of the visit is on
    /// the disk before.
    fn make(server: &ServerAddress, records: Option<&Path>) -> Result<OwnDatabase, PostgresError> {
        const DURING: &str = "the database is made";
        let name = mark::new_name();
        let record = records.map(|records| VisitRecord::make(records, server, &name)).transpose()?;
        let made = OwnDatabase { server: server.clone(), name, record };
        let own = quoted(&made.name);
        let mut session = ServerSession::connect(server, "plumb visit")?;
        session.run(DURING, &format!("create database {own} template template0 locale 'C'"))?;
        let comment = comment().replace('\'', "''");
        session.run(DURING, &format!("comment on database {own} is '{comment}'"))?;
        let inside = made.address();
        let mut session = ServerSession::connect(&inside, "plumb visit")?;
        session.run(DURING, &format!("create schema {SCHEMA}"))?;
        Ok(made)
    }

    fn address(&self) -> ServerAddress {
        self.server.at(&self.name)
    }
}

impl Drop for OwnDatabase {
    fn drop(&mut self) {
        // If the server has ended, a later visit or `plumb clean` drops it.
        if record::drop_now(&self.server, &self.name).is_ok()
            && let Some(record) = self.record.take()
        {
            record.remove();
        }
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

    fn make(&mut self) -> Result<(), PostgresError> {
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
            record::drop_now(&self.visit.address, left)?;
            if let Some(directory) = &self.visit.terms.journals {
                record::forget(directory, left);
            }
        }
        let made = OwnDatabase::make(&self.visit.address, self.visit.terms.journals.as_deref())?;
        let own = self.database.insert(made).address();
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
                let read = "select coalesce(setting, '') from pg_catalog.pg_settings where name = $1";
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

    /// Returns the work of an arm, and its settings as the server has them.
    fn parts(&self, settings: &[Assignment]) -> Result<(Work, Vec<GivenSetting>), PostgresError> {
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
        Ok((work, asked))
    }

    fn own(&self) -> Result<ServerAddress, PostgresError> {
        let none = || PostgresError::Unfit("no database was made".to_string());
        self.database.as_ref().map(OwnDatabase::address).ok_or_else(none)
    }

    fn run_once(&mut self, settings: &[Assignment], cancel: &Cancel) -> Result<Record, PostgresError> {
        self.reload(settings)?;
        let (own, (work, asked)) = (self.own()?, self.parts(settings)?);
        self.place(&own, &work, &asked).run(cancel)
    }

    fn plan(&mut self, settings: &[Assignment]) -> Result<Option<ExplainedPlan>, PostgresError> {
        self.reload(settings)?;
        let (own, (work, asked)) = (self.own()?, self.parts(settings)?);
        let place = self.place(&own, &work, &asked);
        let query = workload::execution(work.workload.name)?.query(&work)?;
        let plan = query.map(|query| explain::of_work(&own, &query, &place.session)).transpose()?;
        Ok(plan.map(|plan| ExplainedPlan { plan, sizes: None }))
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
        let made = self.make();
        self.opening.cancel.check().map_err(PostgresError::from)?;
        made?;
        self.require_treatments(preparation)
    }

    /// Waits for nothing: the device is another machine's, or used by others.
    fn ready(&mut self, _: &[Assignment]) -> Result<Settled, StudyError> {
        Ok(Settled { idle: true, ..Settled::default() })
    }

    fn run(&mut self, settings: &[Assignment], cancel: &Cancel) -> Result<Record, NoRecord> {
        no_record(self.run_once(settings, cancel), cancel)
    }

    fn explain(
        &mut self,
        settings: &[Assignment],
        cancel: &Cancel,
    ) -> Result<Option<ExplainedPlan>, NoRecord> {
        no_record(self.plan(settings), cancel)
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
