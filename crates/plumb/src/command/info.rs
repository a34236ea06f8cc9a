//! `plumb info`: a line a run, as awr_info.sh of SLOB prints them.

use crate::arguments::Info;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::output;
use crate::targets::KINDS;
use plumb_lab::bundle::{Contents, RUNS, run_record};
use plumb_lab::info::{HEAD, line};

/// Prints them: a bundle of a run has one line, that of a study one for each run that ended.
///
/// # Errors
/// When a bundle has no record that this program can read.
pub fn run(arguments: &Info) -> Result<Outcome, Failure> {
    let mut text = format!("{HEAD}\n");
    for bundle in &arguments.bundles {
        let shown = bundle.display().to_string();
        let shown = shown.trim_end_matches('/');
        if !bundle.join(RUNS).is_dir() {
            let (_, record) = run_record(bundle)?;
            text.push_str(&(line(shown, &record) + "\n"));
            continue;
        }
        let (_, contents) = Contents::read(bundle, KINDS)?;
        if !contents.has_ended() {
            return Err(Failure::run(format!(
                "{shown} has not ended, and a look at its figures would be a test with a price; go on with `plumb study \
                 --resume {shown}`, or end it where it is with `plumb report {shown} --end`"
            )));
        }
        for run in &contents.runs {
            let Some(record) = &run.record else { continue };
            text.push_str(&(line(&format!("{shown}:{} run {}", run.arm, run.number), record) + "\n"));
        }
    }
    output::print(&text)?;
    Ok(Outcome::Fine)
}
