//! Arguments of `plumb plans`.

use clap::Args;
use std::path::PathBuf;

/// Kinds of plans and examples, below the help.
pub const ABOUT: &str = "\
A plan is recognised by its content: EXPLAIN (ANALYZE, BUFFERS) of PostgreSQL as text, JSON, YAML or
XML, also in a log of auto_explain; a table of DBMS_XPLAN, best with the format ALLSTATS LAST, or of
SQL Monitor. Up to three plans are shown side by side. More are listed by query, with the time of
each change of plan.

  plumb plans before.txt after.txt
  plumb plans postgresql.log
  plumb plans postgresql.log --query 1
  plumb plans --target postgres://me@host/sales --query q.sql --against enable_hashjoin=off

With --target the query is executed once for each plan, in a transaction that is read-only and
rolled back. The password is that of PGPASSWORD or ~/.pgpass; in the address, `ps` shows it to all
users. No password is printed or stored.";

#[derive(Debug, Args)]
pub struct PlansOf {
    /// Files with plans; the others are compared with the first
    #[arg(required_unless_present = "target", num_args = 1.., value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Take the plans from a running PostgreSQL server: postgres://USER@HOST:PORT/DATABASE; what
    /// is left out is taken from PGHOST, PGPORT, PGUSER and PGDATABASE
    #[arg(long, value_name = "URL", requires = "query", conflicts_with = "files")]
    pub target: Option<String>,
    /// File with the query, one statement, for --target; or the number of a query of a log, of
    /// which two plans are shown
    #[arg(long, value_name = "FILE|N")]
    pub query: Option<String>,
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
