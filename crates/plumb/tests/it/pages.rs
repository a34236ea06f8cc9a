//! Every command that README.md and the pages of docs show, with little to do.
//!
//! A command is found where it is alone in an indented or fenced block, or in a cell of a table of
//! README.md. The `console` blocks of docs/tour.md are run by `tour`. Options stay as printed;
//! words in capitals become names of this test, and amounts become small. A study that cannot be
//! made short, or whose programs are missing, must at least be in `plumb list studies`.

use crate::program::{command, fine, names, plumb};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Small amounts, used if the command has the option or the workload takes it.
const AMOUNTS: [(&str, &str, &[&str]); 6] = [
    ("--rows", "2K", &["large-sort", "redo", "ctas", "scan", "producer"]),
    ("--size", "1M", &["record-sort"]),
    ("--scale", "600", &["slob"]),
    ("--schemas", "2", &["slob"]),
    ("--run-time", "100ms", &["slob"]),
    ("--sessions", "4", &["slob"]),
];

/// A made-up report in the shape of AWR.
const AWR: &str = include_str!("../../../foreign/tests/it/fixtures/awr_11204.txt");
/// A made-up plan in the shape of DBMS_XPLAN.
const PLAN: &str = include_str!("../../../foreign/src/format/plan/fixtures/upgrade_old.txt");
const CLAIM: &str =
    "statement = \"x\"\n[source]\ntitle = \"t\"\nauthor = \"a\"\ndate = \"2026\"\nplace = \"p\"\n";

/// Studies of few arms whose work follows from `--rows`.
const SCALED: [&str; 4] = ["large-sort", "redo-sync-method", "archiving", "block-size"];

fn pages() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let pages = |folder: &'static str| {
        let found = names(&root.join(folder)).into_iter().filter(|name| name.ends_with(".md"));
        found.map(move |name| format!("{folder}/{name}"))
    };
    let docs = pages("docs").chain(pages("docs/measured"));
    let read = |name: String| {
        let text = fs::read_to_string(root.join(&name)).expect("a page");
        (name, text)
    };
    std::iter::once("README.md".to_string()).chain(docs).map(read).collect()
}

/// Returns the commands of a page, without the remarks after them.
fn commands(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    let (mut fenced, mut lines) = (false, page.lines());
    while let Some(line) = lines.next() {
        if line == "```console" {
            lines.by_ref().find(|line| *line == "```");
            continue;
        }
        if line.starts_with("| ") && line.contains("? | `plumb ") {
            found.extend(line.split('`').nth(1).map(str::to_string));
            continue;
        }
        fenced ^= line.starts_with("```");
        if !(fenced || line.starts_with("    ")) {
            continue;
        }
        let mut line = line.trim().trim_start_matches("$ ").to_string();
        while let Some(begun) = line.strip_suffix('\\') {
            line = format!("{begun}{}", lines.next().unwrap_or_default().trim());
        }
        // Tables of figures and charts have the program's name in them.
        if line.contains('█') || !(line.starts_with("plumb ") || line.contains("| plumb ")) {
            continue;
        }
        // A line may have several commands, and one may read the output of another.
        let parts = line.split("  ").map(str::trim);
        let parts = parts.filter(|part| part.starts_with("plumb ") || part.contains("| plumb "));
        found.extend(parts.map(str::to_string));
    }
    found
}

/// Returns a command with all optional parts in brackets, and the first of several choices.
fn with_options(line: &str) -> String {
    let mut text = String::new();
    for (number, part) in line.split(['[', ']']).enumerate() {
        // Within brackets a bar is a choice.
        let chosen = part.split('|').next().unwrap_or_default().trim_end();
        text.push_str(if number % 2 == 0 { part } else { chosen });
    }
    text
}

/// Splits a command into words as a shell does, as far as the pages need it.
pub fn words(line: &str) -> Vec<String> {
    let (mut words, mut quoted, mut word) = (Vec::new(), false, String::new());
    for letter in line.chars().chain([' ']) {
        match letter {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty())),
            letter => word.push(letter),
        }
    }
    words
}

/// Directory in which the commands of a page run: names for the words in capitals.
struct Place {
    directory: tempfile::TempDir,
    on_disk: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        // In memory if possible, so that no device is measured next to each run.
        let memory = Path::new("/dev/shm");
        let directory = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let directory = directory.expect("a temporary directory");
        let here = directory.path();
        fs::write(here.join("sales.csv"), "day,city,amount\n31/12/2020,Bern,1.5\n01/01/2021,Rome,NA\n")
            .expect("a file");
        fs::write(here.join("sales.txt"), "31/12/2020,Bern\n").expect("a file");
        fs::write(here.join("lines"), "b,2\na,10\n").expect("a file");
        fs::write(here.join("records"), [b'r'; 300]).expect("a file");
        fs::write(here.join("big.txt"), "foo\n").expect("a file");
        fs::write(here.join("claim.toml"), CLAIM).expect("a file");
        fs::write(here.join("awr.txt"), AWR).expect("a file");
        fs::write(here.join("plan.txt"), PLAN).expect("a file");
        fs::write(here.join("report.txt"), "host db1.example.com\n").expect("a file");
        fs::write(here.join("trace.json"), crate::prune::trace()).expect("a file");
        fs::write(here.join("slob.conf"), "UPDATE_PCT=25\nRUN_TIME=1\n").expect("a file");
        ["archive", "second", "elsewhere"]
            .iter()
            .for_each(|name| fs::create_dir(here.join(name)).expect("a directory"));
        fine(here, ["run", "redo", "--rows", "20K", "--snapshot", "10ms", "--bundle", "run"]);
        let study = [
            "study",
            "redo",
            "--factor",
            "buffer=1K,4K",
            "--rows",
            "100",
            "--blocks",
            "1",
            "--bundle",
            "study",
        ];
        assert_eq!(plumb(here, study).code, Some(3), "one block proves nothing");
        let on_disk = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary directory");
        Place { directory, on_disk }
    }

    fn here(&self) -> &Path {
        self.directory.path()
    }

    /// Returns the replacement of a name in capitals, which depends on the command.
    fn named(&self, verb: &str, number: usize, word: &str) -> String {
        let fresh = |name: &str| format!("{name}-{number}");
        match (verb, word) {
            ("export", "FILE.csv") | ("report", "FILE.svg") | ("compare", "FILE") => fresh("file"),
            (_, "FILE.csv" | "FILE.csv.xz") => "sales.csv".to_string(),
            (_, "FILE.txt") => "sales.txt".to_string(),
            ("backup", "DIR") => fresh("backup"),
            ("index", "DIR") => fresh("bundle"),
            ("calibrate" | "clean", "DIR") => ".".to_string(),
            ("import", "FILE...") | ("diagnose", "FILE") => "awr.txt".to_string(),
            ("plans", "BEFORE" | "AFTER") => "plan.txt".to_string(),
            ("prune" | "compare", "TRACE") | ("compare", "NEW") => "trace.json".to_string(),
            ("prune", "NEW") => fresh("new"),
            (_, "CLAIM.toml") => "claim.toml".to_string(),
            (_, "INDEX") => "T_CITY_AMOUNT_DESC_IX".to_string(),
            (_, "A,B") => "day,city".to_string(),
            (_, "STUDY:ARM") => "study:1".to_string(),
            ("verify" | "report", "BUNDLE") => "study".to_string(),
            (_, "BUNDLE" | "BUNDLE...") => "run".to_string(),
            (_, "BUNDLE:1-3" | "BUNDLE:3-5") => word.replace("BUNDLE", "run").replace("3-5", "2-3"),
            (_, "HASH") => fine(self.here(), ["verify", "study"])
                .trim()
                .rsplit(' ')
                .next()
                .unwrap_or_default()
                .to_string(),
            (_, "IN") => "lines".to_string(),
            (_, "OUT") => fresh("sorted"),
            (_, "COMMAND") => "true".to_string(),
            (_, "ANOTHER COMMAND") => "true again".to_string(),
            _ => word.to_string(),
        }
    }

    /// Runs a command of a page with little to do.
    fn run(&self, number: usize, line: &str) {
        let line = with_options(line);
        let piped = line.split_once("| plumb ").map(|(_, command)| format!("plumb {command}"));
        let mut words = words(piped.as_deref().unwrap_or(&line));
        words.remove(0);
        let verb = words[0].clone();
        words.iter_mut().skip(1).for_each(|word| *word = self.named(&verb, number, word));
        words.retain(|word| word != "...");
        if words.last().is_some_and(|word| word == "study:1") {
            *words.last_mut().expect("seen") = "study:2".to_string();
        }
        let here = self.here();
        let input = piped.map(|_| here.join("sales.csv"));
        match verb.as_str() {
            "run" => with_amounts(&mut words, 1),
            "calibrate" => {
                // There is no storage to measure in memory.
                let second = self.on_disk.path().join("second");
                fs::create_dir_all(&second).expect("a directory");
                let mut paths = [self.on_disk.path(), &second].into_iter();
                for at in 1..words.len() {
                    if words[at - 1] == "--path" {
                        words[at] = paths.next().expect("two paths at most").display().to_string();
                    } else if words[at - 1] == "--sustain" {
                        words[at] = "10s".to_string();
                    }
                }
                words.extend(["--file-size", "16M", "--duration", "1ms"].map(String::from));
            }
            "load" => drop(plumb(here, ["drop", "T"])),
            "index" => {
                drop(plumb(here, ["drop", "T"]));
                fine(here, ["load", "sales.csv", "--table", "T", "--null", "NA"]);
            }
            // A process of a page runs for as long as its user likes; this one ends.
            "snoop" => words = ["snoop", "--", "true"].map(String::from).to_vec(),
            "backup" => words[3] = ".".to_string(),
            "restore" => {
                words[1] =
                    names(here).into_iter().find(|name| name.starts_with("backup-")).expect("a backup");
                words[3] = "elsewhere".to_string();
            }
            "sort" if words.contains(&"--record".to_string()) => words[1] = "records".to_string(),
            "report" if words.contains(&"--begin".to_string()) => {
                (words[1], words[3], words[5]) = ("run".to_string(), "1".to_string(), "2".to_string());
            }
            // There is no journal of a killed study.
            "undo" => return,
            // There is no server at its address, and only a study of one keeps plans.
            "plans" if words.contains(&"--target".to_string()) || words[1].starts_with("BUNDLE:") => return,
            "study" | "compare-commands" => return self.study(words),
            _ => {}
        }
        let mut run = command(here);
        run.args(&words).stdin(
            input.map_or_else(Stdio::null, |path: PathBuf| fs::File::open(path).expect("a file").into()),
        );
        let ended = run.output().expect("it starts");
        let _ = fs::remove_dir_all(here.join("archive")).and_then(|()| fs::create_dir(here.join("archive")));
        let said = String::from_utf8_lossy(&ended.stderr);
        // On a busy machine a receipt of times may contradict its setting,
        // which makes a run INVALID.
        // A short calibration is IN DOUBT, or above its link.
        let is_doubted =
            matches!((verb.as_str(), ended.status.code()), ("run", Some(5)) | ("calibrate", Some(4 | 6)));
        // A shipped claim may be NOT PROVED or IMPOSSIBLE.
        let is_doubted = is_doubted || (verb == "audit" && matches!(ended.status.code(), Some(3 | 6)));
        assert!(is_doubted || ended.status.success(), "plumb {}: {said}", words.join(" "));
    }

    /// Runs a study for a block, if it can be short.
    fn study(&self, mut words: Vec<String>) {
        if words.contains(&"--resume".to_string()) {
            return;
        }
        let names: Vec<String> =
            words.iter().skip(1).filter(|word| !word.starts_with('|')).cloned().collect();
        let of_command = words[0] == "compare-commands" || words[1] == "--command";
        if words.iter().any(|word| word.starts_with("postgres://me@host")) {
            return;
        }
        if !of_command && words.iter().any(|word| word == "--factor") {
            with_amounts(&mut words, 1);
            words.extend(["--blocks", "1", "--bundle", "kept"].map(String::from));
            return self.stands(&words);
        }
        if !of_command && !SCALED.contains(&words[1].as_str()) && !words[1].ends_with(".toml") {
            let known = fine(self.here(), ["list", "studies"]);
            let named = names.iter().take_while(|name| !name.starts_with("--"));
            named.for_each(|name| assert!(known.contains(&format!("\n{name} ")), "plumb study {name}"));
            return;
        }
        // A study file is printed above the command.
        if words[1].ends_with(".toml") || of_command && !self.has_programs(&words) {
            return;
        }
        let amounts = ["--rows", "2K", "--blocks", "1", "--bundle", "kept"];
        for option in ["--rows", "--blocks"] {
            if let Some(place) = words.iter().position(|word| word == option) {
                words.drain(place..place + 2);
            }
        }
        words.extend(amounts.iter().skip(if of_command { 2 } else { 0 }).map(ToString::to_string));
        words.iter_mut().for_each(|word| *word = word.replace("count=100M", "count=1M"));
        self.stands(&words);
    }

    /// Runs a study to a verdict, whichever it is.
    fn stands(&self, words: &[String]) {
        let ended = plumb(self.here(), words);
        let stands = ended.code.is_some_and(|code| ![1, 2].contains(&code));
        assert!(stands, "plumb {}: {}", words.join(" "), ended.stderr);
        fs::remove_dir_all(self.here().join("kept")).expect("a bundle");
    }

    /// True if the programs of commands are there; COMMAND stands for any.
    fn has_programs(&self, words: &[String]) -> bool {
        let texts = words.iter().filter(|word| word.contains(' ') && !word.contains(":("));
        texts.filter_map(|text| text.split(' ').next()).all(|program| {
            Command::new("which")
                .arg(program)
                .stdout(Stdio::null())
                .status()
                .is_ok_and(|found| found.success())
        })
    }
}

/// Replaces the amounts of a run, or adds small ones.
pub fn with_amounts(words: &mut Vec<String>, workload: usize) {
    let of = words[workload].clone();
    for (option, value, _) in AMOUNTS.iter().filter(|(.., workloads)| workloads.contains(&of.as_str())) {
        match words.iter().position(|word| word == option) {
            Some(place) => words[place + 1] = (*value).to_string(),
            None => words.extend([(*option).to_string(), (*value).to_string()]),
        }
    }
}

#[test]
fn every_command_of_the_pages_runs() {
    let place = Place::new();
    let mut count = 0;
    for (_, text) in pages() {
        for line in commands(&text) {
            place.run(count, &line);
            count += 1;
        }
    }
    assert!(count > 50, "{count} commands were found");
}

#[test]
fn commands_are_found_with_what_is_optional_and_without_what_is_said_of_them() {
    let page = [
        "text",
        "",
        "    plumb run slob --rate 5     said of it",
        "    plumb study --command 'a b' \\",
        "      --factor x=1,2",
        "    plumb run redo ...    plumb report B",
        "plumb finds out",
        "```",
        "$ plumb check T",
        "```",
        "    cat F | plumb load -",
        "```console",
        "$ plumb man",
        "```",
        "| Which? | `plumb info B` |",
        "| `plumb x` | y |",
    ];
    let page = page.map(|line| format!("{line}\n")).concat();
    let found = commands(&page);
    assert_eq!(
        found,
        [
            "plumb run slob --rate 5",
            "plumb study --command 'a b' --factor x=1,2",
            "plumb run redo ...",
            "plumb report B",
            "plumb check T",
            "cat F | plumb load -",
            "plumb info B"
        ]
    );
    assert_eq!(
        with_options("plumb load F [--quote none] [--no-header | --names A,B]"),
        "plumb load F --quote none --no-header"
    );
    assert_eq!(words("a 'b c' d"), ["a", "b c", "d"]);
}
