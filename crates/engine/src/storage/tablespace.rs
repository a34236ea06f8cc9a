//! A tablespace: data files, and their taken extents.
//!
//! Extents have one size and are allocated round robin over the files. Extent 0 of a file is one
//! block shorter, because block 0 is the file's header. If every extent is taken the next file
//! grows, filled with zeros by the session that needs the space. The session waits on `Data file
//! init write` and the bytes are counted, so a run whose files grew while it was measured shows it.
//!
//! A missing or damaged file does not keep the others from being used: its error is kept, and
//! reported to sessions that need a block of it. No extent is allocated in it.
//!
//! Block numbers have 32 bits: a file stops growing before they are used up.

use crate::EngineError;
use crate::access::Access;
use crate::storage::control::SegmentExtent;
use crate::storage::datafile::DataFile;
use plumb_events::{Cancel, Event, Session, locked};
use plumb_units::{BlockAddress, BlockCount, BlockNumber, BlockSize, Bytes, FileId};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

/// A run of adjacent blocks in one data file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extent {
    /// Number of the data file.
    #[serde(rename = "f")]
    pub file: u16,
    /// Number of the first block.
    #[serde(rename = "b")]
    pub block: u32,
    /// Number of blocks in the extent.
    #[serde(rename = "n")]
    pub blocks: u32,
}

impl Extent {
    /// Returns the address of block number `index` of the extent.
    pub fn address(&self, index: u32) -> BlockAddress {
        debug_assert!(index < self.blocks);
        BlockAddress { file: FileId(self.file), block: BlockNumber(self.block + index) }
    }
}

/// Content of a tablespace; a database has at most one of each. Every database has the first three,
/// with blocks of `db_block_size`. The others are made when needed
/// ([`crate::Instance::tablespace_of`]), for tables of another block size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Purpose {
    /// Tables in blocks of `db_block_size`.
    #[default]
    Users,
    /// Sort runs; empty when the instance starts.
    Temp,
    /// Indexes in blocks of `db_block_size`.
    Indx,
    /// Tables in blocks of 2K.
    Users2K,
    /// Tables in blocks of 4K.
    Users4K,
    /// Tables in blocks of 8K.
    Users8K,
    /// Tables in blocks of 16K.
    Users16K,
    /// Tables in blocks of 32K.
    Users32K,
}

/// Tablespaces of other block sizes, in the order of [`BlockSize::ALL`].
const SIZED: [Purpose; BlockSize::ALL.len()] =
    [Purpose::Users2K, Purpose::Users4K, Purpose::Users8K, Purpose::Users16K, Purpose::Users32K];

impl Purpose {
    /// Every purpose, each at the index of its number.
    pub const ALL: [Purpose; 8] = [
        Purpose::Users,
        Purpose::Temp,
        Purpose::Indx,
        Purpose::Users2K,
        Purpose::Users4K,
        Purpose::Users8K,
        Purpose::Users16K,
        Purpose::Users32K,
    ];
    /// Purposes of the tablespaces that every database has.
    pub const FIRST: [Purpose; 3] = [Purpose::Users, Purpose::Temp, Purpose::Indx];

    /// Returns the name of the tablespace.
    pub const fn name(self) -> &'static str {
        match self {
            Purpose::Users => "USERS",
            Purpose::Temp => "TEMP",
            Purpose::Indx => "INDX",
            Purpose::Users2K => "USERS_2K",
            Purpose::Users4K => "USERS_4K",
            Purpose::Users8K => "USERS_8K",
            Purpose::Users16K => "USERS_16K",
            Purpose::Users32K => "USERS_32K",
        }
    }

    /// Returns the tablespace for tables in blocks of this size, if it is not
    /// the database's own block size.
    pub fn of_size(block_size: BlockSize) -> Purpose {
        let place = BlockSize::ALL.iter().position(|size| *size == block_size);
        SIZED[place.expect("every size is in the list of sizes")]
    }

    /// Returns the block size in its name; `None` for tablespaces of the database's block size.
    pub fn own_size(self) -> Option<BlockSize> {
        SIZED.iter().position(|purpose| *purpose == self).map(|place| BlockSize::ALL[place])
    }

    /// True if it is for tables.
    pub const fn is_tables(self) -> bool {
        !matches!(self, Purpose::Temp | Purpose::Indx)
    }
}

/// An open tablespace of a database.
#[derive(Debug)]
pub struct Tablespace {
    /// Content that it is for.
    pub purpose: Purpose,
    /// Size of the tablespace's blocks.
    pub block_size: BlockSize,
    /// Number of blocks in an extent.
    pub extent_blocks: BlockCount,
    /// Data files that can be used.
    pub files: Vec<DataFile>,
    /// Data files that cannot be used.
    pub unusable: Vec<UnusableFile>,
    space: Mutex<Space>,
}

/// A data file that could not be opened.
#[derive(Debug, Clone)]
pub struct UnusableFile {
    /// Number of the file in the database.
    pub id: FileId,
    /// Path at which it is expected.
    pub path: PathBuf,
    /// Reason for which it cannot be used.
    pub error: Arc<EngineError>,
}

#[derive(Debug)]
struct Space {
    /// Per file, a flag for each extent.
    taken: Vec<Vec<bool>>,
    /// Per file, the lowest extent that may be free.
    search_from: Vec<usize>,
    next_file: usize,
    /// True if released extents stay taken.
    keeps_all: bool,
}

impl Tablespace {
    /// Makes a tablespace over open files, with no extent taken.
    ///
    /// # Errors
    /// If a file's length cannot be read.
    pub fn new(
        purpose: Purpose,
        block_size: BlockSize,
        extent_blocks: BlockCount,
        (files, unusable): (Vec<DataFile>, Vec<UnusableFile>),
    ) -> Result<Tablespace, EngineError> {
        let mut taken = Vec::new();
        for file in &files {
            let extents = file.file.length()? / extent_blocks.bytes(block_size);
            taken.push(vec![false; extents.min(extents_max(extent_blocks)) as usize]);
        }
        let space = Space { search_from: vec![0; taken.len()], taken, next_file: 0, keeps_all: false };
        Ok(Tablespace { purpose, block_size, extent_blocks, files, unusable, space: Mutex::new(space) })
    }

    /// Returns the file of that number.
    ///
    /// # Errors
    /// If it could not be opened, or is not in this tablespace: damaged blocks may name any file.
    #[inline]
    pub fn file(&self, id: FileId) -> Result<&DataFile, EngineError> {
        if let Some(file) = self.files.iter().find(|file| file.id == id) {
            return Ok(file);
        }
        match self.unusable.iter().find(|file| file.id == id) {
            Some(unusable) => Err(EngineError::Unusable(Arc::clone(&unusable.error))),
            None => Err(self.foreign(id)),
        }
    }

    #[cold]
    fn foreign(&self, id: FileId) -> EngineError {
        let mut known: Vec<u16> = self.files.iter().map(|file| file.id.0).collect();
        known.extend(self.unusable.iter().map(|file| file.id.0));
        known.sort_unstable();
        EngineError::Verification {
            what: format!(
                "address of a block of tablespace {}, as another block has it",
                self.purpose.name()
            ),
            found: format!("file {}", id.0),
            expected: format!("one of files {known:?}"),
        }
    }

    /// True if the file of that number is in this tablespace.
    pub fn has_file(&self, id: FileId) -> bool {
        self.files.iter().any(|file| file.id == id) || self.unusable.iter().any(|file| file.id == id)
    }

    /// Returns the path of a block's file, for messages.
    pub fn path(&self, address: BlockAddress) -> &Path {
        let unusable =
            || self.unusable.iter().find(|file| file.id == address.file).map(|file| file.path.as_path());
        let file = self.files.iter().find(|file| file.id == address.file).map(|file| file.file.path());
        file.or_else(unusable).expect("an extent's file belongs to its tablespace")
    }

    /// Returns the size of all usable files.
    pub fn size(&self) -> Bytes {
        let space = self.space();
        let extents: usize = space.taken.iter().map(Vec::len).sum();
        Bytes(extents as u64 * self.extent_blocks.bytes(self.block_size))
    }

    /// Marks an extent of the control file as taken.
    ///
    /// # Errors
    /// The reason, if the extent is outside its file or taken twice.
    pub fn claim(&self, extent: Extent) -> Result<(), String> {
        if self.unusable.iter().any(|file| file.id.0 == extent.file) {
            return Ok(());
        }
        let Some(file) = self.files.iter().position(|file| file.id.0 == extent.file) else {
            return Err(format!(
                "an extent lies in file {}, which is not of tablespace {}",
                extent.file,
                self.purpose.name()
            ));
        };
        let index = (extent.block / self.extent_blocks.0) as usize;
        match self.space().taken[file].get_mut(index) {
            Some(taken) if !*taken => {
                *taken = true;
                Ok(())
            }
            Some(_) => Err(format!("extent {index} of file {} is owned twice", extent.file)),
            None => Err(format!("extent {index} lies behind the end of file {}", extent.file)),
        }
    }

    /// Allocates a free extent from the next file in turn; the file grows if none is free.
    ///
    /// # Errors
    /// If a file cannot grow, or there is none.
    pub fn allocate(&self, session: &Session, access: &Access) -> Result<Extent, EngineError> {
        // The latch is held for long only while a file grows.
        let mut space = session.latch(&self.space, Event::EnqHwContention);
        let file_count = self.files.len();
        for turn in 0..file_count {
            let file = (space.next_file + turn) % file_count;
            if let Some(index) = space.take_free(file) {
                space.next_file = (file + 1) % file_count;
                return Ok(self.extent(file, index));
            }
        }
        let limit = extents_max(self.extent_blocks) as usize;
        let may_grow = |turn: &usize| space.taken[(space.next_file + turn) % file_count].len() < limit;
        let Some(turn) = (0..file_count).find(may_grow) else { return Err(self.full()) };
        let file = (space.next_file + turn) % file_count;
        let index = space.taken[file].len();
        let extent_bytes = self.extent_blocks.bytes(self.block_size);
        let from = index as u64 * extent_bytes;
        // An extent takes about a millisecond, so the operation checks its own flag often enough.
        self.files[file].fill(session, &access.method, &Cancel::default(), from..from + extent_bytes)?;
        space.taken[file].push(true);
        space.next_file = (file + 1) % file_count;
        Ok(self.extent(file, index))
    }

    /// Keeps released extents taken from now on, because the control file that a later
    /// opening finds may have them.
    pub(crate) fn keep_all(&self) {
        self.space().keeps_all = true;
    }

    /// Frees the extents for other segments.
    pub fn release(&self, extents: impl IntoIterator<Item = Extent>) {
        let mut space = self.space();
        if space.keeps_all {
            return;
        }
        for extent in extents {
            let Some(file) = self.files.iter().position(|file| file.id.0 == extent.file) else {
                assert!(self.has_file(FileId(extent.file)), "an extent's file belongs to its tablespace");
                continue;
            };
            let index = (extent.block / self.extent_blocks.0) as usize;
            assert!(space.taken[file][index], "an extent is given back once");
            space.taken[file][index] = false;
            space.search_from[file] = space.search_from[file].min(index);
        }
    }

    /// Returns extent number `index` of the file at that position. Extent 0 lacks its first block,
    /// the file's header, so that extents stay aligned to their size.
    ///
    /// # Panics
    /// If its blocks cannot be numbered in 32 bits.
    pub fn extent(&self, file: usize, index: usize) -> Extent {
        assert!((index as u64) < extents_max(self.extent_blocks), "B: block numbers have 32 bits");
        let end = (index as u32 + 1) * self.extent_blocks.0;
        let start = (end - self.extent_blocks.0).max(1);
        Extent { file: self.files[file].id.0, block: start, blocks: end - start }
    }

    #[cold]
    fn full(&self) -> EngineError {
        match self.unusable.first() {
            Some(file) if self.files.is_empty() => EngineError::Unusable(Arc::clone(&file.error)),
            _ => EngineError::Full { tablespace: self.purpose.name(), files: self.files.len() },
        }
    }

    /// Returns the number of extents of each file, for [`Tablespace::cut_back`].
    pub fn extent_counts(&self) -> Vec<usize> {
        self.space().taken.iter().map(Vec::len).collect()
    }

    /// Shortens files to these numbers of extents, as far as the extents at their end are free. So
    /// a failed operation keeps no disk space.
    ///
    /// # Errors
    /// If a file cannot be shortened.
    pub fn cut_back(&self, extent_counts: &[usize]) -> Result<(), EngineError> {
        let mut space = self.space();
        for (file, count) in extent_counts.iter().enumerate() {
            let taken = &mut space.taken[file];
            let free_behind = taken.iter().rposition(|taken| *taken).map_or(0, |last| last + 1);
            let keep = free_behind.max(*count);
            if keep < taken.len() {
                self.files[file].file.truncate(keep as u64 * self.extent_blocks.bytes(self.block_size))?;
                taken.truncate(keep);
                space.search_from[file] = space.search_from[file].min(keep);
            }
        }
        Ok(())
    }

    /// Shortens files to their first length, as far as the extents at their end are free.
    ///
    /// # Errors
    /// If a file cannot be shortened.
    pub fn give_back(&self) -> Result<(), EngineError> {
        let extent_bytes = self.extent_blocks.bytes(self.block_size);
        let first: Vec<usize> = self.files.iter().map(|file| (file.bytes / extent_bytes) as usize).collect();
        self.cut_back(&first)
    }

    /// Returns the extents that lie in unusable files, with their number and the file.
    pub(crate) fn unusable_among<'a>(
        &'a self,
        extents: &'a [SegmentExtent],
    ) -> impl Iterator<Item = (usize, (&'a UnusableFile, &'a SegmentExtent))> {
        extents.iter().enumerate().filter_map(|(number, extent)| {
            let file = self.unusable.iter().find(|file| file.id.0 == extent.extent.file)?;
            Some((number, (file, extent)))
        })
    }

    fn space(&self) -> MutexGuard<'_, Space> {
        locked(&self.space)
    }
}

/// Returns the most extents of a file: the number of every block, and the one after
/// the last, have 32 bits.
fn extents_max(extent_blocks: BlockCount) -> u64 {
    u64::from(u32::MAX / extent_blocks.0)
}

impl Space {
    fn take_free(&mut self, file: usize) -> Option<usize> {
        let from = self.search_from[file];
        let found = self.taken[file].iter().skip(from).position(|taken| !taken).map(|at| from + at);
        self.search_from[file] = found.map_or(self.taken[file].len(), |at| at + 1);
        if let Some(index) = found {
            self.taken[file][index] = true;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database_id::DatabaseId;
    use crate::storage::header::FileHeader;
    use plumb_events::{Recorder, Role};
    use plumb_units::Lsn;

    /// Fails if block numbers wrap: extents after the last one would then be those at
    /// the front of the file.
    #[test]
    fn a_file_stops_growing_before_block_numbers_wrap() {
        let session = Recorder::new().session(Role::User);
        let mut settings = crate::Settings::default();
        settings.set("io_method", "null", "test").expect("a setting");
        let block_size = BlockSize::new(2048).expect("a block size");
        let access = crate::access::resolve(&settings, block_size, plumb_io::Disk::Kernel, [].iter())
            .expect("memory is always there");
        let extent_blocks = BlockCount(64 << 20 >> 11);
        let file = |number: u16| {
            let file = FileId(number);
            let (database, purpose) = (DatabaseId(1), Purpose::Users);
            let header = FileHeader {
                database,
                file,
                block_size,
                extent_blocks,
                purpose,
                created: Lsn(1),
                checkpoint: crate::storage::header::NO_CHECKPOINT,
                home: None,
            };
            let path = format!("/null/{number}");
            let of = (&header, 2048);
            let made = DataFile::create(&session, &access, &Cancel::default(), Path::new(&path), of);
            let made = made.expect("made");
            // Longer than a file may be; in memory only written blocks take space.
            made.file.allocate((1 << 32) * 2048 + (64 << 20)).expect("it is only said to be so long");
            made
        };
        let files = (vec![file(1), file(2)], Vec::new());
        let tablespace = Tablespace::new(Purpose::Users, block_size, extent_blocks, files).expect("opened");
        let mut last = 0;
        let error = loop {
            match tablespace.allocate(&session, &access) {
                Ok(extent) => last = u64::from(extent.block) + u64::from(extent.blocks),
                Err(error) => break error,
            }
        };
        assert_eq!(
            last,
            (1 << 32) - u64::from(extent_blocks.0),
            "the last block's number is behind no other"
        );
        assert_eq!(
            error.to_string(),
            "tablespace USERS is full: its 2 data files have as many blocks as can be numbered (2^32); create the \
             database with more data_files or a larger db_block_size"
        );
    }
}
