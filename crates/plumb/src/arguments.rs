//! The arguments of every command.

mod export;
mod plans;
mod prune;
mod serve;
mod snoop;
mod sort;
mod undo;
pub mod unused;

pub use export::{CountRows, Export, Format, Head};
pub use plans::PlansOf;
pub use prune::PruneOf;
pub use serve::ServeOf;
pub use snoop::{SnoopOf, View};
pub use sort::Sort;
pub use undo::UndoOf;

use crate::failure::Failure;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use plumb_calibrate::{Cells, Mode, Options, Pattern, VolumeLayout};
use plumb_study::analysis::tally::OpenClaims;
use plumb_units::{BlockSize, Bytes, Domain, Nanos};
use plumb_workload::specification::REDO;
use plumb_workload::{DateForm, DecimalMark, Delimiter, Parameter, Quote, WORKLOADS, Workload};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Find out what a database's I/O path can do, which settings make it faster, and
/// whether the evidence proves it.
#[derive(Debug, Parser)]
#[command(
    name = "plumb",
    version,
    after_help = crate::outcome::help()
)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Parses the words of a command line. The inner error is an option that the command would ignore.
/// A request for help is an error, too.
pub fn parse<W: Into<OsString> + Clone>(
    words: impl IntoIterator<Item = W>,
) -> Result<Result<Arguments, Failure>, clap::Error> {
    let mut command = Arguments::command();
    let matches = command.try_get_matches_from_mut(words)?;
    if let Err(ignored) = unused::require_use(&command, &matches) {
        return Ok(Err(ignored));
    }
    Arguments::from_arg_matches(&matches).map(Ok).map_err(|error| error.format(&mut command))
}

/// The order of rows, where they are loaded.
const ORDER_OF_LOAD: &str = "Rows of a file above 512K lie as the servers of the load came to its pieces. \
     --set parallel_degree=1 and --conventional keep the order of the file; an index gives any order. \
     Blanks and tabs around a number or a date are not kept.";
/// The order of rows, where they are shown.
const ORDER_OF_ROWS: &str = "Rows lie as the servers of a load came to the pieces of the file, so that the first need not be the first \
                             of the file; --order-by gives the order of an index.";
/// Studies of workloads with their options, and a warning of other people's studies.
const STUDIES: &str = "\
With --factor NAME is a workload (`plumb list workloads`), as in
  plumb study slob --factor filesystemio_options=none,setall --sessions 8
and each of its parameters is an option, as in `plumb run`; the seed of its data is --data-seed.

A study file, and the study.toml of a bundle, may have commands, and a study runs them: to run or to resume that of a
stranger is to run a stranger's script.";

const IMPORT_KINDS: &str = "\
Kinds, recognised by content: AWR text and HTML (10.2 to 23ai; of one instance, global, of two
periods), Statspack, and tables of these as people paste them: without a head or rulers, with tabs,
or all on one line. Releases 10.2, 21c and 23ai and HTML of two periods are untried, for want of a
sample. Others: fio as JSON, text, terse and logs; iostat, also as JSON; sar -d and sadf; collectl
-sD; iosnoop and biosnoop; pgbench; sysbench; pages of pg_profile; ORION; CALIBRATE_IO;
v$iostat_file; SQL traces (10046); flows of calls (DTrace). Other tables with tabs are read as they
are headed. A file may have several reports.

Each figure keeps its line and the interval of values that print so. A check computes one side of an
equation from other figures and holds if both intervals meet. What no device, link or processor can
do is IMPOSSIBLE.

A bundle is that of a run: `plumb report`, `plumb compare` and `plumb info` take it.";

const CLAIMS: &str = "\
IMPOSSIBLE: figures of the claim contradict each other or physics, in every reading.
PROVED: a bundle of plumb verifies and proves the claim.
REFUTED: a bundle proves the contrary.
NOT PROVED: all else. What a claim does not state is a reason for that, and never a contradiction.
The exit code is that of the worst claim. docs/audit.md has the form of a claim file.";

const SHARED: &str = "\
The copy is made from what was understood: figures, headings, events, statistics, settings and
operators stay. Every other word becomes a token, the same one everywhere, as wide as the word.
Lines that were not understood, commands and their output are left out.
The list of what was replaced is printed for you: it is not in the copy.
`plumb verify` verifies the copy of a study.";

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a workload in a temporary database, verify its result, and report where the time went
    Run(Run),
    /// Vary settings in a designed experiment, and give a verdict on each claim
    #[command(after_help = STUDIES)]
    Study(Study),
    /// Run two or more commands in turn, again and again, and say which is faster
    /// and whether that is proved
    CompareCommands(CompareCommands),
    /// Recompute every number and verdict of a study's bundle from its raw records
    Verify(Verify),
    /// Hold published claims against their own figures, and say what they leave open
    #[command(after_help = CLAIMS)]
    Audit(AuditOf),
    /// Copy a bundle, a report, a plan or a claim without the names in it
    #[command(after_help = SHARED)]
    Share(ShareOf),
    /// Measure what the storage under a path can do, with a file of its own
    Calibrate(Calibrate),
    /// Sort a file of lines or of records into another file, check it, and show where the time went
    Sort(Sort),
    /// Load a CSV file into a new table of the database PATH/plumb.db, which is made at first use
    #[command(after_help = ORDER_OF_LOAD)]
    Load(Load),
    /// Build an index on a table by a parallel disk sort
    Index(Index),
    /// Show runs, merges and memory of an index build before a row is read
    PlanSort(PlanSort),
    /// Copy rows of a table into a new or an existing one by direct path: all of their columns or
    /// some, all rows or those that satisfy a condition
    Copy(CopyRows),
    /// Check a table, or all of them, and their indexes against each other
    Check(Check),
    /// Write the rows of a table, as CSV, in the order in which they lie or in that of an index
    #[command(after_help = ORDER_OF_ROWS)]
    Export(Export),
    /// Show the first rows of a table, or of an index
    #[command(after_help = ORDER_OF_ROWS)]
    Head(Head),
    /// Count the rows of a table and add columns, in one parallel scan
    Count(CountRows),
    /// Remove a table with its indexes, or one index
    Drop(Drop),
    /// Copy the files of the database PATH/plumb.db to a new directory, with their checksums
    Backup(Backup),
    /// Make the database PATH/plumb.db of a backup, after all of it has been verified
    Restore(Restore),
    /// Remove what killed runs, studies and calibrations left under a path, and put back files
    /// that a study wrote over
    Clean(Clean),
    /// Put back settings of a running PostgreSQL server that a killed study has changed
    Undo(UndoOf),
    /// Read reports of other programs (AWR, Statspack, tables pasted from them), and check whether
    /// their figures add up
    #[command(after_help = IMPORT_KINDS)]
    Import(Import),
    /// Say what holds a run or a reported system back: findings by the time they could save, each
    /// with its arithmetic and the study that would prove it
    Diagnose(Diagnose),
    /// Show plans of execution side by side: what differs, and where expected rows were off
    #[command(after_help = plans::ABOUT)]
    Plans(PlansOf),
    /// Copy a trace without the spans that a warm system would not have, and correct the times of
    /// all spans above them
    #[command(after_help = prune::ABOUT)]
    Prune(PruneOf),
    /// Print a line a run: rates, latencies, and what an operation cost
    Info(Info),
    /// Compare two runs, or two arms of studies, as an AWR compare-period report does
    Compare(Compare),
    /// List workloads, studies, claims, settings, events, statistics, streams, rules, tables or
    /// bundles
    List(List),
    /// Print the requests that `plumb run --trace` kept, one a line as iosnoop
    /// does, with histograms and averages
    Trace(Trace),
    /// Show every request of a running program, at the call and at the device, by the kernel's
    /// tracepoints; as root
    #[command(after_help = snoop::ABOUT)]
    Snoop(SnoopOf),
    /// Render the reports of a bundle again from its record; exits with 0 when they are written
    Report(Report),
    /// Serve bundles, comparisons and health to browsers and scripts of this machine, read-only
    #[command(after_help = serve::ABOUT)]
    Serve(ServeOf),
    /// Print the script with which a shell completes commands, options and names
    /// of studies, settings and bundles
    Completions(Completions),
    /// Print the manual page, as in `plumb man > plumb.1` or `man -l <(plumb man)`
    Man,
    /// Print what may stand in place of the last word, for the scripts of completions
    #[command(hide = true)]
    Complete(Complete),
    /// Make one run of a study, as standard input asks
    #[command(hide = true)]
    StudyRun,
    /// Scan a share of a table, as standard input asks
    #[command(hide = true)]
    ScanInstance,
}

impl Command {
    /// Returns the kind of bundle that the command makes; none if it makes none by default.
    pub const fn kept_as(&self) -> Option<&'static str> {
        match self {
            Command::Run(_) => Some("run"),
            Command::Study(_) | Command::CompareCommands(_) => Some("study"),
            Command::Calibrate(_) => Some("calibration"),
            _ => None,
        }
    }

    /// Returns the directory of a command's temporary files or of its database; none for a resumed
    /// study, which removes its own leftovers.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Command::Run(run) => Some(&run.path),
            Command::Study(study) if study.resume.is_none() => {
                Some(study.conduct.path.first().map_or(Path::new("."), PathBuf::as_path))
            }
            Command::Calibrate(calibrate) => calibrate.path.first().map(PathBuf::as_path),
            Command::Sort(sort) => Some(sort.place()),
            Command::Load(load) => Some(&load.path),
            Command::Index(index) => Some(&index.path),
            Command::Copy(copy) => Some(&copy.path),
            Command::Check(check) => Some(&check.path),
            Command::Export(export) => Some(&export.path),
            Command::Head(head) => Some(&head.path),
            Command::Count(count) => Some(&count.path),
            Command::Drop(drop) => Some(&drop.path),
            Command::Backup(backup) => Some(&backup.path),
            Command::List(List { what: Listing::Tables | Listing::Bundles, path, .. }) => Some(path),
            _ => None,
        }
    }
}

#[derive(Debug, Args)]
pub struct Run {
    #[command(flatten)]
    pub work: WorkArguments,
    /// Take the parameters of slob from this slob.conf, which is read and not
    /// run; other options override it
    #[arg(long, value_name = "FILE")]
    pub conf: Option<PathBuf>,
    /// Directory for the temporary database, which gets a directory of its own in it
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub path: PathBuf,
    /// Directories for sort runs instead; several are used in turn
    #[arg(long, value_name = "DIR,..", value_delimiter = ',')]
    pub temp_path: Vec<PathBuf>,
    /// Directories for the table instead of --path
    #[arg(long, value_name = "DIR,..", value_delimiter = ',')]
    pub data_path: Vec<PathBuf>,
    /// Directories for the index instead of --path
    #[arg(long, value_name = "DIR,..", value_delimiter = ',')]
    pub index_path: Vec<PathBuf>,
    /// Directory for the redo log and the control file instead of --path
    #[arg(long, value_name = "DIR")]
    pub log_path: Option<PathBuf>,
    /// Set a setting (repeat for several); `plumb list settings` shows them
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// Print the summary alone; the bundle has the report
    #[arg(long, conflicts_with = "json")]
    pub quiet: bool,
    /// Take a snapshot at this interval while the run is measured: a number with ms, s or m;
    /// any two make a report
    #[arg(long, value_name = "TIME", value_parser = parse_snapshot, allow_hyphen_values = true)]
    pub snapshot: Option<Nanos>,
    /// Directory for report.txt, report.html, record.json and beside.csv
    /// [default: plumb-reports/WORKLOAD-DATE-TIME]
    #[arg(long, value_name = "DIR")]
    pub bundle: Option<PathBuf>,
    /// Print the record as JSON and nothing else; a bundle is written only if --bundle names one
    #[arg(long)]
    pub json: bool,
    /// Keep the database instead of removing it
    #[arg(long)]
    pub keep: bool,
    /// Keep every request of the measured work in the bundle, for `plumb trace`
    #[arg(long)]
    pub trace: bool,
}

/// A workload with its parameters: arguments that follow from the table of workloads.
#[derive(Debug)]
pub struct WorkArguments {
    pub workload: &'static Workload,
    /// The parameters that were given, as they were typed.
    pub given: Vec<(&'static str, String)>,
}

impl WorkArguments {
    /// Every parameter that some workload takes, each once.
    fn parameters() -> Vec<&'static Parameter> {
        let mut all: Vec<&'static Parameter> = Vec::new();
        for parameter in WORKLOADS.iter().flat_map(|workload| workload.parameters) {
            if all.iter().all(|known| known.name != parameter.name) {
                all.push(parameter);
            }
        }
        all
    }

    /// A parameter as an option of its name.
    fn option(parameter: &'static Parameter) -> Arg {
        let value = match parameter.takes {
            Domain::Size(..) => "BYTES",
            Domain::Word(_) => "WORD",
            Domain::Blocks(_) => "BLOCKS",
            Domain::Time => "TIME",
            Domain::Text(_) => "TEXT",
            _ => "N",
        };
        Arg::new(parameter.name)
            .long(parameter.name)
            .value_name(value)
            .help(WorkArguments::help(parameter))
            .allow_hyphen_values(true)
    }

    /// Returns the help of a parameter: with its default, with those of workloads that have
    /// another, and with the workloads that take it, unless all do.
    fn help(parameter: &Parameter) -> String {
        let takes = |workload: &&'static Workload| Some((workload.name, workload.parameter(parameter.name)?));
        let takers: Vec<_> = WORKLOADS.iter().filter_map(takes).collect();
        let default = parameter.default.map_or(String::new(), |default| {
            let others = takers.iter().filter(|(_, own)| own.default != Some(default));
            let others = others.filter_map(|(name, own)| Some(format!("; {} for {name}", own.default?)));
            format!(" [default: {default}{}]", others.collect::<String>())
        });
        let names: Vec<&str> = takers.iter().map(|(name, _)| *name).collect();
        let only =
            if names.len() == WORKLOADS.len() { String::new() } else { format!(" ({})", names.join(", ")) };
        let words = match parameter.takes {
            Domain::Word(words) => format!(" [values: {}]", words.join(", ")),
            _ => String::new(),
        };
        format!("{}{only}{words}{default}", parameter.help)
    }
}

impl Args for WorkArguments {
    fn augment_args(command: clap::Command) -> clap::Command {
        let workloads = WORKLOADS.iter().map(|workload| (workload.name, workload.help, *workload));
        let workload = Arg::new("workload")
            .value_name("WORKLOAD")
            .required(true)
            .help("The workload to run")
            .value_parser(one_of(workloads));
        command.arg(workload).args(WorkArguments::parameters().into_iter().map(WorkArguments::option))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        WorkArguments::augment_args(command)
    }
}

impl FromArgMatches for WorkArguments {
    fn from_arg_matches(matches: &ArgMatches) -> Result<WorkArguments, clap::Error> {
        let missing = || clap::Error::new(clap::error::ErrorKind::MissingRequiredArgument);
        let workload = *matches.get_one::<&'static Workload>("workload").ok_or_else(missing)?;
        let given = WorkArguments::parameters().into_iter().filter_map(|parameter| {
            Some((parameter.name, matches.get_one::<String>(parameter.name)?.clone()))
        });
        Ok(WorkArguments { workload, given: given.collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = WorkArguments::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Parameters of workloads as options of `plumb study`, which has a seed of its own.
#[derive(Debug, Clone, Default)]
pub struct WorkParameters {
    /// The option, the parameter, and its value as it was typed.
    pub given: Vec<(&'static str, &'static str, String)>,
}

/// The option for the seed of the data.
const DATA_SEED: &str = "data-seed";

impl WorkParameters {
    /// The option for each parameter, without `rows`, which every study takes.
    fn options() -> impl Iterator<Item = (&'static str, &'static Parameter)> {
        let parameters = WorkArguments::parameters().into_iter().filter(|parameter| parameter.name != "rows");
        parameters.map(|parameter| match parameter.name {
            "seed" => (DATA_SEED, parameter),
            name => (name, parameter),
        })
    }
}

impl Args for WorkParameters {
    fn augment_args(command: clap::Command) -> clap::Command {
        // `plumb help run` lists them.
        let option = |(name, parameter): (&'static str, _)| {
            WorkArguments::option(parameter).id(name).long(name).hide(true)
        };
        command.args(WorkParameters::options().map(option))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        WorkParameters::augment_args(command)
    }
}

impl FromArgMatches for WorkParameters {
    fn from_arg_matches(matches: &ArgMatches) -> Result<WorkParameters, clap::Error> {
        let given = WorkParameters::options().filter_map(|(option, parameter)| {
            Some((option, parameter.name, matches.get_one::<String>(option)?.clone()))
        });
        Ok(WorkParameters { given: given.collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = WorkParameters::from_arg_matches(matches)?;
        Ok(())
    }
}

#[derive(Debug, Clone, Args)]
pub struct Study {
    /// Name of a study, which `plumb list studies` shows, or a study file; with --factor a workload
    #[arg(value_name = "NAME|FILE.toml|WORKLOAD", required_unless_present_any = ["resume", "command"])]
    pub study: Option<String>,
    /// Instead of a study file: a command with a word in braces for each
    /// factor, as 'fio --bs={bs} job.fio'
    #[arg(long, value_name = "COMMAND", conflicts_with = "study", requires = "factor")]
    pub command: Option<String>,
    /// Vary a setting, a parameter of the workload or a word of the command over these values, the
    /// first the reference (repeat for several)
    #[arg(long, value_name = "NAME=A,B,..")]
    pub factor: Vec<String>,
    /// With a workload and --factor: a setting that all runs share (repeat for several)
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// Run the study on another kind of target: engine, or postgres by a server of this machine;
    /// the table of that name in the study's file says what differs there. With an address,
    /// postgres://USER@HOST/DATABASE, on that running server, in a database of its own
    #[arg(long, value_name = "KIND|URL", conflicts_with = "command")]
    pub target: Option<String>,
    /// With an address: do not ask before the database is made
    #[arg(long, requires = "target", conflicts_with = "command")]
    pub yes: bool,
    /// With an address: also change settings that need a reload of the server's files (ALTER
    /// SYSTEM and pg_reload_conf). The old values are noted before, and put back at the end, after
    /// Ctrl-C, and after a kill by the next study or `plumb undo`
    #[arg(long, requires = "target", conflicts_with = "command")]
    pub allow_reload: bool,
    /// For a study of PostgreSQL: the directory of `postgres` and `initdb` [default: the highest
    /// version found]
    #[arg(long, value_name = "DIR")]
    pub server: Option<String>,
    /// Parameters of the workload that all runs share
    #[command(flatten)]
    pub parameters: WorkParameters,
    #[command(flatten)]
    pub conduct: Conduct,
    /// Rows of the table instead of the study's; K, M and G are powers of 1000
    #[arg(long, value_parser = parse_rows, allow_hyphen_values = true)]
    pub rows: Option<u64>,
    /// The condition that ends the study
    #[arg(long, value_enum)]
    pub until: Option<Until>,
    /// Run nothing: show which levels are possible here, and which evidence the receipts of each
    /// setting can have
    #[arg(long, conflicts_with_all = ["resume", "until"])]
    pub check: bool,
    /// Go on with the study of a bundle, by the commands of its study.toml: this
    /// one, or that of --bundle
    #[arg(long, value_name = "BUNDLE", num_args = 0..=1, conflicts_with = "find")]
    pub resume: Option<Option<PathBuf>>,
    #[command(flatten)]
    pub around: AroundCommand,
}

/// Options that every kind of study has.
#[derive(Debug, Clone, Args)]
pub struct Conduct {
    /// Directory for databases, each in a directory of its own, or the value of {path} in a
    /// command: its device is then described, and left to settle before each run; two or more
    /// places are compared [default: .]
    #[arg(long, value_name = "DIR")]
    pub path: Vec<PathBuf>,
    /// Blocks instead of the study's, or of the 10 of commands that are given here: every arm runs
    /// once a block, the reference twice
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000), allow_hyphen_values = true)]
    pub blocks: Option<u16>,
    /// As many blocks as find an effect of this size in nine studies of ten, by a pilot
    /// of the reference's noise: 5%
    #[arg(long, value_name = "PERCENT", value_parser = parse_effect, conflicts_with = "blocks", allow_hyphen_values = true)]
    pub find: Option<f64>,
    /// Stop before a block that would not end within this time: a number with s, m or h
    #[arg(long, value_name = "TIME", value_parser = parse_budget, allow_hyphen_values = true)]
    pub budget: Option<Nanos>,
    /// Seed of the order of runs [default: from the clock]
    #[arg(long)]
    pub seed: Option<u64>,
    /// Directory for the raw records and the reports [default: plumb-reports/study-NAME-DATE-TIME]
    #[arg(long, value_name = "DIR")]
    pub bundle: Option<PathBuf>,
    /// Print the analysis as JSON and nothing else
    #[arg(long)]
    pub json: bool,
    /// Print the result in this form and nothing else
    #[arg(long, value_enum, conflicts_with = "json")]
    pub format: Option<StudyFormat>,
    /// Count claims of which nothing is proved as skipped: exit code 0, and skipped in JUnit
    #[arg(long)]
    pub allow_open: bool,
}

/// Forms of a study's result for other programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StudyFormat {
    /// The first page, for a comment in a code review
    Markdown,
    /// A test case for each claim, for a build server
    Junit,
}

/// Form in which a result is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrintForm {
    Text,
    Json,
    Of(StudyFormat, OpenClaims),
}

impl PrintForm {
    fn of(json: bool, format: Option<StudyFormat>, open: OpenClaims) -> PrintForm {
        match format {
            Some(format) => PrintForm::Of(format, open),
            None if json => PrintForm::Json,
            None => PrintForm::Text,
        }
    }
}

impl Conduct {
    /// Returns the form of the result.
    pub fn shown(&self) -> PrintForm {
        PrintForm::of(self.json, self.format, self.open())
    }

    /// Returns the treatment of open claims.
    #[must_use]
    pub fn open(&self) -> OpenClaims {
        open_claims(self.allow_open)
    }
}

fn open_claims(allowed: bool) -> OpenClaims {
    if allowed { OpenClaims::Allowed } else { OpenClaims::Fail }
}

/// Options for the measures of a command and for steps around its runs.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Options of commands; of a workload --measure and --same")]
pub struct AroundCommand {
    /// Compare this figure: elapsed, cpu, "peak memory", regex:PATTERN with one group,
    /// json:/POINTER, or size:FILE; of a workload a statistic of docs/studies.md [default: elapsed,
    /// of slob operations a second]
    #[arg(long, value_name = "MEASURE")]
    pub measure: Option<String>,
    /// The figure that counts, of several matches of a pattern or several JSON documents
    #[arg(long, value_name = "last|sum", value_parser = ["last", "sum"])]
    pub take: Option<String>,
    /// The unit of a pattern's or a pointer's figure, as reports print it
    #[arg(long, value_name = "UNIT")]
    pub unit: Option<String>,
    /// The better direction of a figure, for a pattern, a pointer or a size
    #[arg(long, value_name = "lower|higher", value_parser = ["lower", "higher"])]
    pub better: Option<String>,
    /// Run once before the first run
    #[arg(long, value_name = "COMMAND")]
    pub setup: Option<String>,
    /// Run once after the last run
    #[arg(long, value_name = "COMMAND")]
    pub cleanup: Option<String>,
    /// Run before each run, untimed
    #[arg(long, value_name = "COMMAND")]
    pub prepare: Option<String>,
    /// Run after each run, untimed
    #[arg(long, value_name = "COMMAND")]
    pub conclude: Option<String>,
    /// Run after each run: the result is wrong when it does not exit with 0
    #[arg(long, value_name = "COMMAND")]
    pub verify: Option<String>,
    /// Require this of the command where a word has this value, and its absence elsewhere: KIND is
    /// output (a pattern), opened, library, executable (a path), open-flag (a path and a flag),
    /// ring-requests, flushes, ... (the least number; repeat for several)
    #[arg(long, value_name = "WORD=VALUE:KIND:WHAT")]
    pub receipt: Vec<String>,
    /// Codes that the commands may end with, as in 0,1 for grep and diff [default: 0]
    #[arg(long, value_name = "CODES", value_delimiter = ',')]
    pub exit_codes: Vec<u8>,
    /// Have /bin/sh run the commands, which costs its start
    #[arg(long)]
    pub shell: bool,
    /// The commands, or values of a factor, may be the same, or are meant to be: the claim is that
    /// they are equal within 5%
    #[arg(long)]
    pub same: bool,
}

#[derive(Debug, Args)]
pub struct CompareCommands {
    /// The commands; the first is the reference
    #[arg(required = true, num_args = 2.., value_name = "COMMAND")]
    pub commands: Vec<String>,
    #[command(flatten)]
    pub conduct: Conduct,
    #[command(flatten)]
    pub around: AroundCommand,
}

impl CompareCommands {
    /// The study that it stands for.
    pub fn into_study(self) -> Study {
        Study {
            study: None,
            command: Some(String::new()),
            factor: self.commands,
            set: Vec::new(),
            target: None,
            yes: false,
            allow_reload: false,
            server: None,
            parameters: WorkParameters::default(),
            around: self.around,
            conduct: self.conduct,
            rows: None,
            until: None,
            check: false,
            resume: None,
        }
    }
}

/// Condition under which a study stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Until {
    /// After all planned blocks have run
    Blocks,
    /// As soon as every claim is decided, which costs some power at equal length
    Decided,
}

#[derive(Debug, Args)]
pub struct Verify {
    /// The directory of a study's bundle
    pub bundle: PathBuf,
    /// The bundle's hash as it was published: no other bundle passes, however consistent
    #[arg(long, value_name = "HASH")]
    pub expect: Option<String>,
    /// Print what was verified as JSON and nothing else
    #[arg(long)]
    pub json: bool,
}

/// The arguments of `plumb audit`: claims, and how to print them
#[derive(Debug, Args)]
pub struct AuditOf {
    /// Claims that come with the program (`plumb list claims`), claim files, or directories of them
    /// [default: all that come with the program]
    #[arg(value_name = "CLAIM")]
    pub claims: Vec<PathBuf>,
    /// A bundle of the study that the claim names, in place of the one in its file
    #[arg(long, value_name = "BUNDLE")]
    pub bundle: Option<PathBuf>,
    /// Write the page as one HTML file, too, which must be new
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print the audits as JSON and nothing else
    #[arg(long)]
    pub json: bool,
}

/// The arguments of `plumb share`: a bundle or a file, and where its copy goes
#[derive(Debug, Args)]
pub struct ShareOf {
    /// The bundle of a run, a study or a calibration, or a report, a plan or a claim
    pub bundle: PathBuf,
    /// A new directory for the copy
    #[arg(long, value_name = "DIR")]
    pub output: PathBuf,
    /// Replace this word although it is listed (repeat for several)
    #[arg(long, value_name = "WORD")]
    pub name: Vec<String>,
    /// Print what was replaced as JSON and nothing else
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Calibrate {
    /// A directory on the storage to measure; the file made there is removed again, and the
    /// result stays in it as plumb-calibration.json. Several paths are measured alone, at
    /// once, and as one volume
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub path: Vec<PathBuf>,
    /// The volume that several paths form
    #[arg(long, value_name = "LAYOUT", value_parser = one_of(VolumeLayout::ALL.iter().map(|layout| (layout.name(), layout.help(), *layout))))]
    pub simulate: Option<VolumeLayout>,
    /// Bytes of a stripe of --simulate raid0 [default: 1M]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, allow_hyphen_values = true)]
    pub stripe: Option<Bytes>,
    /// Bytes that the link to the storage carries in a second, as 3200M or as ports: 8x4GFC; a
    /// figure that is larger is IMPOSSIBLE
    #[arg(long, value_name = "RATE", value_parser = parse_link)]
    pub link: Option<Bytes>,
    /// The kind of calibration to run
    #[arg(long, default_value = "quick", value_parser = one_of(Mode::ALL.iter().map(|mode| (mode.name(), mode.help(), *mode))))]
    pub run: Mode,
    /// Bound on the mean latency at which the most small reads a second are sought: a number
    /// with us, ms or s
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = parse_time, allow_hyphen_values = true)]
    pub max_latency: Nanos,
    /// Seed of the order of measurements, the places of requests and the data
    #[arg(long, default_value_t = 1996)]
    pub seed: u64,
    /// Length of the file [default: 2G for quick and 16G for the others, or half of what is free]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, allow_hyphen_values = true)]
    pub file_size: Option<Bytes>,
    /// Keep small random writes up for this time after everything else, and search for changes of
    /// their level: burst credits that run out, flash that is full; as 30m
    #[arg(long, value_name = "TIME", value_parser = parse_sustain, allow_hyphen_values = true)]
    pub sustain: Option<Nanos>,
    /// Most requests a second, for a device in use; the result is then in doubt, and is
    /// not kept for later runs
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub max_rate: Option<u64>,
    /// Load a device that others use without asking first
    #[arg(long)]
    pub yes: bool,
    /// Time of each repeat of a measurement [default: a share of the time of --run]
    #[arg(long, value_name = "TIME", value_parser = parse_time, allow_hyphen_values = true)]
    pub duration: Option<Nanos>,
    /// Prefix of the names of the CSV files
    #[arg(long, value_name = "NAME", default_value = "plumb", value_parser = parse_test_name)]
    pub test_name: String,
    /// Directory for the reports, calibration.json and
    /// the CSV files [default: plumb-reports/calibrate-DATE-TIME]
    #[arg(long, value_name = "DIR")]
    pub bundle: Option<PathBuf>,
    /// Print the calibration as JSON and nothing else; a bundle is written
    /// only if --bundle names one
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub advanced: AdvancedCalibration,
}

/// ORION's options under their names, for `--run advanced`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options of --run advanced")]
pub struct AdvancedCalibration {
    /// Percentage of requests that are writes [default: 0]
    #[arg(long, value_name = "PERCENT")]
    pub write: Option<u8>,
    /// The order of the large requests; small ones are random [default: rand]
    #[arg(long = "type", value_name = "ORDER", value_parser = one_of(ORDERS))]
    pub order: Option<Pattern>,
    /// The bytes of a small request [default: 8K]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, allow_hyphen_values = true)]
    pub size_small: Option<Bytes>,
    /// The bytes of a large request [default: 1M]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, allow_hyphen_values = true)]
    pub size_large: Option<Bytes>,
    /// Cells of the matrix of small by large requests outstanding [default: basic]
    #[arg(long, value_name = "CELLS", value_parser = one_of(Cells::ALL.iter().map(|cells| (cells.name(), cells.help(), *cells))))]
    pub matrix: Option<Cells>,
    /// Small requests outstanding: of the point, of the column, or at most
    #[arg(long, value_name = "N")]
    pub num_small: Option<usize>,
    /// Large requests outstanding: of the point, of the row, or at most
    #[arg(long, value_name = "N")]
    pub num_large: Option<usize>,
}

/// Orders of large requests: ORION's name, help, value.
const ORDERS: [(&str, &str, Pattern); 2] =
    [("rand", "At random places", Pattern::Random), ("seq", "One after the other", Pattern::Sequential)];

/// Takes one of the names of `choices`, which have help and a value each.
fn one_of<T: Copy + Send + Sync + 'static>(
    choices: impl IntoIterator<Item = (&'static str, &'static str, T)>,
) -> impl TypedValueParser<Value = T> {
    let choices: Vec<_> = choices.into_iter().collect();
    let values = choices.iter().map(|(name, help, _)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(values.collect::<Vec<_>>()).map(move |given| {
        let chosen = choices.iter().find(|(name, ..)| *name == given);
        let Some((.., value)) = chosen else { unreachable!("no other name is a possible value") };
        *value
    })
}

impl AdvancedCalibration {
    /// Replaces the defaults by what was given.
    pub fn apply(&self, options: &mut Options) {
        let advanced = &mut options.advanced;
        advanced.write_percent = self.write.unwrap_or(advanced.write_percent);
        advanced.large_pattern = self.order.unwrap_or(advanced.large_pattern);
        advanced.cells = self.matrix.unwrap_or(advanced.cells);
        (advanced.num_small, advanced.num_large) = (self.num_small, self.num_large);
        options.size_small = self.size_small.unwrap_or(options.size_small);
        options.size_large = self.size_large.unwrap_or(options.size_large);
    }
}

#[derive(Debug, Args)]
pub struct Load {
    /// The file: a header row unless --no-header or --names says otherwise, then rows; plain or
    /// gzip; - for standard input
    pub file: PathBuf,
    /// Name of the table to make
    #[arg(long, value_name = "T")]
    pub table: String,
    /// The directory in which the database plumb.db lies
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub path: PathBuf,
    /// Column types by place (NUMBER,DATE,VARCHAR2(60)) or by name
    /// (price=NUMBER(38,2),day=DATE); others are found from the values; a name with a comma, a
    /// quote first or = stands in double quotes ("price, EUR"=NUMBER)
    #[arg(long)]
    pub types: Option<String>,
    /// The file has no header row: its columns are called column_1, column_2 and so on
    #[arg(long, conflicts_with_all = ["names", "header"])]
    pub no_header: bool,
    /// The file has no header row: these are its columns' names, with commas between them
    #[arg(long, value_name = "A,B,..", conflicts_with = "header")]
    pub names: Option<String>,
    /// The first row has the names, although they look like values
    #[arg(long)]
    pub header: bool,
    /// Quotes at the start of a field: they hold delimiters and line ends, doubled
    /// within (double), or nothing (none)
    #[arg(long, default_value = "double", value_name = "double|none", value_parser = parse_quote)]
    pub quote: Quote,
    /// The character between two fields: comma, semicolon, tab, pipe, any other, or auto
    #[arg(long, default_value = "auto", value_parser = parse_delimiter)]
    pub delimiter: Delimiter,
    /// Mark before the fraction of numbers: point, or comma, as in 6.341,71
    #[arg(long, default_value = "point", value_name = "point|comma", value_parser = parse_decimal)]
    pub decimal: DecimalMark,
    /// Form of dates: YYYY-MM-DD, DD/MM/YYYY, MM/DD/YYYY, DD.MM.YYYY, ...
    /// [default: found from the values]
    #[arg(long, value_name = "FORM", value_parser = DateForm::parse)]
    pub date_format: Option<DateForm>,
    /// A text that means NULL besides the empty one, as NA (repeat for several)
    #[arg(long, value_name = "TEXT")]
    pub null: Vec<String>,
    /// Into blocks of this size, in a tablespace of their own: another size than the database's
    /// needs its cache (--set db_2k_cache_size=4M)
    #[arg(long, value_name = "SIZE", value_parser = parse_block_size)]
    pub block_size: Option<BlockSize>,
    /// Insert the rows by transactions, which go through the buffer cache and the redo log, into a
    /// table that transactions can change
    #[arg(long)]
    pub conventional: bool,
    /// Rows of a transaction [default: 1000]; a row that cannot be read ends the load without the
    /// transaction in progress and without the 512K of the file around it, which are read ahead
    #[arg(long, value_name = "N", value_parser = parse_commit_every, requires = "conventional", allow_hyphen_values = true)]
    pub commit_every: Option<u64>,
    /// Sessions that share the rows [default: 1]
    #[arg(long, value_name = "N", value_parser = parse_sessions, requires = "conventional", allow_hyphen_values = true)]
    pub sessions: Option<u64>,
    /// Set a setting (repeat for several)
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// Print the columns and what was loaded as JSON and nothing else
    #[arg(long, conflicts_with = "report")]
    pub json: bool,
    /// Print the whole report of the transactions before the summary
    #[arg(long, requires = "conventional")]
    pub report: bool,
    /// Write report.txt, report.html and record.json of the transactions to this directory
    #[arg(long, value_name = "DIR", requires = "conventional")]
    pub bundle: Option<PathBuf>,
}

/// Sessions that fill the blocks of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LoadWay {
    /// One session loads the rows that all servers scan
    Serial,
    /// Each server loads the rows that it scans
    Parallel,
}

#[derive(Debug, Args)]
pub struct PlanSort {
    /// Rows to sort; K, M and G are powers of 1000
    #[arg(long, value_name = "N", value_parser = parse_rows, allow_hyphen_values = true, required_unless_present = "against")]
    pub rows: Option<u64>,
    /// Bytes of a key: of all its columns together
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4000))]
    pub key_bytes: u16,
    /// Memory of all servers together, which decides sort_area_size
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, allow_hyphen_values = true)]
    pub memory: Option<Bytes>,
    /// The bundle of a run: plan its rows with its settings, and show what it did
    #[arg(long, value_name = "BUNDLE", conflicts_with_all = ["rows", "memory", "set"])]
    pub against: Option<PathBuf>,
    /// Set a setting, such as parallel_degree (repeat for several)
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// Print the plan as JSON and nothing else
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct CopyRows {
    /// Name of the table to read
    pub table: String,
    /// Name of the table that gets the rows, new or loaded by direct path; old rows stay
    #[arg(long, value_name = "T")]
    pub to: String,
    /// The columns of the new rows, with commas between them [default: all]
    #[arg(long, value_name = "COLUMN,..")]
    pub columns: Option<String>,
    /// Condition on the rows, as "store_id < 100 and sales_date >= '1996-03-01'"
    #[arg(long = "where", value_name = "CONDITION", allow_hyphen_values = true)]
    pub condition: Option<String>,
    /// The sessions that fill the blocks; `--set parallel_degree=N` is the number of servers
    #[arg(long, value_enum, default_value = "parallel")]
    pub load: LoadWay,
    /// No redo, even where archive_log_mode is on, unless force_logging is: a backup is then needed
    #[arg(long)]
    pub no_logging: bool,
    /// The directory in which the database plumb.db lies
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub path: PathBuf,
    /// Set a setting (repeat for several)
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// Print what was copied as JSON and nothing else
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Index {
    /// Name of the table to index
    pub table: String,
    /// The key: column names with commas between them, `desc` after those that descend
    #[arg(required = true, value_name = "COLUMN[ desc],..", num_args = 1..)]
    pub columns: Vec<String>,
    /// The index's name [default: from table and columns]
    #[arg(long)]
    pub name: Option<String>,
    /// No two rows may have one key: only of a table that transactions change
    #[arg(long)]
    pub unique: bool,
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
    /// Print the record of the build as JSON and nothing else
    #[arg(long, conflicts_with = "report")]
    pub json: bool,
}

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
    /// Print what was found as JSON and nothing else
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Drop {
    /// A table, which goes with its indexes, or an index
    pub name: String,
    /// The directory in which the database plumb.db lies
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub path: PathBuf,
    /// Do not ask at a terminal
    #[arg(long)]
    pub yes: bool,
    /// Print what was dropped as JSON and nothing else
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Backup {
    /// The new directory for the backup
    pub to: PathBuf,
    /// Copy damaged blocks, too: to save what is left of a damaged database
    #[arg(long)]
    pub no_verify_checksums: bool,
    /// The directory in which the database plumb.db lies
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub path: PathBuf,
    /// Print what was copied as JSON and nothing else
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Restore {
    /// The directory of the backup
    pub from: PathBuf,
    /// The directory in which the database plumb.db is to lie
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub path: PathBuf,
    /// Print what was restored as JSON and nothing else
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Clean {
    /// The directory under which they ran; its plumb-reports is looked through too
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub path: PathBuf,
    /// Only list what would be removed
    #[arg(long)]
    pub dry_run: bool,
    /// Print what was found as JSON and nothing else
    #[arg(long)]
    pub json: bool,
}

/// The lists that `plumb list` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Listing {
    /// Workloads that `plumb run` runs
    Workloads,
    /// Studies that `plumb study` runs
    Studies,
    /// Published claims that `plumb audit` takes
    Claims,
    /// Settings for --set, with ranges and defaults
    Settings,
    /// Wait events with their classes
    Events,
    /// Counters that a run records
    Statistics,
    /// Parts of a run's I/O, with the function and the type of file of each
    Streams,
    /// Rules that give a run's findings: signal, threshold, origin, caveat, advice
    Rules,
    /// Reasons for which a faster path is not taken
    Reasons,
    /// Tables and indexes of the database in --path
    Tables,
    /// Bundles in plumb-reports below --path
    Bundles,
}

#[derive(Debug, Args)]
pub struct List {
    /// The kind of list to print
    #[arg(value_enum)]
    pub what: Listing,
    /// The directory in which the database plumb.db or plumb-reports lies (tables and bundles only)
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub path: PathBuf,
    /// Only rows that have this somewhere, in any case (repeat for several, all of which a row must
    /// have), as in `plumb list bundles --where redo --where log_file_io=buffered`
    #[arg(long = "where", value_name = "TEXT")]
    pub having: Vec<String>,
    /// Bundles only: list what is unfinished, left behind, waiting, old, nearly full, disturbed or
    /// silent instead
    #[arg(long)]
    pub health: bool,
    /// Print the list as JSON and nothing else; counts are numbers, sizes bytes, times seconds
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Trace {
    /// The bundle of a run, or its trace.bin
    pub bundle: PathBuf,
    /// Only sessions with this in their names, as `DBW`
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub session: String,
    /// Print only histograms and averages
    #[arg(long)]
    pub summary: bool,
    /// Whole paths instead of the files' names
    #[arg(long, conflicts_with = "summary")]
    pub paths: bool,
    /// Print its sums as JSON and nothing else
    #[arg(long, conflicts_with_all = ["paths", "summary"])]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Report {
    /// The bundle of a run, a study or a calibration: its directory, or a run's record.json
    #[arg(required_unless_present_any = ["end", "series"])]
    pub bundle: Option<PathBuf>,
    /// Reports of one database over weeks, as `plumb import` reads them, or bundles of runs: say
    /// where its load changed, and which events explain it
    #[arg(long, value_name = "FILE", num_args = 1..)]
    #[arg(conflicts_with_all = ["bundle", "begin", "end", "picture", "best", "format"])]
    pub series: Vec<PathBuf>,
    /// With --series: this figure of each run instead of its load, as Elapsed or READ_MBS
    #[arg(long, value_name = "NAME", requires = "series", conflicts_with = "bundle")]
    pub figure: Option<String>,
    /// With --series: write the page to this file, which must be new
    // The parser does not ask for what an option requires where another one excludes it.
    #[arg(long, value_name = "FILE", requires = "series", conflicts_with = "bundle")]
    pub html: Option<PathBuf>,
    /// Start of a period of a run: a snapshot that `plumb run --snapshot` took, from 1
    #[arg(long, value_name = "SNAPSHOT", requires = "end", allow_negative_numbers = true)]
    pub begin: Option<String>,
    /// With --begin the snapshot where the period ends; without a number: end a study that was
    /// interrupted where it is, so that its verdicts are given and it cannot go on
    #[arg(long, value_name = "SNAPSHOT", num_args = 0..=1, allow_negative_numbers = true)]
    pub end: Option<Option<String>>,
    /// Draw the effects of a study with their intervals, as one SVG file, which must be new
    #[arg(long, value_name = "FILE.svg", conflicts_with = "begin")]
    pub picture: Option<PathBuf>,
    /// Name the best level of an ordered factor of a study: the first to reach 95% of the best
    /// measure
    #[arg(long, value_name = "FACTOR", conflicts_with_all = ["begin", "picture"])]
    pub best: Option<String>,
    /// With --best: only levels that keep a limit count, as in 'ms of cache reads<=2'
    #[arg(long, value_name = "MEASURE<=VALUE", requires = "best", conflicts_with_all = ["begin", "picture"])]
    pub limit: Option<String>,
    /// Print the record or the analysis as JSON and nothing else
    #[arg(long)]
    pub json: bool,
    /// Print the result of a study in this form and nothing else
    #[arg(long, value_enum, conflicts_with_all = ["json", "begin"])]
    pub format: Option<StudyFormat>,
    /// With --format junit: claims of which nothing is proved are skipped
    #[arg(long, requires = "format", conflicts_with_all = ["json", "begin"])]
    pub allow_open: bool,
}

/// Report that the arguments ask for.
#[derive(Debug, PartialEq, Eq)]
pub enum ReportOf {
    Whole(PathBuf),
    /// The period between two snapshots of a run.
    Period(PathBuf, (usize, usize)),
    /// A study that ends where it is.
    Ended(PathBuf),
}

impl Report {
    /// Returns the form of the result.
    pub fn shown(&self) -> PrintForm {
        PrintForm::of(self.json, self.format, open_claims(self.allow_open))
    }

    /// Returns the report that is asked for. `--end BUNDLE` is read as `BUNDLE --end`. Fails if a
    /// period lacks an end, or one is no number.
    pub fn of(&self) -> Result<ReportOf, String> {
        let number = |argument: &str, text: &str| {
            let number = text.parse::<usize>();
            number.map_err(|_| {
                format!(
                    "{argument} {text}: expected the number of a snapshot, from 1, as in --begin 3 --end 7"
                )
            })
        };
        match (&self.bundle, &self.begin, &self.end) {
            (Some(bundle), None, None) => Ok(ReportOf::Whole(bundle.clone())),
            (Some(bundle), None, Some(None)) => Ok(ReportOf::Ended(bundle.clone())),
            (None, None, Some(Some(bundle))) => Ok(ReportOf::Ended(PathBuf::from(bundle))),
            (Some(bundle), Some(begin), Some(Some(end))) => {
                Ok(ReportOf::Period(bundle.clone(), (number("--begin", begin)?, number("--end", end)?)))
            }
            (Some(_), None, Some(Some(end))) => {
                number("--end", end)?;
                Err(format!("--end {end}: a period has a --begin too, as in --begin 3 --end 7"))
            }
            (Some(_), Some(begin), _) => {
                Err(format!("--begin {begin}: a period has an --end too, as in --begin 3 --end 7"))
            }
            (None, ..) => Err("which report? name a bundle".to_string()),
        }
    }
}

/// Text of the columns of `plumb info`.
const INFO_COLUMNS: &str = "\
Columns, after awr_info of SLOB; one that a run has nothing for is blank:
  SESSIONS          asked for, else foreground sessions there were
  ELAPSED           seconds
  DB CPU, DB Tm     seconds a second: processors used, and sessions active, on average
  EXECUTES          statements a second
  LIO               blocks got from the cache a second
  PREADS, PWRITES   blocks read and written a second
  READ_MBS, WRITE_MBS, REDO_MBS
                    MB (2^20 bytes) a second, of files and of the log
  DFSR_LAT, DPR_LAT, DFPR_LAT, DFPW_LAT, LFPW_LAT
                    mean wait in microseconds: db file sequential read, direct path read, db file parallel read, db file
                    parallel write, log file parallel write
  TOP WAIT          the event with the most time, and its share of DB time in per cent
  OP                what an operation is: a statement, else a row or a commit
  CPU_US/OP, CS/OP, RKB/OP, WKB/OP
                    what one cost the whole process: microseconds of CPU, context switches, KB read, KB written";

#[derive(Debug, Args)]
pub struct Import {
    /// Files with reports, at most 64 MiB each; - for standard input. Nothing is kept without
    /// --bundle
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// List the sections that were understood, those that are empty, and lines that were not
    /// understood
    #[arg(long, conflicts_with = "json")]
    pub list: bool,
    /// Fail if a line of a table was not understood
    #[arg(long)]
    pub strict: bool,
    /// Print all tables, figures with lines and intervals, and records, as JSON and nothing else
    #[arg(long)]
    pub json: bool,
    /// Keep each report as the bundle of a run: in this directory, or in DIR/1, DIR/2 and so on
    /// where there are several
    #[arg(long, value_name = "DIR")]
    pub bundle: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Diagnose {
    /// Bundles of runs or of imports, and files with reports as `plumb import` reads them; - for
    /// standard input
    #[arg(required = true, value_name = "FILE|BUNDLE")]
    pub of: Vec<PathBuf>,
    /// Write the study that would prove the first finding which has one into this file, which must
    /// be new
    #[arg(long, value_name = "FILE.toml")]
    pub study: Option<PathBuf>,
    /// Print the findings of each run as JSON and nothing else
    #[arg(long, conflicts_with = "study")]
    pub json: bool,
}

/// `plumb info`
#[derive(Debug, Args)]
#[command(after_help = INFO_COLUMNS)]
pub struct Info {
    /// Bundles of runs, or of studies, all of whose runs are shown
    #[arg(required = true, value_name = "BUNDLE")]
    pub bundles: Vec<PathBuf>,
    /// Print the columns as JSON and nothing else
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Compare {
    /// The first: a bundle of `plumb run`, its record.json, BUNDLE:3-7 for the period between two
    /// of its snapshots, BUNDLE:ARM of a study, ARM a name or a number, or a report that `plumb
    /// import` reads: FILE, FILE:N for its N-th report, or - for standard input; or a trace that
    /// `plumb prune` reads
    pub first: String,
    /// The second, in the same form; two arms of one study are compared block by block. Without it
    /// the two periods or reports of the first, which is a file with two
    pub second: Option<String>,
    /// Write the comparison as one HTML file, too
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Compare with a baseline, which is the first: a name that --save-baseline gave
    #[arg(long, value_name = "NAME", value_parser = parse_test_name, conflicts_with = "second")]
    pub baseline: Option<String>,
    /// Keep this name for the first bundle, in plumb-reports; without a second nothing is compared
    #[arg(long, value_name = "NAME", value_parser = parse_test_name, conflicts_with = "baseline")]
    pub save_baseline: Option<String>,
    /// Print the comparison as JSON and nothing else
    #[arg(long)]
    pub json: bool,
}

/// A shell that has completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
}

#[derive(Debug, Args)]
pub struct Completions {
    /// For which shell; the script says in its first lines where it goes
    #[arg(value_enum)]
    pub shell: Shell,
}

#[derive(Debug, Args)]
pub struct Complete {
    /// The shell that asks for candidates
    #[arg(value_enum)]
    pub shell: Shell,
    /// The words after `plumb`, up to the one to complete
    #[arg(last = true)]
    pub words: Vec<String>,
}

fn parse_block_size(text: &str) -> Result<BlockSize, String> {
    let size = plumb_units::parse_size(text).ok().and_then(BlockSize::new);
    size.ok_or_else(|| "a block has 2K, 4K, 8K, 16K or 32K".to_string())
}

fn parse_rows(text: &str) -> Result<u64, String> {
    parse_from_one(text, "a table to sort")
}

fn parse_commit_every(text: &str) -> Result<u64, String> {
    parse_from_one(text, "a commit")
}

/// Parses the sessions of a load within the range that `plumb run redo` has for them.
fn parse_sessions(text: &str) -> Result<u64, String> {
    REDO.parameter("sessions").expect("a parameter of the workload").parse(text)
}

fn parse_from_one(text: &str, what: &str) -> Result<u64, String> {
    match plumb_units::parse_count(text) {
        Ok(0) => Err(format!("{what} has at least one row")),
        Ok(rows) => Ok(rows),
        Err(error) => Err(error.to_string()),
    }
}

fn parse_bytes(text: &str) -> Result<Bytes, String> {
    plumb_units::parse_size(text).map(Bytes).map_err(|error| error.to_string())
}

/// The payload of a link: bytes a second, or ports of Fibre Channel. A gigabit there carries
/// 100 MB/s, because eight bits take ten on the wire.
fn parse_link(text: &str) -> Result<Bytes, String> {
    let ports = text.strip_suffix("GFC").and_then(|ports| ports.split_once('x'));
    let rate = match ports {
        Some((ports, gigabits)) => {
            let number = |text: &str| text.parse::<u64>().ok().filter(|number| (1..=1024).contains(number));
            number(ports).zip(number(gigabits)).map(|(ports, gigabits)| ports * gigabits * 100_000_000)
        }
        // The b of 4Gb means bits of a link and bytes of a file, so it is refused.
        None if text.trim_end_matches("/s").ends_with('b') => None,
        None => plumb_units::parse_size(text.trim_end_matches("/s")).ok().filter(|rate| *rate > 0),
    };
    rate.map(Bytes).ok_or_else(|| {
        format!("\"{text}\" is no rate: bytes a second, as 3200M, or ports of Fibre Channel, as 8x4GFC")
    })
}

fn parse_time(text: &str) -> Result<Nanos, String> {
    within(text, Nanos(1_000), Nanos(3600 * SECOND), "1us to 3600s")
}

fn parse_sustain(text: &str) -> Result<Nanos, String> {
    within(text, Nanos(10 * SECOND), Nanos(24 * 3600 * SECOND), "10s to 24h")
}

/// A share, from a percentage.
fn parse_effect(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    let in_range = number.filter(|number| (0.01..100.0).contains(number));
    in_range
        .map(|number| number / 100.0)
        .ok_or_else(|| "expected a percentage from 0.01% to 99%, as in 5%".to_string())
}

fn parse_budget(text: &str) -> Result<Nanos, String> {
    within(text, Nanos(SECOND), Nanos(7 * 24 * 3600 * SECOND), "1s to 168h")
}

fn parse_snapshot(text: &str) -> Result<Nanos, String> {
    within(text, Nanos(10_000_000), Nanos(24 * 3600 * SECOND), "10ms to 24h")
}

const SECOND: u64 = 1_000_000_000;

fn within(text: &str, least: Nanos, most: Nanos, range: &str) -> Result<Nanos, String> {
    let time = plumb_units::parse_duration(text).map_err(|error| error.to_string())?;
    if (least..=most).contains(&time) { Ok(time) } else { Err(format!("expected {range}")) }
}

/// A prefix of file names.
fn parse_test_name(text: &str) -> Result<String, String> {
    let plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.');
    if !text.is_empty() && text.len() <= 100 && !text.starts_with('.') && text.chars().all(plain) {
        return Ok(text.to_string());
    }
    Err("expected 1 to 100 letters, digits, _, - or ., and no . at the start".to_string())
}

fn parse_quote(text: &str) -> Result<Quote, String> {
    match text {
        "double" => Ok(Quote::Double),
        "none" => Ok(Quote::None),
        _ => Err("expected double or none".to_string()),
    }
}

fn parse_decimal(text: &str) -> Result<DecimalMark, String> {
    match text {
        "point" => Ok(DecimalMark::Point),
        "comma" => Ok(DecimalMark::Comma),
        _ => Err("expected point or comma".to_string()),
    }
}

fn parse_delimiter(text: &str) -> Result<Delimiter, String> {
    match text {
        "auto" => Ok(Delimiter::Auto),
        "comma" => Ok(Delimiter::Byte(b',')),
        "semicolon" => Ok(Delimiter::Byte(b';')),
        "tab" | "\\t" => Ok(Delimiter::Byte(b'\t')),
        "pipe" => Ok(Delimiter::Byte(b'|')),
        _ => match text.as_bytes() {
            [byte] if byte.is_ascii() && !matches!(byte, b'"' | b'\n' | b'\r') => Ok(Delimiter::Byte(*byte)),
            _ => Err("expected comma, semicolon, tab, pipe, auto, or one character of ASCII".to_string()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::{Arguments, parse_link, parse_time};
    use clap::CommandFactory as _;
    use plumb_units::{Bytes, Nanos};

    #[test]
    fn a_link_is_bytes_a_second_or_ports_of_fibre_channel() {
        assert_eq!(parse_link("8x4GFC"), Ok(Bytes(3_200_000_000)));
        assert_eq!(parse_link("3200M/s"), Ok(Bytes(3200 << 20)));
        for refused in ["4Gb", "4Gb/s", "0", "0x4GFC", "8x4", "fast"] {
            let why = parse_link(refused).expect_err(refused);
            assert!(why.starts_with(&format!("\"{refused}\" is no rate: ")), "{why}");
        }
    }

    #[test]
    fn the_declaration_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn an_option_that_would_be_idle_is_refused() {
        let words = [
            "report b --html x.html",
            "report b --picture x.svg --limit ms<=2",
            "report b --json --allow-open",
            "report b --begin 1 --end 2 --allow-open",
            "study --command true --factor a=1,2 --yes",
            "study --command true --factor a=1,2 --allow-reload",
            "plans a b --write",
        ];
        for words in words {
            let typed = ["plumb"].into_iter().chain(words.split(' '));
            assert!(Arguments::command().try_get_matches_from(typed).is_err(), "{words}");
        }
    }

    #[test]
    fn times_have_a_unit() {
        assert_eq!(parse_time("10ms"), Ok(Nanos(10_000_000)));
        assert_eq!(parse_time("2.5 ms"), Ok(Nanos(2_500_000)));
        assert_eq!(parse_time("800us"), Ok(Nanos(800_000)));
        assert_eq!(parse_time("3600s"), Ok(Nanos(3_600_000_000_000)));
        for wrong in
            ["", "10", "ms", "10ns", "-1ms", "1e3ms", "infs", "nans", "0ms", "3601s", "0.5us", "1.2.3s"]
        {
            assert!(parse_time(wrong).is_err(), "{wrong}");
        }
    }
}
