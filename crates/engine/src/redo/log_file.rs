//! The log files: made in advance, filled with zeros, written in turn.
//!
//! ```text
//! file    byte 0   crc32c u32        of bytes 4 to 64, or to 72 in version 2
//!              4   version u32       1; 2 where a member lies outside of the database's directory
//!              8   magic             "plumblog"
//!             16   database u128
//!             32   sequence u64      how many files were begun until this one; 0: never used
//!             40   first LSN u64     of the first batch
//!             48   number u32        of the file, from 1
//!             52   crc32c u32        version 2: of bytes 72 to 4096
//!             56   previous end u64  LSN behind the last batch of the file before
//!             64   epoch u64         version 2: of the opening that wrote the header
//!             72   length u16        of the home
//!             74   home              the database's directory
//!           4096   batches
//!
//! batch        0   crc32c u32        of bytes 4 to its length
//!              4   length u32        of header and records; zeros follow up to the end of the log block
//!              8   LSN u64           of its first record
//!             16   sequence u64      of the file
//!             24   sequence of the database's opening u64 (random)
//!             32   records
//! ```
//! A file's batches end where no batch of its sequence and of the next LSN follows. LSNs may pass
//! over a stretch between two batches: each opening of the database does. What an earlier use of
//! the file left has a lower LSN.
//!
//! A member outside of the database's directory has the database's id in its name, so that several
//! databases may share a directory, and names the database's directory in its header: a copy of the
//! database has the same id and would reach the same file. Which copy may go on with it says the
//! epoch (see [`epoch`](super::epoch)).

use super::epoch::Epoch;
use crate::EngineError;
use crate::database_id::DatabaseId;
use crate::storage::block::LSN_MOST;
use crc_fast::CrcAlgorithm;
use plumb_units::{Lsn, range_text};
use std::ffi::OsStr;
use std::ops::RangeInclusive;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Bytes before the first batch of a file.
pub const FILE_HEADER: u64 = 4096;
/// Bytes of a batch before its records.
pub(super) const BATCH_HEADER: usize = 32;
const MAGIC: [u8; 8] = *b"plumblog";
const VERSION: u32 = 1;
/// The same of a header that names the owner of a member outside.
const VERSION_OWNER: u32 = 2;

/// The epoch's place in a header.
const EPOCH: usize = 64;
/// The place of the home's length, and behind it of the home.
const HOME: usize = EPOCH + 8;
const _: () = assert!(HOME <= 512, "O4: the epoch is in the first sector");

/// Log files that a database may have: the range of the setting.
pub(super) const FILES_MOST: u32 = 64;
/// Bytes of a batch at most: what half of the largest log buffer takes, and its header. A longer
/// one was never written.
const BATCH_MOST: usize = (1 << 29) + BATCH_HEADER;

/// Refuses a number of a file that no log has. It is checked once, where it is read.
pub(super) fn require(
    (path, part): (&Path, &str),
    (field, found): (&str, u64),
    range: RangeInclusive<u64>,
) -> Result<(), EngineError> {
    if range.contains(&found) {
        return Ok(());
    }
    let expected = range_text(i128::from(*range.start()), i128::from(*range.end()));
    let why =
        format!("{part}: {field}: found {found}, expected {expected}; restore the database from a copy");
    Err(EngineError::Log { path: path.to_path_buf(), why })
}

/// What a log file says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileHeader {
    pub(super) database: DatabaseId,
    pub(super) sequence: u64,
    pub(super) first: Lsn,
    pub(super) number: u32,
    pub(super) previous_end: Lsn,
}

/// The database that a member outside of its directory belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Owner {
    /// The database's directory; empty where no member lies outside of it.
    pub(super) home: PathBuf,
    /// The epoch of the opening that wrote the header.
    pub(super) epoch: Epoch,
}

impl Owner {
    /// True if an epoch was drawn, or none is needed.
    pub(super) fn has_epoch(&self) -> bool {
        self.home.as_os_str().is_empty() || self.epoch != Epoch::default()
    }
}

impl FileHeader {
    /// Of a file that has not been used.
    pub(super) fn unused(database: DatabaseId, number: u32) -> FileHeader {
        FileHeader { database, sequence: 0, first: Lsn(0), number, previous_end: Lsn(0) }
    }

    /// Fills a header; it names no owner whose home is empty.
    pub(super) fn write(&self, bytes: &mut [u8], owner: &Owner) {
        bytes[..FILE_HEADER as usize].fill(0);
        let home = owner.home.as_os_str().as_bytes();
        let version = if home.is_empty() { VERSION } else { VERSION_OWNER };
        if version == VERSION_OWNER {
            bytes[EPOCH..HOME].copy_from_slice(&owner.epoch.0.to_le_bytes());
            bytes[HOME..HOME + 2].copy_from_slice(&(home.len() as u16).to_le_bytes());
            bytes[HOME + 2..HOME + 2 + home.len()].copy_from_slice(home);
            let sum = checksum(&bytes[HOME..FILE_HEADER as usize]);
            bytes[52..56].copy_from_slice(&sum.to_le_bytes());
        }
        bytes[4..8].copy_from_slice(&version.to_le_bytes());
        bytes[8..16].copy_from_slice(&MAGIC);
        bytes[16..32].copy_from_slice(&self.database.0.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.first.0.to_le_bytes());
        bytes[48..52].copy_from_slice(&self.number.to_le_bytes());
        bytes[56..64].copy_from_slice(&self.previous_end.0.to_le_bytes());
        let sum = checksum(&bytes[4..summed(bytes)]);
        bytes[0..4].copy_from_slice(&sum.to_le_bytes());
    }

    /// Returns the owner that a whole header names. The home is empty where none is named, and
    /// where the power went while a long one was changed.
    pub(super) fn owner(bytes: &[u8]) -> Owner {
        if summed(bytes) < HOME {
            return Owner::default();
        }
        let named = &bytes[HOME..FILE_HEADER as usize];
        let length = usize::from(u16::from_le_bytes([named[0], named[1]]));
        let is_whole = number(bytes, 48) >> 32 == u64::from(checksum(named));
        let home = named.get(2..2 + length).filter(|_| is_whole).unwrap_or_default();
        Owner { home: PathBuf::from(OsStr::from_bytes(home)), epoch: Epoch(number(bytes, EPOCH)) }
    }

    /// What is there; `None` where no whole header is, as when the power went while it was written.
    pub(super) fn read(
        bytes: &[u8],
        database: DatabaseId,
        path: &Path,
    ) -> Result<Option<FileHeader>, EngineError> {
        let is_there = bytes.len() >= FILE_HEADER as usize;
        let is_whole = || number(bytes, 0) as u32 == checksum(&bytes[4..summed(bytes)]);
        if !is_there || !is_whole() || bytes[8..16] != MAGIC {
            return Ok(None);
        }
        let found = DatabaseId(u128::from(number(bytes, 24)) << 64 | u128::from(number(bytes, 16)));
        if found != database {
            let (what, path) = ("log file", path.to_path_buf());
            return Err(EngineError::OtherDatabase { what, path, found, expected: database });
        }
        let header = FileHeader {
            database,
            sequence: number(bytes, 32),
            first: Lsn(number(bytes, 40)),
            number: number(bytes, 48) as u32,
            previous_end: Lsn(number(bytes, 56)),
        };
        header.require_bounds(path)?;
        Ok(Some(header))
    }

    fn require_bounds(&self, path: &Path) -> Result<(), EngineError> {
        let part = (path, "its header");
        require(part, ("sequence", self.sequence), 0..=LSN_MOST)?;
        require(part, ("first LSN", self.first.0), 0..=LSN_MOST)?;
        require(part, ("number of the file", u64::from(self.number)), 1..=u64::from(FILES_MOST))?;
        require(part, ("end of the file before", self.previous_end.0), 0..=self.first.0)
    }
}

/// Bytes of a header that its own checksum covers.
fn summed(bytes: &[u8]) -> usize {
    match number(bytes, 0) >> 32 == u64::from(VERSION_OWNER) {
        true => HOME,
        false => EPOCH,
    }
}

/// What a batch says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BatchHeader {
    /// Bytes of header and records.
    pub(super) length: usize,
    pub(super) lsn: Lsn,
    pub(super) sequence: u64,
    pub(super) opening: u64,
}

impl BatchHeader {
    /// Completes a batch whose records are in their place.
    pub(super) fn write(&self, batch: &mut [u8]) {
        batch[4..8].copy_from_slice(&(self.length as u32).to_le_bytes());
        batch[8..16].copy_from_slice(&self.lsn.0.to_le_bytes());
        batch[16..24].copy_from_slice(&self.sequence.to_le_bytes());
        batch[24..32].copy_from_slice(&self.opening.to_le_bytes());
        let sum = checksum(&batch[4..self.length]);
        batch[0..4].copy_from_slice(&sum.to_le_bytes());
    }

    /// The length that the bytes of a header claim, of this sequence and of this LSN or a later
    /// one.
    pub(super) fn claimed(bytes: &[u8], sequence: u64, least: Lsn) -> Option<usize> {
        let head = bytes.get(..BATCH_HEADER)?;
        let length = (number(head, 0) >> 32) as usize;
        let is_length = (BATCH_HEADER + 1..=BATCH_MOST).contains(&length);
        let fits = is_length && number(head, 16) == sequence && number(head, 8) >= least.0;
        fits.then_some(length)
    }

    /// The batch at the front of `bytes`, if a whole one of this sequence and of this LSN or a
    /// later one is there.
    pub(super) fn read(bytes: &[u8], sequence: u64, least: Lsn) -> Option<BatchHeader> {
        let length = BatchHeader::claimed(bytes, sequence, least)?;
        let header = BatchHeader { length, lsn: Lsn(number(bytes, 8)), sequence, opening: number(bytes, 24) };
        (number(bytes, 0) as u32 == checksum(bytes.get(4..length)?)).then_some(header)
    }

    /// Refuses a whole batch of an LSN that no log reaches, at this byte of a file.
    pub(super) fn require_bounds(&self, path: &Path, at: u64) -> Result<(), EngineError> {
        require((path, &format!("the batch at byte {at}")), ("LSN", self.lsn.0), 0..=LSN_MOST)
    }
}

/// Checks a batch that is read in parts: from its header to its end.
#[derive(Debug)]
pub(super) struct BatchCheck {
    head: [u8; BATCH_HEADER],
    seen: usize,
    sum: crc_fast::Digest,
}

impl Default for BatchCheck {
    fn default() -> BatchCheck {
        BatchCheck { head: [0; BATCH_HEADER], seen: 0, sum: crc_fast::Digest::new(CrcAlgorithm::Crc32Iscsi) }
    }
}

impl BatchCheck {
    /// The bytes that follow; a header comes in one part.
    pub(super) fn update(&mut self, part: &[u8]) {
        if self.seen == 0 {
            self.head.copy_from_slice(&part[..BATCH_HEADER]);
        }
        self.sum.update(&part[if self.seen == 0 { 4 } else { 0 }..]);
        self.seen += part.len();
    }

    /// Whether they were the batch of this LSN, whole.
    pub(super) fn is_whole(&self, lsn: Lsn) -> bool {
        let (sum, length) = (number(&self.head, 0) as u32, (number(&self.head, 0) >> 32) as usize);
        u64::from(sum) == self.sum.finalize() && length == self.seen && number(&self.head, 8) == lsn.0
    }
}

pub(super) fn checksum(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}

pub(super) fn number(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}
