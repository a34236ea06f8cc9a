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
    assert!(said.contains("REPLACED BY"), "the list is for the user: {said}");
    let temporary = directory.path().file_name().expect("a name").to_string_lossy().into_owned();
    let copy = here.join("copy");
    require_none(&copy, &["zyx", "salary", "alice", "10.11.12.13", &temporary]);
    let kept = fs::read_to_string(copy.join("runs/0001.json")).expect("a record");
    assert!(!kept.contains(&format!("\"name\": \"{}\"", host())), "{kept}");
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
    assert!(said.contains("words replaced"), "{said}");
    let copy = here.join("copy");
    require_none(&copy, &["zyx"]);
    assert_eq!(names(&copy), names(&given));
    // The copy is a valid bundle.
    let [trace, of_copy] = ["kept", "copy"].map(|bundle| fine(&here, ["trace", bundle, "--summary"]));
    assert_eq!(trace.lines().count(), of_copy.lines().count());
    fine(&here, ["report", "copy"]);
    fine(&here, ["info", "copy"]);
}

/// Lines that strangers found in copies of the search for names.
const HOSTILE: &str = "connect scott/tiger@//db17.corp.example.com:1521/PAY
host=db17 user=alice password=s3cretpw PGPASSWORD=s3cretpw
postgres://alice:s3cretpw@db17.corp.example.com:5432/payroll
fe80::1ff:fe23:4567:890a and 2001:db8::8a2e:370:7334 MAC 52:54:00:12:34:56
/home/alice/data/payroll.dbf C:\\Users\\alice\\payroll.dbf \\\\filer7\\share\\x ~alice/x
select name, salary from employees where ssn = '078-05-1120' and name = 'Meier'
SELECT/*+ full */ x FROM \"Kunden\" WHERE n=$1
alice@corp.example.com Bearer eyJhbGciOiJIUzI1NiJ9.e30.abc AKIAIOSFODNN7EXAMPLE
";
const SECRETS: [&str; 22] = [
    "scott",
    "tiger",
    "db17",
    "corp",
    "example",
    "alice",
    "s3cret",
    "payroll",
    "5432",
    "fe80",
    "2001",
    "8a2e",
    "52:54",
    "filer7",
    "salary",
    "employees",
    "078",
    "1120",
    "Meier",
    "Kunden",
    "eyJ",
    "AKIA",
];

fn copied(here: &Path, name: &str, text: &str) -> String {
    fs::write(here.join(name), text).expect("a file");
    drop(fine(here, ["share", name, "--output", "copy"]));
    let copied = names(&here.join("copy")).pop().expect("a file");
    let copy = fs::read_to_string(here.join("copy").join(copied)).expect("a file");
    fs::remove_dir_all(here.join("copy")).expect("a directory");
    copy
}

#[test]
fn a_file_keeps_what_was_understood_and_nothing_else() {
    let (_directory, here) = place();
    let iostat = "Linux 5.10.0 (prod-ora7) 	05/03/24 	_x86_64_	(4 CPU)\n\n\
        Device            r/s     w/s     rkB/s     wkB/s  r_await w_await aqu-sz  %util\n\
        sda              4.50    1.20    112.50     48.00     0.27    2.05   0.00   0.14\n\
        vg_acme-lv_pay   4.50    1.20    112.50     48.00     0.27    2.05   0.00   0.14\n";
    let awr = "WORKLOAD REPOSITORY report for\n\n\
        DB Name         DB Id    Instance     Inst Num Startup Time    Release     RAC\n\
        ------------ ----------- ------------ -------- --------------- ----------- ---\n\
        ZYXPROD       1269760792 ZYXPROD1            1 31-Oct-14 11:00 11.2.0.4.0  NO\n\n\
        Host Name        Platform                         CPUs\n\
        ---------------- -------------------------------- ----\n\
        zyxhost01        Linux x86 64-bit                   24\n\n";
    let plan = "Nested Loop  (cost=0.42..16.47 rows=1 width=8) (actual time=0.020..0.030 rows=1 loops=1)\n\
        \x20 ->  Index Scan using customers_ssn_idx on payroll.orders filter  \
        (cost=0.42..8.44 rows=1 width=8) (actual time=0.010..0.011 rows=1 loops=1)\n\
        \x20       Index Cond: (c.ssn = '078-05-1120'::text)\n\
        \x20 ->  Seq Scan on secret_deals d  (cost=0.00..8.00 rows=1 width=4) \
        (actual time=0.005..0.006 rows=1 loops=1)\n\
        Planning Time: 0.100 ms\nExecution Time: 0.060 ms\n";
    let claim = "statement = \"Acme is faster.\"\n[source]\ntitle = \"Acme\"\n\
        author = \"Alice\"\ndate = \"2005-04\"\n\
        place = \"acme.example.com\"\n[figures]\nacme = { text = \"4.33 secs\" }\nother = { text = \"2.16 secs\" }\n\
        times = { text = \"2\" }\n[[relation]]\nrule = \"ratio\"\nlarger = \"acme\"\nsmaller = \"other\"\ntimes = \"times\"\n";
    let cases: [(&str, String, &[&str], &[&str]); 4] = [
        (
            "i.txt",
            format!("{HOSTILE}{iostat}{HOSTILE}"),
            &["acme", "ora7", "sda"],
            &["112.50", "r_await", "5.10.0"],
        ),
        (
            "a.txt",
            format!("{awr}{HOSTILE}"),
            &["ZYX", "zyx", "1269760792"],
            &["11.2.0.4.0", "Linux x86 64-bit", "24"],
        ),
        (
            "p.txt",
            plan.to_string(),
            &["customers", "payroll", "orders", "filter", "deals"],
            &["cost=0.42..16.47", "Index Scan using", "Index Cond:", "Execution Time: 0.060 ms"],
        ),
        ("c.toml", claim.to_string(), &["Acme", "acme", "Alice"], &["4.33 secs", "ratio", "2005-04"]),
    ];
    for (name, text, gone, kept) in cases {
        let copy = copied(&here, name, &text);
        for secret in gone.iter().chain(&SECRETS) {
            assert!(!copy.contains(secret), "{name}: {secret}: {copy}");
        }
        for kept in kept {
            assert!(copy.contains(kept), "{name}: {kept}: {copy}");
        }
    }
    fs::write(here.join("x.txt"), HOSTILE).expect("a file");
    let refused = plumb(&here, ["share", "x.txt", "--output", "copy"]);
    assert_ne!(refused.code, Some(0), "nothing is understood");
    assert!(!here.join("copy").exists(), "nothing stays of a copy that failed");
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
