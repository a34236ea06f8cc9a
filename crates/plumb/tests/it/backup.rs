//! `plumb backup` and `plumb restore`: there and back, and not over anything.

use crate::bundles::{signal, wait_for};
use crate::faults::end_of;
use crate::program::{command, fine, names, refused};
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

/// A database with a loaded table, and one that transactions change.
fn database(directory: &Path) {
    let rows: String = (0..500).map(|id| format!("{id},text of {id}\n")).collect();
    fs::write(directory.join("t.csv"), format!("id,what\n{rows}")).expect("a file");
    fine(directory, ["load", "t.csv", "--table", "loaded"]);
    let small = ["--set", "log_file_size=1M", "--set", "log_buffer=256K"];
    fine(directory, ["load", "t.csv", "--table", "live", "--conventional"].into_iter().chain(small));
    fine(directory, ["index", "loaded", "id"]);
}

#[test]
fn a_database_comes_back_with_its_tables_after_its_directory_is_lost() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path();
    database(at);
    let tables = fine(at, ["list", "tables"]);
    let said = fine(at, ["backup", "copy"]);
    assert!(said.contains(" files, ") && said.contains(" copied to copy in "), "{said}");
    fs::remove_dir_all(at.join("plumb.db")).expect("lost");
    let said = fine(at, ["restore", "copy"]);
    assert!(said.contains(" verified and restored to "), "{said}");
    assert_eq!(fine(at, ["list", "tables"]), tables);
    fine(at, ["check"]);
}

#[test]
fn a_damaged_backup_and_one_over_a_database_are_refused_in_one_line() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path();
    database(at);
    fine(at, ["backup", "copy"]);
    let (code, says) = refused(at, ["restore", "copy"]);
    assert_eq!(code, 1, "{says}");
    assert!(says.contains("plumb.db: a database stands there (control.json)"), "{says}");
    let path = at.join("copy/users01.dbf");
    let mut bytes = fs::read(&path).expect("a file");
    bytes[100_000] ^= 1;
    fs::write(&path, bytes).expect("written");
    fs::create_dir(at.join("other")).expect("a directory");
    let real = at.canonicalize().expect("there");
    let (code, says) = refused(at, ["restore", "copy", "--path", "other"]);
    assert!(
        says.starts_with(&format!("{}/copy/users01.dbf: it is damaged: ", real.display()))
            && says.ends_with("; nothing was restored: restore from another backup"),
        "{code} {says}"
    );
    assert_eq!(fs::read_dir(at.join("other")).expect("a directory").count(), 0);
    let before = names(&at.join("plumb.db"));
    let (_, says) = refused(at, ["backup", "plumb.db/copy"]);
    assert!(says.starts_with("plumb.db/copy: it lies within the database "), "{says}");
    assert_eq!(names(&at.join("plumb.db")), before);
    let (_, says) = refused(at, ["backup", "copy"]);
    assert!(says.starts_with("copy: a backup stands there (backup.json)"), "{says}");
}

#[test]
fn a_backup_that_fails_leaves_nothing_and_can_be_made_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path();
    database(at);
    fs::create_dir(at.join("empty")).expect("a directory");
    for (to, stays) in [("copy", false), ("empty", true)] {
        // Below the length of its files.
        let line = format!("ulimit -f 128; exec {} backup {to}", env!("CARGO_BIN_EXE_plumb"));
        let mut shell = Command::new("bash");
        shell.args(["-c", &line]).current_dir(at).stdin(Stdio::null());
        let ended = shell.output().expect("bash is there");
        let says = String::from_utf8_lossy(&ended.stderr);
        assert_eq!((ended.status.code(), says.lines().count()), (Some(1), 1), "{says}");
        assert!(says.ends_with("; what had been made is removed\n"), "{says}");
        assert_eq!(at.join(to).exists(), stays, "{to}: what was there stays");
        assert!(!stays || names(&at.join(to)).is_empty(), "{to}");
        fine(at, ["backup", to]);
    }
}

/// A file of gigabytes without blocks: the copy of it takes long enough to be interrupted.
#[test]
fn an_interrupted_backup_leaves_nothing_and_says_so() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let at = directory.path();
    database(at);
    let users = File::options().write(true).open(at.join("plumb.db/users01.dbf")).expect("a file");
    users.set_len(16 << 30).expect("a length");
    let mut backup = command(at);
    backup.args(["backup", "copy"]).stdout(Stdio::null()).stderr(Stdio::piped());
    let child = backup.spawn().expect("the program starts");
    wait_for(&at.join("copy/users01.dbf"));
    signal("INT", child.id());
    let ended = end_of(child);
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "plumb: interrupted: nothing of copy stays\n");
    assert_eq!(ended.status.code(), Some(130));
    assert!(!at.join("copy").exists());
}

/// A file of gigabytes without blocks: its verification takes long enough to be interrupted.
#[test]
fn an_interrupted_restore_leaves_nothing_and_says_so() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let at = directory.path();
    database(at);
    fine(at, ["backup", "copy"]);
    let users = File::options().write(true).open(at.join("copy/users01.dbf")).expect("a file");
    users.set_len(64 << 30).expect("a length");
    fs::create_dir(at.join("other")).expect("a directory");
    let mut restore = command(at);
    restore.args(["restore", "copy", "--path", "other"]).stdout(Stdio::null()).stderr(Stdio::piped());
    let child = restore.spawn().expect("the program starts");
    // It has caught the signal once it reads the backup.
    let open = format!("/proc/{}/fd", child.id());
    let reads = || {
        let files = fs::read_dir(&open).into_iter().flatten().flatten();
        files
            .filter_map(|file| fs::read_link(file.path()).ok())
            .any(|file| file.ends_with("copy/users01.dbf"))
    };
    while !reads() {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    signal("INT", child.id());
    let ended = end_of(child);
    let says = String::from_utf8_lossy(&ended.stderr);
    assert!(
        says.starts_with("plumb: interrupted: nothing of ") && says.ends_with("plumb.db stays\n"),
        "{says}"
    );
    assert_eq!(ended.status.code(), Some(130));
    assert_eq!(names(&at.join("other")), Vec::<String>::new());
}

#[test]
fn a_place_that_is_no_directory_is_called_what_it_is() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path();
    fs::write(at.join("t.csv"), "id\n1\n").expect("a file");
    fine(at, ["load", "t.csv", "--table", "t"]);
    std::os::unix::fs::symlink("nowhere", at.join("dangling")).expect("a link");
    assert!(Command::new("mkfifo").arg(at.join("pipe")).status().expect("mkfifo").success());
    let before = names(at);
    for (name, what) in
        [("dangling", "a symbolic link that leads nowhere"), ("pipe", "a pipe"), ("t.csv", "a file")]
    {
        let commands: [(&[&str], String); 6] = [
            (&["backup", name], format!("{name}: it is {what}, expected an empty directory or none")),
            (&["restore", name], format!("it is {what}, expected the directory of a backup")),
            (&["run", "large-sort", "--rows", "9", "--bundle", name], format!("; {name} is {what}")),
            (&["calibrate", "--bundle", name], format!("; {name} is {what}")),
            (&["verify", name], format!("; {name} is {what}, expected a directory")),
            (&["check", "--path", name], format!("--path {name}: it is {what}, expected a directory")),
        ];
        for (command, expected) in commands {
            let (code, line) = refused(at, command);
            assert_eq!(code, 1, "{line}");
            assert!(line.contains(&expected), "{command:?}: {line}");
        }
        assert_eq!(names(at), before);
    }
}

#[test]
fn what_a_killed_restore_left_is_restored_again_or_cleaned() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path();
    fs::write(at.join("t.csv"), "id\n1\n").expect("a file");
    fine(at, ["load", "t.csv", "--table", "t"]);
    fine(at, ["backup", "copy"]);
    let home = at.join("plumb.db");
    fs::remove_file(home.join("control.json")).expect("not there yet");
    let (code, line) = refused(at, ["check"]);
    assert_eq!(code, 5, "{line}");
    assert!(line.contains("has no control file, but there is"), "{line}");
    // The same sentence ends every command in the same way.
    let load: &[&str] = &["load", "t.csv", "--table", "u"];
    for command in [load, &["backup", "other"], &["index", "t", "id"]] {
        assert_eq!(refused(at, command), (5, line.clone()), "{command:?}");
    }
    for of_database in ["lock", "control.json.reserve"] {
        fs::remove_file(home.join(of_database)).expect("a restore makes none");
    }
    fs::write(home.join("plumb-owner"), "plumb 4194305 started 1\n").expect("a mark");
    for command in [load, &["check"]] {
        let ended = crate::program::plumb(at, command);
        assert_eq!(ended.code, Some(1), "{}", ended.stderr);
        let line = ended.stderr.lines().last().expect("a line");
        assert!(line.contains("restore again, or remove it by `plumb clean --path "), "{line}");
    }
    fine(at, ["restore", "copy"]);
    fine(at, ["check"]);
    fs::write(home.join("control.json"), "").expect("emptied");
    let (code, line) = refused(at, ["check"]);
    assert_eq!(code, 5, "{line}");
    assert!(line.contains("control.json: it is empty; restore it from a copy"), "{line}");
}
