//! The control file: the parts that a database consists of.
//!
//! One JSON document, small enough to be rewritten whole. A new file is written next to the old
//! one, made durable, and renamed over it, so that a crash leaves one or the other. The first line
//! is the CRC-32C of the rest. A load or an index build is entered last, after its blocks are
//! durable: until then nothing refers to them.
//!
//! A creation writes it first, in the state of a database being made: if the creation is killed, it
//! lists the files to remove. Paths of files within the home are relative to it, so that a database
//! can be moved and copied.
//!
//! It reserves operation numbers in batches: the ceiling is durable before a number below it is
//! used, so no number is ever used again.

use crate::EngineError;
use crate::database_id::DatabaseId;
use crate::storage::block::{BlockKind, Expected, LsnRange};
use crate::storage::log_places::LogPlaces;
use crate::storage::tablespace::{Extent, Purpose};
use plumb_host::owner::MARK;
use plumb_io::{Disk, IoError};
use plumb_types::{ColumnType, DigitCode, Schema, leading_word};
use plumb_units::{BlockAddress, BlockNumber, FileId, Lsn, cut, path_text};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Version of the control file's format.
const VERSION: u32 = 2;
/// Version with tables that transactions change; programs of version 2 must refuse it.
const VERSION_LIVE: u32 = 3;
/// Version with rows in several blocks.
const VERSION_CHAINED: u32 = 4;
/// Version with tablespaces of several block sizes.
const VERSION_SIZES: u32 = 5;
/// Version with rows in several blocks in tables that transactions change.
const VERSION_ROW_PIECES: u32 = 7;
/// Version with log files elsewhere than in the home and its directory `mirror`.
const VERSION_LOG_PLACES: u32 = 8;
/// Version that is refused, because its row pieces have no checksums.
const VERSION_NO_MORE: u32 = 6;
/// Name of the control file in the database's home.
pub const FILE_NAME: &str = "control.json";
/// Name of the file that reserves space for rewriting the control file on a full disk.
pub const RESERVE_NAME: &str = "control.json.reserve";
/// Operation numbers reserved at once.
const LSN_BATCH: u64 = 1024;
/// Most numbers that an opening skips: 2^27 openings stay below `LSN_MOST`.
const LSN_STRETCH: u64 = 1 << 35;

/// Most characters of a control file that a message quotes.
const QUOTED: usize = 400;
/// Most names that a message lists.
const LISTED: usize = 40;

/// Most bytes of a new name of a table, an index or a column. Existing objects with longer names
/// can be read and dropped.
pub const NAME_BYTES_MAX: usize = 128;

/// Rejects a new name that is too long.
fn require_short(kind: &'static str, name: &str) -> Result<(), EngineError> {
    if name.len() <= NAME_BYTES_MAX {
        return Ok(());
    }
    let start = name.chars().take(40).collect();
    Err(EngineError::NameTooLong { kind, found: name.len(), limit: NAME_BYTES_MAX, start })
}

/// Rejects a new table with a column name that is too long.
///
/// # Errors
/// [`EngineError::NameTooLong`] with the first such name.
pub(crate) fn require_column_names(schema: &Schema) -> Result<(), EngineError> {
    schema.columns.iter().try_for_each(|column| require_short("column", &column.name))
}

/// Returns the name of a table or an index in the form in which it is stored and looked up.
pub fn stored_name(name: &str) -> String {
    name.to_uppercase()
}

/// State of a database's creation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum State {
    /// The files are being made; they are removed if the creation does not end.
    Creating {
        /// The home they are made for: a copy of it must not remove files outside.
        home: String,
    },
    Open,
}

/// The field that is read first, and that every version has.
#[derive(Deserialize)]
struct Version {
    version: u32,
}

/// Content of the control file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Catalog {
    version: u32,
    state: State,
    /// Random id of this database.
    pub database: DatabaseId,
    /// Operations that write blocks have numbers below it.
    pub lsn_ceiling: u64,
    /// LSN up to which the log was durable when the control file was written. A log that ends
    /// earlier has lost its end.
    #[serde(default)]
    pub log_reaches: u64,
    /// Number of changes of tables and indexes. The log's control block notes it too, so that an
    /// older control file is detected. 0 in a file from before it was kept.
    #[serde(default)]
    pub definitions: u64,
    /// Directories of the log files.
    #[serde(default, skip_serializing_if = "LogPlaces::are_usual")]
    pub log_places: LogPlaces,
    /// The tablespaces, at most one of each purpose; every database has the first three.
    pub tablespaces: Vec<TablespaceEntry>,
    /// Tables loaded by direct path.
    pub tables: Vec<Table>,
    /// Indexes built on these tables.
    pub indexes: Vec<Index>,
    /// Tables that transactions change row by row.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub live_tables: Vec<LiveTable>,
    /// Indexes on tables that transactions change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub live_indexes: Vec<LiveIndex>,
}

/// A tablespace, as the control file stores it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TablespaceEntry {
    /// Content that it is for.
    pub purpose: Purpose,
    /// Size of a block in bytes.
    pub block_size: u64,
    /// Number of blocks in an extent.
    pub extent_blocks: u32,
    /// Data files of the tablespace.
    pub files: Vec<FileEntry>,
}

/// A data file, as the control file stores it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Number of the file in the database.
    pub id: u16,
    /// Path: relative to the home if within it, else absolute.
    #[serde(with = "super::path_text")]
    pub path: PathBuf,
    /// Least length in bytes; the file may have grown since.
    pub bytes: u64,
    /// Of an unusable file, the LSN of the last checkpoint before it became so; its header must
    /// have it. Later ones do not matter, because no session changes the file meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs: Option<u64>,
}

impl FileEntry {
    /// Returns its path for a database in that home.
    pub fn path_from(&self, home: &Path) -> PathBuf {
        home.join(&self.path)
    }

    /// True if it lies outside the home. There nothing is made, truncated or removed because
    /// of a control file alone.
    pub fn is_outside(&self) -> bool {
        self.path.is_absolute()
    }
}

/// An extent of a segment, with its number of blocks in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentExtent {
    /// Place of the extent's blocks.
    #[serde(flatten)]
    pub extent: Extent,
    /// Blocks in use, from the first on.
    #[serde(rename = "u")]
    pub used: u32,
}

/// Statistics of a column's values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnStatistics {
    /// Bytes of the longest encoded value.
    pub bytes_max: u32,
    /// Number of rows with NULL.
    pub null_count: u64,
    /// Least and largest value of a NUMBER column whose values are all integers of a machine word
    /// ([`plumb_types::INTEGER_WORDS`]), as digit codes ([`plumb_types::DigitCode`]).
    #[serde(default)]
    pub integers: Option<(i64, i64)>,
}

impl ColumnStatistics {
    /// Adds the statistics of other rows.
    pub fn merge(&mut self, other: &ColumnStatistics) {
        // A column without values has no bounds, so the other side's bounds hold.
        self.integers = match (self.bytes_max, other.bytes_max) {
            (0, _) => other.integers,
            (_, 0) => self.integers,
            _ => self.integers.zip(other.integers).map(|(one, two)| (one.0.min(two.0), one.1.max(two.1))),
        };
        self.bytes_max = self.bytes_max.max(other.bytes_max);
        self.null_count += other.null_count;
    }

    /// Adds a value of `row`, of a column of this type.
    #[inline]
    pub fn note(&mut self, row: &[u8], value: Option<&[u8]>, column_type: ColumnType) {
        let Some(bytes) = value else {
            self.null_count += 1;
            return;
        };
        let first = self.bytes_max == 0;
        self.bytes_max = self.bytes_max.max(bytes.len() as u32);
        if matches!(column_type, ColumnType::Number { .. }) && (first || self.integers.is_some()) {
            let code = DigitCode::decode(leading_word(row, bytes), bytes.len());
            self.integers = code.map(|DigitCode(value)| match self.integers {
                Some((least, most)) => (least.min(value), most.max(value)),
                None => (value, value),
            });
        }
    }
}

/// A table loaded by direct path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Name in its stored form, upper case.
    pub name: String,
    /// Columns of the table, in order.
    pub schema: Schema,
    /// Tablespace that it is in.
    #[serde(default, skip_serializing_if = "is_users")]
    pub tablespace: Purpose,
    /// Number of rows in the table.
    pub row_count: u64,
    /// Bytes of its rows, without block headers and slots.
    pub row_bytes: u64,
    /// Number of rows longer than a block; each lies in several.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub chained_row_count: u64,
    /// Statistics of each column, in order.
    pub column_statistics: Vec<ColumnStatistics>,
    /// Extents of its blocks, in order.
    pub extents: Vec<SegmentExtent>,
    /// Operations that wrote these blocks.
    pub lsns: LsnRange,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_users(purpose: &Purpose) -> bool {
    *purpose == Purpose::Users
}

impl Table {
    /// Returns the kind and the LSNs that its blocks must have.
    pub fn expected(&self) -> Expected {
        Expected { kind: BlockKind::Table, lsns: self.lsns }
    }

    /// True if both are the same table with the same rows, of the same database.
    pub(crate) fn is_same_data(&self, other: &Table) -> bool {
        let key = |table: &Table| (table.lsns, table.row_count, table.extents.len());
        self.name == other.name && key(self) == key(other)
    }
}

/// A column of an index key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexColumn {
    /// Position in the table, from 0.
    pub position: usize,
    /// True if large values come first. NULLs come last either way.
    pub descending: bool,
}

/// A block's address, as the control file stores it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredAddress {
    /// Number of the data file.
    pub file: u16,
    /// Number of the block in the file.
    pub block: u32,
}

impl From<BlockAddress> for StoredAddress {
    fn from(address: BlockAddress) -> StoredAddress {
        StoredAddress { file: address.file.0, block: address.block.0 }
    }
}

impl From<StoredAddress> for BlockAddress {
    fn from(stored: StoredAddress) -> BlockAddress {
        BlockAddress { file: FileId(stored.file), block: BlockNumber(stored.block) }
    }
}

/// An index on a table loaded by direct path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Index {
    /// Name in its stored form, upper case.
    pub name: String,
    /// Table that it is on.
    pub table: String,
    /// Columns of its key, in order.
    pub columns: Vec<IndexColumn>,
    /// Number of entries: one for each row, NULL keys included.
    pub entry_count: u64,
    /// Block from which a search starts; a leaf if `height` is 1.
    pub root: Option<StoredAddress>,
    /// Number of levels, leaves included; 0 if the table is empty.
    pub height: u32,
    /// Extents of the leaves, in key order.
    pub leaves: Vec<SegmentExtent>,
    /// Extents of the branch blocks.
    pub branches: Vec<SegmentExtent>,
    /// Operations that wrote the leaves and the branches.
    pub lsns: LsnRange,
}

impl Index {
    /// Returns the kind and the LSNs that its leaves or its branches must have.
    #[inline]
    pub fn expected(&self, kind: BlockKind) -> Expected {
        Expected { kind, lsns: self.lsns }
    }
}

/// A table that transactions change. The control file does not have its number of rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LiveTable {
    /// Name in its stored form, upper case.
    pub name: String,
    /// Columns of the table, in order.
    pub schema: Schema,
    /// Tablespace that it is in; its indexes are in INDX.
    #[serde(default, skip_serializing_if = "is_users")]
    pub tablespace: Purpose,
    /// Extents, used or not; the first block is its header.
    pub extents: Vec<SegmentExtent>,
    /// LSN of its creation; no block of it has a lower one.
    pub created: u64,
}

/// An index on a table that transactions change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LiveIndex {
    /// Name in its stored form, upper case.
    pub name: String,
    /// Table that it is on.
    pub table: String,
    /// Columns of its key, in order.
    pub columns: Vec<IndexColumn>,
    /// True if no two rows may have the same key.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unique: bool,
    /// Extents, used or not; the first block is its header, the second its root.
    pub extents: Vec<SegmentExtent>,
    /// LSN of the index's creation.
    pub created: u64,
}

/// Names of the objects that a drop removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dropped {
    /// The table, if the name was a table's.
    pub table: Option<String>,
    /// The indexes: all of the table, or the one of that name.
    pub indexes: Vec<String>,
}

impl Catalog {
    /// Makes a catalog without tablespaces and tables, of a database being made in `home`.
    pub fn new(database: DatabaseId, home: &Path) -> Catalog {
        Catalog {
            version: VERSION,
            state: State::Creating { home: home.to_string_lossy().into_owned() },
            database,
            lsn_ceiling: 1 + LSN_BATCH,
            log_reaches: 0,
            definitions: 0,
            log_places: LogPlaces::default(),
            tablespaces: Vec::new(),
            tables: Vec::new(),
            indexes: Vec::new(),
            live_tables: Vec::new(),
            live_indexes: Vec::new(),
        }
    }

    /// True if the creation of the database has ended.
    pub fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// Ends the creation, after all files have been made.
    pub(crate) fn open(&mut self) {
        self.state = State::Open;
    }

    /// Notes which data files are usable, and of each other one the checkpoint
    /// that its header must have.
    pub(crate) fn note_usable(&mut self, is_usable: impl Fn(u16) -> bool, checkpoint: Lsn) {
        for file in self.tablespaces.iter_mut().flat_map(|entry| &mut entry.files) {
            file.needs = match is_usable(file.id) {
                true => None,
                false => file.needs.or(Some(checkpoint.0)),
            };
        }
    }

    /// Reserves another batch of operation numbers.
    pub(crate) fn raise_lsn_ceiling(&mut self) {
        self.lsn_ceiling += LSN_BATCH;
    }

    /// Skips a random number of operation numbers. A copy shares the numbers of its original up to
    /// here. From here on the two use others, so that a block of one is detected in the other (but
    /// for one time in 2^25).
    pub(crate) fn skip_lsns(&mut self, disk: &Disk) {
        self.lsn_ceiling += (disk.random_id() as u64) & (LSN_STRETCH - 1);
    }

    /// Returns the paths of its data files, seen from `home`.
    pub fn data_files(&self, home: &Path) -> impl Iterator<Item = PathBuf> {
        self.tablespaces.iter().flat_map(|entry| &entry.files).map(move |file| file.path_from(home))
    }

    /// Returns the data files that a killed creation has made, if this control file lies in `home`.
    /// If it is a copy, files outside the home belong to the original and are left out.
    pub(crate) fn half_made(&self, home: &Path) -> impl Iterator<Item = &FileEntry> {
        let original = matches!(&self.state, State::Creating { home: made } if Path::new(made) == home);
        self.tablespaces
            .iter()
            .flat_map(|entry| &entry.files)
            .filter(move |file| original || !file.is_outside())
    }

    /// Rejects paths that no creation writes: a relative path stays in the home, and a file's name
    /// has that of its tablespace.
    fn require_own_paths(&self) -> Result<(), String> {
        for entry in &self.tablespaces {
            let prefix = entry.purpose.name().to_lowercase();
            for file in &entry.files {
                let normal = |part: Component<'_>| matches!(part, Component::Normal(_));
                let stays = file.is_outside() || file.path.components().all(normal);
                let no_way_up = !file.path.components().any(|part| part == Component::ParentDir);
                let name = file.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                let number = name.strip_prefix(prefix.as_str()).and_then(|rest| rest.strip_suffix(".dbf"));
                let numbered =
                    number.is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()));
                if !(stays && no_way_up && numbered) {
                    return Err(format!(
                        "a file of tablespace {} is {:?}, expected a path in the directory or an absolute one, without \"..\", \
                         that ends in {prefix}NN.dbf",
                        entry.purpose.name(),
                        path_text(&file.path)
                    ));
                }
            }
        }
        Ok(())
    }

    /// Reads the control file of a database.
    ///
    /// # Errors
    /// If it is missing, unreadable, damaged, or of another version.
    pub fn read(home: &Path) -> Result<Catalog, EngineError> {
        Catalog::find(home)?.ok_or_else(|| EngineError::NoDatabase { home: home.to_path_buf() })
    }

    /// Reads the control file; `None` if the home has none.
    ///
    /// # Errors
    /// If it is unreadable, damaged or of another version; or if it is
    /// missing though data files exist.
    pub fn find(home: &Path) -> Result<Option<Catalog>, EngineError> {
        Catalog::find_on(&Disk::Kernel, home)
    }

    /// Reads the control file from any disk; `None` if the home has none.
    ///
    /// # Errors
    /// The same errors as [`Catalog::find`].
    pub fn find_on(disk: &Disk, home: &Path) -> Result<Option<Catalog>, EngineError> {
        let path = home.join(FILE_NAME);
        // A message quotes the file, in which a name or a path may have any length.
        let refuse = |why: String| EngineError::ControlFile {
            path: path.clone(),
            why: cut(&why, QUOTED).into_owned(),
        };
        let Some(bytes) = disk.read_small(&path)? else {
            return match stray_data_file(home) {
                Some(_) if home.join(MARK).exists() => {
                    Err(EngineError::HalfRestored { home: home.to_path_buf() })
                }
                Some(file) => Err(EngineError::NoControlFile { home: home.to_path_buf(), file }),
                None => Ok(None),
            };
        };
        if bytes.is_empty() {
            return Err(refuse("it is empty".to_string()));
        }
        let text = String::from_utf8_lossy(&bytes);
        let (sum, document) = text.split_once('\n').unwrap_or((&text, ""));
        let expected = format!("{:08x}", checksum(document));
        if sum != expected {
            return Err(refuse(format!("its checksum is {:?}, expected {expected:?}", cut(sum, 16))));
        }
        let unclear = |error: serde_json::Error| refuse(format!("cannot be understood: {error}"));
        let Version { version: found } = serde_json::from_str(document).map_err(unclear)?;
        if !(VERSION..=VERSION_LOG_PLACES).contains(&found) || found == VERSION_NO_MORE {
            return Err(EngineError::Format { path, found, expected: VERSION_LOG_PLACES });
        }
        let catalog: Catalog = serde_json::from_str(document).map_err(unclear)?;
        let paths = || catalog.require_own_paths().and_then(|()| catalog.log_places.require_valid());
        catalog.validate().and_then(|()| paths()).map_err(refuse)?;
        Ok(Some(catalog))
    }

    /// Replaces the control file of a database durably.
    ///
    /// # Errors
    /// The errors of [`Disk::replace`], or a path that is not UTF-8.
    pub fn write(&self, disk: &Disk, home: &Path) -> Result<(), EngineError> {
        let path = home.join(FILE_NAME);
        Ok(disk.replace_with_reserve(&path, self.text(&path)?.as_bytes())?)
    }

    /// Returns the control file's text, with its checksum.
    pub(crate) fn text(&self, path: &Path) -> Result<String, EngineError> {
        let document = serde_json::to_string(self).map_err(|error| IoError::Operation {
            operation: "write",
            path: path.to_path_buf(),
            source: error.into(),
        })?;
        Ok(format!("{:08x}\n{document}", checksum(&document)))
    }

    /// Returns the names of all tables and indexes.
    pub(crate) fn segments(&self) -> impl Iterator<Item = &String> {
        let tables = self.tables.iter().map(|table| &table.name);
        let live = self.live_tables.iter().map(|table| &table.name);
        let live = live.chain(self.live_indexes.iter().map(|index| &index.name));
        tables.chain(self.indexes.iter().map(|index| &index.name)).chain(live)
    }

    /// Sets the directories of log files made from now on.
    pub(crate) fn set_log_places(&mut self, places: LogPlaces) {
        if !places.are_usual() {
            self.version = self.version.max(VERSION_LOG_PLACES);
        }
        self.log_places = places;
    }

    /// Adds a table that was loaded by direct path.
    pub(crate) fn add_table(&mut self, table: Table) {
        if table.chained_row_count > 0 {
            self.version = self.version.max(VERSION_CHAINED);
        }
        self.tables.push(table);
    }

    /// Adds a tablespace of another block size.
    pub(crate) fn add_tablespace(&mut self, entry: TablespaceEntry) {
        self.version = self.version.max(VERSION_SIZES);
        self.tablespaces.push(entry);
    }

    /// Adds a table that transactions change, with its indexes.
    pub(crate) fn add_live(&mut self, table: LiveTable, indexes: Vec<LiveIndex>) {
        self.version = self.version.max(VERSION_LIVE);
        self.live_tables.push(table);
        self.live_indexes.extend(indexes);
    }

    /// True if programs without support for row pieces in live tables refuse the database.
    pub(crate) fn knows_row_pieces(&self) -> bool {
        self.version >= VERSION_ROW_PIECES
    }

    /// Makes programs without support for row pieces refuse the database from now on.
    pub(crate) fn note_row_pieces(&mut self) {
        self.version = self.version.max(VERSION_ROW_PIECES);
    }

    /// Adds an index on a table that transactions change.
    pub(crate) fn add_live_index(&mut self, index: LiveIndex) {
        self.live_indexes.push(index);
    }

    /// Removes a table that transactions change, with its indexes, or an index on one.
    /// `name` is in stored form.
    pub(crate) fn remove_live(&mut self, name: &str) -> Dropped {
        let tables = self.live_tables.extract_if(.., |table| table.name == name);
        let table = tables.map(|table| table.name).next();
        let indexes = self.live_indexes.extract_if(.., |index| index.name == name || index.table == name);
        Dropped { table, indexes: indexes.map(|index| index.name).collect() }
    }

    /// Returns the extents of tables that transactions change and of their indexes, with
    /// the LSN of each creation.
    pub(crate) fn live_extents(&self) -> impl Iterator<Item = (Purpose, &[SegmentExtent], Lsn)> {
        let tables = self.live_tables.iter();
        let tables = tables.map(|it| (it.tablespace, it.extents.as_slice(), Lsn(it.created)));
        let indexes = self.live_indexes.iter();
        tables.chain(indexes.map(|it| (Purpose::Indx, it.extents.as_slice(), Lsn(it.created))))
    }

    /// Returns the extents of tables loaded by direct path with redo, with the lowest LSN that a
    /// record of the load may have.
    pub(crate) fn logged_extents(&self) -> impl Iterator<Item = (Purpose, &[SegmentExtent], Lsn)> {
        self.tables
            .iter()
            .filter_map(|it| Some((it.tablespace, it.extents.as_slice(), it.lsns.first_record()?)))
    }

    /// Returns the kind of object that has the name, `table` or `index`; `None` if it is free.
    #[must_use]
    pub fn holder_of(&self, name: &str) -> Option<&'static str> {
        let name = stored_name(name);
        let table = self.tables.iter().any(|table| table.name == name).then_some("table");
        let index = || self.indexes.iter().any(|index| index.name == name).then_some("index");
        table.or_else(index).or_else(|| self.live_kind(&name))
    }

    /// Returns the kind of live object that has the name, which is in stored form.
    pub(crate) fn live_kind(&self, name: &str) -> Option<&'static str> {
        let table = self.live_tables.iter().any(|table| table.name == name).then_some("table");
        table.or_else(|| self.live_indexes.iter().any(|index| index.name == name).then_some("index"))
    }

    /// Rejects a name that is taken or too long; returns its stored form.
    ///
    /// # Errors
    /// [`EngineError::Exists`] if a table or an index has it, or [`EngineError::NameTooLong`].
    pub fn require_free(&self, name: &str) -> Result<String, EngineError> {
        let name_stored = stored_name(name);
        require_short("table or index", &name_stored)?;
        match self.holder_of(name) {
            Some(kind) => Err(EngineError::Exists { kind, name: name_stored }),
            None => Ok(name_stored),
        }
    }

    /// Returns the table of that name, in any letter case.
    ///
    /// # Errors
    /// If there is none; the message lists the existing tables.
    pub fn table(&self, name: &str) -> Result<&Table, EngineError> {
        let stored = stored_name(name);
        let found = self.tables.iter().find(|table| table.name == stored);
        found.ok_or_else(|| {
            let loaded = self.tables.iter().map(|table| table.name.as_str());
            let live = self.live_tables.iter().map(|table| table.name.as_str());
            let is_live = self.live_tables.iter().any(|table| table.name == stored);
            let (kind, known) = match is_live {
                true => ("table without transactions, named", listed(loaded)),
                false => ("table", listed(loaded.chain(live))),
            };
            EngineError::Missing { kind, name: name.to_string(), known }
        })
    }

    /// Returns the indexes on a table.
    pub fn indexes_of(&self, table: &str) -> impl Iterator<Item = &Index> {
        let stored = stored_name(table);
        self.indexes.iter().filter(move |index| index.table == stored)
    }
}

/// Joins names for a message: `A, B`, or `none`. Lists at most 40 names, and cuts long ones.
pub(crate) fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<Cow<'_, str>> = names.map(|name| cut(name, NAME_BYTES_MAX)).collect();
    match names.len() {
        0 => "none".to_string(),
        1..=LISTED => names.join(", "),
        count => format!("{} and {} more", names[..LISTED].join(", "), count - LISTED),
    }
}

fn stray_data_file(home: &Path) -> Option<PathBuf> {
    let mut paths = fs::read_dir(home).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    paths.find(|path| path.extension().is_some_and(|extension| extension == "dbf"))
}

fn checksum(text: &str) -> u32 {
    crc_fast::crc32_iscsi(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_name_is_looked_up_as_itself() {
        for letter in (0..=u32::from(char::MAX)).filter_map(char::from_u32) {
            let stored = stored_name(&letter.to_string());
            assert_eq!(stored_name(&stored), stored, "{letter:?}");
        }
    }
}
