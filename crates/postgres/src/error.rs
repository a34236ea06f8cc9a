//! Errors of a server, one line each: the thing, the value found, the expected one, the cure.

use plumb_events::Interrupted;
use plumb_host::device::DeviceError;
use plumb_io::named_directory::NamedDirectoryError;
use plumb_study::StudyError;
use plumb_study::targets::Failure;
use plumb_types::SourceError;
use plumb_units::Bytes;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use tokio_postgres::Error;
use tokio_postgres::error::DbError;

/// Most letters of a server's message that are shown.
const SAID_MOST: usize = 500;

#[derive(Debug, thiserror::Error)]
pub enum PostgresError {
    #[error(
        "there is no PostgreSQL server in {looked}; install one (`apt-get install postgresql`), or name the directory of \
         `postgres` and `initdb`: server = \"/usr/lib/postgresql/15/bin\""
    )]
    NoServer { looked: String },
    #[error(
        "server = {}: there is no {program} in it; name the directory that has both postgres and initdb, as \
         /usr/lib/postgresql/15/bin",
        directory.display()
    )]
    NoProgram { directory: PathBuf, program: &'static str },
    #[error(
        "{program} is neither in {} nor in another installation; install one (`apt-get install postgresql`)",
        directory.display()
    )]
    NoClient { directory: PathBuf, program: &'static str },
    #[error(
        "{}: the user {user}, who runs servers, got no version from it; let that user run it (chmod o+rx, also for the \
         directories above it)",
        program.display()
    )]
    NotRun { program: PathBuf, user: String },
    #[error("{} is PostgreSQL {found}, expected {oldest} or later; name another server", directory.display())]
    TooOld { directory: PathBuf, found: String, oldest: u32 },
    #[error("{setting} is known from PostgreSQL {since} on, and {} is {found}; name a later server", directory.display())]
    NoSetting { setting: String, since: u32, directory: PathBuf, found: u32 },
    #[error(
        "PostgreSQL does not run as root, and this machine has neither a user postgres nor nobody to run it as; add one \
         (`useradd --system postgres`), or run plumb as another user"
    )]
    NoAccount,
    #[error(
        "--path {}: the user {user}, who runs the server because root may not, cannot reach it; open the directories above \
         it (chmod o+x), or name another --path",
        path.display()
    )]
    Unreachable { path: PathBuf, user: String },
    #[error(
        "--path {}: {needed} are needed for table, index, sort and log, and {free} are free; use fewer --rows, or name \
         another file system",
        path.display()
    )]
    NoRoom { path: PathBuf, needed: Bytes, free: Bytes },
    #[error("{program} failed: {said}")]
    Program { program: String, said: String },
    #[error("the server does not start with {with}: {said}")]
    NoStart { with: String, said: String },
    #[error("the server ended while {during}: {said}")]
    Died { during: String, said: String },
    #[error("{during} failed: {said}{cure}")]
    Statement { during: String, said: String, cure: &'static str },
    #[error("{server}: {during} failed: {said}{cure}")]
    Visited { server: String, during: String, said: String, cure: &'static str },
    #[error("column {column}: the value {value} does not fit {expected}")]
    Value { column: usize, value: String, expected: &'static str },
    #[error("the rows cannot be made: {0}")]
    Rows(SourceError),
    #[error("{what} {}: {source}{}", path.display(), plumb_io::cure(source, path, "give this user the right to it"))]
    File { what: &'static str, path: PathBuf, source: io::Error },
    #[error("{0}")]
    Unfit(String),
    #[error(transparent)]
    Place(#[from] NamedDirectoryError),
    #[error(transparent)]
    Device(#[from] DeviceError),
    #[error("{Interrupted}")]
    Interrupted,
}

/// Error of a session, before it has its step and its server.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// tokio-postgres's, which has the server's own error.
    #[error("{}", account_of(.0))]
    Library(#[from] Error),
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("there was no answer within {0:?}")]
    Late(Duration),
    #[error("nothing came within {within:?}, and a second session had no answer either: {said}")]
    Silent { within: Duration, said: String },
    #[error("more than {most} rows came, which no statement of plumb's needs")]
    Rows { most: usize },
    #[error("{found} rows came, expected 1")]
    NotOne { found: usize },
    #[error("the session has ended")]
    Ended,
}

impl ClientError {
    /// Returns the error that the server sent.
    #[must_use]
    pub fn as_db_error(&self) -> Option<&DbError> {
        match self {
            ClientError::Library(error) => error.as_db_error(),
            _ => None,
        }
    }

    /// True if the connection is gone.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        match self {
            ClientError::Library(error) => error.is_closed(),
            ClientError::Ended => true,
            _ => false,
        }
    }
}

/// Returns a server's text and detail in one line; its code stands for a text that is blank.
pub fn words_of(theirs: &DbError) -> String {
    let message = match theirs.message().trim() {
        "" => format!("error {} without a text", theirs.code().code()),
        text => text.to_string(),
    };
    let detail = theirs.detail().map_or(String::new(), |detail| format!(" ({detail})"));
    one_line(&format!("{message}{detail}"))
}

/// Returns a text in one line that has a bound.
pub fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SAID_MOST) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}

/// Returns the library's error with its cause; the wire's own error has all by itself.
fn account_of(error: &Error) -> String {
    if let Some(theirs) = error.as_db_error() {
        return words_of(theirs);
    }
    let Some(cause) = std::error::Error::source(error).map(ToString::to_string) else {
        return error.to_string();
    };
    let said = error.to_string();
    let is_ours = |cause: &&(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref).is_some()
    };
    match std::error::Error::source(error).filter(is_ours) {
        Some(_) => cause,
        None if said.contains(&cause) => said,
        None => format!("{said}: {cause}"),
    }
}

impl From<Interrupted> for PostgresError {
    fn from(_: Interrupted) -> PostgresError {
        PostgresError::Interrupted
    }
}

impl From<PostgresError> for StudyError {
    fn from(error: PostgresError) -> StudyError {
        match error {
            PostgresError::Interrupted => StudyError::Interrupted,
            other => StudyError::Target(Box::new(other)),
        }
    }
}

impl From<PostgresError> for Failure {
    fn from(error: PostgresError) -> Failure {
        error.to_string().into()
    }
}
