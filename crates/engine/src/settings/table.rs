//! The table of settings.
//!
//! A row is `Setting field: Type, TakesEffect Domain, default, help`, in the block of its group. It
//! makes a name ([`Setting`]), a row for lists, help and messages ([`SettingRow`]), and a typed
//! field: `settings.cache.db_cache_size`.

use super::value::{
    AUTO_TRUE_FALSE, BlockChecksum, FilesystemioOptions, HighPriority, IoMethod, LogFileIo, OFF_ON,
    SyncMethod, TRUE_FALSE, Value,
};
use plumb_units::Domain::{self, AutoOrCount, Count, Path, PowerOfTwo, Size, Word};
use plumb_units::{BlockSize, Bytes, TakesEffect};
use std::path::PathBuf;

/// A group of related settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Files, extents and blocks of a database.
    Storage,
    /// The buffer cache and its writers.
    Cache,
    /// Method and path of requests to files.
    Io,
    /// Memory of sorts and their write path.
    Sort,
    /// Number of servers in an operation.
    Parallel,
    /// Files and writes of the log.
    Log,
    /// Figures that are recorded of a run.
    Statistics,
    /// Tests of the program itself: no list shows them, and a record has them
    /// only if they were set.
    Debug,
}

impl Group {
    /// Returns the name as lists and pages print it.
    pub const fn name(self) -> &'static str {
        match self {
            Group::Storage => "storage",
            Group::Cache => "cache",
            Group::Io => "io",
            Group::Sort => "sort",
            Group::Parallel => "parallel",
            Group::Log => "log",
            Group::Statistics => "statistics",
            Group::Debug => "debug",
        }
    }

    /// True if its settings matter only for files on a disk, not for files in memory.
    pub const fn is_about_files(self) -> bool {
        matches!(self, Group::Storage | Group::Cache | Group::Io)
    }
}

/// A row of the table of settings.
#[derive(Debug)]
pub struct SettingRow {
    /// Name, Oracle's if Oracle has one.
    pub name: &'static str,
    /// Group that it belongs to.
    pub group: Group,
    /// Moment at which a new value takes effect.
    pub takes_effect: TakesEffect,
    /// Values that the setting takes.
    pub domain: Domain,
    /// Default value, as it would be written.
    pub default: &'static str,
    /// Help text of one line.
    pub help: &'static str,
}

impl SettingRow {
    /// True if lists leave it out because it is for tests of the program itself.
    pub fn is_hidden(&self) -> bool {
        self.group == Group::Debug
    }
}

/// Makes the typed value of a text that the domain of its setting admits.
fn admitted<T: Value>(setting: Setting, text: &str) -> T {
    T::of(text).unwrap_or_else(|| panic!("the domain of {} admits {text:?}", setting.row().name))
}

macro_rules! settings {
    ($($about:ident $group:ident: $values:ident {
        $($variant:ident $name:ident: $type:ty,
            $takes_effect:ident $domain:expr, $default:literal, $help:literal;)*
    })*) => {
        /// A setting, named as in messages.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Setting { $($(#[doc = $help] $variant,)*)* }

        impl Setting {
            /// Every setting, in the order of the table.
            pub const ALL: &'static [Setting] = &[$($(Setting::$variant,)*)*];

            /// Returns the setting's row of the table.
            #[must_use]
            pub const fn row(self) -> &'static SettingRow {
                match self { $($(Setting::$variant => &SettingRow {
                    name: stringify!($name),
                    group: Group::$about,
                    takes_effect: TakesEffect::$takes_effect,
                    domain: $domain,
                    default: $default,
                    help: $help,
                },)*)* }
            }
        }

        $(
            #[doc = concat!("The settings of the group `", stringify!($group), "`.")]
            #[derive(Debug, Clone)]
            pub struct $values { $(#[doc = $help] pub $name: $type,)* }
        )*

        /// A typed value for every setting.
        #[derive(Debug, Clone)]
        pub struct Values { $(#[doc = concat!("The group `", stringify!($group), "`.")] pub $group: $values,)* }

        impl Default for Values {
            fn default() -> Values {
                Values { $($group: $values { $($name: admitted(Setting::$variant, $default),)* },)* }
            }
        }

        impl Values {
            pub(super) fn take(&mut self, setting: Setting, text: &str) {
                match setting { $($(Setting::$variant => self.$group.$name = admitted(setting, text),)*)* }
            }
        }
    };
}

const K: u64 = Bytes::K;
const M: u64 = Bytes::M;
const G: u64 = Bytes::G;

settings! {
    Storage storage: StorageSettings {
        DbBlockSize db_block_size: BlockSize, Creation Domain::BlockSize, "8K", "Size of a block of every tablespace made from now on.";
        DataFiles data_files: u64, Creation Count(1, 64), "2", "Data files of a tablespace; extents are allocated over them round robin.";
        ExtentSize extent_size: Bytes, Creation PowerOfTwo(256 * K, 64 * M), "1M", "Size of an extent; no request crosses its end.";
        PctFree pct_free: Option<usize>, Start AutoOrCount(0, 90), "auto", "Per cent of a block that stays free when rows are inserted; auto: 0 for direct path loads, 10 for inserts by transactions.";
    }
    Cache cache: CacheSettings {
        DbCacheSize db_cache_size: Bytes, Start Size(M, 1024 * G), "20M", "Size of the buffer cache for blocks of db_block_size.";
        Db2kCacheSize db_2k_cache_size: Bytes, Start Size(0, 1024 * G), "0", "Size of the cache for blocks of 2K, if db_block_size differs; 0: no such tables.";
        Db4kCacheSize db_4k_cache_size: Bytes, Start Size(0, 1024 * G), "0", "The same for blocks of 4K.";
        Db8kCacheSize db_8k_cache_size: Bytes, Start Size(0, 1024 * G), "0", "The same for blocks of 8K.";
        Db16kCacheSize db_16k_cache_size: Bytes, Start Size(0, 1024 * G), "0", "The same for blocks of 16K.";
        Db32kCacheSize db_32k_cache_size: Bytes, Start Size(0, 1024 * G), "0", "The same for blocks of 32K.";
        DbWriterProcesses db_writer_processes: usize, Start Count(1, 32), "1", "Database writers of each cache that write its dirty blocks.";
        DbBlockWriteBatch db_block_write_batch: usize, Start Count(1, 4096), "512", "Most blocks a database writer takes at once.";
        DbBlockPrefetchLimit db_block_prefetch_limit: usize, Start Count(0, 256), "0", "Blocks of rows that a read of an index range prefetches at once; 0: each block is read when it is needed.";
        DbBlockChecksum db_block_checksum: BlockChecksum, Start Word(BlockChecksum::WORDS), "typical", "Part of a block that is verified when a session reads it into the buffer cache: typical: header and checksum; off: only the header. Other reads always verify the checksum.";
    }
    Io io: IoSettings {
        FilesystemioOptions filesystemio_options: FilesystemioOptions, Start Word(FilesystemioOptions::WORDS), "setall", "asynch: requests overlap; directio: the page cache is bypassed; setall: both.";
        IoMethod io_method: Option<IoMethod>, Start Word(IoMethod::AUTO_OR_WORDS), "auto", "Method by which requests reach the kernel; null keeps the files in memory to measure the engine alone.";
        IoQueueDepth io_queue_depth: usize, Start Count(1, 1024), "32", "Most requests that a session has in flight on one channel; from 2 on a database writer has four times this number, at most 256.";
        SharedServers shared_servers: usize, Start Count(0, 1024), "0", "Threads that the sessions of a workload share, each with one ring; 0: each session has a thread of its own.";
        DbFileMultiblockReadCount db_file_multiblock_read_count: u32, Start Count(1, 4096), "64", "Blocks read by one request of a scan; at most an extent.";
        ScanReadAhead scan_read_ahead: usize, Start Count(1, 64), "16", "Requests a scan server keeps in flight; by default at most 16M of them, or two.";
        SerialDirectRead serial_direct_read: bool, Start Word(TRUE_FALSE), "true", "A serial scan reads past the buffer cache, as a parallel one always does.";
    }
    Sort sort: SortSettings {
        SortAreaSize sort_area_size: Bytes, Start Size(64 * K, 1024 * G), "4M", "Memory of a sort, per sort server.";
        SortDirectWrites sort_direct_writes: Option<bool>, Start Word(AUTO_TRUE_FALSE), "auto", "true: a sort writes its runs itself; false: through the buffer cache and DBWR; auto: itself if the write buffers fit a tenth of the sort area.";
        SortWriteBuffers sort_write_buffers: u64, Start Count(2, 64), "4", "Buffers a sort server writes its runs with.";
        SortWriteBufferSize sort_write_buffer_size: Bytes, Start Size(32 * K, 4 * M), "256K", "Size of each sort write buffer, a multiple of the block size.";
        SortReadFac sort_read_fac: Option<u64>, Start AutoOrCount(1, 100_000), "auto", "Cost of reading one block over the cost of each further block of the same request; auto measures it on this device.";
    }
    Parallel parallel: ParallelSettings {
        ParallelDegree parallel_degree: Option<usize>, Start AutoOrCount(1, 64), "auto", "Servers in each set; 1 is the serial path without a table queue; auto is the number of processors.";
    }
    Log log: LogSettings {
        LogBuffer log_buffer: Bytes, Start PowerOfTwo(16 * K, G), "8M", "Memory in which log records gather until they are written.";
        LogFileSize log_file_size: Bytes, Creation Size(32 * K, 1024 * G), "64M", "Size of each log file made from now on; a transaction may log less than all of them hold.";
        LogFileGroups log_file_groups: u32, Creation Count(2, 64), "3", "Log files made from now on; they are written in turn.";
        LogFileMembers log_file_members: u32, Creation Count(1, 2), "1", "Members of each log file made from now on; the second ones lie in log_mirror_path.";
        LogPath log_path: PathBuf, Creation Path, "", "Directory of the log files made from now on; an absolute one must exist, a relative one is made in the database's directory; empty: that directory itself.";
        LogMirrorPath log_mirror_path: PathBuf, Creation Path, "mirror", "Directory of the second members of log files, as log_path for the first ones.";
        LogCheckpointInterval log_checkpoint_interval: Bytes, Start Size(0, 1024 * G), "0", "Most bytes of log that a recovery has to redo; 0: as many as leave a log file free when the next one is needed.";
        LogSyncMethod log_sync_method: Option<SyncMethod>, Start Word(SyncMethod::AUTO_OR_WORDS), "auto", "Method that makes a log write durable: a call after it, or the write itself (O_DSYNC, O_SYNC); auto measures them when the log is opened, and is open_datasync if sessions share threads.";
        LogFileIo log_file_io: Option<LogFileIo>, Start Word(LogFileIo::AUTO_OR_WORDS), "auto", "Access to the log files: past the page cache or through it; auto: as filesystemio_options says.";
        HighPriorityProcesses high_priority_processes: Option<HighPriority>, Start Word(HighPriority::AUTO_OR_WORDS), "auto", "lgwr: LGWR runs before all other threads of the machine (nice -20) and writes the log for sessions when two or more wait; auto: lgwr if the system permits it; none: LGWR has the priority of the sessions, which write for each other.";
        ArchiveLogMode archive_log_mode: bool, Start Word(OFF_ON), "off", "on: a filled log file is copied to archive_log_dest before it is used again.";
        ArchiveLogDest archive_log_dest: PathBuf, Start Path, "", "Directory for copies of filled log files; a relative one is made in the database's directory.";
        ForceLogging force_logging: bool, Start Word(OFF_ON), "off", "on: a direct path load logs its blocks; off: only a load that asks for it does, with archive_log_mode=on.";
    }
    Statistics statistics: StatisticsSettings {
        SnapshotInterval snapshot_interval: u64, Start Count(0, 86_400_000), "0", "Milliseconds between two snapshots of a run, any two of which make a report; 0: only at its ends.";
    }
    Debug debug: DebugSettings {
        DebugRequestDelay debug_request_delay: u64, Start Count(0, 1_000_000_000), "0", "Nanoseconds that a session sleeps before each request, on average, within the request's wait.";
        DebugCacheBlocks debug_cache_blocks: u64, Start Count(0, 1_000_000_000), "0", "Blocks of the buffer cache, instead of db_cache_size; 0: db_cache_size decides.";
        DebugExtentBlocks debug_extent_blocks: u64, Creation Count(0, 4096), "0", "Blocks of an extent, a power of two, instead of extent_size; 0: extent_size decides.";
        DebugTraceRequests debug_trace_requests: u64, Start Count(0, 1_000_000_000), "0", "Requests of the measured work that a trace keeps, in pieces of 4,096 a session; 0 for no trace.";
        DebugThreadLimit debug_thread_limit: usize, Start Count(0, 100_000), "0", "Threads of the instance that may live at once, as under a limit of the system; 0 for any number.";
        DebugRingLimit debug_ring_limit: usize, Start Count(0, 100_000), "0", "Rings of the instance that may be open at once, as under a limit of the system; 0 for any number.";
    }
}
