//! `plumb clean`: lists what killed processes left, and removes it or restores the originals.

use crate::arguments::Clean;
use crate::failure::Failure;
use crate::history::REPORTS;
use crate::outcome::Outcome;
use crate::output::{self, aligned};
use crate::targets::LEFTOVERS;
use plumb_host::leftover::{Fate, Remains};
use plumb_io::{marked, named_directory};
use plumb_units::Bytes;
use serde_json::json;
use std::path::Path;

/// Lists the leftovers, and puts all of them away. Fails with the reason of the first that stays,
/// unless the list says that it stays.
pub fn run(arguments: &Clean) -> Result<Outcome, Failure> {
    named_directory::require("--path", &arguments.path)?;
    let mut found = marked::find(&arguments.path, REPORTS, LEFTOVERS);
    found.extend(LEFTOVERS.iter().flat_map(|maker| maker.elsewhere()));
    let rows: Vec<_> = found.iter().map(row).collect();
    let frees: Bytes = found.iter().map(Remains::freed).sum();
    if arguments.json {
        let freed = if arguments.dry_run { Ok(Bytes(0)) } else { put_away(found) };
        let freed_bytes = freed.as_ref().map_or(0, |freed| freed.0);
        output::print_json(&json!({ "found": rows, "freed_bytes": freed_bytes }))?;
        return freed.map(|_| Outcome::Fine);
    }
    if found.is_empty() {
        output::print(&format!("{}: no killed process left anything\n", arguments.path.display()))?;
        return Ok(Outcome::Fine);
    }
    let lines = found.iter().map(|one| vec![one.name.clone(), one.bytes.to_string(), remark_on(one)]);
    output::print(&aligned(&lines.collect::<Vec<_>>()))?;
    if arguments.dry_run {
        output::print(&format!("{frees} would be freed\n"))?;
        return Ok(Outcome::Fine);
    }
    output::print(&format!("{} freed\n", put_away(found)?))?;
    Ok(Outcome::Fine)
}

fn row(one: &Remains) -> serde_json::Value {
    let stays = match &one.fate {
        Fate::Stays(why) => Some(why),
        _ => None,
    };
    json!({ "path": one.name, "bytes": one.bytes.0, "stays_because_of": stays })
}

fn remark_on(one: &Remains) -> String {
    match &one.fate {
        Fate::Removed => String::new(),
        Fate::Ends(how) => how.to_string(),
        Fate::Stays(why) => format!("stays: {why}"),
    }
}

/// Removes leftovers, or restores the originals; returns the bytes that this freed.
fn put_away(found: Vec<Remains>) -> Result<Bytes, Failure> {
    let (mut freed, mut failed) = (Bytes(0), None);
    for one in found {
        let bytes = one.freed();
        match one.put_away() {
            Ok(()) => freed += bytes,
            Err(why) => failed = failed.or(Some(why)),
        }
    }
    failed.map_or(Ok(freed), |why| Err(Failure::run(why)))
}

/// Names leftovers in one line before another command starts.
pub fn remark(path: &Path) {
    let found = marked::find(path, REPORTS, LEFTOVERS);
    let Some(first) = found.first() else { return };
    let more = if found.len() > 1 { format!(" and {} more", found.len() - 1) } else { String::new() };
    let restores = found.iter().any(|one| matches!(one.fate, Fate::Ends(_)));
    output::remark(&format!(
        "killed processes left {}{more}, {}: `plumb clean --path {}` {}\n",
        first.name,
        found.iter().map(Remains::freed).sum::<Bytes>(),
        path.display(),
        if restores { "removes that, or puts back what a study wrote over" } else { "removes it" }
    ));
}
