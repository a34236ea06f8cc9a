//! What a bundle says when its study has ended: the analysis and the reports that show it.

use crate::analysis::analyse;
use crate::analysis::result::Analysis;
use crate::bundle::{ANALYSIS, Bundle, Contents, REPORTS, json};
use crate::{LabError, document};
use plumb_report::{Document, html, text};

/// What follows from a bundle's contents.
#[derive(Debug)]
pub struct Derived {
    /// The analysis.
    pub analysis: Analysis,
    /// The files that show it: name and text.
    pub files: Vec<(&'static str, String)>,
}

/// Works it out; `evidence` is the hash of what the contents were read from.
///
/// # Errors
/// When the analysis is no JSON.
pub fn derive(contents: &Contents, evidence: String) -> Result<Derived, LabError> {
    let analysis = Analysis { evidence_hash: Some(evidence), ..analyse(contents) };
    let document = document::study::document(&analysis);
    let files = [(ANALYSIS, json(&analysis)?)].into_iter().chain(rendered(&document)).collect();
    Ok(Derived { analysis, files })
}

/// A report of any kind as the files of a bundle: name and text.
#[must_use]
pub fn rendered(document: &Document) -> [(&'static str, String); 2] {
    let [text_name, html_name] = REPORTS;
    [(text_name, text::render(document)), (html_name, html::render(document))]
}

/// Analyses a bundle and writes what follows into it.
///
/// # Errors
/// When a file cannot be written.
pub fn publish(bundle: &mut Bundle) -> Result<Analysis, LabError> {
    let Derived { analysis, files } = derive(bundle.contents(), bundle.evidence())?;
    files.iter().try_for_each(|(name, text)| bundle.write(name, text))?;
    Ok(analysis)
}
