//! Files and names from outside: irregular files are rejected at once, and long
//! names are cut or rejected.

use crate::program::{fine, refused};
use std::fs;
use std::path::Path;
use std::process::Command;

fn pipe(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().expect("mkfifo");
    assert!(made.success());
}

/// Opening a pipe waits for its other end: a foreign bundle hung every command that read it.
#[test]
fn a_pipe_in_the_place_of_a_file_is_an_error_and_no_wait() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let at = |name: &str| directory.path().join(name);
    fs::create_dir_all(at("b")).expect("a bundle");
    pipe(&at("b/record.json"));
    pipe(&at("s.conf"));
    pipe(&at("s.toml"));
    for arguments in [
        &["report", "b"][..],
        &["info", "b"],
        &["compare", "b", "b"],
        &["trace", "b/record.json"],
        &["run", "slob", "--conf", "s.conf"],
        &["study", "s.toml"],
    ] {
        let (_, error) = refused(directory.path(), arguments.iter().copied());
        assert!(error.contains("it is a pipe, expected a regular file"), "{arguments:?}: {error}");
    }
    // As an input a pipe is one that the user has named.
    fs::write(at("t.csv"), "a,b\n1,2\n").expect("a file");
    fine(directory.path(), ["load", "t.csv", "--table", "T"]);
    fs::remove_file(at("plumb.db/control.json")).expect("removed");
    pipe(&at("plumb.db/control.json"));
    let (_, error) = refused(directory.path(), ["list", "tables"]);
    assert!(error.contains("it is a pipe, expected a regular file"), "{error}");
}

#[test]
fn long_names_are_refused_and_what_turns_text_is_escaped() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).expect("a file");
    write("long.csv", &format!("{},b\n1,2\n", "n".repeat(70_000)));
    let (_, error) = refused(directory.path(), ["load", "long.csv", "--table", "N"]);
    assert!(error.contains("the name of a column has 70000 bytes, and 128 are the most"), "{error}");
    assert!(error.len() < 400, "{error}");
    write("turned.csv", "a\u{202E}b,c\n1,2\n");
    let loaded = fine(directory.path(), ["load", "turned.csv", "--table", "R"]);
    assert!(loaded.contains("a\\u202eb") && !loaded.contains('\u{202E}'), "{loaded}");
    // The names of its columns alone would be longer than a name may be.
    let names: Vec<String> = (0..9).map(|number| format!("a_rather_long_column_{number}")).collect();
    write("wide.csv", &format!("{}\n{}\n", names.join(","), ["1"; 9].join(",")));
    fine(directory.path(), ["load", "wide.csv", "--table", "W"]);
    let built = fine(directory.path(), ["index", "W", &names.join(",")]);
    assert!(built.contains("_IX"), "{built}");
    fine(directory.path(), ["list", "tables"]);
}
