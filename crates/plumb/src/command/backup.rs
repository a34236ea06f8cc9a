//! `plumb backup` and `plumb restore`: all files of the database, copied with their checksums.

use crate::arguments::{Backup, Restore};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::outcome::Outcome;
use crate::{database, output};
use plumb_engine::Settings;
use plumb_engine::backup::{self, Copied, Verification};
use plumb_events::{Recorder, Role};
use plumb_units::RowCount;
use serde_json::json;

/// Copies the database. An incomplete copy is removed.
pub fn run(arguments: &Backup) -> Result<Outcome, Failure> {
    let interrupt = Interrupt::install()?;
    let instance = database::open(&arguments.path, Settings::default(), &interrupt)?;
    backup::require_apart(&instance, &arguments.to)?;
    let session = instance.recorder.session(Role::User);
    // Opens a log that exists, but makes none for this.
    let has_log = backup::has_log(&instance);
    let transactions = has_log.then(|| database::open_transactions(&instance, &session)).transpose()?;
    let verification = match arguments.no_verify_checksums {
        true => Verification::Nothing,
        false => Verification::Blocks,
    };
    let copy = || backup::backup(&instance, transactions.as_ref(), &session, &arguments.to, verification);
    let copied = interrupt.whole_or_nothing(&arguments.to, copy)?;
    said(arguments.json, "copied to", &arguments.to.display().to_string(), &copied)
}

/// Makes the database of a backup. An incomplete one is removed. Fails if the backup is damaged,
/// or a database exists there.
pub fn restore(arguments: &Restore) -> Result<Outcome, Failure> {
    let interrupt = Interrupt::install()?;
    let home = database::home_in(&arguments.path)?;
    let session = Recorder::new().session(Role::User);
    let cancel = interrupt.cancel();
    // The path becomes absolute, so that messages hold in any directory.
    let from = arguments.from.canonicalize().unwrap_or_else(|_| arguments.from.clone());
    let restore = || backup::restore(&session, &cancel, &from, &home);
    let copied = interrupt.whole_or_nothing(&home, restore)?;
    said(arguments.json, "verified and restored to", &home.display().to_string(), &copied)
}

fn said(json: bool, what: &str, place: &str, copied: &Copied) -> Result<Outcome, Failure> {
    let Copied { file_count, bytes, block_count, elapsed } = copied;
    if json {
        output::print_json(&json!({
            "path": place,
            "files": file_count,
            "bytes": bytes.0,
            "blocks_verified": block_count,
            "elapsed_s": elapsed.seconds(),
        }))?;
        return Ok(Outcome::Fine);
    }
    let rate = bytes.per(*elapsed);
    let verified = match block_count {
        0 => String::new(),
        _ => format!("; {} blocks verified", RowCount(*block_count)),
    };
    output::print(&format!(
        "{} files, {bytes}, {what} {place} in {elapsed} ({rate}){verified}\n",
        RowCount(*file_count)
    ))?;
    Ok(Outcome::Fine)
}
