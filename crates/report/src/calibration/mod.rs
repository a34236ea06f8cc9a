//! The report of a calibration: what a storage can do, as one HTML file.
//!
//! The same way as a run's report: whoever measured fills a [`CalibrationContext`],
//! the sections declare it once, [`render`] sets them. What a terminal shows of a
//! calibration is printed by whoever made it; here is the page that has the curves.
//!
//! Order: the verdict, the main figures, then what they come from (curves, large
//! requests, the matrix, durable writes, methods, read cost), and last what casts
//! doubt on them (what did not settle, what answered each point, the environment).

mod context;
mod section;
mod verdict;

pub use context::{
    CALIBRATION_SCHEMA_VERSION, CalibrationContext, CalibrationHeader, Curve, CurvePoint, DurableWrite,
    Estimate, Ladder, LatencyPercentiles, LoadMatrix, MainFigure, MatrixCell, MeasuredPoint, ReadCost,
    ReadTime, RefusedPoint, Rung, Source, Transfer,
};
pub use verdict::{CalibrationVerdict, Confidence};

use crate::html;
use crate::record::{self, RecordError};

impl CalibrationContext {
    /// The context as JSON, indented.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    pub fn to_json(&self) -> Result<String, RecordError> {
        serde_json::to_string_pretty(self).map_err(RecordError::Json)
    }

    /// Reads a context.
    ///
    /// # Errors
    /// When it is none, or one of another version.
    pub fn from_json(text: &str) -> Result<CalibrationContext, RecordError> {
        record::read_version(text, CALIBRATION_SCHEMA_VERSION)
    }
}

/// The whole file.
#[must_use]
pub fn render(context: &CalibrationContext) -> String {
    let verdict = context.verdict();
    let masthead = html::Masthead {
        title: &context.header.title,
        class: match verdict.confidence {
            Confidence::Settled => "valid",
            Confidence::InDoubt => "unverified",
        },
        state: verdict.confidence.word(),
        basis: &verdict.basis,
        reasons: &verdict.reasons,
        headline: section::headline(context),
    };
    let footer = format!(
        "plumb {}. The figures of this page are embedded in it as JSON; calibration.json beside it has every repeat.",
        context.header.plumb_version
    );
    let body = html::body_of(&masthead, &section::sections(context), &footer);
    // Without its JSON the page still shows everything.
    let json = serde_json::to_string(context).unwrap_or_else(|_| "null".to_string());
    html::page(&html::Page {
        title: &context.header.title,
        body: &body,
        json: &json,
        styles: &[],
        scripts: &[],
    })
}

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;
