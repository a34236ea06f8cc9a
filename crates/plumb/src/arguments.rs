//! The arguments of every command.

use clap::{Args, Parser, Subcommand, ValueEnum};
use plumb_workload::Delimiter;
use std::path::PathBuf;

/// Find out what a database's I/O path can do, which settings make it faster, and whether the evidence proves it.
#[derive(Debug, Parser)]
#[command(
    name = "plumb",
    version,
    after_help = "Exit codes: 0 fine; 1 an error of the run; 2 wrong usage; 5 a receipt contradicts its setting or a \
                  verification failed.\nWithout a command, plumb says what to try."
)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a workload in a temporary database, verify its result, and report where the time went
    Run(Run),
    /// Load a CSV file into a new table of the database PATH/plumb.db, which is made at first use
    Load(Load),
    /// Build an index on a table by a parallel disk sort
    Index(Index),
    /// Check a table, or all of them, and their indexes against each other
    Check(Check),
    /// Remove a table with its indexes, or one index
    Drop(Drop),
    /// List what there is: workloads, settings, wait events, statistics, or the tables of a database
    List(List),
    /// Render the reports of a bundle again from its record
    Report(Report),
    /// Print a generated page of the documentation
    #[command(hide = true)]
    Document(Document),
}

/// The workloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Workload {
    /// Load the sales table, build an index on it that does not fit its sort areas, verify it
    LargeSort,
}

/// `plumb run`
#[derive(Debug, Args)]
pub struct Run {
    /// Which workload
    #[arg(value_enum)]
    pub workload: Workload,
    /// Rows of the sales table; K, M and G are powers of 1000
    #[arg(long, default_value = "2M", value_parser = parse_rows)]
    pub rows: u64,
    /// Where the temporary database goes, in a directory of its own
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub path: PathBuf,
    /// Where sort runs go instead; several directories are used in turn
    #[arg(long, value_name = "DIR,..", value_delimiter = ',')]
    pub temp_path: Vec<PathBuf>,
    /// Where the table goes instead
    #[arg(long, value_name = "DIR,..", value_delimiter = ',')]
    pub data_path: Vec<PathBuf>,
    /// Where the index goes instead
    #[arg(long, value_name = "DIR,..", value_delimiter = ',')]
    pub index_path: Vec<PathBuf>,
    /// Set a setting (repeat for several); `plumb list settings` shows them
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// Seed of the generated rows: the same seed, the same rows
    #[arg(long, default_value_t = 1996)]
    pub seed: u64,
    /// Where report.txt, report.html and record.json go [default: plumb-reports/large-sort-DATE-TIME]
    #[arg(long, value_name = "DIR")]
    pub bundle: Option<PathBuf>,
    /// Print the record as JSON and nothing else; a bundle is written only if --bundle names one
    #[arg(long)]
    pub json: bool,
    /// Keep the database instead of removing it
    #[arg(long)]
    pub keep: bool,
}

/// `plumb load`
#[derive(Debug, Args)]
pub struct Load {
    /// The file: a header row, then rows; plain or gzip
    pub file: PathBuf,
    /// The table to make
    #[arg(long, value_name = "T")]
    pub table: String,
    /// The directory in which the database plumb.db lies
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub path: PathBuf,
    /// Column types by place (NUMBER,DATE,VARCHAR2(60)) or by name (price=NUMBER(38,2),day=DATE); others are found from the values
    #[arg(long)]
    pub types: Option<String>,
    /// What stands between two fields: comma, semicolon, tab or auto
    #[arg(long, default_value = "auto", value_parser = parse_delimiter)]
    pub delimiter: Delimiter,
    /// A text that means NULL besides the empty one, as NA (repeat for several)
    #[arg(long, value_name = "TEXT")]
    pub null: Vec<String>,
    /// Set a setting (repeat for several)
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
}

/// `plumb index`
#[derive(Debug, Args)]
pub struct Index {
    /// The table
    pub table: String,
    /// The key: column names with commas between them, `desc` after those that descend
    #[arg(required = true, value_name = "COLUMN[ desc],..", num_args = 1..)]
    pub columns: Vec<String>,
    /// The index's name [default: from table and columns]
    #[arg(long)]
    pub name: Option<String>,
    /// The directory in which the database plumb.db lies
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub path: PathBuf,
    /// Set a setting (repeat for several)
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// Print the whole report before the summary
    #[arg(long)]
    pub report: bool,
    /// Write report.txt, report.html and record.json to this directory
    #[arg(long, value_name = "DIR")]
    pub bundle: Option<PathBuf>,
}

/// `plumb check`
#[derive(Debug, Args)]
pub struct Check {
    /// The table; without it all tables are checked
    pub table: Option<String>,
    /// The directory in which the database plumb.db lies
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub path: PathBuf,
    /// Set a setting (repeat for several)
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
}

/// `plumb drop`
#[derive(Debug, Args)]
pub struct Drop {
    /// A table, which goes with its indexes, or an index
    pub name: String,
    /// The directory in which the database plumb.db lies
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub path: PathBuf,
}

/// What can be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Listing {
    /// What `plumb run` takes
    Workloads,
    /// What --set takes, with ranges and defaults
    Settings,
    /// Wait events with their classes
    Events,
    /// Counters of a run
    Statistics,
    /// Tables and indexes of the database in --path
    Tables,
}

/// `plumb list`
#[derive(Debug, Args)]
pub struct List {
    /// What to list
    #[arg(value_enum)]
    pub what: Listing,
    /// The directory in which the database plumb.db lies (tables only)
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub path: PathBuf,
}

/// `plumb report`
#[derive(Debug, Args)]
pub struct Report {
    /// A bundle's directory, or its record.json
    pub bundle: PathBuf,
}

/// The generated pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Page {
    /// docs/settings.md
    Settings,
    /// docs/events.md
    Events,
}

/// `plumb document`
#[derive(Debug, Args)]
pub struct Document {
    /// Which page
    #[arg(value_enum)]
    pub page: Page,
}

fn parse_rows(text: &str) -> Result<u64, String> {
    match plumb_units::parse_count(text) {
        Ok(0) => Err("a table to sort has at least one row".to_string()),
        Ok(rows) => Ok(rows),
        Err(error) => Err(error.to_string()),
    }
}

fn parse_delimiter(text: &str) -> Result<Delimiter, String> {
    match text {
        "auto" => Ok(Delimiter::Auto),
        "comma" | "," => Ok(Delimiter::Comma),
        "semicolon" | ";" => Ok(Delimiter::Semicolon),
        "tab" | "\t" | "\\t" => Ok(Delimiter::Tab),
        _ => Err("expected comma, semicolon, tab or auto".to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::Arguments;
    use clap::CommandFactory;

    #[test]
    fn the_declaration_is_consistent() {
        Arguments::command().debug_assert();
    }
}
