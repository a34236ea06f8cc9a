//! One cycle of the crash harness: sessions change a small table, the power fails at some request,
//! and the database is recovered and checked. The engine's tests and `cargo xtask bench crash`
//! share it.
//!
//! The oracle: after recovery the database has exactly the [`World`] of all acknowledged commits
//! and definitions. It may also have the one in flight when the power failed. The indexes agree
//! with their tables, and a second opening finds the same. One thread steps the sessions, so one
//! seed is one order of requests.
//!
//! - `world`: the expected contents, and how they are read.
//! - `operation`: the operations of a session, and a run of them.
//! - `faults`: disks that fail, lie or forget.
//! - `kill`: killed processes on a real disk.
//! - `leftovers`: killed commands of the program, and what is left of them.

pub mod faults;
pub mod kill;
pub mod leftovers;
pub mod operation;
pub mod world;

use operation::{Operation, Run, run, steps};
use plumb_engine::instance::InitialSizes;
use plumb_engine::storage::tablespace::Purpose;
use plumb_engine::transaction::{IndexDefinition, Transactions};
use plumb_engine::{EngineError, Instance, Settings};
use plumb_events::Role;
use plumb_io::sim::MemoryDisk;
use plumb_io::sim::power::Survivors;
use plumb_types::{Column, ColumnType, Schema};
use plumb_units::{BlockSize, Bytes, SplitMix};
use std::path::Path;
use std::sync::Arc;
use world::{World, read};

pub const HOME: &str = "/in/memory/db";
pub const TABLE: &str = "T";
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogKind {
    Plain,
    /// Filled files are copied before they are reused.
    Archived,
    /// Each file has two members.
    Mirrored,
    /// Each file has two members, both outside of the home.
    Outside,
    /// Records are of blocks of two sizes: 4K for the table and loaded tables, 2K for the rest.
    Sizes,
}

/// Kinds of log for chains; the seed of a chain selects one.
pub const LOG_KINDS: [LogKind; 4] = [LogKind::Plain, LogKind::Archived, LogKind::Mirrored, LogKind::Sizes];

impl LogKind {
    pub fn settings(self) -> Settings {
        let mut settings = Settings::default();
        let more: &[(&str, &str)] = match self {
            LogKind::Plain => &[],
            LogKind::Archived => &[("archive_log_mode", "on"), ("archive_log_dest", "/in/memory/copies")],
            LogKind::Mirrored => &[("log_file_members", "2")],
            // These directories exist; the files are in memory nevertheless.
            LogKind::Outside => &[("log_file_members", "2"), ("log_path", "/"), ("log_mirror_path", "/proc")],
            LogKind::Sizes => &[("db_4k_cache_size", "1M"), ("log_buffer", "64K"), ("log_file_size", "128K")],
        };
        for (name, value) in SETTINGS.iter().chain(more) {
            settings.set(name, value, "the crash harness").expect("in range");
        }
        settings
    }

    /// Opens a database with such a log.
    pub fn open(self, disk: &Arc<MemoryDisk>) -> Result<Instance, EngineError> {
        Instance::open_on(disk, Path::new(HOME), self.settings())
    }
}

/// A closed database with a table and two indexes, from which runs begin.
#[derive(Debug)]
pub struct Base {
    disk: Arc<MemoryDisk>,
    log: LogKind,
    world: World,
}

impl Base {
    pub fn new(log: LogKind) -> Base {
        let base = Base { disk: MemoryDisk::with_power(1), log, world: World::default() };
        let sizes = InitialSizes { users: Bytes(32 << 10), temp: Bytes(16 << 10), indx: Bytes(64 << 10) };
        let created = Instance::create_on(&base.disk, Path::new(HOME), log.settings(), sizes);
        let instance = created.expect("a database");
        let session = instance.recorder.session(Role::User);
        if log == LogKind::Sizes {
            let size = BlockSize::new(4096).expect("a block size");
            instance.tablespace_of(&session, size, Bytes(32 << 10)).expect("a tablespace");
        }
        let transactions = Transactions::open(&instance, &session).expect("a log");
        let indexes = [index("T_K", &["K"]), index("T_V", &["V", "ID"])];
        let place = (TABLE, large(&instance));
        transactions.create_table_in(&session, place, &schema(), &indexes).expect("a table");
        base
    }

    pub fn of_each_kind() -> Vec<Base> {
        LOG_KINDS.map(Base::new).into()
    }

    /// Creates a base with committed rows, some of them chained, and
    /// everything that can be dropped.
    pub fn filled(log: LogKind) -> Base {
        let mut base = Base::new(log);
        // The log has no room for more in one transaction.
        let rows = [Operation::Split, Operation::Commit, Operation::InsertLong, Operation::Commit];
        let others = [Operation::CreateTable, Operation::Load, Operation::FillTable];
        let operations = rows.into_iter().chain(others.repeat(12)).chain([Operation::CreateIndex]).collect();
        let filled =
            run(&base.open(&base.disk).expect("open"), &mut SplitMix(3), World::default(), operations, 1);
        assert!(filled.error.is_none(), "{:?}", filled.error);
        let World { rows, others, loaded, indexes } = &filled.acknowledged;
        let sizes = [rows.len(), others.len(), loaded.len(), indexes.len()];
        assert!(
            rows.len() > 16 && sizes[1..] == [2, 2, 3],
            "rows, tables, loaded tables, indexes: {sizes:?}"
        );
        (base.disk, base.world) = (base.copy(), filled.acknowledged);
        base
    }

    pub fn world(&self) -> World {
        self.world.clone()
    }

    pub fn copy(&self) -> Arc<MemoryDisk> {
        self.disk.restart(Survivors::All)
    }

    /// Opens the database on such a copy.
    pub fn open(&self, disk: &Arc<MemoryDisk>) -> Result<Instance, EngineError> {
        self.log.open(disk)
    }

    pub fn read(&self, disk: &Arc<MemoryDisk>) -> Result<World, EngineError> {
        self.open(disk).and_then(|instance| read(&instance))
    }
}

/// Returns the tablespace of the larger blocks, if there are two sizes.
pub fn large(instance: &Instance) -> Purpose {
    instance.tablespaces().find(Purpose::Users4K).map_or(Purpose::Users, |found| found.purpose)
}

/// Returns the columns of every table.
pub fn schema() -> Schema {
    let columns = vec![
        Column::required("ID", ColumnType::NUMBER),
        Column::required("K", ColumnType::NUMBER),
        Column::nullable("V", ColumnType::Text { max_bytes: 1000 }),
        Column::nullable("LONG", ColumnType::Text { max_bytes: 20_000 }),
    ];
    Schema::new(columns).expect("a schema")
}

pub fn index(name: &str, columns: &[&str]) -> IndexDefinition {
    let columns = columns.iter().map(|column| ((*column).to_string(), false)).collect();
    IndexDefinition { name: name.to_string(), columns, unique: false }
}

pub fn unique_index(name: &str, columns: &[&str]) -> IndexDefinition {
    IndexDefinition { unique: true, ..index(name, columns) }
}

/// Counts of a chain of cycles, and the hash of its requests.
#[derive(Debug, Default, Clone, Copy)]
pub struct Tally {
    pub cycles: u64,
    pub crashes: u64,
    pub recoveries_cut_short: u64,
    pub commits: u64,
    pub hash: u64,
}

/// Runs cycles on one disk, each with a crash. Panics with the seed after a violation.
pub fn chain(base: &Base, seed: u64, length: u64, tally: &mut Tally) {
    let mut random = SplitMix(seed);
    let mut disk = base.copy();
    let mut world = base.world();
    for cycle in 0..length {
        let said = || format!("seed {seed} cycle {cycle}, {:?}", base.log);
        // One chain in eight has long runs.
        let (most_requests, most_steps) = if seed.is_multiple_of(8) { (500, 200) } else { (120, 50) };
        let last = disk.requests() + 1 + random.below(most_requests);
        disk.lose_power_at(Some(last));
        let (steps, sessions) = (steps(20 + random.below(most_steps)), 1 + random.below(4));
        let run = match base.open(&disk) {
            Ok(instance) => run(&instance, &mut random, world, steps, sessions),
            Err(error) => Run::ended(world, error),
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
        // Sometimes the power fails again during the recovery.
        while random.below(3) == 0 {
            let at = disk.requests() + random.below(40);
            disk.lose_power_at(Some(at));
            let recovered = base.read(&disk);
            assert!(
                recovered.is_ok() || disk.requests() >= at,
                "{}: {recovered:?} with the power on",
                said()
            );
            tally.recoveries_cut_short += u64::from(recovered.is_err());
            disk = disk.restart(survivors(&mut random, disk.unsynced()));
        }
        let found = base.read(&disk);
        let found = found.unwrap_or_else(|error| panic!("{}: {error}", said()));
        run.require(&found).unwrap_or_else(|wrong| panic!("{}: {wrong}", said()));
        world = found;
        tally.cycles += 1;
    }
}

pub fn survivors(random: &mut SplitMix, changes: usize) -> Survivors {
    let one = random.below(changes.max(1) as u64) as usize;
    match random.below(8) {
        0 => Survivors::None,
        1 => Survivors::All,
        2 => Survivors::AllBut(one),
        3 => Survivors::Only(one),
        4 => Survivors::AllTorn(one),
        _ => Survivors::Random(random.draw()),
    }
}

/// Runs two operations and a commit, crashed at every request. Returns the number of crashes.
pub fn pair(base: &Base, first: Operation, second: Operation) -> u64 {
    let end = [Operation::Commit];
    let operations: Vec<Operation> = [first, second].into_iter().chain(end).collect();
    every_request(base, 7, &operations, 1)
}

/// Repeats one run with a crash at every request. The survivors are nothing, everything,
/// each single change, all but each single change, each change torn, and random sets.
/// Returns the number of crashes.
pub fn every_request(base: &Base, seed: u64, operations: &[Operation], sessions: u64) -> u64 {
    let mut crashes = 0;
    for at in 0.. {
        let disk = base.copy();
        disk.lose_power_at(Some(at));
        let mut random = SplitMix(seed);
        let before = base.world();
        let run = match base.open(&disk) {
            Ok(instance) => run(&instance, &mut random, before, operations.to_vec(), sessions),
            Err(error) => Run::ended(before, error),
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
            let said = || format!("seed {seed} {:?} {operations:?} request {at} {survivors:?}", base.log);
            let found = base.read(&disk.restart(survivors));
            let found = found.unwrap_or_else(|error| panic!("{}: {error}", said()));
            run.require(&found).unwrap_or_else(|wrong| panic!("{}: {wrong}", said()));
            crashes += 1;
        }
    }
    unreachable!("a run ends")
}
