//! Foreign directories, directories moved while open, and directories with links: nothing outside
//! of them is made, written, truncated or removed.

use crate::support::{Rows, SMALLEST, assert_green, create_in, load, open_in, settings};
use plumb_engine::check::check_table;
use plumb_engine::instance::stands;
use plumb_engine::transaction::Transactions;
use plumb_engine::{EngineError, Instance, Layout};
use plumb_events::{Cancel, Role};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Changes the control file of a database, and renews its checksum.
fn edit_control(home: &Path, change: impl FnOnce(&str) -> String) {
    let control = fs::read_to_string(home.join("control.json")).expect("a control file");
    let document = change(control.split_once('\n').expect("two parts").1);
    let sum = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, document.as_bytes());
    fs::write(home.join("control.json"), format!("{sum:08x}\n{document}")).expect("written");
}

/// A database with a table, and foreign files around it.
struct Hostile {
    directory: tempfile::TempDir,
    home: PathBuf,
}

const MINE: &str = "not the database's";

impl Hostile {
    fn new() -> Hostile {
        let directory = tempfile::tempdir().expect("a directory");
        let home = directory.path().join("db");
        load(&create_in(&home, &[]), "t", &Rows::uniform(300, 1)).expect("loaded");
        let hostile = Hostile { home, directory };
        hostile.victims().for_each(|victim| fs::write(victim, MINE).expect("a file"));
        hostile
    }

    fn victims(&self) -> impl Iterator<Item = PathBuf> {
        ["victim.txt", "temp01.dbf", "users01.dbf"].map(|name| self.directory.path().join(name)).into_iter()
    }

    /// Reads the table, and opens the log.
    fn use_all(&self) -> Result<(), EngineError> {
        let instance = open_in(&self.home)?;
        check_table(&instance, "t")?;
        let session = instance.recorder.session(Role::User);
        Transactions::open(&instance, &session).map(drop)
    }

    /// Makes the directory hostile, uses it in each way, and asserts
    /// that nothing around it changed.
    fn check(&self, what: &str, make: impl FnOnce(&Path, &Path)) {
        make(&self.home, self.directory.path());
        let around = names(self.directory.path());
        let mut said = Vec::new();
        for _ in 0..2 {
            said.push(stands(&self.home).map(drop));
            said.push(Instance::open_to_read(&self.home, settings(&[]), Cancel::default()).map(drop));
            said.push(open_in(&self.home).map(drop));
            said.push(self.use_all());
        }
        for victim in self.victims() {
            assert_eq!(
                fs::read_to_string(&victim).ok().as_deref(),
                Some(MINE),
                "{what}: {}",
                victim.display()
            );
        }
        assert_eq!(names(self.directory.path()), around, "{what}");
        for error in said.iter().filter_map(|said| said.as_ref().err()).map(ToString::to_string) {
            assert_eq!(error.lines().count(), 1, "{what}: {error}");
        }
        assert!(said.iter().any(Result::is_err), "{what}: it was refused by no way of using it");
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry"));
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_control_file_from_elsewhere_leads_to_no_file_outside() {
    for file in ["users01.dbf", "temp01.dbf"] {
        for path in ["../victim.txt", &format!("../{file}"), &format!("sub/../../{file}")] {
            Hostile::new().check(path, |home, _| {
                edit_control(home, |text| text.replace(&format!("\"{file}\""), &format!("\"{path}\"")));
            });
        }
        for victim in ["victim.txt", file, "missing.txt"] {
            Hostile::new().check(victim, |home, around| {
                let outside = format!("{:?}", around.join(victim).display().to_string());
                edit_control(home, |text| text.replace(&format!("\"{file}\""), &outside));
            });
        }
    }
}

#[test]
fn a_creation_from_elsewhere_removes_no_file_outside() {
    for path in ["../users01.dbf", "AROUND/users01.dbf", "AROUND/victim.txt"] {
        let hostile = Hostile::new();
        let creating = format!("{{\"creating\":{{\"home\":{:?}}}}}", hostile.home.display().to_string());
        let outside = path.replace("AROUND", &hostile.directory.path().display().to_string());
        edit_control(&hostile.home, |text| {
            text.replace("\"state\":\"open\"", &format!("\"state\":{creating}"))
                .replace("\"users01.dbf\"", &format!("{outside:?}"))
        });
        let _ = stands(&hostile.home);
        for victim in hostile.victims() {
            assert_eq!(
                fs::read_to_string(&victim).ok().as_deref(),
                Some(MINE),
                "{path}: {}",
                victim.display()
            );
        }
    }
}

/// The state of a creation that is killed once the file outside has its header.
#[test]
fn a_creation_that_was_killed_removes_its_own_file_outside() {
    let directory = tempfile::tempdir().expect("a directory");
    let [home, data] = ["home", "data"].map(|name| directory.path().join(name));
    let layout = Layout { users: vec![data.clone()], ..Layout::in_one(home.clone()) };
    let options = settings(&[("filesystemio_options", "none")]);
    drop(Instance::create(&layout, options, SMALLEST, Cancel::default()).expect("created"));
    let creating = format!("{{\"creating\":{{\"home\":{:?}}}}}", home.display().to_string());
    edit_control(&home, |text| text.replace("\"state\":\"open\"", &format!("\"state\":{creating}")));
    assert!(!stands(&home).expect("removed"));
    assert_eq!(names(&data), Vec::<String>::new());
    assert_eq!(names(&home), ["lock"]);
}

#[test]
fn links_of_names_that_the_engine_writes_are_not_followed() {
    for name in ["lock", "control.json", "users01.dbf", "temp01.dbf", "redo.ctl"] {
        Hostile::new().check(name, |home, _| {
            let own = home.join(name);
            let _ = fs::remove_file(&own);
            symlink("../victim.txt", own).expect("a link");
        });
    }
    for name in ["lock", "temp01.dbf"] {
        Hostile::new().check(name, |home, around| {
            fs::remove_file(home.join(name)).expect("there");
            fs::hard_link(around.join("victim.txt"), home.join(name)).expect("a second name");
        });
    }
}

#[test]
fn a_link_at_the_new_control_file_is_not_followed() {
    let hostile = Hostile::new();
    symlink("../victim.txt", hostile.home.join("control.json.new")).expect("a link");
    assert_green(&open_in(&hostile.home).expect("it works"), "t");
    assert_eq!(fs::read_to_string(hostile.directory.path().join("victim.txt")).expect("there"), MINE);
}

#[test]
fn the_lock_is_private_and_a_false_owner_not_shown() {
    let hostile = Hostile::new();
    let instance = open_in(&hostile.home).expect("it works");
    let lock = hostile.home.join("lock");
    assert_eq!(fs::metadata(&lock).expect("there").permissions().mode() & 0o777, 0o600);
    fs::write(&lock, "\u{1b}[2J rm").expect("written");
    let error = open_in(&hostile.home).expect_err("it is open").to_string();
    assert!(error.contains("is in use by another process"), "{error}");
    drop(instance);
}

/// A restored copy is swapped in while a process still works in the old directory.
#[test]
fn a_moved_home_stays_in_use_and_its_place_untouched() {
    let directory = tempfile::tempdir().expect("a directory");
    let [home, old, other] = ["db", "old", "other"].map(|name| directory.path().join(name));
    load(&create_in(&other, &[]), "theirs", &Rows::uniform(300, 2)).expect("loaded");
    let instance = create_in(&home, &[]);
    fs::rename(&home, &old).expect("moved");
    fs::rename(&other, &home).expect("another in its place");
    let before = fs::read(home.join("control.json")).expect("a control file");
    load(&instance, "t", &Rows::uniform(20_000, 1)).expect("loaded");
    {
        let session = instance.recorder.session(Role::User);
        drop(Transactions::open(&instance, &session).expect("a log is made"));
    }
    drop(instance);
    assert_eq!(fs::read(home.join("control.json")).expect("a control file"), before);
    assert!(!home.join("redo.ctl").exists());
    assert_green(&open_in(&home).expect("the other one"), "theirs");
    assert!(old.join("redo.ctl").exists());
    assert_green(&open_in(&old).expect("where it is now"), "t");
}

/// The control file asks for 4 TB; without a check of the free space they would fill the disk.
#[test]
fn a_file_beyond_the_disk_is_refused_beforehand() {
    let Hostile { directory: _directory, home } = &Hostile::new();
    edit_control(home, |document| {
        let mut control: serde_json::Value = serde_json::from_str(document).expect("JSON");
        control["tablespaces"][1]["files"][0]["bytes"] = (1_u64 << 42).into();
        control.to_string()
    });
    let temp = fs::read(home.join("temp01.dbf")).expect("a file");
    let read = Instance::open_to_read(home, settings(&[]), Cancel::default()).expect("it is not needed");
    assert_green(&read, "t");
    drop(read);
    let error = open_in(home).map(drop).expect_err("no disk is so large").to_string();
    assert!(error.contains("temp01.dbf") && error.contains("No space left"), "{error}");
    assert!(
        error.contains("needs 4.00 TB according to control file ") && error.lines().count() == 1,
        "{error}"
    );
    let found = fs::read(home.join("temp01.dbf")).expect("it stays");
    assert!(found == temp, "it was changed, and has {} bytes now", found.len());
    fs::remove_file(home.join("temp01.dbf")).expect("removed");
    let error = open_in(home).map(drop).expect_err("no disk is so large").to_string();
    assert!(error.contains("according to control file ") && !home.join("temp01.dbf").exists(), "{error}");
}
