//! A suite: several studies of one question in sequence, and a table of all their claims.
//!
//! Each study has a bundle of its own below the suite's directory, so that each can be verified and
//! reported separately. The error of 5% holds per study: three studies together have up to 15%.

use super::study::{one, show};
use crate::arguments::{PrintForm, Study};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::outcome::Outcome;
use crate::output::{self, aligned_under_head};
use crate::{bundle, command_line};
use plumb_study::analysis::result::Analysis;
use plumb_study::bundle::write_over;
use plumb_study::definition::catalog::Suite;
use std::path::PathBuf;

/// The table's file in the suite's directory.
const TABLE: &str = "claims.txt";

/// Runs the studies of a suite in sequence. After an error, the bundles
/// of earlier studies are kept.
pub fn run(arguments: &Study, suite: &Suite, interrupt: &Interrupt) -> Result<Outcome, Failure> {
    if arguments.resume.is_some() {
        return Err(Failure::usage(format!(
            "--resume: {} is a suite; go on with the study of it that was interrupted, by its own bundle",
            suite.name
        )));
    }
    let name = format!("study-{}", suite.name);
    let reserved = bundle::reserve(arguments.conduct.bundle.as_deref(), Some(&name), interrupt)?
        .ok_or_else(|| Failure::run("no directory for the bundles"))?;
    let directory: PathBuf = reserved.directory().to_path_buf();
    let mut analyses: Vec<Analysis> = Vec::new();
    for member in suite.studies {
        let asked = Study { study: Some((*member).to_string()), ..arguments.clone() };
        let (analysis, kept) = one(&asked, Some(&directory.join(member)), interrupt)?;
        show(&asked, &kept, &analysis)?;
        analyses.push(analysis);
    }
    let table = table(suite, &analyses);
    let file = write_over(&directory, TABLE, table.as_bytes())?;
    if arguments.conduct.shown() == PrintForm::Text {
        output::print(&format!("\n{table}  {}\n", command_line::quoted(&file.display().to_string())))?;
    }
    let open = arguments.conduct.open();
    let worst = analyses.iter().filter_map(|analysis| analysis.standing_with(open)).min();
    Ok(worst.map_or(Outcome::Fine, Outcome::Stands))
}

/// Returns a table with a line for every claim of every study.
fn table(suite: &Suite, analyses: &[Analysis]) -> String {
    let mut rows = vec![["STUDY", "CLAIM", "STANDS", "VERDICT"].map(String::from).to_vec()];
    for analysis in analyses {
        for claim in &analysis.claims {
            rows.push(vec![
                analysis.study.name.clone(),
                claim.name.clone(),
                claim.outcome_word().to_string(),
                claim.shown(),
            ]);
        }
    }
    let studies = analyses.len();
    format!(
        "{}: {}\n{}The error of 5% is each study's; of {studies} studies {}% at most would say something false.\n",
        suite.name,
        suite.title,
        aligned_under_head(&rows),
        5 * studies
    )
}
