//! `plumb backup` and `plumb restore`: there and back, and not over anything.

use crate::program::{fine, refused};
use std::fs;
use std::path::Path;

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
    assert!(
        says.starts_with("backup ") && says.contains("plumb.db: a database stands there (control.json)"),
        "{says}"
    );
    let path = at.join("copy/users01.dbf");
    let mut bytes = fs::read(&path).expect("a file");
    bytes[100_000] ^= 1;
    fs::write(&path, bytes).expect("written");
    fs::create_dir(at.join("other")).expect("a directory");
    let (code, says) = refused(at, ["restore", "copy", "--path", "other"]);
    assert!(
        says.starts_with("backup copy/users01.dbf: it is damaged: ")
            && says.ends_with("; nothing was restored"),
        "{code} {says}"
    );
    assert_eq!(fs::read_dir(at.join("other")).expect("a directory").count(), 0);
    let (_, says) = refused(at, ["backup", "copy"]);
    assert!(says.starts_with("backup copy: a backup stands there (backup.json)"), "{says}");
}
