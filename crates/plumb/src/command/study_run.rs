//! The hidden command that makes one run of a study in a process of its own.

use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::output;
use crate::targets::RUNNERS;
use plumb_study::targets::child;

/// Makes the run described on standard input, and prints its record.
pub fn run() -> Result<Outcome, Failure> {
    output::print(&child::serve(std::io::stdin(), RUNNERS, |why| output::remark(&format!("{why}\n")))?)?;
    Ok(Outcome::Fine)
}
