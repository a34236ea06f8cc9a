//! Rows longer than a block in tables that transactions change: their visibility,
//! their changes, and their space.

use crate::support::{SMALLEST, in_memory, number, settings, within};
use plumb_engine::transaction::{Connection, IndexDefinition, LockWait, Row, Transaction, Transactions};
use plumb_engine::{EngineError, Instance};
use plumb_events::{Role, Session, Statistic};
use plumb_io::sim::power::Survivors;
use plumb_io::sim::{Faults, MemoryDisk};
use plumb_types::{Column, ColumnType, RowBatch, Schema, Value};
use plumb_units::{RowId, SplitMix};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

/// Bytes of the longest row in blocks of 2K here, where an extent has 64 blocks.
const LONGEST: usize = 62 * 2024;
/// Bytes of a row in a piece that is not its head, in blocks of 2K.
const PIECE: usize = 2048 - 24 - 4 - 8 - 20;

fn schema() -> Schema {
    let text = |name: &str| Column::nullable(name, ColumnType::Text { max_bytes: 32_767 });
    let number = |name: &str| Column::required(name, ColumnType::NUMBER);
    let columns = vec![number("ID"), number("K"), text("A"), text("B"), text("C"), text("D")];
    Schema::new(columns).expect("columns with names")
}

fn index(name: &str, column: &str, unique: bool) -> IndexDefinition {
    IndexDefinition { name: name.into(), columns: vec![(column.into(), false)], unique }
}

/// Runs `work` on an open database with table T, unique by ID and indexed by K.
fn with_table(changes: &[(&str, &str)], work: impl FnOnce(&Transactions<'_>, &Session)) {
    let small = [("db_block_size", "2K"), ("debug_extent_blocks", "64"), ("log_file_size", "8M")];
    let instance = in_memory(&small.iter().chain(changes).copied().collect::<Vec<_>>());
    let session = instance.recorder.session(Role::User);
    let transactions = Transactions::open(&instance, &session).expect("a log");
    let indexes = [index("T_ID", "ID", true), index("T_K", "K", false)];
    transactions.create_table(&session, "T", &schema(), &indexes).expect("a table");
    work(&transactions, &session);
}

fn never<'a>(transactions: &'a Transactions<'a>, session: &'a Session) -> Connection<'a> {
    let mut connection = transactions.connect(session);
    connection.set_lock_wait(LockWait::Never);
    connection
}

/// Makes a row of this number of bytes of text; the text follows from the seed and does not repeat.
fn row(id: i64, key: i64, (bytes, seed): (usize, u64)) -> Vec<Value> {
    let mut words = SplitMix(seed);
    let mut text = |length: usize| {
        let mut text = String::with_capacity(length + 16);
        while text.len() < length {
            text.push_str(&format!("{:016x}", words.draw()));
        }
        text.truncate(length);
        if text.is_empty() { Value::Null } else { Value::Text(text) }
    };
    let mut part = |at: usize| text(bytes.saturating_sub(at * 32_000).min(32_000));
    let texts = [part(0), part(1), part(2), part(3)];
    [number(id), number(key)].into_iter().chain(texts).collect()
}

fn image_of(values: &[Value]) -> Vec<u8> {
    crate::support::images(&[values.to_vec()]).row(0).to_vec()
}

fn insert(transaction: &mut Transaction<'_, '_>, values: &[Value]) -> RowId {
    transaction.insert("T", values).expect("inserted")
}

fn put(transaction: &mut Transaction<'_, '_>, row: RowId, values: &[Value]) -> Result<RowId, EngineError> {
    transaction.update("T", row, |columns| columns.clone_from_slice(values))
}

fn id_of(values: &[Value]) -> i64 {
    values[0].to_string().parse().expect("a number")
}

fn all(transaction: &mut Transaction<'_, '_>) -> BTreeMap<i64, (RowId, Vec<Value>)> {
    let mut rows = BTreeMap::new();
    let scanned = transaction.scan("T", |row| {
        assert!(rows.insert(id_of(&row.values), (row.id, row.values)).is_none(), "a row comes once");
        Ok(())
    });
    scanned.expect("scanned");
    rows
}

/// Compares every way to read the rows with a model of them.
fn require(transaction: &mut Transaction<'_, '_>, model: &BTreeMap<i64, (RowId, Vec<Value>)>) {
    assert!(all(transaction) == *model, "a scan");
    let images = RefCell::new(BTreeMap::new());
    let collect = |row: RowId, image: &[u8]| {
        images.borrow_mut().insert(row, image.to_vec());
        Ok(())
    };
    transaction.scan_images("T", collect).expect("scanned");
    let by_scan = images.take();
    let everything = ([number(i64::MIN)], [number(i64::MAX)]);
    let count = transaction.range("T_K", (&everything.0, &everything.1), collect).expect("read");
    assert_eq!(count, model.len() as u64);
    assert!(images.take() == by_scan, "a range of an index");
    for (id, (place, values)) in model {
        assert!(by_scan[place] == image_of(values), "row {id} as an image");
        let found = transaction.get("T", *place).expect("read");
        assert!(found.is_some_and(|found| found.values == *values), "row {id} by its row id");
        let found: Vec<Row> = transaction.lookup("T_ID", &[number(*id)]).expect("read");
        assert!(found.len() == 1 && found[0].values == *values, "row {id} by its key");
    }
}

fn chained(transactions: &Transactions<'_>, session: &Session) -> u64 {
    transactions.check(session, "T").expect("sound").chained_row_count
}

#[test]
fn rows_of_lengths_around_piece_ends_come_back() {
    with_table(&[], |transactions, session| {
        let version = || transactions.instance().catalog().clone();
        let mut connection = never(transactions, session);
        let mut transaction = connection.begin();
        let (mut model, mut longer) = (BTreeMap::new(), 0);
        let beside = image_of(&row(0, 0, (2000, 0))).len() - 2000;
        let around = |end: usize| end - 6..end + 6;
        let lengths = [2048 - 36, PIECE, 2 * PIECE, 3 * PIECE, 7 * PIECE + PIECE / 2, 2 * 2024];
        let lengths = lengths.into_iter().flat_map(around).map(|end| end - beside);
        insert(&mut transaction, &row(-1, 0, (10, 0)));
        transaction.rollback_and_chain().expect("rolled back");
        let control =
            |catalog: plumb_engine::storage::control::Catalog| serde_json::to_string(&catalog).expect("text");
        assert!(control(version()).contains("\"version\":3"), "programs that know no such rows may open it");
        for (id, bytes) in (0..).zip(lengths) {
            let values = row(id, id % 7, (bytes, id as u64));
            longer += u64::from(image_of(&values).len() > 2048 - 36);
            model.insert(id, (insert(&mut transaction, &values), values));
        }
        require(&mut transaction, &model);
        transaction.commit_and_chain().expect("committed");
        require(&mut transaction, &model);
        assert!(control(version()).contains("\"version\":7"), "programs that know no such rows refuse it");
        let checked = transactions.check(session, "T").expect("sound");
        assert_eq!((checked.row_count, checked.chained_row_count), (72, longer));
    });
}

#[test]
fn the_longest_row_is_taken_and_a_longer_one_refused() {
    with_table(&[], |transactions, session| {
        let beside = image_of(&row(1, 1, (100_000, 0))).len() - 100_000;
        let longest = row(1, 1, (LONGEST - beside, 1));
        assert_eq!(image_of(&longest).len(), LONGEST);
        let mut connection = never(transactions, session);
        let mut transaction = connection.begin();
        let place = insert(&mut transaction, &longest);
        let too_long = row(2, 1, (LONGEST - beside + 1, 1));
        let refused = transaction.insert("T", &too_long).expect_err("too long").to_string();
        assert!(
            refused.starts_with(
                "a row of 125489 bytes does not fit an extent of 128 KB: there is room for 125488; create the database with a larger \
                 extent_size or db_block_size, or shorten the row: it begins with "
            ),
            "{refused}"
        );
        assert_eq!(refused.lines().count(), 1);
        let refused = put(&mut transaction, place, &too_long).expect_err("too long").to_string();
        assert!(refused.starts_with("a row of 125489 bytes does not fit an extent of 128 KB"), "{refused}");
        require(&mut transaction, &[(1, (place, longest))].into());
        transaction.commit().expect("committed");
        assert_eq!(chained(transactions, session), 1);
    });
}

/// Each length changes to each other, is rolled back and done again; before the commit other
/// sessions see the old row.
#[test]
fn a_row_grows_into_pieces_and_shrinks_again() {
    with_table(&[("debug_cache_blocks", "24")], |transactions, session| {
        let lengths = [0, 300, 1900, 2100, 4000, 4700, 20_000];
        let mut connections = [never(transactions, session), never(transactions, session)];
        let [one, two] = &mut connections;
        let (mut writer, mut reader) = (one.begin(), two.begin());
        // Other rows in the same blocks leave it little room.
        let mut model = BTreeMap::new();
        for id in 0..40 {
            let values = row(id, id, (200, id as u64));
            model.insert(id, (insert(&mut writer, &values), values));
        }
        writer.commit_and_chain().expect("committed");
        for (step, (from, to)) in lengths.iter().flat_map(|from| lengths.map(|to| (*from, to))).enumerate() {
            let id = step as i64 % 40;
            for (bytes, seed) in [(from, 1), (to, 2)] {
                let values = row(id, step as i64 % 9, (bytes, seed + 100 * step as u64));
                let before = model.clone();
                put(&mut writer, model[&id].0, &values).expect("updated");
                require(&mut reader, &before);
                writer.rollback_and_chain().expect("rolled back");
                require(&mut writer, &before);
                let place = put(&mut writer, model[&id].0, &values).expect("updated again");
                model.insert(id, (place, values));
                require(&mut writer, &model);
                writer.commit_and_chain().expect("committed");
            }
        }
        require(&mut reader, &model);
        writer.delete("T", model[&8].0).expect("deleted");
        model.remove(&8);
        writer.commit().expect("committed");
        require(&mut reader, &model);
        drop(reader);
        let longer = model.values().filter(|(_, values)| image_of(values).len() > 2048 - 36).count();
        assert_eq!(chained(transactions, session), longer as u64);
    });
}

/// Pieces of rows are deleted and replaced while a statement reads the table. It sees all rows of
/// its first moment, and the space that it needs is not reused.
#[test]
fn a_statement_sees_the_pieces_of_its_moment() {
    let few = [("db_file_multiblock_read_count", "1"), ("debug_cache_blocks", "24")];
    with_table(&few, |transactions, session| {
        let mut connections = [never(transactions, session), never(transactions, session)];
        let [one, two] = &mut connections;
        let (mut writer, mut reader) = (one.begin(), two.begin());
        let mut model = BTreeMap::new();
        for id in 0..30 {
            let values = row(id, id, (3000 + 200 * id as usize, id as u64));
            model.insert(id, (insert(&mut writer, &values), values));
        }
        writer.commit_and_chain().expect("committed");
        for round in 0..4_u64 {
            let (before, mut seen, mut is_first) = (model.clone(), BTreeMap::new(), true);
            let scanned = reader.scan("T", |found| {
                if std::mem::take(&mut is_first) {
                    // Three times, so that freed space exists which must not be reused.
                    for turn in 0..3 {
                        for (id, (place, values)) in &mut model {
                            let seed = round * 1000 + turn * 100 + *id as u64;
                            let bytes = if id % 3 == 0 { 100 } else { 2500 + 300 * turn as usize };
                            *values = row(*id, id + turn as i64, (bytes, seed));
                            *place = put(&mut writer, *place, values)?;
                        }
                        writer.commit_and_chain()?;
                    }
                    let (_, (place, _)) = model.pop_first().expect("a row");
                    writer.delete("T", place)?;
                    writer.commit_and_chain()?;
                    // Rows that are rolled back free their space at once.
                    for id in 1000..1010 {
                        insert(&mut writer, &row(id, 0, (9000, 5)));
                    }
                    writer.rollback_and_chain()?;
                }
                seen.insert(id_of(&found.values), (found.id, found.values));
                Ok(())
            });
            scanned.expect("scanned");
            assert!(seen == before, "round {round}: one moment");
            require(&mut reader, &model);
        }
        drop((writer, reader));
        transactions.check(session, "T").expect("sound");
    });
}

/// Steps sessions in turn and compares them with a plain map; the cache has room
/// for few of the rows.
#[test]
fn rows_of_stepped_sessions_are_those_of_a_map() {
    for (seed, block, percent) in
        [(1, "2K", "auto"), (2, "2K", "0"), (3, "4K", "auto"), (4, "2K", "30"), (5, "4K", "50")]
    {
        let changes = [
            ("db_block_size", block),
            ("debug_cache_blocks", "32"),
            ("pct_free", percent),
            ("log_file_size", "16M"),
        ];
        with_table(&changes, |transactions, session| step(transactions, session, seed));
    }
}

/// A session of the model: its transaction, and its changes.
struct Actor<'c, 'a> {
    transaction: Transaction<'c, 'a>,
    changes: BTreeMap<i64, Option<(RowId, Vec<Value>)>>,
}

impl Actor<'_, '_> {
    /// Returns the rows that the session sees.
    fn view(&self, committed: &BTreeMap<i64, (RowId, Vec<Value>)>) -> BTreeMap<i64, (RowId, Vec<Value>)> {
        let mut view = committed.clone();
        for (id, row) in &self.changes {
            match row {
                Some(row) => view.insert(*id, row.clone()),
                None => view.remove(id),
            };
        }
        view
    }
}

fn step(transactions: &Transactions<'_>, session: &Session, seed: u64) {
    let mut random = SplitMix(seed);
    let mut connections: Vec<_> = (0..3).map(|_| never(transactions, session)).collect();
    let mut committed = BTreeMap::new();
    let begin = |transaction| Actor { transaction, changes: BTreeMap::new() };
    let mut actors: Vec<Actor<'_, '_>> = connections.iter_mut().map(|it| begin(it.begin())).collect();
    for turn in 0..1500_i64 {
        let actor = &mut actors[random.below(3) as usize];
        let bytes = match random.below(4) {
            0 => 1900 + random.below(300),
            1 => random.below(9000),
            _ => random.below(200),
        };
        let values = |id: i64| row(id, turn % 20, (bytes as usize, turn as u64));
        let view = actor.view(&committed);
        let picked = view.iter().nth(random.below(view.len().max(1) as u64) as usize);
        let outcome = match (random.below(16), picked) {
            (0..4, _) | (_, None) => {
                actor.transaction.insert("T", &values(turn)).map(|place| (turn, Some((place, values(turn)))))
            }
            (4..9, Some((id, (place, _)))) => put(&mut actor.transaction, *place, &values(*id))
                .map(|place| (*id, Some((place, values(*id))))),
            // Only a short column changes, so the pieces after it stay.
            (9, Some((id, (place, before)))) => {
                let mut new = before.clone();
                new[1] = number(turn % 20);
                put(&mut actor.transaction, *place, &new).map(|place| (*id, Some((place, new))))
            }
            (10, Some((id, (place, _)))) => actor.transaction.delete("T", *place).map(|()| (*id, None)),
            (11..14, _) => {
                actor.transaction.commit_and_chain().expect("committed");
                committed = view;
                actor.changes.clear();
                continue;
            }
            (14, _) => {
                actor.transaction.rollback_and_chain().expect("rolled back");
                actor.changes.clear();
                continue;
            }
            _ => {
                assert!(all(&mut actor.transaction) == view, "seed {seed} turn {turn}");
                continue;
            }
        };
        match outcome {
            Ok((id, row)) => drop(actor.changes.insert(id, row)),
            Err(EngineError::RowLocked { .. } | EngineError::RowGone { .. }) => {}
            Err(error) => panic!("seed {seed} turn {turn}: {error}"),
        }
    }
    for mut actor in actors {
        actor.transaction.rollback_and_chain().expect("rolled back");
        require(&mut actor.transaction, &committed);
    }
    let longer = chained(transactions, session);
    assert!(longer > 5, "seed {seed}: {longer} of {} rows in pieces", committed.len());
}

/// An update of one column logs the head, and leaves the pieces as they are.
#[test]
fn pieces_that_do_not_change_stay() {
    with_table(&[], |transactions, session| {
        let mut connection = never(transactions, session);
        let mut transaction = connection.begin();
        let mut values = row(1, 1, (60_000, 1));
        let place = insert(&mut transaction, &values);
        transaction.commit_and_chain().expect("committed");
        let redo = || transactions.instance().recorder.snapshot().statistic(Statistic::RedoSize);
        let before = redo();
        values[1] = number(2);
        assert_eq!(put(&mut transaction, place, &values).expect("updated"), place);
        transaction.commit_and_chain().expect("committed");
        let logged = redo() - before;
        assert!(logged < 10_000, "{logged} bytes for a number of a row of 60,000");
        // The text changes from the middle on: half of the pieces.
        let before = redo();
        let other = row(1, 2, (60_000, 2));
        values[2] = other[2].clone();
        put(&mut transaction, place, &values).expect("updated");
        transaction.commit_and_chain().expect("committed");
        let logged = redo() - before;
        assert!((30_000..60_000).contains(&logged), "{logged} bytes for a half of a row of 60,000");
        require(&mut transaction, &[(1, (place, values))].into());
        drop(transaction);
        assert_eq!(chained(transactions, session), 1);
    });
}

fn used_blocks(instance: &Instance) -> u64 {
    let catalog = instance.catalog();
    catalog.live_tables[0].extents.iter().map(|piece| u64::from(piece.extent.blocks)).sum()
}

/// A table does not grow when its long rows are changed, deleted and inserted again, or rolled
/// back. Short rows reuse the space of long ones.
#[test]
fn the_room_of_pieces_is_used_again() {
    with_table(&[("debug_extent_blocks", "16")], |transactions, session| {
        let mut connection = never(transactions, session);
        let mut transaction = connection.begin();
        let mut places = BTreeMap::new();
        for id in 0..20 {
            places.insert(id, insert(&mut transaction, &row(id, id, (10_000, id as u64))));
        }
        transaction.commit_and_chain().expect("committed");
        let begin = used_blocks(transactions.instance());
        for turn in 0..600_i64 {
            let id = turn * 7 % 20;
            let values = row(id, id, (9000 + turn as usize % 2000, 1000 + turn as u64));
            match turn % 3 {
                0 => drop(places.insert(id, put(&mut transaction, places[&id], &values).expect("updated"))),
                1 => {
                    transaction.delete("T", places[&id]).expect("deleted");
                    places.insert(id, insert(&mut transaction, &values));
                }
                _ => {
                    put(&mut transaction, places[&id], &values).expect("updated");
                    transaction.rollback_and_chain().expect("rolled back");
                }
            }
            transaction.commit_and_chain().expect("committed");
        }
        let then = used_blocks(transactions.instance());
        assert!(then <= begin + 32, "{begin} blocks in the beginning, {then} in the end");
        for place in places.values() {
            transaction.delete("T", *place).expect("deleted");
        }
        transaction.commit_and_chain().expect("committed");
        for id in 100..700 {
            insert(&mut transaction, &row(id, id, (150, 1)));
            transaction.commit_and_chain().expect("committed");
        }
        let in_the_end = used_blocks(transactions.instance());
        assert!(in_the_end <= then + 16, "{then} blocks, and {in_the_end} with short rows");
        drop(transaction);
        let found = transactions.check(session, "T").expect("sound");
        assert_eq!((found.row_count, found.chained_row_count), (600, 0));
    });
}

#[test]
fn an_array_of_rows_is_inserted_whole_or_not() {
    with_table(&[], |transactions, session| {
        let mut connection = never(transactions, session);
        let mut transaction = connection.begin();
        let rows: Vec<Vec<Value>> =
            (0..50).map(|id| row(id, id, (if id % 4 == 0 { 5000 } else { 100 }, id as u64))).collect();
        let mut twice = crate::support::images(&rows);
        let again = image_of(&rows[0]);
        twice.push_row(&again);
        let refused = transaction.insert_rows("T", &twice).expect_err("an ID twice").to_string();
        assert!(refused.starts_with("unique index T_ID: the key (0) exists already"), "{refused}");
        assert!(all(&mut transaction).is_empty());
        let mut images = RowBatch::new();
        twice.iter().take(50).for_each(|image| images.push_row(image));
        let places = transaction.insert_rows("T", &images).expect("inserted");
        let model = (0..).zip(places.into_iter().zip(rows)).collect();
        require(&mut transaction, &model);
        transaction.commit().expect("committed");
        assert_eq!(chained(transactions, session), 13);
    });
}

#[test]
fn an_index_on_rows_in_pieces_finds_duplicate_keys() {
    with_table(&[], |transactions, session| {
        let mut connection = never(transactions, session);
        let mut transaction = connection.begin();
        for id in 0..20 {
            insert(&mut transaction, &row(id, id % 19, (5000, id as u64)));
        }
        transaction.commit_and_chain().expect("committed");
        let refused = transactions.create_index(session, "T", &index("T_U", "K", true)).expect_err("0 twice");
        assert!(refused.to_string().starts_with("unique index T_U: the key (0) exists already"), "{refused}");
        let twice = all(&mut transaction)[&19].0;
        transaction.delete("T", twice).expect("deleted");
        transaction.commit_and_chain().expect("committed");
        transactions.create_index(session, "T", &index("T_U", "K", true)).expect("made");
        let refused = transaction.insert("T", &row(30, 7, (7000, 1))).expect_err("7 is there").to_string();
        assert!(refused.starts_with("unique index T_U: the key (7) exists already"), "{refused}");
        drop(transaction);
        let found = transactions.check(session, "T").expect("sound");
        assert_eq!((found.row_count, found.chained_row_count, found.entry_count), (19, 19, 57));
    });
}

/// The text of a row follows from its key, so a row read at two moments has
/// the text of another key.
#[test]
fn threads_never_read_a_long_row_of_two_moments() {
    const LENGTHS: [usize; 4] = [100, 2500, 4500, 12_000];
    const ROWS: i64 = 8;
    let content =
        |id: i64, key: i64| row(id, key, (LENGTHS[(id + key) as usize % 4], (key * 100 + id) as u64));
    let key_of = |values: &[Value]| values[1].to_string().parse::<i64>().expect("a number");
    within(300, move || {
        with_table(&[("debug_cache_blocks", "64"), ("log_buffer", "256K")], |transactions, session| {
            let mut connection = transactions.connect(session);
            let mut transaction = connection.begin();
            for id in 0..ROWS {
                insert(&mut transaction, &content(id, 0));
            }
            transaction.commit().expect("committed");
            let is_over = AtomicBool::new(false);
            let write = |seed: u64| {
                let session = transactions.instance().recorder.session(Role::User);
                let mut connection = transactions.connect(&session);
                let mut random = SplitMix(seed);
                let mut transaction = connection.begin();
                for turn in 0..400 {
                    // Inserts a row of its own first, so that the transaction is active and other
                    // sessions cannot reuse places of its deleted rows.
                    let own = transaction.insert("T", &content(100 + seed as i64, turn));
                    let done = own.and_then(|own| {
                        let id = random.below(ROWS as u64) as i64;
                        let found = transaction.lookup("T_ID", &[number(id)])?;
                        transaction.update("T", found[0].id, |columns| {
                            assert_eq!(id_of(columns), id, "the row that was looked up");
                            columns.clone_from_slice(&content(id, key_of(columns) + 1));
                        })?;
                        transaction.delete("T", own)
                    });
                    match done {
                        Ok(()) if random.below(4) > 0 => transaction.commit_and_chain().expect("committed"),
                        // Another session may have moved the row since, and waits for reused
                        // places may form a cycle.
                        Ok(()) | Err(EngineError::RowGone { .. } | EngineError::Deadlock { .. }) => {
                            transaction.rollback_and_chain().expect("rolled back");
                        }
                        Err(error) => panic!("{error}"),
                    }
                }
            };
            let read = || {
                let session = transactions.instance().recorder.session(Role::User);
                let mut connection = transactions.connect(&session);
                let mut transaction = connection.begin();
                while !is_over.load(Relaxed) {
                    let rows = all(&mut transaction);
                    assert_eq!(rows.len(), ROWS as usize, "each row once, and none that is not committed");
                    for (id, (_, values)) in rows {
                        assert!(values == content(id, key_of(&values)), "row {id} is of two moments");
                    }
                }
            };
            thread::scope(|scope| {
                let readers: Vec<_> = (0..2).map(|_| scope.spawn(read)).collect();
                let writers: Vec<_> = (1..4).map(|seed| scope.spawn(move || write(seed))).collect();
                let written: Vec<_> = writers.into_iter().map(thread::ScopedJoinHandle::join).collect();
                is_over.store(true, Relaxed);
                readers.into_iter().for_each(|reader| reader.join().expect("one moment"));
                written.into_iter().for_each(|writer| writer.expect("written"));
            });
            assert_eq!(transactions.check(session, "T").expect("sound").row_count, ROWS as u64);
        });
    });
}

/// A row is placed over a former one, and the disk loses each of its writes in turn. Blocks of the
/// former row's pieces are intact and in their places.
#[test]
fn no_row_is_given_the_pieces_of_another_one() {
    let rows = [row(1, 1, (3000, 1)), row(2, 2, (3000, 2))];
    let settings =
        || settings(&[("db_block_size", "2K"), ("debug_extent_blocks", "16"), ("io_method", "null")]);
    let home = Path::new("/in/memory/db");
    let mut named = 0;
    for number in 1.. {
        let disk = MemoryDisk::with_power(1);
        let made = Instance::create_on(&disk, home, settings(), SMALLEST).expect("a database");
        {
            let session = made.recorder.session(Role::User);
            let transactions = Transactions::open(&made, &session).expect("a log");
            transactions.create_table(&session, "T", &schema(), &[]).expect("a table");
            let mut connection = never(&transactions, &session);
            let mut transaction = connection.begin();
            let place = insert(&mut transaction, &rows[0]);
            transaction.commit_and_chain().expect("committed");
            transactions.checkpoint(&session).expect("written");
            disk.plan_faults(Faults { lose_write: Some(number), ..Faults::default() });
            transaction.delete("T", place).expect("deleted");
            transaction.commit_and_chain().expect("committed");
            insert(&mut transaction, &rows[1]);
            transaction.commit().expect("committed");
            transactions.checkpoint(&session).expect("nobody is told");
        }
        drop(made);
        if disk.struck().is_none() {
            break;
        }
        let found = Instance::open_on(&disk.restart(Survivors::All), home, settings()).and_then(|instance| {
            let session = instance.recorder.session(Role::User);
            let transactions = Transactions::open(&instance, &session)?;
            let mut found = Vec::new();
            never(&transactions, &session).begin().scan("T", |row| {
                found.push(row.values);
                Ok(())
            })?;
            Ok(found)
        });
        match found {
            Ok(found) => assert!(found.iter().all(|row| rows.contains(row)), "write {number}"),
            Err(error) => {
                named += usize::from(error.to_string().contains("a write of one of their blocks was lost"))
            }
        }
    }
    assert!(named > 0, "no piece was lost");
}
