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

use crate::record::{RecordError, read_version};
use plumb_report::table::Tone;
use plumb_report::{Document, State, Summary, text};

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
        read_version(text, CALIBRATION_SCHEMA_VERSION)
    }
}

/// What a calibration's report says.
#[must_use]
pub fn document(context: &CalibrationContext) -> Document {
    let CalibrationVerdict { confidence, basis, reasons } = context.verdict();
    let header = &context.header;
    let tone = if confidence == Confidence::Settled { Tone::Good } else { Tone::Open };
    Document {
        title: header.title.clone(),
        question: String::new(),
        running_head: format!("Calibration: {}  Host: {}", header.mode, header.host.name),
        width: text::WIDTH,
        state: State { of: "Calibration", word: confidence.word().to_string(), tone },
        basis,
        reasons,
        headline: section::headline(context),
        sections: section::sections(context),
        summary: Summary::default(),
        footer: format!(
            "plumb {}. The figures of this page are embedded in it as JSON; calibration.json beside it has every repeat.",
            header.plumb_version
        ),
        // Without its JSON the page still shows everything.
        data: serde_json::to_string(context).unwrap_or_else(|_| "null".to_string()),
    }
}

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;
