//! What a database is asked to do, and the rows to do it with.
//!
//! Three sources of rows: [`SalesTable`] makes the sales of a chain of stores and
//! [`PagesTable`] views of web pages, each from a seed; [`CsvFile`] reads the
//! user's own. None knows where its rows will be kept. [`gensort`] makes the records
//! of the sort benchmarks.

mod csv_file;
pub mod gensort;
mod pages;
mod sales;

pub use csv_file::{
    ColumnBasis, ColumnFinding, CsvError, CsvFile, CsvOptions, Delimiter, TextCause, TextReason,
};
pub use pages::{PAGE_BYTES_MAX, PagesSpec, PagesTable};
pub use sales::{SALES_ROWS_OF_SOURCE, SalesSpec, SalesTable};

use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;

/// The generator of a chunk. The seed is spread over the upper bits, so that
/// the chunks of one small seed are not those of the next; seeding then mixes
/// both into the whole state.
pub(crate) fn chunk_generator(seed: u64, chunk: u64) -> Xoshiro256PlusPlus {
    let chunk_seed = seed.wrapping_mul(0x9FB2_1C65_1E98_DF25).rotate_left(32) ^ chunk;
    Xoshiro256PlusPlus::seed_from_u64(chunk_seed)
}
