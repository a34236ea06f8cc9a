//! Options that a use of a command would ignore: each is an error that names it.
//!
//! An option that is silently ignored lets a user believe in an experiment that was never made. So
//! every option of every command is in one of two tables: here with the uses that ignore it, or in
//! `USED` of the tests. Uses that only the work itself can detect (a table that has no report, a
//! command without `{path}`) are rejected there.

use super::WorkParameters;
use crate::failure::Failure;
use clap::ArgMatches;
use clap::parser::ValueSource;
use plumb_calibrate::{Mode, VolumeLayout};
use plumb_workload::{WORKLOADS, Workload};
use std::path::PathBuf;

/// Options of a command, with the uses that ignore them.
struct Rule {
    command: &'static str,
    options: Options,
    /// The reason for which they are ignored; none if they are used.
    idle: fn(&ArgMatches) -> Option<String>,
}

/// The options of a rule.
enum Options {
    Named(&'static [&'static str]),
    /// Parameters of workloads, as options of `plumb study`.
    Parameters,
}

impl Options {
    fn all(&self) -> Vec<&'static str> {
        match self {
            Options::Named(options) => options.to_vec(),
            Options::Parameters => WorkParameters::options().map(|(option, _)| option).collect(),
        }
    }
}

/// Options of the commands of a study.
const OF_COMMANDS: &[&str] = &[
    "take",
    "unit",
    "better",
    "setup",
    "cleanup",
    "prepare",
    "conclude",
    "verify",
    "exit_codes",
    "shell",
    "receipt",
];
const OF_ADVANCED: &[&str] =
    &["write", "order", "size_small", "size_large", "matrix", "num_small", "num_large"];

const RULES: &[Rule] = &[
    Rule {
        command: "study",
        options: Options::Named(OF_COMMANDS),
        idle: |study| StudyOf::of(study).only("--command", &[StudyOf::Command]),
    },
    Rule {
        command: "study",
        options: Options::Named(&["measure", "same"]),
        idle: |study| {
            StudyOf::of(study).only("--command or --factor", &[StudyOf::Command, StudyOf::Workload])
        },
    },
    Rule {
        command: "study",
        options: Options::Parameters,
        idle: |study| {
            StudyOf::of(study)
                .only("a workload with --factor, or a file", &[StudyOf::Workload, StudyOf::Written])
        },
    },
    Rule {
        command: "study",
        options: Options::Named(&["set"]),
        idle: |study| StudyOf::of(study).only("a workload with --factor", &[StudyOf::Workload]),
    },
    Rule {
        command: "study",
        options: Options::Named(&["factor"]),
        idle: |study| (StudyOf::of(study) == StudyOf::Resumed).then(|| StudyOf::Resumed.shown().to_string()),
    },
    Rule {
        command: "list",
        options: Options::Named(&["path"]),
        idle: |list| listed(list, &["tables", "bundles"]),
    },
    Rule {
        command: "list",
        options: Options::Named(&["health"]),
        idle: |list| {
            let what = list.get_raw("what")?.next()?.to_str()?.to_string();
            (what != "bundles").then(|| format!("{what} have none, only bundles"))
        },
    },
    Rule {
        command: "run",
        options: Options::Named(&["temp_path"]),
        idle: |run| placed(run, &["large-sort", "record-sort"], "sorts to it"),
    },
    Rule {
        command: "run",
        options: Options::Named(&["index_path"]),
        idle: |run| {
            placed(run, &["large-sort", "record-sort", "redo", "slob"], "makes an index, or a sorted file,")
        },
    },
    Rule { command: "calibrate", options: Options::Named(OF_ADVANCED), idle: not_advanced },
    Rule { command: "calibrate", options: Options::Named(&["test_name"]), idle: without_bundle },
    Rule { command: "calibrate", options: Options::Named(&["simulate"]), idle: of_one_path },
    Rule { command: "calibrate", options: Options::Named(&["stripe"]), idle: not_striped },
];

/// Refuses an option that the command would ignore. The error names the option and the reason.
pub fn require_use(command: &clap::Command, matches: &ArgMatches) -> Result<(), Failure> {
    let Some((name, matches)) = matches.subcommand() else { return Ok(()) };
    let given = |option: &&str| matches.value_source(option) == Some(ValueSource::CommandLine);
    for rule in RULES.iter().filter(|rule| rule.command == name) {
        let Some(option) = rule.options.all().into_iter().find(given) else { continue };
        let Some(why) = (rule.idle)(matches) else { continue };
        let subcommand = command.find_subcommand(name);
        let argument = subcommand.and_then(|it| it.get_arguments().find(|known| known.get_id() == option));
        let long = argument.and_then(clap::Arg::get_long).unwrap_or(option);
        return Err(Failure::usage(format!("--{long}: {why}; leave it out")));
    }
    Ok(())
}

/// Subject of a `plumb study` command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StudyOf {
    /// The study of a bundle.
    Resumed,
    Command,
    /// A workload, by values of its settings.
    Workload,
    /// A study that comes with the program, or a file.
    Written,
}

impl StudyOf {
    fn of(study: &ArgMatches) -> StudyOf {
        let given = |option| study.value_source(option) == Some(ValueSource::CommandLine);
        match (given("command"), given("study"), given("factor")) {
            (true, ..) => StudyOf::Command,
            (false, true, true) => StudyOf::Workload,
            (false, true, false) => StudyOf::Written,
            (false, false, _) => StudyOf::Resumed,
        }
    }

    fn shown(self) -> &'static str {
        match self {
            StudyOf::Resumed => "a study that is resumed has its own in its bundle",
            StudyOf::Command => "this is one of a command",
            StudyOf::Workload => "this is one of a workload",
            StudyOf::Written => "this one is a study file, or comes with the program",
        }
    }

    /// Returns why an option is ignored that only these studies use.
    fn only(self, what: &str, these: &[StudyOf]) -> Option<String> {
        (!these.contains(&self))
            .then(|| format!("it is an option of studies of {what}, and {}", self.shown()))
    }
}

fn listed(list: &ArgMatches, these: &[&str]) -> Option<String> {
    let what = list.get_raw("what")?.next()?.to_str()?.to_string();
    (!these.contains(&what.as_str())).then(|| format!("{what} come with the program, whatever the directory"))
}

fn placed(run: &ArgMatches, these: &[&str], does: &str) -> Option<String> {
    let workload = run.get_one::<&'static Workload>("workload")?.name;
    let all = WORKLOADS.iter().map(|workload| workload.name).filter(|name| these.contains(name));
    (!these.contains(&workload))
        .then(|| format!("{workload} puts nothing there: only {} {does}", all.collect::<Vec<_>>().join(", ")))
}

fn not_advanced(calibrate: &ArgMatches) -> Option<String> {
    let run = calibrate.get_one::<Mode>("run").filter(|run| **run != Mode::Advanced)?;
    Some(format!("it is an option of --run advanced, and this is --run {}", run.name()))
}

fn of_one_path(calibrate: &ArgMatches) -> Option<String> {
    let paths = calibrate.get_many::<PathBuf>("path").map_or(0, Iterator::count);
    (paths < 2).then(|| "one path is no volume; --path is given once for each path".to_string())
}

fn not_striped(calibrate: &ArgMatches) -> Option<String> {
    let striped = calibrate.get_one::<VolumeLayout>("simulate") == Some(&VolumeLayout::Raid0);
    (!striped).then(|| "only --simulate raid0 has stripes".to_string())
}

fn without_bundle(calibrate: &ArgMatches) -> Option<String> {
    let none = calibrate.get_flag("json") && calibrate.value_source("bundle").is_none();
    none.then(|| "with --json and without --bundle no CSV file is written".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::{Arguments, WorkArguments, parse};
    use clap::CommandFactory;

    /// Options that every use of their command reads, or rejects if they do not apply.
    const USED: &[(&str, &[&str])] = &[
        (
            "run",
            &[
                "workload",
                "conf",
                "path",
                "data_path",
                "log_path",
                "set",
                "quiet",
                "snapshot",
                "bundle",
                "json",
                "keep",
                "trace",
            ],
        ),
        (
            "study",
            &[
                "study",
                "command",
                "path",
                "blocks",
                "find",
                "budget",
                "seed",
                "bundle",
                "json",
                "format",
                "rows",
                "until",
                "resume",
                "server",
                "yes",
                "target",
                "check",
                "allow_reload",
                "allow_open",
            ],
        ),
        (
            "compare-commands",
            &[
                "commands",
                "path",
                "blocks",
                "find",
                "budget",
                "seed",
                "bundle",
                "json",
                "format",
                "measure",
                "same",
                "allow_open",
            ],
        ),
        ("verify", &["bundle", "expect", "json"]),
        ("audit", &["claims", "bundle", "html", "json"]),
        ("share", &["bundle", "output", "name", "json"]),
        (
            "calibrate",
            &[
                "path",
                "run",
                "max_latency",
                "seed",
                "file_size",
                "duration",
                "sustain",
                "max_rate",
                "link",
                "yes",
                "bundle",
                "json",
            ],
        ),
        (
            "sort",
            &[
                "input",
                "output",
                "lines",
                "record",
                "key",
                "delimiter",
                "numeric",
                "stable",
                "path",
                "set",
                "report",
                "bundle",
                "json",
            ],
        ),
        (
            "load",
            &[
                "file",
                "table",
                "path",
                "types",
                "no_header",
                "names",
                "header",
                "quote",
                "delimiter",
                "decimal",
                "date_format",
                "null",
                "block_size",
                "conventional",
                "commit_every",
                "sessions",
                "set",
                "json",
                "report",
                "bundle",
            ],
        ),
        ("index", &["table", "columns", "name", "unique", "path", "set", "report", "bundle", "json"]),
        ("plan-sort", &["rows", "key_bytes", "memory", "against", "set", "json"]),
        ("copy", &["table", "to", "columns", "condition", "load", "no_logging", "path", "set", "json"]),
        ("check", &["table", "path", "set", "json"]),
        (
            "export",
            &[
                "table",
                "order_by",
                "columns",
                "condition",
                "delimiter",
                "format",
                "limit",
                "output",
                "path",
                "json",
            ],
        ),
        ("head", &["table", "rows", "limit", "condition", "order_by", "columns", "path", "json"]),
        ("prune", &["trace", "drop", "map", "out", "json"]),
        ("count", &["table", "condition", "sum", "path", "json"]),
        ("drop", &["name", "path", "yes", "json"]),
        ("backup", &["to", "no_verify_checksums", "path", "json"]),
        ("restore", &["from", "path", "json"]),
        ("clean", &["path", "dry_run", "json"]),
        ("undo", &["journal", "target", "yes"]),
        ("import", &["files", "list", "strict", "json", "bundle"]),
        ("diagnose", &["of", "study", "json"]),
        ("plans", &["files", "target", "query", "set", "against", "write", "html", "json"]),
        ("info", &["bundles", "json"]),
        ("compare", &["first", "second", "html", "baseline", "save_baseline", "json"]),
        ("list", &["what", "having", "json"]),
        ("serve", &["directories", "listen"]),
        ("trace", &["bundle", "session", "summary", "paths", "json"]),
        (
            "snoop",
            &[
                "pid", "name", "until", "view", "summary", "quiet", "bundle", "json", "flow", "sample",
                "secret", "command",
            ],
        ),
        (
            "report",
            &[
                "bundle",
                "series",
                "figure",
                "html",
                "begin",
                "end",
                "picture",
                "best",
                "limit",
                "json",
                "format",
                "allow_open",
            ],
        ),
        ("study-run", &[]),
        ("scan-instance", &[]),
        ("completions", &["shell"]),
        ("man", &[]),
        ("complete", &["shell", "words"]),
    ];

    #[test]
    fn every_option_is_used_or_has_a_rule() {
        for command in Arguments::command().get_subcommands() {
            let (name, mut known) = (command.get_name(), Vec::<&str>::new());
            known.extend(USED.iter().filter(|(of, _)| *of == name).flat_map(|(_, options)| *options));
            known
                .extend(RULES.iter().filter(|rule| rule.command == name).flat_map(|rule| rule.options.all()));
            match name {
                // A workload refuses the parameters of others.
                "run" => known.extend(WorkArguments::parameters().iter().map(|parameter| parameter.name)),
                "compare-commands" => known.extend(OF_COMMANDS),
                _ => {}
            }
            known.sort_unstable();
            let mut own: Vec<&str> = command.get_arguments().map(|option| option.get_id().as_str()).collect();
            own.sort_unstable();
            assert_eq!(own, known, "plumb {name}: put each option into USED or a rule of RULES");
        }
    }

    /// The error of a command line, which must be one that says an option is ignored.
    fn refused(words: &[&str]) -> String {
        match parse(["plumb"].iter().chain(words)) {
            Ok(Ok(_)) => "it is taken".to_string(),
            Ok(Err(failure)) => failure.message,
            Err(error) => Failure::of_usage(&error).message,
        }
    }

    #[test]
    fn each_rule_refuses_each_of_its_options() {
        // Every value that some option of the list takes.
        let value = |option: &str| match option {
            "take" => "sum",
            "better" => "lower",
            "set" => "sort_area_size=1M",
            "matrix" => "row",
            "order" => "seq",
            "simulate" => "raid0",
            _ => "1",
        };
        let uses: [(&str, &[&str]); 8] = [
            ("study", &["large-sort"]),
            ("study", &["--resume", "bundle"]),
            ("study", &["slob", "--factor", "db_cache_size=16M,64M"]),
            ("list", &["settings"]),
            ("run", &["redo"]),
            ("run", &["ctas"]),
            ("calibrate", &["--run", "dss"]),
            ("calibrate", &["--json"]),
        ];
        for rule in RULES {
            for option in rule.options.all() {
                let clap = Arguments::command();
                let clap = clap.find_subcommand(rule.command).expect("a command").clone();
                let argument =
                    clap.get_arguments().find(|known| known.get_id() == option).expect("an option");
                let long = format!("--{}", argument.get_long().expect("it has a name"));
                let takes = argument.get_action().takes_values();
                let said =
                    uses.iter().filter(|(command, _)| *command == rule.command).map(|(command, more)| {
                        let more = more.iter().copied().chain([long.as_str()]);
                        let words: Vec<&str> =
                            [*command].into_iter().chain(more).chain(takes.then(|| value(option))).collect();
                        refused(&words)
                    });
                let said: Vec<String> = said.collect();
                assert!(said.iter().any(|said| said.starts_with(&format!("{long}: "))), "{long}: {said:?}");
            }
        }
    }

    #[test]
    fn what_has_a_part_is_taken_and_what_has_none_is_named() {
        let factor = ["--factor", "filesystemio_options=none,setall"];
        for line in [
            &[
                "study",
                "slob",
                factor[0],
                factor[1],
                "--set",
                "db_cache_size=1M",
                "--sessions",
                "8",
                "--measure",
                "db time",
            ][..],
            &["study", "redo", factor[0], factor[1], "--rows", "1K", "--data-seed", "7", "--same"],
            &["study", "--command", "true {x}", "--factor", "x=1,2", "--prepare", "true", "--shell"],
            &["study", "large-sort", "--rows", "1K", "--blocks", "2"],
            &["list", "tables", "--path", "."],
            &["run", "large-sort", "--temp-path", "."],
            &["calibrate", "--run", "advanced", "--write", "30"],
        ] {
            assert_eq!(refused(line), "it is taken", "{line:?}");
        }
        for (line, why) in [
            (
                &["study", "large-sort", "--measure", "cpu"][..],
                "--measure: it is an option of studies of --command or --factor, and this one is a study file, or comes with \
                 the program; leave it out",
            ),
            (
                &["study", "slob", factor[0], factor[1], "--prepare", "echo hi"],
                "--prepare: it is an option of studies of --command, and this is one of a workload; leave it out",
            ),
            (
                &["study", "--command", "true {x}", "--factor", "x=1,2", "--sessions", "8"],
                "--sessions: it is an option of studies of a workload with --factor, or a file, and this is one of a command; \
                 leave it out",
            ),
            (
                &["study", "--resume", "b", "--factor", "x=1,2"],
                "--factor: a study that is resumed has its own in its bundle; leave it out",
            ),
            (
                &["list", "settings", "--path", "."],
                "--path: settings come with the program, whatever the directory; leave it out",
            ),
            (
                &["run", "redo", "--temp-path", "."],
                "--temp-path: redo puts nothing there: only large-sort, record-sort sorts to it; leave it out",
            ),
        ] {
            assert_eq!(refused(line), why, "{line:?}");
        }
        for line in [
            &["trace", "b", "--summary", "--paths"][..],
            &["sort", "a", "b", "--json", "--report"],
            &["report", "b", "--begin", "1", "--end", "2", "--picture", "x.svg"],
            &["load", "f.csv", "--table", "t", "--json", "--report", "--conventional"],
            &["run", "redo", "--json", "--quiet"],
        ] {
            assert!(refused(line).contains("cannot be used with"), "{line:?}: {}", refused(line));
        }
    }
}
