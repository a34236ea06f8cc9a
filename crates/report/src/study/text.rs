//! The text report of a study, in at most 110 columns.

use super::context::StudyContext;
use super::section::sections;
use super::verdict::exit_code;
use crate::text::{Page, document, hanging, wrap};

/// The longest line.
pub(crate) const WIDTH: usize = 110;

/// The whole report.
#[must_use]
pub fn render(study: &StudyContext) -> String {
    document(masthead(study), &sections(study), &page(study))
}

/// What the sections share.
pub(crate) fn page(study: &StudyContext) -> Page {
    let header = &study.header;
    Page {
        width: WIDTH,
        running_head: format!("Study: {}/{}  Host: {}", header.name, header.study_hash, header.host.name),
    }
}

/// The title, and below it the study's verdict.
fn masthead(study: &StudyContext) -> Vec<String> {
    let mut lines = wrap(&title(study), WIDTH);
    let verdict = study.headline();
    let loud = study.exit_code() > exit_code::UNSTABLE;
    let verdict = if loud { format!("*** {verdict} ***") } else { verdict.to_string() };
    lines.extend(hanging("Study: ", &format!("{verdict}   {}", study.tally()), WIDTH));
    lines.push(String::new());
    lines
}

/// The report's first line.
pub(super) fn title(study: &StudyContext) -> String {
    format!("PLUMB STUDY REPORT  {}: {}", study.header.name, study.header.title)
}
