//! docs/tour.md: each command of its `console` blocks runs, in order, in one directory and with
//! little to do, and prints the lines that the page shows.
//!
//! A line is compared word by word up to its first figure, verdict or name in capitals. `...`
//! stands for lines left out. A block that names a file, as in "```csv sales.csv", is written
//! first.

use crate::pages::{with_amounts, words};
use crate::program::{Ended, plumb};
use std::fs;
use std::path::Path;

/// A part of the page that the test carries out.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    File { name: String, text: String },
    Command { line: String, shown: Vec<String> },
}

/// The steps of a page, in its order.
fn steps(page: &str) -> Vec<Step> {
    let (mut steps, mut lines) = (Vec::new(), page.lines());
    while let Some(line) = lines.next() {
        let Some(block) = line.strip_prefix("```") else { continue };
        let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        match block.split_once(' ') {
            Some((_, name)) => {
                let text = body.iter().map(|line| format!("{line}\n")).collect();
                steps.push(Step::File { name: name.to_string(), text });
            }
            None if block == "console" => steps.extend(commands(&body)),
            None => {}
        }
    }
    steps
}

/// The commands of a block with the lines shown below each.
fn commands(body: &[&str]) -> Vec<Step> {
    let mut steps = Vec::new();
    for line in body {
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(line), _) => steps.push(Step::Command { line: line.to_string(), shown: Vec::new() }),
            (None, Some(Step::Command { shown, .. })) if *line != "..." => shown.push((*line).to_string()),
            _ => {}
        }
    }
    steps
}

/// True for a word that another run prints differently: a figure, a verdict, a name in capitals.
fn is_variable(word: &str) -> bool {
    let capitals = word.chars().filter(|letter| letter.is_uppercase()).count();
    let is_capitals = capitals > 1 && !word.chars().any(char::is_lowercase);
    is_capitals || word.contains(|letter: char| letter.is_ascii_digit()) || ["holds", "open"].contains(&word)
}

/// True if a printed line is the page's, except for figures and names.
fn is_shown(shown: &str, printed: &str) -> bool {
    if shown.split_whitespace().eq(printed.split_whitespace()) {
        return true;
    }
    let mut printed = printed.split_whitespace();
    let mut has_fixed = false;
    for word in shown.split_whitespace() {
        let found = printed.next();
        if is_variable(word) {
            if has_fixed {
                return true;
            }
            if !found.is_some_and(is_variable) {
                return false;
            }
        } else if found == Some(word) {
            has_fixed = true;
        } else {
            return false;
        }
    }
    // A line with only figures must be equal.
    has_fixed && printed.next().is_none()
}

/// True if a command printed a line of the page.
fn prints(ended: &Ended, shown: &str) -> bool {
    [&ended.stdout, &ended.stderr].iter().any(|out| out.lines().any(|line| is_shown(shown, line)))
}

/// The arguments of a command with little to do.
fn arguments(line: &str) -> Vec<String> {
    let mut words = words(line);
    assert_eq!(words.remove(0), "plumb", "{line}");
    let more: &[&str] = match (words[0].as_str(), words.get(1).map(String::as_str)) {
        ("run", _) => {
            with_amounts(&mut words, 1);
            &[]
        }
        ("study", Some("redo")) => {
            with_amounts(&mut words, 1);
            &["--blocks", "1"]
        }
        ("study", _) => &["--rows", "2K", "--blocks", "1"],
        ("compare-commands", _) => &["--blocks", "2"],
        ("calibrate", _) => &["--file-size", "16M", "--duration", "1ms"],
        _ => &[],
    };
    words.extend(more.iter().map(ToString::to_string));
    words
}

#[test]
fn the_tour_runs_and_prints_what_it_shows() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tour.md");
    let steps = steps(&fs::read_to_string(page).expect("the tour"));
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary directory");
    let mut count = 0;
    for step in steps {
        let (line, shown) = match step {
            Step::File { name, text } => {
                fs::write(place.path().join(name), text).expect("a file");
                continue;
            }
            Step::Command { line, shown } => (line, shown),
        };
        let mut words = arguments(&line);
        let mut ended = plumb(place.path(), &words);
        // On a busy machine no request may end in a short window, and its figure is missing.
        for window in ["20ms", "200ms"] {
            if words[0] != "calibrate" || shown.iter().all(|expected| prints(&ended, expected)) {
                break;
            }
            *words.last_mut().expect("a window") = window.to_string();
            fs::remove_dir_all(place.path().join("storage")).expect("the bundle of the page");
            ended = plumb(place.path(), &words);
        }
        // A short study proves nothing, and on a busy machine a receipt of times may not hold.
        assert!(ended.code.is_some_and(|code| ![1, 2].contains(&code)), "{line}: {}", ended.stderr);
        let mut printed = ended.stdout.lines();
        for expected in shown {
            let is_there = printed.any(|line| is_shown(&expected, line))
                || ended.stderr.lines().any(|line| is_shown(&expected, line));
            assert!(is_there, "{line} does not print {expected:?}:\n{}{}", ended.stdout, ended.stderr);
        }
        count += 1;
    }
    assert!(count > 20, "{count} commands");
}

#[test]
fn a_page_is_cut_into_files_and_commands_with_what_they_show() {
    let page = "text\n```csv a.csv\nx\n1\n```\n```toml\nno = 1\n```\n```console\n$ plumb list tables\n...\nT  2\n$ plumb man\n```\n";
    let command = |line: &str, shown: &[&str]| Step::Command {
        line: line.to_string(),
        shown: shown.iter().map(ToString::to_string).collect(),
    };
    let file = Step::File { name: "a.csv".to_string(), text: "x\n1\n".to_string() };
    assert_eq!(steps(page), [file, command("plumb list tables", &["T  2"]), command("plumb man", &[])]);
}

#[test]
fn lines_are_compared_up_to_what_may_vary() {
    assert!(is_shown("  Elapsed   0.32 s, on 2 CPUs", "  Elapsed  11.9 s, on 64 CPUs"));
    assert!(is_shown("redo on HOST: VALID (3 of 3)", "redo on vm: INVALID (2 of 3)"));
    assert!(is_shown("1 claim holds    PROVED faster", "1 claim open  NOT PROVED: floor"));
    assert!(is_shown("passed: all is right", "passed: all is right"));
    assert!(!is_shown("passed: all is right", "passed: all is right, or so"));
    assert!(!is_shown("  Elapsed   0.32 s", "  DB Time  0.32 s"));
    assert!(!is_shown("1 claim holds", "first claim holds"));
    assert!(!is_shown("1,Bern,2", "2,Rome,3"));
    assert!(is_shown("1,Bern,2", "1,Bern,2"));
}
