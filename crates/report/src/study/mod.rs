//! The report of a study: one context, a text, a summary and an HTML file.
//!
//! As for a run: the context is plain data, sections are declared once (`section`), and text and HTML
//! walk the same declaration. [`StudyContext::verdict`] and [`StudyContext::exit_code`] say what the
//! study as a whole says, which is the worst of its claims.

pub mod context;
pub mod html;
pub mod summary;
pub mod text;
pub mod verdict;

mod order_plot;
mod record;
mod section;

pub use context::{STUDY_SCHEMA_VERSION, StudyContext};
pub(crate) use order_plot::{OrderPlot, Panel as OrderPanel, Point as OrderPoint};

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;
