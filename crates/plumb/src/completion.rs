//! Completions of shells: a script for each shell, which asks the program for candidates.
//!
//! So the script completes names of studies, settings and bundles, too. Without candidates the
//! shell completes file names.
//!
//! Rejected: generated scripts (`clap_complete`), 2,000 lines for each shell, which know no names
//! and list hidden commands.

use crate::arguments::{Arguments, Shell};
use crate::targets::KINDS;
use clap::{Arg, Command, CommandFactory};
use plumb_engine::Setting;
use plumb_engine::settings::Domain;
use plumb_study::bundle::listing;
use plumb_study::definition::catalog;
use plumb_workload::{Decides, WORKLOADS};
use std::path::Path;

pub fn script(shell: Shell) -> &'static str {
    match shell {
        Shell::Bash => BASH,
        Shell::Zsh => ZSH,
        Shell::Fish => FISH,
    }
}

const BASH: &str = r#"# plumb completions bash > ~/.local/share/bash-completion/completions/plumb
_plumb() {
    local IFS=$'\n'
    COMPREPLY=($(plumb complete bash -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
    [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace 2>/dev/null
    return 0
}
complete -o default -F _plumb plumb
"#;

const ZSH: &str = r#"#compdef plumb
# plumb completions zsh > "${fpath[1]}/_plumb"
_plumb() {
    local -a found
    found=("${(@f)$(plumb complete zsh -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -z ${found[1]} ]]; then _files; return; fi
    if [[ ${found[1]} == *= ]]; then compadd -S '' -a found; else compadd -a found; fi
}
if [[ ${funcstack[1]} == _plumb ]]; then _plumb "$@"; else compdef _plumb plumb; fi
"#;

const FISH: &str = r#"# plumb completions fish > ~/.config/fish/completions/plumb.fish
complete -c plumb -a '(plumb complete fish -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
"#;

/// Returns candidates for the last word, a line each.
pub fn candidates(shell: Shell, words: &[String]) -> String {
    let words = if shell == Shell::Bash { joined(words) } else { words.to_vec() };
    let partial = words.last().cloned().unwrap_or_default();
    let mut found = at_the_end(&Arguments::command(), &words);
    found.retain(|candidate| candidate.starts_with(&partial));
    // Bash replaces only the text after the last =.
    let cut = if shell == Shell::Bash { partial.rfind('=').map_or(0, |place| place + 1) } else { 0 };
    found.iter().map(|candidate| format!("{}\n", &candidate[cut..])).collect()
}

/// Joins words as they were typed: bash splits `name=value` into three.
fn joined(words: &[String]) -> Vec<String> {
    let mut typed: Vec<String> = Vec::new();
    let mut goes_on = false;
    for word in words {
        match typed.last_mut() {
            Some(last) if goes_on || word == "=" => last.push_str(word),
            _ => typed.push(word.clone()),
        }
        goes_on = word == "=";
    }
    typed
}

fn at_the_end(program: &Command, words: &[String]) -> Vec<String> {
    let shown = || program.get_subcommands().filter(|command| !command.is_hide_set());
    let commands = || shown().map(|command| command.get_name().to_string()).collect();
    let Some((partial, before)) = words.split_last() else { return commands() };
    let Some((name, given)) = before.split_first() else { return commands() };
    if name == "help" {
        return if given.is_empty() { commands() } else { Vec::new() };
    }
    let Some(command) = shown().find(|command| command.get_name() == name) else { return Vec::new() };
    let long = |word: &str| {
        let word = word.strip_prefix("--")?;
        command.get_arguments().find(|option| option.get_long() == Some(word))
    };
    if let Some((option, _)) = partial.split_once('=').filter(|_| partial.starts_with("--")) {
        let values = long(option).map_or_else(Vec::new, |known| values(command, known, ""));
        return values.into_iter().map(|value| format!("{option}={value}")).collect();
    }
    let takes = |option: &&Arg| option.get_action().takes_values();
    if let Some(option) = given.last().and_then(|word| long(word)).filter(takes) {
        return values(command, option, partial);
    }
    if partial.starts_with('-') {
        return options(command, given);
    }
    let places = given.iter().enumerate().filter(|(place, word)| {
        let value = *place > 0 && long(&given[place - 1]).filter(takes).is_some();
        !(word.starts_with('-') || value)
    });
    let places = places.count();
    let mut own = command.get_positionals();
    let last = command.get_positionals().last();
    let argument =
        own.nth(places).or(last.filter(|last| last.get_num_args().is_some_and(|n| n.max_values() > 1)));
    argument.map_or_else(Vec::new, |argument| values(command, argument, partial))
}

/// Returns the options of a command, with the hidden ones of workloads if a factor is given.
fn options(command: &Command, given: &[String]) -> Vec<String> {
    let of_workloads = given.iter().any(|word| word == "--factor");
    let shown = command.get_arguments().filter(|option| of_workloads || !option.is_hide_set());
    let names = shown.filter_map(|option| Some(format!("--{}", option.get_long()?)));
    names.chain(["--help".to_string()]).collect()
}

fn values(command: &Command, argument: &Arg, partial: &str) -> Vec<String> {
    match (command.get_name(), argument.get_id().as_str()) {
        ("study", "study") => {
            let files = catalog::FILES.iter().filter_map(|(file, _)| file.strip_suffix(".toml"));
            let suites = catalog::SUITES.iter().map(|suite| suite.name);
            let workloads = WORKLOADS.iter().map(|workload| workload.name);
            let mut all: Vec<String> = files.chain(suites).chain(workloads).map(String::from).collect();
            all.sort_unstable();
            all.dedup();
            all
        }
        ("audit", "claims") => {
            let files = plumb_audit::catalog::FILES.iter();
            files.map(|(file, _)| plumb_audit::catalog::name_of(file).to_string()).collect()
        }
        // Settings of a server that is not asked.
        ("plans", "set") => Vec::new(),
        (_, "set") => assignments(partial, false),
        (_, "factor") => assignments(partial, true),
        ("verify" | "report" | "trace" | "audit" | "share", "bundle")
        | ("info", "bundles")
        | ("compare", "first" | "second")
        | ("study", "resume") => {
            let found = listing::find(Path::new("."), KINDS).unwrap_or_default();
            found.iter().filter_map(|bundle| Some(shown(bundle.path.as_deref()?))).collect()
        }
        _ => {
            let possible = argument.get_value_parser().possible_values().into_iter().flatten();
            let shown = possible.filter(|value| !value.is_hide_set());
            let own: Vec<String> = shown.map(|value| value.get_name().to_string()).collect();
            if own.is_empty() { words_of_parameter(argument.get_id().as_str()) } else { own }
        }
    }
}

fn shown(path: &Path) -> String {
    let text = path.display().to_string();
    text.strip_prefix("./").map_or(text.clone(), String::from)
}

/// Returns the words that a parameter of a workload takes.
fn words_of_parameter(name: &str) -> Vec<String> {
    let found = WORKLOADS.iter().find_map(|workload| workload.parameter(name));
    match found.map(|parameter| parameter.takes) {
        Some(Domain::Word(words)) => words.iter().map(ToString::to_string).collect(),
        _ => Vec::new(),
    }
}

/// Returns settings as `name=`, or the words that one takes; with parameters that a study may vary.
fn assignments(partial: &str, with_parameters: bool) -> Vec<String> {
    let settings = || Setting::ALL.iter().map(|setting| setting.row()).filter(|row| !row.is_hidden());
    if let Some((name, _)) = partial.split_once('=') {
        let words: Vec<String> = match settings().find(|row| row.name == name).map(|row| row.domain) {
            Some(Domain::Word(words)) => words.iter().map(ToString::to_string).collect(),
            _ if with_parameters => words_of_parameter(name),
            _ => Vec::new(),
        };
        return words.iter().map(|word| format!("{name}={word}")).collect();
    }
    let parameters = WORKLOADS.iter().flat_map(|workload| workload.parameters);
    let parameters = parameters.filter(|parameter| with_parameters && parameter.decides == Decides::Work);
    let mut names: Vec<String> = settings().map(|row| format!("{}=", row.name)).collect();
    names.extend(parameters.map(|parameter| format!("{}=", parameter.name)));
    names.sort_unstable();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(shell: Shell, line: &[&str]) -> Vec<String> {
        let words: Vec<String> = line.iter().map(ToString::to_string).collect();
        candidates(shell, &words).lines().map(String::from).collect()
    }

    #[test]
    fn commands_options_and_names_are_completed() {
        for (line, expected) in [
            (&["st"][..], &["study"][..]),
            (&["study", "redo"], &["redo", "redo-direct", "redo-sync-method"]),
            (&["study", "slob", "--factor", "log_file_i"], &["log_file_io="]),
            (&["study", "slob", "--factor", "hot-sch"], &["hot-schema-frequency="]),
            (&["run", "slob", "--set", "filesystemio_options=d"], &["filesystemio_options=directio"]),
            (&["run", "--json", "slob", "--hotspot", "u"], &["updates"]),
            (&["run", "re"], &["record-sort", "redo"]),
            (&["study", "slob", "--think-m"], &[]),
            (
                &["study", "slob", "--factor", "io_method=sync,auto", "--think-m"],
                &["--think-min", "--think-max"],
            ),
            (&["list", "b"], &["bundles"]),
            (&["audit", "log-"], &["log-direct-io", "log-rates"]),
            (&["calibrate", "--run=o"], &["--run=oltp"]),
            (&["help", "cal"], &["calibrate"]),
            (&["load", "f"], &[]),
        ] {
            assert_eq!(found(Shell::Zsh, line), expected, "{line:?}");
        }
        assert_eq!(found(Shell::Bash, &["run", "slob", "--set", "io_method", "=", "s"]), ["sync"]);
        assert_eq!(
            found(Shell::Bash, &["run", "slob", "--set", "filesystemio_options", "="])
                .first()
                .map(String::as_str),
            Some("none")
        );
    }

    #[test]
    fn no_hidden_command_is_offered() {
        let commands = found(Shell::Fish, &[""]);
        assert!(commands.contains(&"verify".to_string()));
        for hidden in ["study-run", "scan-instance", "complete"] {
            assert!(!commands.contains(&hidden.to_string()), "{hidden}");
        }
    }
}
