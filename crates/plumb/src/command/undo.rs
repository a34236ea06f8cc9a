//! `plumb undo`: puts back settings that a killed study left on a PostgreSQL server.

use super::visit::{agreed, listed, warn_of_password};
use crate::arguments::UndoOf;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::output;
use plumb_postgres::PostgresError;
use plumb_postgres::address::{ServerAddress, environment};
use plumb_postgres::leftover::journals;
use plumb_postgres::visit::{LeftJournal, journal, record};
use std::path::Path;

/// Carries out a journal, or all that wait.
pub fn run(arguments: &UndoOf) -> Result<Outcome, Failure> {
    arguments.target.iter().for_each(|target| warn_of_password(target));
    let waiting = arguments.journal.as_ref().map_or_else(journals, |journal| vec![journal.clone()]);
    if waiting.is_empty() {
        output::print("no killed study left settings on a server\n")?;
    }
    waiting.iter().try_for_each(|path| one(path, arguments))?;
    Ok(Outcome::Fine)
}

/// Shows what a journal would put back, asks, and only then connects to its server.
fn one(path: &Path, arguments: &UndoOf) -> Result<(), Failure> {
    let refused = |error: PostgresError| Failure::run(error.to_string());
    if path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(record::PREFIX.as_bytes())) {
        return Err(Failure::run(format!(
            "{}: it notes a database of a killed study, and no settings; `plumb clean` drops the database",
            path.display()
        )));
    }
    let left = LeftJournal::take(path).map_err(refused)?;
    let shown = path.display();
    let own = journal::directory(&environment);
    let target = match &arguments.target {
        Some(target) => target,
        None if own.as_ref().is_some_and(|own| left.lies_in(own)) => left.address(),
        None => {
            // The address is a stranger's text, which may have a password.
            let named = ServerAddress::parse(left.address(), &|_| None);
            let named = named.map_or("no address".to_string(), |named| named.to_string());
            let own = own.map_or("the directory of journals".to_string(), |own| own.display().to_string());
            return Err(Failure::run(format!(
                "{shown}: it is not in {own}, so that a stranger may have written the address in it, {named}; name the server \
                 yourself: --target postgres://..."
            )));
        }
    };
    let server = ServerAddress::parse(target, &environment).map_err(refused)?;
    let intentions = left.intentions(&server);
    match arguments.yes {
        true => output::remark(&listed("This will", &intentions)),
        false => agreed("This would", &intentions)?,
    }
    let said = left.at(&server).and_then(|undo| undo.carry_out()).map_err(refused)?;
    said.iter().for_each(|line| output::remark(&format!("{line}\n")));
    output::print(&format!("{shown}: done and removed\n"))
}
