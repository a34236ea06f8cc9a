//! Backups: made while sessions commit, damaged, and restored to allowed and rejected places.

use crate::support::{Rows, assert_green, create_in, load, open_in, scan_rows};
use plumb_engine::backup::{self, MANIFEST, Verification};
use plumb_engine::instance::InitialSizes;
use plumb_engine::transaction::Transactions;
use plumb_engine::{Instance, Layout, Settings};
use plumb_events::{Cancel, Recorder, Role};
use plumb_types::{Column, ColumnType, Number, Schema, Value};
use plumb_units::Bytes;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::SeqCst};
use std::thread;

fn settings() -> Settings {
    let mut all = Settings::default();
    let small = [
        ("filesystemio_options", "none"),
        ("log_file_size", "8M"),
        ("log_buffer", "256K"),
        ("extent_size", "256K"),
    ];
    for (name, value) in small {
        all.set(name, value, "the test").expect("in range");
    }
    all
}

fn create(home: &Path) -> Instance {
    let sizes = InitialSizes { users: Bytes(1 << 20), temp: Bytes(1), indx: Bytes(1) };
    Instance::create(&Layout::in_one(home.to_path_buf()), settings(), sizes, Cancel::default())
        .expect("a database")
}

/// Returns the ids of the rows of T, after checking the text of each.
fn ids(transactions: &Transactions<'_>, instance: &Instance) -> Vec<i64> {
    let session = instance.recorder.session(Role::User);
    let mut connection = transactions.connect(&session);
    let mut ids = Vec::new();
    let scanned = connection.begin().scan("T", |row| {
        let Value::Number(id) = &row.values[0] else { panic!("a number") };
        ids.push(id.to_string().parse().expect("an id"));
        Ok(())
    });
    scanned.expect("scanned");
    ids.sort_unstable();
    ids
}

fn insert(
    transactions: &Transactions<'_>,
    instance: &Instance,
    rows: std::ops::Range<i64>,
    done: &AtomicI64,
) {
    let session = instance.recorder.session(Role::User);
    let mut connection = transactions.connect(&session);
    let mut transaction = connection.begin();
    for id in rows {
        let number = Value::Number(Number::new(i128::from(id), 0).expect("small"));
        transaction.insert("T", &[number, Value::Text("v".repeat(200))]).expect("inserted");
        transaction.commit_and_chain().expect("committed");
        done.store(id + 1, SeqCst);
    }
}

#[test]
fn a_copy_made_during_commits_recovers_to_a_commit() {
    let directory = tempfile::tempdir().expect("a directory");
    let (home, copy) = (directory.path().join("db"), directory.path().join("copy"));
    let (done, over) = (AtomicI64::new(0), AtomicBool::new(false));
    let (before, after) = {
        let instance = create(&home);
        let session = instance.recorder.session(Role::User);
        let transactions = Transactions::open(&instance, &session).expect("a log");
        let columns = vec![
            Column::required("ID", ColumnType::NUMBER),
            Column::required("V", ColumnType::Text { max_bytes: 1000 }),
        ];
        transactions
            .create_table(&session, "T", &Schema::new(columns).expect("a schema"), &[])
            .expect("a table");
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut next = 0;
                while !over.load(SeqCst) {
                    insert(&transactions, &instance, next..next + 20, &done);
                    next += 20;
                }
            });
            while done.load(SeqCst) < 200 {
                thread::yield_now();
            }
            let before = done.load(SeqCst);
            let copied =
                backup::backup(&instance, Some(&transactions), &session, &copy, Verification::Blocks)
                    .expect("copied");
            let after = done.load(SeqCst);
            over.store(true, SeqCst);
            assert!(copied.file_count >= 5 && copied.bytes > Bytes(24 << 20), "{copied:?}");
            (before, after)
        })
    };
    fs::remove_dir_all(&home).expect("the original is lost");
    let session = Recorder::new().session(Role::User);
    backup::restore(&session, &Cancel::default(), &copy, &home).expect("restored");
    let instance = Instance::open(&home, settings(), Cancel::default()).expect("opened");
    let session = instance.recorder.session(Role::User);
    let transactions = Transactions::open(&instance, &session).expect("recovered");
    let found = ids(&transactions, &instance);
    let count = found.len() as i64;
    assert_eq!(found, (0..count).collect::<Vec<_>>(), "every row up to the last");
    // A commit that was in progress when the log was copied may be in it.
    assert!(
        (before..=after + 1).contains(&count),
        "{count} rows, {before} committed before and {after} after"
    );
    insert(&transactions, &instance, count..count + 50, &done);
    assert_eq!(ids(&transactions, &instance).len() as i64, count + 50, "it goes on");
}

/// Makes a database with a loaded table, and its backup.
fn loaded(directory: &Path) -> Instance {
    let instance = create_in(&directory.join("db"), &[]);
    load(&instance, "t", &Rows::uniform(5000, 1)).expect("loaded");
    let session = instance.recorder.session(Role::User);
    backup::backup(&instance, None, &session, &directory.join("copy"), Verification::Blocks).expect("copied");
    instance
}

fn refused(directory: &Path, to: &str) -> String {
    let session = Recorder::new().session(Role::User);
    let error = backup::restore(&session, &Cancel::default(), &directory.join("copy"), &directory.join(to))
        .expect_err("refused");
    error.to_string().replace(&directory.display().to_string(), "DIR")
}

#[test]
fn a_database_without_a_log_is_copied_and_stands_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let rows = scan_rows(&loaded(directory.path()), "t");
    fs::remove_dir_all(directory.path().join("db")).expect("it is lost");
    let session = Recorder::new().session(Role::User);
    backup::restore(
        &session,
        &Cancel::default(),
        &directory.path().join("copy"),
        &directory.path().join("db"),
    )
    .expect("restored");
    let instance = open_in(&directory.path().join("db")).expect("opened");
    assert_eq!(scan_rows(&instance, "t"), rows);
    assert_green(&instance, "t");
}

#[test]
fn one_changed_byte_in_any_file_prevents_a_restore() {
    let directory = tempfile::tempdir().expect("a directory");
    drop(loaded(directory.path()));
    let copy = directory.path().join("copy");
    let manifest = backup::manifest(&copy).expect("it has one");
    assert_eq!(manifest.files.last().map(|file| file.name.as_str()), Some("control.json"));
    for file in &manifest.files {
        let path = copy.join(&file.name);
        let whole = fs::read(&path).expect("a file");
        let mut damaged = whole.clone();
        let at = damaged.len() * 2 / 3;
        damaged[at] ^= 0x10;
        fs::write(&path, &damaged).expect("written");
        let error = refused(directory.path(), "new");
        assert!(
            error.starts_with(&format!(
                "DIR/copy/{}: it is damaged: {} bytes with CRC-32C ",
                file.name, file.bytes
            )),
            "{error}"
        );
        assert!(error.ends_with("; nothing was restored: restore from another backup"), "{error}");
        assert!(!directory.path().join("new").exists());
        fs::write(&path, &whole).expect("written");
    }
    fs::remove_file(copy.join("control.json")).expect("removed");
    assert!(refused(directory.path(), "new").contains("control.json"));
    fs::remove_file(copy.join(MANIFEST)).expect("removed");
    assert_eq!(
        refused(directory.path(), "new"),
        "DIR/copy: it has no backup.json, and so is no whole backup: name a directory that a backup has written"
    );
}

#[test]
fn nothing_is_written_over() {
    let directory = tempfile::tempdir().expect("a directory");
    let instance = loaded(directory.path());
    let over = refused(directory.path(), "db");
    assert_eq!(
        over,
        "DIR/db: a database stands there (control.json), and nothing is written over; name a new directory"
    );
    fs::create_dir(directory.path().join("other")).expect("made");
    fs::write(directory.path().join("other/letter.txt"), "dear").expect("written");
    assert_eq!(
        refused(directory.path(), "other"),
        "DIR/other: it is not empty (letter.txt), and nothing is written over; name a new directory"
    );
    let session = instance.recorder.session(Role::User);
    let again =
        backup::backup(&instance, None, &session, &directory.path().join("copy"), Verification::Blocks)
            .expect_err("refused");
    assert!(again.to_string().contains("a backup stands there (backup.json)"), "{again}");
}

/// Changes the manifest of a backup.
fn edit_manifest(copy: &Path, change: impl FnOnce(&mut serde_json::Value)) {
    let text = fs::read_to_string(copy.join(MANIFEST)).expect("a manifest");
    let mut parsed = serde_json::from_str(&text).expect("JSON");
    change(&mut parsed);
    fs::write(copy.join(MANIFEST), parsed.to_string()).expect("written");
}

fn files(manifest: &mut serde_json::Value) -> &mut Vec<serde_json::Value> {
    manifest["files"].as_array_mut().expect("a list")
}

#[test]
fn a_manifest_from_elsewhere_is_not_believed() {
    let directory = tempfile::tempdir().expect("a directory");
    drop(loaded(directory.path()));
    let copy = directory.path().join("copy");
    let whole = fs::read(copy.join(MANIFEST)).expect("a manifest");
    fs::write(directory.path().join("evil.sh"), "").expect("a file");
    let entry = |name: &str| serde_json::json!({"name": name, "bytes": 0, "crc32c": 0});
    let check = |what: &str, change: &dyn Fn(&mut serde_json::Value)| {
        edit_manifest(&copy, change);
        let error = refused(directory.path(), "new");
        assert!(
            error.contains(what) && error.ends_with("; nothing was restored: restore from another backup"),
            "{error}"
        );
        assert!(!directory.path().join("new").exists(), "{error}");
        fs::write(copy.join(MANIFEST), &whole).expect("written");
    };
    for name in ["../evil.sh", "/etc/passwd", "evil.sh", "lock", "sub/../../users09.dbf"] {
        check(&format!("it names the file {name:?}"), &|manifest| files(manifest).insert(0, entry(name)));
    }
    check("its last file is not control.json", &|manifest| files(manifest).clear());
    check("it does not list users01.dbf", &|manifest| {
        files(manifest).retain(|file| file["name"] != "users01.dbf")
    });
    check("it lists users01.dbf twice", &|manifest| {
        let first = files(manifest)[0].clone();
        files(manifest).insert(0, first);
    });
    check("it is of database \"00\"", &|manifest| manifest["database"] = "00".into());
    check("and backup.json says 1 with", &|manifest| files(manifest)[0]["bytes"] = 1.into());
    let first =
        files(&mut serde_json::from_slice(&whole).expect("JSON"))[0]["name"].as_str().map(str::to_string);
    fs::write(copy.join(first.expect("a name")), "").expect("emptied");
    check(" with 0 bytes, and 262144 are needed", &|manifest| {
        files(manifest)[0]["bytes"] = 0.into();
        files(manifest)[0]["crc32c"] = 0.into();
    });
}

#[test]
fn a_link_in_a_backup_is_not_followed() {
    let directory = tempfile::tempdir().expect("a directory");
    drop(loaded(directory.path()));
    let copy = directory.path().join("copy");
    fs::rename(copy.join("users01.dbf"), directory.path().join("secret")).expect("moved");
    std::os::unix::fs::symlink("../secret", copy.join("users01.dbf")).expect("a link");
    assert!(refused(directory.path(), "new").contains("a symbolic link is on the way"));
    assert!(!directory.path().join("new").exists());
}

#[test]
fn a_backup_finds_damage_only_in_used_blocks() {
    let directory = tempfile::tempdir().expect("a directory");
    let (home, copy) = (directory.path().join("db"), directory.path().join("copy"));
    {
        let instance = create_in(&home, &[]);
        load(&instance, "t", &Rows::uniform(5000, 1)).expect("loaded");
        load(&instance, "gone", &Rows::uniform(5000, 2)).expect("loaded");
        plumb_engine::drop::drop_named(&instance, "gone").expect("dropped");
    }
    let path = home.join("users01.dbf");
    let whole = fs::read(&path).expect("a file");
    let instance = open_in(&home).expect("opened");
    let (used, free) = {
        let catalog = instance.catalog();
        let taken = catalog.tables[0].extents.iter().filter(|piece| piece.extent.file == 1);
        let block = taken.clone().next().expect("one").extent.block;
        (
            block as usize * 8192,
            (taken.map(|piece| piece.extent.block).max().expect("one") as usize + 32) * 8192,
        )
    };
    drop(instance);
    let damaged_at = |at: usize| {
        let mut bytes = whole.clone();
        bytes.resize(bytes.len().max(free + 8192), 0);
        bytes[at + 100] ^= 1;
        fs::write(&path, bytes).expect("written");
        let instance = open_in(&home).expect("opened");
        let session = instance.recorder.session(Role::User);
        backup::backup(&instance, None, &session, &copy, Verification::Blocks)
    };
    let error = damaged_at(used).expect_err("damaged");
    assert!(error.is_damage() && error.to_string().contains("users01.dbf"), "{error}");
    assert!(!copy.exists(), "nothing stays");
    assert!(damaged_at(free).expect("no segment has the block").block_count > 0);
    fs::remove_dir_all(&copy).expect("removed");
    damaged_at(used).expect_err("damaged");
    let instance = open_in(&home).expect("opened");
    let session = instance.recorder.session(Role::User);
    backup::backup(&instance, None, &session, &copy, Verification::Nothing).expect("what is left is saved");
}

#[test]
fn a_killed_backup_restarts_and_a_running_one_is_kept() {
    let directory = tempfile::tempdir().expect("a directory");
    let instance = loaded(directory.path());
    let session = instance.recorder.session(Role::User);
    let half = directory.path().join("half");
    let again = || backup::backup(&instance, None, &session, &half, Verification::Blocks);
    fs::create_dir(&half).expect("made");
    fs::write(half.join("users01.dbf"), "cut off").expect("written");
    let error = again().expect_err("nobody knows whose it is").to_string();
    assert!(error.contains("it is not empty (users01.dbf)"), "{error}");
    fs::write(half.join("plumb-owner"), "plumb 4194305 started 1\n").expect("written");
    fs::write(half.join("letter.txt"), "dear").expect("written");
    assert!(again().expect_err("a letter").to_string().contains("it is not empty ("));
    fs::remove_file(half.join("letter.txt")).expect("removed");
    again().expect("begun again");
    fs::remove_dir_all(&half).expect("removed");
    fs::create_dir(&half).expect("made");
    let owner = plumb_host::owner::Owner::of_directory(&half).expect("a mark");
    fs::write(half.join("users01.dbf"), "under way").expect("written");
    let error = again().expect_err("another one fills it").to_string();
    assert!(error.contains("a backup or a restore fills it; wait for its end"), "{error}");
    assert_eq!(fs::read_to_string(half.join("users01.dbf")).expect("there"), "under way");
    drop(owner);
}

/// Regression: the backup was made, and removed together with the database.
#[test]
fn a_backup_within_the_database_is_refused_beforehand() {
    let directory = tempfile::tempdir().expect("a directory");
    let instance = loaded(directory.path());
    let home = instance.home().to_path_buf();
    let link = directory.path().join("link");
    std::os::unix::fs::symlink(&home, &link).expect("a link");
    let below =
        [home.clone(), home.join("copy"), home.join("a/b"), link.join("copy"), home.join("a/../copy")];
    for to in below {
        let error = backup::require_apart(&instance, &to).expect_err("within").to_string();
        assert!(error.contains("it lies within the database ") && error.lines().count() == 1, "{error}");
    }
    let beside = home.with_extension("copy");
    for to in [beside.as_path(), Path::new("copy"), Path::new(".")] {
        backup::require_apart(&instance, to).expect("outside");
    }
}
