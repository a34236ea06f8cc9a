//! `plumb info`: a line a run, as awr_info.sh of SLOB prints them.

use crate::arguments::Info;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::output;
use crate::targets::KINDS;
use plumb_pages::info::{head, line};
use plumb_study::bundle::{CALIBRATION, Contents, RUNS, run_record};
use serde_json::Value;
use std::path::Path;

/// Prints a line for a bundle of a run, and one for each finished run of a study's bundle. A
/// calibration has none, which a remark reports. A bundle that cannot be read does not hide the
/// others. The error of the first such bundle is returned after the lines of all others.
pub fn run(arguments: &Info) -> Result<Outcome, Failure> {
    let mut text = String::new();
    let mut failed = None;
    for bundle in &arguments.bundles {
        match lines(bundle) {
            Ok(lines) => text.push_str(&lines),
            Err(failure) => failed = failed.or(Some(failure)),
        }
    }
    match arguments.json {
        true => output::print_json(&as_json(&text))?,
        false => output::print(&format!("{}\n{text}", head()))?,
    }
    failed.map_or(Ok(Outcome::Fine), Err)
}

/// Returns an object for each line, with the columns' names; a blank column is null.
fn as_json(lines: &str) -> Value {
    let name = |column: &str| column.to_lowercase().replace(' ', "_");
    let value = |cell: &str| match cell.parse::<f64>() {
        _ if cell.is_empty() => Value::Null,
        Ok(number) => number.into(),
        Err(_) => cell.into(),
    };
    let head = head();
    let object = |line: &str| {
        let cells = head.split('|').zip(line.split('|')).filter(|(column, _)| !column.is_empty());
        Value::Object(cells.map(|(column, cell)| (name(column), value(cell))).collect())
    };
    Value::Array(lines.lines().map(object).collect())
}

fn lines(bundle: &Path) -> Result<String, Failure> {
    let shown = bundle.display().to_string();
    let shown = shown.trim_end_matches('/');
    if bundle.join(CALIBRATION).is_file() {
        output::remark(&format!("{shown} is a calibration and no run; `plumb report {shown}` shows it\n"));
        return Ok(String::new());
    }
    if !bundle.join(RUNS).is_dir() {
        let (_, record) = run_record(bundle)?;
        return Ok(line(shown, &record) + "\n");
    }
    let (_, contents) = Contents::read(bundle, KINDS)?;
    if !contents.has_ended() {
        return Err(Failure::run(format!(
            "{shown} has not ended, and a look at its figures would be a test with a price; go on with `plumb study \
             --resume {shown}`, or end it where it is with `plumb report {shown} --end`"
        )));
    }
    let runs = contents.runs.iter().filter_map(|run| Some((run, run.record.as_ref()?)));
    Ok(runs
        .map(|(run, record)| line(&format!("{shown}:{} run {}", run.arm, run.number), record) + "\n")
        .collect())
}
