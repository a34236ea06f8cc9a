//! Names and paths with control characters, or that are not UTF-8.

use crate::program::{command, fine, names, plumb};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

#[test]
fn no_control_character_of_a_name_reaches_the_terminal_or_a_report() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    let file = "f\x1b[31m.csv";
    fs::write(here.join(file), "\"a\x1b]0;owned\x07\",\"b\u{9b}31m\"\n\x1b[2J,1\nx,\n").expect("a file");
    fs::write(here.join("bad.csv"), "a,\"b\x1b[31m\"\n1\n").expect("a file");
    let commands: [&[&str]; 6] = [
        &["load", file, "--table", "t"],
        &["list", "tables"],
        &["index", "t", "a\x1b]0;owned\x07", "--report", "--bundle", "b"],
        &["check"],
        &["load", "bad.csv", "--table", "u"],
        &["drop", "\x1b[31m"],
    ];
    for arguments in commands {
        let ended = plumb(here, arguments);
        for printed in [&ended.stdout, &ended.stderr] {
            let obeyed = |letter: char| letter.is_control() && letter != '\n';
            assert!(!printed.contains(obeyed), "{arguments:?}: {printed:?}");
        }
        let shown = (ended.stdout + &ended.stderr).contains("\\u001b");
        assert_eq!(shown, arguments[0] != "check", "{arguments:?}");
    }
    let report = fs::read_to_string(here.join("b/report.txt")).expect("a report");
    assert!(!report.contains('\x1b') && report.contains("a\\u001b]0;owned\\u0007"), "{report}");
    assert!(!fs::read_to_string(here.join("b/report.html")).expect("a report").contains('\x1b'));
    // A name keeps its bytes, so the column is still found.
    let record: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(here.join("b/record.json")).expect("a record"))
            .expect("JSON");
    assert!(record.to_string().contains("\\u001b]0;owned\\u0007"));
}

#[test]
fn paths_that_are_no_text_are_paths_like_others() {
    // In memory if possible, so that the study need not wait for a device.
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    let directory = made.expect("a temporary directory");
    let odd = Path::new(OsStr::from_bytes(b"x\xff\xfey"));
    let here = directory.path().join(odd);
    fs::create_dir(&here).expect("a directory");
    let csv = odd.join(OsStr::from_bytes(b"\xff.csv"));
    fs::write(directory.path().join(&csv), "a,b\n1,2\n").expect("a file");
    let of = |words: &[&str], more: &[&Path]| {
        let mut command = command(directory.path());
        command.arg(words[0]).arg("--path").arg(odd).args(&words[1..]).args(more);
        let ended = command.output().expect("the program starts");
        let stderr = String::from_utf8(ended.stderr).expect("UTF-8");
        assert!(ended.status.code().is_some_and(|code| code != 1), "{words:?}: {stderr}");
        String::from_utf8(ended.stdout).expect("UTF-8")
    };
    let bundle = |name: &str| odd.join(name);
    of(&["load", "--table", "t"], &[&csv]);
    of(&["index", "t", "b", "--bundle"], &[&bundle("b")]).find("UNVERIFIED").expect("built");
    of(&["check"], &[]);
    of(&["list", "tables"], &[]);
    of(&["drop", "t"], &[]);
    let run = of(&["run", "large-sort", "--rows", "1000", "--json", "--temp-path"], &[odd]);
    let record: serde_json::Value = serde_json::from_str(&run).expect("a record");
    let path = record["devices"][0]["path"].as_str().expect("a path");
    assert!(path.ends_with("/x\\xff\\xfey"), "escaped, and only once so: {path}");
    of(&["study", "large-sort", "--blocks", "5", "--rows", "1000", "--bundle"], &[&bundle("study")]);
    fine(directory.path(), [OsStr::new("verify"), bundle("study").as_os_str()]);
    plumb(directory.path(), [OsStr::new("report"), bundle("b").as_os_str()]);
    of(&["clean"], &[]);
    assert_eq!(names(&here), ["b", "plumb.db", "study", "\u{fffd}.csv"]);
}
