//! pgbench: its built-in scripts, by its own program.
//!
//! The program of the server's installation makes the tables and runs the script, or that of the
//! highest version if the server came without one. So figures are those that its users know:
//! prepared statements (`-M prepared`), no vacuum (`-n`), a fixed number of transactions (`-t`), so
//! that elapsed is the measure, and a fixed seed. It has a thread for each session, but no more
//! threads than processors.
//!
//! Rejected: the same statements by sessions of this program, whose figures no other page has.
//!
//! The client's start and its connections are in the elapsed time; pgbench's own rate leaves them
//! out. Its CPU time is counted as the run's own, not as others'.

use super::{BaseSettings, Begun, ServerWork, WorkOutcome, WorkPlace, counted, relation_size};
use crate::PostgresError;
use crate::cluster::RunningServer;
use crate::evidence::WorkDone;
use crate::process::children_cpu;
use crate::session::InForce;
use crate::session::{SESSION, ServerSession};
use plumb_events::{Cancel, Phase, clock};
use plumb_record::Check;
use plumb_units::{Bytes, Nanos};
use plumb_workload::specification::PGBENCH;
use plumb_workload::{Work, Workload};
use std::path::Path;
use std::process::{self, Command, Stdio};
use std::thread;

const PROGRAM: &str = "pgbench";
/// Accounts of a scale of 1.
const SCALE_ROWS: u64 = 100_000;
/// Bytes on disk of an account with its index entry and its part of the log.
const ROW_BYTES: u64 = 400;

pub(super) struct Pgbench;

impl ServerWork for Pgbench {
    fn workload(&self) -> &'static Workload {
        &PGBENCH
    }

    fn settings(&self) -> BaseSettings {
        &[("max_wal_size", "4GB")]
    }

    fn room(&self, work: &Work) -> Bytes {
        Bytes(work.rows().saturating_mul(ROW_BYTES).saturating_add(Bytes::G))
    }

    fn table(&self) -> &'static str {
        "pgbench_accounts"
    }

    fn writes(&self) -> bool {
        true
    }

    fn clients(&self) -> &'static [&'static str] {
        &[PROGRAM]
    }

    fn load(&self, session: &mut ServerSession<'_>, work: &Work, _: &Cancel) -> Result<(), PostgresError> {
        let scale = scale(work)?;
        let server = session.own_server()?;
        let mut command = client(server)?;
        command.args(["-i", "-q", "-s", &scale.to_string()]);
        run(&mut command).map(|_| ())
    }

    fn begin<'a>(&self, place: &WorkPlace<'a>) -> Result<Box<dyn Begun + 'a>, PostgresError> {
        scale(place.work)?;
        Ok(Box::new(Benching {
            server: place.server.own()?,
            beside: place.session()?,
            work: place.work.clone(),
            options: session_options(place.session),
            done: 0,
            client_cpu: Nanos(0),
            span: (Nanos(0), Nanos(0)),
        }))
    }
}

fn scale(work: &Work) -> Result<u64, PostgresError> {
    match work.rows() {
        rows @ SCALE_ROWS.. if rows.is_multiple_of(SCALE_ROWS) => Ok(rows / SCALE_ROWS),
        rows => Err(PostgresError::Unfit(format!(
            "rows={rows}: pgbench makes accounts by the 100K; give a multiple of 100K, as 1M"
        ))),
    }
}

/// Returns settings as options of a session, each blank and backslash escaped.
fn session_options(settings: &[(String, String)]) -> String {
    let escaped = |text: &str| text.replace('\\', "\\\\").replace(' ', "\\ ");
    let options = settings.iter().map(|(name, value)| format!("-c {name}={}", escaped(value)));
    options.collect::<Vec<_>>().join(" ")
}

/// Returns the program with the place of the server, and nothing of the user's environment.
fn client(server: &RunningServer) -> Result<Command, PostgresError> {
    let mut command = Command::new(server.installation.client(PROGRAM)?);
    let (socket, user) = server.address();
    command
        .env_clear()
        .env("LC_ALL", "C")
        .env("PGHOST", socket)
        .env("PGUSER", user)
        .env("PGAPPNAME", SESSION)
        .env("PGDATABASE", "postgres");
    command.stdin(Stdio::null()).current_dir("/");
    Ok(command)
}

/// Runs pgbench to its end; returns its output.
fn run(command: &mut Command) -> Result<String, PostgresError> {
    let program = Path::new(command.get_program()).display().to_string();
    let failed = |said: String| PostgresError::Program { program: program.clone(), said };
    let output = command.output().map_err(|error| failed(error.to_string()))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    let said = text(&output.stderr);
    let error = said.lines().find(|line| line.contains("error:")).or_else(|| said.lines().last());
    Err(failed(error.unwrap_or("it printed no reason").trim().to_string()))
}

/// Parses `number of transactions actually processed: 8000/8000`.
fn transactions(report: &str) -> Option<u64> {
    let (_, after) = report.split_once("number of transactions actually processed: ")?;
    after.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
}

struct Benching<'s> {
    server: &'s RunningServer,
    beside: ServerSession<'s>,
    work: Work,
    options: String,
    done: u64,
    client_cpu: Nanos,
    span: (Nanos, Nanos),
}

impl Benching<'_> {
    fn value(&self, name: &str) -> u64 {
        self.work.value(name).unwrap_or(1)
    }

    fn script(&self) -> String {
        let values = self.work.values();
        values
            .into_iter()
            .find(|(name, _)| *name == "script")
            .map_or_else(String::new, |(_, word)| word.to_string())
    }
}

/// Returns the CPU time of the processes that this one has waited for.
fn waited_for() -> Nanos {
    i32::try_from(process::id()).ok().and_then(children_cpu).unwrap_or_default()
}

impl Begun for Benching<'_> {
    fn work(&mut self) -> Result<(), PostgresError> {
        let sessions = self.value("sessions");
        let processors = thread::available_parallelism().map_or(1, |count| count.get() as u64);
        let mut command = client(self.server)?;
        command.args(["-n", "-M", "prepared", "-b", &self.script()]);
        command.args(["-c", &sessions.to_string(), "-j", &sessions.min(processors).to_string()]);
        command.args(["-t", &self.value("transactions").to_string()]);
        command.arg(format!("--random-seed={}", self.work.seed())).env("PGOPTIONS", &self.options);
        let before = waited_for();
        self.span.0 = clock::now();
        let report = run(&mut command)?;
        self.span.1 = clock::now();
        self.client_cpu = waited_for().saturating_sub(before);
        self.done = transactions(&report).unwrap_or(0);
        Ok(())
    }

    fn outcome(&mut self) -> Result<WorkOutcome, PostgresError> {
        let table = relation_size(&mut self.beside, "pgbench_accounts")?;
        let sessions = self.value("sessions");
        Ok(WorkOutcome {
            done: WorkDone { table, commits: self.done, sessions, ..WorkDone::default() },
            rows: self.done,
            phases: vec![(Phase::RandomIo, self.span.0, self.span.1)],
            client_cpu: self.client_cpu,
            ..WorkOutcome::default()
        })
    }

    fn verify(&mut self) -> Result<Vec<Check>, PostgresError> {
        let begin = clock::now();
        let asked = self.value("sessions") * self.value("transactions");
        let mut count = |what: &str, of: &str| -> Result<i64, PostgresError> {
            self.beside.value(
                "the tables are added up",
                &format!("select coalesce({what}, 0)::bigint from pgbench_{of}"),
            )
        };
        let of_history = [count("count(*)", "history")?, count("sum(delta)", "history")?];
        let mut tables = vec![("accounts", count("sum(abalance)", "accounts")?)];
        let script = self.work.value("script").unwrap_or(0);
        if script == 0 {
            tables.push(("tellers", count("sum(tbalance)", "tellers")?));
            tables.push(("branches", count("sum(bbalance)", "branches")?));
        }
        let spent = clock::now().saturating_sub(begin);
        let unsigned = |number: i64| u64::try_from(number).unwrap_or(0);
        let rows = if script == 2 { 0 } else { asked };
        let mut checks = vec![
            counted("transactions", self.done, asked, spent),
            counted("rows of PGBENCH_HISTORY", unsigned(of_history[0]), rows, Nanos(0)),
        ];
        checks.extend(tables.into_iter().map(|(table, sum)| Check {
            name: format!("balances of PGBENCH_{}", table.to_uppercase()),
            passed: sum == of_history[1],
            detail: format!("{sum} found, {} in the history", of_history[1]),
            elapsed_ns: 0,
        }));
        Ok(checks)
    }

    /// Each run has a data directory of its own, which is removed.
    fn undo(&mut self) -> Result<(), PostgresError> {
        Ok(())
    }

    fn settings(&mut self) -> Result<Vec<InForce>, PostgresError> {
        self.beside.settings()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_of_pgbench_says_how_many_transactions_were_made() {
        let report = "transaction type: <builtin: TPC-B (sort of)>\nnumber of transactions actually processed: 800/8000\ntps = 1\n";
        assert_eq!(transactions(report), Some(800));
        assert_eq!(transactions("tps = 1"), None);
    }

    #[test]
    fn accounts_come_by_the_scale_and_settings_with_blanks_stay_whole() {
        let mut work = Work::of(&PGBENCH);
        assert_eq!(scale(&work).expect("the default"), 10);
        work.set("rows", "150K").expect("a count");
        let error = scale(&work).expect_err("no scale").to_string();
        assert_eq!(error, "rows=150000: pgbench makes accounts by the 100K; give a multiple of 100K, as 1M");
        let settings =
            [("commit_delay".to_string(), "100".to_string()), ("a.b".to_string(), "x y".to_string())];
        assert_eq!(session_options(&settings), "-c commit_delay=100 -c a.b=x\\ y");
    }
}
