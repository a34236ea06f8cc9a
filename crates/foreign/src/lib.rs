//! Reports that other programs wrote: AWR, Statspack and what people paste of them.
//!
//! ```text
//! source   bytes of a file that is hostile ──> text with numbered lines
//! reader   which lines begin which kind of report; a file may have several
//! figure   a printed text ──> value and the interval of values that print so, or a kind of absence
//! ruled, html   tables of a text under rulers, and of a page
//! sheet    tables whose columns have keys and units, by tables of data (`Section`)
//! report   facts of the head, sheets, lines that were not understood
//! check    the report's own arithmetic: intervals that must meet
//! import   the record of a run, with the imported figures and the findings next to it
//! ```
//!
//! A kind of report is a [`Reader`]: how it is recognised, read, checked, and turned into a
//! record. The modules above it know no kind.
//!
//! Why intervals: a report prints 4.2 ms and 59.997 s of 14,285 waits. Whether these contradict
//! each other is decided by what they were rounded to, and by no tolerance.
//!
//! Nothing of a report is executed, no file is written, and nothing here knows the engine.

pub mod awr;
pub mod check;
pub mod figure;
pub mod fio;
pub mod html;
pub mod import;
pub mod json;
pub mod lines;
pub mod pg_profile;
pub mod reader;
pub mod report;
pub mod ruled;
pub mod sheet;
pub mod source;
pub mod stamp;
pub mod tool;

pub use import::{Import, import};
pub use reader::{Begins, Reader};
pub use report::Report;
pub use source::{ForeignError, Source};

/// The readers in the order in which they are asked.
pub const READERS: &[Reader] =
    &reader::joined::<20>(&[&awr::READERS, &fio::READERS, &tool::READERS, &pg_profile::READERS]);
