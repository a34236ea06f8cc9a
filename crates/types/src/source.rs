//! Where rows come from.

use crate::{RowBatch, Schema};

/// What a source of rows fails with; its text is one line for the user.
pub type SourceError = Box<dyn std::error::Error + Send + Sync>;

/// Something that hands out rows once, in batches, to any number of threads:
/// a generator, a file, a query.
pub trait RowSource: Sync {
    /// The columns of every row.
    fn schema(&self) -> &Schema;

    /// How many rows there are in all, where that is known beforehand.
    fn row_count_hint(&self) -> Option<u64>;

    /// Clears `batch` and fills it with the next rows, about 64 KiB to 1 MiB
    /// of them. Returns false, and an empty batch, once no rows are left; each
    /// row goes to one caller only.
    ///
    /// Fails where the rows cannot be had. The caller that meets the error
    /// gets it; callers after it may be told that no rows are left.
    fn next_batch(&self, batch: &mut RowBatch) -> Result<bool, SourceError>;
}

/// Records of one length, each made from its number alone, so that any number of
/// threads can make any part of them.
pub trait RecordSource: Sync {
    /// Bytes of each record.
    fn record_bytes(&self) -> usize;

    /// How many records there are.
    fn record_count(&self) -> u64;

    /// Fills `out`, a whole number of records long, with the records from number
    /// `first` on.
    fn fill(&self, first: u64, out: &mut [u8]);
}
