//! Sources of rows and of records.

use crate::{RowBatch, Schema};

/// Error of a source of rows; its text is one line for the user.
pub type SourceError = Box<dyn std::error::Error + Send + Sync>;

/// A source that hands out each row once, in batches, to any number of threads: a
/// generator, a file, a query.
pub trait RowSource: Sync {
    /// Returns the columns of every row.
    fn schema(&self) -> &Schema;

    /// Returns the number of rows in all; `None` if it is not known in advance.
    fn row_count_hint(&self) -> Option<u64>;

    /// Clears `batch` and fills it with the next rows, about 64 KiB to 1 MiB. Returns false, and an
    /// empty batch, when no rows are left. Each row goes to one caller only.
    ///
    /// Fails where the rows cannot be read. One caller gets the error; later callers may find
    /// that no rows are left.
    fn next_batch(&self, batch: &mut RowBatch) -> Result<bool, SourceError>;
}

/// Records of one length, each computed from its number, so that any number of threads can
/// make any part of them.
pub trait RecordSource: Sync {
    /// Returns the length of each record in bytes.
    fn record_bytes(&self) -> usize;

    /// Returns the number of records in all.
    fn record_count(&self) -> u64;

    /// Fills `out`, a whole number of records, with the records from number `first` on.
    fn fill(&self, first: u64, out: &mut [u8]);
}
