//! The arguments of `plumb export`, `plumb head` and `plumb count`.

use clap::Args;
use plumb_workload::Delimiter;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct Export {
    /// Name of the table to write
    pub table: String,
    /// The index in whose order rows come, instead of the order in which they lie
    #[arg(long, value_name = "INDEX")]
    pub order_by: Option<String>,
    /// The columns, with commas between them [default: all]
    #[arg(long, value_name = "COLUMN,..")]
    pub columns: Option<String>,
    /// The rows that satisfy tests with AND between them, such as "amount >= 100 AND city = 'Bern'"
    #[arg(long = "where", value_name = "CONDITION")]
    pub condition: Option<String>,
    /// The character between two fields: comma, semicolon, tab, pipe, or any other
    #[arg(long, default_value = "comma", value_parser = parse_separator)]
    pub delimiter: u8,
    /// The form: csv, or parquet in a build with `--features parquet`
    #[arg(long, value_name = "FORMAT", value_parser = Format::parse, default_value = "csv")]
    pub format: Format,
    /// Rows at most; K, M and G are powers of 1000
    #[arg(long, value_name = "N", value_parser = parse_limit)]
    pub limit: Option<u64>,
    /// A new file, which appears when it is whole [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The directory in which the database plumb.db lies
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub path: PathBuf,
    /// Print file and rows written as JSON and nothing else
    #[arg(long, requires = "output")]
    pub json: bool,
}

/// Form of the rows that an export writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A header row and rows, with commas between fields
    Csv,
    #[cfg(feature = "parquet")]
    Parquet,
}

impl Format {
    fn parse(text: &str) -> Result<Format, String> {
        match text {
            "csv" => Ok(Format::Csv),
            #[cfg(feature = "parquet")]
            "parquet" => Ok(Format::Parquet),
            #[cfg(not(feature = "parquet"))]
            "parquet" => {
                Err("this program was built without it; `cargo build --release --features parquet` has it"
                    .to_string())
            }
            _ => Err("expected csv or parquet".to_string()),
        }
    }
}

#[derive(Debug, Args)]
pub struct Head {
    /// Name of the table to show, or of an index, in whose order its table is shown
    pub table: String,
    /// Number of rows to show
    #[arg(default_value_t = 10, value_name = "N")]
    pub rows: u64,
    /// The same number, as `export` names it
    #[arg(long, value_name = "N", value_parser = parse_limit, conflicts_with = "rows")]
    pub limit: Option<u64>,
    /// The rows that satisfy tests with AND between them, such as "amount >= 100 AND city = 'Bern'"
    #[arg(long = "where", value_name = "CONDITION")]
    pub condition: Option<String>,
    /// The index in whose order rows come, instead of the order in which they lie
    #[arg(long, value_name = "INDEX")]
    pub order_by: Option<String>,
    /// The columns, with commas between them [default: all]
    #[arg(long, value_name = "COLUMN,..")]
    pub columns: Option<String>,
    /// The directory in which the database plumb.db lies
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub path: PathBuf,
    /// Print the rows as JSON and nothing else
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct CountRows {
    /// Name of the table to scan once
    pub table: String,
    /// The rows that satisfy tests with AND between them, such as "amount >= 100 AND city = 'Bern'"
    #[arg(long = "where", value_name = "CONDITION")]
    pub condition: Option<String>,
    /// NUMBER columns to add, with commas between them
    #[arg(long, value_name = "COLUMN,..")]
    pub sum: Option<String>,
    /// The directory in which the database plumb.db lies
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub path: PathBuf,
    /// Print number and sums as JSON and nothing else
    #[arg(long)]
    pub json: bool,
}

fn parse_separator(text: &str) -> Result<u8, String> {
    match super::parse_delimiter(text) {
        Ok(Delimiter::Byte(byte)) => Ok(byte),
        _ => Err("expected comma, semicolon, tab, pipe, or one character of ASCII".to_string()),
    }
}

fn parse_limit(text: &str) -> Result<u64, String> {
    plumb_units::parse_count(text).map_err(|error| error.to_string())
}
