//! Commands as targets: measures, receipts, restored files, ended processes and rejections.

use crate::program::{command, fine, names, plumb, refused, wait_until, wait_until_it_handles_signals};
use crate::study_file::{StudyFile, quoted};
use plumb_study::bundle::{MANIFEST, Manifest};
use serde_json::Value;
use std::fs;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};

/// A study of a command with two levels of one word.
fn write(directory: &Path, sections: &str, levels: [&str; 2], more: &str) {
    let [from, to] = levels.map(quoted);
    let top = format!("target = \"command\"\n{more}");
    StudyFile { top: &top, blocks: 1, sections, levels: [&from, &to], ..StudyFile::default() }
        .write(directory);
}

/// Runs the written study; returns the records of its runs.
fn runs(directory: &Path) -> Vec<Value> {
    let ended = plumb(directory, ["study", "small.toml", "--seed", "1", "--bundle", "b", "--json"]);
    assert!(ended.stdout.starts_with('{'), "{}", ended.stderr);
    let mut records: Vec<Value> = fs::read_dir(directory.join("b/runs"))
        .expect("runs")
        .flatten()
        .filter(|entry| entry.path().extension().is_some_and(|end| end == "json"))
        .map(|entry| serde_json::from_str(&fs::read_to_string(entry.path()).expect("read")).expect("JSON"))
        .collect();
    records.sort_by_key(|record| record["number"].as_u64());
    records
}

fn level(run: &Value) -> &str {
    run["arm"].as_str().expect("a name").strip_prefix("x=").expect("of the factor")
}

fn measure(run: &Value, name: &str) -> f64 {
    let rows = run["record"]["measures"].as_array().expect("measures");
    rows.iter().find(|row| row["name"] == name).expect(name)["value"].as_f64().expect("a figure")
}

fn reasons(runs: &[Value]) -> Vec<&str> {
    runs.iter().filter_map(|run| run["ended"]["reason"].as_str()).collect()
}

#[test]
fn words_reach_arguments_environment_and_files_and_figures_come_back() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    fs::write(directory.path().join("x.conf"), "as it was").expect("a file");
    let sections = r#"
[command]
run = "cat x.conf /proc/self/environ"
shell = true
verify = "test -e x.conf"
files = ["small.toml"]
secrets = ["TOKEN"]
environment = { LEVEL = "<{x}>", TOKEN = "much secret" }
[file."x.conf"]
text = "tps = {x}00 {\"rate\": {{x}}}\n"
[measure.tps]
regex = "tps = ([0-9]+)"
better = "higher"
[[receipt]]
kind = "output"
regex = "LEVEL=<7>"
when = { x = "7" }
[[receipt]]
kind = "executable"
path = "*/cat"
when = { x = "7" }
"#;
    write(directory.path(), sections, ["5", "7"], "statistic = \"tps\"");
    let runs = runs(directory.path());
    assert_eq!(reasons(&runs), Vec::<&str>::new());
    for run in &runs {
        let expected = if level(run) == "7" { 700.0 } else { 500.0 };
        assert!((measure(run, "tps") - expected).abs() < 1e-9);
        assert!(measure(run, "cpu") >= 0.0);
        let command = &run["record"]["command"];
        assert_eq!(command["arguments"][0], "/bin/sh");
        assert!(command["output"].as_str().expect("text").contains("TOKEN=***"), "{command}");
        assert!(!run.to_string().contains("much secret"));
        assert_eq!(run["record"]["checks"][0]["passed"], true);
        let receipts = run["record"]["receipts"].as_array().expect("receipts");
        let output = receipts.iter().find(|row| row["seen"] == "inside").expect("a declared one");
        assert_eq!(output["held"], "held", "{output}");
    }
    assert_eq!(fs::read_to_string(directory.path().join("x.conf")).expect("read"), "as it was");
}

#[test]
fn what_a_command_does_wrong_is_one_line_and_the_study_goes_on() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let cases = [
        (
            "run = \"sh -c 'exit {x}'\"",
            ["0", "3"],
            "the command ended with exit status 3, which --exit-codes 0,3 would accept: it printed nothing",
        ),
        ("run = \"sh -c 'sleep {x} & true'\"", ["0", "1000"], "sh left 1 process running"),
        (
            "run = \"sleep {x}\"\ntimeout = \"300ms\"",
            ["0", "1000"],
            "sleep did not end within timeout = 300 ms",
        ),
        ("run = \"/nowhere/{x}\"", ["a", "b"], "cannot start /nowhere/"),
        (
            "run = \"plumb-has-none-{x}\"",
            ["a", "b"],
            "cannot start plumb-has-none-a: there is none in PATH; install it, or give its path",
        ),
        (
            "run = \"true {x}\"\nprepare = \"sh -c 'echo no {x} >&2; exit 1'\"",
            ["1", "2"],
            "prepare ended with exit status 1 (runs/0001.stderr): no ",
        ),
    ];
    for (sections, levels, expected) in cases {
        write(directory.path(), &format!("[command]\n{sections}"), levels, "");
        let runs = runs(directory.path());
        assert!(!runs.is_empty());
        assert!(
            reasons(&runs).iter().any(|reason| reason.contains(expected)),
            "{expected}: {:?}",
            reasons(&runs)
        );
        fs::remove_dir_all(directory.path().join("b")).expect("removed");
    }
    let figure = "[command]\nrun = \"echo {x}\"\n[measure.tps]\nregex = \"tps = (.*)\"\nbetter = \"higher\"";
    write(directory.path(), figure, ["1", "2"], "statistic = \"tps\"");
    let missing = runs(directory.path());
    let expected = "measure tps: nothing matches \"tps = (.*)\"; it printed last (runs/000";
    assert!(reasons(&missing).iter().all(|reason| reason.contains(expected)), "{:?}", reasons(&missing));
}

#[test]
fn what_a_failed_command_said_is_kept_and_its_last_line_shown_once() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let sections = "[command]\nrun = \"sh -c 'echo first >&2; echo the $TOKEN last >&2; exit {x}'\"\nsecrets = [\"TOKEN\"]\n\
                    environment = { TOKEN = \"much secret\" }";
    write(directory.path(), sections, ["0", "3"], "");
    let runs = runs(directory.path());
    let failed = runs.iter().find(|run| level(run) == "3").expect("it ran");
    let file = format!("runs/{:04}.stderr", failed["number"].as_u64().expect("a number"));
    let reason = failed["ended"]["reason"].as_str().expect("a sentence");
    let expected = "the command ended with exit status 3, which --exit-codes 0,3 would accept";
    assert_eq!(reason, format!("{expected} ({file}): the *** last"));
    let kept = fs::read_to_string(directory.path().join("b").join(&file)).expect("kept");
    assert_eq!(kept, "first\nthe *** last\n");
    fine(directory.path(), ["verify", "b"]);
    let report = fs::read_to_string(directory.path().join("b/report.txt")).expect("a report");
    assert!(
        report.contains("Stopping: after 1 blocks") && report.contains("Not used: block 1: run "),
        "{report}"
    );
}

#[test]
fn two_arms_are_compared_by_what_their_study_measures_and_with_its_p() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    // The digits of the run's number make the figures differ without chance, far less than the
    // effect.
    let runs = directory.path().join("runs").display().to_string();
    let sections = format!(
        "[command]\nrun = \"sh -c 'echo >> {runs}; n=$(wc -l < {runs}); echo tps = {{x}}$((10 + n * 37 % 90))'\"\n\
         [measure.tps]\nregex = \"tps = ([0-9]+)\"\nbetter = \"higher\""
    );
    write(directory.path(), &sections, ["5", "7"], "statistic = \"tps\"");
    plumb(directory.path(), ["study", "small.toml", "--seed", "1", "--blocks", "7", "--bundle", "b"]);
    let json = |text: &str| -> Value { serde_json::from_str(text).expect("JSON") };
    let analysis = json(&fs::read_to_string(directory.path().join("b/analysis.json")).expect("an analysis"));
    let claim = &analysis["claims"][0];
    assert_eq!(claim["verdict"]["label"], "PROVED faster", "{claim}");
    let compared = json(&plumb(directory.path(), ["compare", "b:1", "b:2", "--json"]).stdout);
    let judged = &compared["judged"][0];
    assert_eq!((&judged["measure"]["name"], &judged["claim"]), (&json("\"tps\""), &json("\"x\"")));
    assert_eq!(judged["verdict"], claim["verdict"]);
    let rows = compared["differences"].as_array().expect("rows");
    let row = |name: &str| rows.iter().find(|row| row["name"] == name).expect(name);
    assert_eq!((&row("tps")["p"], &row("tps")["outcome"]), (&claim["adjusted_p"], &json("\"higher\"")));
    assert!(rows.iter().all(|row| row["name"] != "DB Time"), "a command has no database time");
    let turned = plumb(directory.path(), ["compare", "b:2", "b:1"]).stdout;
    assert!(turned.contains("\ntps: PROVED slower by "), "{turned}");
    for word in ["DB time", "DB CPU", "Top Timed Events"] {
        assert!(!turned.contains(word), "{word}: {turned}");
    }
}

#[test]
fn what_is_done_once_for_all_arms_has_nothing_that_differs_between_them() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let once = |setup: &str| {
        format!("[command]\nsetup = \"{setup}\"\nrun = \"true\"\nenvironment = {{ LEVEL = \"<{{x}}>\" }}")
    };
    write(directory.path(), &once("sh -c 'test -z $LEVEL'"), ["1", "2"], "");
    assert_eq!(reasons(&runs(directory.path())), Vec::<&str>::new());
    fs::remove_dir_all(directory.path().join("b")).expect("removed");
    for (setup, expected) in [
        ("true {x}", "plumb: study small: setup: {x} differs between arms, and setup is run once for all"),
        (
            "sh -c 'echo one >&2; echo two >&2; exit 1'",
            "setup: the command ended with exit status 1: one | two",
        ),
    ] {
        write(directory.path(), &once(setup), ["1", "2"], "");
        let ended = plumb(directory.path(), ["study", "small.toml", "--bundle", "b"]);
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
        assert!(!directory.path().join("b").exists(), "nothing is left of a study that could not begin");
    }
}

#[test]
fn what_is_asked_for_on_the_command_line_is_refused_by_its_option() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let study = |more: &[&str]| {
        let begin = ["study", "--command", "echo {x}"];
        refused(directory.path(), begin.iter().chain(more).copied().collect::<Vec<&str>>()).1
    };
    let of_word = "--factor y=1,2: no template of the command has the word {y}; they have {x}";
    assert_eq!(study(&["--factor", "y=1,2"]), of_word);
    assert!(study(&["--factor", "x=1"]).starts_with("--factor x=1: one value is not varied"));
    let pattern = study(&["--factor", "x=1,2", "--measure", "regex:a", "--better", "lower"]);
    assert!(pattern.starts_with("--measure: [measure.figure] regex = \"a\": it has 0 groups"), "{pattern}");
}

#[test]
fn a_study_of_a_command_says_nothing_of_tables_and_what_too_few_blocks_prove() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let ended =
        plumb(directory.path(), ["compare-commands", "true", "sleep 0", "--blocks", "2", "--bundle", "b"]);
    assert!(ended.stderr.starts_with("2 blocks can prove nothing of 1 claim: "), "{}", ended.stderr);
    let report = fs::read_to_string(directory.path().join("b/report.txt")).expect("a report");
    for word in ["table", "data file", "database", "{command}", "rows"] {
        let line = report.lines().find(|line| line.contains(word));
        assert_eq!(line, None, "{word}");
    }
}

#[test]
fn what_is_printed_without_end_is_kept_in_part() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let sections = "[command]\nrun = \"head -c {x} /dev/zero\"";
    write(directory.path(), sections, ["10", "50000000"], "");
    let runs = runs(directory.path());
    let long = runs.iter().find(|run| level(run) == "50000000").expect("it ran");
    let output = long["record"]["command"]["output"].as_str().expect("text");
    assert!(output.len() < 600_000 && output.contains("[47.2 MB left out]"), "{}", output.len());
}

#[test]
fn arms_that_are_one_treatment_are_refused_or_said_to_be_one() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (code, error) = refused(directory.path(), ["compare-commands", "true", "true"]);
    assert_eq!(code, 2);
    assert!(
        error.contains("levels true and true (2) of the factor command set the same; give one another value, or give --same"),
        "{error}"
    );
    let same = ["compare-commands", "true", "true", "--same", "--blocks", "1", "--bundle", "b"];
    let ended = plumb(directory.path(), same);
    assert!(ended.stdout.contains("1 claim"), "{}", ended.stderr);
}

#[test]
fn a_study_that_cannot_be_is_refused_with_its_line() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let refused_with = |sections: &str| {
        write(directory.path(), sections, ["1", "2"], "");
        refused(directory.path(), ["study", "small.toml"]).1
    };
    let cases = [
        (
            "[command]\nrun = \"true {y}\"",
            "a level that is a value needs the setting it is a value of: setting = \"...\"; the words of its templates are {y}",
        ),
        (
            "[command]\nrun = \"awk {x} {print}\"",
            "the word {print} of run is set by no factor and not under [settings], which set {x}",
        ),
        ("[command]\nrun = \"true {x} 'open\"", "a quotation is not closed"),
        ("[command]\nrun = \"true {x}\"\nexpects = \"other\"", "unknown field `expects`"),
        ("[command]\nrun = \"true {x}\"\ntimeout = \"soon\"", "timeout = \"soon\""),
        ("[command]\nrun = \"true {x}\"\nrnu = \"1\"", "unknown field `rnu`"),
        (
            "[command]\nrun = \"true {x}\"\n[measure.a]\njson = \"/a\"",
            "better = \"lower\" or \"higher\" is missing",
        ),
        (
            "[command]\nrun = \"true {x}\"\n[[receipt]]\nkind = \"threads\"\nat_least = 2\nwhen = { y = \"1\" }",
            "no template has the word {y}; they have {x}",
        ),
        (
            "[command]\nrun = \"true {x}\"\n[measure.a]\njson = \"/a\"\nbetter = \"lower\"",
            "[measure.a] is declared, and nothing is compared by it: say statistic = \"a\"",
        ),
        (
            "[command]\nrun = \"true {x}\"\n[[receipt]]\nkind = \"threads\"\nat_least = \"2\"\nwhen = { x = \"1\" }",
            "expected a number",
        ),
    ];
    for (sections, expected) in cases {
        let error = refused_with(sections);
        assert!(error.starts_with("small.toml:") && error.contains(expected), "{sections}: {error}");
    }
    write(directory.path(), "[command]\nrun = \"true {x}\"", ["1", "2"], "");
    let path = directory.path().join("small.toml");
    let text = fs::read_to_string(&path).expect("there").replace("blocks = 1", "blocks = \"6\"");
    fs::write(path, text).expect("written");
    let (_, error) = refused(directory.path(), ["study", "small.toml"]);
    assert_eq!(
        error,
        "small.toml:4: blocks = \"6\": expected a whole number from 1 to 1000, as in blocks = 9"
    );
}

#[test]
fn a_path_in_a_value_is_the_directory_that_was_named_wherever_the_value_stands() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let place = directory.path().join("a b");
    fs::create_dir_all(place.join("etc")).expect("made");
    fs::create_dir_all(place.join("usr")).expect("made");
    let named = |bundle: &str, more: &[&str]| {
        let begin =
            ["compare-commands", "ls -d {path}/etc", "ls -d {path}/usr", "--path", "a b", "--blocks", "1"];
        let asked: Vec<&str> = begin.iter().chain(more).copied().chain(["--bundle", bundle]).collect();
        let ended = plumb(directory.path(), asked);
        let run = directory.path().join(bundle).join("runs/0001.json");
        let run = fs::read_to_string(run).unwrap_or_else(|_| panic!("{}", ended.stderr));
        let run: Value = serde_json::from_str(&run).expect("JSON");
        assert_eq!(run["ended"]["reason"], Value::Null, "{run}");
        let report = fs::read_to_string(directory.path().join(bundle).join("report.txt")).expect("a report");
        assert!(report.contains("the block device under the path was waited for"), "{report}");
        run["record"]["command"]["arguments"].clone()
    };
    let ends = |argument: &Value, quote: &str| {
        let argument = argument.as_str().expect("text");
        let expected = format!("{}{quote}", place.canonicalize().expect("there").display());
        assert!(
            argument.contains(&format!("{expected}/etc")) || argument.contains(&format!("{expected}/usr"))
        );
    };
    let plain = named("plain", &[]);
    assert_eq!((plain.as_array().map(Vec::len), &plain[1]), (Some(3), &Value::from("-d")));
    ends(&plain[2], "");
    ends(&named("shell", &["--shell"])[2], "'");

    // Within a text for a shell, under [settings] and in a level that sets several words.
    let sections = r#"
[command]
run = "sh -c 'ls -d {path}/{x}' {how}"
drop = ["{path}/{x}/dropped"]
[settings]
how = "{path}/etc"
"#;
    write(directory.path(), sections, ["etc", "usr"], "");
    let ended =
        plumb(directory.path(), ["study", "small.toml", "--path", "a b", "--bundle", "file", "--json"]);
    assert!(ended.stdout.starts_with('{'), "{}", ended.stderr);
    let run = fs::read_to_string(directory.path().join("file/runs/0001.json")).expect("a run");
    let run: Value = serde_json::from_str(&run).expect("JSON");
    let arguments = &run["record"]["command"]["arguments"];
    ends(&arguments[2], "'");
    ends(&arguments[3], "");
}

#[test]
fn a_word_that_nothing_sets_is_refused_in_a_value_too() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (code, error) = refused(directory.path(), ["compare-commands", "rm -rf {dir}/x", "true"]);
    assert_eq!(
        (code, error.as_str()),
        (
            2,
            "COMMAND: arm command=rm -rf {dir}/x: run: the word {dir} is not set: it is in a value of {command}, where only {path} is filled \
             in; braces that are text are doubled: {{dir}}"
        )
    );
}

#[test]
fn words_for_a_shell_are_refused_in_every_step_and_in_values() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for option in ["--setup", "--cleanup", "--prepare", "--conclude", "--verify"] {
        let (code, error) =
            refused(directory.path(), ["compare-commands", "true", "sleep 0", option, "rm -f build/*.o"]);
        let expected = format!(
            "{option}: {}: build/*.o is for a shell, and \"rm -f build/*.o\" is started ",
            &option[2..]
        );
        assert!(code == 2 && error.starts_with(&expected), "{error}");
    }
    let (_, error) = refused(directory.path(), ["compare-commands", "true && sleep 1", "sleep 0.05"]);
    assert_eq!(
        error,
        "COMMAND: run: && is for a shell, and \"true && sleep 1\" is started without one: say --shell (shell = true \
         in a study file), or put it in single quotes if it is text"
    );
    write(directory.path(), "[command]\nrun = \"sort {x} > out\"", ["1", "2"], "");
    let (_, error) = refused(directory.path(), ["study", "small.toml"]);
    assert!(error.starts_with("small.toml:9: run: > is for a shell"), "{error}");
    let shell =
        ["compare-commands", "true && true", "true; true", "--shell", "--blocks", "1", "--bundle", "b"];
    assert!(plumb(directory.path(), shell).stdout.contains("1 claim"));
}

#[test]
fn a_command_may_end_with_the_codes_that_are_accepted_and_no_other() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let ask = |more: &[&str], bundle: &str| {
        let begin = ["compare-commands", "sh -c 'exit 1'", "sh -c 'exit  1'", "--same", "--blocks", "1"];
        let asked: Vec<&str> = begin.iter().chain(more).copied().chain(["--bundle", bundle]).collect();
        plumb(directory.path(), asked);
        let run = fs::read_to_string(directory.path().join(bundle).join("runs/0001.json")).expect("a run");
        serde_json::from_str::<Value>(&run).expect("JSON")["ended"]["reason"].clone()
    };
    assert_eq!(ask(&["--exit-codes", "0,1"], "accepted"), Value::Null);
    let refused = |reason: &Value, codes: &str| {
        let reason = reason.as_str().expect("a reason");
        let expected =
            format!("the command ended with exit status 1, which --exit-codes {codes} would accept");
        assert!(reason.starts_with(&expected), "{reason}");
    };
    refused(&ask(&[], "default"), "0,1");
    refused(&ask(&["--exit-codes", "0,2"], "others"), "0,2,1");
}

#[test]
fn figures_of_several_documents_and_of_other_units_are_asked_about() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let ask = |more: &[&str], bundle: &str| {
        let begin = ["compare-commands", "--blocks", "2", "--better", "higher", "--bundle", bundle];
        plumb(directory.path(), begin.iter().chain(more).copied().collect::<Vec<&str>>())
    };
    let two = ["echo '{\"a\":10} {\"a\":500}'", "echo '{\"a\":10} {\"a\":900}'", "--measure", "json:/a"];
    ask(&two, "two");
    let run = fs::read_to_string(directory.path().join("two/runs/0001.json")).expect("a run");
    assert!(run.contains(r#"2 JSON documents have /a; take = \"last\" or \"sum\" (--take)"#), "{run}");
    let taken: Vec<&str> = two.iter().copied().chain(["--take", "last"]).collect();
    ask(&taken, "last");
    let run = fs::read_to_string(directory.path().join("last/runs/0001.json")).expect("a run");
    let run: Value = serde_json::from_str(&run).expect("JSON");
    assert!([500.0, 900.0].contains(&measure(&run, "a")), "{run}");

    let speeds = ["echo '985 MB/s'", "echo '1.1 GB/s'"];
    let bare = ask(&[speeds[0], speeds[1], "--measure", "regex:([0-9.]+) [kMG]B/s"], "bare").stdout;
    assert!(bare.contains("Figures of figure lie about a thousandfold apart"), "{bare}");
    let whole = ask(&[speeds[0], speeds[1], "--measure", "regex:([0-9.]+ [kMG]B/s)"], "whole").stdout;
    assert!(!whole.contains("thousandfold"), "{whole}");
    let (code, error) = refused(
        directory.path(),
        ["compare-commands", "true", "sleep 0", "--take", "sum", "--measure", "cpu"],
    );
    assert!(
        code == 2 && error.starts_with("--take sum: it belongs to a figure of --measure regex:PATTERN"),
        "{error}"
    );
}

/// Returns the processes with this text among their arguments, without zombies.
fn living(text: &str) -> usize {
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    processes
        .filter(|entry| {
            fs::read(entry.path().join("cmdline"))
                .is_ok_and(|line| String::from_utf8_lossy(&line).contains(text))
        })
        .count()
}

#[test]
fn a_study_that_is_killed_leaves_nothing_running_and_its_files_are_put_back() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    fs::write(directory.path().join("x.conf"), "as it was").expect("a file");
    // No other process sleeps for this number of seconds.
    let seconds = format!("77{}", std::process::id());
    let sections = format!(
        "[command]\nrun = \"sh -c 'setsid sleep {seconds} & sleep {seconds}; echo {{x}}'\"\n[file.\"x.conf\"]\ntext = \"changed\""
    );
    write(directory.path(), &sections, ["1", "2"], "");
    let study = || -> Child {
        command(directory.path())
            .args(["study", "small.toml", "--bundle", "b"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts")
    };
    let mut child = study();
    wait_until("it runs", || living(&seconds) >= 3);
    assert_eq!(fs::read_to_string(directory.path().join("x.conf")).expect("read"), "changed");
    child.kill().expect("killed");
    child.wait().expect("ended");
    wait_until("nothing of it runs", || living(&seconds) == 0);
    let text = || fs::read_to_string(directory.path().join("x.conf"));
    wait_until("the file is put back", || text().is_ok_and(|text| text == "as it was"));
    assert!(!directory.path().join("x.conf.plumb-original").exists());

    // Ctrl-C reaches the whole group of the terminal.
    fs::remove_dir_all(directory.path().join("b")).expect("removed");
    let mut child = command(directory.path())
        .args(["study", "small.toml", "--bundle", "b"])
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    wait_until("it runs", || living(&seconds) >= 3);
    let group = format!("-{}", child.id());
    let killed = std::process::Command::new("kill").args(["-INT", "--", &group]).status();
    assert!(killed.expect("kill is there").success());
    child.wait().expect("ended");
    assert_eq!(living(&seconds), 0);
    assert_eq!(fs::read_to_string(directory.path().join("x.conf")).expect("read"), "as it was");
}

/// Makes an interrupted study: its bundle `b` has a run and no end.
fn killed_after_a_run(directory: &Path, sections: &str) {
    write(directory, sections, ["1", "2"], "");
    let begin = ["study", "small.toml", "--bundle", "b", "--seed", "1", "--blocks", "6"];
    let mut child = command(directory)
        .args(begin)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    wait_until("a run", || directory.join("b/runs/0002.json").exists());
    child.kill().expect("kill -9");
    child.wait().expect("a child");
}

#[test]
fn a_resume_that_is_refused_runs_no_command_and_removes_nothing() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    let sections = r#"
[command]
setup = "touch set-up"
run = "sh -c 'sleep 0.0{x}'"
cleanup = "touch cleaned"
"#;
    killed_after_a_run(here, sections);
    fs::remove_file(here.join("set-up")).expect("it ran");
    fs::write(here.join("b/runs/0099.unfinished"), "{").expect("a file");
    fs::write(here.join("b/notes.txt"), "the user's").expect("a file");
    // The bundle of another machine.
    let environment = fs::read_to_string(here.join("b/environment.json")).expect("read");
    let mut parsed: Value = serde_json::from_str(&environment).expect("JSON");
    parsed["host"]["name"] = "elsewhere".into();
    let renew = |text: &str| {
        let mut manifest = Manifest::read(&here.join("b")).expect("a manifest");
        manifest.list("environment.json", text);
        fs::write(here.join("b/environment.json"), text).expect("written");
        fs::write(here.join("b").join(MANIFEST), manifest.to_text()).expect("written");
    };
    renew(&serde_json::to_string_pretty(&parsed).expect("JSON"));
    let ended = plumb(here, ["study", "--resume", "b"]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("cannot resume b: host was elsewhere"), "{}", ended.stderr);
    for (name, is_there) in
        [("set-up", false), ("cleaned", false), ("b/notes.txt", true), ("b/runs/0099.unfinished", true)]
    {
        assert_eq!(here.join(name).exists(), is_there, "{name}");
    }

    renew(&environment);
    let ended = plumb(here, ["study", "--resume", "b"]);
    // It may have been killed between a record and the manifest that lists it.
    assert!(ended.stderr.contains("b: removed "), "{}", ended.stderr);
    assert!(ended.stderr.contains("runs/0099.unfinished, left unfinished"), "{}", ended.stderr);
    assert!(ended.stderr.contains("b: notes.txt: no file of a study"), "{}", ended.stderr);
    for (name, is_there) in
        [("set-up", true), ("cleaned", true), ("b/notes.txt", true), ("b/runs/0099.unfinished", false)]
    {
        assert_eq!(here.join(name).exists(), is_there, "{name}");
    }
}

#[test]
fn a_second_resume_leaves_a_study_that_runs_alone() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    let sections = r#"
[command]
setup = "mkdir -p data"
run = "sh -c 'test -d data && sleep 0.1{x}'"
cleanup = "rm -rf data"
"#;
    write(here, sections, ["1", "2"], "");
    let begin = ["study", "small.toml", "--bundle", "b", "--seed", "1", "--blocks", "2"];
    let mut first =
        command(here).args(begin).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    wait_until("a run", || here.join("b/runs/0002.json").exists());
    let (code, line) = refused(here, ["study", "--resume", "b"]);
    assert_eq!(code, 1);
    assert!(line.contains(" is being written by another process"), "{line}");
    assert!(here.join("data").is_dir(), "its cleanup is the first one's to run");
    first.wait().expect("a child");
    let analysis = fs::read_to_string(here.join("b/analysis.json")).expect("it ended");
    let analysis: Value = serde_json::from_str(&analysis).expect("JSON");
    assert_eq!(analysis["design"]["blocks_used"], 2, "no run failed");
    assert!(!here.join("data").exists());
}

/// True if a file below a directory has this text.
fn holds(directory: &Path, text: &str) -> bool {
    fs::read_dir(directory).expect("a directory").flatten().any(|entry| match entry.path() {
        path if path.is_dir() => holds(&path, text),
        path => String::from_utf8_lossy(&fs::read(&path).expect("read")).contains(text),
    })
}

#[test]
fn the_value_of_a_secret_is_in_no_file_of_a_bundle_and_a_study_that_goes_on_needs_it_again() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    let sections = r#"
[command]
run = "sh -c 'test \"$TOKEN\" = s3cr3tvalue && sleep 0.0{x}'"
verify = "printenv TOKEN"
secrets = ["TOKEN"]
[command.environment]
TOKEN = "s3cr3tvalue"
"#;
    // A value that occurs elsewhere in the study would be stored there.
    write(here, sections, ["1", "2"], "");
    let line = plumb(here, ["study", "small.toml", "--bundle", "b"]).stderr;
    assert!(line.contains("the value of TOKEN (secrets) is also in another part of the study"), "{line}");
    let sections = sections.replace("= s3cr3tvalue &&", "!= x &&");
    write(here, &sections.replace("s3cr3tvalue", "s3cr3t{x}"), ["1", "2"], "");
    let (_, line) = refused(here, ["study", "small.toml", "--bundle", "b"]);
    assert!(line.contains("secrets: TOKEN has the word {x}"), "{line}");

    killed_after_a_run(here, &sections);
    assert!(!holds(&here.join("b"), "s3cr3tvalue"));
    let (_, line) = refused(here, ["study", "--resume", "b"]);
    assert!(line.contains("the value of TOKEN was in its study file, and no bundle keeps it"), "{line}");
    // By the file, and by the environment of the caller.
    fs::create_dir(here.join("other")).expect("a directory");
    let copied = std::process::Command::new("cp").args(["-r", "b", "other/b"]).current_dir(here).status();
    assert!(copied.expect("cp").success());
    let ended = plumb(here, ["study", "small.toml", "--resume", "b"]);
    assert!(ended.stdout.contains("6 of 6 blocks used"), "{}{}", ended.stdout, ended.stderr);
    let mut again = command(&here.join("other"));
    let again = again.args(["study", "--resume", "b"]).env("TOKEN", "s3cr3tvalue").output().expect("it runs");
    assert!(String::from_utf8_lossy(&again.stdout).contains("6 of 6 blocks used"), "{again:?}");
    for bundle in ["b", "other/b"] {
        fine(here, ["verify", bundle]);
        assert!(!holds(&here.join(bundle), "s3cr3tvalue"));
        assert!(holds(&here.join(bundle), "***"));
    }
}

#[test]
fn a_run_whose_processes_were_stopped_is_no_run_of_the_study() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    // The third run stops its parent and continues until that is woken, which has the effect of
    // stopping all processes.
    let sections = r#"
[command]
run = """sh -c 'echo >> count; if [ $(wc -l < count) = 3 ]; then kill -STOP $PPID; sleep 4; kill -CONT $PPID; fi; sleep 0.0{x}'"""
"#;
    write(here, sections, ["1", "2"], "");
    let runs = runs(here);
    let reasons = reasons(&runs);
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    assert!(
        reasons[0].starts_with("its processes were stopped, or the machine was suspended, for "),
        "{reasons:?}"
    );
}

#[test]
fn a_pilot_and_its_study_are_set_up_once() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    let study = [
        "compare-commands",
        "sleep 0.01",
        "sleep 0.02",
        "--find",
        "90%",
        "--setup",
        "sh -c 'echo begun >> log'",
        "--cleanup",
        "sh -c 'echo ended >> log'",
        "--bundle",
        "b",
        "--json",
    ];
    let ended = plumb(here, study);
    assert!(ended.stderr.contains("pilot: 16 runs of the reference"), "{}", ended.stderr);
    assert_eq!(fs::read_to_string(here.join("log")).expect("a log"), "begun\nended\n");
    let spent =
        ["compare-commands", "sleep 0.5", "sleep 0.4", "--find", "90%", "--budget", "2s", "--bundle", "c"];
    let (code, why) = refused(here, spent);
    assert_eq!(code, 2, "{why}");
    assert!(why.contains("--budget 2.00 s: the pilot of --find takes 17 runs, about "), "{why}");
}

/// A bundle of a version that did not reject shell words.
#[test]
fn a_bundle_whose_commands_have_words_for_a_shell_can_be_read() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    let begin = ["study", "--command", "echo {x}", "--factor", "x=1,2", "--prepare", "true b"];
    plumb(here, begin.iter().chain(&["--blocks", "1", "--bundle", "b"]));
    let study = here.join("b/study.toml");
    let text = fs::read_to_string(&study).expect("a study");
    let kept = text.replace("\"echo {x}\"", "\"echo {x} && a\"").replace("\"true b\"", "\"true > b\"");
    assert_ne!(kept, text);
    let mut manifest = Manifest::read(&here.join("b")).expect("a manifest");
    manifest.list("study.toml", &kept);
    fs::write(&study, &kept).expect("written");
    fs::write(here.join("b").join(MANIFEST), manifest.to_text()).expect("written");
    fine(here, ["report", "b"]);
    fs::write(here.join("new.toml"), kept).expect("a file");
    let (code, why) = refused(here, ["study", "new.toml"]);
    assert_eq!(code, 2);
    assert!(why.contains("is for a shell"), "{why}");
}

#[test]
fn a_receipt_of_the_command_line_holds_and_says_where_it_is_wrong() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    let asked = [
        "study",
        "--command",
        "echo mode {x}",
        "--factor",
        "x=on,off",
        "--blocks",
        "1",
        "--bundle",
        "b",
        "--json",
    ];
    plumb(here, asked.iter().chain(&["--receipt", "x=off:output:^mode off$"]));
    let records = names(&here.join("b/runs")).into_iter().map(|name| {
        let text = fs::read_to_string(here.join("b/runs").join(name)).expect("a record");
        serde_json::from_str::<Value>(&text).expect("JSON")
    });
    for run in records {
        let receipts = run["record"]["receipts"].as_array().expect("receipts").clone();
        let own = receipts.iter().find(|receipt| receipt["seen"] == "inside").expect("a declared one");
        assert_eq!(own["held"], "held", "{run}");
    }
    let (code, why) = refused(here, asked.iter().chain(&["--receipt", "x=off:colour:1"]));
    assert_eq!(code, 2);
    assert!(
        why.starts_with("--receipt x=off:colour:1: [[receipt]] there is no receipt \"colour\"; it takes "),
        "{why}"
    );
}

/// The terminal sends the signal to all; a service manager to the program alone.
#[test]
fn an_interrupted_command_ends_as_a_signal_does() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    for arguments in [
        &["run", "slob", "--run-time", "60"][..],
        &["study", "large-sort", "--rows", "20M"],
        &["study", "redo", "--factor", "buffer=1K,2K", "--rows", "50M"],
        &["compare-commands", "sleep 60", "sleep 61"],
        &["compare-commands", "true", "true a", "--setup", "sleep 60"],
        &["calibrate"],
    ] {
        let mut child = command(here);
        child.args(arguments).stdout(Stdio::null()).stderr(Stdio::piped());
        let child = child.spawn().expect("it starts");
        wait_until_it_handles_signals(&child);
        crate::bundles::signal("INT", child.id());
        let ended = crate::faults::end_of(child);
        assert_eq!(
            ended.status.code(),
            Some(130),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&ended.stderr)
        );
    }
}

/// A server works for a command in processes that are not the command's.
#[test]
fn a_command_that_asks_a_server_is_not_called_disturbed_by_it() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = server.local_addr().expect("an address").port();
    let run = |script: &str, bundle: &str| {
        let command = format!("bash -c '{script}'");
        let words = ["compare-commands", &command, &command, "--same", "--blocks", "1", "--bundle", bundle];
        assert_eq!(plumb(directory.path(), words).code, Some(3));
        let text = fs::read_to_string(directory.path().join(bundle).join("runs/0001.json")).expect("a run");
        let run: Value = serde_json::from_str(&text).expect("JSON");
        let facts = run["record"]["circumstances"].as_array().expect("what was read").clone();
        let knows = facts.iter().any(|found| found["fact"] == "processors");
        (run["record"]["command"]["sockets"].as_u64().expect("a count") > 0, knows)
    };
    assert_eq!(run("sleep 0.2", "alone"), (false, true));
    let asks = format!("exec 3<>/dev/tcp/127.0.0.1/{port}; sleep 0.2");
    assert_eq!(run(&asks, "served"), (true, false));
}

/// Direct I/O reaches the disk whatever the page cache does. The kernel counts all processes, so
/// the bytes of the command are a lower bound.
#[test]
fn a_command_has_the_disk_next_to_its_own_figure() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let has_disk = plumb_io::describe_device(directory.path()).is_ok_and(|device| device.block.is_some());
    let write_through = "dd if=/dev/zero of={path}/x.dat bs=1M count={x} oflag=direct";
    let sections = format!("[command]\nrun = \"{write_through}\"");
    write(directory.path(), &sections, ["16", "32"], "");
    let runs = runs(directory.path());
    if !has_disk || reasons(&runs).iter().any(|why| why.contains("dd")) {
        return;
    }
    for run in &runs {
        let (record, megabytes) = (&run["record"], level(run).parse::<u64>().expect("a number"));
        let written = |key: &str| {
            let devices = record["io_devices"].as_array().expect("devices").iter();
            devices.map(|device| device["writes"][key].as_u64().unwrap_or(0)).sum::<u64>()
        };
        assert!(written("bytes") >= megabytes << 20, "{megabytes} MB: {record}");
        assert!(written("requests") > 0);
        let samples = record["beside"]["samples"].as_array().expect("samples");
        assert!(!samples.is_empty() && samples.iter().all(|sample| sample["cpu"].is_object()));
    }
    let shown = fine(directory.path(), ["report", "b"]);
    assert!(shown.lines().any(|line| line.trim_start().starts_with("Disk ")), "{shown}");
    let report = fs::read_to_string(directory.path().join("b/report.txt")).expect("a report");
    assert!(report.contains("Devices During the Runs"), "{report}");
}
