//! The engine's errors: thing, place, value found, value expected, cure.

use crate::database_id::DatabaseId;
use plumb_io::IoError;
use plumb_types::SourceError;
use plumb_units::{BlockAddress, BlockSize, Bytes, Lsn, RowId};
use std::fmt;
use std::path::PathBuf;
use thiserror::Error;

/// Name of a data file in messages.
pub const DATA_FILE: &str = "data file";

/// Failures of the engine. Each prints as one line.
#[derive(Debug, Error)]
pub enum EngineError {
    /// A file operation failed in the I/O layer.
    #[error(transparent)]
    Io(#[from] IoError),
    /// A block does not have the contents that were written to it.
    #[error("{}: block {} ({address}) is corrupt: {what}: found {found}, expected {expected}; restore the file from a copy, or drop and rebuild what it holds", path.display(), address.block.0)]
    CorruptBlock {
        /// Path of the data file.
        path: PathBuf,
        /// Address of the damaged block.
        address: BlockAddress,
        /// The wrong part of the block, such as `checksum`.
        what: &'static str,
        /// Value found in the block.
        found: String,
        /// Value that the block should have.
        expected: String,
    },
    /// A value is outside of a setting's range.
    #[error("{origin}: {name} = {value} is out of range: {expected}")]
    Setting {
        /// Place where the setting was set, such as `--set`.
        origin: String,
        /// Name of the setting.
        name: String,
        /// Value that was given.
        value: String,
        /// Range of the setting, in words.
        expected: String,
    },
    /// No setting has this name.
    #[error("{origin}: there is no setting {name}{}", near.as_ref().map(|n| format!(" (did you mean {n}?)")).unwrap_or_default())]
    NoSuchSetting {
        /// Place where the name was used.
        origin: String,
        /// Name that was given.
        name: String,
        /// Most similar name of a setting, if one is close.
        near: Option<&'static str>,
    },
    /// Two settings, or a setting and a fact, contradict each other.
    #[error("{first} contradicts {second}: {why}")]
    Contradiction {
        /// The first of the two, such as `io_method=io_uring`.
        first: String,
        /// The second of the two, in the same form.
        second: String,
        /// Reason for the contradiction, and the cure.
        why: String,
    },
    /// A path cannot be a directory of log files.
    #[error("{setting}={}: {why}", path.display())]
    LogPlace {
        /// Name of the setting with the path.
        setting: &'static str,
        /// Path as the setting has it.
        path: PathBuf,
        /// Kind of thing found or expected there, and the cure.
        why: String,
    },
    /// The kernel refuses the priority that a setting demands for LGWR.
    #[error(
        "LGWR cannot have the priority that high_priority_processes=lgwr asks for: {why}, or high_priority_processes to auto"
    )]
    Priority {
        /// The kernel's reason, and the right that the process lacks.
        why: String,
    },
    /// The settings ask for more memory than exists.
    #[error(
        "the settings ask for {sum} of memory ({parts}), and there are {total} ({source_name}): lower {asked}"
    )]
    Memory {
        /// Bytes that all parts may take together.
        sum: Bytes,
        /// The parts of the sum, in words.
        parts: String,
        /// Bytes of memory that exist.
        total: Bytes,
        /// Source of the total, for example a cgroup limit.
        source_name: &'static str,
        /// The explicit settings in the sum, with the places where they were set.
        asked: String,
    },
    /// Another process has the database, or one of its files, open.
    #[error("{what} {} is in use by {holder}: wait until it ends", path.display())]
    InUse {
        /// Kind of thing: `database`, `data file` or `log file`.
        what: &'static str,
        /// Path of the thing in use.
        path: PathBuf,
        /// `process 4711` from the lock file, or `another process`.
        holder: String,
    },
    /// The control file is damaged, or older than the log.
    #[error("control file {}: {why}; restore it from a copy; the data files are unchanged: move them away before you create a new database", path.display())]
    ControlFile {
        /// Path of the control file.
        path: PathBuf,
        /// The damage, as found and expected.
        why: String,
    },
    /// The control file has a format of another version of the program.
    #[error("control file {}: the database has format {found}, expected {expected}: {}", path.display(), if found > expected { "a newer plumb made it; use that one" } else { "load the data again with this version, in another directory" })]
    Format {
        /// Path of the control file.
        path: PathBuf,
        /// Format version of the control file.
        found: u32,
        /// Format version that this program reads.
        expected: u32,
    },
    /// The directory has no control file.
    #[error("there is no database in {}: check the spelling, or make one", home.display())]
    NoDatabase {
        /// Directory that was to be opened.
        home: PathBuf,
    },
    /// Data files exist without a control file that describes them.
    #[error("{} has no control file, but there is {}: restore control.json from a copy, or move the data files away to create a new database", home.display(), file.display())]
    NoControlFile {
        /// Directory of the database.
        home: PathBuf,
        /// One of the data files found.
        file: PathBuf,
    },
    /// A restore has not completed this directory.
    #[error(
        "{} is the target of a restore that still runs or was killed: wait for its end, restore again, or remove it",
        home.display()
    )]
    HalfRestored {
        /// Target directory of the restore.
        home: PathBuf,
    },
    /// A copy of a database names a file outside its directory that belongs to the original.
    #[error("{} belongs to the database in {}, of which {} is a copy; open the original, or load the data again", path.display(), original.display(), home.display())]
    CopyOf {
        /// Path of the data file or log file.
        path: PathBuf,
        /// Directory of the database that owns the file.
        original: PathBuf,
        /// Directory that was opened.
        home: PathBuf,
    },
    /// Another copy of the database has continued a log file outside the home.
    #[error("redo log {}: the log was continued by another copy of the database, which was then in {}, and what it committed is not in this copy, {}; put that copy back, or restore a backup", path.display(), last.display(), home.display())]
    Continued {
        /// Path of the log file outside the home.
        path: PathBuf,
        /// Directory of the copy that wrote the file last.
        last: PathBuf,
        /// Directory that was opened.
        home: PathBuf,
    },
    /// A data file is missing, incomplete, or not the one in the control file.
    #[error("data file {}: {why}; restore it from a copy, or drop the tables and indexes that lie in it: it is then created again", path.display())]
    DataFile {
        /// Path of the data file.
        path: PathBuf,
        /// The difference, as found and expected.
        why: String,
    },
    /// A disk has no room for a file of the length in the control file.
    #[error("data file {} needs {bytes} according to control file {}, and its disk has less left: {error}; free some space there, or restore the control file from a copy if that length is wrong", path.display(), control.display())]
    NoRoom {
        /// Path of the data file to be created.
        path: PathBuf,
        /// Length of the file in the control file.
        bytes: Bytes,
        /// Path of the control file with the length.
        control: PathBuf,
        /// Error of the file system.
        error: Box<IoError>,
    },
    /// A copy of the home could reach this file of the home too.
    #[error("{}: {why}, so that a copy of the directory would write into the same file; put a plain file of its own in its place (cp --remove-destination), or link the whole directory instead", path.display())]
    LinkedFile {
        /// Path of the linked file.
        path: PathBuf,
        /// The kind of link that was found.
        why: String,
    },
    /// A data file is older than the last checkpoint.
    #[error("data file {} is an older copy: its last checkpoint is at LSN {}, expected {} or a later one, and no log has what was changed in between; put the newest one in its place, or restore all files of the database from one backup", path.display(), found.0, expected.0)]
    OldFile {
        /// Path of the data file.
        path: PathBuf,
        /// LSN of the checkpoint in the file's header.
        found: Lsn,
        /// LSN of the checkpoint in the log's control block.
        expected: Lsn,
    },
    /// An unusable data file outside the home, in which no segment has blocks.
    #[error("{error}; a file outside of the database's directory ({}) is never created again, because a control file from elsewhere may name any file: restore it from a copy, or make the database again", path.display())]
    OutsideFile {
        /// Path of the data file.
        path: PathBuf,
        /// The file's own error, as text.
        error: String,
    },
    /// A file belongs to another database.
    #[error("{what} {} belongs to database {found}, expected {expected}; move it to where it belongs, and {}", path.display(), if *what == DATA_FILE { "restore this database's own from a copy or drop what lay in it" } else { "put this database's own in its place: if the two were swapped, swap them back" })]
    OtherDatabase {
        /// [`DATA_FILE`], or the kind of log file.
        what: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Database id in the file's header.
        found: DatabaseId,
        /// Id of the database that was opened.
        expected: DatabaseId,
    },
    /// A session needs a data file that failed to open with the database.
    #[error(transparent)]
    Unusable(std::sync::Arc<EngineError>),
    /// No buffer cache has blocks of the tablespace's size.
    #[error(
        "tablespace {tablespace} has blocks of {block_size}, for which there is no buffer cache; set {setting}, for example to 4M"
    )]
    NoCache {
        /// Name of the tablespace.
        tablespace: &'static str,
        /// Block size of the tablespace.
        block_size: BlockSize,
        /// Setting that creates such a cache.
        setting: &'static str,
    },
    /// No file of a tablespace can grow.
    #[error(
        "tablespace {tablespace} is full: its {files} data files have as many blocks as can be numbered (2^32); create the database with more data_files or a larger db_block_size"
    )]
    Full {
        /// Name of the tablespace.
        tablespace: &'static str,
        /// Number of usable data files.
        files: usize,
    },
    /// A change was requested in a database opened to be read.
    #[error("database {} was opened to be read only", home.display())]
    ReadOnly {
        /// Directory of the database.
        home: PathBuf,
    },
    /// A new control file could not be made durable, and the old one could not be written back.
    #[error(
        "a failed change of the database {} may or may not have taken effect, and no more changes are accepted: {first}; open it again once the cause is removed",
        home.display()
    )]
    ControlFileInDoubt {
        /// Directory of the database.
        home: PathBuf,
        /// The first failure, as it was reported then.
        first: String,
    },
    /// A thing of that name exists already.
    #[error("{kind} {name} exists already: choose another name, or remove it first")]
    Exists {
        /// Kind of thing: `database`, `table` or `index`.
        kind: &'static str,
        /// Name that is taken.
        name: String,
    },
    /// A name is longer than the limit.
    #[error(
        "the name of a {kind} has {found} bytes, and {limit} are the most; it begins with {start:?}: choose a shorter one"
    )]
    NameTooLong {
        /// Kind of name: `table or index` or `column`.
        kind: &'static str,
        /// Bytes of the name that was given.
        found: usize,
        /// Most bytes of such a name.
        limit: usize,
        /// First letters of the name.
        start: String,
    },
    /// A file to be created exists already.
    #[error("{} exists already: choose another name, or remove it first", path.display())]
    FileExists {
        /// Path of the existing file.
        path: PathBuf,
    },
    /// The output file of a sort is incomplete: the sort runs, or was killed.
    #[error(
        "{} is the output of a sort that still runs or was killed: wait for its end, or remove it",
        path.display()
    )]
    Unfinished {
        /// Path of the output file.
        path: PathBuf,
    },
    /// The file does not consist of records of one length.
    #[error("{} cannot be read as records: {why}", path.display())]
    RecordFile {
        /// Path of the input file.
        path: PathBuf,
        /// The difference to a file of records.
        why: String,
    },
    /// A line of a file is too long to be sorted.
    #[error("{}: the line at byte {offset} takes {found} bytes with its key, and a block has room for {limit}; it begins with {start:?}; {cure}", path.display())]
    LineTooLong {
        /// Path of the input file.
        path: PathBuf,
        /// Byte at which the line begins.
        offset: u64,
        /// Bytes of the line with its key, as far as they were read.
        found: usize,
        /// Bytes that fit a block of the temporary tablespace.
        limit: usize,
        /// First letters of the line.
        start: String,
        /// Advice for the user, as half a sentence.
        cure: LineCure,
    },
    /// No thing of that name exists.
    #[error("there is no {kind} {name} in this database; it has {known}")]
    Missing {
        /// Kind of thing, such as `table`, `index` or `column`.
        kind: &'static str,
        /// The requested name.
        name: String,
        /// Names that exist, in words.
        known: String,
    },
    /// A predicate on rows cannot be understood.
    #[error("predicate {text:?}: {why}")]
    Predicate {
        /// Text as it was given.
        text: String,
        /// The wrong part, and the expected form.
        why: String,
    },
    /// A process that read a share of a table failed.
    #[error("{name} failed: {why}")]
    Instance {
        /// Name of the instance in the report, such as `instance 2`.
        name: String,
        /// Error of the instance, or the way its process ended.
        why: String,
    },
    /// A table that an operation read or extended was changed or dropped by another one.
    #[error("table {table} was changed or dropped meanwhile: do it again")]
    TableChanged {
        /// Name of the table in its stored form.
        table: String,
    },
    /// A row is too long for an extent.
    #[error(
        "a row of {found} bytes does not fit an extent of {}: there is room for {room}; create the database with a larger extent_size or db_block_size, or shorten the row: it begins with {start}",
        Bytes(*extent_bytes)
    )]
    ChainTooLong {
        /// Bytes of the row.
        found: usize,
        /// Bytes of an extent.
        extent_bytes: u64,
        /// Most bytes of a row in an extent.
        room: usize,
        /// First columns of the row, to find it by.
        start: String,
    },
    /// An index key is too long for a block.
    #[error(
        "an index key of {found} bytes at {row} is too long: a block of {block_size} bytes takes keys of up to {limit}; index fewer or shorter columns, or use a larger db_block_size"
    )]
    KeyTooLong {
        /// Bytes of the key.
        found: usize,
        /// Most bytes of a key in a block.
        limit: usize,
        /// Bytes of a block in the index tablespace.
        block_size: usize,
        /// Row id of the row with the key.
        row: RowId,
    },
    /// A row is malformed although its block's checksum is right.
    #[error("row at {row} cannot be read: {why}")]
    BadRow {
        /// Row id of the malformed row.
        row: RowId,
        /// The damage, as found and expected.
        why: String,
    },
    /// The source of a load failed.
    #[error("{0}")]
    Source(SourceError),
    /// A verification failed.
    #[error("{what}: found {found}, expected {expected}")]
    Verification {
        /// The thing verified, and its place.
        what: String,
        /// Value that was found.
        found: String,
        /// Value that was expected.
        expected: String,
    },
    /// The database writer failed earlier, and the cache is closed.
    #[error(
        "the database writer failed, and the buffer cache is closed: {first}; open the database again once the cause is removed"
    )]
    WriterFailed {
        /// The first failure, as it was reported then.
        first: String,
    },
    /// The redo log is damaged, or does not match the database.
    #[error("redo log {}: {why}", path.display())]
    Log {
        /// Path of the log file or control block.
        path: PathBuf,
        /// The value found, the value expected, and the cure.
        why: String,
    },
    /// A write or sync of the redo log, or of a file at a checkpoint, failed earlier. Nothing
    /// can be committed any more.
    #[error(
        "the redo log cannot be written, and transactions are stopped: {first}; open the database again once the cause is removed: commits are not lost"
    )]
    LogFailed {
        /// The first failure, as it was reported then.
        first: String,
    },
    /// A log switch was requested, and no file is free.
    #[error(
        "the log cannot be switched: all its {groups} files are needed by transactions under way; commit or roll back first"
    )]
    NoLogFile {
        /// Number of log file groups.
        groups: usize,
    },
    /// A backup or a restore failed.
    #[error("{}: {why}", path.display())]
    Backup {
        /// Path of the directory or file.
        path: PathBuf,
        /// The value found, the value expected, and the cure.
        why: String,
    },
    /// A filled log file cannot be copied, and an operation waits for the copy.
    #[error(
        "a filled log file cannot be copied: {why}; make room in archive_log_dest, or make the directory"
    )]
    Archive {
        /// Error of the last attempt to copy.
        why: String,
    },
    /// The log files have no room, and the oldest transaction keeps their records.
    #[error(
        "the redo log has no room for {needed}: all {total} of it are needed since transaction {oldest} began; commit or roll back more often, or make the database with a larger log_file_size"
    )]
    LogFull {
        /// Bytes asked for, with the room to undo the change.
        needed: Bytes,
        /// Bytes of all log files.
        total: Bytes,
        /// Number of the oldest running transaction.
        oldest: u64,
    },
    /// Transactions wait for each other's rows in a cycle.
    #[error(
        "deadlock: transaction {transaction} waits for the row at {row}, which transaction {holder} has changed, and that transaction waits for the first one; roll back and try again"
    )]
    Deadlock {
        /// Number of the transaction that gets this error.
        transaction: u64,
        /// Row that the transaction waits for.
        row: RowId,
        /// Number of the transaction that changed the row.
        holder: u64,
    },
    /// Another running transaction has changed the row, and the session does not wait.
    #[error("the row at {row} has been changed by transaction {holder}, which has not ended")]
    RowLocked {
        /// Row id of the locked row.
        row: RowId,
        /// Number of the transaction that changed the row.
        holder: u64,
    },
    /// The definition of a table cannot change now, or is being changed.
    #[error("table {table} is in use: {by}; try again when that is over")]
    TableInUse {
        /// Name of the table.
        table: String,
        /// The use that prevents the change, in words.
        by: &'static str,
    },
    /// Another row has the same key of a unique index.
    #[error(
        "unique index {index}: the key {key} exists already, in the row at {row}; choose another one, or change that row first"
    )]
    DuplicateKey {
        /// Name of the unique index.
        index: String,
        /// Values of the key columns.
        key: String,
        /// Row id of the row with that key.
        row: RowId,
    },
    /// The row does not exist, or no longer exists.
    #[error(
        "there is no row at {row} in table {table}: it was deleted, or an update has moved it; look it up again"
    )]
    RowGone {
        /// Row id that was looked up.
        row: RowId,
        /// Name of the table.
        table: String,
    },
    /// The log no longer holds a row version that a statement needs.
    #[error(
        "snapshot too old: the version of the row at {row} that the statement needs is no longer in the log; run the statement again, or make the database with a larger log_file_size"
    )]
    SnapshotTooOld {
        /// Row id of the row.
        row: RowId,
    },
    /// A server of a parallel operation stopped because another one failed.
    #[error("stopped because another server failed")]
    Stopped,
    /// The user asked to stop.
    #[error("{}", plumb_events::Interrupted)]
    Interrupted,
}

/// Ways out for a line that is too long to be sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineCure {
    /// Blocks of the temporary tablespace can be larger.
    LargerBlocks,
    /// The blocks are the largest, so only the line can change.
    ShorterLine,
    /// The file may have no lines: records of one length are sorted without a limit of a block.
    RecordLength,
}

impl fmt::Display for LineCure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            LineCure::LargerBlocks => "set db_block_size=32K",
            LineCure::ShorterLine => "longer ones cannot be sorted: shorten or remove it",
            LineCure::RecordLength => "is it a file of lines? if its records have one length, state it",
        })
    }
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
    pub(crate) fn bad_row(row: RowId, why: impl std::fmt::Display) -> EngineError {
        EngineError::BadRow { row, why: why.to_string() }
    }

    /// True for damage of the data: it can be read, but is not as written.
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

    /// True if this error only follows from another one.
    pub fn is_consequence(&self) -> bool {
        matches!(self, EngineError::Stopped)
    }
}
