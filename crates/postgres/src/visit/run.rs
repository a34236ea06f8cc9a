//! One run of a visit: settings of a session, the work, its verification, and what others did.
//!
//! On this machine the processes of the study's database, and those of the whole server, are
//! watched as those of plumb's own servers are. Sessions of other databases are left out, but the
//! server's background processes work for them, too.

use super::fitness::Facts;
use super::local::LocalServer;
use crate::PostgresError;
use crate::address::ServerAddress;
use crate::assemble::{self, MadeRun};
use crate::evidence::{GivenSetting, ServerEvidence};
use crate::process::{self, SharedMapping};
use crate::run::{LogBegin, with_the_server};
use crate::session::{InForce, ServerSession};
use crate::watch::{EventSampling, ProcessWatch, WatchScope, WatchedProcesses, WatchedServer};
use crate::workload::{self, WorkOutcome, WorkPlace};
use plumb_events::{Cancel, Unit, clock};
use plumb_host::readings::DiskStats;
use plumb_record::{
    Finding, Header, HostCpu, ParameterRow, Phase, Receipt, Record, Ruling, SettingRow, StatisticRow,
};
use plumb_study::disturbance::{self, MachineCounters, Stretch};
use plumb_study::machine::{self, CpuTimes};
use plumb_units::{Bytes, Nanos, RowCount};
use plumb_workload::Work;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Time between two checks whether the run is to end.
const INTERVAL: Duration = Duration::from_millis(50);
/// Counters of this database (true) and of all others (false); times in milliseconds.
const COUNTERS: &str = "select datname = pg_catalog.current_database(), pg_catalog.sum(temp_bytes)::bigint, \
                        pg_catalog.sum(blks_read)::bigint, \
                        pg_catalog.sum(xact_commit + xact_rollback)::bigint, \
                        pg_catalog.sum(active_time)::float8 \
                        from pg_catalog.pg_stat_database where datname is not null group by 1";

/// Longest time for which ended sessions are waited for, and the time between two looks.
const ENDED: Nanos = Nanos(2_000_000_000);
const ENDING: Duration = Duration::from_millis(5);
/// Statements of other databases that are older than a number of seconds.
const OUTLASTING: &str = "select pg_catalog.count(*) from pg_catalog.pg_stat_activity where state = 'active' \
                          and datname <> pg_catalog.current_database() \
                          and query_start < pg_catalog.clock_timestamp() - pg_catalog.make_interval(secs => $1)";

/// A run before its start.
pub(super) struct Place<'a> {
    pub server: &'a ServerAddress,
    pub facts: &'a Facts,
    /// `None` if no process of the server is seen.
    pub local: Option<&'a LocalServer>,
    pub work: &'a Work,
    /// All settings of the arm.
    pub asked: &'a [GivenSetting],
    pub session: Vec<(String, String)>,
    pub command_line: &'a str,
}

/// Readings from outside the server, of the measured time.
struct Outside {
    watched: WatchedProcesses,
    disk: Option<DiskStats>,
    shared: Option<SharedMapping>,
    host_cpu: Option<HostCpu>,
    stretch: Stretch,
}

/// A watch from outside that is running.
struct OutsideWatch<'a> {
    local: &'a LocalServer,
    watch: ProcessWatch,
    counters: disturbance::Watched,
    earlier: MachineCounters,
    cpu: Option<CpuTimes>,
    load: Option<f64>,
    disk: Option<DiskStats>,
}

/// Times of a run: its begin on the monotonic clock, begin and end by the calendar.
#[derive(Debug, Clone, Copy)]
struct Times {
    begin: Nanos,
    wall: (Duration, Duration),
}

/// Counters of a group of databases.
#[derive(Debug, Clone, Copy, Default)]
struct Counters {
    temp_bytes: u64,
    blocks_read: u64,
    transactions: u64,
    /// Time in which sessions executed statements.
    active: Nanos,
}

impl Counters {
    fn since(self, earlier: Counters) -> Counters {
        Counters {
            temp_bytes: self.temp_bytes.saturating_sub(earlier.temp_bytes),
            blocks_read: self.blocks_read.saturating_sub(earlier.blocks_read),
            transactions: self.transactions.saturating_sub(earlier.transactions),
            active: self.active.saturating_sub(earlier.active),
        }
    }
}

/// Counters of the run's database, and of those of others.
#[derive(Debug, Clone, Copy, Default)]
struct Activity {
    at: Nanos,
    own: Counters,
    others: Counters,
}

impl Activity {
    fn read(session: &mut ServerSession<'_>) -> Result<Activity, PostgresError> {
        let mut found = Activity { at: clock::now(), ..Activity::default() };
        for row in session.rows("the counters are read", COUNTERS, &[])? {
            let count = |column: usize| {
                let count: i64 = row.try_get(column).unwrap_or_default();
                u64::try_from(count).unwrap_or_default()
            };
            let counters = Counters {
                temp_bytes: count(1),
                blocks_read: count(2),
                transactions: count(3),
                active: Nanos((row.try_get::<_, f64>(4).unwrap_or_default() * 1e6) as u64),
            };
            match row.try_get::<_, bool>(0).unwrap_or_default() {
                true => found.own = counters,
                false => found.others = counters,
            }
        }
        Ok(found)
    }

    /// Returns the share of the time since in which sessions of other databases worked. The server
    /// counts the time of a statement when it ends; one that outlasts the run counts for all of it,
    /// if this user sees it.
    fn others_until_now(self, session: &mut ServerSession<'_>) -> Result<(f64, String), PostgresError> {
        let now = Activity::read(session)?;
        let (time, active) = (now.at.saturating_sub(self.at), now.others.since(self.others).active);
        let seconds = time.seconds();
        let outlasts = session.rows("other statements are counted", OUTLASTING, &[&seconds])?;
        let outlasts: i64 = outlasts.first().and_then(|row| row.try_get(0).ok()).unwrap_or_default();
        let share = active.0 as f64 / time.0.max(1) as f64;
        let evidence = format!(
            "statements of other databases that ended took {active} in {time}, by pg_stat_database; {outlasts} more were at \
             work all the time"
        );
        Ok((if outlasts > 0 { 1.0 } else { share.min(1.0) }, evidence))
    }
}

impl<'a> OutsideWatch<'a> {
    fn start(server: &ServerAddress, local: &'a LocalServer) -> Result<OutsideWatch<'a>, PostgresError> {
        let watched = WatchedServer {
            server,
            postmaster: local.postmaster,
            data: &local.data,
            scope: WatchScope::Database,
        };
        let watch = ProcessWatch::start(&watched, EventSampling::On)?;
        let counters = disturbance::Watched::of(&[]);
        let disk = local.disk().and_then(|disk| DiskStats::read(&disk).ok());
        let (cpu, load, earlier) = (CpuTimes::read(), machine::load_average(), counters.read());
        Ok(OutsideWatch { local, watch, counters, earlier, cpu, load, disk })
    }

    fn end(self) -> Outside {
        let (later, cpu) = (self.counters.read(), CpuTimes::read());
        let disk = self.local.disk().and_then(|disk| DiskStats::read(&disk).ok());
        let watched = self.watch.end();
        let clients = Stretch::between(&self.counters, &self.earlier, &later);
        let host_cpu = cpu.zip(self.cpu);
        Outside {
            stretch: with_the_server(clients, &watched, Nanos(0)),
            disk: disk.zip(self.disk).map(|(later, earlier)| later.since(&earlier)),
            shared: process::shared_mapping(self.local.postmaster),
            host_cpu: host_cpu
                .map(|(later, earlier)| later.since(&earlier, self.load, machine::load_average())),
            watched,
        }
    }
}

impl Place<'_> {
    /// Does the work once, verifies it and undoes it.
    pub fn run(&self, cancel: &Cancel) -> Result<Record, PostgresError> {
        let execution = workload::execution(self.work.workload.name)?;
        let place = WorkPlace { server: self.server, work: self.work, session: &self.session, cancel };
        let mut readings = ServerSession::connect(self.server, "plumb readings")?;
        // What a run that was cancelled left.
        drop_indexes(&mut readings, execution.table())?;
        let mut begun = execution.begin(&place)?;
        let before = Activity::read(&mut readings)?;
        let log = self.local.map(|_| LogBegin::read(&mut readings)).transpose()?;
        let watch = self.local.map(|local| OutsideWatch::start(self.server, local)).transpose()?;
        let (wall, begin) = (clock::wall(), clock::now());
        cancelled_with(cancel, self.server, || begun.work())?;
        let (elapsed, end_wall) = (clock::now().saturating_sub(begin), clock::wall());
        let outside = watch.map(OutsideWatch::end);
        let clients = before.others_until_now(&mut readings)?;
        let outcome = begun.outcome()?;
        let log = log.map(|log| log.until_now(&mut readings)).transpose()?.unwrap_or_default();
        let evidence = ServerEvidence { log, ..self.evidence(begun.settings()?, elapsed, &outcome) };
        let checks = begun.verify()?;
        // A session that ends publishes its counters, and then leaves the list of sessions.
        drop(begun);
        wait_for_ended_sessions(&mut readings)?;
        drop_indexes(&mut readings, execution.table())?;
        readings.flush_statistics()?;
        let activity = Activity::read(&mut readings)?;
        let (own, others) = (activity.own.since(before.own), activity.others.since(before.others));
        let row = |name: &str, unit, total| StatisticRow { name: name.to_string(), unit, total };
        let counted = vec![
            row("temporary file bytes", Unit::Bytes, own.temp_bytes),
            row("blocks read of the database", Unit::Count, own.blocks_read),
            row("transactions of other databases", Unit::Count, others.transactions),
        ];
        let times = Times { begin, wall: (wall, end_wall) };
        let mut record = match outside {
            Some(outside) => {
                let seen = outside.stretch.clients.clone().filter(|(share, _)| *share > clients.0);
                let stretch = Stretch { clients: seen.or(Some(clients)), ..outside.stretch };
                self.seen(Outside { stretch, ..outside }, evidence, outcome, times)
            }
            None => {
                let stretch = Stretch { clients: Some(clients), ..Stretch::default() };
                let circumstances = Some(disturbance::judge(&stretch));
                Record { circumstances, ..self.told(&evidence, &outcome, times) }
            }
        };
        record.statistics.retain(|known| counted.iter().all(|row| row.name != known.name));
        record.statistics.extend(counted);
        record.findings.extend(meanwhile(others));
        record.checks = checks;
        Ok(record)
    }

    fn evidence(&self, in_force: Vec<InForce>, elapsed: Nanos, outcome: &WorkOutcome) -> ServerEvidence {
        ServerEvidence {
            major: u32::try_from(self.facts.number / 10_000).unwrap_or_default(),
            asked: self.asked.to_vec(),
            in_force,
            elapsed,
            done: outcome.done,
            sort_lines: outcome.sort_lines.clone(),
            ..ServerEvidence::default()
        }
    }

    fn title(&self) -> String {
        format!("PLUMB REPORT  Workload: {} on PostgreSQL {}", self.work.workload.name, self.facts.version)
    }

    /// Returns the record of a run whose processes were seen.
    fn seen(&self, outside: Outside, evidence: ServerEvidence, outcome: WorkOutcome, times: Times) -> Record {
        let Outside { watched, disk, shared, host_cpu, stretch } = outside;
        assemble::record(&MadeRun {
            title: self.title(),
            server: format!("PostgreSQL {}", self.facts.version),
            evidence: ServerEvidence { watched, disk, shared, ..evidence },
            outcome,
            checks: Vec::new(),
            devices: Vec::new(),
            work: self.work.clone(),
            command_line: self.command_line.to_string(),
            begin: times.begin,
            wall: times.wall,
            host_cpu,
            stretch,
        })
    }

    /// Returns the record of a run of which the server alone tells.
    fn told(&self, evidence: &ServerEvidence, outcome: &WorkOutcome, times: Times) -> Record {
        let phase = |(phase, begun, end): &(plumb_events::Phase, Nanos, Nanos)| Phase {
            name: phase.name().to_string(),
            operation: self.work.workload.measures.to_string(),
            start_ns: begun.saturating_sub(times.begin).0,
            end_ns: end.saturating_sub(times.begin).0,
            rows: outcome.rows,
            bytes: 0,
            direction: None,
        };
        let parameters = self.work.values();
        let parameters =
            parameters.map(|(name, value)| ParameterRow { name: name.to_string(), value: value.to_string() });
        Record {
            receipts: evidence.asked.iter().map(|asked| by_the_server(asked, evidence)).collect(),
            phases: outcome.phases.iter().map(phase).collect(),
            parameters: parameters.collect(),
            settings: settings(self.asked, &evidence.in_force),
            ..Record::of(self.header([times.wall.0, times.wall.1], evidence.elapsed))
        }
    }

    fn header(&self, [begin, end]: [Duration; 2], elapsed: Nanos) -> Header {
        Header {
            elapsed_ns: elapsed.0,
            command_line: self.command_line.to_string(),
            seed: Some(self.work.seed()),
            clock_precision_ns: machine::clock_precision_ns(),
            // Without DB time: processes of another machine are not seen.
            ..machine::header(self.title(), self.work.workload.name, [begin, end])
        }
    }
}

/// Does work whose statement is cancelled when the run is to end.
fn cancelled_with(
    cancel: &Cancel,
    server: &ServerAddress,
    work: impl FnOnce() -> Result<(), PostgresError>,
) -> Result<(), PostgresError> {
    cancel.check().map_err(PostgresError::from)?;
    thread::scope(|scope| {
        // Its end wakes the waiting thread, so that the wait adds no time to the work.
        let (working, ended) = mpsc::channel::<()>();
        scope.spawn(move || {
            while ended.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                // More than once: a statement that has not begun is not cancelled.
                if cancel.check().is_err() {
                    cancel_all(server);
                }
            }
        });
        let worked = work();
        drop(working);
        worked
    })
}

/// Waits until the reading session is the only one of its database.
fn wait_for_ended_sessions(readings: &mut ServerSession<'_>) -> Result<(), PostgresError> {
    const DURING: &str = "the ended sessions are waited for";
    let others = "select pg_catalog.count(*) from pg_catalog.pg_stat_activity \
                  where datname = pg_catalog.current_database() \
                  and pid <> pg_catalog.pg_backend_pid()";
    let begin = clock::now();
    while readings.value::<i64>(DURING, others)? > 0 && clock::now().saturating_sub(begin) < ENDED {
        thread::sleep(ENDING);
    }
    Ok(())
}

/// Cancels the statements of plumb's sessions in its database.
fn cancel_all(server: &ServerAddress) {
    let Ok(mut session) = ServerSession::connect(server, "plumb visit") else { return };
    let cancel = "select pg_catalog.pg_cancel_backend(pid) from pg_catalog.pg_stat_activity \
                  where datname = pg_catalog.current_database() \
                  and pid <> pg_catalog.pg_backend_pid()";
    let _ = session.rows("the run is cancelled", cancel, &[]);
}

/// Drops the indexes of a table: the work of a run.
fn drop_indexes(session: &mut ServerSession<'_>, table: &str) -> Result<(), PostgresError> {
    const DURING: &str = "the index is dropped";
    let named = format!(
        "select indexrelid::regclass::text from pg_catalog.pg_index where indrelid = '{table}'::regclass"
    );
    for row in session.rows(DURING, &named, &[])? {
        if let Ok(name) = row.try_get::<_, String>(0) {
            session.run(DURING, &format!("drop index {name}"))?;
        }
    }
    Ok(())
}

/// Returns the receipt of a setting by the server's word: the value in force, and its origin.
fn by_the_server(asked: &GivenSetting, evidence: &ServerEvidence) -> Receipt {
    let ruling = match evidence.setting(&asked.name) {
        Some(set) => {
            let origins = ["session", "configuration file"];
            let is_same = set.value == asked.canonical && origins.contains(&set.source.as_str());
            Ruling::that(
                is_same,
                format!("pg_settings of the working session: {} by {}", set.shown(), set.source),
            )
        }
        None => Ruling::unknown("pg_settings has no such row"),
    };
    ruling.inside(&asked.name, &asked.value)
}

fn settings(asked: &[GivenSetting], in_force: &[InForce]) -> Vec<SettingRow> {
    let of_study = |set: &&InForce| asked.iter().any(|asked| asked.name == set.name);
    let row = |set: &InForce| SettingRow {
        name: set.name.clone(),
        value: set.shown(),
        taken: None,
        is_default: set.value == set.default,
        source: "study".to_string(),
        description: String::new(),
    };
    in_force.iter().filter(of_study).map(row).collect()
}

/// Returns a finding if other databases were used in the run.
fn meanwhile(others: Counters) -> Vec<Finding> {
    if others.transactions == 0 {
        return Vec::new();
    }
    let evidence = format!(
        "{} transactions, {} blocks read, {} of temporary files, by pg_stat_database",
        RowCount(others.transactions),
        RowCount(others.blocks_read),
        Bytes(others.temp_bytes)
    );
    let what = "Other databases of the server were used during the run".to_string();
    vec![Finding { what, evidence, advice: "repeat it at a quieter time".to_string(), ..Finding::default() }]
}
