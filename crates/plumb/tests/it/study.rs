//! Studies of small tables on the real engine: their bundles, killed studies, treatments without an
//! effect, which must not be PROVED, and a delay of known size, which must.
//!
//! They are in memory if possible, so that no device has to settle between two runs.

use crate::program::{command, fine, names, plumb, refused};
use crate::study_file::{StudyFile, quoted};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tempfile::TempDir;

/// Makes a directory in memory, or on disk if there is no tmpfs.
fn place() -> TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.expect("a temporary directory")
}

/// True if direct I/O is refused there.
fn in_memory(directory: &Path) -> bool {
    let record = fine(directory, ["run", "large-sort", "--rows", "1000", "--json"]);
    let record: Value = serde_json::from_str(&record).expect("a record");
    record["devices"][0]["filesystem"] == "tmpfs"
}

/// A study of one setting: writes its file.
fn write_study(directory: &Path, fixed: &str, setting: &str, levels: [&str; 2]) {
    let sections = format!("[settings]\n{fixed}");
    let [from, to] = levels.map(quoted);
    StudyFile { sections: &sections, setting, levels: [&from, &to], ..StudyFile::default() }.write(directory);
}

/// Runs the written study; returns the exit code and the analysis.
fn study(directory: &Path, more: &[&str]) -> (i32, Value) {
    let arguments = ["study", "small.toml", "--bundle", "kept", "--json"].iter().chain(more);
    let ended = plumb(directory, arguments);
    let analysis =
        serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{}{}", ended.stdout, ended.stderr));
    (ended.code.expect("it ends by itself"), analysis)
}

/// Returns the verdict line of the only claim, which must not be PROVED.
#[track_caller]
fn not_proved(code: i32, analysis: &Value) -> String {
    let verdict = &analysis["claims"][0]["verdict"];
    let line = verdict["line"].as_str().expect("a line").to_string();
    assert!(code == 3 || code == 5, "{line}");
    assert!(!line.starts_with("PROVED"), "{line}");
    line
}

const SPILLS: &str = "sort_area_size = \"64K\"\nparallel_degree = 1";

#[test]
fn a_study_leaves_a_bundle_that_verifies_and_nothing_else() {
    let directory = place();
    let here = directory.path();
    write_study(here, "parallel_degree = 1", "sort_area_size", ["64K", "256K"]);
    let (code, analysis) = study(here, &["--seed", "7", "--blocks", "2"]);
    assert_eq!(code, 3, "two blocks prove nothing");
    assert_eq!(analysis["design"]["blocks_used"], 2);
    assert_eq!(names(here), ["kept", "small.toml"], "the databases are removed");
    let expected = [
        "analysis.json",
        "end.json",
        "environment.json",
        "manifest.sha256",
        "order.json",
        "report.html",
        "report.txt",
        "runs",
        "study.toml",
    ];
    assert_eq!(names(&here.join("kept")), expected);
    assert_eq!(
        names(&here.join("kept/runs")).len(),
        9,
        "a warm-up block and two more of two arms and the reference"
    );
    let said = fine(here, ["verify", "kept"]);
    let (said, hash) = said.trim_end().rsplit_once("; hash ").expect("a hash");
    assert_eq!(
        said,
        "kept: 16 files as they were written, 9 runs; every number and verdict of 1 claim follows from the raw records"
    );
    fine(here, ["verify", "kept", "--expect", hash]);
    let other = plumb(here, ["verify", "kept", "--expect", &hash.replace(char::is_numeric, "0")]);
    assert_eq!(other.code, Some(5));
    assert!(other.stderr.contains(&format!("its hash is {hash}, and ")), "{}", other.stderr);
    assert!(fs::read_to_string(here.join("kept/report.txt")).expect("a report").contains(hash));
    let report = fs::read_to_string(here.join("kept/report.txt")).expect("a report");
    fine(here, ["report", "kept"]);
    assert_eq!(fs::read_to_string(here.join("kept/report.txt")).expect("a report"), report);
    let drawn = || plumb(here, ["report", "kept", "--picture", "effects.svg"]);
    assert_eq!(drawn().code, Some(0));
    let picture = fs::read_to_string(here.join("effects.svg")).expect("a picture");
    assert!(picture.starts_with("<svg ") && picture.contains("class=\"interval\""), "{picture}");
    assert_eq!(drawn().code, Some(1), "a file is not written over");

    let record = here.join("kept/runs/0004.json");
    let text = fs::read_to_string(&record).expect("a record");
    fs::write(&record, text.replacen("\"elapsed_ns\": ", "\"elapsed_ns\": 1", 1)).expect("a file");
    let ended = plumb(here, ["verify", "kept"]);
    assert_eq!(ended.code, Some(5));
    assert!(
        ended.stderr.starts_with("plumb: kept/runs/0004.json has changed since it was written: "),
        "{}",
        ended.stderr
    );
}

#[test]
fn where_arms_differ_in_how_a_database_is_made_each_run_has_its_own() {
    let directory = place();
    let here = directory.path();
    write_study(here, SPILLS, "db_block_size", ["4K", "8K"]);
    let (_, analysis) = study(here, &["--blocks", "1"]);
    assert_eq!(names(here), ["kept", "small.toml"], "the databases are removed");
    for name in names(&here.join("kept/runs")) {
        let text = fs::read_to_string(here.join("kept/runs").join(&name)).expect("a record");
        let run: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(run["settled"]["own_data"], true, "{name}");
        assert!(run["settled"]["canary"]["cpu_ns"].as_u64().expect("a figure") > 0, "{name}");
        let label = run["arm"].as_str().expect("a name").trim_start_matches("x=").to_string();
        let settings = run["record"]["settings"].as_array().expect("settings");
        let block = settings.iter().find(|row| row["name"] == "db_block_size").expect("there");
        assert_eq!(block["value"], label, "{name}");
    }
    let said = analysis["design"]["not_randomised"].as_str().expect("a sentence");
    assert!(said.contains("each run's own database"), "{said}");
}

#[test]
fn arms_that_come_to_the_same_are_refused_before_the_first_run() {
    let directory = place();
    let here = directory.path();
    write_study(here, "", "sort_direct_writes", ["auto", "true"]);
    let (code, said) = refused(here, ["study", "small.toml", "--bundle", "kept"]);
    assert_eq!(code, 2);
    assert!(
        said.contains("sort_direct_writes=auto and sort_direct_writes=true have the same effect"),
        "{said}"
    );
    assert_eq!(names(here), ["small.toml"], "nothing stays");
    let text = fs::read_to_string(here.join("small.toml")).expect("a file");
    fs::write(here.join("small.toml"), format!("expects = \"same\"\n{text}")).expect("a file");
    let (code, _) = study(here, &["--blocks", "1"]);
    assert!(code == 3 || code == 5, "it may be meant, and proves nothing: {code}");
}

#[test]
fn a_study_chooses_its_blocks_by_a_pilot_of_the_noise() {
    let directory = place();
    let here = directory.path();
    write_study(here, "parallel_degree = 1", "sort_area_size", ["64K", "256K"]);
    let ended = plumb(here, ["study", "small.toml", "--bundle", "kept", "--find", "60%", "--json"]);
    assert!(ended.stderr.contains("pilot: 16 runs of the reference"), "{}", ended.stderr);
    let analysis: Value = serde_json::from_str(&ended.stdout).expect("an analysis");
    let planned = analysis["study"]["blocks"].as_u64().expect("a number");
    assert!(ended.stderr.contains(&format!("of studies of {planned} blocks")), "{}", ended.stderr);
    assert_eq!(analysis["study"]["sought"], 0.6);
    assert_eq!(names(here), ["kept", "small.toml"], "nothing of the pilot stays");
    let (code, said) = refused(here, ["study", "small.toml", "--find", "5"]);
    assert_eq!(code, 2);
    assert!(said.contains("expected a percentage from 0.01% to 99%, as in 5%"), "{said}");
}

/// The arms of a bundle's runs that are part of its order.
fn arms(bundle: &Path) -> Vec<(Value, Value, Value)> {
    let records = names(&bundle.join("runs")).into_iter().map(|name| {
        let text = fs::read_to_string(bundle.join("runs").join(name)).expect("a record");
        serde_json::from_str::<Value>(&text).expect("JSON")
    });
    let planned = records.filter(|record| record["position"] != 0);
    planned
        .map(|record| (record["block"].clone(), record["position"].clone(), record["arm"].clone()))
        .collect()
}

#[test]
fn a_killed_study_goes_on_with_the_same_order() {
    let (directory, other) = (place(), place());
    for place in [&directory, &other] {
        write_study(place.path(), "parallel_degree = 1", "sort_area_size", ["64K", "256K"]);
    }
    let here = directory.path();
    let begin = ["study", "small.toml", "--bundle", "kept", "--seed", "11", "--blocks", "4"];
    let mut child =
        command(here).args(begin).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    while !here.join("kept/runs/0005.json").exists() {
        assert!(child.try_wait().expect("a child").is_none(), "it ended before it could be killed");
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().expect("kill -9");
    child.wait().expect("a child");
    let left = |names: Vec<String>| names.into_iter().filter(|name| name.starts_with("plumb-study-")).count();
    assert_eq!(left(names(here)), 1, "a killed study cannot remove its database");

    let ended = plumb(here, ["study", "--resume", "kept", "--seed", "12"]);
    assert_eq!(ended.code, Some(1));
    assert_eq!(
        ended.stderr,
        "plumb: cannot resume kept: --seed was another when it began; begin a new study instead\n"
    );
    write_study(here, SPILLS, "scan_read_ahead", ["1", "16"]);
    let ended = plumb(here, ["study", "small.toml", "--resume", "kept"]);
    let expected = "plumb: cannot resume kept: its study small is not the one that is asked for; begin a new study instead\n";
    assert_eq!(ended.stderr, expected);

    let ended = plumb(here, ["study", "--resume", "kept"]);
    assert!([Some(0), Some(3), Some(4)].contains(&ended.code), "{}", ended.stderr);
    fine(here, ["verify", "kept"]);
    assert_eq!(left(names(here)), 0, "the one that goes on removes what was left");
    let whole = ["study", "small.toml", "--bundle", "kept", "--seed", "11", "--blocks", "4", "--json"];
    plumb(other.path(), whole);
    assert_eq!(arms(&here.join("kept")), arms(&other.path().join("kept")));
}

#[test]
fn direct_io_on_a_file_system_without_it_is_invalid() {
    let directory = place();
    if !in_memory(directory.path()) {
        println!("skipped: /dev/shm is no tmpfs");
        return;
    }
    write_study(directory.path(), SPILLS, "filesystemio_options", ["none", "directio"]);
    let (code, analysis) = study(directory.path(), &[]);
    let line = not_proved(code, &analysis);
    assert!(line.starts_with("INVALID: no block came to its end: run "), "{line}");
    assert!(line.contains("direct"), "{line}");
    assert_eq!(analysis["design"]["stopping"], "after 6 blocks; the warm-up and 2 blocks failed");
    fine(directory.path(), ["verify", "kept"]);
}

#[test]
fn requests_that_the_page_cache_answers_say_nothing_about_reading_ahead() {
    let directory = place();
    if !in_memory(directory.path()) {
        println!("skipped: /dev/shm is no tmpfs");
        return;
    }
    let fixed = format!("{SPILLS}\nfilesystemio_options = \"asynch\"");
    write_study(directory.path(), &fixed, "scan_read_ahead", ["1", "16"]);
    let (code, analysis) = study(directory.path(), &[]);
    let line = not_proved(code, &analysis);
    assert!(
        line.starts_with("INVALID: the page cache kept ") || line.starts_with("INVALID: nothing shows "),
        "{line}"
    );
}

#[test]
fn io_uring_that_is_refused_is_invalid() {
    let directory = place();
    let record = fine(directory.path(), ["run", "large-sort", "--rows", "1000", "--json"]);
    let record: Value = serde_json::from_str(&record).expect("a record");
    if record["devices"][0]["io_uring"]["state"] == "available" {
        println!("skipped: io_uring works here");
        return;
    }
    let fixed = format!("{SPILLS}\nfilesystemio_options = \"asynch\"");
    write_study(directory.path(), &fixed, "io_method", ["threads", "io_uring"]);
    let (code, analysis) = study(directory.path(), &[]);
    let line = not_proved(code, &analysis);
    assert!(line.starts_with("INVALID: no block came to its end: ") && line.contains("io_uring"), "{line}");
}

#[test]
fn settings_of_the_spill_say_nothing_of_a_sort_that_fits() {
    for (setting, levels) in [("sort_direct_writes", ["false", "true"]), ("sort_write_buffers", ["2", "8"])] {
        let directory = place();
        write_study(directory.path(), "sort_area_size = \"16M\"", setting, levels);
        let (code, analysis) = study(directory.path(), &["--rows", "1000"]);
        let line = not_proved(code, &analysis);
        assert!(line.starts_with(&format!("INVALID: nothing shows that {setting} took effect: ")), "{line}");
        assert_eq!(code, 5);
    }
}

#[test]
fn what_cannot_begin_leaves_nothing() {
    let directory = place();
    let here = directory.path();
    write_study(here, SPILLS, "sort_area_size", ["64K", "128K"]);
    fs::create_dir(here.join("full")).expect("a directory");
    fs::write(here.join("full/mine"), "kept").expect("a file");
    fs::create_dir(here.join("empty")).expect("a directory");
    let mut said = String::new();
    for arguments in [
        &["study", "small.toml"][..],
        &["study", "large-sorts"],
        &["study", "missing.toml"],
        &["study"],
        &["study", "--resume"],
        &["study", "--resume", "empty"],
        &["study", "large-sort", "--budget", "1s", "--rows", "1G"],
        &["study", "large-sort", "--budget", "10"],
        &["study", "large-sort", "--blocks", "0"],
        &["study", "large-sort", "--until", "tired"],
        &["study", "large-sort", "--rows", "0"],
        &["study", "large-sort", "--bundle", "full"],
        &["study", "large-sort", "--path", "missing"],
        &["verify", "empty"],
    ] {
        let (code, line) = refused(here, arguments);
        let place = here.canonicalize().expect("it is there").display().to_string();
        said.push_str(&format!(
            "$ plumb {}\nplumb: {}\n[{code}]\n\n",
            arguments.join(" "),
            line.replace(&place, "DIR")
        ));
    }
    assert_eq!(names(here), ["empty", "full", "small.toml"]);
    assert_eq!(names(&here.join("full")), ["mine"]);
    assert_eq!(names(&here.join("empty")), Vec::<String>::new());
    insta::assert_snapshot!(said);
}

/// Nanoseconds before each request: many times what a request to memory takes.
const DELAY: &str = "500000";

/// The findings of every run of an arm.
fn findings(bundle: &Path, arm: &str) -> Vec<String> {
    let texts = names(&bundle.join("runs"))
        .into_iter()
        .map(|name| fs::read_to_string(bundle.join("runs").join(name)));
    let records = texts.map(|text| serde_json::from_str::<Value>(&text.expect("a record")).expect("JSON"));
    let ours =
        records.filter(|run| run["arm"] == arm).map(|run| run["record"]["findings"][0]["what"].to_string());
    ours.collect()
}

#[test]
fn an_injected_delay_is_proved_and_every_record_of_its_runs_says_so() {
    let directory = place();
    let here = directory.path();
    let fixed = format!("{SPILLS}\nfilesystemio_options = \"none\"");
    write_study(here, &fixed, "debug_request_delay", ["0", DELAY]);
    // Other load can make a study UNSTABLE or hide the delay: beside a load of 10, three in a row.
    let (code, analysis) = ["5", "6", "7", "8", "9", "10"]
        .into_iter()
        .map(|seed| {
            let _ = fs::remove_dir_all(here.join("kept"));
            study(here, &["--seed", seed])
        })
        .find(|(code, _)| ![3, 4].contains(code))
        .expect("a verdict other than NOT PROVED and UNSTABLE");
    let line = analysis["claims"][0]["verdict"]["line"].as_str().expect("a line");
    assert_eq!(code, 0, "{line}");
    assert!(line.starts_with("PROVED slower by "), "{line}");
    let delayed = findings(&here.join("kept"), &format!("x={DELAY}"));
    assert_eq!(delayed.len(), 7, "a warm-up run and six more");
    assert!(
        delayed.iter().all(|what| what.contains("A delay was injected into every request")),
        "{delayed:?}"
    );
    let others = findings(&here.join("kept"), "x=0");
    assert!(!others.iter().any(|what| what.contains("delay")), "{others:?}");
    let waits = analysis["claims"][0]["why"]["parts"].as_array().expect("parts");
    let added = |part: &Value| {
        part["treatment_ns"].as_i64().expect("a time") - part["reference_ns"].as_i64().expect("a time")
    };
    let largest = waits.iter().max_by_key(|part| added(part)).expect("a part");
    assert_eq!(largest["wait_class"], "User I/O", "{largest}");
    fine(here, ["verify", "kept"]);
}

#[test]
fn without_the_delay_the_same_study_is_not_proved() {
    // Each study may be falsely PROVED once in 64 times; three in a row are no chance.
    let lines: Vec<String> = (1..=3)
        .map(|seed: u32| without_delay(&seed.to_string()))
        .take_while(|line| line.starts_with("PROVED slower"))
        .collect();
    assert!(lines.len() < 3, "{lines:?}");
}

/// Returns the verdict on two arms with the same settings.
fn without_delay(seed: &str) -> String {
    let directory = place();
    let here = directory.path();
    write_study(
        here,
        &format!("{SPILLS}\nfilesystemio_options = \"none\""),
        "debug_request_delay",
        ["0", "1"],
    );
    let text = fs::read_to_string(here.join("small.toml")).expect("a file");
    let same = r#"levels = [{ label = "0", set = { debug_request_delay = 0 } }, { label = "1", set = { debug_request_delay = 0 } }]"#;
    let text = text.replace("setting = \"debug_request_delay\"\nlevels = [\"0\", \"1\"]", same);
    let text = text.replacen("\n\n", "\nexpects = \"same\"\n\n", 1);
    assert!(text.contains(same));
    fs::write(here.join("small.toml"), text).expect("a file");
    let (_, analysis) = study(here, &["--seed", seed]);
    let line = analysis["claims"][0]["verdict"]["line"].as_str().expect("a line").to_string();
    assert!(!line.starts_with("INVALID"), "there is nothing to show: {line}");
    println!("seed {seed}: {line}");
    line
}

#[test]
fn a_check_says_what_receipts_could_show_and_makes_nothing() {
    let directory = place();
    let here = directory.path();
    let shown = fine(here, ["study", "redo-sync-method", "--check"]);
    let head = "4 arms, 11 blocks with the warm-up: 55 runs on engine\n";
    assert!(shown.starts_with("redo-sync-method: ") && shown.contains(head), "{shown}");
    let rows = ["FACTOR ", "LEVEL ", "POSSIBLE\n", " yes\n", "SETTING ", "RECEIPT ", "log_sync_method "];
    assert!(rows.iter().all(|row| shown.contains(row)), "{shown}");
    let row = ["log_sync_method", "outside", "the", "kernel", "or", "the", "disk"];
    assert!(shown.lines().any(|line| line.split_whitespace().eq(row)), "{shown}");
    assert!(names(here).is_empty());
    // A server of version 15, whose programs only say so.
    let server = here.join("server");
    fs::create_dir(&server).expect("a directory");
    for name in ["postgres", "initdb"] {
        let path = server.join(name);
        fs::write(&path, "#!/bin/sh\necho 'postgres (PostgreSQL) 15.4'\n").expect("a program");
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a mode");
    }
    let on = |name| ["study", name, "--server", "server", "--check"];
    let shown = fine(here, on("pg-wal-sync-method"));
    assert!(
        shown.contains("2 claims of 3 arms, 9 blocks with the warm-up: 36 runs on PostgreSQL 15.4 of "),
        "{shown}"
    );
    let line = shown.lines().find(|line| line.starts_with("wal_sync_method ")).expect("a row");
    assert!(
        line.contains(" outside ") && line.contains("/proc/PID/fdinfo: O_DIRECT, O_DSYNC and O_SYNC"),
        "{line}"
    );
    let factor = ["--factor", "synchronous_commit=on,off", "--check"];
    let workload = ["study", "pgbench", "--target", "postgres", "--server", "server"];
    let shown = fine(here, workload.iter().chain(&factor));
    assert!(
        shown.starts_with("pgbench-synchronous_commit: pgbench by synchronous_commit\n1 claim of 2 arms"),
        "{shown}"
    );
    let (_, line) = refused(here, on("large-sort"));
    assert!(line.contains("--server: there is no setting server"), "{line}");
    let (code, line) = refused(here, on("pg-io-method"));
    assert!(
        line.starts_with("study pg-io-method: no level of method is possible here: io_method is known from")
    );
    assert_eq!((code, names(here)), (2, vec!["server".to_string()]));
}
