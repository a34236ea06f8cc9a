//! The arguments of `plumb snoop`.

use super::within;
use clap::{ArgGroup, Args, ValueEnum};
use plumb_units::Nanos;
use std::path::PathBuf;

pub const ABOUT: &str = "\
A line is a call (CALL, OFFSET in the file, BYTES, DELTA from entry to exit) or a request of a disk (DEVICE,
BLOCK of 512 bytes, QUEUE until the disk got it, DELTA at the disk). The end of a disk's line names the call
that made it, or why there is none: read-ahead, written back, journal, flush, metadata, page fault. Sums,
histograms and patterns follow at the end of the program, of --for, or on Ctrl-C.

Two commands, because they see different things: `plumb trace BUNDLE` prints what plumb's own engine asked
for, kept by `plumb run --trace`, with its sessions and wait events; `plumb snoop` sees any program, from
outside, and the disk.

It needs root and a mounted tracefs, and says what to do without. Events without room are counted.";

/// Lines of the two views.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum View {
    /// Calls of the program and requests of disks
    Both,
    /// Only the calls of the program
    Calls,
    /// Only the requests of disks, as iosnoop prints them
    Disk,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("target").args(["pid", "name", "command"]).required(true)))]
pub struct SnoopOf {
    /// The number of a process, whose children are traced, too
    #[arg(long, value_name = "N")]
    pub pid: Option<u32>,
    /// All processes with this in their names or titles, in any case, as lgwr or walwriter
    #[arg(long, value_name = "TEXT")]
    pub name: Option<String>,
    /// End after this time: a number with ms, s or m [default: with the program, or Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_for)]
    pub until: Option<Nanos>,
    /// Print lines of this view only
    #[arg(long, value_enum, default_value = "both", conflicts_with_all = ["summary", "quiet"])]
    pub view: View,
    /// Print a row a second instead of a line a request
    #[arg(long, conflicts_with = "quiet")]
    pub summary: bool,
    /// Print only the sums at the end
    #[arg(long)]
    pub quiet: bool,
    /// Write report.txt, report.html and record.json to this directory, for `plumb report` and
    /// `plumb compare`
    #[arg(long, value_name = "DIR")]
    pub bundle: Option<PathBuf>,
    /// Print the record as JSON and nothing else
    #[arg(long, conflicts_with_all = ["summary", "quiet"])]
    pub json: bool,
    /// Show the flow of a buffered write, a direct write and a sync through the tracepoints of file
    /// system and block layer, indented, with microseconds, and what the trace costs
    #[arg(long, conflicts_with_all = ["bundle", "json", "summary", "quiet", "view", "sample"])]
    pub flow: bool,
    /// Sample /proc instead of tracing, which needs no rights and shows only sums
    #[arg(long, conflicts_with_all = ["summary", "view"])]
    pub sample: bool,
    /// Replace the value of this variable wherever the record would have it (repeat for several)
    #[arg(long, value_name = "NAME")]
    pub secret: Vec<String>,
    /// A command to start and trace, after --
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

fn parse_for(text: &str) -> Result<Nanos, String> {
    within(text, Nanos(10_000_000), Nanos(7 * 24 * 3600 * super::SECOND), "10ms to 168h")
}
