//! PostgreSQL at the work of SLOB: ranges of a key selected and updated, one row a block, in a cache of 16 MB.
//!
//! The server is made for it and goes with it; it listens on a socket alone. Its client is pgbench, whose CPU is not counted. The table has SLOB's columns,
//! 2.5 KB a row with a fill factor that lets no second one into a block, and is never toasted; ranges are read by the index.
//!
//! What is compared is reads a second of CPU of the server, all of its processes, against that of all of plumb's sessions: on shared servers, and on threads
//! of their own. The server reads past the page cache first, as plumb does (`debug_io_direct`, from version 16 on), and then through it, which is dropped before each turn and fills again:
//! there most of its reads are copies of memory.

use super::writes::{Streams, slob};
use super::{Options, Spread, on, order};
use crate::bench::peers::child::tree_cpu_seconds;
use crate::bench::peers::peer::drop_caches;
use crate::bench::peers::postgres::{as_user, give_away};
use anyhow::{Context, Result, ensure};
use plumb_proof::random::Generator;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where distributions put the programs, by major version.
const PROGRAMS: &str = "/usr/lib/postgresql";
/// Rows of a work unit, as SLOB counts them.
const WORK_UNIT: u64 = 64;
/// Schemas of plumb's database: one table is what PostgreSQL has, in as many blocks.
const SCHEMAS: u64 = 4;
const SERVER_SETTINGS: [&str; 9] = [
    "listen_addresses=",
    "shared_buffers=16MB",
    "max_connections=300",
    "max_wal_size=4GB",
    "wal_compression=off",
    "autovacuum=off",
    "enable_bitmapscan=off",
    "enable_seqscan=off",
    "logging_collector=off",
];

/// Both in turn, without updates and with 20%.
pub(super) fn beside(options: &Options, home: &Path) -> Result<()> {
    let Some(programs) = options.postgres.clone().or_else(newest) else {
        println!("there is no PostgreSQL below {PROGRAMS} to stand beside (--postgres DIR): it is left out");
        return Ok(());
    };
    let rows = options.size.0 / 8192;
    for direct in [true, false] {
        match Server::start(&programs, home, direct) {
            // Before version 16 it cannot.
            Err(error) if direct => println!("a server that reads past the page cache is left out: {error}"),
            started => beside_server(options, &started?, rows, direct)?,
        }
    }
    Ok(())
}

/// Both in turn, with a server that reads its files past the page cache, as far as it can, or through it.
fn beside_server(options: &Options, server: &Server, rows: u64, direct: bool) -> Result<()> {
    let way = if direct { "past the page cache (debug_io_direct=data)" } else { "through the page cache" };
    println!("{}, reading {way}", server.version()?);
    server.load(rows)?;
    let mut random = Generator::new(7);
    let forms = [options.shared_servers, 0];
    for update_pct in [0, 20] {
        let mut sides: [Vec<f64>; 3] = Default::default();
        for _ in 0..options.rounds {
            for side in order(&mut random, 3) {
                sides[side].push(match forms.get(side) {
                    Some(servers) => ours(options, rows, update_pct, *servers)?,
                    None => server.reads_per_cpu_second(options, rows, update_pct)?,
                });
            }
        }
        let [shared, own, theirs] = &sides;
        let shown = |rates: &[f64]| Spread::of(rates.to_vec()).show(0);
        println!("{update_pct}% updates, reads a second of CPU: PostgreSQL {}", shown(theirs));
        for (servers, ours) in forms.into_iter().zip([shared, own]) {
            let ratios = Spread::of(ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect());
            println!("  {}: {}, {} times; goal: at least 2.5", on(servers), shown(ours), ratios.show(2));
        }
    }
    Ok(())
}

fn newest() -> Option<PathBuf> {
    let versions = fs::read_dir(PROGRAMS).ok()?.filter_map(|entry| {
        let entry = entry.ok()?;
        Some((entry.file_name().to_str()?.parse::<u32>().ok()?, entry.path().join("bin")))
    });
    versions.filter(|(_, path)| path.join("postgres").exists()).max().map(|(_, path)| path)
}

/// Reads a second of CPU of a run of SLOB.
fn ours(options: &Options, rows: u64, update_pct: u64, servers: usize) -> Result<f64> {
    let [scale, schemas, update_pct, sessions, seconds, work_unit] =
        [rows / SCHEMAS, SCHEMAS, update_pct, options.sessions as u64, options.seconds, WORK_UNIT]
            .map(|number| number.to_string());
    let given = [
        ("scale", scale.as_str()),
        ("schemas", &schemas),
        ("update-pct", &update_pct),
        ("sessions", &sessions),
        ("run-time", &seconds),
        ("work-unit", &work_unit),
        ("mix", "iid"),
    ];
    let ran = slob(&options.path, &given, servers)?;
    ensure!(ran.record.checks.iter().all(|check| check.passed), "a check of plumb's run failed");
    Ok(1e6 / Streams::of(&ran.record).cpu_micros)
}

/// A server with a cluster of its own, stopped and removed when dropped.
struct Server {
    programs: PathBuf,
    room: PathBuf,
}

impl Server {
    fn start(programs: &Path, home: &Path, direct: bool) -> Result<Server> {
        fs::create_dir_all(home)?;
        let room = home.join("postgres");
        fs::create_dir_all(&room)?;
        give_away(&room)?;
        let server = Server { programs: programs.to_path_buf(), room };
        let mut initdb = server.command("initdb");
        initdb.args(["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]);
        initdb.arg("--pgdata").arg(server.room.join("data"));
        told(initdb)?;
        let mut start = server.command("pg_ctl");
        let direct = direct.then_some("debug_io_direct=data");
        let settings = SERVER_SETTINGS.into_iter().chain(direct).map(|setting| format!("-c {setting} "));
        let settings: String = settings.collect();
        start.arg("start").arg("--wait").arg("--pgdata").arg(server.room.join("data"));
        start.arg("--log").arg(server.room.join("log"));
        start.arg("--options").arg(format!("{settings} -k {}", server.room.display()));
        told(start)?;
        Ok(server)
    }

    fn command(&self, program: &str) -> Command {
        // A package of the server alone has no clients: those that are installed will do.
        let here = self.programs.join(program);
        as_user(if here.exists() { &here } else { Path::new(program) }, &self.room)
    }

    fn ask(&self, statement: &str) -> Result<String> {
        let mut psql = self.command("psql");
        psql.args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--username=postgres"]);
        psql.args(["--set=ON_ERROR_STOP=1", "--dbname=postgres", "--command", statement]);
        psql.arg("--host").arg(&self.room);
        told(psql)
    }

    fn version(&self) -> Result<String> {
        Ok(format!("PostgreSQL {}", self.ask("show server_version")?))
    }

    /// The table, its rows in a drawn order of keys, and the index on them.
    fn load(&self, rows: u64) -> Result<()> {
        let columns = |column: fn(u64) -> String| (2..=20).map(column).collect::<Vec<_>>().join(", ");
        let defined = columns(|number| format!("c{number} varchar(128) not null"));
        self.ask(&format!("create table cf1 (custid int not null, {defined}) with (fillfactor = 10)"))?;
        let plain = columns(|number| format!("alter column c{number} set storage plain"));
        self.ask(&format!("alter table cf1 {plain}"))?;
        let texts = columns(|number| format!("repeat(md5(k::text || '{number}'), 4)"));
        let keys = format!("(select k from generate_series(1, {rows}) k order by md5(k::text)) keys");
        self.ask(&format!("insert into cf1 select k, {texts} from {keys}"))?;
        self.ask("create index i_cf1 on cf1 (custid)")?;
        self.ask("vacuum analyze cf1")?;
        self.ask("checkpoint")?;
        let blocks = self.ask("select pg_relation_size('cf1') / 8192")?;
        ensure!(blocks == rows.to_string(), "{rows} rows lie in {blocks} blocks, expected one a block");
        Ok(())
    }

    /// Reads a second of CPU of the server while pgbench selects and updates.
    fn reads_per_cpu_second(&self, options: &Options, rows: u64, update_pct: u64) -> Result<f64> {
        let key = format!("\\set r random({}, {})\n", WORK_UNIT + 1, rows - WORK_UNIT);
        let range = format!("custid > :r - {WORK_UNIT} and custid < :r");
        let text = "repeat(md5(random()::text), 4)";
        let scripts = [
            ("select.sql", format!("{key}select count(c2) from cf1 where {range};\n"), 100 - update_pct),
            (
                "update.sql",
                format!("{key}update cf1 set c2 = {text}, c20 = {text} where {range};\n"),
                update_pct,
            ),
        ];
        let mut pgbench = self.command("pgbench");
        pgbench.args(["--no-vacuum", "--protocol=prepared", "--username=postgres", "--jobs=2"]);
        pgbench.args([format!("--client={}", options.sessions), format!("--time={}", options.seconds)]);
        pgbench.arg("--host").arg(&self.room);
        for (name, script, weight) in scripts.iter().filter(|(.., weight)| *weight > 0) {
            let path = self.room.join(name);
            fs::write(&path, script)?;
            pgbench.arg(format!("--file={}@{weight}", path.display()));
        }
        pgbench.arg("postgres");
        self.ask("checkpoint")?;
        drop_caches(&self.room.join("data"))?;
        let pid = fs::read_to_string(self.room.join("data/postmaster.pid"))?;
        let pid = pid.lines().next().and_then(|line| line.trim().parse().ok()).context("its process id")?;
        let read = || -> Result<f64> {
            let blocks = "select blks_read from pg_stat_database where datname = 'postgres'";
            Ok(self.ask(blocks)?.parse()?)
        };
        let (reads, cpu) = (read()?, tree_cpu_seconds(pid));
        told(pgbench)?;
        let (reads, cpu) = (read()? - reads, tree_cpu_seconds(pid) - cpu);
        ensure!(reads > 0.0 && cpu > 0.0, "{reads} reads in {cpu} s of CPU");
        Ok(reads / cpu)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let mut stop = self.command("pg_ctl");
        stop.args(["stop", "--mode=immediate", "--wait", "--pgdata"]).arg(self.room.join("data"));
        let _ = stop.output();
        let _ = fs::remove_dir_all(&self.room);
    }
}

/// What a command has printed.
fn told(mut command: Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("starting {name}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {}: {}", output.status, said.trim());
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_string())
}
