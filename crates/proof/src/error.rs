//! What cannot be computed, and why.

/// An input that has no answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ProofError {
    /// A design or a contrast needs at least so many of something.
    #[error("{what}: {found} given, at least {needed} needed")]
    TooFew {
        /// What there is too little of.
        what: &'static str,
        /// How many were given.
        found: usize,
        /// How many it takes.
        needed: usize,
    },
    /// More arms than a study could ever run.
    #[error("{what}: {found} given, at most {most} allowed")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// How many were given.
        found: usize,
        /// The limit.
        most: usize,
    },
    /// An index that names nothing.
    #[error("there is no {what} {index}: the last one is {last}")]
    Unknown {
        /// What the index counts.
        what: &'static str,
        /// The index given.
        index: usize,
        /// The largest index there is.
        last: usize,
    },
    /// Two generators make the same column, or one makes no column.
    #[error("generator {index} repeats a column: two factors could not be told apart")]
    Confounded {
        /// Which generator, from 0.
        index: usize,
    },
    /// A measurement of which no logarithm exists.
    #[error("block {block}, slot {slot}: {value} has no logarithm; times and rates are above 0")]
    NotPositive {
        /// The block, from 0.
        block: usize,
        /// The slot, from 0.
        slot: usize,
        /// The value found.
        value: f64,
    },
    /// Blocks of different width.
    #[error("block {block} holds {found} values, the design has {expected} slots")]
    Ragged {
        /// The block, from 0.
        block: usize,
        /// Values in it.
        found: usize,
        /// Values it should hold.
        expected: usize,
    },
}
