//! Verifies a bundle against accidental change, not forgery: files against checksums, numbers and
//! verdicts against raw records.
//!
//! The analysis is a pure function of study, environment, order and records, so it is compared byte
//! by byte. A bundle of another version of this program may differ in rounding or wording. Then the
//! message says that the program differs.

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
    let analysis =
        manifest.lists(ANALYSIS).then(|| recompute(directory, &manifest, &contents, page)).transpose()?;
    let evidence = manifest.evidence();
    Ok(Verified { files: manifest.names().count(), runs: contents.runs.len(), evidence, analysis })
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

fn recompute(
    directory: &Path,
    manifest: &Manifest,
    contents: &Contents,
    page: RenderPage,
) -> Result<Analysis, StudyError> {
    let stored: serde_json::Value =
        serde_json::from_str(&manifest.text(directory, ANALYSIS)?).unwrap_or_default();
    if let Some(found) = stored["schema_version"].as_u64()
        && found != u64::from(ANALYSIS_SCHEMA_VERSION)
    {
        let (path, bundle) = (directory.join(ANALYSIS), directory.to_path_buf());
        return Err(StudyError::AnalysisVersion { path, found, expected: ANALYSIS_SCHEMA_VERSION, bundle });
    }
    let Derived { analysis, files } = report::derive(contents, manifest.evidence(), page)?;
    for (name, expected) in files {
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
