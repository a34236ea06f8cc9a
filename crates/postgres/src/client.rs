//! A client of a server: tokio-postgres, one statement at a time, with bounds.
//!
//! ```text
//! Client ──> wait(bound) ──> tokio-postgres ──> Wire (heads of messages) ──> TLS ──> socket
//!    └── silent for 10 s, at work: a probe, which is a second session
//! ```
//!
//! A server of others may say nothing, or too much. So each wait has a bound:
//!
//! - A start ends within `connect_timeout`: name, socket, TLS and authentication together.
//! - A look-up ends within 30 s.
//! - A statement that works may last. While it is silent, a second session is started every
//!   10 s; if that has no answer within its own bound, the first one ends with an error.
//! - A statement gets at most [`ROWS_MOST`] rows, and as many bytes as the wire allows.
//!
//! A client whose wait has ended by a bound is not used again, and is dropped without a farewell.
//!
//! Rejected: the crate `postgres`. It has no bound but that of the TCP connection, and opens the
//! socket itself, so that nothing of ours could be beneath it.
//!
//! Limits: between two statements nothing is read. Servers of plumb's own have no bounds: their
//! processes are watched, and a probe would be one more session in a measured run.

use crate::error::ClientError;
use crate::wire::{Connection, SharedHeads, Started};
use bytes::{Bytes, BytesMut};
use futures_util::{SinkExt, TryStreamExt};
use plumb_events::locked;
use std::future::{Future, poll_fn};
use std::io::{self, Write};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, CopyInSink, Row, RowStream, Statement};

/// Bounds of the waits for a server of others; tests have shorter ones.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    pub look_up: Duration,
    /// Longest silence of a server at work before it is probed, and longest answer to a probe.
    pub silence: Duration,
}

pub const BOUNDS: Bounds = Bounds { look_up: Duration::from_secs(30), silence: Duration::from_secs(10) };

/// Most rows of a statement.
pub const ROWS_MOST: usize = 100_000;
/// Longest wait for the end of a session that is dropped.
const FAREWELL: Duration = Duration::from_secs(1);
/// Bytes of a COPY that are sent together.
const PIECE: usize = 4096;

/// Longest wait for a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bound {
    /// A server of plumb's own.
    None,
    LookUp,
    Work,
}

/// Takes the lines that a server writes to a session.
pub type Says = Box<dyn Fn(String) + Send + Sync>;

/// Starts a second session within a time, and ends it.
pub(crate) type Probe = Box<dyn Fn(Duration) -> Result<(), ClientError> + Send + Sync>;

/// A connection, driven while a statement is waited for.
struct Link {
    runtime: Option<Runtime>,
    connection: Connection,
    heads: SharedHeads,
    says: Says,
    /// `None` for a server of plumb's own.
    probe: Option<(Bounds, Probe)>,
    has_ended: bool,
}

/// A session of a server.
pub struct Client {
    link: Link,
    client: Option<tokio_postgres::Client>,
    bound: Bound,
}

impl Client {
    /// Starts a session by a future that connects; its bound is for all of the start.
    pub(crate) fn start<F: Future<Output = Result<Started, ClientError>>>(
        start: F,
        within: Duration,
        says: Says,
        probe: Option<(Bounds, Probe)>,
    ) -> Result<Client, ClientError> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let late = || Err(ClientError::Late(within));
        let started = runtime.block_on(async { tokio::time::timeout(within, start).await });
        let Started { client, connection, heads } = match started.unwrap_or_else(|_| late()) {
            Ok(started) => started,
            Err(error) => {
                // A name that is still looked up is not waited for.
                runtime.shutdown_background();
                return Err(error);
            }
        };
        let bound = if probe.is_some() { Bound::LookUp } else { Bound::None };
        let link = Link { runtime: Some(runtime), connection, heads, says, probe, has_ended: false };
        Ok(Client { link, client: Some(client), bound })
    }

    /// Lets all statements of the session last while the server lives.
    pub(crate) fn works(&mut self) {
        if self.bound == Bound::LookUp {
            self.bound = Bound::Work;
        }
    }

    /// Returns the bound of a statement that changes something.
    fn at_work(&self) -> Bound {
        if self.bound == Bound::None { Bound::None } else { Bound::Work }
    }

    fn parts(&mut self) -> Result<(&mut Link, &tokio_postgres::Client), ClientError> {
        let client = self.client.as_ref().filter(|_| !self.link.has_ended).ok_or(ClientError::Ended)?;
        Ok((&mut self.link, client))
    }

    /// Runs statements without results.
    ///
    /// # Errors
    /// The server's, or a bound.
    pub fn batch_execute(&mut self, statements: &str) -> Result<(), ClientError> {
        let bound = self.at_work();
        let (link, client) = self.parts()?;
        link.wait(bound, async { Ok(client.batch_execute(statements).await?) })
    }

    /// # Errors
    /// If the statement is wrong, or a bound.
    pub fn prepare(&mut self, statement: &str) -> Result<Statement, ClientError> {
        let bound = self.bound;
        let (link, client) = self.parts()?;
        link.wait(bound, async { Ok(client.prepare(statement).await?) })
    }

    /// Returns the rows of a statement, which is text or prepared.
    ///
    /// # Errors
    /// The server's, or a bound.
    pub fn query<T: ?Sized + tokio_postgres::ToStatement>(
        &mut self,
        statement: &T,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, ClientError> {
        let bound = self.bound;
        let (link, client) = self.parts()?;
        let stream = async { Ok(client.query_raw(statement, values.iter().copied()).await?) };
        link.rows(bound, stream)
    }

    /// Returns the rows of a single statement without values. No type is looked up, which the
    /// library does by statements of its own with the session's search_path.
    ///
    /// # Errors
    /// The server's, or a bound.
    pub fn query_alone(&mut self, statement: &str) -> Result<Vec<Row>, ClientError> {
        let bound = self.bound;
        let (link, client) = self.parts()?;
        let none = std::iter::empty::<(&(dyn ToSql + Sync), Type)>();
        link.rows(bound, async { Ok(client.query_typed_raw(statement, none).await?) })
    }

    /// Returns the only row.
    ///
    /// # Errors
    /// The server's, a bound, or another number of rows.
    pub fn query_one<T: ?Sized + tokio_postgres::ToStatement>(
        &mut self,
        statement: &T,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Row, ClientError> {
        let mut rows = self.query(statement, values)?;
        match (rows.pop(), rows.len()) {
            (Some(row), 0) => Ok(row),
            (last, others) => Err(ClientError::NotOne { found: others + usize::from(last.is_some()) }),
        }
    }

    /// Executes a statement; returns the number of rows.
    ///
    /// # Errors
    /// The server's, or a bound.
    pub fn execute<T: ?Sized + tokio_postgres::ToStatement>(
        &mut self,
        statement: &T,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<u64, ClientError> {
        let bound = self.at_work();
        let (link, client) = self.parts()?;
        link.wait(bound, async { Ok(client.execute(statement, values).await?) })
    }

    /// Starts a COPY from this program.
    ///
    /// # Errors
    /// The server's, or a bound.
    pub fn copy_in(&mut self, statement: &str) -> Result<CopyWriter<'_>, ClientError> {
        let bound = self.at_work();
        let (link, client) = self.parts()?;
        let sink = link.wait(bound, async { Ok(client.copy_in(statement).await?) })?;
        Ok(CopyWriter { link, bound, sink: Box::pin(sink), piece: BytesMut::new() })
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // The farewell, so that the server's process ends in order.
        drop(self.client.take());
        let Some(runtime) = self.link.runtime.take() else { return };
        if !self.link.has_ended {
            let connection = &mut self.link.connection;
            let farewell =
                poll_fn(|context| drive(connection, &|_| {}, context).map(|_| Ok::<(), ClientError>(())));
            let _ = runtime.block_on(async { tokio::time::timeout(FAREWELL, farewell).await });
        }
        runtime.shutdown_background();
    }
}

/// Drives a connection until it has nothing more to do now. Ready if it has ended.
fn drive(
    connection: &mut Connection,
    says: &dyn Fn(String),
    context: &mut Context<'_>,
) -> Poll<Result<(), ClientError>> {
    loop {
        match connection.poll_message(context) {
            Poll::Ready(Some(Ok(AsyncMessage::Notice(notice)))) => says(notice.message().to_string()),
            Poll::Ready(Some(Ok(_))) => {}
            Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error.into())),
            Poll::Ready(None) => return Poll::Ready(Ok(())),
            Poll::Pending => return Poll::Pending,
        }
    }
}

impl Link {
    /// Waits for a statement with a bound of its own.
    fn wait<T>(
        &mut self,
        bound: Bound,
        statement: impl Future<Output = Result<T, ClientError>>,
    ) -> Result<T, ClientError> {
        locked(&self.heads).begin_statement();
        self.go_on(bound, statement)
    }

    fn rows(
        &mut self,
        bound: Bound,
        stream: impl Future<Output = Result<RowStream, ClientError>>,
    ) -> Result<Vec<Row>, ClientError> {
        let rows = self.wait(bound, async {
            let mut stream = pin!(stream.await?);
            let mut rows = Vec::new();
            while let Some(row) = stream.try_next().await? {
                if rows.len() == ROWS_MOST {
                    return Err(ClientError::Rows { most: ROWS_MOST });
                }
                rows.push(row);
            }
            Ok(rows)
        });
        // A statement of which rows are left would mix them with the next one's.
        self.has_ended |= matches!(rows, Err(ClientError::Rows { .. }));
        rows
    }

    /// Waits for a part of a statement.
    fn go_on<T>(
        &mut self,
        bound: Bound,
        part: impl Future<Output = Result<T, ClientError>>,
    ) -> Result<T, ClientError> {
        let mut part = pin!(part);
        let Bounds { look_up, silence } = self.probe.as_ref().map_or(BOUNDS, |(bounds, _)| *bounds);
        let step = if bound == Bound::LookUp { look_up } else { silence };
        loop {
            let Link { runtime, connection, says, .. } = self;
            let runtime = runtime.as_ref().ok_or(ClientError::Ended)?;
            let driven = poll_fn(|context| match drive(connection, says, context) {
                Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
                _ => part.as_mut().poll(context),
            });
            let done = match bound {
                Bound::None => Ok(runtime.block_on(driven)),
                _ => runtime.block_on(async { tokio::time::timeout(step, driven).await }),
            };
            match done {
                Ok(done) => {
                    let is_theirs = done.as_ref().err().is_some_and(|error| error.as_db_error().is_some());
                    self.has_ended |= done.is_err() && !is_theirs;
                    return done;
                }
                Err(_) if bound == Bound::LookUp => {
                    self.has_ended = true;
                    return Err(ClientError::Late(look_up));
                }
                Err(_) => self.probe()?,
            }
        }
    }

    /// Fails if the server has no answer for a second session. Its error is an answer.
    fn probe(&mut self) -> Result<(), ClientError> {
        let Some((Bounds { silence, .. }, probe)) = &self.probe else { return Ok(()) };
        let said = match probe(*silence) {
            Ok(()) => return Ok(()),
            Err(error) if error.as_db_error().is_some() => return Ok(()),
            Err(error) => error.to_string(),
        };
        let within = *silence;
        self.has_ended = true;
        Err(ClientError::Silent { within, said })
    }
}

/// A COPY that takes bytes; without [`finish`](CopyWriter::finish) the server undoes it.
pub struct CopyWriter<'c> {
    link: &'c mut Link,
    bound: Bound,
    sink: Pin<Box<CopyInSink<Bytes>>>,
    piece: BytesMut,
}

impl CopyWriter<'_> {
    /// Ends the COPY; returns the rows.
    ///
    /// # Errors
    /// The server's, or a bound.
    pub fn finish(mut self) -> Result<u64, ClientError> {
        self.send()?;
        let sink = &mut self.sink;
        self.link.go_on(self.bound, async { Ok(sink.as_mut().finish().await?) })
    }

    fn send(&mut self) -> Result<(), ClientError> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let (sink, piece) = (&mut self.sink, self.piece.split().freeze());
        self.link.go_on(self.bound, async { Ok(sink.as_mut().send(piece).await?) })
    }
}

impl Write for CopyWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.piece.len() > PIECE {
            self.flush()?;
        }
        self.piece.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.send().map_err(io::Error::other)
    }
}
