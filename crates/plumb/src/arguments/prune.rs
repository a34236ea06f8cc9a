//! Arguments of `plumb prune`.

use clap::Args;
use std::path::PathBuf;

/// Forms of traces, rules and an example, below the help.
pub const ABOUT: &str = "\
Read are OTLP as JSON (one document, or one a line as the collector's file exporter writes them),
CSV with the columns of PSPMTRANSHIST or with --map, and logs of auto_explain (each plan is a span).

A RULE is FIELD=TEXT or FIELD like TEXT, in which % is any text and _ one letter. FIELD is sql, name,
type (425, client), or attr.NAME for an attribute of OTLP or a column of CSV.

  plumb prune trace.json --drop 'sql like \"SELECT pg_catalog%\"' --out warm.json
  plumb prune PSPMTRANSHIST.csv --drop type=425 --drop 'sql like \"SELECT PSPNL%\"' --out warm.csv
  plumb prune spans.csv --map id=SPAN,parent=ABOVE,duration_ms=MS,sql=STATEMENT --drop type=load
  plumb compare trace.json warm.json

The copy has new ids. A removed span takes all below it along; the spans above keep their own time.";

#[derive(Debug, Args)]
pub struct PruneOf {
    /// File with the trace; it is read twice and not changed
    #[arg(value_name = "TRACE")]
    pub trace: PathBuf,
    /// Remove the spans that satisfy this rule, and all below them (repeat for several)
    #[arg(long, value_name = "RULE")]
    pub drop: Vec<String>,
    /// Write the copy to this new file; without it only the sums are printed
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Columns of a CSV file: id, parent and duration_ms (or _s, _us, _ns), and if it has them top,
    /// type, name, sql and fetches
    #[arg(long, value_name = "KEY=COLUMN,..")]
    pub map: Option<String>,
    /// Print the sums before and after as JSON and nothing else
    #[arg(long)]
    pub json: bool,
}
