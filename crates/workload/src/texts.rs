//! TEXTS: rows of two shapes for loads into blocks of several sizes, after the tables of a
//! published benchmark and of its critic.
//!
//! | shape | bytes of a row | longer than a block of 2K takes |
//! |-------|----------------|---------------------------------|
//! | short | 93 on average  | none                            |
//! | tail  | 352 on average | 7.2%                            |
//!
//! The critic showed an effect of the block size only with the second shape, where 12,524 of
//! 174,065 rows exceed a block of 2K and are chained. The benchmark had rows unlike those of
//! the user that it advised.
//!
//! Generation: a number, a name and a text of drawn length. Lengths of short rows are uniform
//! around the mean; the others come from two ranges, below 300 bytes or beyond 2K. Texts are
//! pieces of one pool of words. Rows are made in chunks, as those of the sales are, and are the
//! same for any number of threads.

use crate::chunks::Chunks;
use plumb_types::{Column, ColumnType, RowBatch, RowSource, Schema, SourceError};
use rand::Rng;
use rand::rngs::Xoshiro256PlusPlus;
use std::ops::Range;

const TEXT_BYTES_MAX: u64 = 2750;
/// Bytes of the pool of texts; a text starts anywhere in its first half.
const POOL_BYTES: usize = 8192;
/// Fraction of long rows in the tail shape: 12,524 of 174,065 in the source.
const TAIL: (u64, u64) = (12_524, 174_065);

const WORDS: [&str; 16] = [
    "select ",
    "from ",
    "where ",
    "begin ",
    "end; ",
    "if ",
    "then ",
    "loop ",
    "commit; ",
    "varchar2 ",
    "number ",
    "cursor ",
    "fetch ",
    "into ",
    "values ",
    "return ",
];

/// Distribution of the lengths of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextShape {
    /// 93 bytes on average; no row exceeds a block of 2K.
    Short,
    /// 352 bytes on average; one in fourteen exceeds a block of 2K.
    Tail,
}

impl TextShape {
    /// Both shapes, the short one first.
    pub const ALL: [TextShape; 2] = [TextShape::Short, TextShape::Tail];

    /// Returns its word for the parameter `shape`.
    pub const fn name(self) -> &'static str {
        match self {
            TextShape::Short => "short",
            TextShape::Tail => "tail",
        }
    }

    /// Returns the average bytes of a row, as an image.
    pub const fn row_bytes(self) -> u64 {
        match self {
            TextShape::Short => 93,
            TextShape::Tail => 352,
        }
    }

    /// Returns the range of lengths from which a text is drawn uniformly.
    fn lengths(self, random: &mut Xoshiro256PlusPlus) -> Range<u64> {
        match self {
            TextShape::Short => 48..92,
            TextShape::Tail if below(random, TAIL.1) < TAIL.0 => 2050..TEXT_BYTES_MAX,
            TextShape::Tail => 70..278,
        }
    }
}

/// Specification of texts; equal values give equal rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextsSpec {
    /// Number of rows of the table.
    pub rows: u64,
    /// Distribution of the lengths of rows.
    pub shape: TextShape,
    /// Seed of the draws; any number is valid.
    pub seed: u64,
}

/// The texts as a source of rows.
#[derive(Debug)]
pub struct TextsTable {
    spec: TextsSpec,
    schema: Schema,
    pool: String,
    chunks: Chunks,
}

impl TextsTable {
    /// Creates the table of a specification. Rows are made on demand.
    pub fn new(spec: TextsSpec) -> TextsTable {
        let columns = vec![
            Column::required("ID", ColumnType::NUMBER),
            Column::required("NAME", ColumnType::Text { max_bytes: 30 }),
            Column::required("TEXT", ColumnType::Text { max_bytes: 4000 }),
        ];
        let mut random = Chunks::new(0, 1).generator(0);
        let mut pool = String::with_capacity(POOL_BYTES + 16);
        while pool.len() < POOL_BYTES {
            pool.push_str(WORDS[below(&mut random, WORDS.len() as u64) as usize]);
        }
        TextsTable { spec, schema: Schema { columns }, pool, chunks: Chunks::new(spec.rows, spec.seed) }
    }

    /// Fills the empty `batch` with the rows of a chunk; none after the last.
    fn fill_chunk(&self, chunk: u64, batch: &mut RowBatch) {
        batch.clear();
        let mut random = self.chunks.generator(chunk);
        let furthest = (POOL_BYTES as u64) / 2;
        for row in self.chunks.rows(chunk) {
            let Range { start, end } = self.spec.shape.lengths(&mut random);
            let length = (start + below(&mut random, end - start)) as usize;
            let at = below(&mut random, furthest) as usize;
            let name = below(&mut random, furthest) as usize;
            batch.begin_row(3);
            batch.push_number(i128::from(row), 0);
            batch.push_text(&self.pool[name..name + 12]);
            batch.push_text(&self.pool[at..at + length]);
            batch.end_row();
        }
    }
}

impl RowSource for TextsTable {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn row_count_hint(&self) -> Option<u64> {
        Some(self.spec.rows)
    }

    /// Returns no error, because it reads nothing.
    fn next_batch(&self, batch: &mut RowBatch) -> Result<bool, SourceError> {
        self.fill_chunk(self.chunks.take(), batch);
        Ok(!batch.is_empty())
    }
}

/// Draws a number below `bound`, which must be small: the bias is then below 2^-32.
fn below(random: &mut Xoshiro256PlusPlus, bound: u64) -> u64 {
    ((random.next_u64() >> 32) * bound) >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Room of a row in a block of 2K: without its header and a slot.
    const ROOM_2K: usize = 2048 - 24 - 2;

    fn lengths(shape: TextShape, seed: u64) -> Vec<usize> {
        let table = TextsTable::new(TextsSpec { rows: 100_000, shape, seed });
        let (mut batch, mut lengths) = (RowBatch::new(), Vec::new());
        while table.next_batch(&mut batch).expect("never fails") {
            lengths.extend(batch.iter().map(<[u8]>::len));
        }
        lengths
    }

    #[test]
    fn rows_are_as_long_as_those_of_the_source() {
        for shape in TextShape::ALL {
            let lengths = lengths(shape, 2005);
            let mean = lengths.iter().sum::<usize>() as f64 / lengths.len() as f64;
            let expected = shape.row_bytes() as f64;
            assert!((mean / expected - 1.0).abs() < 0.02, "{}: {mean}", shape.name());
            let chained = lengths.iter().filter(|length| **length > ROOM_2K).count() as f64 / 100_000.0;
            let share = if shape == TextShape::Tail { TAIL.0 as f64 / TAIL.1 as f64 } else { 0.0 };
            assert!((chained - share).abs() < 0.004, "{}: {chained}", shape.name());
        }
    }

    #[test]
    fn a_seed_is_one_table_and_another_seed_another_one() {
        assert_eq!(lengths(TextShape::Tail, 1), lengths(TextShape::Tail, 1));
        assert_ne!(lengths(TextShape::Tail, 1), lengths(TextShape::Tail, 2));
    }
}
