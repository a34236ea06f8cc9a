//! Plans of a query on a running server, each with settings of its own.
//!
//! Each plan is of one execution in a transaction of its own, which is read-only and rolled back.
//! Settings hold for this transaction. The query is a prepared statement, so that a second
//! statement in its file is refused and not executed outside of EXPLAIN.
//!
//! The session has the server's search_path, because the query is the user's. So plumb calls only
//! functions that it names with their schema, and lets no type be looked up.
//!
//! Limits: a rolled back query has taken locks and advanced sequences; the first execution may read
//! what the second finds in the cache.

use crate::PostgresError;
use crate::address::ServerAddress;
use crate::client::Client;
use crate::error::ClientError;
use crate::session::{SESSION, Served};
use std::error::Error;
use tokio_postgres::types::{FromSql, Type};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueryRights {
    Read,
    /// It may write; this is rolled back.
    Write,
}

/// Executes a query once with each group of settings; returns the plans as JSON.
///
/// # Errors
/// If the server refuses a setting or the query, in one line.
pub fn explain(
    address: &ServerAddress,
    query: &str,
    arms: &[Vec<(String, String)>],
    rights: QueryRights,
) -> Result<Vec<String>, PostgresError> {
    let client = &mut address.open_for_query("plumb plans")?;
    arms.iter().map(|settings| one(client, address, query, settings, rights)).collect()
}

/// Executes the query of a workload once in a new session, with these settings.
pub(crate) fn of_work(
    server: &dyn Served,
    query: &str,
    settings: &[(String, String)],
) -> Result<String, PostgresError> {
    let client = &mut server.open(SESSION, Box::new(|_| {}))?;
    one(client, server, query, settings, QueryRights::Read)
}

fn one(
    client: &mut Client,
    server: &dyn Served,
    query: &str,
    settings: &[(String, String)],
    rights: QueryRights,
) -> Result<String, PostgresError> {
    let begin = match rights {
        QueryRights::Read => "BEGIN READ ONLY",
        QueryRights::Write => "BEGIN",
    };
    let failed = |during: &str, error: &ClientError| server.failed(during, error);
    client.works();
    client.batch_execute(begin).map_err(|error| failed("the transaction", &error))?;
    for (name, value) in settings {
        let set = client.execute("select pg_catalog.set_config($1, $2, true)", &[name, value]);
        set.map_err(|error| failed(&format!("SET {name} = {value}"), &error))?;
    }
    let statement = format!("EXPLAIN (ANALYZE, BUFFERS, SETTINGS, FORMAT JSON) {query}");
    let rows = client.query_alone(&statement).map_err(|error| failed("the query", &error))?;
    let none = || failed("the query", &ClientError::NotOne { found: 0 });
    let row = rows.first().ok_or_else(none)?;
    let printed = row.try_get::<_, Json>(0).map_err(|error| failed("the query", &error.into()))?;
    client.batch_execute("ROLLBACK").map_err(|error| failed("the rollback", &error))?;
    Ok(printed.0)
}

/// A value of the type json, as text.
struct Json(String);

impl<'v> FromSql<'v> for Json {
    fn from_sql(_: &Type, raw: &'v [u8]) -> Result<Json, Box<dyn Error + Sync + Send>> {
        Ok(Json(std::str::from_utf8(raw)?.to_string()))
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::JSON
    }
}
