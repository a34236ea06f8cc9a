//! The question before a study on a running server of others.

use crate::arguments::Study;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::{command_line, output};
use plumb_postgres::PostgresError;
use plumb_postgres::address::{SCHEMES, ServerAddress, environment};
use plumb_postgres::visit::{ReloadRight, Visit, VisitTerms, journal};
use plumb_study::bundle::Bundle;
use plumb_study::definition;

/// True for a target that is an address and no kind.
pub fn is_address(target: &str) -> bool {
    SCHEMES.iter().any(|scheme| target.starts_with(scheme))
}

/// Shows what the study would do to the server of `--target`, and asks. None without an address.
/// Fails if the server is unfit, the answer is no, or there is neither a terminal nor `--yes`.
pub fn ask(arguments: &Study, study: &definition::Study) -> Result<Option<Visit>, Failure> {
    let Some((visit, intentions)) = inspected(arguments, study)? else { return Ok(None) };
    match arguments.yes {
        true => output::remark(&listed("This study will", &intentions)),
        false => agreed("This study would", &intentions)?,
    }
    Ok(Some(visit))
}

/// Returns the server of `--target` and the intentions of the study there; nothing is changed.
/// Returns None if the target is no address.
pub fn inspected(
    arguments: &Study,
    study: &definition::Study,
) -> Result<Option<(Visit, Vec<String>)>, Failure> {
    let Some(target) = arguments.target.as_deref().filter(|target| is_address(target)) else {
        let given = [("--yes", arguments.yes), ("--allow-reload", arguments.allow_reload)];
        let unused = given.iter().find(|(_, given)| *given).map(|(option, _)| option);
        return unused.map_or(Ok(None), |option| {
            let why = "only a study on a server by its address takes it; leave it out";
            Err(Failure::usage(format!("{option}: {why}")))
        });
    };
    if arguments.server.is_some() {
        return Err(Failure::usage("--server: the server is that of --target; name one"));
    }
    let refused = |error: PostgresError| Failure::run(error.to_string());
    let address =
        ServerAddress::parse(target, &environment).map_err(|error| Failure::usage(error.to_string()))?;
    warn_of_password(target);
    let reload = if arguments.allow_reload { ReloadRight::Allowed } else { ReloadRight::Refused };
    let terms = VisitTerms { reload, journals: journal::directory(&environment) };
    let visit = Visit::of(&address, terms).map_err(refused)?;
    let intentions = visit.intentions(study).map_err(refused)?;
    Ok(Some((visit, intentions)))
}

/// Lists sentences below a head.
pub fn listed(head: &str, sentences: &[String]) -> String {
    let lines: String = sentences.iter().map(|what| format!("  {what}\n")).collect();
    format!("{head}\n{lines}")
}

/// Shows what a command would do, and asks. Fails if the answer is no, or there is no terminal.
pub fn agreed(head: &str, intentions: &[String]) -> Result<(), Failure> {
    output::remark(&listed(head, intentions));
    match output::agreed("Go on? [y/N] ")? {
        Some(true) => Ok(()),
        Some(false) => Err(Failure::run("nothing was done; --yes does not ask".to_string())),
        None => Err(Failure::run(
            "nothing was done: there is no terminal to ask at; --yes does not ask".to_string(),
        )),
    }
}

/// Refuses to go on with a study elsewhere than where it began: on a server by its address, which a
/// bundle does not keep with its password, or on plumb's own target.
pub fn require_same_place(arguments: &Study, resumed: Option<&Bundle>) -> Result<(), Failure> {
    let Some(bundle) = resumed else { return Ok(()) };
    let began = &bundle.contents().environment.target;
    let named = arguments.target.as_deref();
    match (began.contains(" at postgres"), named.is_some_and(is_address)) {
        (true, false) => Err(Failure::usage(format!(
            "--resume: the study began on {began}, and a bundle has no password; add --target postgres://..."
        ))),
        (false, true) => Err(Failure::usage(format!("--target: the study began on {began}; leave it out"))),
        (false, false) if named.is_some() => {
            Err(Failure::usage("--target: a study that is resumed has its own in its bundle; leave it out"))
        }
        _ => Ok(()),
    }
}

/// Lets an interrupt wait for a visit's end. Returns the options with which the study then goes on
/// at the same server.
pub fn begun(visit: &Visit, arguments: &Study, interrupt: &Interrupt) -> String {
    interrupt.undoes(visit.journal());
    let reload = if arguments.allow_reload { " --allow-reload" } else { "" };
    format!(" --target {}{reload}", command_line::quoted(&visit.address().to_string()))
}

/// Says that a killed study left settings on a server, which its figures depend on.
pub fn say_what_is_left(address: &ServerAddress) {
    let journals = journal::directory(&environment);
    let left = journals.and_then(|journals| plumb_postgres::visit::left_behind(address, &journals));
    let Some(path) = left else { return };
    let path = command_line::quoted(&path.display().to_string());
    output::remark(&format!(
        "a killed study left its settings on {address}; `plumb undo {path}` puts them back\n"
    ));
}

/// Says that other users see a password of the command line.
pub fn warn_of_password(target: &str) {
    let user = target.split_once("://").and_then(|(_, rest)| rest.split_once('@')).map(|(user, _)| user);
    if user.is_some_and(|user| user.contains(':')) || target.contains("password=") {
        output::remark("the password in --target is shown by `ps`; PGPASSWORD or ~/.pgpass keeps it out\n");
    }
}
