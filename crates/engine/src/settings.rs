//! The settings: a row each in [`table`], which gives parsing, lists, the parameter section of
//! reports and the typed fields.
//!
//! ```text
//! text  --set, study file ──> domain of the row ──> texts   for records, messages, study files
//!                                               └─> values  settings.cache.db_cache_size
//! ```
//! A value is kept twice. The text stays as it was written, because records name it and a study
//! file returns it. The typed value is what code reads: an enum for words, `None` for `auto`,
//! [`Bytes`] for sizes. [`Settings::set`] and [`Settings::adopt`] write both, so they agree. No
//! code compares the text or parses it again.
//!
//! A decision that several places share is a method here or of the value
//! ([`Settings::scans_directly`], [`FilesystemioOptions::is_direct`]). Rules over several settings
//! are checked once, when the instance starts.
//!
//! Rejected: one map of names to values of an enum of kinds. Each reader would match the kind that
//! the table has fixed already.
//!
//! Settings of the group `debug` are for tests of the program itself: no list shows them, and a
//! record has them only if they were set.

mod table;
mod value;

pub use plumb_units::Domain;
pub use table::{
    CacheSettings, DebugSettings, Group, IoSettings, LogSettings, ParallelSettings, Setting, SettingRow,
    SortSettings, StatisticsSettings, StorageSettings, Values,
};
pub use value::{BlockChecksum, FilesystemioOptions, HighPriority, IoMethod, LogFileIo, SyncMethod};

use crate::EngineError;
use plumb_units::{BlockSize, Bytes, nearest};
use std::fmt::Write as _;
use std::ops::Deref;
use std::path::Path;

/// Place that a value came from, for messages and the report.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Origin {
    Default,
    Set(String),
}

/// A value for every setting.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Values in the order of the table, as they were written.
    texts: Vec<(String, Origin)>,
    values: Values,
}

impl Default for Settings {
    fn default() -> Settings {
        let row = |setting: &Setting| (setting.row().default.to_string(), Origin::Default);
        Settings { texts: Setting::ALL.iter().map(row).collect(), values: Values::default() }
    }
}

/// Typed values are read as fields; only [`Settings::set`] and [`Settings::adopt`] write them.
impl Deref for Settings {
    type Target = Values;

    fn deref(&self) -> &Values {
        &self.values
    }
}

/// Bytes that a scan server keeps in flight by default, at most.
const READ_AHEAD_BYTES: u64 = 16 * Bytes::M;

type SizedCache = (Setting, fn(&CacheSettings) -> Bytes);

/// Settings of the caches for other block sizes, in the order of [`BlockSize::ALL`].
const SIZED_CACHES: [SizedCache; BlockSize::ALL.len()] = [
    (Setting::Db2kCacheSize, |cache| cache.db_2k_cache_size),
    (Setting::Db4kCacheSize, |cache| cache.db_4k_cache_size),
    (Setting::Db8kCacheSize, |cache| cache.db_8k_cache_size),
    (Setting::Db16kCacheSize, |cache| cache.db_16k_cache_size),
    (Setting::Db32kCacheSize, |cache| cache.db_32k_cache_size),
];

fn sized_cache(block_size: BlockSize) -> SizedCache {
    let place = BlockSize::ALL.iter().position(|size| *size == block_size);
    SIZED_CACHES[place.expect("every size is in the list of sizes")]
}

impl Setting {
    /// Returns the setting of the cache for blocks of this size, if `db_block_size` is another one.
    pub fn cache_of(block_size: BlockSize) -> Setting {
        sized_cache(block_size).0
    }
}

/// Says by which end of its range a size or a number is too large; empty for another value.
fn beyond(setting: Setting, asked: &str) -> String {
    let domain = setting.row().domain;
    let (most, shown) = match domain {
        Domain::Size(_, most) | Domain::PowerOfTwo(_, most) => (most, Bytes(most).as_setting()),
        Domain::Count(_, most) | Domain::AutoOrCount(_, most) => (most, most.to_string()),
        _ => return String::new(),
    };
    let is_beyond = domain.number(asked).is_some_and(|number| number > most);
    if is_beyond { format!("; it is above the upper end, {shown}") } else { String::new() }
}

impl Settings {
    /// Sets `name` to `value`; `origin` names the place that asked for it, for messages.
    ///
    /// # Errors
    /// If there is no such setting, or the value is outside its domain.
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
        if !setting.row().domain.admits(&value) {
            return Err(EngineError::Setting {
                origin: origin.to_string(),
                name: setting.row().name.to_string(),
                value: asked.to_string(),
                expected: format!("it takes {}{}", setting.row().domain.describe(), beyond(*setting, asked)),
            });
        }
        self.values.take(*setting, &value);
        self.texts[*setting as usize] = (value, Origin::Set(origin.to_string()));
        Ok(())
    }

    /// Takes the value that a database was made with, or that follows from other settings, unless
    /// one was set explicitly. The setting does not become explicit.
    pub fn adopt(&mut self, setting: Setting, made_with: u64) {
        let text = &mut self.texts[setting as usize];
        if text.1 == Origin::Default {
            text.0 = made_with.to_string();
            self.values.take(setting, &text.0);
        }
    }

    /// Lowers the default number of reads ahead where requests are large, so that those of a scan
    /// server have 16M or two requests. A server's buffers are new memory, which costs more time
    /// than it saves: with 16 requests of 8M a copy took three times as long.
    pub(crate) fn adopt_read_ahead(&mut self, block_size: BlockSize) {
        let request = u64::from(self.io.db_file_multiblock_read_count) * block_size.bytes() as u64;
        let fitting = (READ_AHEAD_BYTES / request).max(2);
        self.adopt(Setting::ScanReadAhead, fitting.min(self.io.scan_read_ahead as u64));
    }

    /// Returns the value as it was written.
    pub fn word(&self, setting: Setting) -> &str {
        &self.texts[setting as usize].0
    }

    /// Returns the value of a size, a count or a block size.
    ///
    /// # Panics
    /// If the setting is a word, or `auto`.
    pub fn number(&self, setting: Setting) -> u64 {
        self.optional_number(setting).expect("the table says this setting is a number")
    }

    /// Returns the value of a count; `None` for `auto`.
    pub fn optional_number(&self, setting: Setting) -> Option<u64> {
        setting.row().domain.number(self.word(setting))
    }

    /// Returns the block size for new tablespaces.
    pub fn block_size(&self) -> BlockSize {
        self.storage.db_block_size
    }

    /// Returns the bytes of an extent: a power of two, and at least eight blocks.
    pub fn extent_bytes(&self) -> u64 {
        let block_bytes = self.block_size().bytes() as u64;
        let asked = self.debug.debug_extent_blocks;
        if asked > 0 {
            return (asked * block_bytes).next_power_of_two();
        }
        let least = 8 * block_bytes;
        self.storage.extent_size.0.max(least).next_power_of_two()
    }

    /// Returns the servers of a set: `parallel_degree`, or one for each processor if it is `auto`.
    pub fn degree(&self) -> usize {
        let processors = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        self.parallel.parallel_degree.unwrap_or_else(processors)
    }

    /// True if scans by `degree` servers read past the buffer cache: all parallel scans, and
    /// serial ones as `serial_direct_read` says.
    pub fn scans_directly(&self, degree: usize) -> bool {
        degree > 1 || self.io.serial_direct_read
    }

    /// Returns the size of the cache for blocks of a size, in a database whose own size is `own`;
    /// 0 if there is none.
    pub(crate) fn cache_size(&self, block_size: BlockSize, own: BlockSize) -> Bytes {
        if block_size == own { self.cache.db_cache_size } else { sized_cache(block_size).1(&self.cache) }
    }

    /// Returns the place where the value was set; `None` for the default.
    pub fn origin(&self, setting: Setting) -> Option<&str> {
        match &self.texts[setting as usize].1 {
            Origin::Default => None,
            Origin::Set(origin) => Some(origin),
        }
    }

    /// True if the value was set explicitly, so that replacing it would be an error.
    pub fn is_explicit(&self, setting: Setting) -> bool {
        self.origin(setting).is_some()
    }

    /// Returns the settings of a record: all that lists show, and hidden ones that were set.
    pub fn recorded(&self) -> impl Iterator<Item = Setting> {
        Setting::ALL
            .iter()
            .copied()
            .filter(|setting| !setting.row().is_hidden() || self.is_explicit(*setting))
    }

    /// Rejects values that contradict each other on every machine.
    ///
    /// # Errors
    /// If two settings contradict each other; the error has the cure.
    pub fn require_consistent(&self) -> Result<(), EngineError> {
        let options = self.io.filesystemio_options;
        let why = match (self.io.io_method, options.is_asynchronous()) {
            (Some(IoMethod::Threads | IoMethod::IoUring), false) => {
                "that option means one request at a time; set filesystemio_options to asynch or setall, or io_method to \
                 sync or auto"
            }
            (Some(IoMethod::Sync), true) if self.is_explicit(Setting::FilesystemioOptions) => {
                "sync is one request at a time; set filesystemio_options to none or directio, or io_method to auto"
            }
            _ => return Ok(()),
        };
        Err(EngineError::Contradiction {
            first: self.assigned(Setting::IoMethod),
            second: self.assigned(Setting::FilesystemioOptions),
            why: why.to_string(),
        })
    }

    /// Returns the setting with its value, as a user types it.
    pub(crate) fn assigned(&self, setting: Setting) -> String {
        format!("{}={}", setting.row().name, self.word(setting))
    }

    /// Rejects shared servers with a method whose requests block the thread.
    ///
    /// # Errors
    /// If shared servers are set together with a method without rings.
    pub(crate) fn require_ring_to_share(&self) -> Result<(), EngineError> {
        let second = match self.io.io_method {
            Some(IoMethod::Sync | IoMethod::Threads | IoMethod::Null) => Setting::IoMethod,
            _ if !self.io.filesystemio_options.is_asynchronous() => Setting::FilesystemioOptions,
            _ => return Ok(()),
        };
        if self.io.shared_servers == 0 {
            return Ok(());
        }
        Err(EngineError::Contradiction {
            first: self.assigned(Setting::SharedServers),
            second: self.assigned(second),
            why: "a call would keep all sessions of its thread waiting; set shared_servers to 0, or let requests go through rings"
                .to_string(),
        })
    }

    /// Rejects a second cache for blocks of the database's own size.
    ///
    /// # Errors
    /// If the setting for a cache of this size is not 0.
    pub(crate) fn require_one_cache_for(&self, block_size: BlockSize) -> Result<(), EngineError> {
        let (setting, size) = sized_cache(block_size);
        if size(&self.cache) == Bytes(0) {
            return Ok(());
        }
        Err(EngineError::Contradiction {
            first: self.assigned(setting),
            second: format!("db_block_size={block_size}"),
            why: "db_cache_size is the cache for these blocks; set that, and leave this one out".to_string(),
        })
    }

    /// Rejects reads longer than an extent, because a request ends with its extent.
    ///
    /// # Errors
    /// If an explicit `db_file_multiblock_read_count` exceeds `extent_blocks`.
    pub(crate) fn require_reads_within(&self, extent_blocks: u64) -> Result<(), EngineError> {
        let asked = u64::from(self.io.db_file_multiblock_read_count);
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

    /// Returns the directory for copies of log files; `None` if they are not copied.
    ///
    /// # Errors
    /// If they are copied and no directory is set.
    pub fn archive_dest(&self) -> Result<Option<&Path>, EngineError> {
        let named = &*self.log.archive_log_dest;
        match self.log.archive_log_mode {
            true if named.as_os_str().is_empty() => {
                let why = "log files must be copied somewhere; name a directory";
                Err(no_copies("an empty archive_log_dest".to_string(), why))
            }
            true => Ok(Some(named)),
            false => Ok(None),
        }
    }

    /// Rejects a missing directory for copies of log files now, rather than when a file has filled.
    /// A directory within the database's is made later.
    ///
    /// # Errors
    /// The same errors as [`Settings::archive_dest`], or a missing absolute directory.
    pub fn require_archive_dest(&self) -> Result<(), EngineError> {
        match self.archive_dest()? {
            Some(directory) if directory.is_absolute() && !directory.is_dir() => {
                let why =
                    "there is no such directory for copies of log files; make it first, or name another one";
                Err(no_copies(self.assigned(Setting::ArchiveLogDest), why))
            }
            _ => Ok(()),
        }
    }

    /// Returns every setting of a record with its value, one a line; it identifies a configuration.
    pub fn canonical(&self) -> String {
        let mut text = String::new();
        for setting in self.recorded() {
            let _ = writeln!(text, "{}", self.assigned(setting));
        }
        text
    }
}

fn no_copies(second: String, why: &str) -> EngineError {
    EngineError::Contradiction { first: "archive_log_mode=on".to_string(), second, why: why.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_in_its_own_range() {
        for setting in Setting::ALL {
            let row = setting.row();
            assert!(row.domain.admits(row.default), "{}", row.name);
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
        for most in ["5T", "5120G", "5497558138880"] {
            assert_eq!(
                refused("sort_area_size", most),
                format!(
                    "--set: sort_area_size = {most} is out of range: it takes a size from 64K to 1T; it is above the \
                     upper end, 1T"
                )
            );
        }
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

    /// Checks that each word of a domain has a typed value.
    #[test]
    fn every_word_of_a_domain_is_a_value() {
        let mut settings = Settings::default();
        for setting in Setting::ALL {
            let Domain::Word(words) = setting.row().domain else { continue };
            for word in words {
                settings.set(setting.row().name, word, "--set").expect("in its domain");
                assert_eq!(settings.word(*setting), *word);
            }
        }
        assert!(settings.log.archive_log_mode, "its last word is on");
        assert_eq!(settings.log.log_sync_method, Some(SyncMethod::OpenSync));
        assert!(!settings.scans_directly(1), "its last word is false");
        assert!(settings.scans_directly(2), "a parallel scan reads past the cache");
        settings.set("db_4k_cache_size", "2M", "--set").expect("in range");
        let [_, small, own, ..] = BlockSize::ALL;
        assert_eq!(settings.cache_size(small, own), Bytes(2 << 20));
        assert_eq!(settings.cache_size(own, own), Bytes(20 << 20));
        for (blocks, asked, expected) in
            [("64", None, 16), ("256", None, 8), ("1024", None, 2), ("4096", None, 2), ("1024", Some("9"), 9)]
        {
            let mut settings = Settings::default();
            settings.set("db_file_multiblock_read_count", blocks, "a test").expect("a number");
            if let Some(asked) = asked {
                settings.set("scan_read_ahead", asked, "a test").expect("a number");
            }
            settings.adopt_read_ahead(settings.block_size());
            assert_eq!(settings.io.scan_read_ahead, expected, "{blocks} blocks");
        }
        let mut adopting = Settings::default();
        adopting.adopt(Setting::LogFileGroups, 7);
        assert_eq!((adopting.log.log_file_groups, adopting.word(Setting::LogFileGroups)), (7, "7"));
    }
}
