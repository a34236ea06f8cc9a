//! A session of a server, with errors that say what it did.

use crate::PostgresError;
use crate::client::{Client, Says};
use crate::cluster::RunningServer;
use crate::error::ClientError;
use plumb_events::{clock, locked};
use plumb_units::{Bytes, Nanos};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use tokio_postgres::types::{FromSqlOwned, ToSql};
use tokio_postgres::{Row, Statement};

/// Name of a working session. The names of all sessions of this program begin with it.
pub(crate) const SESSION: &str = "plumb";

/// Longest time in which a session of version 14 keeps its statistics, and in which a reader gets
/// older ones: half a second, with some more.
const PUBLISHED: Duration = Duration::from_millis(600);

/// Most lines of a session that are kept, and most letters of a line.
const LINES_MOST: usize = 10_000;
const LINE_MOST: usize = 1000;

/// Lines that the server wrote to a session, with the time of their arrival.
type Lines = Arc<Mutex<Vec<(Nanos, String)>>>;

/// A setting as the working session has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InForce {
    pub name: String,
    /// In the setting's unit, without the unit.
    pub value: String,
    /// Unit as the server writes it: `kB`, `8kB`, `ms`; empty for none.
    pub unit: String,
    pub default: String,
    /// Origin of the value: `command line`, `session`, `default`.
    pub source: String,
    /// True if another value waits for a restart.
    pub pending: bool,
}

impl InForce {
    /// Returns the value in bytes; `None` without a unit of memory.
    #[must_use]
    pub fn bytes(&self) -> Option<u64> {
        let (times, name) = parts_of_unit(&self.unit)?;
        let scale = match name {
            "B" => 1,
            "kB" => Bytes::K,
            "MB" => Bytes::M,
            _ => return None,
        };
        Some(self.value.parse::<u64>().ok()? * times * scale)
    }

    /// Formats the value with its unit.
    #[must_use]
    pub fn shown(&self) -> String {
        match self.bytes() {
            Some(bytes) => Bytes(bytes).as_setting(),
            None => format!("{}{}", self.value, self.unit),
        }
    }
}

/// Divides a unit such as `8kB` into its number, 1 without digits, and its name.
pub(crate) fn parts_of_unit(unit: &str) -> Option<(u64, &str)> {
    let digits = unit.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let times = if digits.is_empty() { 1 } else { digits.parse().ok()? };
    Some((times, &unit[digits.len()..]))
}

/// A server that sessions connect to: plumb's own, or another's.
pub trait Served: Sync {
    /// # Errors
    /// If the server has ended or refuses.
    fn open(&self, name: &str, says: Says) -> Result<Client, PostgresError>;

    /// Returns the error of a step.
    fn failed(&self, during: &str, error: &ClientError) -> PostgresError;

    /// Returns the server if this process started it, with its programs.
    ///
    /// # Errors
    /// If the server is another's.
    fn own(&self) -> Result<&RunningServer, PostgresError> {
        Err(PostgresError::Unfit(
            "pgbench runs on a server that plumb starts; give --target postgres and --server, or take redo or slob"
                .to_string(),
        ))
    }
}

impl Served for RunningServer {
    fn open(&self, name: &str, says: Says) -> Result<Client, PostgresError> {
        self.connect(name, says)
    }

    fn failed(&self, during: &str, error: &ClientError) -> PostgresError {
        RunningServer::failed(self, during, error)
    }

    fn own(&self) -> Result<&RunningServer, PostgresError> {
        Ok(self)
    }
}

/// A session; each error names the step that failed.
pub struct ServerSession<'s> {
    server: &'s dyn Served,
    client: Client,
    lines: Lines,
}

impl<'s> ServerSession<'s> {
    /// Connects under a name.
    ///
    /// # Errors
    /// If the server has ended or refuses.
    pub fn connect(server: &'s dyn Served, name: &str) -> Result<ServerSession<'s>, PostgresError> {
        let lines = Lines::default();
        let theirs = Arc::clone(&lines);
        let says: Says = Box::new(move |line: String| {
            let mut lines = locked(&theirs);
            if lines.len() < LINES_MOST {
                lines.push((clock::now(), line.chars().take(LINE_MOST).collect()));
            }
        });
        let client = server.open(name, says)?;
        Ok(ServerSession { server, client, lines })
    }

    /// Lets all statements last while the server answers a second session.
    #[must_use]
    pub fn working(mut self) -> ServerSession<'s> {
        self.client.works();
        self
    }

    /// Returns the server of the session if this process started it.
    ///
    /// # Errors
    /// If the server is another's.
    pub fn own_server(&self) -> Result<&'s RunningServer, PostgresError> {
        self.server.own()
    }

    /// Runs statements without results.
    ///
    /// # Errors
    /// The server's, with the name of the step.
    pub fn run(&mut self, during: &str, statements: &str) -> Result<(), PostgresError> {
        self.client.batch_execute(statements).map_err(|error| self.server.failed(during, &error))
    }

    /// Sets a setting of the session.
    ///
    /// # Errors
    /// If the server refuses the value.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), PostgresError> {
        let during = format!("SET {name} = {value}");
        let done = self.client.query("select pg_catalog.set_config($1, $2, false)", &[&name, &value]);
        done.map(|_| ()).map_err(|error| self.server.failed(&during, &error))
    }

    /// # Errors
    /// The server's, with the name of the step.
    pub fn rows(
        &mut self,
        during: &str,
        statement: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, PostgresError> {
        self.client.query(statement, values).map_err(|error| self.server.failed(during, &error))
    }

    /// Returns the first column of the only row.
    ///
    /// # Errors
    /// If there is another number of rows, or the column has another type.
    pub fn value<T: FromSqlOwned>(&mut self, during: &str, statement: &str) -> Result<T, PostgresError> {
        let row = self.client.query_one(statement, &[]);
        row.and_then(|row| Ok(row.try_get(0)?)).map_err(|error| self.server.failed(during, &error))
    }

    /// # Errors
    /// If the statement is wrong.
    pub fn prepare(&mut self, during: &str, statement: &str) -> Result<Statement, PostgresError> {
        self.client.prepare(statement).map_err(|error| self.server.failed(during, &error))
    }

    /// Runs a prepared statement; returns its rows.
    ///
    /// # Errors
    /// The server's, with the name of the step.
    pub fn prepared_rows(
        &mut self,
        during: &str,
        statement: &Statement,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, PostgresError> {
        self.client.query(statement, values).map_err(|error| self.server.failed(during, &error))
    }

    /// Executes a prepared statement; returns the number of rows.
    ///
    /// # Errors
    /// The server's, with the name of the step.
    pub fn execute(
        &mut self,
        during: &str,
        statement: &Statement,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<u64, PostgresError> {
        self.client.execute(statement, values).map_err(|error| self.server.failed(during, &error))
    }

    /// Passes bytes to a COPY statement by a function that writes them; returns the rows.
    ///
    /// # Errors
    /// If the function fails, or the server refuses the rows.
    pub fn copy(
        &mut self,
        statement: &str,
        write: impl FnOnce(
            &mut dyn std::io::Write,
            &dyn Fn(std::io::Error) -> PostgresError,
        ) -> Result<u64, PostgresError>,
    ) -> Result<u64, PostgresError> {
        const DURING: &str = "the rows are loaded";
        let server = self.server;
        let failed = |error: std::io::Error| {
            let theirs = error.get_ref().and_then(|error| error.downcast_ref::<ClientError>());
            match theirs {
                Some(theirs) => server.failed(DURING, theirs),
                None => PostgresError::Died { during: DURING.to_string(), said: error.to_string() },
            }
        };
        let mut writer = self.client.copy_in(statement).map_err(|error| server.failed(DURING, &error))?;
        write(&mut writer, &failed)?;
        writer.finish().map_err(|error| server.failed(DURING, &error))
    }

    /// Makes the server publish the session's statistics.
    ///
    /// # Errors
    /// The server's.
    pub fn flush_statistics(&mut self) -> Result<(), PostgresError> {
        ServerSession::flush_all(&mut [self])
    }

    /// Makes the server publish the statistics of these sessions, which it does once a second
    /// otherwise. Version 14 has no such request, so that its statistics are waited for.
    ///
    /// # Errors
    /// The server's.
    pub fn flush_all(sessions: &mut [&mut ServerSession<'_>]) -> Result<(), PostgresError> {
        const DURING: &str = "statistics are flushed";
        let Some(first) = sessions.first_mut() else { return Ok(()) };
        let known = "select count(*) from pg_catalog.pg_proc where proname = 'pg_stat_force_next_flush'";
        let waits = first.value::<i64>(DURING, known)? == 0;
        let statement = if waits { "select 1" } else { "select pg_catalog.pg_stat_force_next_flush()" };
        let wait = if waits { PUBLISHED } else { Duration::ZERO };
        // A session sends what it has counted when it ends a statement after that time.
        thread::sleep(wait);
        sessions.iter_mut().try_for_each(|session| session.run(DURING, statement))?;
        thread::sleep(wait);
        Ok(())
    }

    /// Takes the lines that the server has written to the session.
    #[must_use]
    pub fn take_lines(&mut self) -> Vec<(Nanos, String)> {
        std::mem::take(&mut *locked(&self.lines))
    }

    /// Returns all settings as this session has them.
    ///
    /// # Errors
    /// The server's.
    pub fn settings(&mut self) -> Result<Vec<InForce>, PostgresError> {
        let statement = "select name, coalesce(setting, ''), coalesce(unit, ''), coalesce(boot_val, ''), source, \
                         pending_restart from pg_catalog.pg_settings";
        let rows = self.rows("the settings are read", statement, &[])?;
        let text = |row: &Row, column: usize| row.try_get::<_, String>(column).unwrap_or_default();
        let setting = |row: &Row| InForce {
            name: text(row, 0),
            value: text(row, 1),
            unit: text(row, 2),
            default: text(row, 3),
            source: text(row, 4),
            pending: row.try_get(5).unwrap_or_default(),
        };
        Ok(rows.iter().map(setting).collect())
    }
}
