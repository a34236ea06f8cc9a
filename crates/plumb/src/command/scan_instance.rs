//! The hidden command of a process that scans a share of a table.

use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::output;
use plumb_run::instances;

/// Scans as standard input asks, and prints the answer.
///
/// # Errors
/// When the request cannot be read.
pub fn run() -> Result<Outcome, Failure> {
    let mut say = |line: &str| {
        // If the run around it is gone, its input ends too.
        let _ = output::print(&format!("{line}\n"));
    };
    let served = instances::serve(std::io::stdin(), &mut say);
    served.map_err(|error| Failure::run(format!("the request cannot be read: {error}")))?;
    Ok(Outcome::Fine)
}
