//! `plumb undo`: puts back settings that a killed study left on a PostgreSQL server.

use super::visit::{agreed, listed, warn_of_password};
use crate::arguments::UndoOf;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::output;
use plumb_postgres::PostgresError;
use plumb_postgres::address::{ServerAddress, environment};
use plumb_postgres::visit::Undo;

/// Shows what a journal would put back, asks, and does it.
pub fn run(arguments: &UndoOf) -> Result<Outcome, Failure> {
    let refused = |error: PostgresError| Failure::run(error.to_string());
    arguments.target.iter().for_each(|target| warn_of_password(target));
    let undo = Undo::of(&arguments.journal, &|journal| {
        ServerAddress::parse(arguments.target.as_ref().unwrap_or(&journal.address), &environment)
    });
    let undo = undo.map_err(refused)?;
    let intentions = undo.intentions().map_err(refused)?;
    match arguments.yes {
        true => output::remark(&listed("This will", &intentions)),
        false => agreed("This would", &intentions)?,
    }
    let said = undo.carry_out().map_err(refused)?;
    said.iter().for_each(|line| output::remark(&format!("{line}\n")));
    let shown = arguments.journal.display();
    output::print(&format!("{shown}: done and removed\n"))?;
    Ok(Outcome::Fine)
}
