//! `plumb compare`: two runs, two arms of studies, two reports of other programs, or two traces,
//! side by side; also a run and a baseline.

use super::prune;
use crate::arguments::Compare;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::targets::KINDS;
use crate::{baseline, output};
use plumb_foreign::source::STDIN;
use plumb_foreign::{ForeignError, READERS, Source, import};
use plumb_record::{FILE, Record, RunState};
use plumb_report::html;
use plumb_study::bundle;
use plumb_study::compare::compare_with;
use std::path::Path;

/// Compares two runs or arms, and prints or writes the comparison. Fails if a side is no bundle and
/// no arm of one, the two ran different workloads, or a report cannot be written.
pub fn run(arguments: &Compare) -> Result<Outcome, Failure> {
    if let Some(name) = &arguments.save_baseline {
        baseline::save(name, Path::new(&arguments.first))?;
    }
    let (first, second) = match (&arguments.baseline, &arguments.second) {
        (Some(name), _) => (baseline::find(name)?, &arguments.first),
        (None, Some(second)) => (arguments.first.clone(), second),
        (None, None) if arguments.save_baseline.is_some() => return Ok(Outcome::Fine),
        (None, None) if imported(&format!("{}:1", arguments.first)).is_some() => {
            (format!("{}:1", arguments.first), &format!("{}:2", arguments.first))
        }
        (None, None) => {
            return Err(Failure::usage(format!(
                "<SECOND> is missing: {} is no file with two reports or periods; name a second bundle or file",
                arguments.first
            )));
        }
    };
    if let Some(report) = prune::compared(Path::new(&first), Path::new(second)) {
        let report = report?;
        if let Some(html) = &arguments.html {
            let html = html.display();
            return Err(Failure::usage(format!(
                "--html {html}: two traces have no page; leave it out, or take --json"
            )));
        }
        return match arguments.json {
            true => output::print(&bundle::json(&report)?).map(|()| Outcome::Fine),
            false => {
                output::print(&format!("{first} to {second}\n"))?;
                prune::show(&report)
            }
        };
    }
    let comparison = compare_with(&first, second, KINDS, &imported)?;
    let document = plumb_pages::compare::document(&comparison);
    if let Some(path) = &arguments.html {
        bundle::write_new(path, &html::render(&document))?;
    }
    output::print(&match arguments.json {
        true => document.answered(&bundle::json(&comparison)?),
        false => output::report(&document),
    })?;
    let mut runs = comparison.first.runs.iter().chain(&comparison.second.runs);
    let invalid = runs.any(|run| run.validity().state == RunState::Invalid);
    Ok(if invalid { Outcome::INVALID } else { Outcome::Fine })
}

/// Reads a side that is a file with reports of other programs, `-` or `FILE:N` for its N-th one;
/// `None` if it is anything else. Both periods of a report of two count.
fn imported(named: &str) -> Option<Result<Record, String>> {
    let is_file = |path: &Path| path == Path::new(STDIN) || path.is_file() && !path.ends_with(FILE);
    let (path, number) = match named.rsplit_once(':') {
        _ if is_file(Path::new(named)) => (named, None),
        Some((path, number)) if is_file(Path::new(path)) => (path, Some(number.parse::<usize>().ok()?)),
        _ => return None,
    };
    // A record may have any name.
    if path != STDIN && bundle::run_record(Path::new(path)).is_ok() {
        return None;
    }
    let read =
        Source::read(Path::new(path)).and_then(|source| import(&source, READERS, env!("CARGO_PKG_VERSION")));
    let imports = match read {
        Ok(imports) => imports,
        Err(ForeignError::Unknown { .. }) => return None,
        Err(error) => return Some(Err(error.to_string())),
    };
    let mut kinds = Vec::new();
    let mut records = Vec::new();
    for import in imports {
        kinds.push(import.report.kind.clone());
        records.extend(import.record.or(import.undated));
        records.extend(import.second);
    }
    let count = records.len();
    Some(match number.unwrap_or(1) {
        _ if number.is_none() && count > 1 => Err(format!(
            "{named} has {count} reports or periods ({}); name one, as in {named}:1",
            kinds.join(", ")
        )),
        number if (1..=count).contains(&number) => Ok(records.swap_remove(number - 1)),
        number => Err(format!("{path} has no report {number}; it has {count}")),
    })
}
