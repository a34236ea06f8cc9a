//! A study on a running server by its address: interrupted, resumed, killed, undone. Without an
//! installed server these tests are skipped with a line.

use crate::bundles::{signal, wait_for};
use crate::program::{Ended, command, names, plumb, refused};
use plumb_events::Cancel;
use plumb_postgres::cluster::{Cluster, Creation, RunningServer};
use plumb_postgres::installation::Installation;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

const SIZES: &str = r#"
target = "postgres"
name = "sizes"
title = "x"
question = "x"
workload = "large-sort"
rows = "2K"
blocks = 5
[settings]
max_parallel_maintenance_workers = 0
[[factor]]
name = "size"
levels = [
    { label = "small", set = { max_wal_size = "2GB" } },
    { label = "large", set = { max_wal_size = "3GB" } },
]
[[claim]]
name = "c"
text = "x"
factor = "size"
from = "small"
to = "large"
expect = "differs"
"#;

/// A server of others, and the directory of a study. The fields are dropped in this order.
pub struct Host {
    server: RunningServer,
    cluster: Cluster,
    place: TempDir,
}

impl Host {
    pub fn start() -> Option<Host> {
        let installation = match Installation::find(None) {
            Ok(found) => found,
            Err(error) => {
                println!("skipped: {error}");
                return None;
            }
        };
        // A directory that the server's user can reach.
        let place = tempfile::Builder::new().prefix("plumb-it-").tempdir_in("/var/tmp").expect("a directory");
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).expect("a mode");
        let plain = Creation { checksums: None, segment_megabytes: None };
        let cluster = Cluster::create(place.path(), "v", &installation, &plain).expect("a cluster");
        let server = cluster.borrowed().start(&[], &Cancel::default()).expect("it starts");
        fs::write(place.path().join("sizes.toml"), SIZES).expect("a file");
        Some(Host { server, cluster, place })
    }

    fn here(&self) -> &Path {
        self.place.path()
    }

    pub fn url(&self) -> String {
        format!("postgres:///postgres?host={}", self.cluster.data().display())
    }

    fn size(&self) -> String {
        let mut client = self.server.connect("test", |_| {}).expect("a session");
        client.query_one("show max_wal_size", &[]).expect("a row").get(0)
    }

    fn databases(&self) -> i64 {
        let mut client = self.server.connect("test", |_| {}).expect("a session");
        client.query_one("select count(*) from pg_database", &[]).expect("a row").get(0)
    }

    fn journals(&self) -> Vec<PathBuf> {
        let directory = self.here().join("state/plumb");
        let names = if directory.exists() { names(&directory) } else { Vec::new() };
        let journals = names.into_iter().filter(|name| name.starts_with("undo-"));
        journals.map(|name| directory.join(name)).collect()
    }

    /// Starts the study, and waits until its first run has ended.
    fn started(&self, bundle: &str) -> Child {
        let url = self.url();
        let words = ["study", "sizes.toml", "--target", &url, "--allow-reload", "--yes", "--bundle", bundle];
        let mut command = command(self.here());
        command.args(words).env("XDG_STATE_HOME", self.here().join("state"));
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
        wait_for(&self.here().join(bundle).join("runs/0001.json"));
        child
    }

    fn run(&self, words: &[&str]) -> Ended {
        let mut command = command(self.here());
        let output = command.args(words).env("XDG_STATE_HOME", self.here().join("state")).output();
        let output = output.expect("it starts");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        Ended { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

#[test]
fn an_interrupted_study_on_a_server_leaves_nothing_and_goes_on_as_its_message_says() {
    let Some(host) = Host::start() else { return };
    let (size, databases) = (host.size(), host.databases());
    let child = host.started("b");
    assert_eq!(host.journals().len(), 1);
    signal("INT", child.id());
    let output = child.wait_with_output().expect("a child");
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert_eq!((host.size(), host.databases(), host.journals()), (size.clone(), databases, Vec::new()));
    let line = said.lines().find(|line| line.contains("interrupted")).expect("a message");
    let advised = line.split('`').nth(1).expect("a command");
    assert!(advised.starts_with("plumb study --resume b --target 'postgres://"), "{said}");
    assert!(advised.ends_with("' --allow-reload"), "{said}");
    let words: Vec<String> =
        advised.split(' ').skip(1).map(|word| word.trim_matches('\'').to_string()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).chain(["--yes"]).collect();
    let resumed = host.run(&words);
    assert!(resumed.code.is_some_and(|code| code != 1 && code != 2), "{resumed:?}");
    assert_eq!((host.size(), host.databases(), host.journals()), (size, databases, Vec::new()));
    // It has the place of its runs, and goes on nowhere else.
    let (code, line) = refused(host.here(), ["study", "--resume", "b"]);
    assert!(code == 2 && line.contains("add --target postgres://"), "{line}");
    let (code, line) = refused(host.here(), ["study", "--resume", "b", "--target", "engine"]);
    assert!(code == 2 && line.contains("--resume: the study began on PostgreSQL"), "{line}");
}

#[test]
fn a_killed_study_on_a_server_is_undone_by_its_journal() {
    let Some(host) = Host::start() else { return };
    let size = host.size();
    let mut child = host.started("b");
    child.kill().expect("kill -9");
    child.wait().expect("a child");
    assert!(["2GB", "3GB"].contains(&host.size().as_str()), "{}", host.size());
    let [journal] = &host.journals()[..] else { panic!("{:?}", host.journals()) };
    let named = journal.to_str().expect("text");
    let asked = host.run(&["undo", named]);
    assert!(
        asked.code == Some(1)
            && asked.stderr.contains("  ALTER SYSTEM RESET max_wal_size, if it is 2GB or 3GB\n"),
        "{asked:?}"
    );
    assert!(asked.stderr.contains("nothing was done: there is no terminal"), "{asked:?}");
    fs::write(host.here().join("q.sql"), "select 1").expect("a file");
    let url = host.url();
    let plans = host.run(&["plans", "--target", &url, "--query", "q.sql"]);
    assert!(plans.code == Some(0) && plans.stderr.contains(&format!("`plumb undo {named}`")), "{plans:?}");
    let mut words = vec!["plans", "--target", &url, "--query", "q.sql", "--json"];
    words.extend(["--set", "work_mem=64kB", "--against", "work_mem=64MB"]);
    let plans = host.run(&words);
    let arms: serde_json::Value = serde_json::from_str(&plans.stdout).expect("JSON");
    for (arm, size) in [(0, "64kB"), (1, "64MB")] {
        let plan = &arms["arms"][arm]["plan"];
        assert_eq!(plan["name"], format!("work_mem={size}"));
        let in_force = format!("work_mem = '{size}'");
        assert!(plan["facts"].to_string().contains(&in_force), "{plan}");
    }
    let undone = host.run(&["undo", named, "--yes"]);
    assert_eq!(undone.code, Some(0), "{undone:?}");
    assert_eq!((host.size(), host.journals()), (size.clone(), Vec::new()));
    // Killed again: the next study puts it back first, then leaves nothing.
    let mut child = host.started("c");
    child.kill().expect("kill -9");
    child.wait().expect("a child");
    let state = host.here().join("state");
    let words = ["study", "sizes.toml", "--target", &url, "--allow-reload", "--blocks", "5", "--bundle", "d"];
    let asked = host.run(&words);
    assert!(asked.stderr.contains("undo a killed study: ALTER SYSTEM RESET max_wal_size"), "{asked:?}");
    assert!(asked.stderr.contains("drop what a killed study of this machine left: plumb_"), "{asked:?}");
    assert!(asked.stderr.contains("nothing was done: there is no terminal"), "{asked:?}");
    assert_eq!(host.journals().len(), 1, "{}", state.display());
    let made = host.run(&words.iter().copied().chain(["--yes"]).collect::<Vec<_>>());
    assert!(made.code.is_some_and(|code| code != 1 && code != 2), "{made:?}");
    assert_eq!((host.size(), host.databases(), host.journals()), (size, 3, Vec::new()));
    let report = fs::read_to_string(host.here().join("d/report.txt")).expect("a report");
    assert!(report.contains("on this machine, receipts: outside and inside"), "{report}");
}

const WORKERS: &str = r#"
target = "postgres"
name = "workers"
title = "x"
question = "x"
workload = "scan"
rows = "2K"
blocks = 5
[settings]
min_parallel_table_scan_size = 0
parallel_setup_cost = 0
parallel_tuple_cost = 0
[[factor]]
name = "max_parallel_workers_per_gather"
levels = ["0", "2"]
[[claim]]
name = "c"
text = "x"
factor = "max_parallel_workers_per_gather"
from = "0"
to = "2"
expect = "faster"
"#;

#[test]
fn plans_of_the_arms_of_a_server_are_kept() {
    let Some(host) = Host::start() else { return };
    fs::write(host.here().join("workers.toml"), WORKERS).expect("a file");
    let url = host.url();
    let made = host.run(&["study", "workers.toml", "--target", &url, "--yes", "--bundle", "b"]);
    assert!(made.code.is_some_and(|code| code != 1 && code != 2), "{made:?}");
    let plans = host.run(&["plans", "b:1", "b:2", "--json"]);
    let arms: serde_json::Value = serde_json::from_str(&plans.stdout).expect("JSON");
    let operations = |arm: usize| arms["arms"][arm]["plan"]["operations"].to_string();
    assert!(!operations(0).contains("Gather"), "{plans:?}");
    assert!(operations(1).contains("Gather"), "{plans:?}");
    let measured = fs::read_to_string(host.here().join("b/runs/0009.json")).expect("a record");
    assert!(!measured.contains("Node Type"), "{measured}");
}

/// Writes a journal with the right hash, as any user can.
fn forged(path: &Path, address: &str) {
    let content = format!(
        "{{\"format\":1,\"server\":\"system 1\",\"address\":\"{address}\",\"made\":\"then\",\"settings\":[{{\"name\":\
         \"max_wal_size\",\"before\":null,\"in_force\":\"1\",\"ours\":[\"1\"]}}]}}"
    );
    let script = "printf '%s\\n' \"$0\"; printf %s \"$0\" | sha256sum | cut -d' ' -f1";
    let text = Command::new("sh").args(["-c", script, &content]).output().expect("sh").stdout;
    fs::write(path, text).expect("a file");
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("a mode");
}

#[test]
fn a_journal_connects_to_nothing_before_it_was_agreed_to() {
    let place = tempfile::tempdir().expect("a directory");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("a mode");
    let url = format!("postgres://me@{}/d", listener.local_addr().expect("an address"));
    let state = place.path().join("state/plumb");
    fs::create_dir_all(&state).expect("a directory");
    let (own, strange) = (state.join("undo-0123456789abcdef.json"), place.path().join("strange.json"));
    forged(&own, &url);
    forged(&strange, &url);
    let run = |path: &Path, more: &[&str]| {
        let mut command = command(place.path());
        command.args(["undo", path.to_str().expect("text")]).args(more);
        command.env("XDG_STATE_HOME", place.path().join("state")).env("PGPASSWORD", "geheim");
        let output = command.output().expect("it starts");
        let said = String::from_utf8(output.stderr).expect("UTF-8");
        assert!(output.status.code() == Some(1) && !said.contains("geheim"), "{said}");
        said
    };
    let said = run(&own, &[]);
    assert!(said.contains(&format!("connect to {url}")) && said.contains("there is no terminal"), "{said}");
    for more in [&[][..], &["--yes"]] {
        let said = run(&strange, more);
        assert!(
            said.contains("a stranger may have written the address in it") && said.contains(&url),
            "{said}"
        );
    }
    assert!(listener.accept().is_err(), "nothing connected");
    // With a target it is asked for, too.
    let said = run(&strange, &["--target", &url]);
    assert!(said.contains("there is no terminal") && listener.accept().is_err(), "{said}");
}

#[test]
fn programs_that_a_study_names_are_never_run_by_root() {
    if plumb_host::rights::caller() != 0 {
        println!("skipped: only root runs servers as another user");
        return;
    }
    let place = tempfile::Builder::new().prefix("plumb-it-").tempdir_in("/var/tmp").expect("a directory");
    let here = place.path();
    fs::set_permissions(here, fs::Permissions::from_mode(0o755)).expect("a mode");
    let (bin, ran) = (here.join("bin"), here.join("ran"));
    fs::create_dir(&bin).expect("a directory");
    fs::write(&ran, "").expect("a file");
    fs::set_permissions(&ran, fs::Permissions::from_mode(0o666)).expect("a mode");
    for name in ["postgres", "initdb", "pg_config", "id", "test"] {
        let script = format!(
            "#!/bin/sh\necho {name} $(/usr/bin/id -u) >> {}\necho 'postgres (PostgreSQL) 15.1'\n",
            ran.display()
        );
        fs::write(bin.join(name), script).expect("a program");
        fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).expect("a mode");
    }
    let named = bin.to_str().expect("text");
    plumb(here, ["study", "pg-sort-memory", "--check", "--server", named]);
    let said = fs::read_to_string(&ran).expect("a file");
    assert!(said.contains("postgres ") && said.lines().all(|line| !line.ends_with(" 0")), "{said}");
    // A directory in which plumb happens to run is no place of programs.
    fs::write(&ran, "").expect("a file");
    for path in ["", ":/usr/bin:/bin", "/usr/bin:/bin:", ".:/usr/bin:/bin"] {
        let mut command = command(&bin);
        command.args(["study", "pg-sort-memory", "--check"]).env("PATH", path);
        command.output().expect("it starts");
    }
    assert_eq!(fs::read_to_string(&ran).expect("a file"), "");
}

#[test]
fn variables_of_clients_do_not_reach_a_server_of_plumbs_own() {
    let place = tempfile::Builder::new().prefix("plumb-it-").tempdir_in("/var/tmp").expect("a directory");
    if let Err(error) = Installation::find(None) {
        println!("skipped: {error}");
        return;
    }
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).expect("a mode");
    let mut command = command(place.path());
    command.args([
        "study",
        "pg-sort-memory",
        "--rows",
        "2K",
        "--blocks",
        "1",
        "--bundle",
        "b",
        "--path",
        ".",
    ]);
    command.env("PGPORT", "55432").env("PGOPTIONS", "-c nonsense=1").env("PGDATA", "/nowhere");
    let output = command.output().expect("it starts");
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(output.status.code().is_some_and(|code| code != 1 && code != 2), "{said}");
}

/// One line asks; a setting that CREATE INDEX does not read is refused before anything is made.
#[test]
fn a_question_on_a_running_server_is_one_line() {
    let Some(host) = Host::start() else { return };
    let url = host.url();
    let study = |factor: &str| {
        let short = ["--rows", "2K", "--blocks", "1", "--yes", "--bundle", "b", "--json"];
        host.run(&[&["study", "large-sort", "--target", &url, "--factor", factor], &short[..]].concat())
    };
    let before = host.databases();
    let wrong = study("work_mem=4MB,64MB");
    assert_eq!(wrong.code, Some(2), "{}", wrong.stderr);
    assert!(wrong.stderr.contains("vary maintenance_work_mem=4MB,64MB"), "{}", wrong.stderr);
    let ended = study("maintenance_work_mem=1MB,64MB");
    let analysis: serde_json::Value = serde_json::from_str(&ended.stdout).expect(&ended.stderr);
    let runs = analysis["runs"].as_array().expect("runs");
    assert!(!runs.is_empty() && analysis["answer"]["sentence"].is_string(), "{}", ended.stderr);
    let set = analysis["study"]["factors"][0]["levels"][0].to_string();
    assert!(set.contains("1MB"), "as PostgreSQL writes it: {set}");
    assert_eq!(host.databases(), before, "its database was dropped");
}

#[test]
fn a_mistyped_address_is_refused_without_its_password() {
    let directory = tempfile::tempdir().expect("a directory");
    for target in
        ["Postgres://u:geheim@h/x", "postgres:/u:geheim@h/x", "u:geheim@h", "postgresql//u:geheim@h/x"]
    {
        for words in [&["study", "pg-sort-memory"][..], &["plans", "--query", "q.sql"]] {
            let (code, line) = refused(directory.path(), words.iter().copied().chain(["--target", target]));
            assert!(code == 2 && !line.contains("geheim"), "{target}: {code} {line}");
            assert!(line.contains("postgres://USER@HOST/DATABASE"), "{target}: {line}");
        }
    }
}

#[test]
fn options_of_a_running_server_are_refused_elsewhere() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    let cases: [(&[&str], i32, &str); 6] = [
        (&["study", "large-sort", "--allow-reload"], 2, "--target"),
        (
            &["study", "pg-sort-memory", "--target", "postgres", "--allow-reload"],
            2,
            "--allow-reload: only a study",
        ),
        (&["study", "pg-sort-memory", "--target", "postgres", "--yes"], 2, "--yes: only a study on a server"),
        (&["undo", "none.json"], 1, "none.json"),
        (&["undo", "."], 1, "expected a regular file"),
        (&["undo", "visit-plumb_1.json"], 1, "`plumb clean` drops the database"),
    ];
    for (arguments, code, expected) in cases {
        let (found, line) = refused(here, arguments.iter().copied());
        assert!(found == code && line.contains(expected), "{arguments:?}: {found} {line}");
    }
    fs::write(here.join("torn.json"), "{\"format\":1,\n").expect("a file");
    let (_, line) = refused(here, ["undo", "torn.json", "--yes"]);
    assert!(line.contains("torn.json: it is no whole undo journal"), "{line}");
    assert!(plumb(here, ["study", "large-sort", "--target", "engine", "--yes"]).code == Some(2));
}
