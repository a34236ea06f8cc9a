//! Log files on other disks: where they lie, whose they are, and what copies of a database may do
//! with them.

use crate::support::{create_in, open_in, settings};
use plumb_engine::backup::{self, Verification};
use plumb_engine::instance::Cancel;
use plumb_engine::transaction::Transactions;
use plumb_engine::{EngineError, Instance};
use plumb_events::Role;
use plumb_types::{Column, ColumnType, Number, Schema, Value};
use std::fs;
use std::path::{Path, PathBuf};

/// A directory with a database `db` whose log files lie in `first` and `second`.
struct Places {
    directory: tempfile::TempDir,
}

impl Places {
    fn new() -> Places {
        let places = Places { directory: tempfile::tempdir().expect("a directory") };
        ["first", "second"].iter().for_each(|name| fs::create_dir(places.at(name)).expect("made"));
        places
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn create(&self) -> Instance {
        let paths = ["first", "second"].map(|name| self.at(name).display().to_string());
        let log = [("log_path", &*paths[0]), ("log_mirror_path", &*paths[1]), ("log_file_members", "2")];
        create_in(&self.at("db"), &[&log[..], &SMALL].concat())
    }

    fn open(&self, name: &str) -> Result<Instance, EngineError> {
        open_in(&self.at(name))
    }

    fn names(&self, of: &str) -> Vec<String> {
        let entries = fs::read_dir(self.at(of)).expect("a directory").flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

const SMALL: [(&str, &str); 2] = [("log_file_size", "1M"), ("log_buffer", "256K")];

/// Opens the transactions and commits rows with these ids; gives all ids that are there.
fn commit(instance: &Instance, ids: std::ops::Range<i64>) -> Result<Vec<i64>, EngineError> {
    let session = instance.recorder.session(Role::User);
    let transactions = Transactions::open(instance, &session)?;
    if instance.catalog().holder_of("T").is_none() {
        let columns = vec![Column::required("ID", ColumnType::NUMBER)];
        transactions.create_table(&session, "T", &Schema::new(columns).expect("a schema"), &[])?;
    }
    let mut connection = transactions.connect(&session);
    let mut transaction = connection.begin();
    for id in ids {
        let number = Value::Number(Number::new(i128::from(id), 0).expect("small"));
        transaction.insert("T", &[number])?;
        transaction.commit_and_chain()?;
    }
    let mut found = Vec::new();
    transaction.scan("T", |row| {
        let Value::Number(id) = &row.values[0] else { panic!("a number") };
        found.push(id.to_string().parse().expect("an id"));
        Ok(())
    })?;
    found.sort_unstable();
    Ok(found)
}

fn copy_directory(from: &Path, to: &Path) {
    fs::create_dir(to).expect("made");
    for entry in fs::read_dir(from).expect("a directory").flatten() {
        fs::copy(entry.path(), to.join(entry.file_name())).expect("copied");
    }
}

#[test]
fn log_files_lie_where_the_settings_say_and_go_with_the_database() {
    let places = Places::new();
    let instance = places.create();
    assert_eq!(commit(&instance, 0..10).expect("committed"), (0..10).collect::<Vec<_>>());
    let id = format!("{:08x}", instance.catalog().database.0 >> 96);
    let expected: Vec<String> = (1..=3).map(|number| format!("redo{number:02}_{id}.log")).collect();
    assert_eq!(places.names("first"), expected);
    assert_eq!(places.names("second"), expected);
    assert!(places.names("db").iter().all(|name| !name.ends_with(".log")), "{:?}", places.names("db"));
    drop(instance);
    let instance = places.open("db").expect("opened");
    assert_eq!(commit(&instance, 10..20).expect("recovered"), (0..20).collect::<Vec<_>>());
    instance.destroy().expect("removed");
    assert_eq!((places.names("first"), places.names("second")), (Vec::new(), Vec::new()));
}

#[test]
fn two_databases_keep_their_logs_in_one_directory() {
    let places = Places::new();
    let [one, two] = ["one", "two"].map(|name| {
        let path = places.at("first").display().to_string();
        create_in(&places.at(name), &[&[("log_path", &*path)][..], &SMALL].concat())
    });
    commit(&one, 0..5).expect("committed");
    commit(&two, 0..7).expect("committed");
    drop((one, two));
    assert_eq!(places.names("first").len(), 6);
    for (name, rows) in [("one", 5), ("two", 7)] {
        assert_eq!(commit(&places.open(name).expect("opened"), 0..0).expect("recovered").len(), rows);
    }
}

/// `cp -a` of a directory whose log files are elsewhere: both would recover and continue one log.
#[test]
fn a_copy_does_not_get_the_originals_log_and_a_moved_database_does() {
    let places = Places::new();
    drop(commit(&places.create(), 0..10).expect("committed"));
    copy_directory(&places.at("db"), &places.at("copy"));
    let copy = places.open("copy").expect("its data files are its own");
    let error = commit(&copy, 0..1).expect_err("the log is the original's").to_string();
    assert!(
        error.contains("belongs to the database in ")
            && error.ends_with("open the original, or load the data anew"),
        "{error}"
    );
    drop(copy);
    assert_eq!(commit(&places.open("db").expect("opened"), 10..20).expect("as it was").len(), 20);
    fs::rename(places.at("db"), places.at("moved")).expect("moved");
    assert_eq!(commit(&places.open("moved").expect("opened"), 20..30).expect("it is its own").len(), 30);
    // The copy is still none of the database that has moved.
    let error = commit(&places.open("copy").expect("opened"), 0..1).expect_err("refused").to_string();
    assert!(error.contains(&places.at("moved").display().to_string()), "{error}");
}

#[test]
fn a_log_that_is_open_is_not_opened_by_another_name() {
    let places = Places::new();
    let instance = places.create();
    let session = instance.recorder.session(Role::User);
    let transactions = Transactions::open(&instance, &session).expect("a log");
    // A lock file of its own: as a copy that was made while the database was open.
    copy_directory(&places.at("db"), &places.at("copy"));
    let copy = places.open("copy").expect("its data files are its own");
    let error = commit(&copy, 0..1).expect_err("in use").to_string();
    assert!(error.contains("log file ") && error.contains(" is in use by another process"), "{error}");
    drop((transactions, copy));
}

#[test]
fn a_log_file_within_the_home_that_a_copy_would_reach_too_is_refused() {
    for name in ["redo01.log", "redo.ctl"] {
        let directory = tempfile::tempdir().expect("a directory");
        let home = directory.path().join("db");
        commit(&create_in(&home, &SMALL), 0..10).expect("committed");
        let [own, elsewhere] = [home.join(name), directory.path().join(name)];
        fs::rename(&own, &elsewhere).expect("moved");
        std::os::unix::fs::symlink(&elsewhere, &own).expect("a link");
        let error = commit(&open_in(&home).expect("opened"), 0..0).expect_err(name).to_string();
        assert!(error.contains(name) && error.contains("it is a link"), "{error}");
        fs::remove_file(&own).expect("removed");
        fs::hard_link(&elsewhere, &own).expect("a second name");
        let error = commit(&open_in(&home).expect("opened"), 0..0).expect_err(name).to_string();
        assert!(error.contains("it has 2 names"), "{error}");
        fs::remove_file(&elsewhere).expect("removed");
        assert_eq!(commit(&open_in(&home).expect("opened"), 0..0).expect("its own again").len(), 10);
    }
}

#[test]
fn what_lies_in_the_place_of_a_log_file_is_not_removed() {
    let places = Places::new();
    let instance = places.create();
    let name = format!("redo02_{:08x}.log", instance.catalog().database.0 >> 96);
    fs::write(places.at("first").join(&name), "a letter").expect("written");
    let error = commit(&instance, 0..1).expect_err("in the way").to_string();
    assert!(error.contains("does not say that it is this database's; move it away"), "{error}");
    assert_eq!(fs::read_to_string(places.at("first").join(&name)).expect("there"), "a letter");
    fs::remove_file(places.at("first").join(&name)).expect("removed");
    drop(instance);
    // What the failed attempt had made says whose it is, and is made anew.
    assert_eq!(commit(&places.open("db").expect("opened"), 0..1).expect("made").len(), 1);
}

#[test]
fn places_that_cannot_be_are_refused_in_one_line() {
    let places = Places::new();
    let first = places.at("first").display().to_string();
    let check = |changes: &[(&str, &str)], text: &str| {
        let instance = create_in(&places.at("db"), &[changes, &SMALL].concat());
        let error = commit(&instance, 0..1).expect_err(text).to_string();
        assert!(error.contains(text) && error.lines().count() == 1, "{error}");
        instance.destroy().expect("removed");
    };
    check(&[("log_path", "/no/such/directory")], "there is no such directory");
    check(&[("log_path", "../outside")], "log_path=../outside: expected an absolute path, or the name of a directory");
    check(&[("log_path", &first), ("log_mirror_path", &first)], "both members of log files lie in");
    drop(commit(&create_in(&places.at("db"), &SMALL), 0..1).expect("made"));
    let other = settings(&[("log_path", &first)]);
    let instance = Instance::open(&places.at("db"), other, Cancel::default()).expect("opened");
    let error = commit(&instance, 0..1).expect_err("fixed").to_string();
    assert!(error.contains("that is fixed then; leave it out, or make another database"), "{error}");
}

#[test]
fn a_backup_has_the_log_in_its_usual_place() {
    let places = Places::new();
    let instance = places.create();
    drop(commit(&instance, 0..10).expect("committed"));
    drop(instance);
    {
        let instance = places.open("db").expect("opened");
        let session = instance.recorder.session(Role::User);
        let transactions = Transactions::open(&instance, &session).expect("a log");
        let copied = backup::backup(
            &instance,
            Some(&transactions),
            &session,
            &places.at("saved"),
            Verification::Blocks,
        );
        assert!(copied.expect("copied").block_count > 0);
    }
    let session = plumb_events::Recorder::new().session(Role::User);
    backup::restore(&session, &Cancel::default(), &places.at("saved"), &places.at("restored"))
        .expect("restored");
    assert_eq!(commit(&places.open("restored").expect("opened"), 10..15).expect("recovered").len(), 15);
    assert!(places.names("restored").contains(&"redo01.log".to_string()));
    assert_eq!(commit(&places.open("db").expect("opened"), 0..0).expect("as it was").len(), 10);
}
