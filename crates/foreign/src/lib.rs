//! Imports reports of other programs: AWR and Statspack, whole or as pasted tables.
//!
//! ```text
//! source   bytes of a file that is hostile ──> text with numbered lines
//! reader   which lines begin which kind of report; a file may have several
//! figure   `sheet`: tables whose columns have keys and units, by tables of data (`Section`);
//!          `check`: the report's own arithmetic; `rounding`: exact values from printed ones
//! form     tables of a text under rulers, of a page, of JSON
//! format   the kinds of report, each with its sections and checks
//! report   facts of the head, sheets, lines that were not understood
//! import   the record of a run, with the imported figures and the findings next to it
//! page     the report as a page: its checks, then its own tables; `stored` keeps these in a bundle
//! share    the copy of a file without the names in it
//! kinds    files that are not read, each with what is read instead
//! ```
//!
//! A kind of report is a [`Reader`]: how it is recognised, read, checked, and turned into a
//! record. The modules above it know no kind.
//!
//! Comparisons use intervals: a report prints 4.2 ms and 59.997 s for 14,285 waits. Only the
//! rounding of the texts decides whether these contradict each other. Rejected: a tolerance.
//!
//! The crate executes nothing of a report, writes no file, and does not depend on the engine.

pub mod figure;
pub mod form;
pub mod format;
pub mod import;
mod kinds;
pub mod page;
pub mod reader;
pub mod report;
pub mod share;
pub mod source;
pub mod stored;

pub use format::{awr, plan};
pub use import::{Import, import};
pub use reader::{Begins, Reader};
pub use report::Report;
pub use source::{ForeignError, Source};

/// The readers, in the order in which they are tried.
pub const READERS: &[Reader] = &reader::joined::<27>(&[
    &awr::READERS,
    &format::fio::READERS,
    &format::tool::READERS,
    &format::pg_profile::READERS,
    &awr::PASTED,
]);
