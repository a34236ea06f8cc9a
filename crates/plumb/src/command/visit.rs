//! The question before a study on a running server of others.

use crate::arguments::Study;
use crate::failure::Failure;
use crate::output;
use plumb_postgres::PostgresError;
use plumb_postgres::address::{SCHEMES, ServerAddress, environment};
use plumb_postgres::visit::Visit;
use plumb_study::definition;

/// True for a target that is an address and no kind.
pub fn is_address(target: &str) -> bool {
    SCHEMES.iter().any(|scheme| target.starts_with(scheme))
}

/// Shows what the study would do to the server of `--target`, and asks. None without an address.
/// Fails if the server is unfit, the answer is no, or there is neither a terminal nor `--yes`.
pub fn ask(arguments: &Study, study: &definition::Study) -> Result<Option<Visit>, Failure> {
    let Some(target) = arguments.target.as_deref().filter(|target| is_address(target)) else {
        let unused = || Failure::usage("--yes: only a study on a server by its address asks");
        return if arguments.yes { Err(unused()) } else { Ok(None) };
    };
    if arguments.server.is_some() {
        return Err(Failure::usage("--server: the server is that of --target; name one"));
    }
    let refused = |error: PostgresError| Failure::run(error.to_string());
    let address =
        ServerAddress::parse(target, &environment).map_err(|error| Failure::usage(error.to_string()))?;
    warn_of_password(target);
    let visit = Visit::of(&address).map_err(refused)?;
    let intentions = visit.intentions(study).map_err(refused)?;
    if arguments.yes {
        return Ok(Some(visit));
    }
    let listed: String = intentions.iter().map(|what| format!("  {what}\n")).collect();
    output::remark(&format!("This study would\n{listed}"));
    match output::agreed("Go on? [y/N] ")? {
        Some(true) => Ok(Some(visit)),
        Some(false) => Err(Failure::run("nothing was done; --yes does not ask".to_string())),
        None => Err(Failure::run(
            "nothing was done: there is no terminal to ask at; --yes does not ask".to_string(),
        )),
    }
}

/// Says that other users see a password of the command line.
pub fn warn_of_password(target: &str) {
    let user = target.split_once("://").and_then(|(_, rest)| rest.split_once('@')).map(|(user, _)| user);
    if user.is_some_and(|user| user.contains(':')) || target.contains("password=") {
        output::remark("the password in --target is shown by `ps`; PGPASSWORD or ~/.pgpass keeps it out\n");
    }
}
