//! Errors of computations in this crate.

/// An input that has no answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ProofError {
    /// A design or a contrast has too few of something.
    #[error("{what}: {found} given, at least {needed} needed")]
    TooFew {
        /// Kind of the counted things, for the message.
        what: &'static str,
        /// Number that the caller gave.
        found: usize,
        /// Least number that is needed.
        needed: usize,
    },
    /// A design has more of something than a study could run.
    #[error("{what}: {found} given, at most {most} allowed")]
    TooMany {
        /// Kind of the counted things, for the message.
        what: &'static str,
        /// Number that the caller gave.
        found: usize,
        /// Largest number that is allowed.
        most: usize,
    },
    /// An index is out of range.
    #[error("there is no {what} {index}: the last one is {last}")]
    Unknown {
        /// Kind of the indexed things, for the message.
        what: &'static str,
        /// Index that the caller gave.
        index: usize,
        /// Largest index that is valid.
        last: usize,
    },
    /// Two generators make the same column, or one makes no column.
    #[error("generator {index} repeats a column: two factors could not be told apart")]
    Confounded {
        /// Index of the generator, from 0.
        index: usize,
    },
    /// A figure is not positive, so it has no logarithm.
    #[error("block {block}, slot {slot}: {value} has no logarithm; times and rates are above 0")]
    NotPositive {
        /// Index of its block, from 0.
        block: usize,
        /// Index of its slot, from 0.
        slot: usize,
        /// Value of the offending figure.
        value: f64,
    },
    /// A block has another number of figures than the design.
    #[error("block {block} holds {found} values, the design has {expected} slots")]
    Ragged {
        /// Index of the block, from 0.
        block: usize,
        /// Number of figures in it.
        found: usize,
        /// Number of figures that the design has.
        expected: usize,
    },
}
