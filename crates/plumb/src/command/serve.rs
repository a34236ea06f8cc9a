//! `plumb serve`: bundles in a browser and by REST.

use crate::arguments::ServeOf;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::output;
use crate::targets::{KINDS, LEFTOVERS};
use plumb_postgres::leftover::journals;
use plumb_serve::{BundleServer, Program, ServeError};

/// The program as its answers know it.
pub const PROGRAM: Program =
    Program { kinds: KINDS, leftovers: LEFTOVERS, journals, version: env!("CARGO_PKG_VERSION") };

/// Serves until a signal ends the program. Fails if the address is no loopback one or is taken.
pub fn run(arguments: &ServeOf) -> Result<Outcome, Failure> {
    let failed = |error: ServeError| match error {
        ServeError::Address { .. } | ServeError::NotLoopback { .. } => Failure::usage(error.to_string()),
        error => Failure::run(error.to_string()),
    };
    let server =
        BundleServer::listen(&arguments.listen, arguments.directories.clone(), PROGRAM).map_err(failed)?;
    output::print(&format!("http://{}/\n", server.address()))?;
    server.run().map_err(failed)?;
    Ok(Outcome::Fine)
}
