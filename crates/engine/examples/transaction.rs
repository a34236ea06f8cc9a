//! Changes rows in transactions from two threads, shuts down in order,
//! and opens the database again.
//!
//!     cargo run --example transaction -- DIRECTORY

use plumb_engine::instance::InitialSizes;
use plumb_engine::transaction::{IndexDefinition, Transactions};
use plumb_engine::{EngineError, Instance, Layout, Settings};
use plumb_events::{Cancel, Role};
use plumb_types::{Column, ColumnType, Number, Schema, Value};
use std::error::Error;
use std::path::PathBuf;
use std::thread;

/// Number of transfers of each thread.
const TRANSFERS: usize = 100;

fn number(value: i128) -> Value {
    Number::new(value, 0).map_or(Value::Null, Value::Number)
}

/// Adds to the balance that the row has when it is locked.
fn add(values: &mut [Value], amount: i128) {
    let Value::Number(balance) = &values[1] else { return };
    let balance: i128 = balance.to_string().parse().unwrap_or(0);
    values[1] = number(balance + amount);
}

/// Moves 1 from one account to the other, many times, each time in one transaction.
fn transfer(transactions: &Transactions<'_>, (from, to): (i128, i128)) -> Result<(), EngineError> {
    let session = transactions.instance().recorder.session(Role::User);
    let mut connection = transactions.connect(&session);
    for _ in 0..TRANSFERS {
        let mut transaction = connection.begin();
        // Both threads lock the accounts in one order, so that they cannot deadlock.
        let mut changes = [(from, -1), (to, 1)];
        changes.sort_unstable();
        for (account, amount) in changes {
            for row in transaction.lookup("BY_ID", &[number(account)])? {
                transaction.update("ACCOUNTS", row.id, |values| add(values, amount))?;
            }
        }
        transaction.commit()?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let home = std::env::args_os().nth(1).ok_or("usage: transaction DIRECTORY, which must be new")?;
    let home = PathBuf::from(home);
    let layout = Layout::in_one(home.clone());
    let mut settings = Settings::default();
    settings.set("log_file_size", "16M", "this example")?;
    let instance = Instance::create(&layout, settings, InitialSizes::NONE, Cancel::default())?;
    let session = instance.recorder.session(Role::User);
    let transactions = Transactions::open(&instance, &session)?;

    let columns =
        vec![Column::required("ID", ColumnType::NUMBER), Column::required("BALANCE", ColumnType::NUMBER)];
    let by_id = IndexDefinition { name: "BY_ID".into(), columns: vec![("ID".into(), false)], unique: true };
    transactions.create_table(&session, "ACCOUNTS", &Schema::new(columns)?, &[by_id])?;
    let mut connection = transactions.connect(&session);
    let mut transaction = connection.begin();
    for account in [1, 2] {
        transaction.insert("ACCOUNTS", &[number(account), number(1_000)])?;
    }
    transaction.commit()?;
    drop(connection);

    thread::scope(|scope| {
        let transactions = &transactions;
        let both = [(1, 2), (2, 1)].map(|way| scope.spawn(move || transfer(transactions, way)));
        both.into_iter().try_for_each(|ended| ended.join().unwrap_or(Err(EngineError::Stopped)))
    })?;
    transactions.close(&session)?;
    drop((session, instance));

    let instance = Instance::open(&home, Settings::default(), Cancel::default())?;
    let session = instance.recorder.session(Role::User);
    let transactions = Transactions::open(&instance, &session)?;
    println!("recovered: {} blocks", transactions.recovered().block_count);
    let mut connection = transactions.connect(&session);
    let mut transaction = connection.begin();
    transaction.scan("ACCOUNTS", |row| {
        println!("account {}: {}", row.values[0], row.values[1]);
        Ok(())
    })?;
    transaction.rollback()?;
    drop(connection);
    Ok(transactions.close(&session)?)
}
