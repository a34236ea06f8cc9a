//! The control file: what the database consists of.
//!
//! One JSON document, small enough to be rewritten whole: a new file is written
//! beside the old one, made durable, and renamed over it, so that a crash leaves
//! one or the other. The first line is the CRC-32C of the rest. A load or an
//! index build enters it last, after its blocks are durable: until then nothing
//! refers to them.

use crate::EngineError;
use crate::storage::tablespace::{Extent, Purpose};
use plumb_types::DigitCode;
use plumb_types::Schema;
use plumb_units::{BlockAddress, BlockNumber, FileId};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The version of the format.
const VERSION: u32 = 1;
/// The control file's name in the database's home.
pub const FILE_NAME: &str = "control.json";

/// Everything the control file holds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Catalog {
    version: u32,
    /// The number of the next operation that writes blocks.
    pub next_lsn: u64,
    /// One tablespace of each purpose.
    pub tablespaces: Vec<TablespaceEntry>,
    /// The tables.
    pub tables: Vec<Table>,
    /// The indexes.
    pub indexes: Vec<Index>,
}

/// A tablespace as the control file keeps it.
#[derive(Debug, Clone, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FileEntry {
    /// Its number.
    pub id: u16,
    /// Where it is.
    #[serde(with = "super::path_text")]
    pub path: PathBuf,
    /// Its least length in bytes; it may have grown since.
    pub bytes: u64,
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

    /// Takes a value in; `number` says whether the column is a NUMBER.
    #[inline]
    pub fn note(&mut self, value: Option<&[u8]>, number: bool) {
        let Some(bytes) = value else {
            self.null_count += 1;
            return;
        };
        let first = self.bytes_max == 0;
        self.bytes_max = self.bytes_max.max(bytes.len() as u32);
        if number && (first || self.integers.is_some()) {
            self.integers = DigitCode::decode(bytes).map(|DigitCode(value)| match self.integers {
                Some((least, most)) => (least.min(value), most.max(value)),
                None => (value, value),
            });
        }
    }
}

/// A table.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Table {
    /// Its name, in upper case.
    pub name: String,
    /// Its columns.
    pub schema: Schema,
    /// Its rows.
    pub row_count: u64,
    /// Bytes of its rows, without block headers and slots.
    pub row_bytes: u64,
    /// Per column.
    pub column_statistics: Vec<ColumnStatistics>,
    /// Where its blocks are.
    pub extents: Vec<SegmentExtent>,
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
#[derive(Debug, Clone, Serialize, Deserialize)]
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
}

impl Catalog {
    /// A catalog with no tablespace and no table.
    #[must_use]
    pub fn new() -> Catalog {
        Catalog {
            version: VERSION,
            next_lsn: 1,
            tablespaces: Vec::new(),
            tables: Vec::new(),
            indexes: Vec::new(),
        }
    }

    /// Reads the control file of a database.
    ///
    /// # Errors
    /// When it is missing, damaged, or of another version.
    pub fn read(home: &Path) -> Result<Catalog, EngineError> {
        let path = home.join(FILE_NAME);
        let refuse = |why: String| EngineError::ControlFile { path: path.clone(), why };
        let text = fs::read_to_string(&path).map_err(|error| refuse(format!("cannot be read: {error}")))?;
        let (sum, document) = text.split_once('\n').unwrap_or((&text, ""));
        let expected = format!("{:08x}", checksum(document));
        if sum != expected {
            return Err(refuse(format!("its checksum is {sum:?}, expected {expected:?}")));
        }
        let catalog: Catalog = serde_json::from_str(document)
            .map_err(|error| refuse(format!("cannot be understood: {error}")))?;
        if catalog.version != VERSION {
            return Err(refuse(format!("its version is {}, expected {VERSION}", catalog.version)));
        }
        Ok(catalog)
    }

    /// Replaces the control file of a database, durably.
    ///
    /// # Errors
    /// When it cannot be written; the old one then still stands. Or when its directory cannot be
    /// synced: the new one stands, but may not after a power cut.
    pub fn write(&self, home: &Path) -> Result<(), EngineError> {
        let path = home.join(FILE_NAME);
        let document = serde_json::to_string(self).expect("a catalog has only string keys");
        let text = format!("{:08x}\n{document}", checksum(&document));
        let beside = home.join("control.json.new");
        replace(&path, &beside, text.as_bytes()).map_err(|error| {
            // The error to report is the first one.
            let _ = fs::remove_file(&beside);
            EngineError::ControlFile { path, why: format!("cannot be written: {error}") }
        })
    }

    /// The names of all tables and indexes.
    pub(crate) fn segments(&self) -> impl Iterator<Item = &String> {
        let tables = self.tables.iter().map(|table| &table.name);
        tables.chain(self.indexes.iter().map(|index| &index.name))
    }

    /// The table of that name, in any letter case.
    ///
    /// # Errors
    /// When there is none; the message lists those there are.
    pub fn table(&self, name: &str) -> Result<&Table, EngineError> {
        let found = self.tables.iter().find(|table| table.name.eq_ignore_ascii_case(name));
        found.ok_or_else(|| EngineError::Missing {
            kind: "table",
            name: name.to_string(),
            known: listed(self.tables.iter().map(|table| table.name.as_str())),
        })
    }

    /// The indexes on a table.
    pub fn indexes_of<'a>(&'a self, table: &'a str) -> impl Iterator<Item = &'a Index> {
        self.indexes.iter().filter(move |index| index.table.eq_ignore_ascii_case(table))
    }
}

impl Default for Catalog {
    fn default() -> Self {
        Self::new()
    }
}

/// Names for a message: `A, B`, or `none`.
pub(crate) fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    if names.is_empty() { "none".to_string() } else { names.join(", ") }
}

fn replace(path: &Path, beside: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = fs::File::create(beside)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(beside, path)?;
    // The rename is durable once the directory is.
    fs::File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
}

fn checksum(text: &str) -> u32 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, text.as_bytes()) as u32
}
