//! The settings: one row each gives name, what it is about, when it takes effect, unit, range, default and help.
//!
//! From a row follow parsing, `plumb list settings`, docs/settings.md and the
//! report's parameter section. A value is checked when it is set; what several
//! settings imply together is checked once, when the instance starts.
//!
//! Those of the group `debug` are for tests of the program itself: no list shows them, and a
//! record has them only where they were set.

use crate::EngineError;
use plumb_units::{BlockSize, Bytes, TakesEffect, nearest, parse_count, parse_size};
use std::fmt::Write as _;
use std::path::Path;

/// What a setting is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Files, extents and blocks of a database.
    Storage,
    /// The buffer cache and its writers.
    Cache,
    /// How requests reach the files.
    Io,
    /// The memory of sorts and their way to the disk.
    Sort,
    /// Servers.
    Parallel,
    /// The log of transactions.
    Log,
    /// What is recorded of a run.
    Statistics,
    /// Tests of the program itself: no list shows them, and a record has them only where they were set.
    Debug,
}

impl Group {
    /// The name as lists and pages print it.
    #[must_use]
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

    /// Whether its settings show in files alone, so that files in memory say nothing of them.
    #[must_use]
    pub const fn is_about_files(self) -> bool {
        matches!(self, Group::Storage | Group::Cache | Group::Io)
    }
}

/// How a setting's value is written, and which values it takes.
#[derive(Debug, Clone, Copy)]
pub enum Domain {
    /// A size in bytes within a range, both ends included.
    Size(u64, u64),
    /// A size in bytes within a range that is a power of two.
    PowerOfTwo(u64, u64),
    /// A whole number within a range, both ends included.
    Count(u64, u64),
    /// One of these words.
    Word(&'static [&'static str]),
    /// `auto`, or a whole number within a range.
    AutoOrCount(u64, u64),
    /// One of the block sizes.
    BlockSize,
    /// A path, or nothing.
    Path,
}

/// One row of the table.
#[derive(Debug)]
pub struct SettingRow {
    /// The name, Oracle's where Oracle has one.
    pub name: &'static str,
    /// What it belongs to.
    pub group: Group,
    /// When another value takes effect.
    pub takes_effect: TakesEffect,
    /// Which values it takes.
    pub domain: Domain,
    /// Its default, as it would be written.
    pub default: &'static str,
    /// One line of help.
    pub help: &'static str,
}

impl SettingRow {
    /// Whether lists leave it out: it is for tests of the program itself.
    #[must_use]
    pub fn is_hidden(&self) -> bool {
        self.group == Group::Debug
    }
}

macro_rules! settings {
    ($($variant:ident $name:ident $group:ident $takes_effect:ident $domain:expr, $default:literal, $help:literal;)*) => {
        /// A setting, by name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Setting { $(#[doc = $help] $variant),* }

        impl Setting {
            /// Every setting, in the order of the table.
            pub const ALL: &'static [Setting] = &[$(Setting::$variant),*];

            /// Its row of the table.
            #[must_use]
            pub const fn row(self) -> &'static SettingRow {
                match self { $(Setting::$variant => &SettingRow {
                    name: stringify!($name), group: Group::$group, takes_effect: TakesEffect::$takes_effect, domain: $domain, default: $default, help: $help,
                }),* }
            }
        }
    };
}

use Domain::{AutoOrCount, Count, PowerOfTwo, Size, Word};
const K: u64 = Bytes::K;
const M: u64 = Bytes::M;
const G: u64 = Bytes::G;

settings! {
    DbBlockSize db_block_size Storage Creation Domain::BlockSize, "8K", "Size of a block of every tablespace made from now on.";
    DataFiles data_files Storage Creation Count(1, 64), "2", "Data files of a tablespace; extents go over them round robin.";
    ExtentSize extent_size Storage Creation PowerOfTwo(256 * K, 64 * M), "1M", "Size of an extent; no request crosses its end.";
    PctFree pct_free Storage Start AutoOrCount(0, 90), "auto", "Per cent of a block that stay free when rows are put into it; auto: 0 for direct path loads, 10 where transactions insert.";
    DbCacheSize db_cache_size Cache Start Size(M, 1024 * G), "20M", "Size of the buffer cache for blocks of db_block_size.";
    Db2kCacheSize db_2k_cache_size Cache Start Size(0, 1024 * G), "0", "Size of the cache for blocks of 2K, where db_block_size is another one; 0: none, and no table can be in blocks of 2K.";
    Db4kCacheSize db_4k_cache_size Cache Start Size(0, 1024 * G), "0", "Size of the cache for blocks of 4K, where db_block_size is another one; 0: none.";
    Db8kCacheSize db_8k_cache_size Cache Start Size(0, 1024 * G), "0", "Size of the cache for blocks of 8K, where db_block_size is another one; 0: none.";
    Db16kCacheSize db_16k_cache_size Cache Start Size(0, 1024 * G), "0", "Size of the cache for blocks of 16K, where db_block_size is another one; 0: none.";
    Db32kCacheSize db_32k_cache_size Cache Start Size(0, 1024 * G), "0", "Size of the cache for blocks of 32K, where db_block_size is another one; 0: none.";
    DbWriterProcesses db_writer_processes Cache Start Count(1, 32), "1", "Database writers of each cache that write its dirty blocks.";
    DbBlockWriteBatch db_block_write_batch Cache Start Count(1, 4096), "512", "Most blocks a database writer takes at once.";
    DbBlockPrefetchLimit db_block_prefetch_limit Cache Start Count(0, 256), "0", "Blocks of rows that a range of an index asks for at once, adjacent ones by one request; 0: each by itself when it is needed.";
    DbBlockChecksum db_block_checksum Cache Start Word(&["typical", "off"]), "typical", "What is verified of a block that a session reads into the buffer cache: typical: its header and its checksum; off: its header. Blocks are written with their checksum in either case, and scans past the cache, recovery and check always verify it.";
    FilesystemioOptions filesystemio_options Io Start Word(&["none", "asynch", "directio", "setall"]), "setall", "asynch: requests overlap; directio: the page cache is bypassed; setall: both.";
    IoMethod io_method Io Start Word(&["auto", "sync", "threads", "io_uring", "null"]), "auto", "How requests reach the kernel; one by itself is a call of the session. null keeps the files in memory to measure the engine alone.";
    IoQueueDepth io_queue_depth Io Start Count(1, 1024), "32", "Most requests a session has in flight on one channel; a database writer, which has a batch of them at hand, four times as many from 2 on, and 256 at most.";
    SharedServers shared_servers Io Start Count(0, 1024), "0", "Threads that the sessions of a workload share: each session has its thread until it waits, and the requests of all go through one ring of it; 0: each session has a thread of its own, and a request by itself is its call.";
    DbFileMultiblockReadCount db_file_multiblock_read_count Io Start Count(1, 4096), "64", "Blocks read by one request of a scan; at most an extent.";
    ScanReadAhead scan_read_ahead Io Start Count(1, 64), "16", "Requests a scan server keeps in flight.";
    SerialDirectRead serial_direct_read Io Start Word(&["true", "false"]), "true", "A serial scan reads past the buffer cache, as a parallel one always does.";
    SortAreaSize sort_area_size Sort Start Size(64 * K, 1024 * G), "4M", "Memory of a sort, per sort server: first for making runs, then for merging them.";
    SortDirectWrites sort_direct_writes Sort Start Word(&["auto", "true", "false"]), "auto", "true: a sort writes its runs itself; false: through the buffer cache and DBWR; auto: itself if the write buffers fit a tenth of the sort area, out of which they come.";
    SortWriteBuffers sort_write_buffers Sort Start Count(2, 64), "4", "Buffers a sort server writes its runs with.";
    SortWriteBufferSize sort_write_buffer_size Sort Start Size(32 * K, 4 * M), "256K", "Size of each of them, a multiple of the block size.";
    SortReadFac sort_read_fac Sort Start AutoOrCount(1, 100_000), "auto", "Cost of reading one block over the cost of each further block of the same request; auto measures it on this device.";
    ParallelDegree parallel_degree Parallel Start AutoOrCount(1, 64), "auto", "Servers in each set; 1 is the serial path without a table queue; auto is the number of processors.";
    LogBuffer log_buffer Log Start PowerOfTwo(16 * K, G), "8M", "Memory in which log records gather until they are written.";
    LogFileSize log_file_size Log Creation Size(32 * K, 1024 * G), "64M", "Size of each log file made from now on; a transaction may log less than all of them hold.";
    LogFileGroups log_file_groups Log Creation Count(2, 64), "3", "Log files made from now on; they are written in turn.";
    LogFileMembers log_file_members Log Creation Count(1, 2), "1", "Members of each log file made from now on; the second ones lie in log_mirror_path.";
    LogPath log_path Log Creation Domain::Path, "", "Directory of the log files made from now on, which exists; one that is not absolute lies in the database's directory, and is made there; empty: that directory itself.";
    LogMirrorPath log_mirror_path Log Creation Domain::Path, "mirror", "The same for second members.";
    LogCheckpointInterval log_checkpoint_interval Log Start Size(0, 1024 * G), "0", "Most bytes of log that a recovery shall have to do again: database writers follow the log as closely as it takes; 0: as many as leave a log file free when the next one is needed.";
    LogSyncMethod log_sync_method Log Start Word(&["auto", "fdatasync", "fsync", "open_datasync", "open_sync"]), "auto", "How a log write becomes durable: by a call after it, or by the write itself (O_DSYNC, O_SYNC); auto measures them when the log is opened, and is open_datasync where sessions share threads. Direct or buffered as log_file_io says.";
    LogFileIo log_file_io Log Start Word(&["auto", "direct", "buffered"]), "auto", "How the log files are reached: past the page cache or through it, whatever the data files do; auto: as filesystemio_options says.";
    HighPriorityProcesses high_priority_processes Log Start Word(&["auto", "lgwr", "none"]), "auto", "lgwr: LGWR is put before all other threads of the machine (nice -20): it writes the log for sessions when two or more wait for it, and while they fill the log buffer; auto: where the system permits it; none: it has its turn as they do, writes what has gathered while nobody waits, and sessions write for each other.";
    ArchiveLogMode archive_log_mode Log Start Word(&["off", "on"]), "off", "on: a filled log file is copied to archive_log_dest before it is used again.";
    ArchiveLogDest archive_log_dest Log Start Domain::Path, "", "Directory for copies of filled log files; one that is not absolute lies in the database's directory, and is made there.";
    ForceLogging force_logging Log Start Word(&["off", "on"]), "off", "on: a direct path load logs each of its blocks whole; off: only one that asks for it where archive_log_mode is on.";
    SnapshotInterval snapshot_interval Statistics Start Count(0, 86_400_000), "0", "Milliseconds between two snapshots while a run is measured: any two make a report; 0: only at its ends.";
    DebugRequestDelay debug_request_delay Debug Start Count(0, 1_000_000_000), "0", "Nanoseconds that a session sleeps before each request, on average, within the request's wait.";
    DebugCacheBlocks debug_cache_blocks Debug Start Count(0, 1_000_000_000), "0", "Blocks of the buffer cache, instead of db_cache_size; 0 for that.";
    DebugExtentBlocks debug_extent_blocks Debug Creation Count(0, 4096), "0", "Blocks of an extent, a power of two, instead of extent_size; 0 for that.";
    DebugTraceRequests debug_trace_requests Debug Start Count(0, 1_000_000_000), "0", "Requests of the measured work that a trace keeps, in pieces of 4,096 a session; 0 for no trace.";
    DebugThreadLimit debug_thread_limit Debug Start Count(0, 100_000), "0", "Threads of the instance that may live at once, as under a limit of the system; 0 for any number.";
    DebugRingLimit debug_ring_limit Debug Start Count(0, 100_000), "0", "Rings of the instance that may be open at once, as under a limit of the system; 0 for any number.";
}

/// Where a value came from, for messages and the report.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Origin {
    Default,
    Set(String),
}

/// A value for every setting.
#[derive(Debug, Clone)]
pub struct Settings {
    values: Vec<(String, Origin)>,
}

impl Default for Settings {
    fn default() -> Settings {
        let row = |setting: &Setting| (setting.row().default.to_string(), Origin::Default);
        Settings { values: Setting::ALL.iter().map(row).collect() }
    }
}

/// The settings of caches for blocks of other sizes, in the order of [`BlockSize::ALL`].
const SIZED_CACHES: [Setting; BlockSize::ALL.len()] = [
    Setting::Db2kCacheSize,
    Setting::Db4kCacheSize,
    Setting::Db8kCacheSize,
    Setting::Db16kCacheSize,
    Setting::Db32kCacheSize,
];

impl Setting {
    /// The size of the cache for blocks of this size, where `db_block_size` is another one.
    #[must_use]
    pub fn cache_of(block_size: BlockSize) -> Setting {
        let place = BlockSize::ALL.iter().position(|size| *size == block_size);
        SIZED_CACHES[place.expect("every size is in the list of sizes")]
    }
}

impl Settings {
    /// Sets `name` to `value`; `origin` says where that was asked for.
    ///
    /// # Errors
    /// When there is no such setting, or the value is outside its domain.
    pub fn set(&mut self, name: &str, value: &str, origin: &str) -> Result<(), EngineError> {
        let known = Setting::ALL.iter().find(|setting| setting.row().name.eq_ignore_ascii_case(name));
        let Some(setting) = known else {
            return Err(EngineError::NoSuchSetting {
                origin: origin.to_string(),
                name: name.to_string(),
                near: nearest(name, Setting::ALL.iter().map(|setting| setting.row().name)),
            });
        };
        let asked = value.trim();
        let value = match setting.row().domain {
            Domain::Path => asked.to_string(),
            _ => asked.to_ascii_lowercase(),
        };
        check(setting.row(), &value).map_err(|expected| EngineError::Setting {
            origin: origin.to_string(),
            name: setting.row().name.to_string(),
            value: asked.to_string(),
            expected,
        })?;
        self.values[*setting as usize] = (value, Origin::Set(origin.to_string()));
        Ok(())
    }

    /// Takes the value that a database was made with, unless another one was asked for. It counts
    /// as not asked for.
    pub fn adopt(&mut self, setting: Setting, made_with: u64) {
        let value = &mut self.values[setting as usize];
        if value.1 == Origin::Default {
            value.0 = made_with.to_string();
        }
    }

    /// The value as it was written.
    #[must_use]
    pub fn word(&self, setting: Setting) -> &str {
        &self.values[setting as usize].0
    }

    /// The value of a size, a count or a block size.
    ///
    /// # Panics
    /// When the setting is a word, or `auto`.
    #[must_use]
    pub fn number(&self, setting: Setting) -> u64 {
        self.optional_number(setting).expect("the table says this setting is a number")
    }

    /// The value of a count, `None` for `auto`.
    #[must_use]
    pub fn optional_number(&self, setting: Setting) -> Option<u64> {
        let word = self.word(setting);
        match setting.row().domain {
            Domain::Size(..) | Domain::PowerOfTwo(..) | Domain::BlockSize => parse_size(word).ok(),
            Domain::Count(..) | Domain::AutoOrCount(..) => parse_count(word).ok(),
            Domain::Word(_) | Domain::Path => None,
        }
    }

    /// The block size for new tablespaces.
    #[must_use]
    pub fn block_size(&self) -> BlockSize {
        BlockSize::new(self.number(Setting::DbBlockSize)).expect("checked when it was set")
    }

    /// Servers in a set that are asked for: as many as processors where none were.
    #[must_use]
    pub fn degree(&self) -> usize {
        let processors = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as u64;
        self.optional_number(Setting::ParallelDegree).unwrap_or_else(processors) as usize
    }

    /// Where the value was set; `None` for the default.
    #[must_use]
    pub fn origin(&self, setting: Setting) -> Option<&str> {
        match &self.values[setting as usize].1 {
            Origin::Default => None,
            Origin::Set(origin) => Some(origin),
        }
    }

    /// Whether somebody asked for this value, so that doing otherwise is an error.
    #[must_use]
    pub fn is_explicit(&self, setting: Setting) -> bool {
        self.origin(setting).is_some()
    }

    /// The settings that a record has: all that lists show, and hidden ones that were set.
    pub fn recorded(&self) -> impl Iterator<Item = Setting> {
        Setting::ALL
            .iter()
            .copied()
            .filter(|setting| !setting.row().is_hidden() || self.is_explicit(*setting))
    }

    /// Refuses values that contradict each other on every machine.
    ///
    /// # Errors
    /// When two settings do, with the cure.
    pub fn require_consistent(&self) -> Result<(), EngineError> {
        let options = self.word(Setting::FilesystemioOptions);
        let asked = self.word(Setting::IoMethod);
        let asynchronous = matches!(options, "asynch" | "setall");
        let why = match (asked, asynchronous) {
            ("threads" | "io_uring", false) => {
                "that option means one request at a time; set filesystemio_options to asynch or setall, or io_method to \
                 sync or auto"
            }
            ("sync", true) if self.is_explicit(Setting::FilesystemioOptions) => {
                "sync is one request at a time; set filesystemio_options to none or directio, or io_method to auto"
            }
            _ => return Ok(()),
        };
        Err(EngineError::Contradiction {
            first: format!("io_method={asked}"),
            second: format!("filesystemio_options={options}"),
            why: why.to_string(),
        })
    }

    /// Refuses threads that sessions share where a request stands in a call.
    ///
    /// # Errors
    /// When shared servers were asked for, and a method without rings.
    pub(crate) fn require_ring_to_share(&self) -> Result<(), EngineError> {
        let (servers, method) = (self.number(Setting::SharedServers), self.word(Setting::IoMethod));
        let options = self.word(Setting::FilesystemioOptions);
        let second = match (method, options) {
            ("sync" | "threads" | "null", _) => format!("io_method={method}"),
            (_, "none" | "directio") => format!("filesystemio_options={options}"),
            _ => return Ok(()),
        };
        if servers == 0 {
            return Ok(());
        }
        Err(EngineError::Contradiction {
            first: format!("shared_servers={servers}"),
            second,
            why: "a call would keep all sessions of its thread waiting; set shared_servers to 0, or let requests go through rings"
                .to_string(),
        })
    }

    /// Refuses a second cache for the blocks of the database's own size.
    ///
    /// # Errors
    /// When the setting for a cache of this size is not 0.
    pub(crate) fn require_one_cache_for(&self, block_size: BlockSize) -> Result<(), EngineError> {
        let setting = Setting::cache_of(block_size);
        if self.number(setting) == 0 {
            return Ok(());
        }
        Err(EngineError::Contradiction {
            first: format!("{}={}", setting.row().name, self.word(setting)),
            second: format!("db_block_size={block_size}"),
            why: "db_cache_size is the cache for these blocks; set that, and leave this one out".to_string(),
        })
    }

    /// Refuses a read that nobody can make: a request ends with its extent.
    ///
    /// # Errors
    /// When more blocks a request were asked for than an extent of so many has.
    pub(crate) fn require_reads_within(&self, extent_blocks: u64) -> Result<(), EngineError> {
        let asked = self.number(Setting::DbFileMultiblockReadCount);
        if asked <= extent_blocks || !self.is_explicit(Setting::DbFileMultiblockReadCount) {
            return Ok(());
        }
        Err(EngineError::Contradiction {
            first: format!("db_file_multiblock_read_count={asked}"),
            second: format!("an extent of {extent_blocks} blocks"),
            why: format!(
                "a request ends with its extent; set {extent_blocks} at most, or make the database with a larger \
                 extent_size"
            ),
        })
    }

    /// The directory for copies of log files; none where they are not copied.
    ///
    /// # Errors
    /// When they are, and none is named.
    pub fn archive_dest(&self) -> Result<Option<&Path>, EngineError> {
        match (self.word(Setting::ArchiveLogMode), self.word(Setting::ArchiveLogDest)) {
            ("on", "") => {
                let why = "log files must be copied somewhere; name a directory";
                Err(no_copies("an empty archive_log_dest".to_string(), why))
            }
            ("on", named) => Ok(Some(Path::new(named))),
            _ => Ok(None),
        }
    }

    /// Refuses copies of log files that have nowhere to go: it is found here, and not when a file has filled. A directory within the
    /// database's is made.
    ///
    /// # Errors
    /// As [`Settings::archive_dest`], and when it is not there.
    pub fn require_archive_dest(&self) -> Result<(), EngineError> {
        match self.archive_dest()? {
            Some(directory) if directory.is_absolute() && !directory.is_dir() => {
                let why =
                    "there is no such directory for copies of log files; make it first, or name another one";
                Err(no_copies(format!("archive_log_dest={}", directory.display()), why))
            }
            _ => Ok(()),
        }
    }

    /// Every setting of a record with its value, one a line: what names a configuration.
    #[must_use]
    pub fn canonical(&self) -> String {
        let mut text = String::new();
        for setting in self.recorded() {
            let _ = writeln!(text, "{}={}", setting.row().name, self.word(setting));
        }
        text
    }
}

fn no_copies(second: String, why: &str) -> EngineError {
    EngineError::Contradiction { first: "archive_log_mode=on".to_string(), second, why: why.to_string() }
}

/// The range of a row as a sentence's end.
#[must_use]
pub fn describe(domain: Domain) -> String {
    let size = |bytes: u64| Bytes(bytes).as_setting();
    match domain {
        Domain::Size(least, most) => format!("a size from {} to {}", size(least), size(most)),
        Domain::PowerOfTwo(least, most) => {
            format!("a power of two from {} to {}", size(least), size(most))
        }
        Domain::Count(least, most) => format!("a number from {least} to {most}"),
        Domain::Word(words) => format!("one of {}", words.join(", ")),
        Domain::AutoOrCount(least, most) => format!("auto, or a number from {least} to {most}"),
        Domain::BlockSize => "one of 2K, 4K, 8K, 16K, 32K".to_string(),
        Domain::Path => "a path, or nothing".to_string(),
    }
}

fn check(row: &SettingRow, value: &str) -> Result<(), String> {
    let in_range = match row.domain {
        Domain::Size(least, most) => parse_size(value).is_ok_and(|v| (least..=most).contains(&v)),
        Domain::PowerOfTwo(least, most) => {
            parse_size(value).is_ok_and(|v| (least..=most).contains(&v) && v.is_power_of_two())
        }
        Domain::Count(least, most) => parse_count(value).is_ok_and(|v| (least..=most).contains(&v)),
        Domain::AutoOrCount(least, most) => {
            value == "auto" || parse_count(value).is_ok_and(|v| (least..=most).contains(&v))
        }
        Domain::Word(words) => words.contains(&value),
        Domain::BlockSize => parse_size(value).is_ok_and(|v| BlockSize::new(v).is_some()),
        // It goes into records as one line.
        Domain::Path => !value.contains(char::is_control),
    };
    if in_range { Ok(()) } else { Err(format!("it takes {}", describe(row.domain))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_in_its_own_range() {
        for setting in Setting::ALL {
            let row = setting.row();
            assert_eq!(check(row, row.default), Ok(()), "{}", row.name);
            assert!(row.help.ends_with('.'), "{}", row.name);
        }
    }

    fn refused(name: &str, value: &str) -> String {
        Settings::default().set(name, value, "--set").expect_err("refused").to_string()
    }

    #[test]
    fn what_is_refused_names_setting_value_range_and_place() {
        assert_eq!(
            refused("sort_area_size", "1K"),
            "--set: sort_area_size = 1K is out of range: it takes a size from 64K to 1T"
        );
        assert_eq!(
            refused("io_method", "aio"),
            "--set: io_method = aio is out of range: it takes one of auto, sync, threads, io_uring, null"
        );
        assert_eq!(
            refused("sort_area", "1M"),
            "--set: there is no setting sort_area (did you mean sort_area_size?)"
        );
        assert_eq!(refused("foo", "1"), "--set: there is no setting foo");
        assert_eq!(
            refused("sort_area_sise", "1M"),
            "--set: there is no setting sort_area_sise (did you mean sort_area_size?)"
        );
    }

    #[test]
    fn a_hidden_setting_is_recorded_only_where_it_was_set() {
        let mut settings = Settings::default();
        assert!(!settings.canonical().contains("debug"));
        settings.set("debug_request_delay", "7", "--set").expect("in range");
        assert!(settings.canonical().ends_with("debug_request_delay=7\n"));
    }

    #[test]
    fn five_terabytes_are_five_thousand_gigabytes_and_both_in_range() {
        let mut settings = Settings::default();
        settings.set("db_cache_size", "1T", "--set").expect("in range");
        assert_eq!(settings.number(Setting::DbCacheSize), 1 << 40);
        settings.set("DB_CACHE_SIZE", "1024G", "--set").expect("in range");
        assert_eq!(settings.number(Setting::DbCacheSize), 1 << 40);
        assert_eq!(settings.origin(Setting::DbCacheSize), Some("--set"));
    }
}
