//! Bundles in a browser and by REST, read-only, and the health of what measures.
//!
//! ```text
//! socket ──[server]──> limits ──[request]──> Host, Origin, no body ──[route]──> a row of the table
//!                                                                     │ on another thread
//!                            [answer] JSON, as the terminal prints it <┤
//!                            [page]   pages in the reports' style     <┘
//! ```
//!
//! A route's body is what `--json` of a command prints, from the same function. The directory is
//! the truth: each answer reads it, and nothing but the index of heads is written.
//!
//! One thread accepts and parses, and at most two others read bundles and render. A request that
//! would need a third waits, so that a flood of them costs no memory.
//!
//! Rejected: the stored `report.html`, which a stranger may have written. Reports are rendered from
//! the data, and a page may run the scripts of this program alone, by their hashes.
//!
//! Limits: loopback only. There is no TLS and no token, so other addresses are refused.

mod answer;
mod health;
mod page;
mod request;
mod route;
mod server;

pub use answer::{SeriesError, figure_named, run_document, series};
pub use health::Health;
pub use server::{BundleServer, ServeError};

use plumb_host::leftover::Leftover;
use plumb_study::vocabulary::Kinds;
use std::path::PathBuf;

/// The program that serves: what it knows and lower crates do not.
#[derive(Clone, Copy)]
pub struct Program {
    pub kinds: &'static Kinds,
    pub leftovers: &'static [&'static dyn Leftover],
    /// Returns the undo journals that wait.
    pub journals: fn() -> Vec<PathBuf>,
    pub version: &'static str,
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
