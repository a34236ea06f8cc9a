//! Order of durable writes of a creation, and creations that are killed.

use crate::support::{Rows, assert_green, build, create_in, load, open_in, settings, try_create_in};
use plumb_engine::instance::stands;
use plumb_engine::{EngineError, Instance, Layout};
use plumb_events::Cancel;
use plumb_io::sim::{DurableCall, record_durable_calls};
use plumb_units::Bytes;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

fn names(directory: &Path) -> Vec<String> {
    let entry = |entry: std::io::Result<fs::DirEntry>| {
        entry.expect("an entry").file_name().to_string_lossy().into_owned()
    };
    let mut names: Vec<String> = fs::read_dir(directory).expect("a directory").map(entry).collect();
    names.sort();
    names
}

/// Returns calls in words, with paths below a directory.
fn shown(calls: &[DurableCall], directory: &Path) -> Vec<String> {
    let name = |path: &Path| path.strip_prefix(directory).expect("below it").display().to_string();
    let word = |call: &DurableCall| match call {
        DurableCall::SyncFile(path) => format!("sync {}", name(path)),
        DurableCall::SyncDirectory(path) => format!("sync {}/", name(path)),
        DurableCall::Replace(path) => format!("replace {}", name(path)),
    };
    calls.iter().map(word).collect()
}

/// Regression: neither data files nor their directories were synced, and a load relied on them.
#[test]
fn files_are_durable_before_a_database_or_table_exists() {
    let directory = tempfile::tempdir().expect("a directory");
    let home = directory.path().join("new/db");
    let (instance, calls) = record_durable_calls(|| create_in(&home, &[]));
    let expected = [
        "sync /",
        "sync new/",
        "replace new/db/control.json",
        "sync new/db/",
        "sync new/db/users01.dbf",
        "sync new/db/users02.dbf",
        "sync new/db/indx01.dbf",
        "sync new/db/indx02.dbf",
        "sync new/",
        "sync new/db/",
        "replace new/db/control.json",
        "sync new/db/",
    ];
    assert_eq!(shown(&calls, directory.path()), expected);
    let load = |rows| record_durable_calls(|| load(&instance, &format!("t{rows}"), &Rows::uniform(rows, 1)));
    let entered =
        ["sync new/db/users01.dbf", "sync new/db/users02.dbf", "replace new/db/control.json", "sync new/db/"];
    for rows in [10, 200_000] {
        let (loaded, calls) = load(rows);
        loaded.expect("loaded");
        assert_eq!(shown(&calls, directory.path()), entered, "{rows} rows");
    }
}

#[test]
fn what_is_made_anew_is_durable_too() {
    let directory = tempfile::tempdir().expect("a directory");
    let home = directory.path().join("db");
    drop(create_in(&home, &[]));
    fs::remove_file(home.join("indx01.dbf")).expect("removed");
    let (opened, calls) = record_durable_calls(|| open_in(&home));
    opened.expect("made anew");
    let expected = ["sync db/indx01.dbf", "sync db/", "replace db/control.json", "sync db/"];
    assert_eq!(shown(&calls, directory.path()), expected);
}

const MAKES: &str = "PLUMB_TEST_MAKES_DATABASE";

/// Starts a process that makes a database with slow requests.
fn maker(home: &Path) -> Child {
    Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "creation::the_other_process_makes_a_database_slowly", "--nocapture"])
        .env(MAKES, home)
        .stdout(Stdio::null())
        .spawn()
        .expect("this program can be started")
}

/// Runs as the other process of the tests below; does nothing on its own.
#[test]
fn the_other_process_makes_a_database_slowly() {
    let Some(home) = std::env::var_os(MAKES) else { return };
    let layout = Layout::in_one(PathBuf::from(home));
    let slow = settings(&[("filesystemio_options", "none"), ("debug_request_delay", "50000000")]);
    let size = Bytes(8 * Bytes::M);
    let sizes = plumb_engine::instance::InitialSizes { users: size, temp: size, indx: size };
    Instance::create(&layout, slow, sizes, Cancel::default()).expect("made");
}

/// Kills the process once the directory has this number of names. Regression: 6 of 50 kills left a
/// directory that no command could use or repair.
fn kill_at(home: &Path, names_there: usize) {
    let mut child = maker(home);
    for _ in 0..3000 {
        if home.is_dir() && names(home).len() >= names_there {
            break;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().expect("killed");
    child.wait().expect("ended");
}

#[test]
fn a_killed_creation_is_removed_and_made_again() {
    for names_there in [1, 2, 3, 5, 7, 8] {
        let directory = tempfile::tempdir().expect("a directory");
        let home = directory.path().join("db");
        kill_at(&home, names_there);
        // Opening to read must not remove anything.
        let error = Instance::open_to_read(&home, settings(&[]), Cancel::default()).expect_err("none stands");
        assert!(matches!(error, EngineError::NoDatabase { .. }), "{error}");
        let left = names(&home);
        assert!(!stands(&home).expect("mended"), "{left:?}");
        assert!(
            names(&home).iter().all(|name| matches!(name.as_str(), "lock" | "control.json.new")),
            "{left:?}"
        );
        let instance = create_in(&home, &[]);
        load(&instance, "t", &Rows::uniform(3000, 1)).expect("loaded");
        build(&instance).expect("built");
        assert_green(&instance, "t");
    }
}

#[test]
fn a_creation_that_is_under_way_is_left_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let home = directory.path().join("db");
    let mut child = maker(&home);
    while !home.join("control.json").exists() {
        std::thread::sleep(Duration::from_millis(2));
    }
    let expected = format!("is in use by process {}", child.id());
    for error in [
        open_in(&home).expect_err("it is being made"),
        try_create_in(&home, &[]).expect_err("it is being made"),
    ] {
        assert!(error.to_string().contains(&expected), "{error}");
    }
    child.kill().expect("killed");
    child.wait().expect("ended");
    assert!(!stands(&home).expect("mended"));
}

#[test]
fn data_files_without_a_control_file_are_not_removed() {
    let directory = tempfile::tempdir().expect("a directory");
    let home = directory.path().join("db");
    load(&create_in(&home, &[]), "t", &Rows::uniform(300, 1)).expect("loaded");
    let control = fs::read(home.join("control.json")).expect("a control file");
    fs::remove_file(home.join("control.json")).expect("lost");
    let before = names(&home);
    let read = || Instance::open_to_read(&home, settings(&[]), Cancel::default());
    let expected = format!("{} has no control file, but there is {}/", home.display(), home.display());
    for error in [
        read().expect_err("lost"),
        open_in(&home).expect_err("lost"),
        try_create_in(&home, &[]).expect_err("not over them"),
    ] {
        assert!(error.to_string().starts_with(&expected), "{error}");
        assert!(
            error.to_string().contains("restore control.json from a copy, or move the data files away"),
            "{error}"
        );
    }
    assert_eq!(names(&home), before);
    fs::write(home.join("control.json"), control).expect("restored");
    assert_green(&open_in(&home).expect("whole again"), "t");
}

/// A file made after the creation was planned, or by another program, is
/// not the creation's to remove.
#[test]
fn a_half_made_copy_spares_files_outside_its_home() {
    let directory = tempfile::tempdir().expect("a directory");
    let [home, data, copy] = ["home", "data", "copy"].map(|name| directory.path().join(name));
    let layout = Layout { users: vec![data.clone()], ..Layout::in_one(home.clone()) };
    let settings = settings(&[("filesystemio_options", "none")]);
    drop(Instance::create(&layout, settings, crate::support::SMALLEST, Cancel::default()).expect("created"));
    // The control file as it was while the files were made.
    let control = fs::read_to_string(home.join("control.json")).expect("a control file");
    let document = control.split_once('\n').expect("two parts").1;
    let creating = format!("{{\"creating\":{{\"home\":{:?}}}}}", home.display().to_string());
    let document = document.replace("\"state\":\"open\"", &format!("\"state\":{creating}"));
    let sum = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, document.as_bytes());
    fs::create_dir(&copy).expect("made");
    fs::write(copy.join("control.json"), format!("{sum:08x}\n{document}")).expect("written");
    assert!(!stands(&copy).expect("mended"));
    assert_eq!(names(&data), ["users01.dbf", "users02.dbf"]);
    open_in(&home).expect("the original is as it was");
}

const RELATIVE: &str = "PLUMB_TEST_RELATIVE_HOME";

/// Runs as the other process of the test below, which gives it its directory.
#[test]
fn the_other_process_makes_databases_at_relative_paths() {
    if std::env::var_os(RELATIVE).is_none() {
        return;
    }
    for home in ["db", "x/y/z", "./dot", "here/../there"] {
        fs::create_dir_all("here").expect("a directory");
        let home = Path::new(home);
        load(&create_in(home, &[]), "t", &Rows::uniform(300, 1)).expect("loaded");
        assert_green(&open_in(home).expect("it is there"), "t");
    }
}

#[test]
fn a_database_is_made_at_any_relative_path() {
    let directory = tempfile::tempdir().expect("a directory");
    let ended = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "creation::the_other_process_makes_databases_at_relative_paths", "--nocapture"])
        .env(RELATIVE, "1")
        .current_dir(directory.path())
        .output()
        .expect("this program can be started");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    for home in ["db", "x/y/z", "dot", "there"] {
        assert!(directory.path().join(home).join("control.json").is_file(), "{home}");
    }
}
