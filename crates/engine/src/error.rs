//! The engine's errors: what, where, found, expected, cure.

use crate::database_id::DatabaseId;
use plumb_io::IoError;
use plumb_types::SourceError;
use plumb_units::{BlockAddress, BlockSize, Bytes, Lsn, RowId};
use std::path::PathBuf;
use thiserror::Error;

/// A data file, as messages call it.
pub const DATA_FILE: &str = "data file";

/// What can go wrong in the engine. Each prints as one line.
#[derive(Debug, Error)]
pub enum EngineError {
    /// A file could not be reached.
    #[error(transparent)]
    Io(#[from] IoError),
    /// A block is not what was written there.
    #[error("{}: block {} ({address}) is corrupt: {what}: found {found}, expected {expected}; restore the file from a copy, or drop and rebuild what it holds", path.display(), address.block.0)]
    CorruptBlock {
        /// The data file.
        path: PathBuf,
        /// The block.
        address: BlockAddress,
        /// Which part is wrong.
        what: &'static str,
        /// What is there.
        found: String,
        /// What should be there.
        expected: String,
    },
    /// A setting cannot take the value.
    #[error("{origin}: {name} = {value} is out of range: {expected}")]
    Setting {
        /// Where it was set, as `--set`.
        origin: String,
        /// The setting.
        name: String,
        /// The value given.
        value: String,
        /// The range.
        expected: String,
    },
    /// There is no such setting.
    #[error("{origin}: there is no setting {name}{}", near.as_ref().map(|n| format!(" (did you mean {n}?)")).unwrap_or_default())]
    NoSuchSetting {
        /// Where it was set.
        origin: String,
        /// The name given.
        name: String,
        /// The nearest name there is.
        near: Option<&'static str>,
    },
    /// Two settings contradict each other.
    #[error("{first} contradicts {second}: {why}")]
    Contradiction {
        /// One, as `io_method=io_uring`.
        first: String,
        /// The other.
        second: String,
        /// Why, and what to do.
        why: String,
    },
    /// A place for log files that cannot be one.
    #[error("{setting}={}: {why}", path.display())]
    LogPlace {
        /// The setting that names it.
        setting: &'static str,
        /// The place as the setting has it.
        path: PathBuf,
        /// The kind of thing found there, or the kind expected, and the cure.
        why: String,
    },
    /// A thread may not be put before others.
    #[error(
        "LGWR cannot have the priority that high_priority_processes=lgwr asks for: {why}, or high_priority_processes to auto"
    )]
    Priority {
        /// Why, and what it takes.
        why: String,
    },
    /// More memory than there is.
    #[error(
        "the settings ask for {sum} of memory ({parts}), and there are {total} ({source_name}): lower {asked}"
    )]
    Memory {
        /// All that may be taken.
        sum: Bytes,
        /// What it consists of.
        parts: String,
        /// What there is.
        total: Bytes,
        /// What says so.
        source_name: &'static str,
        /// The settings that were asked for by name, with where.
        asked: String,
    },
    /// Another process has the database, or a file of it, open.
    #[error("{what} {} is in use by {holder}: wait until it ends", path.display())]
    InUse {
        /// `database` or `data file`.
        what: &'static str,
        /// Which.
        path: PathBuf,
        /// `process 4711`, as the lock file tells, or `another process`.
        holder: String,
    },
    /// The control file is damaged.
    #[error("control file {}: {why}; restore it from a copy; the data files are as they were: move them away before you start anew", path.display())]
    ControlFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The files were written by another version of the program.
    #[error("control file {}: the database has format {found}, expected {expected}: {}", path.display(), if found > expected { "a newer plumb made it; use that one" } else { "load the data anew with this version, in another directory" })]
    Format {
        /// The control file.
        path: PathBuf,
        /// The version of its format.
        found: u32,
        /// The one that can be read.
        expected: u32,
    },
    /// There is no control file.
    #[error("there is no database in {}: check the spelling, or make one", home.display())]
    NoDatabase {
        /// The directory.
        home: PathBuf,
    },
    /// There are data files, and nothing says what is in them.
    #[error("{} has no control file, but there is {}: restore control.json from a copy, or move the data files away to start anew", home.display(), file.display())]
    NoControlFile {
        /// The database directory.
        home: PathBuf,
        /// One of the data files.
        file: PathBuf,
    },
    /// A directory that a restore has not filled to the end.
    #[error(
        "{} is what a restore has made that was killed, or is not at its end: wait for it, restore again, or remove it",
        home.display()
    )]
    HalfRestored {
        /// The directory that is to become the database's.
        home: PathBuf,
    },
    /// A copy of a database whose data files outside its directory belong to the original.
    #[error("{} belongs to the database in {}, of which {} is a copy; open the original, or load the data anew", path.display(), original.display(), home.display())]
    CopyOf {
        /// The data file.
        path: PathBuf,
        /// The directory of the database that owns it.
        original: PathBuf,
        /// The directory that was opened.
        home: PathBuf,
    },
    /// A log file outside the home that another copy of the database has gone on with.
    #[error("redo log {}: the log was continued by another copy of the database, which was then in {}, and what it committed is not in this copy, {}; put that copy back, or restore a backup", path.display(), last.display(), home.display())]
    Continued {
        /// The log file outside the home.
        path: PathBuf,
        /// The directory of the copy that wrote it last.
        last: PathBuf,
        /// The directory that was opened.
        home: PathBuf,
    },
    /// A data file is not there, not whole, or not the one that the control file means.
    #[error("data file {}: {why}; restore it from a copy, or drop the tables and indexes that lie in it: it is then made anew", path.display())]
    DataFile {
        /// The file.
        path: PathBuf,
        /// What was found and expected.
        why: String,
    },
    /// There is no room for a file that is made again with the length of the control file.
    #[error("data file {} is to have {bytes} by control file {}, and its disk has not so much left: {error}; free some space there, or restore the control file from a copy if that length is wrong", path.display(), control.display())]
    NoRoom {
        /// The data file that would be made again.
        path: PathBuf,
        /// The length that it is to have.
        bytes: Bytes,
        /// The control file that gives the length.
        control: PathBuf,
        /// The system's report of the room left.
        error: Box<IoError>,
    },
    /// A file of the home that a copy of the home could reach too.
    #[error("{}: {why}, so that a copy of the directory would write into the same file; put a plain file of its own in its place (cp --remove-destination), or link the whole directory instead", path.display())]
    LinkedFile {
        /// The file.
        path: PathBuf,
        /// What was found.
        why: String,
    },
    /// A data file from before the last checkpoint.
    #[error("data file {} is an older copy: its last checkpoint is at LSN {}, expected {} or a later one, and no log has what was changed in between; put the newest one in its place, or restore all files of the database from one backup", path.display(), found.0, expected.0)]
    OldFile {
        /// The file.
        path: PathBuf,
        /// The checkpoint that its header names.
        found: Lsn,
        /// The checkpoint that the log's control block names.
        expected: Lsn,
    },
    /// A data file outside the home that cannot be used, and that nothing lies in.
    #[error("{error}; a file outside of the database's directory ({}) is never made anew, because a control file from elsewhere may name any file: restore it from a copy, or make the database again", path.display())]
    OutsideFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        error: String,
    },
    /// A file of another database.
    #[error("{what} {} belongs to database {found}, expected {expected}; move it to where it belongs, and {}", path.display(), if *what == DATA_FILE { "restore this database's own from a copy or drop what lay in it" } else { "put this database's own in its place: if the two were swapped, swap them back" })]
    OtherDatabase {
        /// [`DATA_FILE`], or what it is of the log.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The database in its header.
        found: DatabaseId,
        /// The one that was opened.
        expected: DatabaseId,
    },
    /// A data file that could not be opened with the database is needed now.
    #[error(transparent)]
    Unusable(std::sync::Arc<EngineError>),
    /// Blocks of a size are to be used for which there is no cache.
    #[error(
        "tablespace {tablespace} has blocks of {block_size}, for which there is no buffer cache; set {setting} (4M, say)"
    )]
    NoCache {
        /// Its name.
        tablespace: &'static str,
        /// The size of its blocks.
        block_size: BlockSize,
        /// The setting that makes one.
        setting: &'static str,
    },
    /// No file of a tablespace can grow.
    #[error(
        "tablespace {tablespace} is full: its {files} data files have as many blocks as can be numbered (2^32); create the database with more data_files or a larger db_block_size"
    )]
    Full {
        /// Its name.
        tablespace: &'static str,
        /// How many data files can be used.
        files: usize,
    },
    /// The database was opened to be read, and is to be changed.
    #[error("database {} was opened to be read only", home.display())]
    ReadOnly {
        /// Its directory.
        home: PathBuf,
    },
    /// The control file was replaced, that could not be made durable, and the one before could not be put back.
    #[error(
        "the database {} may be as it was before a change that failed or as after it, and is not changed any more: {first}; open it again once the cause is removed",
        home.display()
    )]
    ControlFileInDoubt {
        /// Its directory.
        home: PathBuf,
        /// The failure, as it was reported then.
        first: String,
    },
    /// A thing of that name is there already.
    #[error("{kind} {name} exists already: choose another name, or remove it first")]
    Exists {
        /// `table` or `index`.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// A name is longer than a name may be.
    #[error(
        "the name of a {kind} has {found} bytes, and {limit} are the most; it begins with {start:?}: choose a shorter one"
    )]
    NameTooLong {
        /// `table or index` or `column`.
        kind: &'static str,
        /// Bytes of the name that was given.
        found: usize,
        /// The most that it may have.
        limit: usize,
        /// The first letters of that name.
        start: String,
    },
    /// A file is there already where one is to be made.
    #[error("{} exists already: choose another name, or remove it first", path.display())]
    FileExists {
        /// The file.
        path: PathBuf,
    },
    /// A file of that name is being made, or was when its maker was killed.
    #[error(
        "{} is the output of a sort that is under way, or was killed: wait for its end, or remove it",
        path.display()
    )]
    Unfinished {
        /// The file.
        path: PathBuf,
    },
    /// A file is not one of records of one length.
    #[error("{} cannot be read as records: {why}", path.display())]
    RecordFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A line of a file is too long to be sorted.
    #[error("{}: the line at byte {offset} takes {found} bytes with its key, and a block has room for {limit}; it begins with {start:?}; {cure}", path.display())]
    LineTooLong {
        /// The file.
        path: PathBuf,
        /// Where the line begins.
        offset: u64,
        /// Its bytes, as far as they were read, with those of its key.
        found: usize,
        /// What a block of the temporary tablespace takes.
        limit: usize,
        /// Its first letters.
        start: String,
        /// What to do.
        cure: &'static str,
    },
    /// There is no thing of that name.
    #[error("there is no {kind} {name} in this database; it has {known}")]
    Missing {
        /// `table`, `index` or `column`.
        kind: &'static str,
        /// The name asked for.
        name: String,
        /// What there is instead.
        known: String,
    },
    /// A row does not fit into an extent.
    #[error(
        "a row of {found} bytes does not fit an extent of {}: there is room for {room}; create the database with a larger extent_size or db_block_size, or shorten the row: it begins with {start}",
        Bytes(*extent_bytes)
    )]
    ChainTooLong {
        /// Bytes of the row.
        found: usize,
        /// Bytes of an extent.
        extent_bytes: u64,
        /// Bytes a row may have.
        room: usize,
        /// The first columns, to find it by.
        start: String,
    },
    /// An index key is too long.
    #[error(
        "an index key of {found} bytes at {row} is too long: a block of {block_size} bytes takes keys of up to {limit}; index fewer or shorter columns, or use a larger db_block_size"
    )]
    KeyTooLong {
        /// Bytes of the key.
        found: usize,
        /// The longest that fits.
        limit: usize,
        /// The block size in force.
        block_size: usize,
        /// The row.
        row: RowId,
    },
    /// A row's bytes make no sense although the block's checksum is right.
    #[error("row at {row} cannot be read: {why}")]
    BadRow {
        /// The row.
        row: RowId,
        /// What is wrong.
        why: String,
    },
    /// The source of a load failed.
    #[error("{0}")]
    Source(SourceError),
    /// Verification found something that is not as it must be.
    #[error("{what}: found {found}, expected {expected}")]
    Verification {
        /// What was verified, and where.
        what: String,
        /// What is there.
        found: String,
        /// What should be there.
        expected: String,
    },
    /// A write of the database writer failed some time ago; the cache is closed.
    #[error(
        "the database writer failed, and the buffer cache is closed: {first}; open the database again once the cause is removed"
    )]
    WriterFailed {
        /// The first failure, as it was reported then.
        first: String,
    },
    /// The redo log is not as it must be.
    #[error("redo log {}: {why}", path.display())]
    Log {
        /// The log file or the control block's file.
        path: PathBuf,
        /// What was found, what was expected, and the way out.
        why: String,
    },
    /// A write or sync of the redo log, or of a file at a checkpoint, failed some time ago: nothing more can be committed.
    #[error(
        "the redo log cannot be written, and transactions are stopped: {first}; open the database again once the cause is removed: what was committed is there"
    )]
    LogFailed {
        /// The first failure, as it was reported then.
        first: String,
    },
    /// A switch of the log was asked for, and no file is free to go on in.
    #[error(
        "the log cannot be switched: all its {groups} files are needed by transactions under way; commit or roll back first"
    )]
    NoLogFile {
        /// Log files.
        groups: usize,
    },
    /// A backup cannot be made, or not be restored.
    #[error("{}: {why}", path.display())]
    Backup {
        /// The directory or the file.
        path: PathBuf,
        /// What was found, what was expected, and the cure.
        why: String,
    },
    /// A filled log file cannot be copied, and something waits for the copy.
    #[error(
        "a filled log file cannot be copied: {why}; make room in archive_log_dest, or make the directory"
    )]
    Archive {
        /// What the last attempt ended with.
        why: String,
    },
    /// The log files have no room, and give none back while the oldest transaction lasts.
    #[error(
        "the redo log has no room for {needed}: all {total} of it are needed since transaction {oldest} began; commit or roll back more often, or make the database with a larger log_file_size"
    )]
    LogFull {
        /// What was asked for, with what its undoing may take.
        needed: Bytes,
        /// All log files.
        total: Bytes,
        /// The oldest transaction under way.
        oldest: u64,
    },
    /// Sessions wait for each other's rows in a circle.
    #[error(
        "deadlock: transaction {transaction} waits for the row at {row}, which transaction {holder} has changed, which waits for the first one; roll back and try again"
    )]
    Deadlock {
        /// The one that gets this error.
        transaction: u64,
        /// The row it wants.
        row: RowId,
        /// Who has changed it.
        holder: u64,
    },
    /// Another transaction has changed the row and is under way, and the session does not want to wait.
    #[error("the row at {row} has been changed by transaction {holder}, which has not ended")]
    RowLocked {
        /// The row.
        row: RowId,
        /// The transaction.
        holder: u64,
    },
    /// The definition of a table cannot be changed, or is being changed.
    #[error("table {table} is in use: {by}; try again when that is over")]
    TableInUse {
        /// The table.
        table: String,
        /// Who uses it.
        by: &'static str,
    },
    /// Two rows of a key that only one may have.
    #[error(
        "unique index {index}: the key {key} is there already, in the row at {row}; choose another one, or change that row first"
    )]
    DuplicateKey {
        /// The index.
        index: String,
        /// The values of its columns.
        key: String,
        /// The row that has it.
        row: RowId,
    },
    /// The row is not there, or not any more.
    #[error(
        "there is no row at {row} in table {table}: it was deleted, or moved by an update to a place of its own; look it up again"
    )]
    RowGone {
        /// Where it was looked for.
        row: RowId,
        /// In which table.
        table: String,
    },
    /// A version of a row is needed that the log does not have any more.
    #[error(
        "snapshot too old: the version of the row at {row} that the statement needs is no longer in the log; run the statement again, or make the database with a larger log_file_size"
    )]
    SnapshotTooOld {
        /// The row.
        row: RowId,
    },
    /// A server of a parallel operation ended because another one failed.
    #[error("stopped because another server failed")]
    Stopped,
    /// The user asked to stop.
    #[error("{}", plumb_events::Interrupted)]
    Interrupted,
}

impl From<plumb_events::Interrupted> for EngineError {
    fn from(_: plumb_events::Interrupted) -> EngineError {
        EngineError::Interrupted
    }
}

impl From<plumb_io::Failed> for EngineError {
    fn from(failed: plumb_io::Failed) -> EngineError {
        failed.error.into()
    }
}

impl EngineError {
    /// The row is not as it must be, and why.
    pub(crate) fn bad_row(row: RowId, why: impl std::fmt::Display) -> EngineError {
        EngineError::BadRow { row, why: why.to_string() }
    }

    /// Whether it says something about the data: they can be reached, and are not as they must be.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        match self {
            EngineError::Unusable(error) => error.is_damage(),
            error => matches!(
                error,
                EngineError::Verification { .. }
                    | EngineError::CorruptBlock { .. }
                    | EngineError::BadRow { .. }
                    | EngineError::DataFile { .. }
                    | EngineError::OldFile { .. }
                    | EngineError::OtherDatabase { .. }
                    | EngineError::ControlFile { .. }
                    | EngineError::NoControlFile { .. }
                    | EngineError::Io(IoError::CutShort { .. })
            ),
        }
    }

    /// Whether this error only follows from another one.
    #[must_use]
    pub fn is_consequence(&self) -> bool {
        matches!(self, EngineError::Stopped)
    }
}
