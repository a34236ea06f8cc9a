//! Arguments of `plumb plans`.

use clap::Args;
use std::path::PathBuf;

/// Kinds of plans and examples, below the help.
pub const ABOUT: &str = "\
A plan is recognised by its content: EXPLAIN (ANALYZE, BUFFERS) of PostgreSQL 14 to 18, as text or
JSON, or a table of DBMS_XPLAN, best with the format ALLSTATS LAST. All plans of a file are taken,
three at most of all files.

  plumb plans before.txt after.txt
  plumb plans --target postgres://me@host/sales --query q.sql --against enable_hashjoin=off

With --target the query is executed once for each plan, in a transaction that is read-only and
rolled back. The password is that of PGPASSWORD or ~/.pgpass; in the address, `ps` shows it to all
users. No password is printed or stored.";

#[derive(Debug, Args)]
pub struct PlansOf {
    /// Files with plans; the others are compared with the first
    #[arg(required_unless_present = "target", num_args = 1..=3, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Take the plans from a running PostgreSQL server: postgres://USER@HOST:PORT/DATABASE; what
    /// is left out is taken from PGHOST, PGPORT, PGUSER and PGDATABASE
    #[arg(long, value_name = "URL", requires = "query", conflicts_with = "files")]
    pub target: Option<String>,
    /// File with the query, one statement
    #[arg(long, value_name = "FILE", requires = "target")]
    pub query: Option<PathBuf>,
    /// Set a setting for all plans (repeat for several)
    #[arg(long, value_name = "NAME=VALUE", requires = "target")]
    pub set: Vec<String>,
    /// Take a second plan with this setting (repeat for several)
    #[arg(long, value_name = "NAME=VALUE", requires = "target")]
    pub against: Vec<String>,
    /// Let the query write; it is rolled back, but sequences advance
    #[arg(long, requires = "target")]
    pub write: bool,
    /// Write the page as one HTML file, too
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print the plans, their hashes, findings and matches as JSON and nothing else
    #[arg(long)]
    pub json: bool,
}
