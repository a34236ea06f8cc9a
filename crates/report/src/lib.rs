//! AWR-style reports from one serialisable context.
//!
//! Data, then context, then template. Whoever ran the work fills a
//! [`ReportContext`]; this crate turns it into a text report
//! ([`text::render`]), one self-contained HTML file ([`html::render`]) and a
//! few lines for a terminal ([`summary::render`]). The record of a run is the
//! context itself as JSON; `docs/record.md` describes it.
//!
//! Every section is declared once, as titles, notes, tables and facts
//! (module `section`); text and HTML walk the same declaration, so the two cannot
//! disagree. Figures that follow from others (rates, shares, averages, what is
//! unaccounted for) are computed here and are not in the record, so that a
//! record cannot contradict itself.
//!
//! What it is not: it knows no engine and no table of events, opens no file,
//! reads no clock and prints nothing.

pub mod compare;
pub mod context;
pub mod html;
pub mod record;
pub mod study;
pub mod summary;
pub mod text;
pub mod validity;

mod axis;
mod format;
mod profile;
mod section;
mod table;

pub use context::{ReportContext, SCHEMA_VERSION};
pub use record::RecordError;
pub use validity::{RunState, Validity};

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;
