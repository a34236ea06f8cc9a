//! Makes the tables: one row a block, in random order of keys, then the index.
//!
//! A load session takes one schema at a time. It makes the table, inserts its rows with a commit
//! after each [`ROWS_PER_COMMIT`], and then makes the index. Rows pass through cache and log as
//! usual, so a block is written twice. So the data files and the log have been written before the
//! measured work.

use super::rows;
use super::session::key;
use plumb_engine::EngineError;
use plumb_engine::parallel::servers;
use plumb_engine::transaction::{IndexDefinition, Transactions};
use plumb_events::{Phase, Role, Session, now};
use plumb_types::RowBatch;
use plumb_workload::slob::{Rows, SlobSpec, Texts, keys};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Rows of a transaction of the load: half a megabyte of blocks.
const ROWS_PER_COMMIT: usize = 64;
/// Seed of the scan table's rows, different from every schema's.
const SCAN_SEED: u64 = 1 << 40;

/// Makes and fills every table.
pub(in crate::workload) fn load(transactions: &Transactions<'_>, spec: &SlobSpec) -> Result<(), EngineError> {
    let instance = transactions.instance();
    let coordinator = instance.recorder.session(Role::LoadCoordinator);
    let rows = rows(spec, transactions);
    let (begin, next) = (now(), AtomicU64::new(0));
    let sessions = spec.load_degree.min(spec.schemas) as usize;
    let loaded = servers::run_set(
        instance.operation(),
        &coordinator,
        (Role::LoadServer, sessions),
        |session, operation, _| {
            loop {
                let schema = next.fetch_add(1, Relaxed);
                if schema >= spec.schemas {
                    return Ok(());
                }
                let table = SlobSpec::table(schema);
                transactions.create_table(session, &table, rows.schema(), &[])?;
                let drawn = (keys(spec, schema), spec.seed ^ schema << 20);
                fill(transactions, session, (&table, &rows), drawn, &|| operation.check())?;
                let columns = vec![("CUSTID".to_string(), false)];
                let index = IndexDefinition { name: SlobSpec::index(schema), columns, unique: false };
                transactions.create_index(session, &table, &index)?;
            }
        },
    );
    loaded?;
    if spec.scan_pct > 0 {
        transactions.create_table(&coordinator, SlobSpec::SCAN_TABLE, rows.schema(), &[])?;
        let keys = (1..=spec.scan_blocks).collect();
        let operation = instance.operation();
        let drawn = (keys, spec.seed ^ SCAN_SEED);
        fill(transactions, &coordinator, (SlobSpec::SCAN_TABLE, &rows), drawn, &|| operation.check())?;
    }
    instance.recorder.phase(Phase::Load, begin, spec.schemas * spec.scale);
    transactions.checkpoint(&coordinator)
}

/// Inserts the rows of these keys in this order.
fn fill(
    transactions: &Transactions<'_>,
    session: &Session,
    (table, rows): (&str, &Rows),
    (keys, seed): (Vec<u64>, u64),
    check: &dyn Fn() -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    let mut connection = transactions.connect(session);
    let mut transaction = connection.begin();
    let (mut texts, mut batch) = (Texts::new(seed), RowBatch::new());
    for keys in keys.chunks(ROWS_PER_COMMIT) {
        check()?;
        batch.clear();
        keys.iter().for_each(|key| rows.push(&mut texts, *key, &mut batch));
        transaction.insert_rows(table, &batch)?;
        transaction.commit_and_chain()?;
    }
    Ok(())
}

/// Reads every block into the cache, if it holds them all with a tenth to spare.
pub(in crate::workload) fn warm(
    transactions: &Transactions<'_>,
    session: &Session,
    spec: &SlobSpec,
) -> Result<(), EngineError> {
    let instance = transactions.instance();
    let frames = instance.caches().own().options().frame_count as u64;
    let scan = if spec.scan_pct > 0 { spec.scan_blocks } else { 0 };
    // An index has some hundreds of entries a block.
    let blocks = spec.schemas * (spec.scale + spec.scale / 100 + 4) + scan;
    if blocks + blocks / 10 > frames {
        return Ok(());
    }
    let mut connection = transactions.connect(session);
    let mut transaction = connection.begin();
    let operation = instance.operation();
    for schema in 0..spec.schemas {
        operation.check()?;
        transaction.range(&SlobSpec::index(schema), (&[key(0)], &[key(spec.scale + 1)]), |_, _| Ok(()))?;
    }
    if spec.scan_pct > 0 {
        transaction.scan_images(SlobSpec::SCAN_TABLE, |_, _| Ok(()))?;
    }
    Ok(())
}
