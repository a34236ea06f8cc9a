//! Costs of two defences against torn blocks: whole blocks in the log, or each block written twice.
//!
//! With images the first change of a block after a checkpoint logs it whole: its bytes come on top
//! of a log write that is made durable anyway. With a double write a database writer writes each
//! batch to an area of its own first, and makes that durable before it writes the blocks in place:
//! the same bytes once more for each *write* of a block, and a sync a batch.
//!
//! Measured are both prices on the device, in turn: a durable write of a megabyte (128 blocks of
//! 8K, what a database writer hands over at once), and what it takes more than a durable write of
//! one log block. And how often each would be paid, in updates of random rows through the engine:
//! images that it logged, and blocks that its database writers wrote.
//!
//! Limits: a double write waits in the database writer, an image in the commit. Sessions feel the
//! first only where they wait for free buffers.

use super::{Bare, create_table, database, load, one_row_a_block};
use crate::figure::Figure;
use anyhow::Result;
use plumb_engine::Instance;
use plumb_engine::redo::SyncMethod;
use plumb_engine::transaction::Transactions;
use plumb_events::{Role, Session, Statistic, now};
use plumb_proof::random::Generator;
use plumb_units::Nanos;
use std::path::Path;

const BLOCK: f64 = 8192.0;
/// Bytes of a batch of a database writer, and blocks in it.
const BATCH: usize = 1 << 20;
const BATCH_BLOCKS: f64 = BATCH as f64 / BLOCK;
/// Time of updates with each cache.
const UPDATES: Nanos = Nanos(6_000_000_000);
const ROWS: usize = 10;

pub(super) fn torn(home: &Path, rows: u64, rounds: usize) -> Result<()> {
    let [image, twice] = prices(home, rounds)?;
    for cache in ["16M", "512M"] {
        let of = counted(home, rows, cache)?;
        let (images, writes) = (of.images * image, of.writes * twice);
        println!(
            "db_cache_size={cache}: {:.0} transactions of {ROWS} rows; each logged {:.2} images, {images:.1} us; its blocks were written {:.2} times, {writes:.1} us if twice: {:.1} times the images' price",
            of.transactions,
            of.images,
            of.writes,
            writes / images
        );
    }
    Ok(())
}

/// Microseconds of the device for an image in the log, and for a block that is written to an area
/// of its own first.
fn prices(home: &Path, rounds: usize) -> Result<[f64; 2]> {
    let instance = database(home, &[])?;
    let session = instance.recorder.session(Role::User);
    let mut bare = Bare::new(&instance, &session, home, SyncMethod::Fdatasync)?;
    let (mut images, mut twice) = (Vec::new(), Vec::new());
    for _ in 0..rounds.max(1) * 10 {
        let [batch, one] = [BATCH, 4096].map(|bytes| bare.write(&session, bytes));
        let (batch, one) = (batch? as f64 / 1000.0, one? as f64 / 1000.0);
        images.push((batch - one) / BATCH_BLOCKS);
        twice.push(batch / BATCH_BLOCKS);
    }
    let (images, twice) = (Figure::of(images), Figure::of(twice));
    println!("an image of 8K in a log write: {} us of the device", images.show(1));
    println!("a block of 8K written to an area of its own first, 128 at a time: {} us", twice.show(1));
    drop(bare);
    instance.destroy()?;
    Ok([images.value, twice.value])
}

/// Number of times that each would be paid.
struct Counted {
    transactions: f64,
    images: f64,
    writes: f64,
}

fn counted(home: &Path, rows: u64, cache: &str) -> Result<Counted> {
    let instance = database(home, &[("db_cache_size", cache)])?;
    let counted = {
        let session = instance.recorder.session(Role::User);
        let transactions = Transactions::open(&instance, &session)?;
        create_table(&transactions, &session)?;
        load(&transactions, &session, rows)?;
        transactions.checkpoint(&session)?;
        let before = instance.recorder.snapshot();
        update(&instance, &transactions, &session)?;
        // What is still in the cache will be written once.
        transactions.checkpoint(&session)?;
        let period = instance.recorder.snapshot().since(&before);
        let count = |statistic| period.statistic(statistic) as f64;
        let transactions = count(Statistic::UserCommits);
        Counted {
            transactions,
            images: count(Statistic::RedoImageBytes) / BLOCK / transactions,
            writes: count(Statistic::PhysicalWriteBlocks) / transactions,
        }
    };
    instance.destroy()?;
    Ok(counted)
}

/// Updates rows of random blocks for a while.
fn update(instance: &Instance, transactions: &Transactions<'_>, session: &Session) -> Result<()> {
    let mut connection = transactions.connect(session);
    let mut transaction = connection.begin();
    let rows = one_row_a_block(&mut transaction)?;
    let mut random = Generator::new(3);
    let end = now() + UPDATES;
    while now() < end {
        for _ in 0..ROWS {
            instance.cancel.check()?;
            transaction.update("T", rows[random.below(rows.len())], |values| values.swap(0, 1))?;
        }
        transaction.commit_and_chain()?;
    }
    Ok(transaction.commit()?)
}
