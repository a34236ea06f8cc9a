//! Copies of bundles and files without the names in them.

use crate::program::{fine, names, plumb};
use std::fs;
use std::path::{Path, PathBuf};

/// Returns the names and bytes of a directory's files.
fn bytes_below(directory: &Path) -> Vec<u8> {
    let mut all = Vec::new();
    for name in names(directory) {
        let path = directory.join(&name);
        all.extend_from_slice(name.as_bytes());
        match path.is_dir() {
            true => all.extend(bytes_below(&path)),
            false => all.extend(fs::read(&path).expect("a file")),
        }
    }
    all
}

fn require_none(copy: &Path, originals: &[&str]) {
    let bytes = bytes_below(copy);
    for original in originals {
        let is_in_word =
            |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_alphanumeric);
        // A short name of a host is also a part of words, as vm is of nvme.
        let found = bytes.windows(original.len()).enumerate().position(|(at, window)| {
            window == original.as_bytes()
                && !is_in_word(at.checked_sub(1))
                && !is_in_word(Some(at + original.len()))
        });
        let shown =
            found.map(|at| String::from_utf8_lossy(&bytes[at.saturating_sub(60)..at + 60]).into_owned());
        assert_eq!(shown, None, "{original} is left");
    }
}

/// A directory whose name is a customer's.
fn place() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path().join("zyxcorp-billing");
    fs::create_dir(&here).expect("a directory");
    (directory, here)
}

fn host() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname").expect("a name").trim().to_string()
}

#[test]
fn the_copy_of_a_study_has_no_name_and_verifies() {
    let (directory, here) = place();
    let secret = "select salary from zyxpeople where id = 1";
    let commands = [
        format!("sh -c 'echo \"{secret}\" >&2'"),
        format!("sh -c 'cat {}/zyxinput >&2; exit 1'", here.display()),
    ];
    fs::write(here.join("zyxinput"), "alice@zyxhost.example.com 10.11.12.13\n").expect("a file");
    // By this seed the command that succeeds runs first, so that run 1 has a record.
    let order = ["--blocks", "2", "--seed", "1"];
    let study = ["compare-commands", &commands[0], &commands[1], "--bundle", "zyxbundle"];
    drop(plumb(&here, study.into_iter().chain(order)));
    let said = fine(&here, ["share", "zyxbundle", "--output", "copy"]);
    let hash = fine(&here, ["verify", "copy"]);
    assert!(said.contains(hash.trim().rsplit(' ').next().expect("a hash")), "{said}\n{hash}");
    assert!(said.contains("zyxcorp-billing") && said.contains("sql-1"), "the list is for the user: {said}");
    let temporary = directory.path().file_name().expect("a name").to_string_lossy().into_owned();
    let copy = here.join("copy");
    require_none(&copy, &["zyx", "salary", "alice", "10.11.12.13", &temporary]);
    let kept = fs::read_to_string(copy.join("runs/0001.json")).expect("a record");
    assert!(!kept.contains(&format!("\"name\": \"{}\"", host())), "{kept}");
    assert!(kept.contains("\"name\": \"host-"), "{kept}");
    // The same names have the same replacements, and nothing is written over.
    assert_eq!(plumb(&here, ["share", "zyxbundle", "--output", "copy"]).code, Some(1));
}

#[test]
fn the_copy_of_a_run_has_its_reports_and_its_trace() {
    let (_directory, here) = place();
    fs::create_dir(here.join("zyxdata")).expect("a directory");
    let run = ["run", "redo", "--rows", "2K", "--trace", "--path", "zyxdata", "--bundle", "kept"];
    fine(&here, run);
    let given = here.join("kept");
    let said = fine(&here, ["share", "kept", "--output", "copy"]);
    assert!(said.contains("zyxdata"), "{said}");
    let copy = here.join("copy");
    require_none(&copy, &["zyx"]);
    assert_eq!(names(&copy), names(&given));
    // The copy is a valid bundle.
    let [trace, of_copy] = ["kept", "copy"].map(|bundle| fine(&here, ["trace", bundle, "--summary"]));
    assert_eq!(trace.lines().count(), of_copy.lines().count());
    fine(&here, ["report", "copy"]);
    fine(&here, ["info", "copy"]);
}

#[test]
fn files_of_text_and_of_json_are_shared_alike() {
    let (_directory, here) = place();
    let text = "WORKLOAD REPOSITORY report for\n\n\
                DB Name         DB Id    Instance     Inst Num Startup Time    Release     RAC\n\
                ------------ ----------- ------------ -------- --------------- ----------- ---\n\
                ZYXPROD       1269760792 ZYXPROD1            1 31-Oct-14 11:00 11.2.0.4.0  NO\n\n\
                Host Name        Platform                         CPUs\n\
                ---------------- -------------------------------- ----\n\
                zyxhost01        Linux x86 64-bit                   24\n\n\
                select zyxname\n  from zyxtable;\n\nacme says so, and zyxhost01 too.\n";
    fs::write(here.join("awr_zyxhost01.txt"), text).expect("a file");
    fs::write(here.join("fio.json"), "{\"hostname\": \"zyxhost01\", \"filename\": \"zyxfile/zyxdev\"}")
        .expect("a file");
    fine(&here, ["share", "awr_zyxhost01.txt", "--output", "text", "--name", "acme"]);
    fine(&here, ["share", "fio.json", "--output", "json"]);
    require_none(&here.join("text"), &["zyx", "ZYX", "acme"]);
    require_none(&here.join("json"), &["zyx"]);
    let shared = fs::read_to_string(here.join("text/awr_host-1.txt")).expect("a file");
    assert!(shared.contains("11.2.0.4.0") && shared.contains("Linux x86 64-bit"), "{shared}");
    assert!(shared.contains("word-1 says so, and host-1  too."), "{shared}");
}

/// Returns the name and outcome of each check of a file's reports, and the lines not understood.
fn checks(here: &Path, file: &str) -> Vec<String> {
    let json: serde_json::Value =
        serde_json::from_str(&fine(here, ["import", file, "--json"])).expect("JSON");
    let mut found = Vec::new();
    for report in json.as_array().expect("reports").iter().map(|import| &import["report"]) {
        let checks = report["checks"].as_array().expect("checks");
        found.extend(checks.iter().map(|check| format!("{} {}", check["name"], check["outcome"])));
        found.push(format!("{} tables", report["sheets"].as_array().expect("tables").len()));
        found.push(format!("{} unread", report["unread"].as_array().expect("lines").len()));
    }
    found
}

/// Returns the tags of a page without the quoted values of their attributes.
fn tags(page: &str) -> Vec<String> {
    let tags = page.split('<').skip(1).map(|piece| piece.split('>').next().unwrap_or_default());
    tags.map(|tag| tag.split('"').step_by(2).collect()).collect()
}

#[test]
fn the_copy_of_each_report_has_the_same_checks() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../foreign/tests/it/fixtures");
    for name in names(&fixtures) {
        let (_directory, here) = place();
        let original = fs::read_to_string(fixtures.join(&name)).expect("a fixture");
        fs::write(here.join(&name), &original).expect("a file");
        drop(fine(&here, ["share", &name, "--output", "copy"]));
        let copied = names_of(&here.join("copy"));
        let copy = format!("copy/{copied}");
        assert_eq!(checks(&here, &copy), checks(&here, &name), "{name}");
        if name.ends_with(".html") {
            let text = fs::read_to_string(here.join(&copy)).expect("a page");
            assert_eq!(tags(&text), tags(&original), "{name}");
        }
    }
}

fn names_of(directory: &Path) -> String {
    names(directory).pop().expect("a file")
}

#[test]
fn names_of_fields_are_replaced_in_any_case_and_inside_words_and_no_heading_is() {
    let (_directory, here) = place();
    let page = "<HTML><HEAD><TITLE>AWR Report for DB: ZYX, Inst: zyx1</TITLE><STYLE>.zyx {}</STYLE></HEAD><BODY>\n\
        <H1>WORKLOAD REPOSITORY report for</H1>\n\
        <TABLE summary=\"zyx\"><TR><TH>DB Name</TH><TH>DB Id</TH><TH>Unique Name</TH><TH>Instance</TH>\
        <TH>Inst Num</TH><TH>Startup Time</TH><TH>Release</TH><TH>RAC</TH></TR>\n\
        <TR><TD>ZYX</TD><TD>12</TD><TD>zyx_a</TD><TD>zyx1</TD><TD>1</TD><TD>1-2</TD><TD>12.1.0.2.0</TD>\
        <TD>NO</TD></TR></TABLE>\n\
        <TABLE><TR><TH>Host Name</TH><TH>Platform</TH><TH>CPUs</TH></TR>\n\
        <TR><TD>WWPZYX1</TD><TD>Linux x86 64-bit</TD><TD>24</TD></TR></TABLE>\n\
        <H3>init.ora Parameters</H3><TABLE><TR><TH>Parameter Name</TH><TH>Begin value</TH></TR>\n\
        <TR><TD>dispatchers</TD><TD>(PROTOCOL=TCP) (SERVICE=zyxXDB)</TD></TR>\
        <TR><TD>spfile</TD><TD>+DATA/zyx/spfilezyx.ora</TD></TR>\
        <TR><TD>remote_listener</TD><TD>yzy-scan:4096</TD></TR></TABLE>\n\
        <H3>Foreground Wait Events</H3><TABLE><TR><TH>Event</TH><TH>Waits</TH>\
        <TH>Waits /txn</TH><TH>Pct Miss</TH></TR>\n\
        <TR><TD>db file sequential read</TD><TD>12</TD><TD>1.0</TD><TD>2</TD></TR></TABLE>\n\
        <P>see oldzyxlog</P>\n\
        select yzy from clients where a &lt; 1</BODY></HTML>\n";
    fs::write(here.join("awr.html"), page).expect("a file");
    drop(fine(&here, ["share", "awr.html", "--output", "copy"]));
    let copy = fs::read_to_string(here.join("copy/awr.html")).expect("a file");
    let texts = copy.replace(".zyx {}", "").to_lowercase();
    for name in ["zyx", "yzy", "clients"] {
        assert!(!texts.contains(name), "{name}: {copy}");
    }
    for kept in [
        "<TH>Waits /txn</TH><TH>Pct Miss</TH>",
        "<TD>db file sequential read</TD><TD>12</TD>",
        "Linux x86 64-bit",
        "</TD></TR></TABLE>",
        ":4096",
    ] {
        assert!(copy.contains(kept), "{kept}: {copy}");
    }
    assert_eq!(tags(&copy), tags(page));
}

#[test]
fn the_copy_of_a_calibration_has_no_name_and_renders_again() {
    // Memory has no storage to measure.
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary directory");
    let here = directory.path().join("zyxcorp-billing");
    fs::create_dir(&here).expect("a directory");
    let short = ["calibrate", "--file-size", "64M", "--duration", "2ms", "--run", "quick"];
    drop(plumb(&here, short.into_iter().chain(["--bundle", "zyxbundle"])));
    drop(fine(&here, ["share", "zyxbundle", "--output", "copy"]));
    let temporary = directory.path().file_name().expect("a name").to_string_lossy().into_owned();
    require_none(&here.join("copy"), &["zyx", &host(), &temporary]);
    let again = plumb(&here, ["report", "copy"]);
    assert!(!again.stdout.is_empty() && again.stderr.is_empty(), "{}", again.stderr);
}
