//! The report of a study: one context, a text, a summary and an HTML file.

pub mod context;

pub use context::{STUDY_SCHEMA_VERSION, StudyContext};
