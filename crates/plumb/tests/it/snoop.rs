//! `plumb snoop`: what it sees of plumb itself, its bundles in other commands, and its errors.
//!
//! Without the right to trace, each test prints a line and passes, unless `PLUMB_REQUIRE_TRACE` is
//! set.

use crate::program::{Ended, as_nobody, command, fine, names, plumb, refused};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs `plumb snoop`, which must succeed; none if this machine does not permit a trace.
fn snoop(directory: &Path, arguments: &[&str]) -> Option<Ended> {
    let ended = plumb(directory, std::iter::once(&"snoop").chain(arguments));
    assert_eq!(ended.code, Some(0), "stdout:\n{}\nstderr:\n{}", ended.stdout, ended.stderr);
    if ended.stderr.contains("samples of /proc are shown instead") {
        assert!(std::env::var_os("PLUMB_REQUIRE_TRACE").is_none(), "{}", ended.stderr);
        println!("skipped: {}", ended.stderr.trim_end());
        return None;
    }
    Some(ended)
}

/// A directory on a disk, where this machine has one.
fn place() -> tempfile::TempDir {
    tempfile::tempdir_in("/var/tmp").expect("a directory")
}

/// Direction, first block and bytes of a request.
type Request = (char, u64, u64);

/// The requests of each file by `plumb trace`, in the order of their beginnings.
fn by_its_own_trace(directory: &Path) -> BTreeMap<String, Vec<Request>> {
    let text = fine(directory, ["trace", "b", "--paths"]);
    let mut requests: BTreeMap<String, Vec<Request>> = BTreeMap::new();
    let lines = text.lines().skip(1).take_while(|line| !line.is_empty());
    for line in lines {
        let path = &line[line.find('/').expect("an absolute path")..];
        // Names of sessions and events have blanks; the letter is the only word of its kind.
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let at = words.iter().position(|word| matches!(*word, "R" | "W")).expect("a direction");
        let number = |at: usize| words[at].parse::<u64>().expect("a number");
        let letter = words[at].chars().next().expect("a letter");
        requests.entry(path.to_string()).or_default().push((letter, number(at + 1), number(at + 2)));
    }
    requests
}

/// The calls on each file by `plumb snoop`, in the order of their beginnings.
fn by_snoop(text: &str) -> BTreeMap<String, Vec<Request>> {
    let mut lines: Vec<Vec<&str>> = Vec::new();
    lines.extend(text.lines().map(|line| line.split_ascii_whitespace().collect()));
    let mut calls: BTreeMap<String, Vec<(String, Request)>> = BTreeMap::new();
    for words in lines.iter().filter(|words| words.get(1) == Some(&"call")) {
        let path = words.iter().rev().find(|word| word.starts_with('/'));
        let letter = words[2].chars().next().expect("a letter");
        // `uring read` has two words.
        let at = if words[3] == "uring" { 5 } else { 4 };
        let (Some(path), Ok(offset), Ok(bytes)) = (path, words[at].parse::<u64>(), words[at + 1].parse())
        else {
            continue;
        };
        let request = (letter, offset / 512, bytes);
        calls.entry(path.to_string()).or_default().push((words[0].to_string(), request));
    }
    for calls in calls.values_mut() {
        calls.sort_by(|one, two| one.0.cmp(&two.0));
    }
    let requests = |calls: Vec<(String, Request)>| calls.into_iter().map(|(_, request)| request).collect();
    calls.into_iter().map(|(path, calls)| (path, requests(calls))).collect()
}

/// The trace of a run covers its measurement; the calls before and after it are those of
/// preparation and verification. So the requests are a part of the calls without a gap.
#[test]
fn each_request_of_a_run_is_seen_as_a_call_with_its_place_and_size_in_order() {
    for method in ["sync", "io_uring"] {
        let directory = place();
        let here = directory.path();
        let program = env!("CARGO_BIN_EXE_plumb");
        let method = format!("io_method={method}");
        let run = ["run", "redo", "--rows", "3K", "--trace", "--bundle", "b", "--path", "."];
        let words = ["--view", "calls", "--bundle", "s", "--", program];
        let words = [&words[..], &run, &["--set", &method]].concat();
        let Some(ended) = snoop(here, &words) else { return };
        let (asked, seen) = (by_its_own_trace(here), by_snoop(&ended.stdout));
        let of_log: usize = asked.values().map(Vec::len).sum();
        assert!(of_log > 100, "{method}: {asked:?}");
        for (path, requests) in &asked {
            let calls = seen.get(path).unwrap_or_else(|| panic!("{method}: {path} of {:?}", seen.keys()));
            let found = calls.windows(requests.len()).filter(|part| part == requests).count();
            let begin = |list: &[Request]| list[..list.len().min(9)].to_vec();
            assert!(found >= 1, "{method}: {path}: {:?} in {:?}", begin(requests), begin(calls));
        }
        let record = record(here, "s");
        assert_eq!(lost(&record), 0, "{record}");
    }
}

fn record(directory: &Path, bundle: &str) -> Value {
    let text = fs::read_to_string(directory.join(bundle).join("record.json")).expect("a record");
    serde_json::from_str(&text).expect("JSON")
}

fn lost(record: &Value) -> u64 {
    let buffers = record["snoop"]["buffers"].as_array().expect("buffers");
    buffers.iter().map(|buffer| buffer["lost"].as_u64().expect("a count")).sum()
}

/// Writes blocks of 4K to a file with a sync at the end.
fn writer(file: &str, blocks: u32) -> String {
    format!("dd if=/dev/zero of={file} bs=4k count={blocks} conv=fsync status=none; sleep 0.2")
}

#[test]
fn the_bundle_of_a_trace_is_read_by_the_commands_for_runs() {
    let directory = place();
    let here = directory.path();
    for (bundle, blocks) in [("a", 64), ("b", 128)] {
        let script = writer("zyxfile", blocks);
        let words = ["--quiet", "--bundle", bundle, "--", "sh", "-c", &script];
        if snoop(here, &words).is_none() {
            return;
        }
        assert_eq!(names(&here.join(bundle)), ["record.json", "report.html", "report.txt"]);
    }
    let report = fs::read_to_string(here.join("a/report.txt")).expect("a report");
    let again = fine(here, ["report", "a"]);
    assert!(again.starts_with("command sh: COMPLETE") && report.contains("Calls by File"), "{again}");
    assert_eq!(fs::read_to_string(here.join("a/report.txt")).expect("a report"), report, "the same again");
    let compared = fine(here, ["compare", "a", "b"]);
    assert!(compared.contains("write") && compared.contains("fsync"), "{compared}");
    let diagnosed = plumb(here, ["diagnose", "a"]);
    assert!(diagnosed.code == Some(0) && !diagnosed.stdout.contains("NOT ASKED"), "{diagnosed:?}");
    let lines = fine(here, ["info", "a"]);
    let column = |line: &str| line.split('|').nth(10).expect("WRITE_MBS").to_string();
    let [head, line] = [0, 1].map(|at| column(lines.lines().nth(at).expect("a line")));
    assert!(head == "WRITE_MBS" && !line.is_empty(), "{lines}");
    fine(here, ["share", "a", "--output", "copy"]);
    for name in names(&here.join("copy")) {
        let text = fs::read_to_string(here.join("copy").join(&name)).expect("text");
        assert!(!text.contains("zyx"), "{name}: {text}");
    }
    fine(here, ["report", "copy"]);
    let (code, says) = refused(here, ["verify", "a"]);
    assert!(code == 1 && says.ends_with("those of runs and calibrations have no checksums"), "{says}");
}

#[test]
fn secrets_are_in_no_file_of_a_bundle() {
    let directory = place();
    let here = directory.path();
    // In an argument, in the name of a file, and as an option's value.
    let script = writer("of-hunter2-file", 1);
    let words = ["snoop", "--quiet", "--secret", "TOKEN", "--bundle", "b", "--", "sh", "-c", &script];
    let words = words.iter().chain(&["hunter2", "--password", "swordfish"]);
    let ended = command(here).args(words).env("TOKEN", "hunter2").output().expect("it starts");
    assert!(ended.status.success(), "{ended:?}");
    for name in names(&here.join("b")) {
        let text = fs::read_to_string(here.join("b").join(&name)).expect("text");
        assert!(!text.contains("hunter2") && !text.contains("swordfish"), "{name}: {text}");
    }
    let kept = fs::read_to_string(here.join("b/record.json")).expect("a record");
    assert!(kept.contains("***"), "{kept}");
}

#[test]
fn without_rights_it_samples_and_says_what_is_missing() {
    let directory = tempfile::tempdir().expect("a directory");
    let Some(ended) = as_nobody(directory.path(), &["snoop", "--quiet", "--", "sleep", "0.3"]) else {
        return;
    };
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let says = &ended.stderr;
    let cure = "run it as root, or with --sample, which needs no rights; samples of /proc are shown instead";
    // A kernel that shows no mount of tracefs to others has the other reason.
    let is_told = says.contains(cure) || says.contains("tracefs is not mounted");
    assert!(is_told && says.lines().count() == 1, "{says}");
    assert!(ended.stdout.contains("Samples of /proc each 100 ms show sums"), "{}", ended.stdout);
}

/// Counters of another user's process cannot be read, and are no zeros.
#[test]
fn a_process_of_another_user_is_refused_in_one_line() {
    let directory = tempfile::tempdir().expect("a directory");
    let own = std::process::id();
    let words = ["snoop", "--for", "300ms", "--pid", &own.to_string()];
    let Some(ended) = as_nobody(directory.path(), &words) else { return };
    let says = format!("process {own} cannot be read (/proc/{own}/io: permission denied): ");
    assert!(ended.code == Some(1) && ended.stderr.contains(&says), "{ended:?}");
    assert!(ended.stderr.lines().count() == 1 && ended.stdout.is_empty(), "{ended:?}");
}

#[test]
fn a_trace_is_diagnosed_by_the_elapsed_time() {
    let directory = place();
    let here = directory.path();
    let words = ["if=/dev/zero", "of=f", "bs=512", "count=400", "oflag=dsync", "status=none"];
    let trace = ["--quiet", "--bundle", "b", "--", "dd"];
    if snoop(here, &[&trace[..], &words].concat()).is_none() {
        return;
    }
    let found = fine(here, ["diagnose", "b", "--json"]);
    for part in ["durable", " elapsed (", "400 writes / 400 syncs = 1.0", "study --command ./{program}"] {
        assert!(found.contains(part), "{part} in {found}");
    }
    let shown = fine(here, ["diagnose", "b"]);
    assert!(shown.contains("the elapsed time") && shown.contains("FINDINGS"), "{shown}");
    assert!(!shown.contains("DB Time") && !shown.contains("DB CPU"), "{shown}");
    let study = here.join("study.toml");
    fine(here, ["diagnose", "b", "--study", &study.display().to_string()]);
    assert!(fs::read_to_string(study).expect("a study").contains("./{program}"));
}

/// Workers of the kernel issue a sync's flush, and an interrupt ends it.
#[test]
fn the_flow_of_a_command_shows_the_device_of_its_sync() {
    let directory = place();
    let here = directory.path();
    let words =
        ["--flow", "--", "dd", "if=/dev/zero", "of=f", "bs=4k", "count=1", "conv=fsync", "status=none"];
    let ended = plumb(here, std::iter::once(&"snoop").chain(&words));
    if ended.stderr.contains("/instances cannot be") || ended.stderr.contains("tracefs is not mounted") {
        assert!(std::env::var_os("PLUMB_REQUIRE_TRACE").is_none(), "{}", ended.stderr);
        return println!("skipped: {}", ended.stderr.trim_end());
    }
    let shown = &ended.stdout;
    assert!(ended.code == Some(0) && shown.contains("A sync, microseconds"), "{ended:?}");
    if !shown.contains("block_io_start") {
        return println!("skipped: the disk's view needs a file system on a block device");
    }
    let sync = shown.split_once("A sync").map_or("", |(_, sync)| sync);
    let [issued, ended] = ["-> device ", "<- device "].map(|part| sync.matches(part).count());
    assert!(issued >= 1 && issued == ended, "{shown}");
    assert!(sync.contains(" us at the device ("), "{shown}");
}

#[test]
fn a_trace_without_a_target_names_each_way_to_one() {
    let directory = tempfile::tempdir().expect("a directory");
    for words in [&["snoop"][..], &["snoop", "--flow"]] {
        let (code, says) = refused(directory.path(), words);
        assert!(code == 2 && ["--pid", "--name", "COMMAND"].iter().all(|way| says.contains(way)), "{says}");
    }
}

#[test]
fn a_tracefs_that_is_not_mounted_is_named_with_the_command_that_mounts_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = env!("CARGO_BIN_EXE_plumb");
    let script = format!(
        "umount /sys/kernel/tracing 2>/dev/null; umount /sys/kernel/debug/tracing 2>/dev/null; \
         exec {program} snoop --quiet -- sleep 0.3"
    );
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "--propagation", "private", "sh", "-c", &script]);
    let output = unshare.current_dir(directory.path()).stdin(Stdio::null()).output();
    let Ok(output) = output else { return println!("skipped: unshare is missing") };
    let says = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() || says.contains("/instances cannot be") {
        return println!("skipped: no mounts of its own here: {says}");
    }
    let cure = "`mount -t tracefs nodev /sys/kernel/tracing` as root mounts it";
    assert!(says.contains("tracefs is not mounted") && says.contains(cure), "{says}");
}

#[test]
fn targets_that_do_not_exist_are_refused_in_one_line() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    for how in [&["snoop"][..], &["snoop", "--sample"]] {
        let refused = |more: &[&str]| refused(here, how.iter().chain(more));
        let (code, says) = refused(&["--pid", "4194304"]);
        assert!(code == 1 && says.starts_with("process 4194304 does not exist"), "{code} {says}");
        let (code, says) = refused(&["--name", "no such program"]);
        assert!(code == 1 && says.starts_with("no process has \"no such program\""), "{code} {says}");
        let (code, says) = refused(&["--", "/no/such/program"]);
        assert!(code == 1 && says.starts_with("\"/no/such/program\" cannot be started"), "{code} {says}");
    }
    assert!(names(here).is_empty(), "{:?}", names(here));
}

/// The kernel shows the counters of an ended process to root alone.
#[test]
fn a_command_that_has_ended_before_its_first_sample_is_no_error_for_another_user() {
    let directory = tempfile::tempdir().expect("a directory");
    let Some(ended) = as_nobody(directory.path(), &["snoop", "--sample", "--", "true"]) else { return };
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(!ended.stderr.contains("cannot be read"), "{}", ended.stderr);
}
