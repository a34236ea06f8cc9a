//! Records what is read of a server at work, so that tests without it read the same.
//!
//! `cargo run -p plumb-postgres --example transcript -- DIR` starts the server of a directory and
//! writes files into `tests/it/recorded/MAJOR`, as root or the server's user:
//!
//! - `settings.tsv`: rows of `pg_settings` that have receipts
//! - `activity.tsv`: kind, class and event of processes, if they have a leader, if they are plumb's
//! - `counters.tsv`: columns of the views of the log
//! - `sort.txt`: lines of `trace_sort` about steps
//! - `refused.txt`: the server's complaints about a value and a name
//! - `flags.tsv`: open files of the data directory with their flags
//! - `smaps`, `stat`, `status`, `schedstat`: files of /proc

use plumb_events::Cancel;
use plumb_postgres::PostgresError;
use plumb_postgres::cluster::{Cluster, Creation, RunningServer};
use plumb_postgres::installation::Installation;
use plumb_postgres::process;
use plumb_postgres::receipts::RULES;
use plumb_postgres::session::ServerSession;
use plumb_postgres::watch::EVENTS;
use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

/// Settings that leave flags, mappings and processes of their own.
const SETTINGS: [(&str, &str); 4] = [
    ("shared_buffers", "16MB"),
    ("wal_sync_method", "open_datasync"),
    ("max_wal_senders", "0"),
    ("autovacuum", "off"),
];
/// Work with parallel and serial sorts, commits, a checkpoint and scans.
const WORK: [&str; 8] = [
    "set trace_sort = on; set client_min_messages = log",
    "set maintenance_work_mem = '96MB'; create index on t (v)",
    "set maintenance_work_mem = '1MB'; set max_parallel_maintenance_workers = 0; create index on t (v, n)",
    "set client_min_messages = warning; set trace_sort = off",
    "do $$ begin for i in 1..300 loop insert into c values (i); commit; end loop; end $$",
    "update t set n = n + 1 where n % 5 = 0",
    "checkpoint",
    "select count(*) from t",
];

fn main() -> ExitCode {
    match std::env::args()
        .nth(1)
        .ok_or_else(|| "name the server's directory".into())
        .and_then(|server| record(&server))
    {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn record(server: &str) -> Result<(), Box<dyn Error>> {
    let installation = Installation::find(Some(server))?;
    let into =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/recorded").join(installation.major.to_string());
    fs::create_dir_all(&into)?;
    let cluster = Cluster::create(
        Path::new("/var/tmp"),
        "transcript",
        &installation,
        &Creation { checksums: None, segment_megabytes: None },
    )?;
    let mut given: Vec<(String, String)> =
        SETTINGS.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    if installation.major >= 16 {
        given.push(("debug_io_direct".to_string(), "data".to_string()));
    }
    let server = cluster.borrowed().start(&given, &Cancel::default())?;
    let mut session = ServerSession::connect(&server, "plumb transcript")?;
    session.run("a table is made", "create table t as select md5(i::text) as v, i as n from generate_series(1, 300000) i; create table c (n int)")?;
    let stop = AtomicBool::new(false);
    let data = cluster.data().canonicalize()?;
    let (activity, flags) = thread::scope(|scope| {
        let sampler = scope.spawn(|| samples(&server, &data, &stop));
        let worked = WORK.into_iter().try_for_each(|statement| session.run("work is done", statement));
        stop.store(true, Relaxed);
        let sampled = sampler.join().map_err(|_| "the sampler ended by a panic")?;
        worked?;
        Ok::<_, Box<dyn Error>>(sampled?)
    })?;
    let steps = ["begin index sort", "switching to external sort", "performsort"];
    let lines = session.take_lines().into_iter().map(|(_, line)| line + "\n");
    let lines: String = lines.filter(|line| steps.iter().any(|step| line.contains(step))).collect();
    fs::write(into.join("sort.txt"), lines)?;
    fs::write(into.join("activity.tsv"), text_of(activity))?;
    fs::write(into.join("flags.tsv"), text_of(flags))?;
    views(&mut session, &into)?;
    let backend: i32 = session.value("the process is found", "select pg_backend_pid()")?;
    for name in ["stat", "status", "schedstat"] {
        fs::write(into.join(name), fs::read_to_string(format!("/proc/{backend}/{name}"))?)?;
    }
    let smaps = fs::read_to_string(format!("/proc/{}/smaps", server.pid().as_raw_nonzero()))?;
    fs::write(into.join("smaps"), shared_mappings(&smaps))?;
    fs::write(into.join("refused.txt"), refusals(&installation)?)?;
    drop(session);
    Ok(server.stop()?)
}

fn text_of(lines: BTreeSet<String>) -> String {
    lines.into_iter().map(|line| line + "\n").collect()
}

/// Samples processes and their open files until the work ends.
fn samples(
    server: &RunningServer,
    data: &Path,
    stop: &AtomicBool,
) -> Result<(BTreeSet<String>, BTreeSet<String>), PostgresError> {
    let mut session = ServerSession::connect(server, "plumb sampler")?;
    let (mut activity, mut flags) = (BTreeSet::new(), BTreeSet::new());
    while !stop.load(Relaxed) {
        for row in session.rows("processes are listed", EVENTS, &[])? {
            let text = |column: usize| row.try_get::<_, String>(column).unwrap_or_default();
            let leader = row.try_get::<_, Option<i32>>(4).ok().flatten().is_some();
            let named: bool = row.try_get(5).unwrap_or_default();
            activity.insert(format!("{}\t{}\t{}\t{leader}\t{named}", text(3), text(1), text(2)));
            let files = process::open_files(row.try_get(0).unwrap_or_default(), data);
            flags.extend(files.into_iter().map(|(path, flags)| flag_line(&path, flags.raw)));
        }
        thread::sleep(Duration::from_millis(2));
    }
    Ok((activity, flags))
}

/// Returns a line with the first file of each directory standing for the others.
fn flag_line(path: &Path, flags: u32) -> String {
    let directory = path.parent().unwrap_or(path).display().to_string();
    let name = match directory.as_str() {
        "pg_wal" if path.file_name().is_some_and(|name| name.len() == 24) => "000000010000000000000001",
        "base/pgsql_tmp" => "pgsql_tmp1.0",
        directory if directory.starts_with("base/") => "16384",
        _ => return format!("{}\t{flags:o}", path.display()),
    };
    format!("{directory}/{name}\t{flags:o}")
}

/// Writes the settings that have receipts, and the columns of the log's views.
fn views(session: &mut ServerSession<'_>, into: &Path) -> Result<(), Box<dyn Error>> {
    let mut settings = BTreeSet::new();
    for set in session.settings()? {
        if RULES.iter().any(|rule| rule.name == set.name) {
            let columns = [set.name, set.value, set.unit, set.default, set.source, set.pending.to_string()];
            settings.insert(columns.join("\t"));
        }
    }
    fs::write(into.join("settings.tsv"), text_of(settings))?;
    let columns = "select attrelid::regclass::text, attname::text from pg_attribute join pg_class on attrelid = pg_class.oid \
                   where relname in ('pg_stat_wal', 'pg_stat_io') and attnum > 0";
    let rows = session.rows("the columns are listed", columns, &[])?;
    let line =
        |row: &tokio_postgres::Row| format!("{}\t{}", row.get::<_, String>(0), row.get::<_, String>(1));
    Ok(fs::write(into.join("counters.tsv"), text_of(rows.iter().map(line).collect()))?)
}

/// Returns the mappings that processes may share, with their sizes.
fn shared_mappings(smaps: &str) -> String {
    let mut inside = false;
    let is_wanted = |line: &&str| {
        let is_head = line.split(' ').next().is_some_and(|word| word.contains('-') && !word.ends_with(':'));
        inside = if is_head { line.contains("(deleted)") } else { inside };
        inside && (is_head || ["Size:", "KernelPageSize:"].iter().any(|name| line.starts_with(name)))
    };
    let lines: Vec<&str> = smaps.lines().filter(is_wanted).collect();
    lines.join("\n") + "\n"
}

/// Returns what the server's program says of a value and a name that it lacks.
fn refusals(installation: &Installation) -> Result<String, Box<dyn Error>> {
    let mut said = String::new();
    for set in ["wal_sync_method=nothing", "no_such_setting=1"] {
        let name = set.split('=').next().unwrap_or_default();
        let mut command = Command::new("setpriv");
        command.args(["--reuid=nobody", "--clear-groups"]).arg(installation.program("postgres"));
        command.args(["-D", "/proc/self/no-data-directory", "-C", name, "-c", set]).env("LC_ALL", "C");
        said += &String::from_utf8_lossy(&command.output()?.stderr);
    }
    Ok(said)
}
