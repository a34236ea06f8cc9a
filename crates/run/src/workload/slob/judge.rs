//! Verifies every SLOB table against its index, its rows against its keys, and its balances against
//! the constant sum.

use plumb_engine::EngineError;
use plumb_engine::check::CheckLine;
use plumb_engine::transaction::Transactions;
use plumb_events::{Phase, Role, Session, clock};
use plumb_types::column_at;
use plumb_units::{Nanos, RowCount};
use plumb_workload::slob::{BALANCE_COLUMN, Rows, SlobSpec};

/// Checks all tables of SLOB. Fails on the first difference.
pub(in crate::workload) fn judge(
    transactions: &Transactions<'_>,
    spec: &SlobSpec,
) -> Result<Vec<CheckLine>, EngineError> {
    let instance = transactions.instance();
    let session = instance.recorder.session(Role::Check);
    let operation = instance.operation();
    let (begin, mut entries, mut versions) = (clock::now(), 0, 0);
    for schema in 0..spec.schemas {
        operation.check()?;
        let table = SlobSpec::table(schema);
        let found = transactions.check(&session, &table)?;
        require(&table, "rows", u128::from(found.row_count), u128::from(spec.scale))?;
        require(&table, "index entries", u128::from(found.entry_count), u128::from(spec.scale))?;
        entries += found.entry_count;
        versions += found.version_count;
    }
    let indexes = clock::now().saturating_sub(begin);
    let sums = clock::now();
    for schema in 0..spec.schemas {
        operation.check()?;
        let table = SlobSpec::table(schema);
        let sum = balance_sum(transactions, &session, &table)?;
        require(&table, "sum of the balances", sum, Rows::balance_sum(spec.scale))?;
    }
    let rows = spec.schemas * spec.scale;
    instance.recorder.phase(Phase::Verify, begin, rows);
    let line =
        |name: &str, detail: String, elapsed: Nanos| CheckLine { name: name.to_string(), detail, elapsed };
    Ok(vec![
        line("all rows are there", format!("{} in {} tables", RowCount(rows), spec.schemas), indexes),
        line(
            "indexes = tables",
            format!(
                "{} entries in order, each with the key of its row and a way to it; {} deleted versions keep their room",
                RowCount(entries),
                RowCount(versions)
            ),
            Nanos(0),
        ),
        line(
            "updates were whole",
            "the balances of each table sum to what they began with: every update adds what it takes away"
                .to_string(),
            clock::now().saturating_sub(sums),
        ),
    ])
}

fn balance_sum(transactions: &Transactions<'_>, session: &Session, table: &str) -> Result<u128, EngineError> {
    let mut connection = transactions.connect(session);
    let mut sum = 0;
    connection.begin().scan_images(table, |row, image| {
        let text = column_at(image, BALANCE_COLUMN).ok().flatten();
        let balance = text.and_then(|text| std::str::from_utf8(text).ok()?.parse::<u128>().ok());
        sum += balance
            .ok_or_else(|| EngineError::BadRow { row, why: "its BALANCE is no number".to_string() })?;
        Ok(())
    })?;
    Ok(sum)
}

fn require(table: &str, what: &str, found: u128, expected: u128) -> Result<(), EngineError> {
    if found == expected {
        return Ok(());
    }
    let (found, expected) = (found.to_string(), expected.to_string());
    Err(EngineError::Verification { what: format!("{what} of table {table}"), found, expected })
}
