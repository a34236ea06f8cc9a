//! The control file: what the database consists of.
//!
//! One JSON document, small enough to be rewritten whole: a new file is written
//! beside the old one, made durable, and renamed over it, so that a crash leaves
//! one or the other. The first line is the CRC-32C of the rest. A load or an
//! index build enters it last, after its blocks are durable: until then nothing
//! refers to them.
//!
//! A creation writes it first, as that of a database in the making: should the
//! creation be killed, it lists what is to be removed. Paths of files within the
//! home are relative to it, so that a database can be moved and copied.
//!
//! Numbers of operations are reserved in it by the batch: the ceiling is durable
//! before a number below it is used, so none is ever used again.

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

/// The version of the format.
const VERSION: u32 = 2;
/// The same of a database with tables that transactions change, which a program of version 2 must not open.
const VERSION_LIVE: u32 = 3;
/// The same of a database with rows in several blocks.
const VERSION_CHAINED: u32 = 4;
/// The same of a database with tablespaces of several block sizes.
const VERSION_SIZES: u32 = 5;
/// The same of a database with rows in several blocks of tables that transactions change.
const VERSION_ROW_PIECES: u32 = 7;
/// The same of a database whose log files lie elsewhere than in its directory and `mirror`.
const VERSION_LOG_PLACES: u32 = 8;
/// It had pieces without checksums.
const VERSION_NO_MORE: u32 = 6;
/// The control file's name in the database's home.
pub const FILE_NAME: &str = "control.json";
/// The name of the room that is kept for the control file of a full disk.
pub const RESERVE_NAME: &str = "control.json.reserve";
/// Numbers of operations that are reserved at once.
const LSN_BATCH: u64 = 1024;
/// How many an opening passes over at most: 2^29 openings fit into 64 bits.
const LSN_STRETCH: u64 = 1 << 35;

/// Letters of a control file that a message quotes at most.
const QUOTED: usize = 400;
/// Names that a message lists at most.
const LISTED: usize = 40;

/// Bytes of the name of a table, an index or a column at most. Those that are there and longer can
/// be read and dropped.
pub const NAME_BYTES_MAX: usize = 128;

/// Refuses a name that nothing may be given.
fn require_short(kind: &'static str, name: &str) -> Result<(), EngineError> {
    if name.len() <= NAME_BYTES_MAX {
        return Ok(());
    }
    let start = name.chars().take(40).collect();
    Err(EngineError::NameTooLong { kind, found: name.len(), limit: NAME_BYTES_MAX, start })
}

/// Refuses columns of a table that is to be made whose names are too long.
///
/// # Errors
/// [`EngineError::NameTooLong`] with the first of them.
pub(crate) fn require_column_names(schema: &Schema) -> Result<(), EngineError> {
    schema.columns.iter().try_for_each(|column| require_short("column", &column.name))
}

/// The name of a table or an index as it is stored and looked up.
#[must_use]
pub fn stored_name(name: &str) -> String {
    name.to_uppercase()
}

/// How far a database has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum State {
    /// Its files are being made, and go again unless their maker ends.
    Creating {
        /// The home they are made in: files outside it are no copy's to remove.
        home: String,
    },
    /// It stands.
    Open,
}

/// What is read first, and is in every version.
#[derive(Deserialize)]
struct Version {
    version: u32,
}

/// Everything the control file holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Catalog {
    version: u32,
    state: State,
    /// Which database this is.
    pub database: DatabaseId,
    /// Operations that write blocks have numbers below it.
    pub lsn_ceiling: u64,
    /// The log was durable up to this LSN when the control file was written: one that ends before has lost its end.
    #[serde(default)]
    pub log_reaches: u64,
    /// Changes of tables and indexes so far. The log's control block notes it, so that an older
    /// control file is found out. 0 in one from before this was kept.
    #[serde(default)]
    pub definitions: u64,
    /// Where its log files lie.
    #[serde(default, skip_serializing_if = "LogPlaces::are_usual")]
    pub log_places: LogPlaces,
    /// The tablespaces, one of a purpose; the first three are those that every database has.
    pub tablespaces: Vec<TablespaceEntry>,
    /// The tables.
    pub tables: Vec<Table>,
    /// The indexes.
    pub indexes: Vec<Index>,
    /// The tables that transactions change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub live_tables: Vec<LiveTable>,
    /// Their indexes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub live_indexes: Vec<LiveIndex>,
}

/// A tablespace as the control file keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TablespaceEntry {
    /// What it is for.
    pub purpose: Purpose,
    /// Bytes in a block.
    pub block_size: u64,
    /// Blocks in an extent.
    pub extent_blocks: u32,
    /// Its data files.
    pub files: Vec<FileEntry>,
}

/// A data file as the control file keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Its number.
    pub id: u16,
    /// Where it is: within the home relative to it, else absolute.
    #[serde(with = "super::path_text")]
    pub path: PathBuf,
    /// Its least length in bytes; it may have grown since.
    pub bytes: u64,
    /// While it cannot be used: the checkpoint that it must have been there for. Later ones do not
    /// concern it, because no session changes it meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs: Option<u64>,
}

impl FileEntry {
    /// Where it is, for a database in that home.
    #[must_use]
    pub fn path_from(&self, home: &Path) -> PathBuf {
        home.join(&self.path)
    }

    /// True if it lies outside the home, where nothing is made, truncated or removed on the word of
    /// a control file alone.
    #[must_use]
    pub fn is_outside(&self) -> bool {
        self.path.is_absolute()
    }
}

/// An extent of a segment and how many of its blocks are in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentExtent {
    /// The extent.
    #[serde(flatten)]
    pub extent: Extent,
    /// Blocks in use, from its first.
    #[serde(rename = "u")]
    pub used: u32,
}

/// What is known of a column's values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnStatistics {
    /// The longest encoded value in bytes.
    pub bytes_max: u32,
    /// How many are NULL.
    pub null_count: u64,
    /// The least and the largest value of a NUMBER column, all of whose values are
    /// integers of a machine word ([`plumb_types::INTEGER_WORDS`]), as digit codes
    /// ([`plumb_types::DigitCode`]).
    #[serde(default)]
    pub integers: Option<(i64, i64)>,
}

impl ColumnStatistics {
    /// Takes the statistics of other rows in.
    pub fn merge(&mut self, other: &ColumnStatistics) {
        // Without a value a column has no bounds, and says nothing about others.
        self.integers = match (self.bytes_max, other.bytes_max) {
            (0, _) => other.integers,
            (_, 0) => self.integers,
            _ => self.integers.zip(other.integers).map(|(one, two)| (one.0.min(two.0), one.1.max(two.1))),
        };
        self.bytes_max = self.bytes_max.max(other.bytes_max);
        self.null_count += other.null_count;
    }

    /// Takes in a value of `row`, of a column of this type.
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

/// A table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Its name, in upper case.
    pub name: String,
    /// Its columns.
    pub schema: Schema,
    /// The tablespace that it is in.
    #[serde(default, skip_serializing_if = "is_users")]
    pub tablespace: Purpose,
    /// Its rows.
    pub row_count: u64,
    /// Bytes of its rows, without block headers and slots.
    pub row_bytes: u64,
    /// Rows that no block has room for: each lies in several.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub chained_row_count: u64,
    /// Per column.
    pub column_statistics: Vec<ColumnStatistics>,
    /// Where its blocks are.
    pub extents: Vec<SegmentExtent>,
    /// Who wrote them.
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
    /// What its blocks must be.
    #[must_use]
    pub fn expected(&self) -> Expected {
        Expected { kind: BlockKind::Table, lsns: self.lsns }
    }
}

/// A column of an index key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexColumn {
    /// Its position in the table, from 0.
    pub position: usize,
    /// Whether large values come first. NULLs come last either way.
    pub descending: bool,
}

/// A block's address as the control file keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredAddress {
    /// The data file.
    pub file: u16,
    /// The block.
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

/// An index.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Index {
    /// Its name, in upper case.
    pub name: String,
    /// The table it is on.
    pub table: String,
    /// Its key.
    pub columns: Vec<IndexColumn>,
    /// Its entries: one for each row, NULL keys included.
    pub entry_count: u64,
    /// The block that a search starts from; a leaf when `height` is 1.
    pub root: Option<StoredAddress>,
    /// Levels, the leaves included; 0 when the table is empty.
    pub height: u32,
    /// The leaves, in key order.
    pub leaves: Vec<SegmentExtent>,
    /// The branch blocks.
    pub branches: Vec<SegmentExtent>,
    /// Who wrote the leaves and the branches.
    pub lsns: LsnRange,
}

impl Index {
    /// What its leaves or its branches must be.
    #[inline]
    #[must_use]
    pub fn expected(&self, kind: BlockKind) -> Expected {
        Expected { kind, lsns: self.lsns }
    }
}

/// A table that transactions change. How many rows it has is not known here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LiveTable {
    /// Its name, in upper case.
    pub name: String,
    /// Its columns.
    pub schema: Schema,
    /// The tablespace that it is in; its indexes are in that of indexes.
    #[serde(default, skip_serializing_if = "is_users")]
    pub tablespace: Purpose,
    /// Where its blocks are, used or not; the first one is its header.
    pub extents: Vec<SegmentExtent>,
    /// The LSN of its creation: no block of it has a lower one.
    pub created: u64,
}

/// An index on such a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LiveIndex {
    /// Its name, in upper case.
    pub name: String,
    /// The table it is on.
    pub table: String,
    /// Its key.
    pub columns: Vec<IndexColumn>,
    /// Whether no two rows may have one key.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unique: bool,
    /// Where its blocks are, used or not; the first one is its header, the second its root.
    pub extents: Vec<SegmentExtent>,
    /// The LSN of its creation.
    pub created: u64,
}

/// What a drop removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dropped {
    /// The table, if the name was a table's.
    pub table: Option<String>,
    /// The indexes: those of the table, or the one of that name.
    pub indexes: Vec<String>,
}

impl Catalog {
    /// A catalog with no tablespace and no table, of a database that is made in `home`.
    #[must_use]
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

    /// Whether the database stands, and is not being made.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// All files are there: from now on it stands.
    pub(crate) fn open(&mut self) {
        self.state = State::Open;
    }

    /// Notes of each data file whether it can be used, and the checkpoint that it must have been
    /// there for if it cannot.
    pub(crate) fn note_usable(&mut self, is_usable: impl Fn(u16) -> bool, checkpoint: Lsn) {
        for file in self.tablespaces.iter_mut().flat_map(|entry| &mut entry.files) {
            file.needs = match is_usable(file.id) {
                true => None,
                false => file.needs.or(Some(checkpoint.0)),
            };
        }
    }

    /// Reserves more numbers of operations.
    pub(crate) fn raise_lsn_ceiling(&mut self) {
        self.lsn_ceiling += LSN_BATCH;
    }

    /// Passes over a random stretch of numbers of operations. A copy has the numbers of its original up to here; from
    /// here on the two use others, so that a block of one is found out in the other (but for one time in 2^25).
    pub(crate) fn skip_lsns(&mut self, disk: &Disk) {
        self.lsn_ceiling += (disk.random_id() as u64) & (LSN_STRETCH - 1);
    }

    /// Its data files as they lie from `home`.
    pub fn data_files(&self, home: &Path) -> impl Iterator<Item = PathBuf> {
        self.tablespaces.iter().flat_map(|entry| &entry.files).map(move |file| file.path_from(home))
    }

    /// What a killed creation has made, if this is its control file and lies in `home`: data files, but not those
    /// outside the home when it is a copy of the one they were made for.
    pub(crate) fn half_made(&self, home: &Path) -> impl Iterator<Item = &FileEntry> {
        let original = matches!(&self.state, State::Creating { home: made } if Path::new(made) == home);
        self.tablespaces
            .iter()
            .flat_map(|entry| &entry.files)
            .filter(move |file| original || !file.is_outside())
    }

    /// Refuses paths that no creation writes: a relative one stays in the home, and a file's name
    /// says its tablespace.
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
    /// When it is missing, cannot be read, is damaged, or of another version.
    pub fn read(home: &Path) -> Result<Catalog, EngineError> {
        Catalog::find(home)?.ok_or_else(|| EngineError::NoDatabase { home: home.to_path_buf() })
    }

    /// The same; `None` when there is no control file.
    ///
    /// # Errors
    /// When it cannot be read, is damaged, or of another version; or when it is gone, and data files are there.
    pub fn find(home: &Path) -> Result<Option<Catalog>, EngineError> {
        Catalog::find_on(&Disk::Kernel, home)
    }

    /// The same on any disk.
    ///
    /// # Errors
    /// As [`Catalog::find`].
    pub fn find_on(disk: &Disk, home: &Path) -> Result<Option<Catalog>, EngineError> {
        let path = home.join(FILE_NAME);
        // A message quotes the file, and a name or a path in it may be of any length.
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

    /// Replaces the control file of a database, durably.
    ///
    /// # Errors
    /// As [`Disk::replace`], or when a path is not UTF-8.
    pub fn write(&self, disk: &Disk, home: &Path) -> Result<(), EngineError> {
        let path = home.join(FILE_NAME);
        Ok(disk.replace_with_reserve(&path, self.text(&path)?.as_bytes())?)
    }

    /// The control file's text, with its checksum.
    pub(crate) fn text(&self, path: &Path) -> Result<String, EngineError> {
        let document = serde_json::to_string(self).map_err(|error| IoError::Operation {
            operation: "write",
            path: path.to_path_buf(),
            source: error.into(),
        })?;
        Ok(format!("{:08x}\n{document}", checksum(&document)))
    }

    /// The names of all tables and indexes.
    pub(crate) fn segments(&self) -> impl Iterator<Item = &String> {
        let tables = self.tables.iter().map(|table| &table.name);
        let live = self.live_tables.iter().map(|table| &table.name);
        let live = live.chain(self.live_indexes.iter().map(|index| &index.name));
        tables.chain(self.indexes.iter().map(|index| &index.name)).chain(live)
    }

    /// Says where the log files are that are made next.
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

    /// Whether a program that knows no rows in several blocks of tables that transactions change refuses the database.
    pub(crate) fn knows_row_pieces(&self) -> bool {
        self.version >= VERSION_ROW_PIECES
    }

    /// Has such a program refuse it from now on.
    pub(crate) fn note_row_pieces(&mut self) {
        self.version = self.version.max(VERSION_ROW_PIECES);
    }

    /// Adds an index on a table that transactions change.
    pub(crate) fn add_live_index(&mut self, index: LiveIndex) {
        self.live_indexes.push(index);
    }

    /// Removes a table that transactions change with its indexes, or an index on one, of that name as it is stored.
    pub(crate) fn remove_live(&mut self, name: &str) -> Dropped {
        let tables = self.live_tables.extract_if(.., |table| table.name == name);
        let table = tables.map(|table| table.name).next();
        let indexes = self.live_indexes.extract_if(.., |index| index.name == name || index.table == name);
        Dropped { table, indexes: indexes.map(|index| index.name).collect() }
    }

    /// Extents of tables that transactions change and of their indexes, with the LSN of the creation of each.
    pub(crate) fn live_extents(&self) -> impl Iterator<Item = (Purpose, &[SegmentExtent], Lsn)> {
        let tables = self.live_tables.iter();
        let tables = tables.map(|it| (it.tablespace, it.extents.as_slice(), Lsn(it.created)));
        let indexes = self.live_indexes.iter();
        tables.chain(indexes.map(|it| (Purpose::Indx, it.extents.as_slice(), Lsn(it.created))))
    }

    /// Extents of tables that were loaded by direct path with redo, and an LSN that no record of the load is below.
    pub(crate) fn logged_extents(&self) -> impl Iterator<Item = (Purpose, &[SegmentExtent], Lsn)> {
        self.tables
            .iter()
            .filter_map(|it| Some((it.tablespace, it.extents.as_slice(), it.lsns.first_record()?)))
    }

    /// What holds that name, a `table` or an `index`, if anything does.
    #[must_use]
    pub fn holder_of(&self, name: &str) -> Option<&'static str> {
        let name = stored_name(name);
        let table = self.tables.iter().any(|table| table.name == name).then_some("table");
        let index = || self.indexes.iter().any(|index| index.name == name).then_some("index");
        table.or_else(index).or_else(|| self.live_kind(&name))
    }

    /// What of those that transactions change has that name, as it is stored.
    pub(crate) fn live_kind(&self, name: &str) -> Option<&'static str> {
        let table = self.live_tables.iter().any(|table| table.name == name).then_some("table");
        table.or_else(|| self.live_indexes.iter().any(|index| index.name == name).then_some("index"))
    }

    /// Refuses a name that is taken or too long; gives it back as it is stored.
    ///
    /// # Errors
    /// [`EngineError::Exists`] when a table or an index has it, [`EngineError::NameTooLong`].
    pub fn require_free(&self, name: &str) -> Result<String, EngineError> {
        let name_stored = stored_name(name);
        require_short("table or index", &name_stored)?;
        match self.holder_of(name) {
            Some(kind) => Err(EngineError::Exists { kind, name: name_stored }),
            None => Ok(name_stored),
        }
    }

    /// The table of that name, in any letter case.
    ///
    /// # Errors
    /// When there is none; the message lists those there are.
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

    /// The indexes on a table.
    pub fn indexes_of(&self, table: &str) -> impl Iterator<Item = &Index> {
        let stored = stored_name(table);
        self.indexes.iter().filter(move |index| index.table == stored)
    }
}

/// Names for a message: `A, B`, or `none`. Of many it has the first, and of a long one its
/// beginning.
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
