//! Servers: made, started, refused, and gone.

use plumb_events::Cancel;
use plumb_postgres::PostgresError;
use plumb_postgres::cluster::{Cluster, Creation};
use plumb_postgres::installation::Installation;
use rustix::process::{Signal, kill_process};
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

/// Returns the directory of another server than the installed one, for these tests.
pub fn asked() -> Option<String> {
    std::env::var("PLUMB_POSTGRES").ok()
}

/// Returns the server of these tests; `None` skips a test.
pub fn installed() -> Option<Installation> {
    match Installation::find(asked().as_deref()) {
        Ok(found) => Some(found),
        Err(error) if std::env::var_os("PLUMB_REQUIRE_POSTGRES").is_some() => panic!("{error}"),
        Err(error) => {
            println!("skipped: {error}");
            None
        }
    }
}

/// A directory that the server's user can reach, whatever the user's own.
pub fn place() -> TempDir {
    use std::os::unix::fs::PermissionsExt;
    let place = tempfile::Builder::new().prefix("plumb-it-").tempdir_in("/var/tmp").expect("a directory");
    std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o755)).expect("a mode");
    place
}

pub const PLAIN: Creation = Creation { checksums: None, segment_megabytes: None };

pub fn pairs(given: &[(&str, &str)]) -> Vec<(String, String)> {
    given.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

fn is_empty(directory: &Path) -> bool {
    std::fs::read_dir(directory).expect("a directory").next().is_none()
}

#[test]
fn a_server_starts_answers_and_leaves_nothing() {
    let Some(installation) = installed() else { return };
    let place = place();
    // Deeper than a socket's path may be.
    let deep = place.path().join("d".repeat(120));
    std::fs::create_dir(&deep).expect("a directory");
    let cluster = Cluster::create(&deep, "1", &installation, &PLAIN).expect("a cluster");
    let borrowed = cluster.borrowed();
    let given = pairs(&[("shared_buffers", "16MB")]);
    let server = borrowed.start(&given, &Cancel::default()).expect("it starts");
    let mut client = server.connect("test", |_| {}).expect("a session");
    let row = client
        .query_one("select current_setting('shared_buffers'), current_setting('listen_addresses')", &[]);
    let row = row.expect("a row");
    assert_eq!((row.get::<_, String>(0), row.get::<_, String>(1)), ("16MB".to_string(), String::new()));
    drop(client);
    server.stop().expect("a clean stop");
    let effective = borrowed.effective(&pairs(&[("work_mem", "4096kB")]), &["work_mem", "shared_buffers"]);
    assert_eq!(effective.expect("values"), ["4096", "16384"]);
    drop(cluster);
    assert!(is_empty(&deep));
}

#[test]
fn a_refused_setting_and_a_server_that_dies_are_one_line_each() {
    let Some(installation) = installed() else { return };
    let place = place();
    let cluster = Cluster::create(place.path(), "2", &installation, &PLAIN).expect("a cluster");
    let borrowed = cluster.borrowed();
    let error =
        borrowed.start(&pairs(&[("shared_buffers", "1")]), &Cancel::default()).expect_err("too small");
    let text = error.to_string();
    assert!(matches!(error, PostgresError::NoStart { .. }), "{text}");
    assert!(text.contains("with shared_buffers=1: ") && text.contains("outside the valid range"), "{text}");
    assert!(!text.contains('\n'));
    let error = borrowed.effective(&pairs(&[("no_such_setting", "1")]), &["work_mem"]).expect_err("unknown");
    assert!(error.to_string().contains("no_such_setting"), "{error}");

    let server = borrowed.start(&[], &Cancel::default()).expect("it starts");
    let mut client = server.connect("test", |_| {}).expect("a session");
    kill_process(server.pid(), Signal::KILL).expect("killed");
    let error = client.batch_execute("select pg_sleep(60)").expect_err("it is gone");
    let error = server.failed("an index is built", &error);
    assert!(matches!(error, PostgresError::Died { .. }), "{error}");
    assert_eq!(
        error.to_string(),
        "the server ended while an index is built: signal 9 killed its first process"
    );
    drop((client, server, cluster));
    assert!(is_empty(place.path()));
}

/// Returns the processes that work in a directory.
pub fn processes_in(directory: &Path) -> usize {
    let entries = std::fs::read_dir("/proc").expect("a directory").flatten();
    let works = |entry: &std::fs::DirEntry| {
        std::fs::read_link(entry.path().join("cwd")).is_ok_and(|there| there == directory)
    };
    entries.filter(works).count()
}

/// True if the kernel lists a segment of shared memory that this process made.
pub fn has_segment(maker: i32) -> bool {
    let list = std::fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    list.lines().any(|line| line.split_whitespace().nth(4) == Some(&maker.to_string()))
}

#[test]
fn sessions_and_memory_of_a_killed_server_are_removed_with_it() {
    let Some(installation) = installed() else { return };
    let place = place();
    let cluster = Cluster::create(place.path(), "4", &installation, &PLAIN).expect("a cluster");
    let data = cluster.data();
    let server = cluster.borrowed().start(&[], &Cancel::default()).expect("it starts");
    let maker = server.pid().as_raw_nonzero().get();
    let mut client = server.connect("test", |_| {}).expect("a session");
    std::thread::scope(|scope| {
        // A session that never waits does not notice the end of its server.
        let busy = "do $$ declare i bigint := 0; begin loop i := i + 1; end loop; end $$";
        scope.spawn(move || client.batch_execute(busy));
        std::thread::sleep(Duration::from_millis(200));
        kill_process(server.pid(), Signal::KILL).expect("killed");
        std::thread::sleep(Duration::from_millis(200));
        assert!(processes_in(&data) > 0 && has_segment(maker), "it left both");
        drop(server);
        assert!(processes_in(&data) == 0 && !has_segment(maker), "both are gone");
    });
    drop(cluster);
    assert!(is_empty(place.path()));
}

#[test]
fn a_path_that_the_servers_user_cannot_reach_is_refused_and_left_as_it_was() {
    if !rustix::process::geteuid().is_root() || installed().is_none() {
        println!("skipped: only root runs the server as another user");
        return;
    }
    let place = place();
    let closed = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(place.path(), closed).expect("a mode");
    let installation = installed().expect("found before");
    let error =
        Cluster::create(place.path(), "3", &installation, &PLAIN).expect_err("out of reach").to_string();
    assert!(error.contains("cannot reach it; open the directories above it (chmod o+x)"), "{error}");
    assert!(is_empty(place.path()));
}
