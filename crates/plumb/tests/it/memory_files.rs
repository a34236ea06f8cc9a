//! File systems whose pages say nothing of a device: the examples of docs/tour.md on overlayfs, as
//! in a container, and tmpfs.

use crate::pages::words;
use crate::program::{command, plumb};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// An overlay that is unmounted when this is dropped.
struct Overlay(PathBuf);

impl Overlay {
    fn mount(around: &Path) -> Option<Overlay> {
        let [lower, upper, work, mounted] =
            ["lower", "upper", "work", "mounted"].map(|name| around.join(name));
        [&lower, &upper, &work, &mounted].iter().for_each(|path| fs::create_dir(path).expect("a directory"));
        let [lower, upper, work] = [lower, upper, work].map(|path| path.display().to_string());
        let options = format!("lowerdir={lower},upperdir={upper},workdir={work}");
        let mut mount = Command::new("mount");
        mount.args(["-t", "overlay", "none", "-o", &options]).arg(&mounted).stderr(Stdio::null());
        mount.status().is_ok_and(|status| status.success()).then_some(Overlay(mounted))
    }
}

impl Drop for Overlay {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// Arguments as small as a test allows, if the example has them or the workload takes them.
const SMALL: [(&str, &str, &[&str]); 5] = [
    ("--rows", "20K", &["large-sort", "redo", "ctas", "scan", "producer"]),
    ("--size", "16M", &["record-sort"]),
    ("--scale", "8M", &["slob"]),
    ("--schemas", "2", &["slob"]),
    ("--run-time", "1", &["slob"]),
];

/// The runs that docs/tour.md shows in indented blocks, with little to do.
fn examples() -> Vec<Vec<String>> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tour.md");
    let tour = fs::read_to_string(page).expect("the tour");
    let shown = tour
        .lines()
        .filter_map(|line| line.strip_prefix("    plumb ").filter(|rest| rest.starts_with("run ")));
    // Blanks precede the remark after a command.
    let shown = shown.filter_map(|line| line.split("  ").next()).filter(|line| !line.contains("..."));
    let small = |line: &str| {
        let mut arguments = words(line);
        let workload = arguments[1].clone();
        for (name, value, _) in SMALL.iter().filter(|(_, _, of)| of.contains(&workload.as_str())) {
            match arguments.iter().position(|argument| argument == name) {
                Some(place) => arguments[place + 1] = (*value).to_string(),
                None => arguments.extend([(*name).to_string(), (*value).to_string()]),
            }
        }
        arguments
    };
    shown.map(small).collect()
}

fn contradicted(record: &Value) -> Vec<&Value> {
    let receipts = record["receipts"].as_array().expect("receipts");
    receipts.iter().filter(|receipt| receipt["held"] == "contradicted").collect()
}

#[test]
fn the_examples_of_the_tour_run_on_overlayfs() {
    let around = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary directory");
    let Some(overlay) = Overlay::mount(around.path()) else {
        println!("skipped: no overlayfs can be mounted here; root may, on most file systems");
        return;
    };
    fs::write(overlay.0.join("slob.conf"), "UPDATE_PCT=25\nRUN_TIME=1\n").expect("a file");
    fs::create_dir(overlay.0.join("archive")).expect("a directory");
    let examples = examples();
    assert!(examples.len() > 10, "{examples:?}");
    for (number, arguments) in examples.into_iter().enumerate() {
        let bundle = format!("bundle-{number}");
        let ended = plumb(&overlay.0, arguments.iter().map(String::as_str).chain(["--bundle", &bundle]));
        let shown = arguments.join(" ");
        assert_eq!(ended.code, Some(0), "{shown}: {}", ended.stderr);
        let record = fs::read_to_string(overlay.0.join(bundle).join("record.json")).expect("a record");
        let record: Value = serde_json::from_str(&record).expect("a record");
        assert_eq!(contradicted(&record), Vec::<&Value>::new(), "{shown}");
        fs::read_dir(overlay.0.join("archive")).expect("a directory").flatten().for_each(|copy| {
            fs::remove_file(copy.path()).expect("a copy");
        });
    }
    let text = fs::read_to_string(overlay.0.join("slob.conf")).expect("it stays");
    assert!(text.starts_with("UPDATE_PCT"));
}

#[test]
fn the_page_cache_of_tmpfs_is_not_checked_and_it_is_said_why() {
    let Ok(directory) = tempfile::tempdir_in("/dev/shm") else {
        println!("skipped: there is no /dev/shm");
        return;
    };
    let run = ["run", "redo", "--rows", "1000", "--json"];
    let output = command(directory.path()).args(run).output().expect("the program starts");
    let record: Value = serde_json::from_slice(&output.stdout).expect("a record");
    if record["devices"][0]["file_system"] != "tmpfs" {
        println!("skipped: /dev/shm is no tmpfs");
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{:?}", contradicted(&record));
    let receipts = record["receipts"].as_array().expect("receipts");
    let files = receipts.iter().find(|receipt| receipt["setting"] == "start: log files").expect("one");
    assert_eq!(files["held"], "not_checked");
    assert!(
        files["evidence"].as_str().is_some_and(|why| why.contains("on tmpfs a file is its pages")),
        "{files}"
    );
}
