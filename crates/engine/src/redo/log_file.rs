//! The log files: created in advance, filled with zeros, written in turn.
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
//!             56   previous end u64  LSN after the last batch of the file before
//!             64   epoch u64         version 2: of the opening that wrote the header
//!             72   length u16        of the home
//!             74   home              the database's directory
//!           4096   batches
//!
//! batch        0   crc32c u32        of bytes 4 to its length
//!              4   length u32        of header and records; zeros fill the last log block
//!              8   LSN u64           of its first record
//!             16   sequence u64      of the file
//!             24   sequence of the database's opening u64 (random)
//!             32   records
//! ```
//! The batches of a file end where no batch of its sequence with the next LSN follows. LSNs may
//! skip a stretch between two batches, as each opening of the database does. Batches from an
//! earlier use of the file have lower LSNs.
//!
//! A member outside of the database's directory has the database's id in its name, so that
//! databases may share a directory. Its header names the database's directory, because a copy of
//! the database has the same id and reaches the same file. The epoch decides which copy may
//! continue it (see [`epoch`](super::epoch)).

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

/// Bytes of a file before its first batch.
pub const FILE_HEADER: u64 = 4096;
/// Bytes of a batch before its records.
pub(super) const BATCH_HEADER: usize = 32;
const MAGIC: [u8; 8] = *b"plumblog";
const VERSION: u32 = 1;
/// Version of a header that names the owner of a member outside.
const VERSION_OWNER: u32 = 2;

/// Offset of the epoch in a header.
const EPOCH: usize = 64;
/// Offset of the home's length; the home follows.
const HOME: usize = EPOCH + 8;
const _: () = assert!(HOME <= 512, "O4: the epoch is in the first sector");

/// Most log files of a database, the upper end of the setting's range.
pub(super) const FILES_MOST: u32 = 64;
/// Most bytes of a batch: its header and half of the largest log buffer. No
/// longer one was ever written.
const BATCH_MOST: usize = (1 << 29) + BATCH_HEADER;

/// Rejects a number that no log has, once, where it is read.
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

/// Header of a log file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileHeader {
    pub(super) database: DatabaseId,
    pub(super) sequence: u64,
    pub(super) first: Lsn,
    pub(super) number: u32,
    pub(super) previous_end: Lsn,
}

/// The database that owns a member outside of its directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Owner {
    /// The database's directory; empty if no member lies outside of it.
    pub(super) home: PathBuf,
    /// Epoch of the opening that wrote the header.
    pub(super) epoch: Epoch,
}

impl Owner {
    /// True if an epoch was drawn, or none is needed because no member lies outside.
    pub(super) fn has_epoch(&self) -> bool {
        self.home.as_os_str().is_empty() || self.epoch != Epoch::default()
    }
}

impl FileHeader {
    /// Returns the header of a file that has never been used.
    pub(super) fn unused(database: DatabaseId, number: u32) -> FileHeader {
        FileHeader { database, sequence: 0, first: Lsn(0), number, previous_end: Lsn(0) }
    }

    /// Writes the header to a page; an empty home names no owner.
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

    /// Returns the owner that a valid header names. The home is empty if none is named, or if the
    /// power failed while a long one was written.
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

    /// Reads a header; `None` if there is no whole one, for example after a
    /// power failure during its write.
    ///
    /// # Errors
    /// If the file belongs to another database, or a field is out of range.
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

/// Returns the end of the bytes that the header's own checksum covers.
fn summed(bytes: &[u8]) -> usize {
    match number(bytes, 0) >> 32 == u64::from(VERSION_OWNER) {
        true => HOME,
        false => EPOCH,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BatchHeader {
    /// Bytes of header and records.
    pub(super) length: usize,
    pub(super) lsn: Lsn,
    pub(super) sequence: u64,
    pub(super) opening: u64,
}

impl BatchHeader {
    /// Writes the header, with the checksum, before records that are in place.
    pub(super) fn write(&self, batch: &mut [u8]) {
        batch[4..8].copy_from_slice(&(self.length as u32).to_le_bytes());
        batch[8..16].copy_from_slice(&self.lsn.0.to_le_bytes());
        batch[16..24].copy_from_slice(&self.sequence.to_le_bytes());
        batch[24..32].copy_from_slice(&self.opening.to_le_bytes());
        let sum = checksum(&batch[4..self.length]);
        batch[0..4].copy_from_slice(&sum.to_le_bytes());
    }

    /// Returns the length that a header claims, if it has this sequence and an
    /// LSN of at least `least`.
    pub(super) fn claimed(bytes: &[u8], sequence: u64, least: Lsn) -> Option<usize> {
        let head = bytes.get(..BATCH_HEADER)?;
        let length = (number(head, 0) >> 32) as usize;
        let is_length = (BATCH_HEADER + 1..=BATCH_MOST).contains(&length);
        let fits = is_length && number(head, 16) == sequence && number(head, 8) >= least.0;
        fits.then_some(length)
    }

    /// Reads the batch at the front of `bytes`; `None` unless it is whole, of this sequence, and
    /// its LSN is at least `least`.
    pub(super) fn read(bytes: &[u8], sequence: u64, least: Lsn) -> Option<BatchHeader> {
        let length = BatchHeader::claimed(bytes, sequence, least)?;
        let header = BatchHeader { length, lsn: Lsn(number(bytes, 8)), sequence, opening: number(bytes, 24) };
        (number(bytes, 0) as u32 == checksum(bytes.get(4..length)?)).then_some(header)
    }

    /// Rejects a whole batch at byte `at` whose LSN no log reaches.
    pub(super) fn require_bounds(&self, path: &Path, at: u64) -> Result<(), EngineError> {
        require((path, &format!("the batch at byte {at}")), ("LSN", self.lsn.0), 0..=LSN_MOST)
    }
}

/// Checksum of a batch that is read in parts, from its header to its end.
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
    /// Adds the next bytes; the whole header is in the first part.
    pub(super) fn update(&mut self, part: &[u8]) {
        if self.seen == 0 {
            self.head.copy_from_slice(&part[..BATCH_HEADER]);
        }
        self.sum.update(&part[if self.seen == 0 { 4 } else { 0 }..]);
        self.seen += part.len();
    }

    /// True if the parts were the whole batch of this LSN.
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
