//! `plumb trace`: the requests of a run, from its bundle.

use crate::arguments::Trace;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::{cure, output};
use plumb_record::trace::{self, Options};

/// Prints the requests of a run's trace. Fails if the bundle has no trace, it is damaged, or
/// no session has that name.
pub fn run(arguments: &Trace) -> Result<Outcome, Failure> {
    let found = trace::read(&arguments.bundle)
        .map_err(|error| Failure::run(format!("{error}{}", cure::of_trace(&error))))?;
    if arguments.json {
        let mut sums = trace::summary(&found, 0);
        sums.sessions.retain(|session| session.name.contains(&arguments.session));
        let value = serde_json::to_value(&sums).map_err(|error| Failure::run(error.to_string()))?;
        return output::print_json(&value).map(|()| Outcome::Fine);
    }
    let options =
        Options { session: arguments.session.clone(), lines: !arguments.summary, paths: arguments.paths };
    let text = trace::render(&found, &options).map_err(|why| Failure::run(format!("--session: {why}")))?;
    output::print(&text).map(|()| Outcome::Fine)
}
