//! The work of sessions between two crashes: statements, ends of transactions, definitions, loads.

use super::world::{Change, Changes, Content, World, number};
use super::{TABLE, large, schema, unique_index};
use plumb_engine::drop::drop_named;
use plumb_engine::table::load::{self, LoadTarget};
use plumb_engine::transaction::{LockWait, Logging, Transaction, Transactions};
use plumb_engine::view::TableView;
use plumb_engine::view::copy::{CopySpec, LoadDegree, copy};
use plumb_engine::{EngineError, Instance};
use plumb_events::{Role, Session};
use plumb_types::{RowBatch, RowSource, Schema, SourceError, Value};
use plumb_units::{RowId, SplitMix};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// An operation of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Insert,
    /// Inserts enough rows of one key to split leaves.
    Split,
    Update,
    Delete,
    Commit,
    RollBack,
    Checkpoint,
    SwitchLogFile,
    CreateTable,
    FillTable,
    DropTable,
    CreateIndex,
    DropIndex,
    Load,
    DropLoaded,
    /// Inserts a row that is longer than a block.
    InsertLong,
    /// Makes a row longer than a block, or a long row short.
    Resize,
    /// Copies the rows of a table into one that is loaded by direct path, new or not.
    CopyRows,
    Any,
}

/// All operations except the placeholder [`Operation::Any`].
pub const OPERATIONS: [Operation; 18] = [
    Operation::Insert,
    Operation::Split,
    Operation::Update,
    Operation::Delete,
    Operation::Commit,
    Operation::RollBack,
    Operation::Checkpoint,
    Operation::SwitchLogFile,
    Operation::CreateTable,
    Operation::FillTable,
    Operation::DropTable,
    Operation::CreateIndex,
    Operation::DropIndex,
    Operation::Load,
    Operation::DropLoaded,
    Operation::InsertLong,
    Operation::Resize,
    Operation::CopyRows,
];

impl Operation {
    /// True for the end of a transaction; any other operation that fails has changed nothing.
    fn is_end(self) -> bool {
        matches!(self, Operation::Commit | Operation::RollBack)
    }
}

/// Unique index that is created and dropped.
const INDEX: &str = "T_X";

/// Returns `count` operations, which the run draws at random.
pub fn steps(count: u64) -> Vec<Operation> {
    vec![Operation::Any; count as usize]
}

/// A run of operations, and its end.
#[derive(Debug)]
pub struct Run {
    /// All that is committed for certain.
    pub acknowledged: World,
    /// The commit or definition in flight, if there was one.
    pub under_way: Option<Change>,
    /// Error that ended the run; `None` for a complete run.
    pub error: Option<EngineError>,
    /// Number of acknowledged commits and definitions.
    pub commits: u64,
    /// Long texts that rows were given, committed or not.
    pub written: BTreeSet<(i64, String)>,
}

impl Run {
    fn begun(acknowledged: World) -> Run {
        Run { acknowledged, under_way: None, error: None, commits: 0, written: BTreeSet::new() }
    }

    /// Returns a run that could not begin.
    pub fn ended(acknowledged: World, error: EngineError) -> Run {
        Run { error: Some(error), ..Run::begun(acknowledged) }
    }

    /// Fails if a database after this run may not have these contents.
    pub fn require(&self, found: &World) -> Result<(), String> {
        if *found == self.acknowledged {
            return Ok(());
        }
        let mut with = self.acknowledged.clone();
        with.apply(self.under_way.clone().unwrap_or(Change::Rows(Changes::new())));
        if *found == with { Ok(()) } else { Err(self.acknowledged.difference(found)) }
    }
}

/// A session of a run: its transaction, and its uncommitted changes.
struct Actor<'c, 'a> {
    transaction: Transaction<'c, 'a>,
    changes: Changes,
}

/// Runs these operations in turn, each in one of `sessions` sessions, on an open database.
pub fn run(
    instance: &Instance,
    random: &mut SplitMix,
    before: World,
    operations: Vec<Operation>,
    sessions: u64,
) -> Run {
    let course = Course { sessions, after_error: AfterError::End };
    run_noting(instance, random, before, operations, course, |_| ())
}

/// Next step of a run after an operation failed without a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterError {
    End,
    /// The run continues, as a program that tries the next row or table.
    GoOn,
}

/// Sessions of a run, and its next step after an error.
#[derive(Debug, Clone, Copy)]
pub struct Course {
    pub sessions: u64,
    pub after_error: AfterError,
}

/// Runs operations like [`run`]; `note` gets the world after each.
pub fn run_noting(
    instance: &Instance,
    random: &mut SplitMix,
    before: World,
    operations: Vec<Operation>,
    course: Course,
    mut note: impl FnMut(&World),
) -> Run {
    let Course { sessions, after_error } = course;
    let session = instance.recorder.session(Role::User);
    let transactions = match Transactions::open(instance, &session) {
        Ok(transactions) => transactions,
        Err(error) => return Run::ended(before, error),
    };
    let mut connections: Vec<_> = (0..sessions).map(|_| transactions.connect(&session)).collect();
    connections.iter_mut().for_each(|connection| connection.set_lock_wait(LockWait::Never));
    let begin = |transaction| Actor { transaction, changes: Changes::new() };
    let mut actors: Vec<Actor<'_, '_>> = connections.iter_mut().map(|it| begin(it.begin())).collect();
    let mut stage = Stage { transactions: &transactions, session: &session, random, run: Run::begun(before) };
    for operation in operations {
        let operation = if operation == Operation::Any { stage.draw() } else { operation };
        let actor = &mut actors[stage.random.below(sessions) as usize];
        if let Err(error) = stage.perform(operation, actor) {
            let is_stopped =
                matches!(error, EngineError::LogFailed { .. } | EngineError::ControlFileInDoubt { .. });
            stage.run.error.get_or_insert(error);
            if is_stopped || operation.is_end() || after_error == AfterError::End {
                break;
            }
            stage.run.under_way = None;
        }
        note(&stage.run.acknowledged);
    }
    stage.run
}

/// The instance and the run that operations work on.
struct Stage<'s, 'i> {
    transactions: &'s Transactions<'i>,
    session: &'s Session,
    random: &'s mut SplitMix,
    run: Run,
}

impl Stage<'_, '_> {
    /// Draws an operation: most are statements, one in twelve is a definition.
    fn draw(&mut self) -> Operation {
        match self.random.below(48) {
            0..10 => Operation::Insert,
            10..12 => Operation::InsertLong,
            12 => Operation::Split,
            13..23 => Operation::Update,
            23..26 => Operation::Resize,
            26..32 => Operation::Delete,
            32..41 => Operation::Commit,
            41..43 => Operation::RollBack,
            43 => OPERATIONS[6 + self.random.below(2) as usize],
            _ => OPERATIONS[8 + self.random.below(7) as usize],
        }
    }

    fn perform(&mut self, operation: Operation, actor: &mut Actor<'_, '_>) -> Result<(), EngineError> {
        let done = match operation {
            Operation::Insert => self.insert(actor, 1),
            Operation::InsertLong => {
                let mut content = content(self.random);
                content.2 = long(self.random);
                self.insert_all(actor, vec![content])
            }
            Operation::Split => self.insert(actor, 16),
            // The pieces of an unchanged long text stay with the row.
            Operation::Update => {
                self.update(actor, |before, random| match (content(random), random.below(2)) {
                    ((key, text, _), 0) => (key, text, before.2.clone()),
                    (content, _) => content,
                })
            }
            Operation::Resize => self.update(actor, |before, random| {
                let long = if before.2.is_empty() { long(random) } else { String::new() };
                (before.0, before.1.clone(), long)
            }),
            Operation::Delete => self.delete(actor),
            Operation::Commit => self.commit(actor),
            Operation::RollBack => {
                actor.changes.clear();
                actor.transaction.rollback_and_chain()
            }
            Operation::Checkpoint => self.transactions.checkpoint(self.session),
            Operation::SwitchLogFile => self.transactions.switch_log_file(self.session),
            Operation::Any => unreachable!("it was drawn"),
            definition => self.define(definition),
        };
        match done {
            Err(
                EngineError::RowLocked { .. } | EngineError::RowGone { .. } | EngineError::NoLogFile { .. },
            ) => Ok(()),
            Err(EngineError::TableInUse { .. }) => {
                self.run.under_way = None;
                Ok(())
            }
            Err(EngineError::LogFull { .. }) => {
                self.run.under_way = None;
                actor.changes.clear();
                actor.transaction.rollback_and_chain()
            }
            done => done,
        }
    }

    /// Counts the commit or definition in flight as done.
    fn acknowledge(&mut self) {
        let change = self.run.under_way.take().expect("said before");
        self.run.acknowledged.apply(change);
        self.run.commits += 1;
    }

    fn commit(&mut self, actor: &mut Actor<'_, '_>) -> Result<(), EngineError> {
        self.run.under_way = Some(Change::Rows(std::mem::take(&mut actor.changes)));
        actor.transaction.commit_and_chain()?;
        self.acknowledge();
        Ok(())
    }

    fn insert(&mut self, actor: &mut Actor<'_, '_>, least: u64) -> Result<(), EngineError> {
        let random = &mut *self.random;
        let count = least + if random.below(4) == 0 { random.below(6) } else { 0 };
        let rows = (0..count).map(|_| content(random)).collect();
        self.insert_all(actor, rows)
    }

    fn insert_all(&mut self, actor: &mut Actor<'_, '_>, rows: Vec<Content>) -> Result<(), EngineError> {
        let numbered = rows.into_iter().map(|content| ((self.random.draw() >> 20) as i64, content));
        let rows: Vec<(i64, Content)> = numbered.collect();
        let mut images = RowBatch::new();
        for (id, content) in &rows {
            push(&mut images, *id, content);
            self.note_written(*id, content);
        }
        let places = actor.transaction.insert_rows(TABLE, &images)?;
        let rows = rows.into_iter().zip(places);
        actor.changes.extend(rows.map(|((id, content), row)| (id, Some((row, content)))));
        Ok(())
    }

    fn note_written(&mut self, id: i64, content: &Content) {
        self.run.written.insert((id, content.2.clone()));
    }

    fn update(
        &mut self,
        actor: &mut Actor<'_, '_>,
        change: impl Fn(&Content, &mut SplitMix) -> Content,
    ) -> Result<(), EngineError> {
        let Some((id, row, before)) = self.pick(actor) else { return self.insert(actor, 1) };
        let new = change(&before, self.random);
        self.note_written(id, &new);
        let row = actor.transaction.update(TABLE, row, |row| row[1..].clone_from_slice(&values(&new)))?;
        actor.changes.insert(id, Some((row, new)));
        Ok(())
    }

    fn delete(&mut self, actor: &mut Actor<'_, '_>) -> Result<(), EngineError> {
        let Some((id, row, _)) = self.pick(actor) else { return self.insert(actor, 1) };
        actor.transaction.delete(TABLE, row)?;
        actor.changes.insert(id, None);
        Ok(())
    }

    /// Picks a row that is committed or the session's own.
    fn pick(&mut self, actor: &Actor<'_, '_>) -> Option<(i64, RowId, Content)> {
        let committed = self.run.acknowledged.rows.iter().filter(|(id, _)| !actor.changes.contains_key(id));
        let own = actor.changes.iter().filter_map(|(id, row)| Some((id, row.as_ref()?)));
        let rows: Vec<(&i64, &(RowId, Content))> = committed.chain(own).collect();
        let (id, (row, content)) = rows.get(self.random.below(rows.len().max(1) as u64) as usize)?;
        Some((**id, *row, content.clone()))
    }

    /// Runs a definition, or fills a table.
    fn define(&mut self, definition: Operation) -> Result<(), EngineError> {
        let (transactions, session) = (self.transactions, self.session);
        let instance = transactions.instance();
        let number_of = self.random.below(2);
        let (other, loaded) = (format!("U{number_of}"), format!("L{number_of}"));
        let world = &self.run.acknowledged;
        let has_other = world.others.contains_key(&other);
        let has_loaded = world.loaded.contains_key(&loaded);
        let has_index = world.indexes.contains(INDEX);
        let mut announce = |change| self.run.under_way = Some(change);
        match definition {
            Operation::CreateTable if !has_other => {
                announce(Change::Other(other.clone(), BTreeSet::new()));
                let indexes = [unique_index(&format!("{other}_ID"), &["ID"])];
                transactions.create_table(session, &other, &schema(), &indexes)?;
            }
            Operation::FillTable if has_other => return self.fill(&other),
            Operation::DropTable if has_other => {
                announce(Change::NoOther(other.clone()));
                transactions.drop_named(session, &other)?;
            }
            Operation::CreateIndex if !has_index => {
                announce(Change::Index(INDEX.to_string()));
                transactions.create_index(session, TABLE, &unique_index(INDEX, &["K", "ID"]))?;
            }
            Operation::DropIndex if has_index => {
                announce(Change::NoIndex(INDEX.to_string()));
                transactions.drop_named(session, INDEX)?;
            }
            Operation::Load if !has_loaded => {
                let rows = 1 + self.random.below(100);
                announce(Change::Loaded(loaded.clone(), rows));
                let source = Rows { schema: schema(), rows, taken: AtomicBool::new(false) };
                let log = transactions.log_of_load(Logging::Logging);
                let target = LoadTarget { table: &loaded, tablespace: large(instance), log };
                load::load_into(instance, session, target, &source)?;
            }
            // Half of the drawn loads name an existing table, so copies need no draw of their own.
            Operation::Load => return self.copy_rows(TABLE, &loaded),
            Operation::CopyRows => {
                let from = if has_loaded && self.random.below(2) == 0 { &loaded } else { TABLE };
                return self.copy_rows(from, &loaded);
            }
            Operation::DropLoaded if has_loaded => {
                announce(Change::NotLoaded(loaded.clone()));
                drop_named(instance, &loaded)?;
            }
            _ => return Ok(()),
        }
        self.acknowledge();
        Ok(())
    }

    /// Adds the committed rows of a table to one that is loaded by direct path.
    fn copy_rows(&mut self, from: &str, to: &str) -> Result<(), EngineError> {
        let (transactions, session) = (self.transactions, self.session);
        let instance = transactions.instance();
        let World { rows, loaded, .. } = &self.run.acknowledged;
        let of_loaded = |table: &str| loaded.get(table).copied().unwrap_or(0);
        let copied = if from == TABLE { rows.len() as u64 } else { of_loaded(from) };
        self.run.under_way = Some(Change::Loaded(to.to_string(), of_loaded(to) + copied));
        let view = TableView::open(instance, Some(transactions), session, from)?;
        let log = transactions.log_of_load(Logging::Logging);
        let spec = CopySpec {
            columns: &[0, 1, 2, 3],
            predicate: None,
            load: if copied % 2 == 0 { LoadDegree::Serial } else { LoadDegree::Parallel },
            target: LoadTarget { table: to, tablespace: large(instance), log },
        };
        copy(instance, session, &view, spec)?;
        self.acknowledge();
        Ok(())
    }

    /// Fills another table in a transaction of its own.
    fn fill(&mut self, table: &str) -> Result<(), EngineError> {
        let mut connection = self.transactions.connect(self.session);
        connection.set_lock_wait(LockWait::Never);
        let mut transaction = connection.begin();
        let mut rows = BTreeSet::new();
        for _ in 0..1 + self.random.below(4) {
            let (id, content) = ((self.random.draw() >> 20) as i64, content(self.random));
            let [key, text, long] = values(&content);
            transaction.insert(table, &[number(id), key, text, long])?;
            rows.insert(id);
        }
        self.run.under_way = Some(Change::Other(table.to_string(), rows));
        transaction.commit()?;
        self.acknowledge();
        Ok(())
    }
}

fn content(random: &mut SplitMix) -> Content {
    let length = match random.below(12) {
        0 => 200 + random.below(600),
        1..4 => 30 + random.below(100),
        _ => 1 + random.below(20),
    };
    let letter = char::from(b'a' + random.below(26) as u8);
    let long = if random.below(12) == 0 { long(random) } else { String::new() };
    (random.below(50) as i64, letter.to_string().repeat(length as usize), long)
}

/// Returns a text that fills blocks of 2K, and mostly those of 4K, and continues. No two places are
/// alike, so that mixed-up pieces are noticed.
fn long(random: &mut SplitMix) -> String {
    let (length, mut words) = (1900 + random.below(8000) as usize, SplitMix(random.draw()));
    let mut text = String::with_capacity(length + 16);
    while text.len() < length {
        text.push_str(&format!("{:016x}", words.draw()));
    }
    text.truncate(length);
    text
}

/// Returns the columns after the id.
fn values(content: &Content) -> [Value; 3] {
    let long = if content.2.is_empty() { Value::Null } else { Value::Text(content.2.clone()) };
    [number(content.0), Value::Text(content.1.clone()), long]
}

fn push(images: &mut RowBatch, id: i64, content: &Content) {
    images.begin_row(4);
    images.push_value(&number(id));
    values(content).iter().for_each(|value| images.push_value(value));
    images.end_row();
}

/// Rows for a direct path load, all in one batch.
struct Rows {
    schema: Schema,
    rows: u64,
    taken: AtomicBool,
}

impl RowSource for Rows {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn row_count_hint(&self) -> Option<u64> {
        Some(self.rows)
    }

    fn next_batch(&self, batch: &mut RowBatch) -> Result<bool, SourceError> {
        batch.clear();
        if self.taken.swap(true, Relaxed) {
            return Ok(false);
        }
        (0..self.rows as i64).for_each(|id| push(batch, id, &(id % 7, "loaded".to_string(), String::new())));
        Ok(true)
    }
}
