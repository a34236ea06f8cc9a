//! One cycle of the crash harness: sessions change a small table, the power goes at some request, the database is recovered and held
//! against what must be in it. Shared by the tests of the engine and by `cargo xtask bench crash`.
//!
//! The oracle: after the recovery the table has the rows of all commits that were acknowledged, or those and the rows of the
//! one commit that was under way when the power went, and no others; the indexes agree with it; and a second opening finds the same.
//! As one thread steps the sessions, one seed is one order of requests.

use plumb_engine::instance::InitialSizes;
use plumb_engine::transaction::{IndexDefinition, LockWait, Transaction, Transactions};
use plumb_engine::{EngineError, Instance, Settings};
use plumb_events::Role;
use plumb_io::sim::MemoryDisk;
use plumb_io::sim::power::Survivors;
use plumb_types::{Column, ColumnType, Number, RowBatch, Schema, Value};
use plumb_units::{Bytes, RowId};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

const HOME: &str = "/in/memory/db";
const TABLE: &str = "T";
const SETTINGS: [(&str, &str); 9] = [
    ("db_block_size", "2K"),
    ("debug_extent_blocks", "8"),
    ("data_files", "1"),
    ("debug_cache_blocks", "12"),
    ("log_buffer", "32K"),
    ("log_file_size", "64K"),
    ("log_file_groups", "3"),
    ("log_checkpoint_interval", "64K"),
    ("io_method", "null"),
];

/// What a row has besides its number: the indexed key and a text.
pub type Content = (i64, String);
/// The rows that are committed, by number, and where they are.
pub type Model = BTreeMap<i64, (RowId, Content)>;

/// splitmix64 (Steele, Lea, Flood 2014).
#[derive(Debug, Clone)]
pub struct Seeded(pub u64);

impl Seeded {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

pub fn settings() -> Settings {
    let mut settings = Settings::default();
    for (name, value) in SETTINGS {
        settings.set(name, value, "the crash harness").expect("in range");
    }
    settings
}

pub fn open(disk: &Arc<MemoryDisk>) -> Result<Instance, EngineError> {
    Instance::open_on(disk, Path::new(HOME), settings())
}

/// A database with an empty table and two indexes, closed.
pub fn new_disk(seed: u64) -> Arc<MemoryDisk> {
    let disk = MemoryDisk::with_power(seed);
    let sizes = InitialSizes { users: Bytes(32 << 10), temp: Bytes(16 << 10), indx: Bytes(64 << 10) };
    let instance = Instance::create_on(&disk, Path::new(HOME), settings(), sizes).expect("a database");
    let session = instance.recorder.session(Role::User);
    let transactions = Transactions::open(&instance, &session).expect("a log");
    let columns = vec![
        Column::required("ID", ColumnType::NUMBER),
        Column::required("K", ColumnType::NUMBER),
        Column::nullable("V", ColumnType::Text { max_bytes: 1000 }),
    ];
    let schema = Schema::new(columns).expect("a schema");
    let index = |name: &str, columns: &[&str]| IndexDefinition {
        name: name.to_string(),
        columns: columns.iter().map(|column| ((*column).to_string(), false)).collect(),
    };
    let indexes = [index("T_K", &["K"]), index("T_V", &["V", "ID"])];
    transactions.create_table(&session, TABLE, &schema, &indexes).expect("a table");
    drop(transactions);
    drop(session);
    drop(instance);
    disk
}

/// What ended a run.
#[derive(Debug)]
pub struct Run {
    /// What is committed for certain.
    pub acknowledged: Model,
    /// The same with the commit that was under way, if one was.
    pub uncertain: Option<Model>,
    /// Why it ended; `None` when it was to end.
    pub error: Option<EngineError>,
    /// Commits that were acknowledged.
    pub commits: u64,
}

/// A session of a run: its transaction, and what it will have changed.
struct Actor<'c, 'a> {
    transaction: Transaction<'c, 'a>,
    changes: BTreeMap<i64, Option<(RowId, Content)>>,
}

fn number(value: i64) -> Value {
    Value::Number(Number::new(i128::from(value), 0).expect("an i64 is a NUMBER"))
}

fn content(random: &mut Seeded) -> Content {
    let length = match random.below(12) {
        0 => 200 + random.below(600),
        1..4 => 30 + random.below(100),
        _ => 1 + random.below(20),
    };
    let letter = char::from(b'a' + random.below(26) as u8);
    (random.below(50) as i64, letter.to_string().repeat(length as usize))
}

/// Runs `steps` steps of `sessions` sessions on an open database.
pub fn run(instance: &Instance, random: &mut Seeded, before: &Model, steps: u64, sessions: u64) -> Run {
    let mut run = Run { acknowledged: before.clone(), uncertain: None, error: None, commits: 0 };
    let session = instance.recorder.session(Role::User);
    let transactions = match Transactions::open(instance, &session) {
        Ok(transactions) => transactions,
        Err(error) => return Run { error: Some(error), ..run },
    };
    let connections: Result<Vec<_>, _> = (0..sessions).map(|_| transactions.connect(&session)).collect();
    let mut connections = match connections {
        Ok(connections) => connections,
        Err(error) => return Run { error: Some(error), ..run },
    };
    connections.iter_mut().for_each(|connection| connection.set_lock_wait(LockWait::Never));
    let begin = |transaction| Actor { transaction, changes: BTreeMap::new() };
    let mut actors: Vec<Actor<'_, '_>> = connections.iter_mut().map(|it| begin(it.begin())).collect();
    for _ in 0..steps {
        if random.below(40) == 0 {
            if let Err(error) = transactions.checkpoint(&session) {
                run.error = Some(error);
                break;
            }
            continue;
        }
        let actor = &mut actors[random.below(sessions) as usize];
        if let Err(error) = step(actor, random, &mut run) {
            run.error = Some(error);
            break;
        }
    }
    run
}

/// One statement, or an end, of a session's transaction.
fn step(actor: &mut Actor<'_, '_>, random: &mut Seeded, run: &mut Run) -> Result<(), EngineError> {
    let Actor { transaction, changes } = actor;
    let mut rows: Vec<(i64, RowId)> = Vec::new();
    for (id, (row, _)) in &run.acknowledged {
        if !changes.contains_key(id) {
            rows.push((*id, *row));
        }
    }
    rows.extend(changes.iter().filter_map(|(id, row)| Some((*id, row.as_ref()?.0))));
    let picked = (!rows.is_empty()).then(|| rows[random.below(rows.len() as u64) as usize]);
    let done = match (random.below(20), picked) {
        (0..6, _) | (_, None) => insert(transaction, changes, random),
        (6..12, Some((id, row))) => {
            let (key, text) = content(random);
            let new = (key, text.clone());
            let updated = transaction.update(TABLE, row, |values| {
                values[1] = number(key);
                values[2] = Value::Text(text.clone());
            });
            updated.map(|row| {
                changes.insert(id, Some((row, new)));
            })
        }
        (12..15, Some((id, row))) => transaction.delete(TABLE, row).map(|()| {
            changes.insert(id, None);
        }),
        (15..19, _) => {
            let mut after = run.acknowledged.clone();
            for (id, row) in std::mem::take(changes) {
                match row {
                    Some(row) => after.insert(id, row),
                    None => after.remove(&id),
                };
            }
            run.uncertain = Some(after);
            transaction.commit_and_chain()?;
            run.acknowledged = run.uncertain.take().expect("just set");
            run.commits += 1;
            return Ok(());
        }
        _ => {
            changes.clear();
            transaction.rollback_and_chain()
        }
    };
    match done {
        Err(EngineError::RowLocked { .. } | EngineError::RowGone { .. }) => Ok(()),
        Err(EngineError::LogFull { .. }) => {
            changes.clear();
            transaction.rollback_and_chain()
        }
        done => done,
    }
}

fn insert(
    transaction: &mut Transaction<'_, '_>,
    changes: &mut BTreeMap<i64, Option<(RowId, Content)>>,
    random: &mut Seeded,
) -> Result<(), EngineError> {
    let mut images = RowBatch::new();
    let count = if random.below(4) == 0 { 1 + random.below(6) } else { 1 };
    let mut rows = Vec::new();
    for _ in 0..count {
        let (id, content) = ((random.next() >> 20) as i64, content(random));
        images.begin_row(3);
        [number(id), number(content.0), Value::Text(content.1.clone())]
            .iter()
            .for_each(|it| images.push_value(it));
        images.end_row();
        rows.push((id, content));
    }
    let places = transaction.insert_rows(TABLE, &images)?;
    changes.extend(rows.into_iter().zip(places).map(|((id, content), row)| (id, Some((row, content)))));
    Ok(())
}

/// Reads the whole table, and holds its indexes against it.
pub fn read(instance: &Instance) -> Result<Model, EngineError> {
    let session = instance.recorder.session(Role::User);
    let transactions = Transactions::open(instance, &session)?;
    let mut connection = transactions.connect(&session)?;
    let mut found = Model::new();
    let mut transaction = connection.begin();
    transaction.scan(TABLE, |row| {
        let [Value::Number(id), Value::Number(key), Value::Text(text)] = row.values.as_slice() else {
            panic!("a row of {:?}", row.values);
        };
        let value = |number: &Number| number.to_string().parse::<i64>().expect("an integer");
        let twice = found.insert(value(id), (row.id, (value(key), text.clone())));
        assert!(twice.is_none(), "row {id} twice");
        Ok(())
    })?;
    drop(transaction);
    drop(connection);
    let checked = transactions.check(&session, TABLE)?;
    assert_eq!(checked.row_count, found.len() as u64);
    assert_eq!(checked.entry_count, 2 * checked.row_count);
    Ok(found)
}

/// What a chain of cycles came to.
#[derive(Debug, Default, Clone, Copy)]
pub struct Tally {
    pub cycles: u64,
    pub crashes: u64,
    pub recoveries_cut_short: u64,
    pub commits: u64,
    pub hash: u64,
}

/// Some cycles on one disk, each with a crash. Panics with the seed when the oracle finds something.
pub fn chain(base: &Arc<MemoryDisk>, seed: u64, length: u64, tally: &mut Tally) {
    let mut random = Seeded(seed);
    let mut disk = base.restart(Survivors::All);
    let mut model = Model::new();
    for cycle in 0..length {
        let said = || format!("seed {seed} cycle {cycle}");
        // One chain in eight has long runs.
        let (most_requests, most_steps) = if seed.is_multiple_of(8) { (500, 200) } else { (120, 50) };
        let last = disk.requests() + 1 + random.below(most_requests);
        disk.lose_power_at(Some(last));
        let (steps, sessions) = (20 + random.below(most_steps), 1 + random.below(4));
        let run = match open(&disk) {
            Ok(instance) => run(&instance, &mut random, &model, steps, sessions),
            Err(error) => {
                Run { acknowledged: model.clone(), uncertain: None, error: Some(error), commits: 0 }
            }
        };
        let gone = disk.requests() >= last;
        assert!(
            gone || run.error.is_none(),
            "{}: {} with the power on",
            said(),
            run.error.as_ref().expect("some")
        );
        tally.hash = tally.hash.rotate_left(7) ^ disk.trace_hash();
        tally.crashes += u64::from(gone);
        tally.commits += run.commits;
        disk = disk.restart(survivors(&mut random, disk.unsynced()));
        // The power goes again while it is recovered, some times.
        while random.below(3) == 0 {
            let at = disk.requests() + random.below(40);
            disk.lose_power_at(Some(at));
            let recovered = open(&disk).and_then(|instance| read(&instance));
            assert!(
                recovered.is_ok() || disk.requests() >= at,
                "{}: {recovered:?} with the power on",
                said()
            );
            tally.recoveries_cut_short += u64::from(recovered.is_err());
            disk = disk.restart(survivors(&mut random, disk.unsynced()));
        }
        let found = open(&disk).and_then(|instance| read(&instance));
        let found = found.unwrap_or_else(|error| panic!("{}: {error}", said()));
        let is_right = found == run.acknowledged || Some(&found) == run.uncertain.as_ref();
        assert!(is_right, "{}: {}", said(), difference(&found, &run.acknowledged));
        model = found;
        tally.cycles += 1;
    }
}

fn survivors(random: &mut Seeded, changes: usize) -> Survivors {
    let one = random.below(changes.max(1) as u64) as usize;
    match random.below(8) {
        0 => Survivors::None,
        1 => Survivors::All,
        2 => Survivors::AllBut(one),
        3 => Survivors::Only(one),
        4 => Survivors::AllTorn(one),
        _ => Survivors::Random(random.next()),
    }
}

fn difference(found: &Model, expected: &Model) -> String {
    let first = expected.iter().find(|(id, row)| found.get(id) != Some(row));
    let surplus = found.iter().find(|(id, row)| expected.get(id) != Some(row));
    format!("{} rows, expected {}; not found: {first:?}; found: {surplus:?}", found.len(), expected.len())
}

/// One run, crashed at every request in turn, with nothing, everything, each one change and all but each one surviving, each one torn, and some
/// coins. Gives the number of crashes.
pub fn every_request(base: &Arc<MemoryDisk>, seed: u64, steps: u64) -> u64 {
    let mut crashes = 0;
    for at in 0.. {
        let disk = base.restart(Survivors::All);
        disk.lose_power_at(Some(at));
        let mut random = Seeded(seed);
        let run = match open(&disk) {
            Ok(instance) => run(&instance, &mut random, &Model::new(), steps, 2),
            Err(error) => Run { acknowledged: Model::new(), uncertain: None, error: Some(error), commits: 0 },
        };
        if disk.requests() < at {
            assert!(run.error.is_none(), "seed {seed}: {:?} with the power on", run.error);
            return crashes;
        }
        let mut ways = vec![Survivors::None, Survivors::All];
        for one in 0..disk.unsynced() {
            ways.extend([Survivors::AllBut(one), Survivors::Only(one), Survivors::AllTorn(one)]);
        }
        ways.extend((0..3).map(|coin| Survivors::Random(at << 8 | coin)));
        for survivors in ways {
            let said = || format!("seed {seed} request {at} {survivors:?}");
            let found = open(&disk.restart(survivors)).and_then(|instance| read(&instance));
            let found = found.unwrap_or_else(|error| panic!("{}: {error}", said()));
            let is_right = found == run.acknowledged || Some(&found) == run.uncertain.as_ref();
            assert!(is_right, "{}: {}", said(), difference(&found, &run.acknowledged));
            crashes += 1;
        }
    }
    unreachable!("a run ends")
}
