//! Derived files of a bundle: the analysis of its study and its reports.
//!
//! The pages are made in a crate above, so each function takes the renderer as an argument.

use crate::StudyError;
use crate::analysis::analyse;
use crate::analysis::result::Analysis;
use crate::bundle::{ANALYSIS, Bundle, Contents, REPORTS, json};

/// Renders the page of a study.
pub type RenderPage = fn(&Analysis) -> Rendered;

/// A report as text and as HTML, in the order of [`REPORTS`].
pub type Rendered = [String; 2];

/// Derived files of a bundle.
#[derive(Debug)]
pub struct Derived {
    pub analysis: Analysis,
    /// Name and text of each derived file.
    pub files: Vec<(&'static str, String)>,
}

/// Derives analysis and reports; `evidence` is the hash of the input's files.
pub fn derive(contents: &Contents, evidence: String, page: RenderPage) -> Result<Derived, StudyError> {
    let analysis = Analysis { evidence_hash: Some(evidence), ..analyse(contents) };
    let reports = REPORTS.into_iter().zip(page(&analysis));
    let files = [(ANALYSIS, json(&analysis)?)].into_iter().chain(reports).collect();
    Ok(Derived { analysis, files })
}

/// Analyses a bundle and writes the derived files into it.
pub fn publish(bundle: &mut Bundle, page: RenderPage) -> Result<Analysis, StudyError> {
    let Derived { analysis, files } = derive(bundle.contents(), bundle.evidence(), page)?;
    files.iter().try_for_each(|(name, text)| bundle.write(name, text))?;
    Ok(analysis)
}
