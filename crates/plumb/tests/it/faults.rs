//! Bad input, damage, two processes, no room, Ctrl-C: one line, the right exit
//! code, nothing half-made left behind, nothing that was there lost.

use crate::program::{command, fine, names, plumb, refused};
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

fn database(directory: &Path, rows: usize) {
    let mut text = String::from("id,name\n");
    for row in 0..rows {
        text.push_str(&format!("{row},name {}\n", row * 31 % 1009));
    }
    fs::write(directory.join("t.csv"), text).expect("a file");
    fine(directory, ["load", "t.csv", "--table", "t"]);
    fine(directory, ["index", "t", "name"]);
}

/// Inverts a byte of a file.
fn damage(file: &Path, offset: u64) {
    let file = fs::OpenOptions::new().read(true).write(true).open(file).expect("a data file");
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).expect("inside the file");
    file.write_all_at(&[!byte[0]], offset).expect("inside the file");
}

/// The first block of a table's extents: file and offset.
fn first_block(directory: &Path, kind: &str, extents: &str) -> (String, u64) {
    let control = fs::read_to_string(directory.join("plumb.db/control.json")).expect("a control file");
    let document = control.split_once('\n').expect("a checksum and a document").1;
    let catalog: serde_json::Value = serde_json::from_str(document).expect("JSON");
    let extent = &catalog[kind][0][extents][0];
    let spaces = catalog["tablespaces"].as_array().expect("a list");
    let files = spaces.iter().flat_map(|space| space["files"].as_array().expect("a list"));
    let file = files.clone().find(|file| file["id"] == extent["f"]).expect("the extent's file");
    let path = file["path"].as_str().expect("a path").to_string();
    (path, extent["b"].as_u64().expect("a block") * 8192)
}

#[test]
fn one_damaged_byte_fails_the_check_and_names_the_block() {
    for (kind, extents) in [("tables", "extents"), ("indexes", "leaves")] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        database(directory.path(), 3000);
        let (path, offset) = first_block(directory.path(), kind, extents);
        damage(&directory.path().join(&path), offset + 4321);
        let (code, line) = refused(directory.path(), ["check", "t"]);
        assert_eq!(code, 5, "{line}");
        assert!(line.contains(&format!("block {}", offset / 8192)), "{line}");
        assert!(line.contains("checksum"), "{line}");
        damage(&directory.path().join(&path), offset + 4321);
        fine(directory.path(), ["check", "t"]);
    }
}

#[test]
fn a_data_file_cut_short_is_named() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    database(directory.path(), 3000);
    let (path, _) = first_block(directory.path(), "tables", "extents");
    let file = fs::OpenOptions::new().write(true).open(directory.path().join(&path)).expect("a data file");
    file.set_len(100_000).expect("shorter");
    let (code, line) = refused(directory.path(), ["check", "t"]);
    assert_eq!(code, 1);
    assert!(line.contains("was cut short: it ends at byte 100000"), "{line}");
}

#[test]
fn a_damaged_control_file_is_named() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    database(directory.path(), 10);
    let control = directory.path().join("plumb.db/control.json");
    let text = fs::read_to_string(&control).expect("a control file");
    fs::write(&control, text.replacen("row_count", "row_kount", 1)).expect("a control file");
    let (code, line) = refused(directory.path(), ["check"]);
    assert_eq!(code, 1);
    assert!(line.contains("control.json: its checksum is"), "{line}");
}

#[test]
fn a_second_process_is_told_who_has_the_database() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    database(directory.path(), 10);
    let held = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(directory.path().join("plumb.db/lock"))
        .expect("a lock");
    held.lock().expect("nobody else has it");
    let (code, line) = refused(directory.path(), ["check"]);
    assert_eq!(code, 1);
    assert!(line.contains("/plumb.db is in use by process "), "{line}");
    drop(held);
    fine(directory.path(), ["check"]);
}

#[test]
fn a_failed_load_leaves_the_database_as_it_was() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    database(directory.path(), 100);
    fs::write(directory.path().join("bad.csv"), "id,name\n1,a\n2,b,c\n").expect("a file");
    let (code, line) = refused(directory.path(), ["load", "bad.csv", "--table", "bad"]);
    assert_eq!(code, 1);
    assert!(line.contains("bad.csv") && line.contains('3'), "{line}");
    fs::write(directory.path().join("late.csv"), "id\n1\nx\n").expect("a file");
    let ended = plumb(directory.path(), ["load", "late.csv", "--table", "late", "--types", "NUMBER"]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("late.csv"), "{}", ended.stderr);
    assert_eq!(ended.stderr.lines().count(), 1);
    let listed = fine(directory.path(), ["list", "tables"]);
    assert!(!listed.contains("BAD") && !listed.contains("LATE"), "{listed}");
    fine(directory.path(), ["check"]);
}

#[test]
fn no_room_is_found_before_anything_is_made() {
    let shared_memory = Path::new("/dev/shm");
    if !shared_memory.is_dir() {
        eprintln!("skipped: there is no /dev/shm");
        return;
    }
    let directory = tempfile::tempdir_in(shared_memory).expect("a temporary directory");
    let (code, line) = refused(directory.path(), ["run", "large-sort", "--rows", "500G"]);
    assert_eq!(code, 1);
    assert!(line.contains("are needed there and") && line.contains("are free"), "{line}");
    assert!(names(directory.path()).is_empty());
}

#[test]
fn memory_file_systems_are_used_buffered_and_refused_only_when_direct_was_asked_for() {
    let shared_memory = Path::new("/dev/shm");
    if !shared_memory.is_dir() {
        eprintln!("skipped: there is no /dev/shm");
        return;
    }
    let directory = tempfile::tempdir_in(shared_memory).expect("a temporary directory");
    fine(directory.path(), ["run", "large-sort", "--rows", "20000", "--json"]);
    let direct = ["run", "large-sort", "--rows", "20000", "--set", "filesystemio_options=directio"];
    let ended = plumb(directory.path(), direct);
    // Newer kernels give tmpfs direct I/O in name; then the run is what was asked for.
    if ended.code != Some(0) {
        assert_eq!(ended.code, Some(1));
        assert!(ended.stderr.contains("direct I/O was asked for"), "{}", ended.stderr);
    }
    let left = names(directory.path());
    assert!(left.iter().all(|name| name == "plumb-reports"), "{left:?}");
}

#[test]
fn an_interrupted_run_ends_within_a_second_and_leaves_nothing() {
    // Whenever it comes: while files are made, rows are loaded, or later.
    for (signal, after_ms) in [("INT", 250), ("TERM", 900), ("INT", 1_800)] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut child = command(directory.path())
            .args(["run", "large-sort", "--rows", "20M", "--json"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        sleep(Duration::from_millis(after_ms));
        let killed = Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status();
        assert!(killed.expect("kill is there").success());
        let mut waited_ms = 0;
        while child.try_wait().expect("a child").is_none() {
            assert!(waited_ms < 2_000, "still there two seconds after SIG{signal}");
            sleep(Duration::from_millis(20));
            waited_ms += 20;
        }
        let ended = child.wait_with_output().expect("a child");
        assert_eq!(ended.status.code(), Some(1));
        let stderr = String::from_utf8_lossy(&ended.stderr);
        assert!(stderr.starts_with("plumb: interrupted: "), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        assert_eq!(names(directory.path()), Vec::<String>::new());
    }
}

#[test]
fn an_unwritable_directory_is_named() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let locked = directory.path().join("locked");
    fs::create_dir(&locked).expect("a directory");
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o555)).expect("ours");
    if fs::write(locked.join("probe"), "").is_ok() {
        eprintln!("skipped: this user may write anywhere");
        return;
    }
    let (code, line) = refused(directory.path(), ["run", "large-sort", "--path", "locked"]);
    assert_eq!(code, 1);
    assert!(line.contains("--path locked: cannot make the directory"), "{line}");
}
