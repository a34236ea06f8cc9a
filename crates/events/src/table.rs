//! The tables: wait events with their classes, statistics, I/O streams, session
//! roles, phases of a run.
//!
//! Each has one row; names, documentation and reports follow from it. The names are
//! Oracle's where Oracle has one.

use serde::{Deserialize, Serialize};

/// The class that groups wait events in a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitClass {
    /// A lock that the application asked for is held by another session.
    Application,
    /// A commit waits until it is durable.
    Commit,
    /// A shared resource is held by another session.
    Concurrency,
    /// A setting is too small for the work: cache, log, queue.
    Configuration,
    /// Nothing to do: not part of DB time.
    Idle,
    /// A class for all other events.
    Other,
    /// Background I/O: the database writer.
    SystemIo,
    /// Foreground I/O: reads and writes that a user's session waits for.
    UserIo,
}

impl WaitClass {
    /// Every class, in alphabetical order.
    pub const ALL: [WaitClass; 8] = [
        WaitClass::Application,
        WaitClass::Commit,
        WaitClass::Concurrency,
        WaitClass::Configuration,
        WaitClass::Idle,
        WaitClass::Other,
        WaitClass::SystemIo,
        WaitClass::UserIo,
    ];

    /// Returns the class as reports print it.
    pub const fn name(self) -> &'static str {
        match self {
            WaitClass::Application => "Application",
            WaitClass::Commit => "Commit",
            WaitClass::Concurrency => "Concurrency",
            WaitClass::Configuration => "Configuration",
            WaitClass::Idle => "Idle",
            WaitClass::Other => "Other",
            WaitClass::SystemIo => "System I/O",
            WaitClass::UserIo => "User I/O",
        }
    }
}

macro_rules! events {
    ($($variant:ident, $name:literal, $class:ident, $sentence:literal;)*) => {
        /// An event for which a session may wait.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Event { $(#[doc = $sentence] $variant),* }

        impl Event {
            /// Every event, in the order of the table.
            pub const ALL: &'static [Event] = &[$(Event::$variant),*];
            /// Number of rows of the table.
            pub const COUNT: usize = Self::ALL.len();

            /// Returns the name as reports print it.
            pub const fn name(self) -> &'static str {
                match self { $(Event::$variant => $name),* }
            }

            /// Returns the class under which it is counted.
            #[must_use]
            pub const fn class(self) -> WaitClass {
                match self { $(Event::$variant => WaitClass::$class),* }
            }

            /// Returns a sentence that describes the wait.
            pub const fn sentence(self) -> &'static str {
                match self { $(Event::$variant => $sentence),* }
            }
        }
    };
}

events! {
    DbFileSequentialRead, "db file sequential read", UserIo, "A block is read into the buffer cache.";
    DbFileScatteredRead, "db file scattered read", UserIo, "Adjacent blocks are read into the buffer cache.";
    DbFileParallelRead, "db file parallel read", UserIo, "Any blocks are read into the buffer cache at once.";
    DirectPathRead, "direct path read", UserIo, "Table or index blocks are read into private memory.";
    DirectPathReadTemp, "direct path read temp", UserIo, "Sort run blocks are read into private memory.";
    DirectPathWrite, "direct path write", UserIo, "Table or index blocks are written from private memory.";
    DirectPathWriteTemp, "direct path write temp", UserIo, "Sort run blocks are written from private memory.";
    ExternalTableRead, "external table read", UserIo, "Records of a plain file are read into private memory.";
    ExternalTableWrite, "external table write", UserIo, "Records are written to a plain file from private memory.";
    DirectPathSync, "direct path sync", UserIo, "Written data files are made durable (fdatasync).";
    LogFileParallelWrite, "log file parallel write", SystemIo, "Log records are written, and made durable.";
    LgwrWaitForRedoCopy, "LGWR wait for redo copy", Other, "LGWR waits for a session that is copying a record into the log buffer.";
    LogFileSync, "log file sync", Commit, "A session waits until another one has made its commit durable.";
    LogFileSequentialRead, "log file sequential read", SystemIo, "Log records are read: by recovery, or for an old version of a row.";
    LogBufferSpace, "log buffer space", Configuration, "A session waits for room in the log buffer.";
    LogFileSwitch, "log file switch completion", Configuration, "The header of the next log file is made durable.";
    LogFileSwitchCheckpoint, "log file switch (checkpoint incomplete)", Configuration, "A session waits for a checkpoint to free room in the log.";
    LogFileSwitchArchive, "log file switch (archiving needed)", Configuration, "A session waits for the archiver to copy a log file.";
    LogArchiveIo, "Log archive I/O", SystemIo, "The archiver reads a filled log file, or writes its copy.";
    BackupIo, "RMAN backup & recovery I/O", SystemIo, "A file is read or written for a backup, or for its restore.";
    EnqTxRowLock, "enq: TX - row lock contention", Application, "A session waits for the end of the transaction that has changed a row.";
    DataFileInitWrite, "Data file init write", UserIo, "A new or extended data file is filled with zeros.";
    DiskFileOperations, "Disk file operations I/O", UserIo, "A file is opened, created, sized or removed.";
    LocalWriteWait, "local write wait", UserIo, "A session waits until the database writer has written its blocks.";
    ControlFileParallelWrite, "control file parallel write", SystemIo, "The control file is replaced, or a copy of the log's control block written.";
    ControlFileSequentialRead, "control file sequential read", SystemIo, "The log's control block is read, when a database is opened.";
    DbFileAsyncIoSubmit, "db file async I/O submit", SystemIo, "A database writer submits a batch of writes to its ring. Of other sessions, only submissions of a millisecond or longer count: the device's queue is full.";
    DbFileParallelWrite, "db file parallel write", SystemIo, "The database writer waits for a batch of block writes.";
    FreeBufferWaits, "free buffer waits", Configuration, "A session waits for the database writer to free a buffer.";
    EnqHwContention, "enq: HW - contention", Configuration, "A session waits while another one extends a data file.";
    BufferBusyWaits, "buffer busy waits", Concurrency, "A session waits for a buffer that another one holds.";
    WriteCompleteWaits, "write complete waits", Configuration, "A session waits to change a block that a database writer is writing.";
    LatchFree, "latch free", Concurrency, "A session that needs an old log record waits for another one that reads the log files.";
    LatchCacheBuffers, "latch: cache buffers chains", Concurrency, "A session waits for the latch of a part of the cache.";
    ReadByOtherSession, "read by other session", UserIo, "A session waits for a block that another one is reading.";
    PxDeqTableQNormal, "PX Deq: Table Q Normal", Idle, "A sort server waits for rows from the table queue.";
    PxDeqCreditSendBlkd, "PX Deq Credit: send blkd", Other, "A scan server waits for a free table queue buffer.";
    PxDeqExecuteReply, "PX Deq: Execute Reply", Idle, "The coordinator waits for its parallel servers.";
    MessageFromClient, "SQL*Net message from client", Idle, "A session waits for the next request: think time, or a later arrival.";
    SharedServerIdle, "shared server idle wait", Idle, "A shared server waits until one of its sessions can go on.";
    DbwrIdle, "rdbms ipc message", Idle, "A background process waits for work.";
}

/// Unit of a statistic's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// A plain number of occurrences.
    Count,
    /// A number of bytes, printed with a unit.
    Bytes,
}

macro_rules! statistics {
    ($($variant:ident, $name:literal, $unit:ident, $sentence:literal;)*) => {
        /// A number that a session counts.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Statistic { $(#[doc = $sentence] $variant),* }

        impl Statistic {
            /// Every statistic, in the order of the table.
            pub const ALL: &'static [Statistic] = &[$(Statistic::$variant),*];
            /// Number of rows of the table.
            pub const COUNT: usize = Self::ALL.len();

            /// Returns the name as reports print it.
            pub const fn name(self) -> &'static str {
                match self { $(Statistic::$variant => $name),* }
            }

            /// Returns the unit in which it is counted.
            pub const fn unit(self) -> Unit {
                match self { $(Statistic::$variant => Unit::$unit),* }
            }

            /// Returns a sentence that describes the count.
            pub const fn sentence(self) -> &'static str {
                match self { $(Statistic::$variant => $sentence),* }
            }
        }
    };
}

statistics! {
    PhysicalReadBlocks, "physical reads", Count, "Blocks read from data files.";
    PhysicalReadBytes, "physical read total bytes", Bytes, "Bytes read from all files, with the log.";
    PhysicalReadRequests, "physical read total IO requests", Count, "Read requests to all files.";
    PhysicalReadsDirect, "physical reads direct", Count, "Blocks read past the buffer cache.";
    PhysicalReadsDirectTemp, "physical reads direct temporary tablespace", Count, "Sort run blocks read past the buffer cache.";
    PhysicalWriteBlocks, "physical writes", Count, "Blocks written to data files.";
    PhysicalWriteBytes, "physical write total bytes", Bytes, "Bytes written to all files, with the log.";
    PhysicalWriteRequests, "physical write total IO requests", Count, "Write requests to all files.";
    PhysicalWritesDirect, "physical writes direct", Count, "Blocks written past the buffer cache.";
    PhysicalWritesDirectTemp, "physical writes direct temporary tablespace", Count, "Sort run blocks written past the buffer cache.";
    PhysicalWritesFromCache, "physical writes from cache", Count, "Blocks written by the database writer.";
    RequestsContinued, "short transfers continued", Count, "Requests continued after a short transfer.";
    RequestsRetried, "requests retried", Count, "Requests repeated after EINTR or EAGAIN.";
    RingEnters, "ring enters", Count, "Calls of io_uring_enter.";
    RingRequests, "ring requests", Count, "Requests through an io_uring.";
    RingCompleteAtOnce, "ring requests complete at submission", Count, "Requests that the kernel completed within the submitting call.";
    RingFixedRequests, "ring requests with registered buffers", Count, "Requests with buffers that the kernel had pinned beforehand.";
    RingFixedFileRequests, "ring requests with registered files", Count, "Requests to files that the kernel had looked up beforehand.";
    PoolRequests, "thread pool requests", Count, "Requests to the thread pool.";
    CompletionPolls, "completion polls", Count, "Polls for completions.";
    CompletionPollTime, "completion polling time (nsec)", Count, "CPU of these polls, nanoseconds.";
    SyncRequests, "synchronous requests", Count, "Requests by system calls of the session.";
    LogicalReads, "session logical reads", Count, "Blocks looked up in the buffer cache.";
    CacheHits, "buffer cache hits", Count, "Blocks found in the buffer cache.";
    FreeBufferRequested, "free buffer requested", Count, "Free buffers asked of the buffer cache.";
    DbwrBatches, "DBWR write batches", Count, "Batches the database writer submitted.";
    TableScanRows, "table scan rows gotten", Count, "Rows returned by scans of tables and files.";
    TableScanBlocks, "table scan blocks gotten", Count, "Blocks that table scans read.";
    SampleRows, "table queue sample rows", Count, "Rows read to find the key ranges of the sort servers.";
    QueueRows, "table queue rows", Count, "Rows sent through a table queue.";
    QueueBytes, "table queue bytes", Bytes, "Bytes sent through a table queue.";
    SortsMemory, "sorts (memory)", Count, "Sorts that fitted their sort area.";
    SortsDisk, "sorts (disk)", Count, "Sorts that wrote runs.";
    SortsOnePass, "workarea executions - onepass", Count, "Sorts whose runs were merged once.";
    SortsMultiPass, "workarea executions - multipass", Count, "Sorts that needed intermediate merges.";
    SortRows, "sorts (rows)", Count, "Rows sorted.";
    SortRuns, "sort runs", Count, "Sorted runs made from the input.";
    SortWriteWaits, "sort write buffers waited for", Count, "Times that all write buffers of a run were in flight when the next was needed.";
    SortWritesInFlight, "sort writes in flight then", Count, "Sum of the writes in flight at these times.";
    SortRunRows, "sort run rows written", Count, "Rows written to sort runs, intermediate merges included.";
    SortKeyBytesShared, "sort run key bytes left out", Bytes, "Bytes of text keys that sort runs share with the key before.";
    SortMatches, "sort merge matches", Count, "Comparisons of two records in merges of text keys.";
    SortMatchesByKey, "sort merge matches by key", Count, "Such comparisons that needed the keys, because the codes were equal.";
    IntermediateMerges, "sort intermediate merges", Count, "Merges of some runs into a longer run.";
    MergeRows, "sort merge rows", Count, "Rows that left a merge, intermediate or last.";
    MergeBlocksAhead, "sort merge blocks read ahead", Count, "Run blocks that had arrived before the merge asked for them.";
    MergeBlocksWaited, "sort merge blocks waited for", Count, "Run blocks that the merge had to wait for.";
    IndexEntries, "index entries", Count, "Entries written to index leaves.";
    IndexLeafBlocks, "index leaf blocks", Count, "Leaf blocks written.";
    IndexBranchBlocks, "index branch blocks", Count, "Branch blocks written.";
    LoadRows, "direct load rows", Count, "Rows loaded by direct path, or written to a file of records.";
    LoadRowsChained, "direct load rows chained", Count, "Rows loaded by direct path that are longer than a block.";
    LoadBlocks, "direct load blocks", Count, "Table blocks formatted by direct path loads.";
    BlocksVerified, "block checksums verified", Count, "Blocks whose address and checksum were verified.";
    ChecksumsIgnored, "block checksums not verified", Count, "Blocks read into the buffer cache with only their header verified (db_block_checksum=off).";
    RowsFetchedByRowId, "table fetch by rowid", Count, "Rows fetched by their address.";
    RowPiecesFetched, "table fetch continued row", Count, "Pieces read of rows longer than a block, without the heads.";
    RedoSize, "redo size", Bytes, "Bytes of log records.";
    RedoEntries, "redo entries", Count, "Log records.";
    BlockChanges, "db block changes", Count, "Block changes in log records of transactions.";
    RedoImageBytes, "redo size for block images", Bytes, "Bytes of block images in log records.";
    RedoDirectBytes, "redo size for direct writes", Bytes, "Bytes of log records of direct path loads.";
    RedoWastage, "redo wastage", Bytes, "Bytes of log blocks without records: headers and padding.";
    RedoBlocksWritten, "redo blocks written", Count, "Log blocks written.";
    RedoWrites, "redo writes", Count, "Writes to the log, each made durable.";
    RedoWriteTime, "redo write time (usec)", Count, "Microseconds of those writes and syncs.";
    RedoWriterLatchingTime, "redo writer latching time (ns)", Count, "Nanoseconds of gathering the records of those writes from the log buffer.";
    RedoSynchWrites, "redo synch writes", Count, "Commits made durable.";
    RedoSynchTime, "redo synch time (usec)", Count, "Microseconds of these commits.";
    RedoFilesArchived, "redo log files archived", Count, "Filled log files that were copied.";
    ExecuteCount, "execute count", Count, "Operations of a workload, such as the selects and updates of SLOB.";
    UserCommits, "user commits", Count, "Transactions that were committed.";
    UserRollbacks, "user rollbacks", Count, "Transactions that were rolled back.";
    RowsInserted, "rows inserted", Count, "Rows inserted by transactions.";
    RowsUpdated, "rows updated", Count, "Rows updated by transactions.";
    RowsDeleted, "rows deleted", Count, "Rows deleted by transactions.";
    UndoApplied, "undo records applied", Count, "Changes undone by rollbacks.";
    ConsistentVersions, "old row versions read", Count, "Older versions of rows that statements read from the log.";
    LeafSplits, "leaf node splits", Count, "Index leaves that were split.";
    BranchSplits, "branch node splits", Count, "Index branches that were split.";
    FileBytesExtended, "data file bytes extended", Bytes, "Bytes of zeros that extended data files.";
    SpaceNotReserved, "output bytes not reserved", Bytes, "Bytes of outputs without reserved space, because the file system lacks fallocate.";
}

/// Direction in which bytes move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From a file to memory.
    Read,
    /// From memory to a file.
    Write,
}

/// A database's function in `IOStat by Function`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Function {
    /// Blocks that sessions read into the buffer cache.
    BufferCacheReads,
    /// Blocks read into memory of one session.
    DirectReads,
    /// Blocks written from memory of one session.
    DirectWrites,
    /// Writes of the database writers.
    Dbwr,
    /// Writes of the log, whichever session makes them.
    Lgwr,
    /// Reads and writes of the archiver.
    Arch,
    /// Reads and writes of a backup.
    Rman,
    /// Headers, control files, new files, recovery and measurements of the device.
    Others,
}

impl Function {
    /// Every function, in the order of reports.
    pub const ALL: [Function; 8] = [
        Function::BufferCacheReads,
        Function::DirectReads,
        Function::DirectWrites,
        Function::Dbwr,
        Function::Lgwr,
        Function::Arch,
        Function::Rman,
        Function::Others,
    ];

    /// Returns the name as reports print it.
    pub const fn name(self) -> &'static str {
        match self {
            Function::BufferCacheReads => "Buffer Cache Reads",
            Function::DirectReads => "Direct Reads",
            Function::DirectWrites => "Direct Writes",
            Function::Dbwr => "DBWR",
            Function::Lgwr => "LGWR",
            Function::Arch => "ARCH",
            Function::Rman => "RMAN",
            Function::Others => "Others",
        }
    }

    /// Returns the function whose requests sessions wait for in this event; `None` for waits
    /// that are no I/O of the session.
    pub fn of_event(event: &str) -> Option<Function> {
        const OTHERS: [&str; 6] = [
            "control file parallel write",
            "control file sequential read",
            "Data file init write",
            "Disk file operations I/O",
            "direct path sync",
            "log file sequential read",
        ];
        Some(match event {
            "db file sequential read" | "db file scattered read" | "db file parallel read" => {
                Function::BufferCacheReads
            }
            "direct path read" | "direct path read temp" | "external table read" => Function::DirectReads,
            "direct path write" | "direct path write temp" | "external table write" => Function::DirectWrites,
            "db file parallel write" | "db file async I/O submit" => Function::Dbwr,
            "log file parallel write" => Function::Lgwr,
            "Log archive I/O" => Function::Arch,
            "RMAN backup & recovery I/O" => Function::Rman,
            event if OTHERS.contains(&event) => Function::Others,
            _ => return None,
        })
    }
}

/// A type of file in `IOStat by Filetype`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileType {
    /// Data files of tables and indexes.
    Data,
    /// Data files of the temporary tablespace.
    Temp,
    /// Files of the redo log.
    Log,
    /// Control block of the log.
    Control,
    /// Copies of filled log files.
    Archive,
    /// Copies of files that backups make.
    Backup,
    /// Plain files, and measurements of the device.
    Other,
}

impl FileType {
    /// Every type, in the order of reports.
    pub const ALL: [FileType; 7] = [
        FileType::Data,
        FileType::Temp,
        FileType::Log,
        FileType::Control,
        FileType::Archive,
        FileType::Backup,
        FileType::Other,
    ];

    /// Returns the name as reports print it.
    pub const fn name(self) -> &'static str {
        match self {
            FileType::Data => "Data File",
            FileType::Temp => "Temp File",
            FileType::Log => "Log File",
            FileType::Control => "Control File",
            FileType::Archive => "Archive Log",
            FileType::Backup => "Data File Backup",
            FileType::Other => "Other",
        }
    }
}

macro_rules! streams {
    ($($variant:ident, $name:literal, $direction:ident, $function:ident, $file:ident,
        $sentence:literal;)*) => {
        /// Purpose of moved bytes: the parts of `IOStat by Function` and the
        /// lines of the I/O profile.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum IoStream { $(#[doc = $sentence] $variant),* }

        impl IoStream {
            /// Every stream, in the order of the table.
            pub const ALL: &'static [IoStream] = &[$(IoStream::$variant),*];
            /// Number of rows of the table.
            pub const COUNT: usize = Self::ALL.len();

            /// Returns the name as reports print it.
            pub const fn name(self) -> &'static str {
                match self { $(IoStream::$variant => $name),* }
            }

            /// Returns the stream of this name.
            pub fn named(name: &str) -> Option<IoStream> {
                IoStream::ALL.iter().find(|stream| stream.name() == name).copied()
            }

            /// Returns the function to which requests of a session of this role belong. Blocks that
            /// a database writer writes are its own; log writes that it needs before are LGWR's.
            pub const fn function_of(self, role: Role) -> Function {
                match (role, self.function()) {
                    (Role::DatabaseWriter, Function::DirectWrites) => Function::Dbwr,
                    (Role::Archiver, _) => Function::Arch,
                    (_, function) => function,
                }
            }

            /// Returns the function of its requests, unless a database writer makes them.
            pub const fn function(self) -> Function {
                match self { $(IoStream::$variant => Function::$function),* }
            }

            /// Returns the type of the files whose bytes it moves.
            #[must_use]
            pub const fn file_type(self) -> FileType {
                match self { $(IoStream::$variant => FileType::$file),* }
            }

            /// Returns the direction in which its bytes move.
            pub const fn direction(self) -> Direction {
                match self { $(IoStream::$variant => Direction::$direction),* }
            }

            /// Returns a sentence that describes the purpose.
            pub const fn sentence(self) -> &'static str {
                match self { $(IoStream::$variant => $sentence),* }
            }
        }
    };
}

streams! {
    TableReads, "table reads", Read, DirectReads, Data, "Table blocks read by scans.";
    TempWrites, "temp writes", Write, DirectWrites, Temp, "Sort runs written.";
    TempReads, "temp reads", Read, DirectReads, Temp, "Sort runs read back by merges.";
    IndexWrites, "index writes", Write, DirectWrites, Data, "Index blocks written.";
    DataWrites, "data writes", Write, DirectWrites, Data, "Table blocks written by loads.";
    IndexReads, "index reads", Read, DirectReads, Data, "Index blocks read.";
    CacheReads, "cache reads", Read, BufferCacheReads, Data, "Blocks read into the buffer cache.";
    FileReads, "file reads", Read, DirectReads, Other, "Records of plain files read.";
    FileWrites, "file writes", Write, DirectWrites, Other, "Records written to plain files.";
    LogWrites, "log writes", Write, Lgwr, Log, "Log records written.";
    ArchiveWrites, "archive writes", Write, Arch, Archive, "Copies of filled log files written.";
    BackupReads, "backup reads", Read, Rman, Data, "Files read for backups and restores.";
    BackupWrites, "backup writes", Write, Rman, Backup, "Copies of files written by backups and restores.";
    LogReads, "log reads", Read, Others, Log, "Log records read back.";
    HeaderReads, "file header reads", Read, Others, Data, "Headers of data files that are read.";
    HeaderWrites, "file header writes", Write, Others, Data, "Headers of data files, written by checkpoints.";
    FileInit, "file init", Write, Others, Data, "Zeros written when data files and log files are made or extended.";
    Probe, "device probe", Read, Others, Other, "Reads that measure the device.";
    ProbeWrites, "device probe writes", Write, Others, Other, "Writes that measure the device.";
    TempInit, "temp file init", Write, Others, Temp, "Zeros written when files of the temporary tablespace are made or extended.";
    ControlReads, "control file reads", Read, Others, Control, "The control block of the log, read when a database is opened.";
    ControlWrites, "control file writes", Write, Others, Control, "The control block of the log, written by checkpoints.";
}

/// Kind of a session, which decides if its time is DB time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionKind {
    /// Works for a user: its CPU and non-idle waits are DB time.
    Foreground,
    /// Works for the instance: the database writer.
    Background,
    /// Measures a device, including CPU by request, so its CPU clock is not read inside waits.
    Probe,
}

macro_rules! roles {
    ($($variant:ident, $name:literal, $kind:ident, $sentence:literal;)*) => {
        /// Task of a session. The session's name follows from its role
        /// and, among several, its number.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Role { $(#[doc = $sentence] $variant),* }

        impl Role {
            /// Every role, in the order of the table.
            pub const ALL: &'static [Role] = &[$(Role::$variant),*];

            /// Returns the name of a session that is the only one of its role.
            pub const fn name(self) -> &'static str {
                match self { $(Role::$variant => $name),* }
            }

            /// Returns the kind, which decides if its time is DB time.
            pub const fn kind(self) -> SessionKind {
                match self { $(Role::$variant => SessionKind::$kind),* }
            }
        }
    };
}

roles! {
    User, "session", Foreground, "Works for a program that uses the engine.";
    CreateDatabase, "create database", Foreground, "Makes the files of a database.";
    OpenDatabase, "open database", Foreground, "Reads the headers of a database's files.";
    LoadCoordinator, "load coordinator", Foreground, "Starts the servers of a load, and enters the table.";
    LoadServer, "PX load server", Foreground, "Makes and writes blocks of a table.";
    Coordinator, "PX coordinator", Foreground, "Divides a parallel operation among servers, and joins what they made.";
    CopyServer, "PX copy server", Foreground, "Writes a stretch of a file of records.";
    ScanServer, "PX scan server", Foreground, "Reads a table and sends its keys.";
    Serial, "serial", Foreground, "Scans, sorts and builds alone.";
    SortServer, "PX sort server", Foreground, "Sorts the rows of a key range, or pieces of a file.";
    MergeServer, "PX merge server", Foreground, "Merges runs of all servers over a key range.";
    CheckServer, "PX check server", Foreground, "Reads and verifies.";
    Check, "check", Foreground, "Holds indexes against their tables.";
    Drop, "drop", Foreground, "Removes a table or an index.";
    DatabaseWriter, "DBW", Background, "Writes dirty blocks of the buffer cache.";
    Archiver, "ARC", Background, "Copies filled log files before they are used again.";
    LogWriter, "LGWR", Background, "Writes the log when much of it has gathered, and, where it is put before other threads, for sessions when two or more wait for it.";
    CheckpointProcess, "CKPT", Background, "Begins checkpoints, and completes those whose blocks have been written.";
    SharedServer, "S00", Background, "Runs sessions that share its thread, and sends their requests.";
    ProbeServer, "probe", Foreground, "Reads beside others while an operation asks what a read costs.";
    DeviceProbe, "device probe", Probe, "Measures the device under a database.";
    CalibrationFill, "calibration fill", Probe, "Fills the file of a calibration.";
    CalibrationLoad, "calibration load", Probe, "Makes the requests of a calibration.";
    CalibrationLogFill, "calibration log fill", Probe, "Fills the log file of a calibration.";
    CalibrationLogWriter, "calibration log writer", Probe, "Makes the durable writes of a calibration.";
}

impl Role {
    /// Returns the name of session `number` among several: `PX sort server p001`. Background
    /// processes count as Oracle's do: `DBW0` to `DBW9`, then `DBWa`.
    pub fn numbered(self, number: usize) -> String {
        match self.kind() {
            SessionKind::Background => {
                let digit = u32::try_from(number).ok().and_then(|number| char::from_digit(number, 36));
                format!("{}{}", self.name(), digit.unwrap_or('z'))
            }
            SessionKind::Foreground | SessionKind::Probe => format!("{} p{number:03}", self.name()),
        }
    }
}

/// Part of a run to which a phase belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// The stage that makes the data.
    Load,
    /// The stage that measures the device.
    Calibration,
    /// The work is done that the run measures.
    Work,
    /// The stage that checks the result.
    Verification,
}

macro_rules! phases {
    ($($variant:ident, $name:literal, $operation:ident, $direction:expr, $sentence:literal;)*) => {
        /// A stretch of work with a name: a band of the I/O profile.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Phase { $(#[doc = $sentence] $variant),* }

        impl Phase {
            /// Every phase, in the order of the table.
            pub const ALL: &'static [Phase] = &[$(Phase::$variant),*];

            /// Returns the name as reports print it.
            pub const fn name(self) -> &'static str {
                match self { $(Phase::$variant => $name),* }
            }

            /// Returns the part of a run to which it belongs.
            pub const fn operation(self) -> Operation {
                match self { $(Phase::$variant => Operation::$operation),* }
            }

            /// Returns the direction of its bytes; `None` if they move both ways.
            pub const fn direction(self) -> Option<Direction> {
                match self { $(Phase::$variant => $direction),* }
            }
        }
    };
}

const READ: Option<Direction> = Some(Direction::Read);
const WRITE: Option<Direction> = Some(Direction::Write);

phases! {
    Import, "import", Work, WRITE, "Rows are inserted by transactions.";
    IndexCreation, "index creation", Load, WRITE, "An index is made of rows that transactions have inserted.";
    Load, "load", Load, WRITE, "A table is loaded, or a file of records made.";
    CreateAsSelect, "create table as select", Work, WRITE, "A table is made of the rows of another one.";
    TableCopy, "table copy", Work, None, "Rows of a table are read, and loaded into another one.";
    Backup, "backup", Work, WRITE, "The files of a tablespace are copied, because no redo has what was loaded into it.";
    DeviceProbe, "device probe", Calibration, READ, "The device is measured, beside the work.";
    MixBefore, "device mix before", Calibration, None, "The device's own rate for the mix of reads and writes that is asked for.";
    MixAfter, "device mix after", Calibration, None, "Its rate for the mix that the work had.";
    RandomIo, "random reads and updates", Work, None, "Rows are read and updated by index, a block each.";
    UsersBefore, "users before the build", Work, READ, "Users read through the buffer cache, without the build.";
    UsersAfter, "users after the build", Work, READ, "Users read on, when the build has ended.";
    Sample, "sample", Work, READ, "Some blocks are read to divide the keys among servers.";
    TableScan, "table scan", Work, READ, "The table is read.";
    FileScan, "file scan", Work, READ, "A file of lines is read, and each line sent to the server that sorts its range.";
    RunGeneration, "run generation", Work, WRITE, "Sorted runs are made from the input.";
    ReadCost, "probe of read cost", Work, READ, "The device is measured for the plan of a merge.";
    IntermediateMerges, "intermediate merges", Work, None, "Runs are merged into longer runs.";
    MergeAndIndex, "merge and index", Work, None, "Runs are merged, and the index is built of them.";
    Division, "division of the merge", Work, READ, "The merge is divided among servers.";
    MergeAndWrite, "merge and write", Work, None, "Runs are merged into the output.";
    Join, "join", Work, WRITE, "The servers' parts are joined.";
    Verify, "verify", Verification, READ, "Indexes are held against their tables.";
    VerifyRecords, "verify records", Verification, READ, "A file of records is read and judged.";
}
