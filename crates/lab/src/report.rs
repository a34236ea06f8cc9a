//! What a bundle says when its study has ended: the analysis and the reports that show it.

use crate::LabError;
use crate::analysis::analyse;
use crate::bundle::{ANALYSIS, Bundle, Contents, REPORTS, json};
use plumb_report::study::{StudyContext, html, text};

/// What follows from a bundle's contents.
#[derive(Debug)]
pub struct Derived {
    /// The analysis.
    pub context: StudyContext,
    /// The files that show it: name and text.
    pub files: Vec<(&'static str, String)>,
}

/// Works it out.
///
/// # Errors
/// When the analysis is no JSON.
pub fn derive(contents: &Contents) -> Result<Derived, LabError> {
    let context = analyse(contents);
    let [text_name, html_name] = REPORTS;
    let files = vec![
        (ANALYSIS, json(&context)?),
        (text_name, text::render(&context)),
        (html_name, html::render(&context)),
    ];
    Ok(Derived { context, files })
}

/// Analyses a bundle and writes what follows into it.
///
/// # Errors
/// When a file cannot be written.
pub fn publish(bundle: &mut Bundle) -> Result<StudyContext, LabError> {
    let Derived { context, files } = derive(bundle.contents())?;
    files.iter().try_for_each(|(name, text)| bundle.write(name, text))?;
    Ok(context)
}
