//! Leftovers of killed processes: the next command names them, `plumb clean` removes them,
//! and nothing else is removed. Also the ends of a process: by the terminal's end, by a
//! second Ctrl-C, by a limit.

use crate::bundles::{signal, wait_for};
use crate::faults::end_of;
use crate::program::{fine, names, plumb, refused, wait_until, wait_until_it_handles_signals};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Starts a command that takes a while, and waits until it has begun to fill its directory.
fn started(directory: &Path, arguments: &[&str]) -> (Child, PathBuf) {
    // The caller may ignore SIGHUP, as under nohup, and the program would inherit that.
    let mut command = Command::new("env");
    command.arg("--default-signal=HUP").arg(env!("CARGO_BIN_EXE_plumb")).args(arguments);
    command.current_dir(directory).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let child = command.spawn().expect("the program starts");
    let kind = if arguments[0] == "run" { "plumb-run-" } else { "plumb-calibrate-" };
    let ours = |name: &String| name.starts_with(&format!("{kind}{}", child.id()));
    wait_until("a directory of its own", || names(directory).iter().any(ours));
    let home = directory.join(names(directory).into_iter().find(ours).expect("just seen"));
    wait_for(&home.join("plumb-owner"));
    (child, home)
}

fn kill(mut child: Child) {
    child.kill().expect("kill -9");
    child.wait().expect("a child");
}

const RUN: [&str; 5] = ["run", "large-sort", "--rows", "20M", "--json"];

#[test]
fn what_a_killed_process_left_is_named_and_removed_and_a_living_one_is_spared() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary directory");
    let here = directory.path();
    let (run, of_run) = started(here, &["run", "large-sort", "--rows", "20M"]);
    kill(run);
    let (calibration, of_calibration) = started(here, &["calibrate", "--file-size", "256M", "--json"]);
    kill(calibration);
    let (living, of_living) = started(here, &RUN);

    let listed = plumb(here, ["list", "tables"]);
    let remark = listed.stderr.lines().next().expect("a remark");
    assert!(remark.starts_with("killed processes left ./plumb-"), "{remark}");
    assert!(remark.contains(" and 2 more, "), "the bundle of the run too: {remark}");
    assert!(remark.ends_with(": `plumb clean --path .` removes it"), "{remark}");

    let dry = fine(here, ["clean", "--dry-run"]);
    assert_eq!(dry.lines().count(), 4, "{dry}");
    assert!(of_run.exists() && of_calibration.exists());
    let cleaned = fine(here, ["clean", "--path", "."]);
    assert_eq!(cleaned.replace(" freed", " would be freed"), dry);
    // The freed bytes depend on the progress of the killed processes.
    assert!(cleaned.ends_with(" freed\n"), "{cleaned}");
    assert!(!of_run.exists() && !of_calibration.exists());
    assert!(of_living.join("control.json").exists() || of_living.exists(), "a living process is spared");
    assert_eq!(names(&here.join("plumb-reports")), Vec::<String>::new());
    assert_eq!(fine(here, ["clean"]), ".: no killed process left anything\n");
    kill(living);
}

#[test]
fn a_killed_run_with_a_log_is_removed_with_it() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let orphan = directory.path().join("plumb-run-7");
    fs::create_dir(&orphan).expect("a directory");
    fs::write(orphan.join("plumb-owner"), "plumb 4194305 started 1\n").expect("a file");
    for file in ["users01.dbf", "redo01.log", "redo03.log", "redo.ctl", "control.json", "lock"] {
        fs::write(orphan.join(file), "of a run").expect("a file");
    }
    fine(directory.path(), ["clean"]);
    assert_eq!(names(directory.path()), Vec::<String>::new());
}

/// A killed backup or restore leaves files of the engine and its mark, in a directory of any name.
#[test]
fn what_a_killed_backup_or_restore_left_goes_and_a_whole_one_stays() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    let left = |more: &[&str]| {
        let _ = fs::remove_dir_all(here.join("copy"));
        fs::create_dir_all(here.join("copy/mirror")).expect("a directory");
        let ours = ["users01.dbf", "redo01.log", "mirror/redo01.log", "redo.ctl", "backup.json.new"];
        for file in ours.iter().chain(more) {
            fs::write(here.join("copy").join(file), vec![1; 10_000]).expect("a file");
        }
        fs::write(here.join("copy/plumb-owner"), "plumb 4194305 started 1\n").expect("a mark");
    };
    left(&[]);
    let cleaned = fine(here, ["clean"]);
    assert!(cleaned.contains("./copy") && !cleaned.contains("stays"), "{cleaned}");
    assert_eq!(names(here), Vec::<String>::new(), "{cleaned}");
    for whole in ["backup.json", "control.json"] {
        left(&[whole]);
        assert_eq!(fine(here, ["clean"]), ".: no killed process left anything\n", "{whole}");
        assert_eq!(names(&here.join("copy")).len(), 7, "{whole}");
    }
    for mine in ["notes.txt", "mirror/mine"] {
        left(&[mine]);
        let said = fine(here, ["clean"]);
        assert!(said.contains(&format!("stays: plumb did not make ./copy/{mine}\n")), "{said}");
        assert_eq!(names(&here.join("copy")).len(), if mine.contains('/') { 6 } else { 7 }, "{mine}");
    }
    left(&[]);
    symlink(here, here.join("copy/users02.dbf")).expect("a link");
    let said = fine(here, ["clean"]);
    assert!(said.contains("stays: plumb did not make ./copy/users02.dbf\n"), "{said}");
    assert_eq!(names(&here.join("copy")).len(), 7);
}

/// A killed import or copy leaves a part of a bundle, without the file by which a reader knows it.
#[test]
fn a_half_bundle_goes_and_a_whole_one_or_a_begun_study_stays() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    let left = |files: &[&str]| {
        let _ = fs::remove_dir_all(here.join("b"));
        for file in files.iter().chain(&["plumb-owner"]) {
            let file = here.join("b").join(file);
            fs::create_dir_all(file.parent().expect("a directory")).expect("a directory");
            fs::write(file, "plumb 4194305 started 1\n").expect("a file");
        }
    };
    let halves: [&[&str]; 5] = [
        &["report.txt", "imported.json"],
        &["1/record.json", "2/report.txt"],
        &["report.txt.new"],
        &["environment.json", "order.json", "runs/0001.json", "manifest.sha256"],
        &["study.toml", "manifest.sha256"],
    ];
    for half in halves {
        left(half);
        let said = fine(here, ["clean"]);
        assert!(said.contains("./b ") && names(here).is_empty(), "{half:?}: {said}");
    }
    let wholes: [&[&str]; 3] =
        [&["record.json"], &["calibration.json", "x.csv"], &["study.toml", "order.json", "runs/0001.json"]];
    for whole in wholes {
        left(whole);
        assert_eq!(fine(here, ["clean"]), ".: no killed process left anything\n", "{whole:?}");
        assert!(here.join("b").join(whole[0]).exists());
    }
    left(&["report.txt", "mine"]);
    assert!(fine(here, ["clean"]).contains("stays: plumb did not make ./b/mine\n"));
    // The next command takes the place of a killed one, and names no study that could go on.
    let report = "Event                 Waits  Time (s)\n--------------------- ----- ---------\nlog file sync            10         1\n";
    fs::write(here.join("notes.txt"), report).expect("a file");
    left(&["order.json", "runs/0001.json"]);
    fine(here, ["share", "notes.txt", "--output", "b"]);
    assert_eq!(names(&here.join("b")), ["copy.txt"]);
    let (_, line) = refused(here, ["share", "notes.txt", "--output", "b"]);
    assert!(line.contains("it has contents") && !line.contains("--resume"), "{line}");
}

/// A run has a directory in every place that its settings and arguments name.
#[test]
fn what_a_killed_run_left_in_other_places_is_found_by_its_control_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path().canonicalize().expect("there");
    for place in ["home", "log", "data"] {
        fs::create_dir(here.join(place)).expect("a directory");
    }
    let log = format!("log_path={}", here.join("log").display());
    let run = [
        "run",
        "redo",
        "--rows",
        "3000",
        "--json",
        "--keep",
        "--path",
        "home",
        "--data-path",
        "data",
        "--set",
    ];
    fine(&here, run.iter().chain([&log.as_str()]));
    let name = names(&here.join("home")).into_iter().next().expect("the run's directory");
    let home = here.join("home").join(&name);
    let places = ["home", "log", "data"].map(|place| here.join(place).join(&name));
    let mark = |place: &Path, text: &str| fs::write(place.join("plumb-owner"), text).expect("a mark");
    places.iter().for_each(|place| mark(place, "plumb 4194305 started 1\n"));
    // A mark of the same name with another process, or with none, stays.
    mark(&places[2], "plumb 4194305 started 2\n");
    let dry = fine(&here, ["clean", "--dry-run", "--path", "home"]);
    assert!(dry.contains(&format!("home/{name}")), "{dry}");
    assert!(dry.contains(&places[1].display().to_string()), "{dry}");
    assert!(!dry.contains(&places[2].display().to_string()), "{dry}");
    mark(&places[2], "plumb 4194305 started 1\n");
    fs::write(places[1].join("notes.txt"), "kept").expect("a file");
    let said = fine(&here, ["clean", "--path", "home"]);
    assert!(said.contains("stays: plumb did not make "), "{said}");
    assert!(!home.exists() && !places[2].exists(), "{said}");
    assert_eq!(names(&places[1]).iter().filter(|name| name.starts_with("redo")).count(), 3, "{said}");
}

#[test]
fn log_files_of_a_run_that_lie_elsewhere_go_with_it() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    for name in ["log", "second"] {
        fs::create_dir(here.join(name)).expect("a directory");
    }
    let (log, second) = (here.join("log"), here.join("second"));
    let set = [
        format!("log_path={}", log.display()),
        format!("log_mirror_path={}", second.display()),
        "log_file_members=2".to_string(),
    ];
    let mut arguments = vec!["run", "redo", "--rows", "2000", "--json"];
    set.iter().for_each(|set| arguments.extend(["--set", set]));
    let record: serde_json::Value = serde_json::from_str(&fine(here, &arguments)).expect("a record");
    let receipts = record["receipts"].as_array().expect("receipts");
    for setting in ["log_path", "log_mirror_path"] {
        let found = receipts.iter().find(|receipt| receipt["setting"] == setting).expect("a receipt");
        assert_eq!(found["held"], "held", "{found}");
    }
    assert_eq!((names(&log), names(&second)), (Vec::new(), Vec::new()));

    // The leftover of a killed process.
    fs::create_dir(log.join("plumb-run-7")).expect("a directory");
    fs::write(log.join("plumb-run-7/redo01_0a1b2c3d.log"), "of a run").expect("a file");
    fs::write(log.join("plumb-run-7/plumb-owner"), "plumb 4194305 started 1\n").expect("a mark");
    fine(&log, ["clean"]);
    assert_eq!(names(&log), Vec::<String>::new());
}

/// Leftovers of a killed ctas run with a log in two members, copies of it, and a backup.
#[test]
fn a_killed_run_goes_with_its_other_block_sizes_its_copies_of_the_log_and_its_backup() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    let orphan = here.join("plumb-run-8");
    let ours = [
        "users01.dbf",
        "users_16k01.dbf",
        "users_2k02.dbf",
        "mirror/redo01.log",
        "kept/redo_0a1b2c3d_0000000001.arc",
        "kept/redo_0a1b2c3d_0000000002.part",
        "backup/users01.dbf",
        "backup/redo.ctl",
        "backup/backup.json",
    ];
    let left = |more: Option<&str>| {
        for file in ours.into_iter().chain(more) {
            let file = orphan.join(file);
            fs::create_dir_all(file.parent().expect("a directory")).expect("a directory");
            fs::write(file, vec![1; 10_000]).expect("a file");
        }
        fs::create_dir_all(orphan.join("no_copy_yet")).expect("a directory");
        fs::write(orphan.join("plumb-owner"), "plumb 4194305 started 1\n").expect("a file");
    };
    left(None);
    let cleaned = fine(here, ["clean"]);
    assert!(!cleaned.contains("stays"), "{cleaned}");
    assert_eq!(names(here), Vec::<String>::new(), "{cleaned}");

    for mine in ["kept/notes", "mirror/mine.log", "backup/mine", "users_64k01.dbf", "kept/deep/redo01.log"] {
        left(Some(mine));
        let cleaned = fine(here, ["clean"]);
        assert!(cleaned.contains("stays: plumb did not make "), "{mine}: {cleaned}");
        assert!(ours.iter().all(|file| orphan.join(file).exists()), "{mine}: all of it stays");
        assert!(orphan.join(mine).exists(), "{mine}");
        fs::remove_dir_all(&orphan).expect("gone");
    }
    left(None);
    symlink(here, orphan.join("kept/link")).expect("a link");
    assert!(fine(here, ["clean"]).contains("stays: plumb did not make "));
}

fn has_tool(tool: &str) -> bool {
    let found = Command::new(tool).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    found.is_ok()
}

/// A killed study was about to make a file system: the image is there, and no device over it yet.
#[test]
fn the_image_of_a_file_system_that_a_killed_study_made_goes() {
    if !has_tool("losetup") {
        println!("skipped: there is no losetup, by which a loop device would be found");
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    let left = |name: &str| {
        let orphan = here.join(name);
        fs::create_dir_all(orphan.join("mounted")).expect("a directory");
        fs::write(orphan.join("image"), vec![1; 100_000]).expect("a file");
        fs::write(orphan.join("plumb-owner"), "plumb 4194305 started 1\n").expect("a file");
        orphan
    };
    left("plumb-loop-ext4-7");
    let mine = left("plumb-loop-xfs-7");
    fs::write(mine.join("mine"), "kept").expect("a file");
    let remark = plumb(here, ["list", "tables"]).stderr;
    assert!(remark.starts_with("killed processes left ./plumb-loop-ext4-7 and 1 more, "), "{remark}");
    let cleaned = fine(here, ["clean"]);
    assert!(cleaned.contains("stays: plumb did not make ./plumb-loop-xfs-7/mine"), "{cleaned}");
    assert_eq!(names(here), ["plumb-loop-xfs-7"]);
    assert_eq!(names(&mine), ["image", "mine", "mounted", "plumb-owner"]);
    fs::remove_file(mine.join("mine")).expect("gone");
    fine(here, ["clean"]);
    assert_eq!(names(here), Vec::<String>::new());
}

/// The same for a mounted file system, which needs root.
#[test]
fn a_file_system_that_a_killed_study_left_is_unmounted_and_goes() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary directory");
    let here = directory.path();
    let orphan = here.join("plumb-loop-ext4-7");
    fs::create_dir_all(orphan.join("mounted")).expect("a directory");
    let image = fs::File::create(orphan.join("image")).expect("a file");
    image.set_len(32 << 20).expect("a length");
    let mark = || fs::write(orphan.join("plumb-owner"), "plumb 4194305 started 1\n").expect("a file");
    let line = "mkfs.ext4 -q -F image && mount -o loop image mounted";
    let mut shell = Command::new("bash");
    shell.args(["-c", line]).current_dir(&orphan).stdin(Stdio::null());
    let made = shell.output().expect("bash is there");
    if !made.status.success() {
        println!("skipped: {}", String::from_utf8_lossy(&made.stderr).trim());
        return;
    }
    fs::write(orphan.join("mounted/a file"), "of it").expect("room");
    mark();
    let cleaned = fine(here, ["clean"]);
    assert!(!cleaned.contains("stays"), "{cleaned}");
    assert_eq!(names(here), Vec::<String>::new(), "{cleaned}");
    let mounts = fs::read_to_string("/proc/self/mounts").expect("a list");
    assert!(!mounts.contains(&here.display().to_string()), "{mounts}");
}

#[test]
fn nothing_is_removed_that_plumb_did_not_make_or_that_was_kept() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    fs::write(here.join("t.csv"), "a\n1\n").expect("a file");
    fine(here, ["load", "t.csv", "--table", "t"]);
    fine(here, ["run", "large-sort", "--rows", "1000", "--keep", "--json"]);
    let elsewhere = here.join("elsewhere");
    fs::create_dir(&elsewhere).expect("a directory");
    fs::write(elsewhere.join("mine"), "kept").expect("a file");
    let dead = "plumb 4194305 started 1\n";
    // Names like plumb's without a mark; a link; a mark in a directory of the user's own.
    fs::create_dir(here.join("plumb-run-1")).expect("a directory");
    fs::write(here.join("plumb-run-1/mine"), "kept").expect("a file");
    fs::write(elsewhere.join("plumb-owner"), dead).expect("a file");
    symlink(&elsewhere, here.join("plumb-run-2")).expect("a link");
    fs::write(here.join("out.unfinished"), "kept").expect("a file");
    // A leftover that contains a foreign file.
    let orphan = here.join("plumb-run-3");
    fs::create_dir_all(orphan.join("plumb.db")).expect("a directory");
    fs::write(orphan.join("plumb-owner"), dead).expect("a file");
    fs::write(orphan.join("users01.dbf"), vec![1; 100_000]).expect("a file");
    symlink(&elsewhere, orphan.join("link")).expect("a link");
    // The output of a killed sort of records.
    fs::write(here.join("sorted.unfinished"), vec![1; 100_000]).expect("a file");
    fs::write(here.join("sorted.unfinished.plumb-owner"), dead).expect("a file");

    let before = names(here);
    let ended = plumb(here, ["clean"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains("stays: plumb did not make ./plumb-run-3/"), "{}", ended.stdout);
    assert_eq!(ended.stdout.lines().count(), 3, "{}", ended.stdout);
    let gone = ["sorted.unfinished", "sorted.unfinished.plumb-owner"];
    let expected: Vec<String> = before.into_iter().filter(|name| !gone.contains(&name.as_str())).collect();
    assert_eq!(names(here), expected);
    assert_eq!(names(&orphan), ["link", "plumb-owner", "plumb.db", "users01.dbf"], "all of it, and its mark");
    assert_eq!(names(&elsewhere), ["mine", "plumb-owner"]);
    fine(here, ["check"]);
}

#[test]
fn a_file_that_a_killed_study_wrote_is_put_back_unless_it_was_edited_since() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    // SHA-256 of "changed", which the study wrote.
    let hash = "d67e2e944994496c8d8ec76eed0cf9f09679448d584b532bebf941852a37f5ed";
    let left = |now: &str| {
        fs::write(here.join("x.conf"), now).expect("a file");
        fs::write(here.join("x.conf.plumb-original"), "as it was").expect("a file");
        fs::write(here.join("x.conf.plumb-written"), hash).expect("a file");
        fs::write(here.join("x.conf.plumb-owner"), "plumb 4194305 started 1\n").expect("a file");
    };
    left("changed");
    let remark = plumb(here, ["list", "tables"]).stderr;
    assert!(remark.starts_with("killed processes left ./x.conf, 0 B: `plumb clean --path .` "), "{remark}");
    let dry = fine(here, ["clean", "--dry-run"]);
    assert!(dry.contains("./x.conf") && dry.contains("a study wrote it: becomes what it was"), "{dry}");
    assert_eq!(fs::read_to_string(here.join("x.conf")).expect("there"), "changed");
    fine(here, ["clean"]);
    assert_eq!(fs::read_to_string(here.join("x.conf")).expect("there"), "as it was");
    assert_eq!(names(here), ["x.conf"]);

    left("edited");
    let (code, error) = refused(here, ["clean"]);
    assert_eq!(code, 1);
    assert!(
        error.starts_with("./x.conf was changed after ")
            && error.contains("./x.conf.plumb-original has what it was before"),
        "{error}"
    );
    assert_eq!(fs::read_to_string(here.join("x.conf")).expect("there"), "edited");
}

#[test]
fn the_end_of_the_terminal_is_as_ctrl_c_unless_nohup_ignores_it() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (child, home) = started(directory.path(), &RUN);
    signal("HUP", child.id());
    let ended = end_of(child);
    assert_eq!(ended.status.code(), Some(129));
    let stderr = String::from_utf8_lossy(&ended.stderr);
    assert!(stderr.starts_with("plumb: interrupted: "), "{stderr}");
    assert!(!home.exists());

    let mut nohup = Command::new("nohup");
    nohup.arg(env!("CARGO_BIN_EXE_plumb")).args(["run", "large-sort", "--rows", "200K", "--json"]);
    nohup.current_dir(directory.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = nohup.spawn().expect("nohup is there");
    wait_until_it_handles_signals(&child);
    signal("HUP", child.id());
    assert!(end_of(child).status.success());
}

#[test]
fn a_second_ctrl_c_says_what_stays_and_how_to_remove_it() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (child, home) = started(directory.path(), &["run", "large-sort", "--rows", "20M"]);
    signal("INT", child.id());
    signal("TERM", child.id());
    let ended = end_of(child);
    let stderr = String::from_utf8_lossy(&ended.stderr);
    if !home.exists() {
        println!("skipped: the first one was done before the second came");
        return;
    }
    let name = home.file_name().expect("a name").display().to_string();
    assert_eq!(stderr, format!("plumb: killed: ./{name} stays; `plumb clean --path .` removes it\n"));
    assert_eq!(ended.status.code(), None, "killed by the signal");
    fine(directory.path(), ["clean"]);
    assert_eq!(names(directory.path()), Vec::<String>::new());
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error_that_names_it() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary directory");
    let limited = |arguments: &str| {
        let line = format!("ulimit -f 4096; exec {} {arguments}", env!("CARGO_BIN_EXE_plumb"));
        let mut shell = Command::new("bash");
        shell.args(["-c", &line]).current_dir(directory.path()).stdin(Stdio::null());
        shell.output().expect("bash is there")
    };
    let mut csv = String::from("a\n");
    (0..1_000_000).for_each(|row| csv.push_str(&format!("{row}\n")));
    fs::write(directory.path().join("t.csv"), csv).expect("a file");
    for arguments in [
        "run large-sort --rows 1M --set io_method=sync",
        "run record-sort --rows 1M --set io_method=threads",
        "run large-sort --rows 1M",
        "calibrate --file-size 64M",
        "load t.csv --table t",
    ] {
        let ended = limited(arguments);
        let stderr = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(1), "{arguments}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{arguments}: {stderr}");
        assert!(
            stderr.contains("no file longer than 4194304 bytes (RLIMIT_FSIZE): raise the limit (ulimit -f)"),
            "{arguments}: {stderr}"
        );
        assert_eq!(names(directory.path()), ["t.csv"], "{arguments}");
    }
}

#[test]
fn a_file_that_was_removed_while_it_was_open_is_no_stray() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    fs::create_dir(here.join("plumb-run-1")).expect("a directory");
    for (name, text) in
        [("plumb-owner", "plumb 4194305 started 1\n"), (".fuse_hidden000a", ""), (".nfs01", "")]
    {
        fs::write(here.join("plumb-run-1").join(name), text).expect("a file");
    }
    fine(here, ["clean"]);
    assert_eq!(names(here), Vec::<String>::new());
}

/// In a directory such as `/tmp` any user may put a journal or a mark next to a file of root's.
#[test]
fn what_another_user_says_of_a_file_is_not_acted_on() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    let nobody = Some(65_534);
    let laid = |name: &str, text: &str| {
        fs::write(here.join(name), text).expect("a file");
        std::os::unix::fs::chown(here.join(name), nobody, nobody)
    };
    let dead = "plumb 4194305 started 1\n";
    if laid("probe", "").is_err() {
        println!("skipped: files are given away by root alone");
        return;
    }
    fs::remove_file(here.join("probe")).expect("a file");
    for name in ["x.conf", "out.unfinished"] {
        fs::write(here.join(name), "root's").expect("a file");
    }
    fs::create_dir(here.join("plumb-run-1")).expect("a directory");
    fs::write(here.join("plumb-run-1/control.json"), "root's").expect("a file");
    for mark in ["x.conf.plumb-owner", "out.unfinished.plumb-owner", "plumb-run-1/plumb-owner"] {
        laid(mark, dead).expect("root gives it away");
    }
    laid("x.conf.plumb-absent", "").expect("root gives it away");
    let before = (names(here), names(&here.join("plumb-run-1")));
    assert_eq!(fine(here, ["clean"]), ".: no killed process left anything\n");
    assert_eq!((names(here), names(&here.join("plumb-run-1"))), before);
    // The mark belongs to root, the journal does not.
    fs::write(here.join("x.conf.plumb-owner"), dead).expect("a file");
    std::os::unix::fs::chown(here.join("x.conf.plumb-owner"), Some(0), Some(0)).expect("taken");
    let (_, line) = refused(here, ["clean"]);
    assert!(line.contains("x.conf.plumb-absent belongs to user 65534"), "{line}");
    assert_eq!(fs::read_to_string(here.join("x.conf")).expect("read"), "root's");
}

#[test]
fn a_link_in_the_place_of_the_image_of_a_file_system_is_a_stray() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    fs::create_dir(here.join("plumb-loop-x")).expect("a directory");
    fs::write(here.join("plumb-loop-x/plumb-owner"), "plumb 4194305 started 1\n").expect("a mark");
    symlink("/dev/null", here.join("plumb-loop-x/image")).expect("a link");
    let said = fine(here, ["clean"]);
    assert!(said.contains("stays: plumb did not make ./plumb-loop-x/image"), "{said}");
    assert_eq!(names(&here.join("plumb-loop-x")), ["image", "plumb-owner"]);
}
