//! A document and its renderers.
//!
//! The owner of data fills a [`Document`]: a [`ReportAnswer`], a state, the most important figures,
//! and sections of tables, facts and pictures. This crate renders it as text ([`text::render`]), as
//! one self-contained HTML file ([`html::render`]), in a few lines for a terminal
//! ([`summary::render`]), or as Markdown ([`markdown::render`]). It also renders one of its tables
//! as a [`picture`]. Every section is declared once and all renderers walk the same declaration, so
//! that they agree.
//!
//! This crate knows no kind of report, no engine and no table of events. It tests nothing, opens no
//! file, reads no clock and prints nothing. [`format`] formats quantities, [`axis`] positions
//! values; both also serve those that fill documents.

pub mod answer;
pub mod axis;
pub mod document;
pub mod format;
pub mod html;
pub mod markdown;
pub mod order;
pub mod picture;
pub mod plot;
pub mod profile;
pub mod strip;
pub mod summary;
pub mod table;
pub mod text;

pub use answer::{Headline, ReportAnswer};
pub use document::{Block, Document, Drawing, Part, Parts, Placement, Section, State, Summary};

#[cfg(test)]
mod tests;
