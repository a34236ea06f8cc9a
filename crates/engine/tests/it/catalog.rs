//! What a database holds, across its closing; what it refuses; what it leaves.

use crate::support::{
    Rows, SMALLEST, assert_green, assert_no_space_leaks, build, build_on, create_in, in_memory, index_rows,
    load, open_in, scan_rows, settings, try_create_in,
};
use plumb_engine::drop::drop_named;
use plumb_engine::storage::control::Dropped;
use plumb_engine::storage::tablespace::{Purpose, Tablespace};
use plumb_engine::{EngineError, Instance, Layout};
use plumb_events::Cancel;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn names(directory: &Path) -> Vec<String> {
    let entry = |entry: std::io::Result<fs::DirEntry>| {
        entry.expect("an entry").file_name().to_string_lossy().into_owned()
    };
    let mut names: Vec<String> = fs::read_dir(directory).expect("a directory").map(entry).collect();
    names.sort();
    names
}

#[test]
fn tables_and_indexes_are_there_again_when_the_database_is_opened() {
    let directory = tempfile::tempdir().expect("a directory");
    let instance = create_in(directory.path(), &[]);
    load(&instance, "t", &Rows::uniform(20_000, 1)).expect("loaded");
    load(&instance, "other", &Rows::uniform(10, 1)).expect("loaded");
    build(&instance).expect("built");
    build_on(&instance, ("j", "t"), &[("t", true), ("k", true)]).expect("built");
    let (rows, index) = (scan_rows(&instance, "t"), index_rows(&instance, "j"));
    drop(instance);
    for _ in 0..2 {
        let instance = open_in(directory.path()).expect("opened");
        {
            let catalog = instance.catalog();
            let tables: Vec<&str> = catalog.tables.iter().map(|table| table.name.as_str()).collect();
            let indexes: Vec<&str> = catalog.indexes.iter().map(|index| index.name.as_str()).collect();
            assert_eq!((tables, indexes), (vec!["T", "OTHER"], vec!["I", "J"]));
        }
        assert_eq!(scan_rows(&instance, "t"), rows);
        assert_eq!(index_rows(&instance, "j"), index);
        assert_green(&instance, "t");
        assert_green(&instance, "other");
        assert_no_space_leaks(&instance);
    }
}

#[test]
fn what_is_loaded_after_a_reopening_does_not_hurt_what_was_there() {
    let directory = tempfile::tempdir().expect("a directory");
    drop(create_in(directory.path(), &[]));
    for round in 0..4 {
        let instance = open_in(directory.path()).expect("opened");
        load(&instance, &format!("t{round}"), &Rows::uniform(5000 * round, round)).expect("loaded");
        build_on(&instance, (&format!("i{round}"), &format!("t{round}")), &[("k", false)]).expect("built");
        (0..=round).for_each(|table| assert_green(&instance, &format!("t{table}")));
        assert_no_space_leaks(&instance);
    }
}

#[test]
fn a_database_in_use_is_not_opened_again_in_this_process() {
    let directory = tempfile::tempdir().expect("a directory");
    let instance = create_in(directory.path(), &[]);
    let error = open_in(directory.path()).expect_err("it is in use");
    assert!(matches!(error, EngineError::InUse { .. }), "{error}");
    let text = format!(
        "database {} is in use by process {}: wait until it ends",
        directory.path().display(),
        std::process::id()
    );
    assert_eq!(error.to_string(), text);
    drop(instance);
    let first = open_in(directory.path()).expect("free now");
    let error = open_in(directory.path()).expect_err("it is in use");
    assert_eq!(error.to_string(), text);
    drop(first);
}

const HELD: &str = "PLUMB_TEST_HELD_DATABASE";

#[test]
fn a_database_in_use_is_not_opened_by_another_process() {
    let directory = tempfile::tempdir().expect("a directory");
    let instance = create_in(directory.path(), &[]);
    let open = || {
        let output = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "catalog::the_other_process_opens_what_it_is_told_to", "--nocapture"])
            .env(HELD, directory.path())
            .output()
            .expect("this program can be started");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let text = open();
    let expected = format!("is in use by process {}: wait until it ends", std::process::id());
    assert!(text.contains(&expected), "{text}");
    drop(instance);
    let text = open();
    assert!(text.contains("the other process opened it"), "{text}");
}

/// Not a test but the other process of the one above.
#[test]
fn the_other_process_opens_what_it_is_told_to() {
    let Some(home) = std::env::var_os(HELD) else { return };
    match open_in(Path::new(&home)) {
        Ok(_) => println!("the other process opened it"),
        Err(error) => println!("{error}"),
    }
}

#[test]
fn a_table_or_index_that_exists_is_refused_and_left_as_it_is() {
    let instance = in_memory(&[]);
    load(&instance, "t", &Rows::uniform(3000, 1)).expect("loaded");
    build(&instance).expect("built");
    let (rows, index) = (scan_rows(&instance, "t"), index_rows(&instance, "i"));
    let more = Rows::uniform(10, 2);
    let on_k = |name| build_on(&instance, (name, "t"), &[("k", false)]).map(|_| ());
    let refused = [
        (load(&instance, "T", &more).map(|_| ()), "table T"),
        (load(&instance, "i", &more).map(|_| ()), "index I"),
        (on_k("I"), "index I"),
        (on_k("t"), "table T"),
    ];
    for (result, what) in refused {
        let text = format!("{what} exists already: choose another name, or remove it first");
        assert_eq!(result.expect_err("it exists").to_string(), text);
    }
    assert_eq!(scan_rows(&instance, "t"), rows);
    assert_eq!(index_rows(&instance, "i"), index);
    assert_green(&instance, "t");
    assert_no_space_leaks(&instance);
}

#[test]
fn a_drop_gives_back_the_space() {
    let instance = in_memory(&[("sort_area_size", "64K"), ("sort_read_fac", "5"), ("parallel_degree", "1")]);
    let rows = Rows::uniform(50_000, 1);
    let fill = || {
        load(&instance, "t", &rows).expect("loaded");
        build(&instance).expect("built");
        build_on(&instance, ("j", "t"), &[("t", false), ("k", false)]).expect("built");
        assert_green(&instance, "t");
        instance.tablespaces().iter().map(Tablespace::size).collect::<Vec<_>>()
    };
    let sizes = || [Purpose::Users, Purpose::Indx].map(|purpose| instance.tablespace(purpose).size());
    let first = sizes();
    let grown = fill();
    for _ in 0..2 {
        let dropped = drop_named(&instance, "t").expect("dropped");
        let indexes = vec!["I".to_string(), "J".to_string()];
        assert_eq!(dropped, Dropped { table: Some("T".to_string()), indexes });
        assert_eq!(sizes(), first, "the disk has the space back");
        assert_eq!(fill(), grown);
    }
    assert_eq!(drop_named(&instance, "J").expect("dropped").indexes, ["J"]);
    assert_green(&instance, "t");
    drop_named(&instance, "t").expect("dropped");
    assert!(instance.catalog().tables.is_empty() && instance.catalog().indexes.is_empty());
    assert_no_space_leaks(&instance);
}

#[test]
fn a_drop_is_still_one_when_the_database_is_opened_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let instance = create_in(directory.path(), &[]);
    load(&instance, "t", &Rows::uniform(3000, 1)).expect("loaded");
    load(&instance, "kept", &Rows::uniform(3000, 2)).expect("loaded");
    build(&instance).expect("built");
    drop_named(&instance, "t").expect("dropped");
    drop(instance);
    let instance = open_in(directory.path()).expect("opened");
    assert_eq!(instance.catalog().tables.len(), 1);
    assert!(instance.catalog().indexes.is_empty());
    assert_green(&instance, "kept");
    assert_no_space_leaks(&instance);
}

/// Creates with a second directory that is in the way; nothing may be left.
fn check_failed_create(second: &Path, parent: &Path, layout: impl FnOnce(PathBuf) -> Layout) {
    let before = names(parent);
    let result = Instance::create(&layout(second.to_path_buf()), settings(&[]), SMALLEST, Cancel::default());
    let error = result.expect_err("the second directory cannot be used");
    assert_eq!(error.to_string().lines().count(), 1, "{error}");
    assert!(error.to_string().contains(&second.display().to_string()), "{error}");
    assert_eq!(names(parent), before, "{error}");
}

#[test]
fn a_create_that_fails_midway_leaves_nothing_behind() {
    let directory = tempfile::tempdir().expect("a directory");
    let home = directory.path().join("deep/down/db");
    let first = directory.path().join("first");
    // A file where a directory should be.
    let second = directory.path().join("second");
    fs::write(&second, "in the way").expect("written");
    let with_second =
        |users: Vec<PathBuf>, temp: Vec<PathBuf>| Layout { users, temp, ..Layout::in_one(home.clone()) };
    check_failed_create(&second, directory.path(), |second| {
        with_second(vec![first.clone(), second], vec![home.clone()])
    });
    fs::remove_file(&second).expect("removed");
    // A data file that is there already, after other data files were made.
    fs::create_dir(&second).expect("made");
    fs::write(second.join("temp02.dbf"), "somebody's").expect("written");
    check_failed_create(&second, directory.path(), |second| {
        with_second(vec![first.clone()], vec![home.clone(), second])
    });
    assert_eq!(fs::read(second.join("temp02.dbf")).expect("still there"), b"somebody's");
}

#[test]
fn a_create_that_is_interrupted_leaves_nothing_behind() {
    let directory = tempfile::tempdir().expect("a directory");
    let cancel = Cancel::default();
    cancel.request();
    let layout = Layout::in_one(directory.path().join("db"));
    let result = Instance::create(&layout, settings(&[("filesystemio_options", "none")]), SMALLEST, cancel);
    assert!(matches!(result, Err(EngineError::Interrupted)));
    assert!(names(directory.path()).is_empty());
}

/// Found by reading: a create of files in memory that failed removed files of the
/// same names on disk, because it noted its paths for removal whatever the disk.
#[test]
fn a_failed_create_in_memory_does_not_touch_files_on_disk() {
    let directory = tempfile::tempdir().expect("a directory");
    let instance = create_in(directory.path(), &[]);
    load(&instance, "t", &Rows::uniform(100, 1)).expect("loaded");
    drop(instance);
    let before = names(directory.path());
    let layout = Layout::in_one(directory.path().to_path_buf());
    for spins in 0..40 {
        let cancel = Cancel::default();
        let request = cancel.clone();
        // Sooner or later it comes between two files.
        let other = std::thread::spawn(move || {
            (0..spins * 2000).for_each(|_| std::hint::spin_loop());
            request.request();
        });
        let result = Instance::create(&layout, settings(&[("io_method", "null")]), SMALLEST, cancel);
        assert!(matches!(result, Ok(_) | Err(EngineError::Interrupted)));
        other.join().expect("it only asks");
        assert_eq!(names(directory.path()), before);
    }
    assert_green(&open_in(directory.path()).expect("opened"), "t");
}

/// Found by reading: the second of two creates at the same time removed the lock
/// file of the first, after which a third could lock a new one.
#[test]
fn a_create_that_finds_the_directory_locked_leaves_the_lock_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let lock = directory.path().join("lock");
    fs::write(&lock, "4711").expect("written");
    let held = fs::File::open(&lock).expect("there");
    held.try_lock().expect("nobody else has it");
    let error = try_create_in(directory.path(), &[]).expect_err("somebody else is making one");
    assert!(error.to_string().contains("is in use by process 4711: "), "{error}");
    assert_eq!(names(directory.path()), ["lock"]);
}

#[test]
fn a_database_is_not_made_over_another() {
    let directory = tempfile::tempdir().expect("a directory");
    let instance = create_in(directory.path(), &[]);
    load(&instance, "t", &Rows::uniform(100, 1)).expect("loaded");
    drop(instance);
    let error = try_create_in(directory.path(), &[]).expect_err("there is one already");
    assert!(matches!(error, EngineError::Exists { kind: "database", .. }), "{error}");
    assert_green(&open_in(directory.path()).expect("opened"), "t");
}

#[test]
fn destroy_leaves_nothing_behind() {
    let directory = tempfile::tempdir().expect("a directory");
    let [home, users, temp] = ["home", "users", "temp"].map(|name| directory.path().join(name));
    let layout =
        Layout { users: vec![users, home.clone()], temp: vec![temp], indx: vec![home.clone()], home };
    let settings = settings(&[("filesystemio_options", "none"), ("data_files", "3")]);
    let instance = Instance::create(&layout, settings, SMALLEST, Cancel::default()).expect("created");
    load(&instance, "t", &Rows::uniform(20_000, 1)).expect("loaded");
    build(&instance).expect("built");
    assert_green(&instance, "t");
    instance.destroy().expect("removed");
    assert_eq!(names(directory.path()), Vec::<String>::new());
}

#[test]
fn destroy_leaves_what_is_not_its_own() {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("letter.txt"), "mine").expect("written");
    create_in(directory.path(), &[]).destroy().expect("removed");
    assert_eq!(names(directory.path()), ["letter.txt"]);
}
