//! Files that follow from a bundle: the analysis of its study and the reports that show it.
//!
//! The pages are made above this crate, so each function here is given what renders one.

use crate::StudyError;
use crate::analysis::analyse;
use crate::analysis::result::Analysis;
use crate::bundle::{ANALYSIS, Bundle, Contents, REPORTS, json};

/// Renders the page of a study.
pub type RenderPage = fn(&Analysis) -> Rendered;

/// A report as text and as HTML, in the order of [`REPORTS`].
pub type Rendered = [String; 2];

/// What follows from a bundle's contents.
#[derive(Debug)]
pub struct Derived {
    pub analysis: Analysis,
    /// The files that show it: name and text.
    pub files: Vec<(&'static str, String)>,
}

/// Works it out; `evidence` is the hash of what the contents were read from.
///
/// # Errors
/// When the analysis is no JSON.
pub fn derive(contents: &Contents, evidence: String, page: RenderPage) -> Result<Derived, StudyError> {
    let analysis = Analysis { evidence_hash: Some(evidence), ..analyse(contents) };
    let reports = REPORTS.into_iter().zip(page(&analysis));
    let files = [(ANALYSIS, json(&analysis)?)].into_iter().chain(reports).collect();
    Ok(Derived { analysis, files })
}

/// Analyses a bundle and writes what follows into it.
///
/// # Errors
/// When a file cannot be written.
pub fn publish(bundle: &mut Bundle, page: RenderPage) -> Result<Analysis, StudyError> {
    let Derived { analysis, files } = derive(bundle.contents(), bundle.evidence(), page)?;
    files.iter().try_for_each(|(name, text)| bundle.write(name, text))?;
    Ok(analysis)
}
