//! One run: a server is started with the settings of an arm, works, is verified, and stops.
//!
//! ```text
//! start ──> checkpoint ──> [ readings ──> work ──> readings ] ──> verify ──> undo ──> stop
//! ```
//!
//! A study's `page_cache` says whether the files of the data are in the page cache when the work
//! begins: `empty`, as the settled state leaves them, or `filled`, read once after the checkpoint.
//!
//! The server starts for every run, also between two runs of equal settings. Otherwise a start
//! would be confounded with the arms that need one.

use crate::PostgresError;
use crate::assemble::{self, MadeRun};
use crate::cluster::{Borrowed, RunningServer};
use crate::evidence::{
    CachedPages, FILLED, GivenSetting, LogFacts, PlaceFacts, ProgramFacts, ServerEvidence,
};
use crate::golden;
use crate::installation::{self, Installation};
use crate::process;
use crate::receipts::rule_of;
use crate::session::ServerSession;
use crate::watch::{EventSampling, ProcessWatch, WatchScope, WatchedProcesses, WatchedServer};
use crate::workload::{self, Begun, PEACE, ServerWork, WorkPlace};
use plumb_events::{Cancel, clock};
use plumb_host::device::DeviceDescription;
use plumb_host::readings::DiskStats;
use plumb_host::regular::open_regular;
use plumb_record::Record;
use plumb_study::disturbance::{self, DiskBytes, Stretch};
use plumb_study::machine::{self, CpuTimes};
use plumb_study::vocabulary::{Assignment, TakesEffect};
use plumb_units::{Bytes, Nanos, path_of_text};
use plumb_workload::Work;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Size of the reads that fill the page cache.
const READ_BYTES: usize = 1 << 20;

/// Request for a run of a server.
#[derive(Debug, Serialize, Deserialize)]
pub struct PostgresRun {
    /// Data directory of the server, as text ([`plumb_units::path_text`]).
    pub home: String,
    pub path: String,
    /// Directory of the server's programs.
    pub server: String,
    pub settings: Vec<Assignment>,
    pub workload: String,
    /// Parameters as they would be typed.
    pub parameters: Vec<(String, String)>,
    pub command_line: String,
}

impl PostgresRun {
    pub(crate) fn work(&self) -> Result<Work, PostgresError> {
        let execution = workload::execution(&self.workload)?;
        let mut work = Work::of(execution.workload());
        let values = self.parameters.iter();
        values
            .into_iter()
            .try_for_each(|(name, value)| work.set(name, value))
            .map_err(PostgresError::Unfit)?;
        Ok(work)
    }

    #[must_use]
    pub fn borrowed(&self, installation: Installation) -> Borrowed {
        Borrowed { installation, home: path_of_text(&self.home) }
    }

    /// Makes the run.
    ///
    /// # Errors
    /// If the server refuses a setting, or ends, or a statement fails.
    pub fn execute(&self) -> Result<Record, PostgresError> {
        let installation = Installation::find(Some(&self.server))?;
        let borrowed = self.borrowed(installation);
        let (execution, work) = (workload::execution(&self.workload)?, self.work()?);
        let options = options(execution, &borrowed.installation, &self.settings);
        let asked = asked(&borrowed, &options, &self.settings)?;
        let cancel = Cancel::default();
        let server = borrowed.start(&of(&options, Way::Start), &cancel)?;
        let session = of(&options, Way::Session);
        let place = WorkPlace { server: &server, work: &work, session: &session, cancel: &cancel };
        let mut begun = execution.begin(&place)?;
        let mut ran = self.measured(&borrowed, &server, execution, &mut *begun)?;
        ran.evidence.asked = asked;
        ran.checks = begun.verify()?;
        begun.undo()?;
        drop(begun);
        server.stop()?;
        Ok(assemble::record(&ran))
    }

    /// Reads all data files if the study says so; returns the pages of the table, or `None` if the
    /// study says nothing about the page cache.
    fn page_cache(&self, data: &Path, table: &Path) -> Option<CachedPages> {
        let asked = self.settings.iter().find(|set| set.name == WORDS[3])?;
        if asked.value == FILLED {
            golden::files_below(&data.join("base")).iter().for_each(|file| read_through(file));
        }
        let next = |number: u32| PathBuf::from(format!("{}.{number}", table.display()));
        let more = (1..).map(next).take_while(|file| file.exists());
        CachedPages::of(&std::iter::once(table.to_path_buf()).chain(more).collect::<Vec<_>>())
    }

    /// Reads the server's program if the study names a server: a hash of the file takes time.
    fn program(&self, postmaster: i32) -> Option<ProgramFacts> {
        self.settings.iter().find(|set| set.name == WORDS[0])?;
        ProgramFacts::of(postmaster)
    }

    fn measured(
        &self,
        borrowed: &Borrowed,
        server: &RunningServer,
        execution: &dyn ServerWork,
        begun: &mut dyn Begun,
    ) -> Result<MadeRun, PostgresError> {
        let device = plumb_io::describe_device(&path_of_text(&self.path))?;
        let mut beside = ServerSession::connect(server, "plumb readings")?;
        beside.run("a checkpoint is taken", "checkpoint")?;
        let table = table_file(&borrowed.data(), &mut beside, execution.table())?;
        let page_cache = self.page_cache(&borrowed.data(), &table);
        let devices = vec![device];
        let watched = disturbance::Watched::of(&devices);
        beside.flush_statistics()?;
        let log = LogBegin::read(&mut beside)?;
        let data = borrowed.data();
        let postmaster = server.pid().as_raw_nonzero().get();
        let watched_server = WatchedServer { server, postmaster, data: &data, scope: WatchScope::Server };
        let watch = ProcessWatch::start(&watched_server, sampling(&self.settings))?;
        let (disk, cpu, earlier) = (disk(&devices), CpuTimes::read(), watched.read());
        let (wall, load, begin) = (clock::wall(), machine::load_average(), clock::now());
        begun.work()?;
        let elapsed = clock::now().saturating_sub(begin);
        let (later, cpu_later) = (watched.read(), CpuTimes::read());
        let (end_wall, disk_later) = (clock::wall(), self::disk(&devices));
        let seen = watch.end();
        let outcome = begun.outcome()?;
        let log = with_the_files(borrowed, log.until_now(&mut beside)?);
        let evidence = ServerEvidence {
            major: borrowed.installation.major,
            asked: Vec::new(),
            in_force: begun.settings()?,
            elapsed,
            done: outcome.done,
            log,
            program: self.program(postmaster),
            place: Some(PlaceFacts::of(&borrowed.data(), &path_of_text(&self.path))),
            shared: process::shared_mapping(server.pid().as_raw_nonzero().get()),
            page_cache,
            page_checksum: page_checksum(&table, &mut beside)?,
            disk: disk_later.zip(disk).map(|(later, earlier)| later.since(&earlier)),
            sort_lines: outcome.sort_lines.clone(),
            watched: seen,
        };
        let of_clients =
            Stretch { unwritten: earlier.unwritten(), ..Stretch::between(&watched, &earlier, &later) };
        let stretch = with_the_server(of_clients, &evidence.watched, outcome.client_cpu);
        let host_cpu =
            cpu_later.zip(cpu).map(|(later, earlier)| later.since(&earlier, load, machine::load_average()));
        Ok(MadeRun {
            title: format!(
                "PLUMB REPORT  Workload: {} on PostgreSQL {}",
                self.workload, borrowed.installation.version
            ),
            server: borrowed.installation.named(),
            evidence,
            outcome,
            checks: Vec::new(),
            devices,
            work: self.work()?,
            command_line: self.command_line.clone(),
            begin,
            wall: (wall, end_wall),
            host_cpu,
            stretch,
        })
    }
}

/// Adds what the server used to the part of the run that this process had. Sessions of this process
/// and programs that it started are no others, nor are the server's.
pub(crate) fn with_the_server(of_clients: Stretch, watched: &WatchedProcesses, client_cpu: Nanos) -> Stretch {
    let processes = watched.processes.iter().map(|process| &process.counters);
    let server = Nanos(processes.clone().map(|counters| counters.cpu.0).sum());
    let io = processes.filter_map(|counters| counters.io).map(|io| DiskBytes::of(&io));
    let io = io.fold(DiskBytes::default(), |sum, io| DiskBytes {
        read: sum.read + io.read,
        written: sum.written + io.written,
    });
    let clients = of_clients.own_cpu.unwrap_or_default() + client_cpu;
    let own_cpu = Some(server + clients + watched.cost + watched.unseen_cpu);
    Stretch { own_cpu, own_io: Some(io), clients: watched.other_clients(), ..of_clients }
}

/// Words of a study that are no settings of the server: which server, whether it is sampled, the
/// directory of its data, and whether the page cache has its files.
pub(crate) const WORDS: [&str; 4] = ["server", "sampler", "path", "page_cache"];

/// Reads a file to its end. A file that cannot be read lowers the count of pages that follows.
fn read_through(path: &Path) {
    let Ok(mut file) = open_regular(path) else { return };
    let mut piece = vec![0; READ_BYTES];
    while file.read(&mut piece).is_ok_and(|read| read > 0) {}
}

fn sampling(settings: &[Assignment]) -> EventSampling {
    let off = settings.iter().any(|set| set.name == WORDS[1] && set.value == "off");
    if off { EventSampling::Off } else { EventSampling::On }
}

/// Way in which a setting reaches the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Start,
    Session,
    /// Made with the data directory.
    Creation,
}

/// Returns all settings of a run: those of all runs, those of the workload, those of the arm. Of
/// several values of a setting the last counts.
pub(crate) fn options(
    execution: &dyn ServerWork,
    installation: &Installation,
    settings: &[Assignment],
) -> Vec<(String, String, Way)> {
    let mut all: Vec<(String, String, Way)> = Vec::new();
    let mut set = |name: &str, value: &str, way| {
        all.retain(|(known, ..)| known != name);
        all.push((name.to_string(), value.to_string(), way));
    };
    for (name, value) in PEACE.iter().chain(execution.settings()) {
        set(name, value, Way::Start);
    }
    if let Some(library) = execution.preloads().filter(|name| installation.has_extension(name)) {
        set("shared_preload_libraries", library, Way::Start);
    }
    for Assignment { name, value } in settings {
        let way = match rule_of(name).map(|rule| rule.takes_effect) {
            _ if WORDS.contains(&name.as_str()) => Way::Creation,
            Some(TakesEffect::Session) => Way::Session,
            Some(TakesEffect::Build | TakesEffect::Creation | TakesEffect::Offline) => Way::Creation,
            _ => Way::Start,
        };
        set(name, value, way);
    }
    all
}

pub(crate) fn of(options: &[(String, String, Way)], way: Way) -> Vec<(String, String)> {
    let ours = options.iter().filter(|(.., theirs)| *theirs == way);
    ours.map(|(name, value, _)| (name.clone(), value.clone())).collect()
}

/// Returns the settings of an arm, each with the value that the server makes of it.
fn asked(
    borrowed: &Borrowed,
    options: &[(String, String, Way)],
    settings: &[Assignment],
) -> Result<Vec<GivenSetting>, PostgresError> {
    let given: Vec<_> = of(options, Way::Start).into_iter().chain(of(options, Way::Session)).collect();
    let known = |name: &str| given.iter().any(|(known, _)| known == name);
    let names: Vec<&str> = settings.iter().map(|set| set.name.as_str()).filter(|name| known(name)).collect();
    let canonical = borrowed.effective(&given, &names)?;
    let of_name = |name: &str| names.iter().position(|known| *known == name).map(|at| canonical[at].clone());
    let program = borrowed.installation.program("postgres");
    let program = program.canonicalize().unwrap_or(program).display().to_string();
    let asked = settings.iter().map(|Assignment { name, value }| GivenSetting {
        canonical: match name == WORDS[0] {
            true => program.clone(),
            false => of_name(name).unwrap_or_else(|| value.clone()),
        },
        name: name.clone(),
        value: value.clone(),
    });
    Ok(asked.collect())
}

/// Returns the log's position, with a commit that writes everything before it.
fn log_position(session: &mut ServerSession<'_>) -> Result<u64, PostgresError> {
    const DURING: &str = "the log's position is read";
    session.run(DURING, "set synchronous_commit = on; select txid_current()")?;
    let position: i64 = session.value(DURING, "select (pg_current_wal_insert_lsn() - '0/0')::bigint")?;
    Ok(u64::try_from(position).unwrap_or(0))
}

/// Returns the syncs of the log that the server counts; `None` if its version counts none.
fn syncs(session: &mut ServerSession<'_>) -> Result<Option<u64>, PostgresError> {
    const DURING: &str = "the syncs are read";
    let columns =
        "select attname::text from pg_attribute where attrelid = 'pg_stat_wal'::regclass and attnum > 0";
    let rows = session.rows(DURING, columns, &[])?;
    let names: Vec<String> = rows.iter().filter_map(|row| row.try_get(0).ok()).collect();
    let count: i64 = session.value(DURING, statement_of_syncs(&names))?;
    Ok(u64::try_from(count).ok())
}

/// Returns the page images that the server has written to its log.
fn image_count(session: &mut ServerSession<'_>) -> Result<u64, PostgresError> {
    let count: i64 = session.value("the page images are counted", "select wal_fpi from pg_stat_wal")?;
    Ok(u64::try_from(count).unwrap_or(0))
}

/// Returns the statement that counts syncs of the log, by the columns of `pg_stat_wal`: version 18
/// counts them in another view.
fn statement_of_syncs(columns: &[String]) -> &'static str {
    match columns.iter().any(|name| name == "wal_sync") {
        true => "select wal_sync from pg_stat_wal",
        false => "select coalesce(sum(fsyncs), 0)::bigint from pg_stat_io where object = 'wal'",
    }
}

/// State of the log before the measured time.
pub(crate) struct LogBegin {
    position: u64,
    syncs: Option<u64>,
    images: u64,
}

impl LogBegin {
    pub(crate) fn read(session: &mut ServerSession<'_>) -> Result<LogBegin, PostgresError> {
        Ok(LogBegin {
            position: log_position(session)?,
            syncs: syncs(session)?,
            images: image_count(session)?,
        })
    }

    /// Returns what the log has of the time since, by all sessions of the server.
    pub(crate) fn until_now(&self, session: &mut ServerSession<'_>) -> Result<LogFacts, PostgresError> {
        let end = log_position(session)?;
        let counted = syncs(session)?.zip(self.syncs);
        Ok(LogFacts {
            bytes: Bytes(end.saturating_sub(self.position)),
            positions: [self.position, end],
            image_count: image_count(session)?.saturating_sub(self.images),
            syncs: counted.map(|(later, earlier)| later.saturating_sub(earlier)),
            ..LogFacts::default()
        })
    }
}

/// Adds what the files of the log show.
fn with_the_files(borrowed: &Borrowed, log: LogFacts) -> LogFacts {
    LogFacts { segment: segment(&borrowed.data()), image_bytes: images(borrowed, log.positions), ..log }
}

/// Returns the bytes of page images between two positions, as `pg_waldump` counts them.
fn images(borrowed: &Borrowed, positions: [u64; 2]) -> Option<Bytes> {
    let [start, end] = positions.map(|position| format!("{:X}/{:X}", position >> 32, position & 0xFFFF_FFFF));
    let mut command = Command::new(borrowed.installation.program("pg_waldump"));
    command.arg("-p").arg(borrowed.data().join("pg_wal")).args(["--stats", "-s", &start, "-e", &end]);
    image_bytes(&installation::asked(&mut command)?)
}

/// Parses the line of totals: number, bytes of records, of page images, of both. Shares are in
/// brackets.
fn image_bytes(report: &str) -> Option<Bytes> {
    let total = report.lines().find_map(|line| line.strip_prefix("Total"))?;
    let numbers = total.split_whitespace().filter(|word| !word.starts_with('['));
    numbers.filter_map(|word| word.parse().ok()).nth(2).map(Bytes)
}

fn disk(devices: &[DeviceDescription]) -> Option<DiskStats> {
    let name = devices.iter().find_map(|device| Some(&device.block.as_ref()?.disk));
    DiskStats::read(name?).ok()
}

/// Returns the size of a file of the log.
fn segment(data: &Path) -> Option<Bytes> {
    let entries = fs::read_dir(data.join("pg_wal")).ok()?.flatten();
    let sizes =
        entries.filter(|entry| entry.file_name().len() == 24).filter_map(|entry| entry.metadata().ok());
    sizes.map(|found| Bytes(found.len())).max()
}

/// Returns the first file of a table.
fn table_file(data: &Path, session: &mut ServerSession<'_>, table: &str) -> Result<PathBuf, PostgresError> {
    let statement = format!("select pg_relation_filepath('{table}')");
    let path: String = session.value("the table's file is looked for", &statement)?;
    Ok(data.join(path))
}

/// Reads the checksum of the first page of a table from its file: bytes 8 and 9. A checkpoint comes
/// first, because a page that the work has added is zeros in the file until it is written.
fn page_checksum(table: &Path, session: &mut ServerSession<'_>) -> Result<Option<u16>, PostgresError> {
    session.run("a checkpoint is taken", "checkpoint")?;
    let mut head = [0; 10];
    let read = fs::File::open(table).and_then(|mut file| file.read_exact(&mut head));
    Ok(read.ok().map(|()| u16::from_ne_bytes([head[8], head[9]])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_of_this_process_and_their_programs_are_the_runs_own() {
        let of_clients = Stretch { own_cpu: Some(Nanos(300)), ..Stretch::default() };
        let watched =
            WatchedProcesses { cost: Nanos(20), unseen_cpu: Nanos(1), ..WatchedProcesses::default() };
        let stretch = with_the_server(of_clients, &watched, Nanos(4_000));
        assert_eq!(stretch.own_cpu, Some(Nanos(4_321)));
        assert_eq!(stretch.own_io, Some(DiskBytes::default()));
    }

    #[test]
    fn the_bytes_of_page_images_are_the_third_total() {
        let report = "WAL statistics between 0/15 and 0/20:\nType  N (%)\n----  -\nHeap 3 ( 75.00) 1 ( 1.00)\n--------\n\
                      Total   4      4210 [12.34%]     29906 [87.66%]     34116 [100%]\n";
        assert_eq!(image_bytes(report), Some(Bytes(29906)));
        assert_eq!(image_bytes("nothing"), None);
    }

    #[test]
    fn every_version_has_the_column_that_counts_its_syncs() {
        for version in crate::recorded::VERSIONS {
            let rows = crate::recorded::rows(version, "counters.tsv");
            let of = |view: &str| -> Vec<String> {
                rows.iter().filter(|row| row[0] == view).map(|row| row[1].clone()).collect()
            };
            let statement = statement_of_syncs(&of("pg_stat_wal"));
            assert_eq!(statement.contains("pg_stat_io"), version >= 18, "{version}");
            let needed = if version >= 18 { ["fsyncs", "object"] } else { ["wal_sync", "wal_bytes"] };
            let columns = of(if version >= 18 { "pg_stat_io" } else { "pg_stat_wal" });
            assert!(needed.iter().all(|name| columns.iter().any(|column| column == name)), "{columns:?}");
        }
    }
}
