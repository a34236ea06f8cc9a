//! The header of a data file: its block 0.
//!
//! It names the file's owner. Every database has a random id, and every open compares it, so that a
//! file of another database, or of a copy, is rejected. A file outside the database's home names
//! the home too: a copy of the home has the same id and would reach the same file.
//!
//! ```text
//! byte  24  magic                8 bytes
//!       32  database             u128
//!       48  block size           u32, bytes
//!       52  extent               u32, blocks
//!       56  purpose              u8: 1 USERS, 2 TEMP, 3 INDX, 4 to 8 USERS_2K to USERS_32K
//!       58  length of the home   u16, bytes; 0 when the file lies within it
//!       64  LSN at creation      u64
//!       72  LSN of the last checkpoint  u64; 0: not noted; 2^64-1: none since the file was made
//!      128  the home             an absolute path
//! ```
//! The file's number is that in the block's own address. The rest is zero.
//!
//! Each checkpoint notes its LSN in the header of every file before it is noted in the log's
//! control block. So a file with a lower LSN than the control block's is an older copy, which lacks
//! changes that are in no log any more. The LSN and the checksum are in the first 512 bytes. So a
//! write that is cut short by a power loss leaves the old or the new header.

use crate::EngineError;
use crate::database_id::DatabaseId;
use crate::error::DATA_FILE;
use crate::storage::block::{self, BlockKind, Content, Expected, LsnRange};
use crate::storage::tablespace::Purpose;
use plumb_host::regular::open_regular;
use plumb_io::Directory;
use plumb_units::{BlockAddress, BlockCount, BlockNumber, BlockSize, FileId, Lsn, cut};
use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const MAGIC: [u8; 8] = *b"plumbdbf";
/// Byte at which the home's path begins.
const HOME: usize = 128;

/// Content of a data file's header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileHeader {
    /// Database that it belongs to.
    pub database: DatabaseId,
    /// Number of the file in the database.
    pub file: FileId,
    /// Size of the file's blocks.
    pub block_size: BlockSize,
    /// Number of blocks in an extent.
    pub extent_blocks: BlockCount,
    /// Tablespace that it belongs to.
    pub purpose: Purpose,
    /// Operation that made the file.
    pub created: Lsn,
    /// LSN of the last checkpoint; [`NO_CHECKPOINT`] if there was none since the file was made.
    pub checkpoint: Lsn,
    /// Absolute path of the database's home, for a file outside it.
    pub home: Option<PathBuf>,
}

/// Checkpoint of a new file: newer than any copy's.
pub const NO_CHECKPOINT: Lsn = Lsn(u64::MAX);
/// Byte at which the LSN of the last checkpoint begins.
const CHECKPOINT: usize = 72;

/// Values that only the header has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Home that it names, for a file outside of one.
    pub home: Option<PathBuf>,
    /// LSN of the last checkpoint.
    pub checkpoint: Lsn,
}

/// Notes a checkpoint in the header block of a file.
///
/// # Errors
/// If the block is damaged.
pub(crate) fn note_checkpoint(
    block: &mut [u8],
    address: BlockAddress,
    at: Lsn,
    path: &Path,
) -> Result<(), EngineError> {
    if !block::is_whole(block, address) {
        return Err(block::damage(block, address, path));
    }
    block[CHECKPOINT..CHECKPOINT + 8].copy_from_slice(&at.0.to_le_bytes());
    block::set_checksum(block);
    Ok(())
}

/// Sizes in a data file's header, read without an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileShape {
    /// Path of the data file.
    pub path: PathBuf,
    /// Size of a block in bytes.
    pub block_bytes: u64,
    /// Size of an extent in bytes.
    pub extent_bytes: u64,
}

impl FileShape {
    /// Reads the sizes from the file's first bytes.
    ///
    /// # Errors
    /// If the file cannot be read, or does not begin as a data file does.
    pub fn read(path: &Path) -> io::Result<FileShape> {
        let mut bytes = [0; HOME];
        open_regular(path)?.read_exact(&mut bytes)?;
        if bytes[24..32] != MAGIC {
            return Err(io::Error::other(format!("{} is no data file", path.display())));
        }
        let number =
            |at: usize| u64::from(u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")));
        let (block_bytes, extent_blocks) = (number(48), number(52));
        Ok(FileShape { path: path.to_path_buf(), block_bytes, extent_bytes: block_bytes * extent_blocks })
    }
}

/// Returns the database that a file's header names; `None` if the file does not begin
/// as a data file does.
///
/// # Errors
/// If it is not a regular file, or cannot be read.
pub(crate) fn database_of(path: &Path) -> io::Result<Option<DatabaseId>> {
    let (directory, name) = (path.parent().unwrap_or(Path::new("")), path.file_name().unwrap_or_default());
    let held = Directory::open(directory).map_err(io::Error::other)?;
    let mut bytes = [0; HOME];
    held.read_file(name).map_err(io::Error::other)?.read_exact(&mut bytes)?;
    let id = u128::from_le_bytes(bytes[32..48].try_into().expect("sixteen bytes"));
    Ok((bytes[24..32] == MAGIC).then_some(DatabaseId(id)))
}

impl FileHeader {
    /// Returns the address of the header block.
    pub fn address(&self) -> BlockAddress {
        BlockAddress { file: self.file, block: BlockNumber(0) }
    }

    /// Writes the header into a block.
    ///
    /// # Errors
    /// If the home's path is too long for the block.
    pub fn write(&self, block: &mut [u8]) -> Result<(), EngineError> {
        let home = self.home.as_deref().map_or(&[][..], |home| home.as_os_str().as_bytes());
        let room = block.len() - HOME;
        if home.len() > room {
            return Err(EngineError::Contradiction {
                first: format!("db_block_size={}", self.block_size.bytes()),
                second: format!("a home of {} bytes", home.len()),
                why: format!(
                    "data files outside the home keep its path, up to {room} bytes of it; choose a shorter path or a larger db_block_size"
                ),
            });
        }
        block.fill(0);
        let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
        put(24, &MAGIC);
        put(32, &self.database.0.to_le_bytes());
        put(48, &(self.block_size.bytes() as u32).to_le_bytes());
        put(52, &self.extent_blocks.0.to_le_bytes());
        put(56, &[self.purpose as u8 + 1]);
        put(58, &(home.len() as u16).to_le_bytes());
        put(64, &self.created.0.to_le_bytes());
        put(CHECKPOINT, &self.checkpoint.0.to_le_bytes());
        put(HOME, home);
        let content = Content { entries: 0, used: (HOME - block::HEADER_BYTES + home.len()) as u16 };
        block::seal(block, BlockKind::FileHeader, self.address(), self.created, content);
        Ok(())
    }

    /// Checks that a block is the header of the expected file.
    ///
    /// # Errors
    /// If it is damaged, or another file's.
    pub fn verify(&self, block: &[u8], path: &Path) -> Result<Found, EngineError> {
        let differs = |what: &str, found: String, expected: String| {
            if found == expected {
                return Ok(());
            }
            Err(EngineError::DataFile {
                path: path.to_path_buf(),
                why: format!("{what}: found {found}, expected {expected}"),
            })
        };
        let number = |at: usize| u32::from_le_bytes(block[at..at + 4].try_into().expect("four bytes"));
        let size = number(48);
        if block[24..32] == MAGIC && BlockSize::new(u64::from(size)).is_some() {
            // Compared first, because the checksum covers a block of that size.
            differs("bytes in a block", size.to_string(), self.block_size.bytes().to_string())?;
        }
        let header = Expected { kind: BlockKind::FileHeader, lsns: LsnRange::ANY };
        let verified = block::verify(block, header, self.address(), path);
        let whole =
            matches!(verified, Ok(_) | Err(EngineError::CorruptBlock { what: "its own address", .. }));
        let database = u128::from_le_bytes(block[32..48].try_into().expect("sixteen bytes"));
        // A file of another database may also have another number; the
        // database is the better message.
        if whole && database != self.database.0 {
            let (found, expected) = (DatabaseId(database), self.database);
            let (what, path) = (DATA_FILE, path.to_path_buf());
            return Err(EngineError::OtherDatabase { what, path, found, expected });
        }
        verified?;
        let purpose =
            |byte: u8| Purpose::ALL.get(usize::from(byte).wrapping_sub(1)).map_or("none", |p| p.name());
        differs("its tablespace", purpose(block[56]).to_string(), self.purpose.name().to_string())?;
        differs("blocks in an extent", number(52).to_string(), self.extent_blocks.0.to_string())?;
        let length = usize::from(u16::from_le_bytes([block[58], block[59]])).min(block.len() - HOME);
        let home = &block[HOME..HOME + length];
        if length > 0 && (home[0] != b'/' || home.contains(&0)) {
            let found = cut(&String::from_utf8_lossy(home), 64).into_owned();
            differs("the home in its header", format!("{found:?}"), "an absolute path".to_string())?;
        }
        let home = (length > 0).then(|| PathBuf::from(OsStr::from_bytes(home)));
        let checkpoint = u64::from_le_bytes(block[CHECKPOINT..][..8].try_into().expect("eight bytes"));
        Ok(Found { home, checkpoint: Lsn(checkpoint) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> FileHeader {
        FileHeader {
            database: DatabaseId(0xABCD),
            file: FileId(3),
            block_size: BlockSize::new(2048).expect("a block size"),
            extent_blocks: BlockCount(128),
            purpose: Purpose::Indx,
            created: Lsn(1),
            checkpoint: NO_CHECKPOINT,
            home: Some(PathBuf::from("/data/db")),
        }
    }

    #[test]
    fn a_header_belongs_to_its_file_and_no_other() {
        let mut block = vec![0xEE; 2048];
        header().write(&mut block).expect("fits");
        let path = Path::new("indx01.dbf");
        let found = Found { home: header().home, checkpoint: NO_CHECKPOINT };
        assert_eq!(header().verify(&block, path).expect("right"), found);
        note_checkpoint(&mut block, header().address(), Lsn(77), path).expect("whole");
        assert_eq!(header().verify(&block, path).expect("right").checkpoint, Lsn(77));
        let mut torn = block.clone();
        torn[900] ^= 1;
        assert!(note_checkpoint(&mut torn, header().address(), Lsn(78), path).expect_err("torn").is_damage());
        let check = |other: FileHeader, text: &str| {
            let error = other.verify(&block, path).expect_err("another's").to_string();
            assert!(error.contains(text), "{error}");
            assert_eq!(error.lines().count(), 1);
        };
        check(
            FileHeader { database: DatabaseId(1), ..header() },
            "belongs to database 0000000000000000000000000000abcd, expected 00000000000000000000000000000001",
        );
        check(
            FileHeader { file: FileId(4), ..header() },
            "its own address: found file 3 block 0, expected file 4 block 0",
        );
        check(
            FileHeader { purpose: Purpose::Users, ..header() },
            "its tablespace: found INDX, expected USERS",
        );
        check(
            FileHeader { extent_blocks: BlockCount(64), ..header() },
            "blocks in an extent: found 128, expected 64",
        );
        let larger = FileHeader { block_size: BlockSize::new(8192).expect("a block size"), ..header() };
        block.resize(8192, 0);
        let error = larger.verify(&block, path).expect_err("another size").to_string();
        assert!(error.contains("bytes in a block: found 2048, expected 8192"), "{error}");
    }

    #[test]
    fn a_home_that_does_not_fit_the_block_is_refused() {
        let long = FileHeader { home: Some(PathBuf::from("/x".repeat(1000))), ..header() };
        let error = long.write(&mut [0; 2048]).expect_err("too long").to_string();
        assert!(error.contains("up to 1920 bytes of it; choose a shorter path"), "{error}");
        assert_eq!(long.write(&mut [0; 4096]).map_err(|error| error.to_string()), Ok(()));
    }
}
