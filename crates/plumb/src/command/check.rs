//! `plumb check`: tables and indexes against each other.
//!
//! The database is opened read-only, and the check continues after damage. It prints the
//! good and the bad, table by table, and ends with one line that counts the damage. For
//! tables that transactions change, it then opens the database to write: their log may
//! need recovery, which is reported.

use super::live;
use crate::arguments::Check;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::outcome::Outcome;
use crate::output::{self, aligned};
use crate::progress::{Audience, Watch};
use crate::{database, settings};
use plumb_engine::check::{self, SegmentDamage, TableCheck};
use plumb_engine::storage::control::stored_name;
use plumb_engine::transaction::check::LiveCheck;
use plumb_engine::{EngineError, Instance};
use plumb_run::workload::large_sort::blocks_in_use;
use plumb_study::Stage;
use plumb_units::RowCount;
use serde_json::json;

/// Checks one table or all of them. Fails with the exit code of a failed verification for damaged
/// data, and with 1 for data that cannot be reached.
pub fn run(arguments: &Check) -> Result<Outcome, Failure> {
    let settings = settings::parse_for_files(&arguments.set)?;
    let interrupt = Interrupt::install()?;
    let instance = database::open_to_read(&arguments.path, settings, &interrupt)?;
    interrupt.begin_reading();
    let (tables, live) = tables(&instance, arguments.table.as_deref())?;
    let mut report = Report { json: arguments.json, tables: Vec::new() };
    if tables.is_empty() && live.is_empty() && !arguments.json {
        output::print("the database has no table\n")?;
    }
    let mut wrong = Wrong::default();
    for file in instance.tablespaces().iter().flat_map(|tablespace| &tablespace.unusable) {
        let error = EngineError::Unusable(file.error.clone());
        report.file(&error)?;
        wrong.note(&error);
    }
    let watch = Watch::start(if arguments.json { Audience::Nobody } else { Audience::Terminal });
    watch.stage(&Stage::Verify { recorder: &instance.recorder, blocks: blocks_in_use(&instance) });
    for table in &tables {
        let found = check::examine_table(&instance, table).map_err(|error| match error {
            EngineError::Interrupted => interrupt.failure(),
            error => Failure::from(error),
        })?;
        report.table(table, &found)?;
        found.damage.iter().for_each(|damage| wrong.note_segment(table, damage));
        found.unreached.iter().for_each(|error| wrong.note(error));
    }
    drop((watch, instance));
    if !live.is_empty() {
        live::check(arguments, &live, &interrupt, &mut report, &mut wrong)?;
    }
    if wrong.is_nothing() {
        report.passed(tables.len() + live.len())?;
    }
    report.end()?;
    wrong.outcome()
}

/// The tables to check: those that were loaded, and those that transactions change.
fn tables(instance: &Instance, table: Option<&str>) -> Result<(Vec<String>, Vec<String>), EngineError> {
    let catalog = instance.catalog();
    let live = catalog.live_tables.iter().map(|table| table.name.clone());
    match table {
        Some(name) => {
            let live: Vec<String> = live.filter(|live| *live == stored_name(name)).collect();
            let loaded = if live.is_empty() { vec![catalog.table(name)?.name.clone()] } else { Vec::new() };
            Ok((loaded, live))
        }
        None => Ok((catalog.tables.iter().map(|table| table.name.clone()).collect(), live.collect())),
    }
}

/// Report of a check: printed as it goes, or at its end as JSON.
pub(super) struct Report {
    json: bool,
    tables: Vec<serde_json::Value>,
}

impl Report {
    /// Reports a data file that cannot be used.
    fn file(&mut self, error: &EngineError) -> Result<(), Failure> {
        let word = if error.is_damage() { "DAMAGED" } else { "UNREACHED" };
        if self.json {
            self.tables
                .push(json!({ "file": true, "state": word.to_lowercase(), "error": error.to_string() }));
            return Ok(());
        }
        output::print(&format!("{word} {error}\n"))
    }

    /// Reports a table that was loaded.
    fn table(&mut self, table: &str, found: &TableCheck) -> Result<(), Failure> {
        if !self.json {
            return output::print(&shown(table, found));
        }
        let check = |line: &plumb_engine::check::CheckLine| json!({ "name": line.name, "seconds": line.elapsed.seconds(), "detail": line.detail });
        self.tables.push(json!({
            "table": table,
            "right": found.damage.is_empty() && found.unreached.is_empty(),
            "checks": found.lines.iter().map(check).collect::<Vec<_>>(),
            "damage": found.damage.iter().map(damage_json).collect::<Vec<_>>(),
            "unreached": found.unreached.iter().map(ToString::to_string).collect::<Vec<_>>(),
        }));
        Ok(())
    }

    /// Reports a table that transactions change: as text, and its figures.
    pub(super) fn live_table(
        &mut self,
        table: &str,
        text: &str,
        found: Result<&LiveCheck, &EngineError>,
        damage: &[SegmentDamage],
    ) -> Result<(), Failure> {
        if !self.json {
            return output::print(&format!("table {table}\n{text}"));
        }
        self.tables.push(match found {
            Ok(found) => json!({
                "table": table,
                "right": true,
                "rows": found.row_count,
                "chained": found.chained_row_count,
                "entries": found.entry_count,
                "versions": found.version_count,
            }),
            Err(error) => json!({
                "table": table,
                "right": false,
                "error": error.to_string(),
                "damage": damage.iter().map(damage_json).collect::<Vec<_>>(),
            }),
        });
        Ok(())
    }

    /// Prints in one line that nothing is wrong.
    fn passed(&self, tables: usize) -> Result<(), Failure> {
        match tables {
            _ if self.json => Ok(()),
            0 => Ok(()),
            1 => output::print("passed: the table and its indexes are right\n"),
            tables => output::print(&format!("passed: {tables} tables and their indexes are right\n")),
        }
    }

    fn end(self) -> Result<(), Failure> {
        if self.json {
            output::print(&format!("{:#}\n", serde_json::Value::Array(self.tables)))
        } else {
            Ok(())
        }
    }
}

/// Formats the good checks of a table and its indexes, then the damage.
fn shown(table: &str, found: &TableCheck) -> String {
    let right = found.lines.iter().map(|line| {
        vec![format!("  {}", line.name), format!("{:.2} s", line.elapsed.seconds()), line.detail.clone()]
    });
    let mut text = format!("table {table}\n{}", aligned(&right.collect::<Vec<_>>()));
    text.extend(found.damage.iter().map(damaged));
    found.unreached.iter().for_each(|error| text.push_str(&format!("  UNREACHED {error}\n")));
    text
}

/// Formats the damage of a segment.
pub(super) fn damaged(damage: &SegmentDamage) -> String {
    let counts = damage.counts.iter().map(|(kind, count)| format!("{kind} {}", RowCount(*count)));
    let counts = counts.collect::<Vec<_>>().join(", ");
    let mut text = format!("  DAMAGED {}: {} ({counts})\n", damage.segment, blocks(damage.count()));
    damage.first.iter().for_each(|error| text.push_str(&format!("    {error}\n")));
    if damage.count() > damage.first.len() as u64 {
        text.push_str(&format!("    these are the first {}\n", damage.first.len()));
    }
    text
}

fn damage_json(damage: &SegmentDamage) -> serde_json::Value {
    let first: Vec<String> = damage.first.iter().map(ToString::to_string).collect();
    json!({ "segment": damage.segment.to_string(), "blocks": damage.count(), "first": first })
}

fn blocks(count: u64) -> String {
    if count == 1 { "1 block".to_string() } else { format!("{} blocks", RowCount(count)) }
}

/// Total damage of a check.
#[derive(Default)]
pub(super) struct Wrong {
    /// First damage of the data, and first data that could not be reached.
    damage: Option<String>,
    unreached: Option<String>,
    blocks: u64,
    segments: usize,
}

impl Wrong {
    pub(super) fn is_nothing(&self) -> bool {
        self.damage.is_none() && self.unreached.is_none()
    }

    pub(super) fn note(&mut self, error: &EngineError) {
        let first = if error.is_damage() { &mut self.damage } else { &mut self.unreached };
        first.get_or_insert_with(|| error.to_string());
    }

    pub(super) fn note_segment(&mut self, table: &str, damage: &SegmentDamage) {
        self.blocks += damage.count();
        self.segments += 1;
        let first = || format!("table {table} is not as it must be: {}", damage.first[0]);
        self.damage.get_or_insert_with(first);
    }

    fn outcome(self) -> Result<Outcome, Failure> {
        match (self.damage, self.unreached) {
            (None, None) => Ok(Outcome::Fine),
            (None, Some(error)) => Err(Failure::run(error)),
            (Some(first), _) if self.blocks > 1 => Err(Failure::finding(format!(
                "{} of {} are damaged, as listed above; the first: {first}",
                blocks(self.blocks),
                if self.segments == 1 { "a table or index" } else { "several tables and indexes" }
            ))),
            (Some(first), _) => Err(Failure::finding(first)),
        }
    }
}
