//! Bad input, damage, two processes, no room, Ctrl-C. Each gives one line and the right exit code,
//! leaves no partial files, and loses no existing ones.

use crate::bundles::wait_for;
use crate::program::{
    as_nobody, bytes_below, command, fine, names, plumb, refused, wait_until, wait_until_it_handles_signals,
};
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

/// Returns the first block of a table's extents: file and offset.
fn first_block(directory: &Path, kind: &str, extents: &str) -> (String, u64) {
    let control = fs::read_to_string(directory.join("plumb.db/control.json")).expect("a control file");
    let document = control.split_once('\n').expect("a checksum and a document").1;
    let catalog: serde_json::Value = serde_json::from_str(document).expect("JSON");
    let extent = &catalog[kind][0][extents][0];
    let spaces = catalog["tablespaces"].as_array().expect("a list");
    let files = spaces.iter().flat_map(|space| space["files"].as_array().expect("a list"));
    let file = files.clone().find(|file| file["id"] == extent["f"]).expect("the extent's file");
    let path = file["path"].as_str().expect("a path").to_string();
    (format!("plumb.db/{path}"), extent["b"].as_u64().expect("a block") * 8192)
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
    assert_eq!(code, 5);
    assert!(line.contains("was cut short: it ends at byte 100000"), "{line}");
    // A damaged table can be dropped and made again.
    fine(directory.path(), ["drop", "t"]);
    fine(directory.path(), ["load", "t.csv", "--table", "t"]);
    fine(directory.path(), ["check"]);
}

#[test]
fn the_check_goes_on_past_what_is_damaged_and_counts_it() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    database(directory.path(), 60_000);
    fine(directory.path(), ["index", "t", "id"]);
    fs::copy(directory.path().join("t.csv"), directory.path().join("u.csv")).expect("copied");
    fine(directory.path(), ["load", "u.csv", "--table", "u"]);
    let (table, offset) = first_block(directory.path(), "tables", "extents");
    for block in 0..13 {
        damage(&directory.path().join(&table), offset + block * 8192 + 99);
    }
    let (leaves, offset) = first_block(directory.path(), "indexes", "leaves");
    damage(&directory.path().join(&leaves), offset + 99);
    fs::write(directory.path().join("plumb.db/temp01.dbf"), "not needed").expect("written");
    let ended = plumb(directory.path(), ["check"]);
    assert_eq!(ended.code, Some(5), "{}", ended.stderr);
    let expected = "plumb: 14 blocks of several tables and indexes are damaged, as listed above; the first: table T is not ";
    assert!(ended.stderr.starts_with(expected), "{}", ended.stderr);
    let lines: Vec<&str> = ended.stdout.lines().collect();
    let has = |text: &str| lines.iter().filter(|line| line.contains(text)).count();
    assert_eq!(has("DAMAGED table T: 13 blocks (checksum 13)"), 1, "{}", ended.stdout);
    assert_eq!(has("users0"), 10, "{}", ended.stdout);
    assert_eq!(has("these are the first 10"), 1);
    assert_eq!(has("DAMAGED index T_NAME_IX: 1 block (checksum 1)"), 1, "{}", ended.stdout);
    assert_eq!(has("not compared with rows"), 1, "the other index can still be looked at: {}", ended.stdout);
    let of_other = lines.iter().position(|line| *line == "table U").expect("the next table");
    assert!(lines[of_other + 1].contains("block checksums"), "{}", ended.stdout);
}

#[test]
fn a_damaged_header_and_a_missing_file_are_damage() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    database(directory.path(), 300);
    for file in ["users01.dbf", "indx02.dbf"] {
        let path = directory.path().join("plumb.db").join(file);
        damage(&path, 700);
        let (code, line) = refused(directory.path(), ["check"]);
        assert_eq!(code, 5, "{line}");
        assert!(line.contains("block 0 (file ") && line.contains("is corrupt: checksum"), "{line}");
        damage(&path, 700);
        let aside = directory.path().join("aside");
        fs::rename(&path, &aside).expect("moved");
        let (code, line) = refused(directory.path(), ["check"]);
        assert_eq!(code, 5, "{line}");
        assert!(line.contains(&format!("{}: it is missing; ", path.display())), "{line}");
        fine(directory.path(), ["list", "tables"]);
        fs::rename(&aside, &path).expect("moved back");
    }
    fine(directory.path(), ["check"]);
}

#[test]
fn what_may_not_be_read_is_not_called_damaged_and_what_may_not_be_written_is_checked() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().expect("a temporary directory");
    database(directory.path(), 300);
    let home = directory.path().join("plumb.db");
    let mode = |path: &Path, mode: u32| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("the mode is changed");
    };
    mode(directory.path(), 0o755);
    let Some(ended) = as_nobody(directory.path(), &["check"]) else { return };
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("cannot read ") && ended.stderr.contains("control.json: Permission denied"),
        "{}",
        ended.stderr
    );
    assert!(ended.stderr.contains("give this user the right"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("remove the directory"), "{}", ended.stderr);
    for name in names(&home) {
        mode(&home.join(name), 0o444);
    }
    mode(&home, 0o555);
    let ended = as_nobody(directory.path(), &["check"]).expect("as before");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    mode(&home.join("users01.dbf"), 0o000);
    let ended = as_nobody(directory.path(), &["check"]).expect("as before");
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("cannot open ") && !ended.stderr.contains("remove the directory"),
        "{}",
        ended.stderr
    );
    mode(&home, 0o755);
}

/// Before the fix, six of fifty interrupted creations left an unusable directory.
#[test]
fn a_first_load_that_was_killed_is_mended_by_the_next_one() {
    for names_there in [2, 4, 6, 8] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let home = directory.path().join("plumb.db");
        fs::write(directory.path().join("t.csv"), "id\n1\n2\n").expect("a file");
        let slow = ["load", "t.csv", "--table", "t", "--set", "debug_request_delay=20000000"];
        let mut child = command(directory.path()).args(slow).stdout(Stdio::null()).spawn().expect("started");
        while names_of(&home) < names_there && child.try_wait().expect("a child").is_none() {
            sleep(Duration::from_millis(1));
        }
        child.kill().expect("killed");
        child.wait().expect("ended");
        fine(directory.path(), ["load", "t.csv", "--table", "t2"]);
        fine(directory.path(), ["check"]);
    }
}

fn names_of(directory: &Path) -> usize {
    fs::read_dir(directory).map_or(0, Iterator::count)
}

#[test]
fn two_rows_need_no_64_mb() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    fs::write(directory.path().join("t.csv"), "id\n1\n2\n").expect("a file");
    fine(directory.path(), ["load", "t.csv", "--table", "t"]);
    let home = directory.path().join("plumb.db");
    let size = |name: String| fs::metadata(home.join(name)).expect("a file").len();
    let bytes: u64 = names(&home).into_iter().map(size).sum();
    assert!(bytes < 7 << 20, "{bytes} bytes");
}

#[test]
fn a_damaged_control_file_is_named() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    database(directory.path(), 10);
    let control = directory.path().join("plumb.db/control.json");
    let text = fs::read_to_string(&control).expect("a control file");
    fs::write(&control, text.replacen("row_count", "row_kount", 1)).expect("a control file");
    let (code, line) = refused(directory.path(), ["check"]);
    assert_eq!(code, 5);
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
    assert!(line.contains("/plumb.db is in use by another process: wait"), "{line}");
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
    let record = fine(directory.path(), ["run", "large-sort", "--rows", "20000", "--json"]);
    let record: serde_json::Value = serde_json::from_str(&record).expect("a record");
    if record["devices"][0]["filesystem"] != "tmpfs" {
        println!("skipped: /dev/shm is no tmpfs");
        return;
    }
    // Newer kernels accept O_DIRECT on tmpfs, which is memory all the same.
    let direct = ["run", "large-sort", "--rows", "20000", "--set", "filesystemio_options=directio"];
    let (code, line) = refused(directory.path(), direct);
    assert_eq!(code, 1);
    assert!(line.contains("direct I/O was asked for"), "{line}");
    assert_eq!(names(directory.path()), Vec::<String>::new());
}

/// Waits for the end of a process. The bound only guards against a hang.
pub fn end_of(mut child: std::process::Child) -> std::process::Output {
    let mut waited_ms = 0;
    while child.try_wait().expect("a child").is_none() {
        assert!(waited_ms < 60_000, "still there a minute after the signal");
        sleep(Duration::from_millis(20));
        waited_ms += 20;
    }
    child.wait_with_output().expect("a child")
}

#[test]
fn an_interrupted_run_ends_and_leaves_nothing() {
    // At any time: before files are made, while they are made, while rows are loaded.
    for (signal, bytes) in [("INT", 0), ("TERM", 1), ("INT", 256 << 20)] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let child = command(directory.path())
            .args(["run", "large-sort", "--rows", "20M", "--json"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        wait_until_it_handles_signals(&child);
        wait_until("its files grow", || bytes_below(directory.path()) >= bytes);
        crate::bundles::signal(signal, child.id());
        let ended = end_of(child);
        assert_eq!(ended.status.code(), Some(if signal == "INT" { 130 } else { 143 }));
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
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).expect("ours");
    let locked = directory.path().join("locked");
    fs::create_dir(&locked).expect("a directory");
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o555)).expect("ours");
    fs::write(directory.path().join("t.csv"), "a\n1\n").expect("a file");
    let cases: [(&[&str], &str); 4] = [
        (&["run", "large-sort", "--path", "locked", "--json"], "--path locked: cannot make the directory"),
        (&["run", "large-sort", "--bundle", "locked/b"], "cannot write reports to locked/b: "),
        (&["run", "large-sort", "--bundle", "locked"], "cannot write reports to locked: "),
        (&["load", "t.csv", "--table", "t", "--path", "locked"], "--path locked: cannot make the directory"),
    ];
    for (arguments, expected) in cases {
        let Some(ended) = as_nobody(directory.path(), arguments) else { return };
        assert_eq!(ended.code, Some(1), "{}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
        assert!(ended.stdout.is_empty(), "refused before anything was read: {}", ended.stdout);
    }
    assert_eq!(names(directory.path()), ["locked", "t.csv"]);
    assert_eq!(names(&locked), Vec::<String>::new());
}

#[test]
fn a_bundle_that_cannot_be_made_is_found_before_the_run() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    fs::write(directory.path().join("file"), "").expect("a file");
    for bundle in ["file", "file/b"] {
        let (code, line) =
            refused(directory.path(), ["run", "large-sort", "--rows", "1000", "--bundle", bundle]);
        assert_eq!(code, 1);
        assert!(line.starts_with(&format!("cannot write reports to {bundle}: ")), "{line}");
        assert!(line.contains("--bundle"), "{line}");
    }
    assert_eq!(names(directory.path()), ["file"]);
}

#[test]
fn a_report_is_printed_although_its_bundle_cannot_be_written() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut run = command(directory.path());
    run.args(["run", "large-sort", "--rows", "200K", "--bundle", "b"]);
    let child = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    wait_for(&directory.path().join("b/plumb-owner"));
    fs::create_dir(directory.path().join("b/record.json")).expect("a directory where a file goes");
    let ended = child.wait_with_output().expect("a child");
    let (stdout, stderr) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert_eq!(ended.status.code(), Some(1));
    assert!(stdout.contains("End of Report"), "{stdout}");
    assert!(stdout.contains("large-sort on "), "{stdout}");
    assert!(stderr.starts_with("plumb: cannot write reports to b/record.json: "), "{stderr}");
}

#[test]
fn a_first_load_that_fails_leaves_no_database() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    fs::write(directory.path().join("bad.csv"), "a\n1\nx\n").expect("a file");
    for types in [&[][..], &["--types", "NUMBER"]] {
        let load = ["load", "bad.csv", "--table", "t"].iter().chain(types);
        let ended = plumb(directory.path(), load);
        assert_eq!(ended.code, Some(if types.is_empty() { 0 } else { 1 }), "{}", ended.stderr);
        if types.is_empty() {
            fine(directory.path(), ["drop", "t"]);
            fs::remove_dir_all(directory.path().join("plumb.db")).expect("a database");
        }
    }
    let (code, _) = refused(directory.path(), ["load", "missing.csv", "--table", "t"]);
    assert_eq!(code, 1);
    assert_eq!(names(directory.path()), ["bad.csv"]);
}

#[test]
fn an_interrupted_first_load_leaves_no_database() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let rows: String = (0..3_000_000).map(|row| format!("{row},name of {row}\n")).collect();
    fs::write(directory.path().join("t.csv"), format!("id,name\n{rows}")).expect("a file");
    let file = bytes_below(directory.path());
    // Before the database is made, while it is made, while rows are loaded.
    for bytes in [0, 1, 16 << 20] {
        let mut load = command(directory.path());
        load.args(["load", "t.csv", "--table", "t"]).stdout(Stdio::null()).stderr(Stdio::piped());
        let child = load.spawn().expect("the program starts");
        wait_until_it_handles_signals(&child);
        wait_until("its files grow", || bytes_below(directory.path()) >= file + bytes);
        crate::bundles::signal("INT", child.id());
        let ended = end_of(child);
        let stderr = String::from_utf8_lossy(&ended.stderr);
        if ended.status.code() == Some(0) {
            println!("it was loaded before the signal reached it");
            return;
        }
        assert_eq!(ended.status.code(), Some(130), "{stderr}");
        assert!(stderr.starts_with("plumb: interrupted: "), "{stderr}");
        assert_eq!(names(directory.path()), ["t.csv"], "{stderr}");
    }
}

#[test]
fn what_the_database_refuses_is_refused_before_the_file_is_read() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    database(directory.path(), 10);
    // The name is rejected first, although the file could not be read either.
    let (code, line) = refused(directory.path(), ["load", "missing.csv", "--table", "t"]);
    assert_eq!(code, 1);
    assert!(line.starts_with("table T exists already"), "{line}");
    let (_, line) = refused(directory.path(), ["load", "missing.csv", "--table", "t_name_ix"]);
    assert!(line.starts_with("index T_NAME_IX exists already"), "{line}");
}

#[test]
fn a_pipe_in_the_place_of_a_file_is_no_fault_of_direct_io() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    database(directory.path(), 10);
    let file = directory.path().join("plumb.db/temp01.dbf");
    fs::remove_file(&file).expect("there");
    assert!(Command::new("mkfifo").arg(&file).status().expect("mkfifo").success());
    let (code, line) = refused(directory.path(), ["drop", "t"]);
    assert_eq!(code, 1);
    assert!(line.contains("temp01.dbf: it is a pipe, expected a regular file"), "{line}");
}

#[test]
fn a_name_that_is_too_long_while_a_file_is_made_says_so() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    database(directory.path(), 10);
    let name = "x".repeat(252);
    let before = names(directory.path());
    let sort: &[&str] = &["sort", "t.csv", &name];
    for command in [sort, &["export", "t", "--output", &name]] {
        let (code, line) = refused(directory.path(), command);
        assert_eq!(code, 1, "{line}");
        assert!(
            line.contains("a name has at most 255 bytes, ") && line.ends_with("choose a shorter one"),
            "{line}"
        );
        assert_eq!(names(directory.path()), before);
    }
    fine(directory.path(), ["backup", &name]);
    fine(directory.path(), ["check"]);
    fine(directory.path(), ["run", "large-sort", "--rows", "1000", "--bundle", &name.replace('x', "y")]);
}

#[test]
fn log_files_in_each_others_places_are_named_and_no_table_is_to_be_dropped() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    fs::write(here.join("t.csv"), "id\n1\n").expect("a file");
    for home in ["one", "two"] {
        fs::create_dir(here.join(home)).expect("a directory");
        let small = ["--set", "log_file_size=1M", "--set", "log_buffer=256K"];
        let load = ["load", "t.csv", "--table", "t", "--conventional", "--path", home];
        fine(here, load.into_iter().chain(small));
    }
    let log = |home: &str, number: u32| here.join(format!("{home}/plumb.db/redo0{number}.log"));
    let swap = |one: &Path, other: &Path| {
        fs::rename(one, here.join("aside")).expect("moved");
        fs::rename(other, one).expect("moved");
        fs::rename(here.join("aside"), other).expect("moved");
    };
    swap(&log("one", 1), &log("two", 1));
    let (code, line) = refused(here, ["backup", "copy", "--path", "one"]);
    assert_eq!(code, 5, "{line}");
    assert!(line.starts_with("log file ") && line.contains(" belongs to database "), "{line}");
    assert!(line.contains("if the two were swapped, swap them back") && !line.contains("drop"), "{line}");
    swap(&log("one", 1), &log("two", 1));
    fine(here, ["check", "--path", "one"]);

    swap(&log("one", 1), &log("one", 2));
    let (code, line) = refused(here, ["backup", "copy", "--path", "one"]);
    assert_eq!(code, 1, "{line}");
    assert!(
        line.contains("redo02.log: it is log file 1 of this database, expected log file 2; name it "),
        "{line}"
    );
    assert!(line.contains("redo01.log, where it belongs: if the two were swapped"), "{line}");
    swap(&log("one", 1), &log("one", 2));
    fine(here, ["check", "--path", "one"]);
}

#[test]
fn a_place_for_log_files_that_cannot_be_is_named_by_its_own_setting() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    fs::write(here.join("t.csv"), "id\n1\n").expect("a file");
    let load = ["load", "t.csv", "--table", "t", "--conventional", "--set"];
    for (set, expected) in [
        ("log_path=../up", "log_path=../up: expected an absolute path, or the name of a directory"),
        ("log_mirror_path=a/b", "log_mirror_path=a/b: expected an absolute path, or the name"),
        ("log_path=/no/such", "log_path=/no/such: there is no such directory; make it first"),
        ("log_path=/dev/null", "log_path=/dev/null: it is a device, expected a directory"),
    ] {
        let ended = plumb(here, load.iter().chain([&set]));
        assert_eq!(ended.code, Some(2), "{}", ended.stderr);
        assert!(ended.stderr.starts_with(&format!("plumb: {expected}")), "{}", ended.stderr);
    }
    let run = ["run", "redo", "--rows", "1000", "--set", "log_path=/no/such"];
    let (_, line) = refused(here, run);
    assert_eq!(
        line,
        "--set log_path /no/such: there is no such directory; make it first, or name another one"
    );
}
