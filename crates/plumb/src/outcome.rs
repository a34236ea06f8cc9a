//! How a command ended, if it did not fail.

/// What the exit code says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing is wrong.
    Fine,
    /// A receipt contradicts its setting, or a verification failed.
    Invalid,
    /// How a study stands, by its exit code.
    Judged(u8),
}

impl Outcome {
    /// The exit code.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Outcome::Fine => 0,
            Outcome::Invalid => 5,
            Outcome::Judged(code) => code,
        }
    }
}
