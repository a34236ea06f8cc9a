//! Verifies the blocks of a data file that tables and indexes own, while the file is copied.
//!
//! A block is wrong if its checksum or its address is. Blocks that no segment owns are ignored,
//! because a killed load may have left them torn. In a segment that transactions change, blocks
//! that none of its records has changed are ignored too: their LSN is below the segment's own.
//!
//! While sessions work, the database writer may write a block as it is read. So a wrong block is
//! read again, up to [`TRIES`] times. Only that many writes of one block within milliseconds would
//! look like damage.

use crate::storage::block::{self, LsnRange};
use crate::storage::datafile::DataFile;
use crate::{EngineError, Instance};
use plumb_events::{Event, IoStream, Session};
use plumb_io::{Arena, File, Method, MethodKind, Operation, Request};
use plumb_units::{BlockAddress, BlockNumber};
use std::sync::Arc;
use std::time::Duration;

/// Reads of a wrong block before it counts as damaged.
const TRIES: u32 = 20;
/// Time for a write of a block to end.
const PAUSE: Duration = Duration::from_millis(2);

/// A range of blocks in use.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    first: u32,
    end: u32,
    /// Operations that may have written the blocks; other blocks are not the segment's yet.
    lsns: LsnRange,
}

/// Blocks of a data file to verify.
pub(super) struct Owned<'a> {
    file: &'a DataFile,
    session: &'a Session,
    /// Sorted by their first block.
    stretches: Vec<Stretch>,
    block_count: u64,
}

impl<'a> Owned<'a> {
    pub(super) fn of(instance: &Instance, file: &'a DataFile, session: &'a Session) -> Owned<'a> {
        let catalog = instance.catalog();
        let tables = catalog.tables.iter().map(|table| (&table.extents, table.lsns));
        let leaves = catalog.indexes.iter().map(|index| (&index.leaves, index.lsns));
        let branches = catalog.indexes.iter().map(|index| (&index.branches, index.lsns));
        let direct = tables.chain(leaves).chain(branches).map(|(extents, lsns)| (extents.as_slice(), lsns));
        let live = catalog.live_extents().map(|(_, extents, created)| (extents, LsnRange::from(created)));
        let mut stretches: Vec<Stretch> = direct
            .chain(live)
            .flat_map(|(extents, lsns)| extents.iter().map(move |piece| (piece, lsns)))
            .filter(|(piece, _)| piece.extent.file == file.id.0)
            .map(|(piece, lsns)| {
                let first = piece.extent.block;
                Stretch { first, end: first + piece.used, lsns }
            })
            .collect();
        stretches.sort_by_key(|stretch| stretch.first);
        Owned { file, session, stretches, block_count: 0 }
    }

    pub(super) fn nothing(file: &'a DataFile, session: &'a Session) -> Owned<'a> {
        Owned { file, session, stretches: Vec::new(), block_count: 0 }
    }

    pub(super) fn block_count(&self) -> u64 {
        self.block_count
    }

    /// Verifies the blocks of a piece of the file, which begins at a block.
    pub(super) fn verify(&mut self, offset: u64, piece: &[u8]) -> Result<(), EngineError> {
        let size = self.file.block_size.bytes();
        assert!(offset.is_multiple_of(size as u64), "pieces are whole blocks");
        let first = offset / size as u64;
        for (at, block) in piece.chunks_exact(size).enumerate() {
            let number = first as u32 + at as u32;
            let after = self.stretches.partition_point(|stretch| stretch.first <= number);
            let Some(stretch) = after.checked_sub(1).map(|at| self.stretches[at]) else { continue };
            if number >= stretch.end {
                continue;
            }
            self.block_count += 1;
            let address = BlockAddress { file: self.file.id, block: BlockNumber(number) };
            if !is_right(block, address, stretch.lsns) {
                self.read_again(address, stretch.lsns)?;
            }
        }
        Ok(())
    }

    fn read_again(&self, address: BlockAddress, lsns: LsnRange) -> Result<(), EngineError> {
        let file: &Arc<File> = &self.file.file;
        let size = self.file.block_size.bytes();
        let mut channel = Method::start(MethodKind::Sync, 1)?.channel(&[])?;
        let mut block = Arena::buffers(size, 1)?.1.pop();
        for _ in 0..TRIES {
            std::thread::sleep(PAUSE);
            let request = Request {
                operation: Operation::Read,
                file: Arc::clone(file),
                offset: u64::from(address.block.0) * size as u64,
                buffer: block.take().expect("each request gives it back"),
                range: 0..size,
                event: Event::BackupIo,
                stream: IoStream::BackupReads,
                tag: 0,
            };
            channel.carry_out(self.session, request, &mut block)?;
            if is_right(block.as_ref().map_or(&[][..], |block| &block[..size]), address, lsns) {
                return Ok(());
            }
        }
        let block = block.expect("each request gives it back");
        Err(block::damage(&block[..size], address, file.path()))
    }
}

/// True for a sound block of this address, and for one that the segment has not written yet.
fn is_right(block: &[u8], address: BlockAddress, lsns: LsnRange) -> bool {
    let not_yet = lsns.first_record().is_some_and(|first| block::lsn_of(block) < first.0);
    not_yet || block::is_whole(block, address)
}
