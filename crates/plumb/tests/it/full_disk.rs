//! Commands on a full file system: one line with a cure, and nothing left behind. Without the right
//! to mount one, the test is skipped.

use crate::program::{fine, names, refused};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// A file system in memory; dropping it unmounts it.
struct Mounted(tempfile::TempDir);

impl Mounted {
    fn new() -> Option<Mounted> {
        let directory = tempfile::tempdir().expect("a directory");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=12M", "tmpfs"]).arg(directory.path()).stderr(Stdio::null());
        match mount.status().is_ok_and(|status| status.success()) {
            true => Some(Mounted(directory)),
            false => {
                println!("skipped: no file system may be mounted here");
                None
            }
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

/// Fills the file system to the last block.
fn fill(directory: &Path) {
    let filler = directory.join("filler");
    let mut filler = File::options().create(true).append(true).open(filler).expect("a file");
    for bytes in [1 << 16, 512] {
        while filler.write_all(&vec![0; bytes]).is_ok() {}
    }
}

#[test]
fn what_is_refused_on_a_full_disk_says_so_and_leaves_nothing() {
    let Some(mounted) = Mounted::new() else { return };
    let here = mounted.0.path();
    fs::write(here.join("t.csv"), "id\n1\n2\n").expect("a file");
    fine(here, ["load", "t.csv", "--table", "t"]);
    fill(here);
    let before = names(here);
    let commands: [&[&str]; 7] = [
        &["backup", "copy"],
        &["export", "t", "--output", "out.csv"],
        &["run", "large-sort", "--rows", "1000", "--bundle", "b"],
        &["run", "large-sort", "--rows", "1000"],
        &["study", "redo-direct", "--rows", "1000", "--bundle", "b"],
        &["calibrate", "--bundle", "b"],
        &["sort", "t.csv", "sorted"],
    ];
    for command in commands {
        // A command may have given up the reserve of the control file.
        fill(here);
        let (code, line) = refused(here, command);
        assert_eq!(code, 1, "{line}");
        assert!(line.contains("free some space"), "{command:?}: {line}");
        for other in ["right", "may write", "may be written", "--rows", "--path", "--bundle"] {
            assert!(!line.contains(other), "{command:?}: {other} is no cure: {line}");
        }
        assert_eq!(names(here), before, "{command:?}: {line}");
    }
    fs::remove_file(here.join("filler")).expect("room again");
    assert_eq!(fine(here, ["clean"]), ".: no killed process left anything\n");
    fine(here, ["backup", "copy"]);
}

/// A copy that finds no room leaves its target as it was.
#[test]
fn a_copy_on_a_full_disk_changes_nothing() {
    let Some(mounted) = Mounted::new() else { return };
    let here = mounted.0.path();
    let mut rows = String::from("id,text\n");
    (0..60_000).for_each(|row| rows.push_str(&format!("{row},some words for row {row}\n")));
    fs::write(here.join("t.csv"), rows).expect("a file");
    fine(here, ["load", "t.csv", "--table", "t"]);
    fs::remove_file(here.join("t.csv")).expect("removed");
    fine(here, ["copy", "t", "--to", "u", "--where", "id < 100"]);
    fill(here);
    for load in ["serial", "parallel"] {
        let (code, line) = refused(here, ["copy", "t", "--to", "u", "--load", load]);
        assert_eq!(code, 1, "{line}");
        assert!(line.contains("free some space"), "{line}");
    }
    fs::remove_file(here.join("filler")).expect("room again");
    let again = fine(here, ["copy", "t", "--to", "u", "--where", "id >= 100 and id < 150"]);
    assert!(again.contains("50 rows copied") && again.contains("it has 150 rows"), "{again}");
    fine(here, ["check", "u"]);
}
