//! Log files on other disks: their directories, their owner, and their use by copies of a database.

use crate::support::{Rows, assert_green, create_in, load, open_in, settings};
use plumb_crash::operation::steps;
use plumb_crash::{Base, LogKind, Tally, chain, every_request};
use plumb_engine::backup::{self, Verification};
use plumb_engine::transaction::Transactions;
use plumb_engine::{EngineError, Instance};
use plumb_events::{Cancel, Role};
use plumb_io::sim::power::Survivors;
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

/// Opens the transactions and commits rows with these ids; returns all ids in the table.
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
fn log_files_follow_the_settings_and_the_database() {
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

/// After `cp -a` of a directory whose log files are elsewhere, both databases would
/// recover and continue one log.
#[test]
fn a_moved_database_keeps_its_log_but_copies_do_not() {
    let places = Places::new();
    drop(commit(&places.create(), 0..10).expect("committed"));
    copy_directory(&places.at("db"), &places.at("copy"));
    let error = all(&places, "copy", 0..1).expect_err("the log is the original's").to_string();
    assert!(
        error.contains("belongs to the database in ")
            && error.ends_with("open the original, or load the data again"),
        "{error}"
    );
    assert_eq!(commit(&places.open("db").expect("opened"), 10..20).expect("as it was").len(), 20);
    fs::rename(places.at("db"), places.at("moved")).expect("moved");
    assert_eq!(commit(&places.open("moved").expect("opened"), 20..30).expect("it is its own").len(), 30);
    // The copy still does not belong to the moved database.
    let error = all(&places, "copy", 0..1).expect_err("refused").to_string();
    assert!(error.contains(&places.at("moved").display().to_string()), "{error}");
}

#[test]
fn an_open_log_is_not_opened_by_another_name() {
    let places = Places::new();
    let instance = places.create();
    let session = instance.recorder.session(Role::User);
    let transactions = Transactions::open(&instance, &session).expect("a log");
    // The state of a copy made while the database was open: it has a lock file of its own.
    copy_directory(&places.at("db"), &places.at("copy"));
    fs::rename(places.at("db"), places.at("moved")).expect("moved");
    let copy = places.open("copy").expect("its log is that of the copy as well");
    let error = commit(&copy, 0..1).expect_err("in use").to_string();
    assert!(error.contains("log file ") && error.contains(" is in use by another process"), "{error}");
    drop((transactions, copy));
}

#[test]
fn a_linked_log_file_within_the_home_is_refused() {
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
fn a_foreign_file_where_a_log_goes_is_kept() {
    let places = Places::new();
    let instance = places.create();
    let name = format!("redo02_{:08x}.log", instance.catalog().database.0 >> 96);
    fs::write(places.at("first").join(&name), "a letter").expect("written");
    let error = commit(&instance, 0..1).expect_err("in the way").to_string();
    assert!(error.contains("does not say that it is this database's; move it away"), "{error}");
    assert_eq!(fs::read_to_string(places.at("first").join(&name)).expect("there"), "a letter");
    fs::remove_file(places.at("first").join(&name)).expect("removed");
    drop(instance);
    // The file of the failed attempt names its owner, and is made again.
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
    check(
        &[("log_path", "../outside")],
        "log_path=../outside: expected an absolute path, or the name of a directory",
    );
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

/// Opens a database and commits rows with these ids; returns all ids in the table.
fn all(places: &Places, name: &str, ids: std::ops::Range<i64>) -> Result<Vec<i64>, EngineError> {
    places.open(name).and_then(|instance| commit(&instance, ids))
}

fn ids(end: i64) -> Vec<i64> {
    (0..end).collect()
}

const CONTINUED: &str = "the log was continued by another copy of the database, which was then in ";

/// Regression: the copy took over the log because of its path, and the original, put
/// back, had lost its commits.
#[test]
fn an_older_copy_in_the_originals_place_lacks_its_log() {
    let places = Places::new();
    commit(&places.create(), 0..10).expect("committed");
    copy_directory(&places.at("db"), &places.at("old"));
    all(&places, "db", 10..40).expect("committed");
    let swap = |from: &str, to: &str| fs::rename(places.at(from), places.at(to)).expect("moved");
    swap("db", "aside");
    swap("old", "db");
    let error = all(&places, "db", 40..50).expect_err("its log was gone on with").to_string();
    assert!(error.contains(CONTINUED) && error.lines().count() == 1, "{error}");
    // The path does not make the copy the original: the original continues in its new place.
    assert_eq!(all(&places, "aside", 40..41).expect("the original"), ids(41));
    swap("db", "old");
    swap("aside", "db");
    assert_eq!(all(&places, "db", 0..0).expect("the original"), ids(41));
}

#[test]
fn the_first_opened_copy_of_a_lost_original_continues() {
    let places = Places::new();
    commit(&places.create(), 0..10).expect("committed");
    copy_directory(&places.at("db"), &places.at("copy"));
    fs::rename(places.at("db"), places.at("moved")).expect("moved");
    all(&places, "copy", 10..20).expect("no other one goes on");
    let error = all(&places, "moved", 20..30).expect_err("the copy went on").to_string();
    assert!(error.contains(CONTINUED), "{error}");
    assert_eq!(all(&places, "copy", 0..0).expect("the copy"), ids(20));
}

/// Regression: a load by direct path writes no log, and yet the copy took the log over.
#[test]
fn a_copy_without_its_log_is_read_only() {
    let places = Places::new();
    let instance = places.create();
    load(&instance, "u", &Rows::uniform(100, 1)).expect("loaded");
    commit(&instance, 0..10).expect("committed");
    drop(instance);
    copy_directory(&places.at("db"), &places.at("copy"));
    let error = places.open("copy").map(drop).expect_err("the log is the original's").to_string();
    assert!(error.contains("belongs to the database in "), "{error}");
    all(&places, "db", 10..20).expect("the original");
    fs::rename(places.at("db"), places.at("moved")).expect("moved");
    let error = places.open("copy").map(drop).expect_err("the original went on").to_string();
    assert!(error.contains(CONTINUED), "{error}");
    let before = places.names("copy");
    let copy = Instance::open_to_read(&places.at("copy"), settings(&[]), Cancel::default()).expect("to read");
    assert_green(&copy, "u");
    assert_eq!(places.names("copy"), before);
    drop(copy);
    assert_eq!(all(&places, "moved", 0..0).expect("a reader takes nothing"), ids(20));
}

/// Regression: the copy has no control block, and removed the log files of the
/// original to make its own.
#[test]
fn a_copy_older_than_the_log_makes_none() {
    let places = Places::new();
    drop(places.create());
    copy_directory(&places.at("db"), &places.at("early"));
    let path = places.at("first").display().to_string();
    let open = || Instance::open(&places.at("db"), settings(&[("log_path", &path)]), Cancel::default());
    commit(&open().expect("opened"), 0..10).expect("committed");
    fs::rename(places.at("db"), places.at("aside")).expect("moved");
    fs::rename(places.at("early"), places.at("db")).expect("moved");
    let error = open().and_then(|instance| commit(&instance, 0..1)).expect_err("a log is there").to_string();
    assert!(error.contains("the log of another copy of the database is in it"), "{error}");
    assert_eq!(all(&places, "aside", 0..0).expect("the original"), ids(10));
}

/// The state of an opening that is killed when some of the members have its epoch.
#[test]
fn the_next_opening_takes_members_of_an_interrupted_one() {
    let places = Places::new();
    commit(&places.create(), 0..10).expect("committed");
    let heads = || {
        let paths = places.names("first").into_iter().map(|name| places.at("first").join(name));
        paths.map(|path| (fs::read(&path).expect("read")[..4096].to_vec(), path)).collect::<Vec<_>>()
    };
    let before = heads();
    all(&places, "db", 0..0).expect("opened");
    assert_ne!(heads(), before, "an opening has an epoch of its own");
    for (head, path) in &before {
        let file = fs::OpenOptions::new().write(true).open(path).expect("there");
        std::os::unix::fs::FileExt::write_all_at(&file, head, 0).expect("written");
    }
    assert_eq!(all(&places, "db", 10..11).expect("opened"), ids(11));
}

#[test]
fn a_member_that_missed_openings_is_copied_again() {
    let places = Places::new();
    commit(&places.create(), 0..10).expect("committed");
    fs::rename(places.at("second"), places.at("away")).expect("its disk is away");
    fs::create_dir(places.at("second")).expect("made");
    all(&places, "db", 10..20).expect("opened");
    all(&places, "db", 20..30).expect("opened");
    fs::remove_dir_all(places.at("second")).expect("removed");
    fs::rename(places.at("away"), places.at("second")).expect("its disk is back");
    assert_eq!(all(&places, "db", 30..31).expect("opened"), ids(31));
    fs::rename(places.at("first"), places.at("away")).expect("the other disk is away");
    fs::create_dir(places.at("first")).expect("made");
    assert_eq!(all(&places, "db", 0..0).expect("opened"), ids(31));
    // If all members are older, no log has the commits since.
    all(&places, "db", 31..32).expect("opened");
    let swap = |from: &str, to: &str| fs::rename(places.at(from), places.at(to)).expect("moved");
    for (from, to) in [("first", "newest"), ("away", "first"), ("second", "other")] {
        swap(from, to);
    }
    fs::create_dir(places.at("second")).expect("made");
    let error = all(&places, "db", 0..0).expect_err("older").to_string();
    assert!(error.contains("it is an older copy, which was not there at the last opening"), "{error}");
    fs::remove_dir(places.at("second")).expect("nothing was made");
    for (from, to) in [("first", "away"), ("newest", "first"), ("other", "second")] {
        swap(from, to);
    }
    assert_eq!(all(&places, "db", 0..0).expect("opened"), ids(32));
}

#[test]
fn a_link_is_refused_as_any_log_file() {
    let places = Places::new();
    commit(&places.create(), 0..10).expect("committed");
    for place in ["first", "second"] {
        let name = &places.names(place)[1];
        let (own, elsewhere) = (places.at(place).join(name), places.at("elsewhere"));
        fs::rename(&own, &elsewhere).expect("moved");
        std::os::unix::fs::symlink(&elsewhere, &own).expect("a link");
        let error = all(&places, "db", 0..0).expect_err(place).to_string();
        assert!(error.contains(name) && error.contains("it is a link"), "{error}");
        fs::remove_file(&own).expect("removed");
        fs::hard_link(&elsewhere, &own).expect("a second name");
        let error = all(&places, "db", 0..0).expect_err(place).to_string();
        assert!(error.contains("it has 2 names"), "{error}");
        fs::remove_file(&elsewhere).expect("removed");
        assert_eq!(all(&places, "db", 0..0).expect("its own again"), ids(10));
    }
}

/// The power goes at each request of an opening, and again at the same one of the next: between the
/// control block and the first member, between two members, within a header (O1, O2, O4).
#[test]
fn openings_interrupted_twice_leave_a_log_that_opens() {
    let base = Base::new(LogKind::Outside);
    for at in 0.. {
        let disk = base.copy();
        disk.lose_power_at(Some(at));
        let opened = base.read(&disk).is_ok();
        if disk.requests() < at {
            assert!(opened && at > 50, "{at} requests");
            break;
        }
        for survivors in [Survivors::None, Survivors::All, Survivors::Random(at), Survivors::Random(!at)] {
            let next = disk.restart(survivors);
            next.lose_power_at(Some(at));
            let _ = base.read(&next);
            for survivors in [Survivors::None, Survivors::All, Survivors::Random(at)] {
                let found = base.read(&next.restart(survivors));
                let found = found.unwrap_or_else(|error| panic!("request {at} {survivors:?}: {error}"));
                assert_eq!(found, base.world(), "request {at} {survivors:?}");
            }
        }
    }
}

/// O3: a batch is after the epoch of its opening.
#[test]
fn outside_log_files_keep_acknowledged_commits_at_any_power_loss() {
    let base = Base::new(LogKind::Outside);
    let mut tally = Tally::default();
    (0..20).for_each(|seed| chain(&base, seed, 8, &mut tally));
    assert!(tally.crashes * 2 > tally.cycles, "{tally:?}");
    assert!(every_request(&base, 5, &steps(10), 2) > 100);
}
