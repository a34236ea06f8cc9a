//! Kills of the program while it makes things, and what `plumb clean` leaves of them.
//!
//! ```text
//! prepare ──> [ copy ──> command ──> SIGKILL at a moment ──> clean ──> nothing is left ]*
//! ```
//!
//! A [`KilledMaker`] is a command that makes things which outlive a kill. The moments are spread
//! over the time of a whole run. `clean` must succeed at once, while processes of the killed
//! command may still end. After a second one these must be gone: processes, mounts, loop devices,
//! shared memory, instances of tracefs. The directory may have only what a whole run leaves, and
//! the list of leftovers must be empty.
//!
//! `cargo xtask bench leftovers` and a test of the program share it.
//!
//! Limits: a kill loses no power, and only this process is killed. Shared memory counts as left if
//! no process maps it and its maker has ended, because other programs may make some meanwhile.

use std::collections::BTreeSet;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;
use std::{fs, io};

/// Longest time of a whole run, and of processes that end on their own after a kill.
const RUN_MOST: Duration = Duration::from_secs(60);
const END_MOST: Duration = Duration::from_secs(15);
const INTERVAL: Duration = Duration::from_millis(20);

/// A command that makes things which outlive a kill.
#[derive(Debug, Clone, Copy)]
pub struct KilledMaker {
    pub name: &'static str,
    pub needs: Needs,
    /// Lines for a shell that prepare the directory; `$PLUMB` is the program.
    prepare: &'static str,
    /// Arguments of the program; `{here}` is the directory, `{server}` the address of a server.
    arguments: &'static [&'static str],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    Nothing,
    Root,
    /// The programs of PostgreSQL, which the command starts.
    Postgres,
    /// A running server of PostgreSQL, by its address.
    Server,
}

/// Files of a load, and a table of them.
const CSV: &str = "seq 1 60000 | awk 'BEGIN{print \"id,name\"}{print $1\",n\"$1*7919%60000}' > t.csv";
const LOADED: &str = "seq 1 60000 | awk 'BEGIN{print \"id,name\"}{print $1\",n\"$1*7919%60000}' > t.csv
$PLUMB load t.csv --table T; rm t.csv";
const FILE_STUDY: &str = r#"echo original > x.conf; cat > s.toml <<'EOF'
name = "s"
title = "x"
question = "x"
target = "command"
blocks = 6
[command]
run = "sleep 0.05"
[file."x.conf"]
text = "{x}"
[[factor]]
name = "x"
levels = ["1", "2"]
[[claim]]
name = "c"
text = "x"
factor = "x"
from = "1"
to = "2"
expect = "differs"
EOF"#;
/// The address is known only when the command starts, so that the file has none.
const VISIT: &str = r#"cat > s.toml <<'EOF'
name = "s"
title = "x"
question = "x"
target = "postgres"
workload = "large-sort"
rows = 20000
blocks = 2
[[factor]]
name = "max_wal_size"
levels = ["1GB", "4GB"]
[[claim]]
name = "c"
text = "x"
factor = "max_wal_size"
from = "1GB"
to = "4GB"
expect = "differs"
EOF"#;
/// One block proves nothing, which is the exit code of the study.
const STUDY: &str = "$PLUMB study large-sort --blocks 1 --rows 2000 --bundle whole || test -f whole/end.json";
const LOOPS: &str = r#"mkdir here; cat > s.toml <<'EOF'
name = "s"
title = "x"
question = "x"
workload = "large-sort"
rows = 20000
blocks = 1
[[factor]]
name = "fs"
levels = [
    { label = "ext4", set = { data_path = "@ext4" } },
    { label = "here", set = { data_path = "here" } },
]
[[claim]]
name = "c"
text = "x"
factor = "fs"
from = "ext4"
to = "here"
expect = "differs"
EOF"#;
const REPORT: &str = "for i in $(seq 40); do cat $REPORT; done > rep.txt";

const fn maker(
    name: &'static str,
    needs: Needs,
    prepare: &'static str,
    arguments: &'static [&'static str],
) -> KilledMaker {
    KilledMaker { name, needs, prepare, arguments }
}

/// All makers, one row for each command.
pub const MAKERS: &[KilledMaker] = &[
    maker("run large-sort", Needs::Nothing, "", &["run", "large-sort", "--rows", "100K", "--bundle", "b"]),
    maker(
        "run redo in three places",
        Needs::Nothing,
        "mkdir home data log",
        &[
            "run",
            "redo",
            "--rows",
            "20K",
            "--path",
            "home",
            "--data-path",
            "data",
            "--set",
            "log_path={here}/log",
        ],
    ),
    maker("run slob", Needs::Nothing, "", &["run", "slob", "--scale", "500", "--run-time", "300ms"]),
    maker("run record-sort", Needs::Nothing, "", &["run", "record-sort", "--rows", "100K"]),
    maker("run ctas", Needs::Nothing, "", &["run", "ctas", "--rows", "50K"]),
    maker("run scan", Needs::Nothing, "", &["run", "scan", "--rows", "100K"]),
    maker(
        "study",
        Needs::Nothing,
        "",
        &["study", "large-sort", "--blocks", "1", "--rows", "20K", "--bundle", "b"],
    ),
    maker(
        "study of a command with a file",
        Needs::Nothing,
        FILE_STUDY,
        &["study", "s.toml", "--bundle", "b"],
    ),
    maker("study of file systems", Needs::Root, LOOPS, &["study", "s.toml", "--bundle", "b"]),
    maker(
        "calibrate",
        Needs::Nothing,
        "",
        &[
            "calibrate",
            "--run",
            "advanced",
            "--matrix",
            "point",
            "--num-small",
            "1",
            "--num-large",
            "0",
            "--file-size",
            "64M",
            "--duration",
            "200ms",
            "--bundle",
            "b",
        ],
    ),
    maker("sort", Needs::Nothing, CSV, &["sort", "t.csv", "sorted", "--set", "sort_area_size=1M"]),
    maker("load", Needs::Nothing, CSV, &["load", "t.csv", "--table", "T"]),
    maker("load --conventional", Needs::Nothing, CSV, &["load", "t.csv", "--table", "T", "--conventional"]),
    maker("index", Needs::Nothing, LOADED, &["index", "T", "name"]),
    maker("copy", Needs::Nothing, LOADED, &["copy", "T", "--to", "C"]),
    maker("export", Needs::Nothing, LOADED, &["export", "T", "--output", "out.csv"]),
    maker("backup", Needs::Nothing, LOADED, &["backup", "copy"]),
    maker(
        "restore",
        Needs::Nothing,
        "mkdir old; cd old; seq 1 60000 | sed 1iid > t.csv; $PLUMB load t.csv --table T; $PLUMB backup ../copy",
        &["restore", "copy", "--path", "."],
    ),
    maker("import", Needs::Nothing, "cat $REPORT > rep.txt", &["import", "rep.txt", "--bundle", "b"]),
    maker("import of many", Needs::Nothing, REPORT, &["import", "rep.txt", "--bundle", "b"]),
    maker("share of a file", Needs::Nothing, REPORT, &["share", "rep.txt", "--output", "b"]),
    maker(
        "share of a run",
        Needs::Nothing,
        "$PLUMB run large-sort --rows 2000 --bundle whole",
        &["share", "whole", "--output", "b"],
    ),
    maker("share of a study", Needs::Nothing, STUDY, &["share", "whole", "--output", "b"]),
    maker(
        "study of a server of its own",
        Needs::Postgres,
        "",
        &["study", "pg-sort-memory", "--blocks", "1", "--rows", "20K", "--bundle", "b"],
    ),
    maker(
        "study of a server that writes",
        Needs::Postgres,
        "",
        &["study", "pg-commit-delay", "--blocks", "1", "--rows", "2K", "--bundle", "b"],
    ),
    maker(
        "study of a server of others",
        Needs::Server,
        VISIT,
        &["study", "s.toml", "--target", "{server}", "--allow-reload", "--yes", "--bundle", "b"],
    ),
    maker(
        "snoop",
        Needs::Root,
        "",
        &["snoop", "--quiet", "--", "sh", "-c", "head -c 1M /dev/zero > f; sleep 0.5"],
    ),
];

/// The program, a directory for its work, and the address of a server.
#[derive(Debug)]
pub struct KillPlace<'p> {
    pub program: &'p Path,
    pub directory: &'p Path,
    pub server: Option<&'p str>,
}

/// Result of the kills of a maker.
#[derive(Debug, Default)]
pub struct Kills {
    pub killed: u64,
    /// Runs that ended before their kill.
    pub ended: u64,
    /// A line for each thing that was left, with its moment.
    pub left: Vec<String>,
}

impl KilledMaker {
    /// Kills a run at this number of moments. Fails with a line if the command itself fails.
    pub fn kill(&self, place: &KillPlace<'_>, moments: u64) -> io::Result<Kills> {
        let (base, here) = (place.directory.join("base"), place.directory.join("here"));
        place.fresh(&base)?;
        let lines = format!("set -e\n{}", self.prepare);
        let prepared = place.command_in(&base, "sh").args(["-c", &lines]).output()?;
        require("prepare", self.name, &prepared)?;
        place.copy(&base, &here)?;
        let begin = plumb_events::now();
        let whole = self.start(place, &here)?;
        let whole = whole.wait_with_output()?;
        let elapsed = since(begin).min(RUN_MOST);
        // A verdict or an INVALID run has another code, and makes all things too.
        if whole.status.code().is_none_or(|code| code == 1 || code == 2) {
            require("run", self.name, &whole)?;
        }
        let expected = names(&here);
        let mut kills = Kills::default();
        for moment in 0..moments {
            place.copy(&base, &here)?;
            let after = elapsed.mul_f64((moment as f64 + 0.5) / moments as f64);
            let before = shared_memory();
            let mut child = self.start(place, &here)?;
            thread::sleep(after);
            match child.try_wait()? {
                Some(_) => kills.ended += 1,
                None => kills.killed += 1,
            }
            child.kill()?;
            child.wait()?;
            let left = place.left(&here, &expected, &before)?;
            kills
                .left
                .extend(left.into_iter().map(|left| format!("{} after {after:.0?}: {left}", self.name)));
        }
        place.fresh(&here)?;
        Ok(kills)
    }

    fn start(&self, place: &KillPlace<'_>, here: &Path) -> io::Result<Child> {
        let filled = |word: &&str| {
            word.replace("{here}", &here.to_string_lossy())
                .replace("{server}", place.server.unwrap_or_default())
        };
        let mut command = place.command_in(here, place.program);
        command.args(self.arguments.iter().map(filled)).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()
    }
}

impl KillPlace<'_> {
    fn command_in(&self, directory: &Path, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        let report = concat!(env!("CARGO_MANIFEST_DIR"), "/../foreign/tests/it/fixtures/awr_11204.txt");
        command.current_dir(directory).stdin(Stdio::null());
        command
            .env("PLUMB", self.program)
            .env("REPORT", report)
            .env("XDG_STATE_HOME", self.directory.join("state"));
        command
    }

    fn fresh(&self, directory: &Path) -> io::Result<()> {
        if directory.exists() {
            fs::remove_dir_all(directory)?;
        }
        fs::create_dir(directory)?;
        // The user of a server passes through.
        fs::set_permissions(directory, fs::Permissions::from_mode(0o755))
    }

    fn copy(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.fresh(to)?;
        let mut copy = Command::new("cp");
        require("copy", "the directory", &copy.arg("-a").arg(from.join(".")).arg(to).output()?)
    }

    /// Cleans up after a kill; returns a line for each thing that is still there.
    fn left(
        &self,
        here: &Path,
        expected: &BTreeSet<String>,
        before: &BTreeSet<String>,
    ) -> io::Result<Vec<String>> {
        let mut left = Vec::new();
        let places = [".", "home", "data", "log"].map(|place| here.join(place));
        // A run of a killed study ends on its own, and leaves nothing then.
        for _ in 0..2 {
            for place in places.iter().filter(|place| place.is_dir()) {
                let cleaned = self.command_in(place, self.program).args(["clean"]).output()?;
                if !cleaned.status.success() {
                    left.push(format!("clean: {}", text(&cleaned.stderr)));
                }
            }
            eventually_none(|| processes_in(here));
        }
        if self.server.is_some() {
            let undone = self.command_in(here, self.program).args(["undo", "--yes"]).output()?;
            if !undone.status.success() {
                left.push(format!("undo: {}", text(&undone.stderr)));
            }
        }
        for place in places.iter().filter(|place| place.is_dir()) {
            let listed = self.command_in(place, self.program).args(["clean", "--dry-run"]).output()?;
            if !text(&listed.stdout).ends_with("no killed process left anything") {
                left.push(format!("the list has {}", text(&listed.stdout)));
            }
        }
        left.extend(names(here).difference(expected).map(|name| format!("file {name}")));
        left.extend(processes_in(here));
        left.extend(eventually_none(|| {
            shared_memory().difference(before).map(|name| format!("shared memory {name}")).collect()
        }));
        left.extend(mounts_and_devices(here));
        left.extend(instances());
        Ok(left)
    }
}

fn require(what: &str, name: &str, output: &Output) -> io::Result<()> {
    match output.status.success() {
        true => Ok(()),
        false => Err(io::Error::other(format!("{name}: {what}: {}", text(&output.stderr)))),
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().replace('\n', "; ")
}

/// Returns the names in a directory and one level below, but for those that number a run.
fn names(directory: &Path) -> BTreeSet<String> {
    let inside = |directory: &Path| fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names = BTreeSet::new();
    for entry in inside(directory) {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_database = ["home", "data", "log"].contains(&name.as_str());
        names.extend(
            inside(&entry.path())
                .filter(|_| is_database)
                .map(|inner| format!("{name}/{}", inner.file_name().to_string_lossy())),
        );
        names.insert(name);
    }
    names
}

/// Returns what is still there after a while: a process that was asked to end takes some time.
fn eventually_none(mut look: impl FnMut() -> Vec<String>) -> Vec<String> {
    let begin = plumb_events::now();
    loop {
        let found = look();
        if found.is_empty() || since(begin) > END_MOST {
            return found;
        }
        thread::sleep(INTERVAL);
    }
}

fn numbers() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Returns the processes that work in a directory, or have it in their arguments.
fn processes_in(directory: &Path) -> Vec<String> {
    let of = directory.display().to_string();
    let works = |number: &u32| {
        let of_process = |name: &str| format!("/proc/{number}/{name}");
        fs::read_link(of_process("cwd")).is_ok_and(|there| there.starts_with(directory))
            || fs::read(of_process("cmdline"))
                .is_ok_and(|words| String::from_utf8_lossy(&words).contains(&of))
    };
    let told = |number: u32| {
        let name = fs::read_to_string(format!("/proc/{number}/comm")).unwrap_or_default();
        format!("process {number} ({})", name.trim())
    };
    numbers().filter(works).map(told).collect()
}

/// Returns the shared memory that no process uses and whose maker has ended.
fn shared_memory() -> BTreeSet<String> {
    let list = fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    let rows = list.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    let is_left = |row: &Vec<&str>| {
        row.get(6) == Some(&"0") && row.get(4).is_some_and(|maker| !Path::new("/proc").join(maker).exists())
    };
    let mut left: BTreeSet<String> =
        rows.filter(is_left).filter_map(|row| Some(format!("segment {}", row.get(1)?))).collect();
    let files = fs::read_dir("/dev/shm").into_iter().flatten().flatten().map(|entry| entry.path());
    let files: Vec<PathBuf> = files.filter(|file| file.to_string_lossy().contains("/PostgreSQL.")).collect();
    if !files.is_empty() {
        let maps: String =
            numbers().filter_map(|number| fs::read_to_string(format!("/proc/{number}/maps")).ok()).collect();
        let unused = files.iter().map(|file| file.display().to_string()).filter(|file| !maps.contains(file));
        left.extend(unused);
    }
    left
}

fn mounts_and_devices(directory: &Path) -> Vec<String> {
    let of = directory.display().to_string();
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mut left: Vec<String> =
        mounts.lines().filter(|line| line.contains(&of)).map(|line| format!("mount {line}")).collect();
    for entry in fs::read_dir("/sys/block").into_iter().flatten().flatten() {
        let file = fs::read_to_string(entry.path().join("loop/backing_file")).unwrap_or_default();
        if file.starts_with(&of) {
            left.push(format!("device {}", entry.file_name().display()));
        }
    }
    left
}

/// Returns the instances of tracefs whose process has ended.
fn instances() -> Vec<String> {
    let entries = fs::read_dir("/sys/kernel/tracing/instances").into_iter().flatten().flatten();
    let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    let is_left = |name: &String| {
        let maker = name.strip_prefix("plumb-").and_then(|rest| rest.split('-').next());
        maker.is_some_and(|maker| !Path::new("/proc").join(maker).exists())
    };
    entries.map(name).filter(is_left).collect()
}

/// Returns the reason why a maker cannot run here.
#[must_use]
pub fn lacks(maker: &KilledMaker, place: &KillPlace<'_>, has_postgres: Result<(), String>) -> Option<String> {
    let is_root = fs::metadata("/proc/self").is_ok_and(|found| found.uid() == 0);
    match maker.needs {
        Needs::Root if !is_root => Some("it needs root".to_string()),
        Needs::Postgres => has_postgres.err(),
        Needs::Server if place.server.is_none() => {
            Some(has_postgres.err().unwrap_or_else(|| "there is no server".to_string()))
        }
        _ => None,
    }
}

/// Returns the time since a reading of the monotonic clock.
fn since(begin: plumb_units::Nanos) -> Duration {
    Duration::from_nanos(plumb_events::now().saturating_sub(begin).0)
}
