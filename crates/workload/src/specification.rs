//! Workloads: each row names a job for a target, its data, its parameters, and its verification.
//!
//! ```text
//! Workload (a row)  ──[values of its parameters]──>  Work  ──[a target]──> a record
//! ```
//!
//! No row says how the work is done: each target does that for the workloads that it knows. The
//! arguments of `plumb run`, `plumb list workloads` and the keys of a study file follow from a row.

use plumb_events::Phase;
use plumb_units::{Bytes, Domain, Nanos, parse_count, parse_duration, parse_size};
use std::fmt;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

/// The texts that parameters of this process have as values. A value is a number; that of a text is
/// its place here. Texts come from a command line or a study file, so there are few.
static TEXTS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Returns the place of a text among those of this process.
fn place_of_text(text: &str) -> u64 {
    let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    let place = texts.iter().position(|known| known == text).unwrap_or_else(|| {
        texts.push(text.to_string());
        texts.len() - 1
    });
    place as u64
}

fn text_at(place: u64) -> String {
    TEXTS.lock().unwrap_or_else(PoisonError::into_inner)[place as usize].clone()
}

/// Flag of a value given in bytes instead of blocks.
const IN_BYTES: u64 = 1 << 63;

/// Returns the number of blocks in a value parsed by [`Domain::Blocks`], given the bytes of a
/// block.
pub fn blocks_of(value: u64, block_bytes: u64) -> u64 {
    if value & IN_BYTES == 0 { value } else { (value & !IN_BYTES) / block_bytes }
}

/// Divides a value parsed by [`Domain::Blocks`], in its own unit; the result is at least 1.
pub(crate) fn part_of_blocks(value: u64, parts: u64) -> u64 {
    value & IN_BYTES | ((value & !IN_BYTES) / parts.max(1)).max(1)
}

/// Value of a parameter as a user would type it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shown {
    /// A number without a unit.
    Number(u64),
    /// A word, or a number with a unit.
    Text(String),
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shown::Number(number) => number.fmt(f),
            Shown::Text(text) => f.pad(text),
        }
    }
}

/// Effect of a parameter: on the data or on the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decides {
    /// The data, which all runs of a study share.
    Data,
    /// The work: a study may vary it as it varies a setting.
    Work,
}

/// Parameter of a workload that a user may give.
#[derive(Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Name: `--NAME` on the command line, a key in a study file.
    pub name: &'static str,
    /// Help text of one line.
    pub help: &'static str,
    /// Effect: on the data or on the work.
    pub decides: Decides,
    /// Values that it takes, with their range.
    pub takes: Domain,
    /// Default as typed by a user; `None` if no value means the default.
    pub default: Option<&'static str>,
    /// Parameter that this one replaces, because both give the same in other words.
    pub instead_of: Option<&'static str>,
}

impl Parameter {
    /// Returns the parameter that switches this one on or off, if there is one. Those of one
    /// workload alone may have a name that another workload's parameter has.
    pub fn depends_on(&self, workload: &Workload) -> Option<&'static str> {
        let of_workload = |how: &Counts| match how {
            Counts::With(other) | Counts::Without(other) => workload.parameter(other).map(|row| row.name),
        };
        COUNTS.iter().filter(|(name, ..)| *name == self.name).find_map(|(_, how, _)| of_workload(how))
    }

    /// True if the name is this parameter's; `_` is accepted for `-`.
    pub fn is_named(&self, name: &str) -> bool {
        self.name == name || (name.contains('_') && self.name == name.replace('_', "-"))
    }

    /// Parses a value to its number.
    ///
    /// # Errors
    /// The expected form, for a message.
    pub fn parse(&self, text: &str) -> Result<u64, String> {
        let count = || parse_count(text).map_err(|error| error.to_string());
        let size = || parse_size(text).map_err(|error| error.to_string());
        match self.takes {
            Domain::Count(least, u64::MAX) => at_least(count()?, least, format!("a count of {least}")),
            Domain::Size(least, _) => at_least(size()?, least, Bytes(least).to_string()),
            Domain::Count(least, most) => {
                let number = count().ok().filter(|number| (least..=most).contains(number));
                number.ok_or_else(|| format!("expected a whole number from {least} to {most}"))
            }
            Domain::Word(words) => {
                let place = words.iter().position(|word| word.eq_ignore_ascii_case(text.trim()));
                place.map(|place| place as u64).ok_or_else(|| format!("expected {}", words.join(" or ")))
            }
            Domain::Blocks(least) => {
                match text.trim().bytes().all(|byte| byte.is_ascii_digit() || byte == b'_') {
                    true => at_least(count()?, least, format!("{least} blocks")),
                    false => Ok(size()? | IN_BYTES),
                }
            }
            Domain::Time => {
                let bare = text.trim();
                let text = if bare.ends_with(|last: char| last.is_ascii_digit()) {
                    format!("{bare}s")
                } else {
                    bare.into()
                };
                parse_duration(&text).map(|time| time.0).map_err(|error| error.to_string())
            }
            Domain::Text(_) => match self.takes.admits(text.trim()) {
                true => Ok(place_of_text(text.trim())),
                false => Err(format!("expected {}", self.takes.describe())),
            },
            Domain::PowerOfTwo(..) | Domain::AutoOrCount(..) | Domain::BlockSize | Domain::Path => {
                unreachable!("no parameter takes these")
            }
        }
    }

    /// Formats a value as a user would type it.
    pub fn shown(&self, value: u64) -> Shown {
        match self.takes {
            Domain::Blocks(_) if value & IN_BYTES == 0 => Shown::Number(value),
            Domain::Word(words) => Shown::Text(words[value as usize].to_string()),
            Domain::Blocks(_) => {
                let text = Bytes(value & !IN_BYTES).as_setting();
                Shown::Text(if text.ends_with(|last: char| last.is_ascii_digit()) {
                    text + "B"
                } else {
                    text
                })
            }
            Domain::Time => Shown::Text(in_seconds(Nanos(value))),
            Domain::Text(_) => Shown::Text(text_at(value)),
            _ => Shown::Number(value),
        }
    }
}

fn at_least(number: u64, least: u64, expected: String) -> Result<u64, String> {
    if number >= least { Ok(number) } else { Err(format!("expected {expected} or more")) }
}

/// Formats a time as `0.1s`, with as many decimals as it has.
fn in_seconds(time: Nanos) -> String {
    let text = format!("{}.{:09}", time.0 / 1_000_000_000, time.0 % 1_000_000_000);
    format!("{}s", text.trim_end_matches('0').trim_end_matches('.'))
}

/// A workload, as a row of the table.
#[derive(Debug, PartialEq, Eq)]
pub struct Workload {
    /// Name in titles and paths, and on the command line.
    pub name: &'static str,
    /// Help text: its work in one line.
    pub help: &'static str,
    /// Name of its table or file.
    pub data: &'static str,
    /// Name of the measured operation, in headings of phases.
    pub measures: &'static str,
    /// Phases that a run may have, in order.
    pub phases: &'static [Phase],
    /// Facts that a successful verification establishes.
    pub verified: &'static str,
    /// Parameters that a user may give.
    pub parameters: &'static [Parameter],
    /// Bytes of one of its rows, if all have one length.
    pub row_bytes: Option<u64>,
}

const ROWS: Parameter = Parameter {
    name: "rows",
    help: "Rows of the table, or records of the file; K, M and G are powers of 1000",
    decides: Decides::Data,
    takes: Domain::count_from(1),
    default: Some("2M"),
    instead_of: None,
};
const SEED: Parameter = Parameter {
    name: "seed",
    help: "Seed of the generated rows: the same seed, the same rows",
    decides: Decides::Data,
    takes: Domain::count_from(0),
    default: Some("1996"),
    instead_of: None,
};
const SIZE: Parameter = Parameter {
    name: "size",
    help: "Instead of rows: bytes of the file of records, as 10G; K, M and G are powers of 1024",
    decides: Decides::Data,
    takes: Domain::size_from(crate::gensort::RECORD_BYTES as u64),
    default: None,
    instead_of: Some("rows"),
};

const FORM: Parameter = Parameter {
    name: "form",
    help: "What the 90 bytes behind a key hold: those of gensort 1.5, which a disk that compresses makes small, or random \
           ones, as other versions of gensort write",
    decides: Decides::Data,
    takes: Domain::Word(&["gensort", "random"]),
    default: Some("gensort"),
    instead_of: None,
};

const ROWS_OF_IMPORT: Parameter = Parameter { default: Some("1M"), ..ROWS };
const BUFFER: Parameter = Parameter {
    name: "buffer",
    help: "Bytes of rows that are inserted at once and then committed: 1K for many small transactions, 16M for few large ones",
    decides: Decides::Work,
    takes: Domain::size_from(1),
    default: Some("1K"),
    instead_of: None,
};
const SESSIONS: Parameter = Parameter {
    name: "sessions",
    help: "Sessions that work at once, each a thread of its own; 2132 at most that change something, with blocks of 8K",
    decides: Decides::Work,
    takes: Domain::count_from(1),
    default: Some("1"),
    instead_of: None,
};

/// Index build on a table larger than its sort areas.
pub const LARGE_SORT: Workload = Workload {
    name: "large-sort",
    help: "Load the sales table, build an index on it that does not fit its sort areas, verify it",
    data: "SALES",
    measures: "index build",
    phases: &[
        Phase::Load,
        Phase::DeviceProbe,
        Phase::UsersBefore,
        Phase::Sample,
        Phase::TableScan,
        Phase::RunGeneration,
        Phase::ReadCost,
        Phase::IntermediateMerges,
        Phase::MergeAndIndex,
        Phase::Join,
        Phase::UsersAfter,
        Phase::Verify,
    ],
    verified: "every row has its entry, every entry its row, in order; all blocks have their checksums",
    parameters: &[
        ROWS,
        SEED,
        data(
            "sorters",
            Domain::Count(1, 64),
            "1",
            "Index builds at the same time, each on a table of its own with that number of rows",
        ),
        Parameter {
            default: None,
            ..work(
                "sort-memory",
                Domain::size_from(64 * Bytes::K),
                "",
                "Memory of all sort servers of all builds together, shared out equally, instead of sort_area_size for each",
            )
        },
        data(
            "with",
            Domain::Word(&["nothing", "slob"]),
            "nothing",
            "slob: users read random blocks through the buffer cache before, during and after the build",
        ),
        Parameter { default: Some("64M"), ..SCALE },
        Parameter { default: Some("8"), ..SESSIONS },
        work(
            "hot-pct",
            Domain::Count(1, 100),
            "50",
            "Blocks of the table that users read, in hundredths of the buffer cache",
        ),
        work(
            "alone",
            Domain::Time,
            "3",
            "How long users read without the build, before it and after it, in seconds",
        ),
        WORK_UNIT,
        RATE,
    ],
    row_bytes: None,
};

/// Sort of a file of fixed records.
pub const RECORD_SORT: Workload = Workload {
    name: "record-sort",
    help: "Sort a file of gensort's 100-byte records with 10-byte keys into another file, judge it as valsort does",
    data: "RECORDS",
    measures: "file sort",
    phases: &[
        Phase::Load,
        Phase::DeviceProbe,
        Phase::RunGeneration,
        Phase::ReadCost,
        Phase::IntermediateMerges,
        Phase::Division,
        Phase::MergeAndWrite,
        Phase::Join,
        Phase::VerifyRecords,
    ],
    verified: "the output is in order and has the records of the input, by number and by the sum of their checksums",
    parameters: &[ROWS, SIZE, FORM],
    row_bytes: Some(crate::gensort::RECORD_BYTES as u64),
};

/// Import by array inserts with commits.
pub const REDO: Workload = Workload {
    name: "redo",
    help: "Import page views by array inserts with a commit after each, index and verify them",
    data: "PAGE_VIEWS",
    measures: "import",
    phases: &[Phase::DeviceProbe, Phase::Import, Phase::IndexCreation, Phase::Verify],
    verified: "all rows are there, by number and by the sum of their checksums; the index has one entry for each",
    parameters: &[ROWS_OF_IMPORT, BUFFER, SESSIONS, SEED],
    row_bytes: None,
};

/// Block size that SLOB's sizes assume, in bytes, unless another is given.
pub const BLOCK_BYTES: u64 = 8192;

/// Builds a parameter of the data.
const fn data(name: &'static str, takes: Domain, default: &'static str, help: &'static str) -> Parameter {
    Parameter { name, help, decides: Decides::Data, takes, default: Some(default), instead_of: None }
}

const fn work(name: &'static str, takes: Domain, default: &'static str, help: &'static str) -> Parameter {
    Parameter { name, help, decides: Decides::Work, takes, default: Some(default), instead_of: None }
}

/// The default is slob.conf's: five caches of 16M, because a session that found its whole schema
/// cached would do most of the operations.
const SCALE: Parameter = data(
    "scale",
    Domain::Blocks(64),
    "80M",
    "Blocks of each schema's table, or of that of a large sort's users, with one row each; with K, M, G or T behind it: bytes, as 80M",
);
const WORK_UNIT: Parameter = work(
    "work-unit",
    Domain::count_from(2),
    "64",
    "An operation on key r takes the rows between r - N and r: N - 1 of them, one block each",
);
const RATE: Parameter = work(
    "rate",
    Domain::count_from(0),
    "0",
    "Operations a second that arrive in all, whether or not sessions keep up: response times count from the arrival; 0: the next begins when one ends",
);

const NO_YES: Domain = Domain::Word(&["false", "true"]);
/// The words of `hotspot`, by their places.
const HOTSPOTS: Domain = Domain::Word(&["off", "all", "updates"]);

/// Random single-block reads and updates, as SLOB does them.
pub const SLOB: Workload = Workload {
    name: "slob",
    help: "Read and update single random blocks by index through the buffer cache, as SLOB does; verify rows, index and sums",
    data: "SLOB",
    measures: "random I/O",
    phases: &[
        Phase::Load,
        Phase::DeviceProbe,
        Phase::MixBefore,
        Phase::RandomIo,
        Phase::Verify,
        Phase::MixAfter,
    ],
    verified: "every row has its entry, every entry its row; the sum over all rows that each update keeps is what it was",
    parameters: &[
        SCALE,
        data("schemas", Domain::Count(1, 4096), "16", "Schemas, each with a table and an index of its own"),
        data(
            "scan-table-size",
            Domain::Blocks(1),
            "1M",
            "Blocks of the table that scans read, or bytes, as 1M",
        ),
        data("load-degree", Domain::Count(1, 64), "2", "Sessions that load schemas at once"),
        data(
            "placement",
            Domain::Word(&["scattered", "ordered"]),
            "scattered",
            "How keys lie over the blocks: scattered, in a drawn order, or ordered",
        ),
        data(
            "obfuscate",
            NO_YES,
            "true",
            "true: texts are drawn at random, so that a device cannot compress them; false: they repeat, as SLOB's do",
        ),
        SEED,
        Parameter { default: Some("16"), ..SESSIONS },
        work("threads-per-schema", Domain::count_from(1), "1", "Sessions that share a schema"),
        work("update-pct", Domain::Count(0, 100), "10", "Operations in a hundred that update"),
        work("scan-pct", Domain::Count(0, 100), "0", "Operations in a hundred that scan the scan table"),
        work(
            "mix",
            Domain::Word(&["slob", "iid"]),
            "slob",
            "slob: updates by a quota of each hundred operations, which makes bursts; iid: each drawn by itself",
        ),
        WORK_UNIT,
        work(
            "redo-stress",
            Domain::Word(&["lite", "heavy"]),
            "lite",
            "lite: an update replaces two columns of a row; heavy: nineteen",
        ),
        work(
            "run-time",
            Domain::Time,
            "10",
            "How long sessions go on, in seconds; each ends with the operation in progress",
        ),
        work(
            "work-loop",
            Domain::count_from(0),
            "0",
            "Operations of each session instead of run-time; 0 for run-time",
        ),
        work(
            "hotspot",
            HOTSPOTS,
            "off",
            "Whether some operations, all or updates alone, go to a hot spot of the table",
        ),
        work("hotspot-size", Domain::Blocks(1), "8M", "Blocks of the hot spot, or bytes, as 8M"),
        work("hotspot-offset", Domain::Blocks(0), "16M", "Blocks before the hot spot, or bytes, as 16M"),
        work("hotspot-frequency", Domain::count_from(1), "3", "Each N-th operation goes to the hot spot"),
        work(
            "hot-schema-frequency",
            Domain::count_from(0),
            "0",
            "Each N-th operation goes to the first schema; 0 for none",
        ),
        work("think-frequency", Domain::count_from(0), "0", "One operation in N follows a pause; 0 for none"),
        work("think-min", Domain::Time, "0.1", "The shortest pause, in seconds"),
        work("think-max", Domain::Time, "0.5", "The longest pause, in seconds"),
        RATE,
    ],
    row_bytes: None,
};

/// Create table as select, by direct path.
pub const CTAS: Workload = Workload {
    name: "ctas",
    help: "Create a table as select by direct path, from a table in the buffer cache into a tablespace of any block size; verify it",
    data: "TEXTS",
    measures: "create table as select",
    phases: &[Phase::Load, Phase::DeviceProbe, Phase::CreateAsSelect, Phase::Backup, Phase::Verify],
    verified: "the new table has all rows of its source, by number and by the sum of their checksums, read through the cache",
    parameters: &[
        Parameter {
            default: Some("100K"),
            help: "Rows of each of the two source tables; K, M and G are powers of 1000",
            ..ROWS
        },
        SEED,
        work(
            "block-size",
            Domain::Word(&["2K", "4K", "8K", "16K", "32K"]),
            "8K",
            "Blocks of the tablespace that the table is made in: another size than db_block_size needs its cache, as db_2k_cache_size",
        ),
        work(
            "shape",
            Domain::Word(&["short", "tail"]),
            "short",
            "Rows of 93 bytes; or of 352 bytes with a long tail, one in fourteen longer than a block of 2K",
        ),
        work(
            "logging",
            Domain::Word(&["logging", "nologging"]),
            "logging",
            "nologging: no redo, even where archive_log_mode is on, unless force_logging is; a backup that is then needed is measured with it",
        ),
    ],
    row_bytes: None,
};

/// Most bytes of a parameter that is a text.
const TEXT_MOST: usize = 1000;

const WHERE: Parameter = Parameter {
    name: "where",
    help: "Condition on the rows, as 'store_id < 100 and prod_id >= 7'; tested on encoded values",
    decides: Decides::Work,
    takes: Domain::Text(TEXT_MOST),
    default: None,
    instead_of: None,
};

/// Full scans of a table.
pub const SCAN: Workload = Workload {
    name: "scan",
    help: "Load the sales table, scan it by one or several streams at once, count rows and add columns; verify both",
    data: "SALES",
    measures: "scan",
    phases: &[Phase::Load, Phase::DeviceProbe, Phase::TableScan, Phase::Verify],
    verified: "every stream found the rows that the generator makes, by number, by the sums of columns and by checksum",
    parameters: &[
        ROWS,
        SEED,
        data(
            "filled",
            Domain::Word(&["direct", "conventional"]),
            "direct",
            "How the table is filled: by direct path, or by transactions, whose rows lie in other blocks",
        ),
        work(
            "streams",
            Domain::Count(1, 64),
            "1",
            "Scans at once, each of the whole table with servers of its own",
        ),
        work(
            "instances",
            Domain::Count(1, 64),
            "1",
            "Processes that scan a share of the extents each, reading the closed database; 1: this process scans",
        ),
        Parameter {
            name: "columns",
            help: "NUMBER columns to add, as regular_qty,regular_amt; none: rows are counted",
            ..WHERE
        },
        WHERE,
        work(
            "checksum",
            NO_YES,
            "false",
            "true: a scan also hashes every byte of the rows; the verification compares the sum either way",
        ),
    ],
    row_bytes: None,
};

/// Copy of some columns of a wide table, by direct path.
pub const PRODUCER: Workload = Workload {
    name: "producer",
    help: "Load a table of wide rows, copy some of its columns by direct path into a new or an existing table, verify them",
    data: "SALES_WIDE",
    measures: "table copy",
    phases: &[Phase::Load, Phase::DeviceProbe, Phase::TableCopy, Phase::Verify],
    verified: "the table has the projected rows of the generator, by number, by the sums of its columns and by checksum",
    parameters: &[
        Parameter { default: Some("1M"), ..ROWS },
        SEED,
        Parameter {
            name: "columns",
            help: "Columns of the new rows",
            default: Some("sales_date,store_id,prod_id,regular_qty,regular_amt,note_1,note_2"),
            ..WHERE
        },
        WHERE,
        work(
            "load",
            Domain::Word(&["serial", "parallel"]),
            "parallel",
            "serial: one session loads what all servers scan; parallel: each server loads what it scans",
        ),
        work(
            "into",
            Domain::Word(&["new", "existing"]),
            "new",
            "existing: the table has rows before, which stay",
        ),
        work(
            "logging",
            Domain::Word(&["logging", "nologging"]),
            "logging",
            "nologging: no redo, even where archive_log_mode is on, unless force_logging is",
        ),
    ],
    row_bytes: None,
};

/// The scripts that come with pgbench. Only a PostgreSQL server runs them.
pub const PGBENCH: Workload = Workload {
    name: "pgbench",
    help: "Run a script that comes with pgbench in several sessions, each a fixed number of times; verify the balances",
    data: "PGBENCH_ACCOUNTS",
    measures: "transactions",
    phases: &[Phase::Load, Phase::RandomIo, Phase::Verify],
    verified: "accounts, tellers and branches have the sum of the history; the history has a row for each transaction",
    parameters: &[
        Parameter {
            default: Some("1M"),
            help: "Accounts: a multiple of 100K, which is pgbench's scale of 1",
            ..ROWS
        },
        Parameter { default: Some("8"), ..SESSIONS },
        work(
            "script",
            Domain::Word(&["tpcb-like", "simple-update", "select-only"]),
            "tpcb-like",
            "tpcb-like: five statements a transaction; simple-update: without tellers and branches; select-only: one read",
        ),
        work("transactions", Domain::count_from(1), "1000", "Transactions of each session"),
        SEED,
    ],
    row_bytes: None,
};

/// Every workload of the embedded engine, in the order of lists.
pub const WORKLOADS: &[&Workload] = &[&LARGE_SORT, &RECORD_SORT, &REDO, &CTAS, &SLOB, &SCAN, &PRODUCER];

impl Workload {
    /// Returns the workload of this name.
    pub fn find(name: &str) -> Option<&'static Workload> {
        WORKLOADS.iter().copied().find(|workload| workload.name == name)
    }

    /// Returns the workload's parameter of this name.
    pub fn parameter(&self, name: &str) -> Option<&Parameter> {
        self.parameters.iter().find(|parameter| parameter.is_named(name))
    }
}

/// Condition under which a parameter has an effect.
#[derive(Debug, Clone, Copy)]
enum Counts {
    /// The other one is not 0, `off` or `false`.
    With(&'static str),
    /// The other one is 0, `off` or `false`.
    Without(&'static str),
}

/// Parameters that others of their workload switch on or off, with the reason of the one without
/// effect.
const COUNTS: &[(&str, Counts, &str)] = &[
    ("scale", Counts::With("with"), NO_USERS),
    ("sessions", Counts::With("with"), NO_USERS),
    ("hot-pct", Counts::With("with"), NO_USERS),
    ("alone", Counts::With("with"), NO_USERS),
    ("work-unit", Counts::With("with"), NO_USERS),
    ("rate", Counts::With("with"), NO_USERS),
    ("run-time", Counts::Without("work-loop"), "work-loop ends the run"),
    ("scan-table-size", Counts::With("scan-pct"), "no operation scans; give scan-pct too"),
    ("redo-stress", Counts::With("update-pct"), "no operation updates; give update-pct too"),
    ("hotspot-size", Counts::With("hotspot"), "there is no hot spot; give hotspot too"),
    ("hotspot-offset", Counts::With("hotspot"), "there is no hot spot; give hotspot too"),
    ("hotspot-frequency", Counts::With("hotspot"), "there is no hot spot; give hotspot too"),
    ("think-min", Counts::With("think-frequency"), "there are no pauses; give think-frequency too"),
    ("think-max", Counts::With("think-frequency"), "there are no pauses; give think-frequency too"),
    ("think-frequency", Counts::Without("rate"), "operations arrive at a rate, and no session pauses"),
];

const NO_USERS: &str = "there are no users; give with=slob too";

/// A workload with a value for each parameter that has one. Two are equal if all values are.
#[derive(Debug, Clone)]
pub struct Work {
    /// Workload whose parameters have the values.
    pub workload: &'static Workload,
    /// Given values, by the index of the parameter.
    given: Vec<Option<u64>>,
}

impl PartialEq for Work {
    fn eq(&self, other: &Work) -> bool {
        self.workload == other.workload && self.values().eq(other.values())
    }
}

impl Work {
    /// Returns the workload with its defaults.
    pub fn of(workload: &'static Workload) -> Work {
        Work { workload, given: vec![None; workload.parameters.len()] }
    }

    /// Sets the value of a parameter.
    ///
    /// # Errors
    /// When the workload lacks the parameter, the value is out of range, or another parameter
    /// was given that it replaces.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), String> {
        let Some(place) = self.workload.parameters.iter().position(|parameter| parameter.is_named(name))
        else {
            let names: Vec<&str> = self.workload.parameters.iter().map(|parameter| parameter.name).collect();
            return Err(format!(
                "{name}: {} has no such parameter; it has {}",
                self.workload.name,
                names.join(", ")
            ));
        };
        let parameter = &self.workload.parameters[place];
        let value = parameter.parse(text).map_err(|expected| format!("{name} {text}: {expected}"))?;
        let rival = self.workload.parameters.iter().zip(&self.given).find(|(other, given)| {
            given.is_some() && (other.instead_of == Some(name) || parameter.instead_of == Some(other.name))
        });
        if let Some((other, _)) = rival {
            return Err(format!("{name} and {} say the same in two ways; give one of them", other.name));
        }
        self.given[place] = Some(value);
        Ok(())
    }

    /// Returns the same work with `rows` rows.
    ///
    /// # Errors
    /// When the workload has no parameter for rows, or the number is out of range.
    pub fn with_rows(&self, rows: u64) -> Result<Work, String> {
        let mut work = self.clone();
        // Parameters that replace `rows` would contradict it.
        for (parameter, given) in self.workload.parameters.iter().zip(&mut work.given) {
            if parameter.instead_of == Some("rows") {
                *given = None;
            }
        }
        work.set("rows", &rows.to_string())?;
        Ok(work)
    }

    /// Returns the value of a parameter, given or default; `None` if it has neither.
    pub fn value(&self, name: &str) -> Option<u64> {
        let place = self.workload.parameters.iter().position(|parameter| parameter.name == name)?;
        let parameter = &self.workload.parameters[place];
        self.given[place].or_else(|| parameter.parse(parameter.default?).ok())
    }

    /// Returns a parameter's text; `None` if it has none, or an empty one.
    pub fn text(&self, name: &str) -> Option<String> {
        self.value(name).map(text_at).filter(|text| !text.is_empty())
    }

    /// Returns the number of rows or records: as given, or by the bytes that they take. Schemas
    /// have one row a block; a scale in bytes counts blocks of 8K.
    pub fn rows(&self) -> u64 {
        let by_size = || Some(self.value("size")? / self.workload.row_bytes?);
        let by_schemas =
            || Some(self.value("schemas")?.saturating_mul(blocks_of(self.value("scale")?, BLOCK_BYTES)));
        by_size().or_else(|| self.value("rows")).or_else(by_schemas).unwrap_or(0)
    }

    /// Returns the seed of its rows; 0 if they have none.
    pub fn seed(&self) -> u64 {
        self.value("seed").unwrap_or(0)
    }

    /// Returns the first of these parameters that has no effect because of
    /// another's value, with the reason.
    pub fn without_effect(&self, names: &[&str]) -> Option<(&'static Parameter, &'static str)> {
        let is = |name: &str| self.value(name).map(|value| value > 0);
        // A parameter of the same name in another workload depends on nothing here.
        let has_none = |name: &str, how: Counts| match how {
            Counts::With(other) => is(other) == Some(false),
            Counts::Without(other) => is(other) == Some(true),
        } && names.contains(&name);
        let found = COUNTS.iter().find(|(name, how, _)| has_none(name, *how));
        found.and_then(|(name, _, why)| Some((self.workload.parameter(name)?, *why)))
    }

    /// Returns its parameters with their values, in the order of the table, without those that have
    /// none, and without those that the data leave without effect in every arm of a study.
    pub fn values(&self) -> impl Iterator<Item = (&'static str, Shown)> {
        let without_data = |parameter: &&Parameter| {
            let switch = parameter.depends_on(self.workload).and_then(|name| self.workload.parameter(name));
            switch.is_some_and(|switch| switch.decides == Decides::Data)
                && self.without_effect(&[parameter.name]).is_some()
        };
        let all = self.workload.parameters.iter().filter(move |parameter| !without_data(parameter));
        all.filter_map(|parameter| {
            let replaced =
                self.workload.parameters.iter().any(|other| {
                    other.instead_of == Some(parameter.name) && self.value(other.name).is_some()
                });
            let value = self.value(parameter.name).filter(|_| !replaced)?;
            Some((parameter.name, parameter.shown(value)))
        })
    }

    /// Returns the arguments of `plumb run` for it, without those that it would refuse because
    /// they have no effect.
    pub fn arguments(&self) -> String {
        let mut text = self.workload.name.to_string();
        let effective = self.values().filter(|(name, _)| self.without_effect(&[name]).is_none());
        for (name, value) in effective {
            let _ = match value {
                Shown::Text(value) if !value.bytes().all(is_plain) || value.is_empty() => {
                    write!(text, " --{name} '{}'", value.replace('\'', r"'\''"))
                }
                value => write!(text, " --{name} {value}"),
            };
        }
        text
    }
}

/// True for a byte that a shell takes as it is.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b',' | b'-' | b'_' | b'/' | b'+' | b':')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_kept_as_it_was_typed_and_quoted_for_a_shell() {
        let mut work = Work::of(&SCAN);
        assert_eq!((work.text("where"), work.text("columns")), (None, None));
        work.set("where", " name = 'O''Hara' ").expect("a line");
        work.set("columns", "a,b").expect("a line");
        assert_eq!(work.text("where").as_deref(), Some("name = 'O''Hara'"));
        assert!(
            work.arguments().contains(r"--columns a,b --where 'name = '\''O'\'''\''Hara'\'''"),
            "{}",
            work.arguments()
        );
        let mut same = Work::of(&SCAN);
        same.set("columns", "a,b").expect("a line");
        same.set("where", "name = 'O''Hara'").expect("a line");
        assert_eq!(same, work);
        let refused = work.set("where", "a\nb").expect_err("two lines");
        assert!(refused.ends_with("expected a line of at most 1000 bytes"), "{refused}");
    }

    #[test]
    fn names_are_unique_and_every_default_is_in_range() {
        for (place, workload) in WORKLOADS.iter().enumerate() {
            assert!(WORKLOADS[..place].iter().all(|other| other.name != workload.name));
            for parameter in workload.parameters {
                assert!(parameter.default.is_none_or(|text| parameter.parse(text).is_ok()), "{parameter:?}");
                assert!(parameter.instead_of.is_none_or(|name| workload.parameter(name).is_some()));
            }
        }
    }

    #[test]
    fn what_is_given_replaces_the_default_and_says_the_same_when_it_is_typed_again() {
        let mut work = Work::of(&LARGE_SORT);
        assert_eq!((work.rows(), work.seed()), (2_000_000, 1996));
        work.set("rows", "10M").expect("in range");
        assert_eq!(work.arguments(), "large-sort --rows 10000000 --seed 1996 --sorters 1 --with nothing");
        let mut records = Work::of(&RECORD_SORT);
        records.set("size", "1M").expect("in range");
        assert_eq!((records.rows(), records.seed()), (10_485, 0));
        assert_eq!(records.arguments(), "record-sort --size 1048576 --form gensort");
        records.set("form", "random").expect("a form");
        assert_eq!(
            (records.value("form"), records.arguments()),
            (Some(1), "record-sort --size 1048576 --form random".to_string())
        );
    }

    #[test]
    fn what_a_workload_does_not_take_is_refused_with_what_it_takes() {
        let refused = |workload: &'static Workload, set: &[(&str, &str)]| {
            let mut work = Work::of(workload);
            set.iter().find_map(|(name, text)| work.set(name, text).err()).expect("refused")
        };
        assert_eq!(
            refused(&LARGE_SORT, &[("size", "1G")]),
            "size: large-sort has no such parameter; it has rows, seed, sorters, sort-memory, with, scale, \
             sessions, hot-pct, alone, work-unit, rate"
        );
        assert_eq!(refused(&LARGE_SORT, &[("rows", "0")]), "rows 0: expected a count of 1 or more");
        assert_eq!(refused(&RECORD_SORT, &[("form", "x")]), "form x: expected gensort or random");
        assert_eq!(refused(&RECORD_SORT, &[("size", "99")]), "size 99: expected 100 B or more");
        assert_eq!(
            refused(&RECORD_SORT, &[("rows", "5"), ("size", "1G")]),
            "size and rows say the same in two ways; give one of them"
        );
        for (name, text, why) in [
            ("update-pct", "101", "update-pct 101: expected a whole number from 0 to 100"),
            ("redo-stress", "medium", "redo-stress medium: expected lite or heavy"),
            ("scale", "63", "scale 63: expected 64 blocks or more"),
            (
                "run-time",
                "soon",
                "run-time soon: \"soon\" is not a time (a number with us, ms, s, m or h after it, as in 10ms)",
            ),
        ] {
            assert_eq!(refused(&SLOB, &[(name, text)]), why);
        }
    }

    /// A command without a hot spot must not give its size, which would be refused.
    #[test]
    fn arguments_can_be_typed_again() {
        let mut with_users = Work::of(&LARGE_SORT);
        with_users.set("with", "slob").expect("a word");
        for work in WORKLOADS.iter().map(|workload| Work::of(workload)).chain([with_users]) {
            let typed = work.arguments();
            let names: Vec<&str> = typed.split(" --").skip(1).filter_map(|it| it.split(' ').next()).collect();
            assert_eq!(work.without_effect(&names), None, "{typed}");
        }
        let users = |work: &Work| work.values().filter(|(name, _)| *name == "hot-pct").count();
        let mut work = Work::of(&LARGE_SORT);
        assert_eq!(users(&work), 0, "no run of a study could have users");
        work.set("with", "slob").expect("a word");
        assert_eq!(users(&work), 1);
    }

    #[test]
    fn a_parameter_that_another_switches_off_has_no_effect() {
        let found = |set: &[(&str, &str)]| {
            let mut work = Work::of(&SLOB);
            set.iter().for_each(|(name, text)| work.set(name, text).expect("in range"));
            let names: Vec<&str> = set.iter().map(|(name, _)| *name).collect();
            work.without_effect(&names).map(|(parameter, _)| parameter.name)
        };
        assert_eq!(found(&[("run-time", "5"), ("work-loop", "10")]), Some("run-time"));
        assert_eq!(found(&[("run-time", "5"), ("work-loop", "0")]), None);
        assert_eq!(found(&[("work-loop", "10")]), None, "its default was not given");
        assert_eq!(found(&[("hotspot-size", "8M")]), Some("hotspot-size"));
        assert_eq!(found(&[("hotspot-size", "8M"), ("hotspot", "updates")]), None);
        assert_eq!(found(&[("think-min", "1"), ("think-max", "2")]), Some("think-min"));
        assert_eq!(found(&[("think-frequency", "3"), ("rate", "50")]), Some("think-frequency"));
        for (name, ..) in COUNTS {
            assert!(WORKLOADS.iter().any(|workload| workload.parameter(name).is_some()), "{name}");
        }
    }

    #[test]
    fn words_times_and_blocks_are_shown_as_they_would_be_typed() {
        for (name, text, shown) in [
            ("redo-stress", "HEAVY", "heavy"),
            ("think-min", ".1", "0.1s"),
            ("think_min", "250us", "0.00025s"),
            ("run-time", "2m", "120s"),
            ("scale", "80M", "80M"),
            ("scale", "10000", "10000"),
        ] {
            let mut work = Work::of(&SLOB);
            work.set(name, text).expect("in range");
            let name = name.replace('_', "-");
            let found = work.values().find(|(known, _)| *known == name).map(|(_, value)| value.to_string());
            assert_eq!(found.as_deref(), Some(shown));
            let mut again = Work::of(&SLOB);
            again.set(&name, shown).expect("as it was shown");
            assert_eq!(again, work);
        }
        assert_eq!(
            blocks_of(
                Work::of(&SLOB).workload.parameter("scale").expect("there").parse("80M").expect("a size"),
                8192
            ),
            10_240
        );
    }
}
