//! Copied or moved databases, files of other databases, and several readers at once.

use crate::support::{Rows, SMALLEST, assert_green, create_in, load, number, open_in, settings};
use plumb_engine::check::check_table;
use plumb_engine::drop::drop_named;
use plumb_engine::transaction::Transactions;
use plumb_engine::{EngineError, Instance, Layout};
use plumb_events::{Cancel, Role};
use plumb_types::{Column, ColumnType, Schema};
use std::fs;
use std::path::{Path, PathBuf};

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        fs::copy(entry.path(), to.join(entry.file_name())).expect("copied");
    }
}

/// Returns all bytes below a directory, except the lock file.
fn bytes(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let paths = fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path());
    let mut all: Vec<_> = paths.filter(|path| !path.ends_with("lock")).collect();
    all.sort();
    all.into_iter().map(|path| (path.clone(), fs::read(path).expect("a file"))).collect()
}

fn to_read(home: &Path) -> Result<Instance, EngineError> {
    Instance::open_to_read(home, settings(&[]), Cancel::default())
}

/// Regression: the control file had absolute paths, so a copy wrote into its original.
#[test]
fn changes_in_a_copy_do_not_touch_the_original() {
    let directory = tempfile::tempdir().expect("a directory");
    let [original, copied] = ["d", "e"].map(|name| directory.path().join(name));
    {
        let instance = create_in(&original, &[]);
        load(&instance, "t", &Rows::uniform(20_000, 1)).expect("loaded");
    }
    copy(&original, &copied);
    let before = bytes(&original);
    {
        let instance = open_in(&copied).expect("a copy is a database");
        assert_green(&instance, "t");
        drop_named(&instance, "t").expect("dropped");
        load(&instance, "u", &Rows::uniform(30_000, 2)).expect("loaded");
        assert_green(&instance, "u");
    }
    assert_eq!(bytes(&original), before);
    assert_green(&open_in(&original).expect("as it was"), "t");
    // Both may be open at the same time.
    let both = [open_in(&original).expect("opened"), open_in(&copied).expect("opened")];
    assert_green(&both[0], "t");
    assert_green(&both[1], "u");
}

/// Links to data files are copied with the directory, so both would write through them.
#[test]
fn a_linked_data_file_is_not_written_to() {
    let directory = tempfile::tempdir().expect("a directory");
    let [original, copied, elsewhere] = ["d", "e", "users01.dbf"].map(|name| directory.path().join(name));
    load(&create_in(&original, &[]), "t", &Rows::uniform(3000, 1)).expect("loaded");
    let file = original.join("users01.dbf");
    let refused = |home: &Path, why: &str| {
        let error = open_in(home).expect_err("not to be written to").to_string();
        assert!(error.contains("users01.dbf: ") && error.contains(why), "{error}");
    };
    // The state after `cp -al`.
    copy(&original, &copied);
    fs::remove_file(copied.join("users01.dbf")).expect("removed");
    fs::hard_link(&file, copied.join("users01.dbf")).expect("a second name");
    refused(&original, "it has 2 names");
    refused(&copied, "it has 2 names");
    fs::remove_dir_all(&copied).expect("removed");
    // The file is moved to another disk and linked.
    fs::rename(&file, &elsewhere).expect("moved");
    std::os::unix::fs::symlink(&elsewhere, &file).expect("a link");
    refused(&original, "it is a link");
    let error = to_read(&original).expect_err("a link may lead anywhere").to_string();
    assert!(error.contains("it is a link"), "{error}");
    fs::remove_file(&file).expect("removed");
    fs::rename(&elsewhere, &file).expect("moved back");
    assert_green(&open_in(&original).expect("its own again"), "t");
}

/// Copies share their id and all operation numbers up to the copy.
#[test]
fn a_block_of_a_copy_is_rejected_in_the_original() {
    let directory = tempfile::tempdir().expect("a directory");
    let [original, copied] = ["d", "e"].map(|name| directory.path().join(name));
    load(&create_in(&original, &[]), "t", &Rows::uniform(3000, 1)).expect("loaded");
    copy(&original, &copied);
    for home in [&original, &copied] {
        load(&open_in(home).expect("a database"), "u", &Rows::uniform(30, 2)).expect("loaded");
    }
    for number in 1..=2 {
        let name = format!("users{number:02}.dbf");
        fs::copy(copied.join(&name), original.join(&name)).expect("swapped");
    }
    let instance = open_in(&original).expect("whole files of the same id");
    assert_green(&instance, "t");
    let error = check_table(&instance, "u").expect_err("the copy's rows").to_string();
    assert!(error.contains("operation: found number"), "{error}");
}

#[test]
fn a_moved_database_works_with_a_private_control_file() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().expect("a directory");
    let [old, new] = ["old", "new"].map(|name| directory.path().join(name));
    load(&create_in(&old, &[]), "t", &Rows::uniform(3000, 1)).expect("loaded");
    fs::rename(&old, &new).expect("moved");
    let instance = open_in(&new).expect("it works where it is");
    assert_green(&instance, "t");
    load(&instance, "u", &Rows::uniform(3000, 1)).expect("loaded");
    assert!(!old.exists());
    let mode = fs::metadata(new.join("control.json")).expect("a control file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "it has least and largest values of columns");
}

/// Makes a database with its tables outside the home.
fn with_files_outside(directory: &Path) -> (PathBuf, PathBuf) {
    let [home, data] = ["home", "data"].map(|name| directory.join(name));
    let layout = Layout { users: vec![data.clone()], ..Layout::in_one(home.clone()) };
    let settings = settings(&[("filesystemio_options", "none")]);
    let instance = Instance::create(&layout, settings, SMALLEST, Cancel::default()).expect("created");
    load(&instance, "t", &Rows::uniform(3000, 1)).expect("loaded");
    (home, data)
}

#[test]
fn a_copy_lacks_the_files_outside_that_a_move_keeps() {
    let directory = tempfile::tempdir().expect("a directory");
    let (home, data) = with_files_outside(directory.path());
    let other = directory.path().join("copy");
    copy(&home, &other);
    let before = bytes(&data);
    let expected = format!(
        "{} belongs to the database in {}, of which {} is a copy; open the original, or load the data again",
        data.join("users01.dbf").display(),
        home.display(),
        other.display()
    );
    assert_eq!(open_in(&other).expect_err("a copy").to_string(), expected);
    assert_eq!(to_read(&other).expect_err("a copy").to_string(), expected);
    assert_eq!(bytes(&data), before);
    assert_green(&open_in(&home).expect("the original"), "t");
    fs::remove_dir_all(&home).expect("removed");
    // Opening to read writes nothing; opening to change gives the files their new home.
    check_table(&to_read(&other).expect("moved"), "t").expect("green");
    assert_eq!(bytes(&data), before);
    assert_green(&open_in(&other).expect("moved"), "t");
    assert_ne!(bytes(&data), before);
    fs::create_dir(&home).expect("made");
    copy(&other, &home);
    let error = open_in(&home).expect_err("now this is the copy").to_string();
    assert!(error.contains(&format!("belongs to the database in {}, of which", other.display())), "{error}");
}

#[test]
fn a_file_of_another_database_is_named_and_left_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let [one, two] = ["one", "two"].map(|name| directory.path().join(name));
    for home in [&one, &two] {
        load(&create_in(home, &[]), "t", &Rows::uniform(3000, 1)).expect("loaded");
    }
    let stranger = two.join("users01.dbf");
    fs::copy(one.join("users01.dbf"), &stranger).expect("copied");
    let before = fs::read(&stranger).expect("a file");
    let instance = open_in(&two).expect("the rest can be used");
    let error = check_table(&instance, "t").expect_err("it is the other one's").to_string();
    assert!(error.starts_with(&format!("data file {} belongs to database ", stranger.display())), "{error}");
    drop_named(&instance, "t").expect("dropped");
    drop(instance);
    drop(open_in(&two).expect("opened"));
    assert_eq!(fs::read(&stranger).expect("a file"), before, "somebody may have something to lose in it");
}

#[test]
fn a_data_file_in_use_is_not_opened_twice() {
    let directory = tempfile::tempdir().expect("a directory");
    let [one, two] = ["one", "two"].map(|name| directory.path().join(name));
    let instance = create_in(&one, &[]);
    fs::create_dir(&two).expect("made");
    for name in
        ["control.json", "users01.dbf", "users02.dbf", "temp01.dbf", "temp02.dbf", "indx01.dbf", "indx02.dbf"]
    {
        fs::hard_link(one.join(name), two.join(name)).expect("linked");
    }
    let expected = format!(
        "data file {} is in use by another process: wait until it ends",
        two.join("users01.dbf").display()
    );
    assert_eq!(open_in(&two).expect_err("in use").to_string(), expected);
    assert_eq!(to_read(&two).expect_err("in use").to_string(), expected);
    drop(instance);
    assert!(open_in(&two).expect_err("one file for two databases").to_string().contains("it has 2 names"));
    assert!(to_read(&two).is_ok());
}

#[test]
fn several_readers_share_a_database_and_change_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let home = directory.path().join("db");
    load(&create_in(&home, &[]), "t", &Rows::uniform(3000, 1)).expect("loaded");
    fs::remove_file(home.join("temp01.dbf")).expect("it is not needed");
    let names = |directory: &Path| fs::read_dir(directory).expect("a directory").count();
    let (before, count) = (bytes(&home), names(&home));
    let two = [to_read(&home).expect("one"), to_read(&home).expect("and another")];
    for instance in &two {
        check_table(instance, "t").expect("green");
        let refused = format!("database {} was opened to be read only", home.display());
        assert_eq!(drop_named(instance, "t").expect_err("refused").to_string(), refused);
        assert_eq!(load(instance, "u", &Rows::uniform(1, 1)).expect_err("refused").to_string(), refused);
    }
    let error = open_in(&home).expect_err("it is being read").to_string();
    assert!(error.contains(" is in use by another process: wait"), "{error}");
    drop(two);
    assert_eq!((bytes(&home), names(&home)), (before, count));
    assert!(open_in(&home).is_ok());
}

#[test]
fn a_database_of_the_first_format_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("control.json");
    // Checksum of the document, as the first version wrote it.
    let old = "d3569625\n{\"version\":1,\"next_lsn\":1,\"tablespaces\":[],\"tables\":[],\"indexes\":[]}";
    fs::write(&path, old).expect("written");
    let expected = format!(
        "control file {}: the database has format 1, expected 8: load the data again with this version, in another \
         directory",
        path.display()
    );
    assert_eq!(open_in(directory.path()).expect_err("old").to_string(), expected);
    assert_eq!(to_read(directory.path()).expect_err("old").to_string(), expected);
}

/// Regression: names were stored in capitals of all scripts, and looked up in those of ASCII.
#[test]
fn names_outside_ascii_are_found_as_they_were_given() {
    let directory = tempfile::tempdir().expect("a directory");
    let instance = create_in(directory.path(), &[]);
    for (name, same) in [("größe", "GRÖSSE"), ("ñandú", "Ñandú"), ("таблица", "Таблица")]
    {
        load(&instance, name, &Rows::uniform(300, 1)).expect("loaded");
        for name in [name, same] {
            assert_green(&instance, name);
            let error = load(&instance, name, &Rows::uniform(1, 1)).expect_err("taken").to_string();
            assert!(error.contains(" exists already"), "{error}");
        }
        crate::support::build_on(&instance, ("i", name), &[("k", false)]).expect("built");
        assert_eq!(drop_named(&instance, same).expect("dropped").indexes, ["I"]);
    }
}

/// Commits rows with these ids, takes a checkpoint, and returns the number of ids.
fn commit(home: &Path, ids: std::ops::Range<i64>) -> Result<usize, EngineError> {
    let instance = open_in(home)?;
    let session = instance.recorder.session(Role::User);
    let transactions = Transactions::open(&instance, &session)?;
    if instance.catalog().holder_of("L").is_none() {
        let columns = vec![Column::required("ID", ColumnType::NUMBER)];
        transactions.create_table(&session, "L", &Schema::new(columns).expect("a schema"), &[])?;
    }
    let mut connection = transactions.connect(&session);
    let mut transaction = connection.begin();
    for id in ids {
        transaction.insert("L", &[number(id)])?;
        transaction.commit_and_chain()?;
    }
    let mut rows = 0;
    transaction.scan("L", |_| {
        rows += 1;
        Ok(())
    })?;
    drop(transaction);
    transactions.checkpoint(&session)?;
    Ok(rows)
}

/// Regression: the cure "restore it from a copy" silently lost the commits since the copy.
#[test]
fn a_data_file_older_than_the_checkpoint_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let (home, old) = (directory.path().join("db"), directory.path().join("users01.dbf"));
    drop(create_in(&home, &[]));
    commit(&home, 0..5).expect("committed");
    let files = ["users01.dbf", "users02.dbf"];
    let used = files.into_iter().find(|name| {
        // The file that the table lies in.
        let instance = open_in(&home).expect("opened");
        let catalog = instance.catalog();
        let file = catalog.live_tables[0].extents[0].extent.file;
        usize::from(file) == files.iter().position(|known| known == name).expect("known") + 1
    });
    let file = home.join(used.expect("one of them"));
    fs::copy(&file, &old).expect("copied");
    assert_eq!(commit(&home, 5..9).expect("committed"), 9);
    let newest = fs::read(&file).expect("a file");
    fs::copy(&old, &file).expect("an older copy");
    let error = commit(&home, 9..10).expect_err("older").to_string();
    assert!(error.contains(" is an older copy: its last checkpoint is at LSN "), "{error}");
    assert!(error.ends_with("or restore all files of the database from one backup"), "{error}");
    fs::write(&file, newest).expect("the newest");
    assert_eq!(commit(&home, 9..10).expect("as it was"), 10);
}

/// Regression: the control file was from before a table was dropped and another made. Blocks of the
/// new table were read as rows of the old one, and a check found nothing.
#[test]
fn a_control_file_older_than_the_log_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let home = directory.path().join("d");
    let text = Column::nullable("B", ColumnType::Text { max_bytes: 30 });
    let schemas = [
        Schema::new(vec![Column::required("A", ColumnType::NUMBER), text]).expect("a schema"),
        Schema::new(["A", "B", "C"].map(|name| Column::required(name, ColumnType::NUMBER)).to_vec())
            .expect("a schema"),
    ];
    let with_transactions =
        |instance: &Instance, work: &dyn Fn(&Transactions<'_>, &plumb_events::Session)| {
            let session = instance.recorder.session(Role::User);
            let transactions = Transactions::open(instance, &session).expect("opened");
            work(&transactions, &session);
        };
    {
        let instance = create_in(&home, &[]);
        with_transactions(&instance, &|transactions, session| {
            transactions.create_table(session, "T", &schemas[0], &[]).expect("made");
        });
    }
    let control = home.join("control.json");
    let [kept, newest] = [0, 1].map(|change| {
        if change == 1 {
            let instance = open_in(&home).expect("opened");
            drop_named(&instance, "T").expect("dropped");
            drop(instance);
            let instance = open_in(&home).expect("opened");
            with_transactions(&instance, &|transactions, session| {
                transactions.create_table(session, "W", &schemas[1], &[]).expect("made");
            });
        }
        fs::read(&control).expect("a control file")
    });
    fs::write(&control, kept).expect("put back");
    for opened in [open_in(&home), to_read(&home)] {
        let error = opened.expect_err("L7: an older control file").to_string();
        assert!(error.contains("it has 1 changes of tables and indexes, and redo.ctl noted 3"), "{error}");
        assert!(error.contains("it is older than the log"), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    fs::write(&control, newest).expect("put back");
    let catalog = open_in(&home).expect("its own").catalog().clone();
    assert!(catalog.live_tables.iter().any(|table| table.name == "W"));
}
