//! One document and its renderers.
//!
//! Whoever owns data fills a [`Document`]: a state, the figures to read first, and sections of tables, facts and
//! pictures. This crate sets it as text ([`text::render`]), as one self-contained HTML file ([`html::render`]) and
//! in a few lines for a terminal ([`summary::render`]), or one table of it as a [`picture`]. Every section is declared once and all renderings walk the
//! same declaration, so that they cannot disagree.
//!
//! What it is not: it knows no kind of report, no engine and no table of events, tests nothing, opens no file, reads
//! no clock and prints nothing. [`format`] writes quantities for people, [`axis`] lays values out; both are for
//! those who fill documents too.

pub mod axis;
pub mod document;
pub mod format;
pub mod html;
pub mod order;
pub mod picture;
pub mod plot;
pub mod profile;
pub mod strip;
pub mod summary;
pub mod table;
pub mod text;

pub use document::{Block, Document, Drawing, Headline, Part, Parts, Placement, Section, State, Summary};

#[cfg(test)]
mod tests;
