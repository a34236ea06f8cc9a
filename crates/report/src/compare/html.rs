//! The HTML of a comparison: the same sections as the text, in one file, the runs embedded as JSON.

use super::context::CompareContext;
use super::section::sections;
use super::text::{title, verdict_line, warnings};
use crate::html::{document, escape, page};
use crate::study::verdict::exit_code;

/// The whole file.
#[must_use]
pub fn render(context: &CompareContext) -> String {
    document(&title(context), &body(context), context, "")
}

/// What the page shows, without styles and scripts.
pub(crate) fn body(context: &CompareContext) -> String {
    page(&masthead(context), &sections(context), &footer(context))
}

fn masthead(context: &CompareContext) -> String {
    let class = match context.verdict.as_ref().map(|verdict| verdict.exit_code) {
        Some(exit_code::PROVED) => "valid",
        Some(exit_code::NOT_PROVED) | None => "unverified",
        Some(_) => "invalid",
    };
    let notes = context.reasons.iter().cloned().chain(warnings(context));
    let notes = notes.map(|note| format!("<li>{}</li>", escape(&note)));
    format!(
        "<header>\n<h1>{}</h1>\n<div class=\"state {class}\"><strong>Elapsed time</strong> <span>{}</span>\n\
         <ul>{}</ul></div>\n</header>\n",
        escape(&title(context)),
        escape(&verdict_line(context)),
        notes.collect::<String>()
    )
}

fn footer(context: &CompareContext) -> String {
    let version = context.second.runs.first().map_or("", |run| run.header.plumb_version.as_str());
    format!(
        "<footer>plumb {}, comparison schema {}. The records of all runs are embedded in this file as JSON.</footer>\n",
        escape(version),
        context.schema_version
    )
}
