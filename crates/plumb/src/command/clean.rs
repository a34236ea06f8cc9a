//! `plumb clean`: lists files and traces that killed processes left, and removes them or restores
//! the originals.

use crate::arguments::Clean;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::output::{self, aligned};
use plumb_io::cure;
use plumb_io::named_directory;
use plumb_run::orphans::{self, End, Orphan};
use plumb_units::Bytes;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Lists the leftovers, and removes them.
pub fn run(arguments: &Clean) -> Result<Outcome, Failure> {
    named_directory::require("--path", &arguments.path)?;
    let found = orphans::find(&arguments.path);
    if arguments.json {
        return as_json(arguments, found);
    }
    let traces = plumb_snoop::orphaned_instances();
    if found.is_empty() && traces.is_empty() {
        output::print(&format!("{}: no killed process left anything\n", arguments.path.display()))?;
        return Ok(Outcome::Fine);
    }
    let stray = |orphan: &Orphan| match (orphan.stray(), orphan.end()) {
        (Some(stray), _) => format!("stays: plumb did not make {}", shown(stray)),
        (None, End::PutBack) => "a study wrote it: becomes what it was".to_string(),
        (None, End::Removed) => String::new(),
    };
    let of_traces = traces.iter().map(|trace| {
        vec![shown(trace), Bytes(0).to_string(), "the kernel's buffers of a killed trace".to_string()]
    });
    let of_files =
        found.iter().map(|orphan| vec![shown(&orphan.path), orphan.bytes.to_string(), stray(orphan)]);
    output::print(&aligned(&of_files.chain(of_traces).collect::<Vec<_>>()))?;
    if arguments.dry_run {
        output::print(&format!("{} would be freed\n", total(&found)))?;
        return Ok(Outcome::Fine);
    }
    remove_traces(&traces)?;
    let freed = free(found)?;
    output::print(&format!("{freed} freed\n"))?;
    Ok(Outcome::Fine)
}

/// Removes the kernel's buffers of killed traces, which are in no directory of the user.
fn remove_traces(traces: &[PathBuf]) -> Result<(), Failure> {
    traces.iter().try_for_each(|trace| {
        plumb_snoop::remove_instance(trace).map_err(|error| {
            let path = shown(trace);
            Failure::run(format!("cannot remove {path}: {error}; end the program that reads it"))
        })
    })
}

/// Removes leftovers, or restores the originals; returns the bytes that this freed.
fn free(found: Vec<Orphan>) -> Result<Bytes, Failure> {
    let mut freed = Bytes(0);
    for orphan in found {
        let (path, bytes, end) = (shown(&orphan.path), orphan.bytes, orphan.end());
        let stays = orphan.remove().map_err(|error| match end {
            End::PutBack => Failure::run(error.to_string()),
            End::Removed => {
                let by_hand = "give this user the right to, or remove it by hand";
                Failure::run(format!(
                    "cannot remove {path}: {error}{}",
                    cure(&error, Path::new(&path), by_hand)
                ))
            }
        })?;
        if stays.is_none() {
            freed.0 += bytes.0;
        }
    }
    Ok(freed)
}

/// Prints what was found, and the bytes that were freed: 0 of a dry run.
fn as_json(arguments: &Clean, found: Vec<Orphan>) -> Result<Outcome, Failure> {
    let traces = plumb_snoop::orphaned_instances();
    let row = |path: &Path, bytes: Bytes, stays: Option<String>| json!({ "path": shown(path), "bytes": bytes.0, "stays_because_of": stays });
    let of_files = found.iter().map(|orphan| row(&orphan.path, orphan.bytes, orphan.stray().map(shown)));
    let rows: Vec<_> = of_files.chain(traces.iter().map(|trace| row(trace, Bytes(0), None))).collect();
    let freed = if arguments.dry_run {
        Bytes(0)
    } else {
        remove_traces(&traces)?;
        free(found)?
    };
    output::print_json(&json!({ "found": rows, "freed_bytes": freed.0 }))?;
    Ok(Outcome::Fine)
}

/// Names leftovers in one line before another command starts.
pub fn remark(path: &Path) {
    let found = orphans::find(path);
    let Some(first) = found.first() else { return };
    let more = if found.len() > 1 { format!(" and {} more", found.len() - 1) } else { String::new() };
    let put_back = found.iter().any(|orphan| orphan.end() == End::PutBack);
    output::remark(&format!(
        "killed processes left {}{more}, {}: `plumb clean --path {}` {}\n",
        shown(&first.path),
        total(&found),
        path.display(),
        if put_back { "removes that, or puts back what a study wrote over" } else { "removes it" }
    ));
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn total(found: &[Orphan]) -> Bytes {
    Bytes(found.iter().filter(|orphan| orphan.stray().is_none()).map(|orphan| orphan.bytes.0).sum())
}
