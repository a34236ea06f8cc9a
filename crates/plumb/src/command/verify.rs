//! `plumb verify`: compares a bundle with its raw records.

use crate::arguments::Verify;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::output;
use crate::targets::KINDS;
use plumb_pages::study;
use plumb_study::verify;
use serde_json::json;

/// Verifies a study's bundle against its raw records. Fails with exit code 5 on the first file that
/// was changed, or does not follow from the raw records.
pub fn run(arguments: &Verify) -> Result<Outcome, Failure> {
    let verified = match &arguments.expect {
        Some(hash) => verify::verify_published(&arguments.bundle, KINDS, study::rendered, hash)?,
        None => verify::verify(&arguments.bundle, KINDS, study::rendered)?,
    };
    if arguments.json {
        let claims = verified.analysis.as_ref().map(|analysis| analysis.claims.len());
        output::print_json(&json!({
            "bundle": arguments.bundle.display().to_string(),
            "files": verified.files,
            "runs": verified.runs,
            "claims": claims,
            "hash": verified.evidence,
            "judged_again": verified.judged_again,
            "differences": verified.differences,
        }))?;
        return Ok(Outcome::Fine);
    }
    let claims = verified.analysis.as_ref().map(|analysis| analysis.claims.len());
    let follows = claims.map_or("it has not come to an analysis yet".to_string(), |claims| {
        let claims = if claims == 1 { "1 claim".to_string() } else { format!("{claims} claims") };
        match (verified.judged_again, verified.differences.len()) {
            (None, _) => format!("every number and verdict of {claims} follows from the raw records"),
            (Some(schema), 0) => {
                format!("{claims} judged again (schema {schema} then): every verdict is the same")
            }
            (Some(schema), differ) => {
                format!("{claims} judged again (schema {schema} then): {differ} differ, as listed")
            }
        }
    });
    output::print(&format!(
        "{}: {} files as they were written, {} runs; {follows}; hash {}\n",
        arguments.bundle.display(),
        verified.files,
        verified.runs,
        verified.evidence
    ))?;
    for difference in &verified.differences {
        output::print(&format!("  {difference}\n"))?;
    }
    Ok(Outcome::Fine)
}
