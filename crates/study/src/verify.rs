//! Verifies a bundle against accidental change, not forgery: files against checksums, numbers and
//! verdicts against raw records.
//!
//! The analysis is a pure function of study, environment, order and records, so it is compared byte
//! by byte. A bundle of an older analysis is judged again: its files and evidence are checked
//! alike, and verdicts that differ are listed ([`Verified::judged_again`]), because a better
//! analysis must not make published runs worthless.

use crate::StudyError;
use crate::analysis::result::{ANALYSIS_SCHEMA_VERSION, Analysis};
use crate::bundle::{ANALYSIS, Contents, Manifest, is_made, unlisted};
use crate::report::{self, Derived, RenderPage};
use crate::vocabulary::Kinds;
use std::path::Path;

#[derive(Debug)]
pub struct Verified {
    /// Number of files that match their checksum.
    pub files: usize,
    pub runs: usize,
    /// Hash of the analysis's input.
    pub evidence: String,
    /// The analysis of the records; `None` if the study has none yet.
    pub analysis: Option<Analysis>,
    /// Schema version of an older analysis in the bundle.
    pub judged_again: Option<u64>,
    /// Claims whose verdict or outcome is another one now, a sentence each.
    pub differences: Vec<String>,
}

/// Verifies every file of a bundle. Fails on the first file that has changed, or does not
/// follow from the raw records.
pub fn verify(directory: &Path, kinds: &Kinds, page: RenderPage) -> Result<Verified, StudyError> {
    let manifest = Manifest::read(directory)?;
    for name in manifest.names() {
        manifest.text(directory, name)?;
    }
    if let Some(stray) = unlisted(directory, &manifest)?.first() {
        let why = match is_made(stray) {
            true => {
                "the manifest does not list it: it was added, or left by a study that was killed, which `plumb study \
                 --resume` mends"
            }
            false => {
                "the manifest does not list it, and no study makes a file of this name: move it elsewhere"
            }
        };
        return Err(StudyError::Tampered { path: directory.join(stray), why: why.to_string() });
    }
    let (_, contents) = Contents::read(directory, kinds)?;
    let mut verified = Verified {
        files: manifest.names().count(),
        runs: contents.runs.len(),
        evidence: manifest.evidence(),
        analysis: None,
        judged_again: None,
        differences: Vec::new(),
    };
    if manifest.lists(ANALYSIS) {
        let stored: serde_json::Value =
            serde_json::from_str(&manifest.text(directory, ANALYSIS)?).unwrap_or_default();
        let (found, expected) = (stored["schema_version"].as_u64(), ANALYSIS_SCHEMA_VERSION);
        if let Some(found) = found.filter(|found| *found > expected.into()) {
            let (path, bundle) = (directory.join(ANALYSIS), directory.to_path_buf());
            return Err(StudyError::AnalysisVersion { path, found, expected, bundle });
        }
        let older = found.filter(|found| *found < expected.into());
        let analysis = recompute(directory, &manifest, &contents, page, older)?;
        if older.is_some() {
            verified.differences = differences(&stored, &analysis);
        }
        (verified.analysis, verified.judged_again) = (Some(analysis), older);
    }
    Ok(verified)
}

/// Verifies a bundle and compares its hash with the published one, which
/// a forged bundle cannot match.
pub fn verify_published(
    directory: &Path,
    kinds: &Kinds,
    page: RenderPage,
    published: &str,
) -> Result<Verified, StudyError> {
    let verified = verify(directory, kinds, page)?;
    if verified.evidence.eq_ignore_ascii_case(published.trim()) {
        return Ok(verified);
    }
    let why =
        format!("its hash is {}, and {published} was published: these are other runs", verified.evidence);
    Err(StudyError::Tampered { path: directory.to_path_buf(), why })
}

/// Lists the claims of a stored analysis whose verdict or outcome differs from those of another.
fn differences(stored: &serde_json::Value, analysis: &Analysis) -> Vec<String> {
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_string();
    let none = Vec::new();
    let claims = stored["claims"].as_array().unwrap_or(&none);
    let then = |name: &str| claims.iter().find(|claim| claim["name"] == name);
    let row = |claim: &crate::analysis::result::JudgedClaim| {
        let Some(then) = then(&claim.name) else { return Some(format!("{}: it was not judged", claim.name)) };
        // Schema 1 named an outcome a bearing.
        let outcome = text(then.get("outcome").unwrap_or(&then["bearing"]));
        let now = serde_json::to_value(claim.outcome).map(|now| text(&now)).unwrap_or_default();
        let label = text(&then["verdict"]["label"]);
        let same = label == claim.verdict.label() && outcome == now;
        (!same).then(|| {
            format!("{}: {label} ({outcome}) then, {} ({now}) now", claim.name, claim.verdict.label())
        })
    };
    analysis.claims.iter().filter_map(row).collect()
}

fn recompute(
    directory: &Path,
    manifest: &Manifest,
    contents: &Contents,
    page: RenderPage,
    older: Option<u64>,
) -> Result<Analysis, StudyError> {
    let Derived { analysis, files } = report::derive(contents, manifest.evidence(), page)?;
    for (name, expected) in files.into_iter().filter(|_| older.is_none()) {
        if manifest.text(directory, name)? != expected {
            let theirs = &contents.environment.plumb_version;
            let ours = env!("CARGO_PKG_VERSION");
            let version = if theirs == ours {
                String::new()
            } else {
                format!(" (written by version {theirs}, this is {ours})")
            };
            let why = format!("it does not follow from the raw records{version}");
            return Err(StudyError::Tampered { path: directory.join(name), why });
        }
    }
    Ok(analysis)
}
