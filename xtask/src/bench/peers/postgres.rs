//! PostgreSQL: CREATE INDEX, serial and parallel, at several sizes of
//! `maintenance_work_mem`.
//!
//! Each run starts the server anew, so that its own cache is as cold as the
//! page cache, and stops it in the end. The server listens on a socket in a
//! directory with a short name, because the path of a socket has at most 107
//! bytes, and on no network. It refuses to run as root; then it runs as the
//! user nobody, who is given its directory.
//!
//! Its settings are those that favour an index build: no log of it
//! (`wal_level=minimal`), no checkpoint and no autovacuum in the middle. Syncs
//! stay on. The cache of 128 MB is the default; an index build hardly uses it,
//! and it counts in the peak of memory only as far as it is touched.

use super::child::{Child, Watch};
use super::packages;
use super::peer::{Ground, Peer, Reach, Run, Task, drop_caches};
use super::python::{Answer, Script};
use anyhow::Context;
use plumb_units::Bytes;
use serde_json::{Value, json};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{fs, thread};

/// The ids of the user and the group nobody.
const NOBODY: u32 = 65534;
/// What `maintenance_work_mem` is tried at, beside the limits.
const WORK_MEMORY_MB: [u64; 3] = [64, 256, 1024];
const START_TIME_MAX: Duration = Duration::from_secs(60);
const SERVER_SETTINGS: [&str; 9] = [
    "listen_addresses=",
    "wal_level=minimal",
    "max_wal_senders=0",
    "max_wal_size=64GB",
    "checkpoint_timeout=1h",
    "autovacuum=off",
    "logging_collector=off",
    "unix_socket_permissions=0700",
    "max_connections=10",
];

/// PostgreSQL's programs and its client.
#[derive(Debug)]
pub(super) struct Postgres {
    programs: PathBuf,
    client: Script,
}

impl Postgres {
    pub(super) fn new() -> Postgres {
        let packages = &["psycopg[binary]==3.3.9"];
        Postgres {
            programs: PathBuf::new(),
            client: Script::new("postgres", include_str!("postgres.py"), packages),
        }
    }
}

impl Postgres {
    /// Fetches it and makes an empty cluster.
    pub(super) fn make_cluster(&mut self, ground: &Ground) -> anyhow::Result<()> {
        self.programs = packages::postgres(ground)?;
        self.client.fetch(ground)?;
        let room = ground.room("postgres")?;
        give_away(&room)?;
        let mut initdb = as_user(&self.programs.join("initdb"), &room);
        initdb.args(["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]);
        initdb.arg("--pgdata").arg(room.join("data"));
        let child = Child::start(initdb, "initdb", &ground.directory)?;
        child.finish(&ground.stop, START_TIME_MAX, Watch::Nobody)?;
        Ok(())
    }

    /// Seconds that a job of commits took, on a server that was started for it, and the server's version.
    pub(super) fn commits(&self, ground: &Ground, mut job: Value) -> anyhow::Result<(f64, String)> {
        let client = self.client.with(include_str!("commits_postgres.py"));
        let server = Server::start(&self.programs, ground)?;
        let room = ground.room("postgres")?;
        job["socket"] = json!(server.socket);
        job["room"] = json!(room);
        let answer = client.call(ground, &job, Watch::Nobody)?.0;
        Ok((answer.seconds, of_server(&answer)))
    }
}

/// The version without the package's name.
fn of_server(answer: &Answer) -> String {
    answer.version.split_whitespace().next().unwrap_or_default().to_string()
}

impl Peer for Postgres {
    fn name(&self) -> &'static str {
        "PostgreSQL"
    }

    fn form(&self) -> &'static str {
        "ordinary table, loaded by COPY, vacuumed, checkpointed; integer, date, numeric(38,2), text; C collation"
    }

    fn memory(&self) -> &'static str {
        "the best `maintenance_work_mem` of 64 MB, 256 MB, 1 GB and the limits that is within the limit; \
         a row of its own for the best of all; parallel: `max_parallel_maintenance_workers` = degree - 1, \
         and the leader works too"
    }

    fn prepare(&mut self, ground: &Ground) -> anyhow::Result<String> {
        self.make_cluster(ground)?;
        let server = Server::start(&self.programs, ground)?;
        let job = json!({
            "action": "load", "socket": server.socket, "csv": ground.csv, "degree": ground.degree,
            "data": ground.keys.job(),
        });
        let (answer, _) = self.client.call(ground, &job, Watch::Nobody)?;
        Ok(of_server(&answer))
    }

    fn tasks(&self, limits: &[Bytes]) -> Vec<Task> {
        let mut memories: Vec<Bytes> = WORK_MEMORY_MB.iter().map(|mb| Bytes(mb * Bytes::M)).collect();
        memories.extend(limits);
        memories.sort();
        memories.dedup();
        let works =
            [("serial", "CREATE INDEX, serial", "index"), ("parallel", "CREATE INDEX, parallel", "index")];
        let tasks = Task::at_each(&works, &memories).into_iter();
        tasks.map(|task| Task { reach: Reach::Sweep, ..task }).collect()
    }

    fn run(&mut self, ground: &Ground, task: &Task) -> anyhow::Result<Run> {
        anyhow::ensure!(task.action == "serial" || ground.degree > 1, "one process is the serial build");
        let workers = if task.action == "serial" { 0 } else { ground.degree - 1 };
        let server = Server::start(&self.programs, ground)?;
        drop_caches(&ground.room("postgres")?)?;
        let job = json!({
            "action": "index", "socket": server.socket, "memory": task.memory.0, "workers": workers,
            "data": ground.keys.job(),
        });
        let (built, used) = self.client.call(ground, &job, Watch::Process(server.id()))?;
        let job = json!({"action": "check", "socket": server.socket, "data": ground.keys.job()});
        let (checked, _) = self.client.call(ground, &job, Watch::Nobody)?;
        checked.check(&ground.facts)?;
        Ok(Run {
            cpu_seconds: used.cpu_seconds,
            memory_start: used.memory_start,
            memory_peak: used.memory_peak,
            output: Bytes(checked.output_bytes),
            ..built.into_run()
        })
    }
}

/// A running server and the directory of its socket.
struct Server {
    process: Option<Child>,
    socket: PathBuf,
}

impl Server {
    /// Starts it and waits until it takes connections.
    fn start(programs: &Path, ground: &Ground) -> anyhow::Result<Server> {
        let room = ground.room("postgres")?;
        let socket = std::env::temp_dir().join(format!("plumb-pg-{}", std::process::id()));
        fs::create_dir_all(&socket)?;
        give_away(&socket)?;
        let mut command = as_user(&programs.join("postgres"), &room);
        command.arg("-D").arg(room.join("data")).arg("-k").arg(&socket);
        for setting in SERVER_SETTINGS {
            command.arg("-c").arg(setting);
        }
        let process = Child::start(command, "postgres-server", &ground.directory)?;
        let mut server = Server { process: Some(process), socket };
        server.wait_until_ready(ground, &room).context("starting the server")?;
        Ok(server)
    }

    fn id(&self) -> u32 {
        self.process.as_ref().map_or(0, Child::id)
    }

    /// The last line of its lock file says how far it is.
    fn wait_until_ready(&mut self, ground: &Ground, room: &Path) -> anyhow::Result<()> {
        let pause = Duration::from_millis(20);
        for _ in 0..START_TIME_MAX.as_millis() / pause.as_millis() {
            ground.stop.check()?;
            if let Some(process) = &mut self.process {
                process.check_alive()?;
            }
            let state = fs::read_to_string(room.join("data/postmaster.pid")).unwrap_or_default();
            if state.lines().next() == Some(self.id().to_string().as_str())
                && state.lines().last().is_some_and(|line| line.trim() == "ready")
            {
                return Ok(());
            }
            thread::sleep(pause);
        }
        anyhow::bail!("it was not ready after {} s", START_TIME_MAX.as_secs())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(process) = self.process.take() {
            process.leave();
        }
        let _ = fs::remove_dir_all(&self.socket);
    }
}

/// A command as a user that PostgreSQL runs for; the process keeps its id.
pub(in crate::bench) fn as_user(program: &Path, room: &Path) -> Command {
    let mut command = if is_root() {
        let mut command = Command::new("setpriv");
        command.args([format!("--reuid={NOBODY}"), format!("--regid={NOBODY}")]);
        // Ends with this program, however that ends.
        command.args(["--clear-groups", "--pdeathsig=INT", "--"]).arg(program);
        command
    } else {
        Command::new(program)
    };
    command.current_dir(room).env("HOME", room).env("LC_ALL", "C");
    command
}

/// Gives a directory to the user that runs the server, and to no other.
pub(in crate::bench) fn give_away(directory: &Path) -> anyhow::Result<()> {
    if is_root() {
        chown(directory, Some(NOBODY), Some(NOBODY))?;
    }
    fs::set_permissions(directory, fs::Permissions::from_mode(0o700))?;
    Ok(())
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sweep_has_each_size_once_and_the_limits() {
        let limits = [Bytes(64 * Bytes::M), Bytes(100 * Bytes::M)];
        let tasks = Postgres::new().tasks(&limits);
        let serial: Vec<u64> = tasks
            .iter()
            .filter(|task| task.action == "serial")
            .map(|task| task.memory.0 / Bytes::M)
            .collect();
        assert_eq!(serial, [64, 100, 256, 1024]);
        assert_eq!(tasks.len(), 8);
    }
}
