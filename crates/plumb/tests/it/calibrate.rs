//! Short calibrations: their output, their files and their errors.

use crate::faults::end_of;
use crate::program::{as_nobody, bytes_below, command, fine, names, plumb, refused, wait_until};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// A directory next to the test program, because the system's temporary directory may be in memory,
/// which has no storage to measure.
fn place() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary directory")
}

/// Options of a calibration of seconds. Its figures are inaccurate but complete.
const SHORT: [&str; 5] = ["calibrate", "--file-size", "64M", "--duration", "2ms"];

fn short<'a>(more: &[&'a str]) -> Vec<&'a str> {
    SHORT.iter().chain(more).copied().collect()
}

/// Runs a calibration, or its report again, compares its exit code with its own
/// word, and returns the output.
fn calibrated<'a>(directory: &Path, arguments: impl IntoIterator<Item = &'a str>) -> String {
    let ended = plumb(directory, arguments);
    let in_doubt = match serde_json::from_str::<serde_json::Value>(&ended.stdout) {
        Ok(record) => record["state"] == "IN DOUBT",
        // The answer comes first.
        Err(_) => ended
            .stdout
            .lines()
            .any(|line| line.contains(": IN DOUBT (") && line.contains(" figures settled")),
    };
    let expected = if in_doubt { 4 } else { 0 };
    assert_eq!(ended.code, Some(expected), "stdout:\n{}\nstderr:\n{}", ended.stdout, ended.stderr);
    ended.stdout
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn a_quick_calibration_is_printed_bundled_and_stored() {
    let directory = place();
    let printed =
        calibrated(directory.path(), short(&["--test-name", "night", "--bundle", "b", "--seed", "7"]));
    for expected in ["quick run, ", "file of 64M", "seed 7", "small random reads ", "large sequential read "]
    {
        assert!(printed.contains(expected), "no {expected:?} in:\n{printed}");
    }
    assert!(!printed.contains("against the calibration"), "there is none before it:\n{printed}");
    assert_eq!(names(directory.path()), ["b", "plumb-calibration.json"]);
    let stored = fs::read_to_string(directory.path().join("plumb-calibration.json")).expect("a record");
    let bundled = fs::read_to_string(directory.path().join("b/calibration.json")).expect("a record");
    assert_eq!(stored, bundled);
    assert_eq!(json(&stored)["mode"], "quick");
    let page = fs::read_to_string(directory.path().join("b/report.html")).expect("a report");
    assert!(page.contains("<svg") && page.ends_with("</html>\n"), "no page with curves");
    let text = fs::read_to_string(directory.path().join("b/report.txt")).expect("a report");
    assert!(text.contains("\nMain Figures\n~~~~") && text.ends_with("\nEnd of Report\n"), "{text}");
    assert!(printed.contains("  b/report.html with report.txt, calibration.json and night_"), "{printed}");
    assert!(printed.lines().count() <= 60, "{printed}");
    for name in ["b/report.html", "b/report.txt"] {
        fs::remove_file(directory.path().join(name)).expect("removed");
    }
    let shown = calibrated(directory.path(), ["report", "b"]);
    assert!(shown.ends_with("\n\n  b/report.txt\n  b/report.html\n"), "{shown}");
    assert!(printed.starts_with(shown.split("\n\n").next().unwrap()), "{shown}");
    for (name, kept) in [("b/report.html", page), ("b/report.txt", text)] {
        assert_eq!(fs::read_to_string(directory.path().join(name)).expect("a report"), kept);
    }
    let files = names(&directory.path().join("b"));
    let tables: Vec<&str> = files.iter().filter_map(|name| name.strip_prefix("night_")).collect();
    let kinds: Vec<&str> = tables.iter().map(|name| name.rsplit('_').next().unwrap_or(name)).collect();
    assert_eq!(kinds, ["ci.csv", "hist.csv", "iops.csv", "lat.csv", "mbps.csv"]);
    let table = tables.iter().find(|name| name.ends_with("iops.csv")).expect("a table");
    assert_eq!(table.len(), "20261120_2104_iops.csv".len());
    let table =
        fs::read_to_string(directory.path().join("b").join(format!("night_{table}"))).expect("a table");
    assert!(table.starts_with("Large/Small, 1, "), "{table}");

    let again = calibrated(directory.path(), short(&["--bundle", "c"]));
    assert!(again.contains("\nagainst the calibration of 20"), "{again}");
    assert_ne!(
        fs::read_to_string(directory.path().join("plumb-calibration.json")).expect("a record"),
        stored
    );
}

#[test]
fn json_alone_is_printed_and_an_advanced_run_takes_no_ones_place() {
    let directory = place();
    let record = calibrated(directory.path(), short(&["--run", "advanced", "--json"]));
    let record = json(&record);
    assert_eq!(record["mode"], "advanced");
    assert_eq!(record["file_bytes"], 64 << 20);
    assert_eq!(names(directory.path()), Vec::<String>::new());
}

#[test]
fn an_advanced_run_measures_the_cells_and_requests_that_were_asked_for() {
    let directory = place();
    let options =
        ["--run", "advanced", "--bundle", "b", "--test-name", "t", "--write", "30", "--type", "seq"];
    let matrix = ["--size-small", "4K", "--matrix", "max", "--num-small", "2", "--num-large", "1"];
    calibrated(directory.path(), short(&[&options[..], &matrix[..]].concat()));
    let bundle = directory.path().join("b");
    let record = json(&fs::read_to_string(bundle.join("calibration.json")).expect("a record"));
    let tasks = record["tasks"].as_array().expect("tasks");
    assert_eq!(tasks.len(), 3 * 2 - 1);
    let loads = tasks.iter().flat_map(|task| task["task"]["point"]["loads"].as_array().expect("loads"));
    for load in loads {
        let large = load["request_bytes"] == 1 << 20;
        assert!(large || load["request_bytes"] == 4096, "{load}");
        assert_eq!(load["pattern"], if large { "sequential" } else { "random" });
        assert_eq!(load["write_percent"], 30);
    }
    let table = |kind: &str| {
        let name = names(&bundle).into_iter().find(|name| name.ends_with(kind)).expect("a table");
        fs::read_to_string(bundle.join(name)).expect("a table")
    };
    assert!(table("_iops.csv").starts_with("Large/Small, 1, 2\n0, "), "{}", table("_iops.csv"));
    assert!(table("_mbps.csv").starts_with("Large/Small, 0, 1, 2\n1, "), "{}", table("_mbps.csv"));
    assert!(table("_ci.csv").contains("\n1,2,\"4K random 70/30 read/write x2 + 1M sequential 70/30 "));
}

#[test]
fn advanced_options_that_mean_nothing_are_refused() {
    let directory = place();
    let cases: [(&[&str], &str); 6] = [
        (
            &["--write", "30"],
            "--write: it is an option of --run advanced, and this is --run quick; leave it out",
        ),
        (
            &["--run", "dss", "--num-large", "3"],
            "--num-large: it is an option of --run advanced, and this is --run dss; leave it out",
        ),
        (&["--run", "advanced", "--write", "101"], "--write 101 is not possible: 0 to 100"),
        (&["--run", "advanced", "--matrix", "point"], "--matrix point is not possible: it needs num-small"),
        (
            &["--run", "advanced", "--matrix", "col", "--num-small", "1", "--num-large", "2"],
            "--num-large 2 is not possible: the matrix col takes none; point, row and max do",
        ),
        (
            &["--run", "advanced", "--size-small", "1M"],
            "--size-small 1M is not possible: less than size_large (1M)",
        ),
    ];
    for (options, expected) in cases {
        let (code, line) = refused(directory.path(), short(options));
        assert_eq!((code, line.as_str()), (2, expected));
    }
    assert_eq!(names(directory.path()), Vec::<String>::new());
}

/// A file or a device is never accepted as a place to write to.
#[test]
fn only_a_directory_is_calibrated() {
    let directory = place();
    let file = directory.path().join("precious");
    fs::write(&file, "precious").expect("a file");
    for path in ["precious", "/dev/null"] {
        let (code, line) = refused(directory.path(), ["calibrate", "--path", path]);
        assert!(code == 1 || code == 2, "{line}");
        assert!(line.contains("directory"), "{line}");
    }
    assert_eq!(fs::read_to_string(&file).expect("still there"), "precious");
    assert_eq!(names(directory.path()), ["precious"]);
}

#[test]
fn a_read_only_mount_is_named() {
    let directory = place();
    let mount =
        "mount --bind . . && cd \"$PWD\" && mount -o remount,ro,bind . && exec \"$0\" calibrate --json";
    let inside = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", script, env!("CARGO_BIN_EXE_plumb")]);
        command.current_dir(directory.path()).stdin(Stdio::null()).output()
    };
    let may = "mount --bind . . && cd \"$PWD\" && mount -o remount,ro,bind .";
    if !inside(may).is_ok_and(|output| output.status.success()) {
        println!("skipped: nothing may be mounted here");
        return;
    }
    let ended = inside(mount).expect("seen to start");
    let stderr = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.contains("is mounted read-only, and calibration needs a file of its own there"),
        "{stderr}"
    );
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
}

#[test]
fn memory_is_no_storage() {
    let mounts = fs::read_to_string("/proc/mounts").expect("mounts");
    if !mounts.lines().any(|line| line.starts_with("tmpfs /dev/shm tmpfs")) {
        println!("skipped: /dev/shm is no tmpfs");
        return;
    }
    let directory = tempfile::tempdir_in("/dev/shm").expect("a temporary directory");
    let (code, line) = refused(directory.path(), ["calibrate"]);
    assert_eq!(code, 1);
    assert!(line.ends_with("there is no storage to measure; choose a --path on a disk"), "{line}");
    assert_eq!(names(directory.path()), Vec::<String>::new());
}

#[test]
fn a_file_that_does_not_fit_or_is_too_small_is_refused() {
    let directory = place();
    let (code, line) = refused(directory.path(), ["calibrate", "--file-size", "900T"]);
    assert_eq!(code, 1);
    assert!(line.contains(" needs 900 TB and ") && line.contains(" are free: "), "{line}");
    assert!(
        line.contains(": a file of ") && line.ends_with(" would fit, or choose another --path"),
        "{line}"
    );
    let (code, line) = refused(directory.path(), ["calibrate", "--file-size", "1M"]);
    assert_eq!(code, 2);
    assert_eq!(line, "--file-size 1M is not possible: at least 16M (16 large requests)");
    let (code, line) = refused(directory.path(), ["calibrate", "--duration", "10us"]);
    assert_eq!(code, 2);
    assert!(line.starts_with("--duration 10.0 us is not possible: "), "{line}");
    assert_eq!(names(directory.path()), Vec::<String>::new());
}

#[test]
fn what_is_no_calibration_is_not_replaced() {
    let directory = place();
    let file = directory.path().join("plumb-calibration.json");
    for text in ["notes", "{\"figures\": []}", ""] {
        fs::write(&file, text).expect("a file");
        let (code, line) = refused(directory.path(), SHORT);
        assert_eq!(code, 1);
        assert!(line.starts_with("./plumb-calibration.json: is no calibration, "), "{line}");
        assert_eq!(fs::read_to_string(&file).expect("still there"), text);
    }
    assert_eq!(names(directory.path()), ["plumb-calibration.json"]);
}

#[test]
fn places_that_cannot_be_written_are_named_before_anything_is_measured() {
    use std::os::unix::fs::PermissionsExt;
    let directory = place();
    let locked = directory.path().join("locked");
    fs::create_dir(&locked).expect("a directory");
    for ours in [directory.path(), &locked] {
        fs::set_permissions(ours, fs::Permissions::from_mode(0o755)).expect("ours");
    }
    let cases: [(&[&str], &str); 2] = [
        (&["calibrate", "--path", "locked", "--json"], "choose another --path"),
        (&["calibrate", "--bundle", "locked/b"], "cannot write reports to locked/b: "),
    ];
    for (arguments, expected) in cases {
        let Some(ended) = as_nobody(directory.path(), arguments) else { return };
        assert_eq!(ended.code, Some(1), "{}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    }
    assert_eq!(names(&locked), Vec::<String>::new());
}

/// Interrupts before the file is made, while it is made, and while it is measured.
#[test]
fn an_interrupted_calibration_leaves_nothing() {
    for (signal, bytes) in [("INT", 0), ("TERM", 1), ("INT", 256 << 20)] {
        let directory = place();
        let child = command(directory.path())
            .args(["calibrate", "--file-size", "256M"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        wait_until("a directory of its own", || {
            names(directory.path()).iter().any(|name| name.starts_with("plumb-calibrate-"))
        });
        wait_until("its file grows", || bytes_below(directory.path()) >= bytes);
        crate::bundles::signal(signal, child.id());
        let ended = end_of(child);
        let stderr = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(if signal == "INT" { 130 } else { 143 }), "{stderr}");
        assert!(stderr.starts_with("plumb: interrupted: "), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        assert_eq!(names(directory.path()), Vec::<String>::new());
    }
}

/// Returns the limits in the record of a small run, and their line of its summary.
fn limits_of_a_run(directory: &Path) -> (serde_json::Value, String) {
    let _ = fs::remove_dir_all(directory.join("run"));
    let arguments = ["run", "large-sort", "--rows", "20000", "--bundle", "run"];
    let printed = fine(directory, arguments);
    let line = printed.lines().rfind(|line| line.starts_with("  Device ")).expect("a line in the summary");
    let record = fs::read_to_string(directory.join("run/record.json")).expect("a record");
    (json(&record)["limits"].clone(), line.trim_start_matches("  Device").trim().to_string())
}

#[test]
fn a_run_states_rates_as_shares_of_the_calibration_that_holds_or_asks_for_one() {
    let directory = place();
    let (limits, line) = limits_of_a_run(directory.path());
    assert_eq!(limits["state"], "not_calibrated");
    let path = directory.path().canonicalize().expect("a path");
    let cure = format!("plumb calibrate --path {} makes one", path.display());
    assert_eq!(line, format!("not calibrated: no calibration is stored there; {cure}"));

    calibrated(directory.path(), ["calibrate", "--file-size", "64M", "--duration", "20ms", "--bundle", "b"]);
    let (limits, line) = limits_of_a_run(directory.path());
    assert_eq!(limits["state"], "calibrated", "{limits}");
    let source = path.join("plumb-calibration.json");
    assert_eq!(limits["source"], source.display().to_string());
    assert!(limits["age_s"].as_u64().is_some_and(|age| age < 600), "{limits}");
    assert!(limits["sequential_read_bytes_per_s"].as_f64().is_some_and(|rate| rate > 0.0), "{limits}");
    assert!(line.starts_with("calibrated 20") && line.contains(" before this run)"), "{line}");
    let record = fs::read_to_string(directory.path().join("run/record.json")).expect("a record");
    let share = &json(&record)["calibration"]["shares"][0];
    assert_eq!(share["limit"], "the device's sequential read", "{share}");
    assert_eq!(share["limit_bytes_per_s"], limits["sequential_read_bytes_per_s"]);

    let stored = fs::read_to_string(&source).expect("a calibration");
    let mut other = json(&stored);
    other["environment"]["device"] = "sdz9".into();
    fs::write(&source, other.to_string()).expect("another device's");
    let (limits, line) = limits_of_a_run(directory.path());
    assert_eq!(limits["state"], "not_calibrated");
    let expected = "plumb-calibration.json does not hold: device: calibrated on sdz9, this is ";
    assert!(line.contains(expected) && line.ends_with(&cure), "{line}");
}
