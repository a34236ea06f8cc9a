//! The arguments of `plumb sort`.

use clap::Args;
use plumb_run::workload::named_file::directory_of;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub struct Sort {
    /// The file to sort, which is only read
    #[arg(value_name = "IN")]
    pub input: PathBuf,
    /// The sorted file, which must be new: it appears when it is whole
    #[arg(value_name = "OUT")]
    pub output: PathBuf,
    /// The file has lines, compared byte by byte as sort(1) does with
    /// LC_ALL=C; the default without --record
    #[arg(long, conflicts_with = "record")]
    pub lines: bool,
    /// The file has records of this many bytes each
    #[arg(long, value_name = "BYTES", requires = "key")]
    pub record: Option<usize>,
    /// The part to compare first: of lines a field N, counted from 1, and all after it, or the
    /// fields N,N; of records the bytes A..B, counted from 0 (repeat for several)
    #[arg(long, value_name = "N[,N]|A..B")]
    pub key: Vec<String>,
    /// The character between two fields of a line; without it a field begins
    /// with the blanks before it
    #[arg(long, value_name = "CHARACTER", conflicts_with = "record")]
    pub delimiter: Option<String>,
    /// Compare the keys, or the lines, as numbers; what is none is 0
    #[arg(long, conflicts_with = "record")]
    pub numeric: bool,
    /// Lines of equal keys stay in the order of IN; otherwise their bytes decide
    #[arg(long, conflicts_with = "record")]
    pub stable: bool,
    /// Directory for the sort runs, which get a directory of their own in it
    /// [default: the directory of OUT]
    #[arg(long, value_name = "DIR")]
    pub path: Option<PathBuf>,
    /// Set a setting (repeat for several); sort_area_size and parallel_degree decide the memory
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// Print the whole report before the summary
    #[arg(long, conflicts_with = "json")]
    pub report: bool,
    /// Write report.txt, report.html and record.json to this directory
    #[arg(long, value_name = "DIR")]
    pub bundle: Option<PathBuf>,
    /// Print the record as JSON and nothing else
    #[arg(long)]
    pub json: bool,
}

impl Sort {
    /// The directory of the temporary database.
    pub fn place(&self) -> &Path {
        self.path.as_deref().unwrap_or_else(|| directory_of(&self.output))
    }
}
