//! Foresight of a study: levels that a server lacks, and evidence that this machine can give.
//!
//! A server's program parses its options before it looks for a data directory. So it is asked with
//! a directory that does not exist: `invalid value` and `unrecognized` come first, and any other
//! complaint means that it takes the value. Nothing is made and nothing starts.
//!
//! A value out of range is no lack of the server: the study's file is wrong, and the run says so.

use crate::PostgresError;
use crate::account::Account;
use crate::installation::Installation;
use crate::receipts::{EvidenceSource, rule_of};
use crate::run::WORDS;
use crate::workload::parameter;
use plumb_host::readings::ProcessIo;
use plumb_study::vocabulary::{Assignment, Here, ReceiptEvidence, Seen, TakesEffect};
use rustix::process::getpid;
use std::path::Path;
use std::process::Command;

/// A directory that is not there.
const NOWHERE: &str = "/proc/self/no-data-directory";

/// Returns the servers that these settings name, each with its name; the installed one without any.
fn servers(study: &[&Assignment]) -> Vec<(Option<String>, Result<Installation, PostgresError>)> {
    let named = study.iter().filter(|set| set.name == WORDS[0]);
    let mut names: Vec<Option<String>> = named.map(|set| Some(set.value.clone())).collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() {
        names.push(None);
    }
    let found = |name: Option<String>| (name.clone(), Installation::find(name.as_deref()));
    names.into_iter().map(found).collect()
}

/// Returns the reason why a server of the study cannot run this level. Without any server there is
/// none, because opening the target says that.
pub(crate) fn impossible(level: &[Assignment], study: &[&Assignment]) -> Option<String> {
    if let Some(named) = level.iter().find(|set| set.name == WORDS[0]) {
        return Installation::find(Some(&named.value)).err().map(|error| error.to_string());
    }
    let mut installed = Vec::new();
    for (named, found) in servers(study) {
        match found {
            Ok(installation) => installed.push(installation),
            // A server of another level is that level's fault.
            Err(error) if named.is_some() && is_of_all(study) => return Some(error.to_string()),
            Err(_) => {}
        }
    }
    let asked = level.iter().filter(|set| is_of_server(&set.name));
    let mut pairs = asked.flat_map(|set| installed.iter().map(move |installation| (set, installation)));
    pairs.find_map(|(set, installation)| lacks(installation, set))
}

/// True if the study names one server for all its arms.
fn is_of_all(study: &[&Assignment]) -> bool {
    study.iter().filter(|set| set.name == WORDS[0]).count() == 1
}

/// True for a setting that `postgres` takes as an option.
fn is_of_server(name: &str) -> bool {
    let is_fixed = rule_of(name).is_some_and(|rule| rule.takes_effect <= TakesEffect::Offline);
    !is_fixed && !WORDS.contains(&name) && parameter(name).is_none()
}

/// Returns the reason why a server lacks a setting or its value.
fn lacks(installation: &Installation, set: &Assignment) -> Option<String> {
    if let Some(rule) = rule_of(&set.name).filter(|rule| installation.major < rule.since) {
        let (setting, since, found) = (set.name.clone(), rule.since, installation.major);
        let directory = installation.directory.clone();
        return Some(PostgresError::NoSetting { setting, since, directory, found }.to_string());
    }
    let mut command = Command::new(installation.program("postgres"));
    command.args(["-D", NOWHERE, "-C", &set.name, "-c", &format!("{}={}", set.name, set.value)]);
    command.env("LC_ALL", "C");
    Account::of_server().ok()?.run(&mut command);
    let said = command.output().ok()?;
    let why = refusal(&String::from_utf8_lossy(&said.stderr))?;
    Some(format!("PostgreSQL {} of {}: {why}", installation.version, installation.directory.display()))
}

/// Returns the complaint about a name or a value, with the values that there are.
fn refusal(said: &str) -> Option<String> {
    let after = |word: &str| said.lines().find_map(|line| Some(line.split_once(word)?.1.trim().to_string()));
    let lacks = |line: &String| {
        line.starts_with("invalid value for parameter")
            || line.starts_with("unrecognized configuration parameter")
    };
    let fatal = after("FATAL:").filter(lacks)?;
    let hint = after("HINT:").map_or(String::new(), |hint| format!("; {}", hint.trim_end_matches('.')));
    Some(fatal + &hint)
}

/// Describes the servers, and the evidence of each setting.
pub(crate) fn here(settings: &[&Assignment], path: &Path) -> Here {
    let servers = servers(settings);
    let described = servers.iter().map(|(_, found)| match found {
        Ok(installation) => installation.describe(),
        Err(error) => error.to_string(),
    });
    let target = described.collect::<Vec<_>>().join("; ");
    let installed: Vec<&Installation> = servers.iter().filter_map(|(_, found)| found.as_ref().ok()).collect();
    let on_device = plumb_io::describe_device(path).is_ok_and(|device| device.block.is_some());
    let own_io = ProcessIo::of(getpid()).is_ok();
    let missing = |source: EvidenceSource| match source {
        EvidenceSource::Device if !on_device => Some("the path has no device below it"),
        EvidenceSource::LogRecords
            if installed.iter().any(|server| !server.program("pg_waldump").is_file()) =>
        {
            Some("pg_waldump is not installed with the server")
        }
        EvidenceSource::ProcessIo if !own_io => Some("/proc/PID/io cannot be read here"),
        _ => None,
    };
    let evidence = |set: &&Assignment| {
        let source = rule_of(&set.name).map_or(EvidenceSource::Server, |rule| rule.source);
        let (seen, by) = match missing(source) {
            _ if parameter(&set.name).is_some() => (Seen::Inside, "plumb's own work".to_string()),
            Some(why) => (Seen::Inside, format!("{}: {why}", EvidenceSource::Server.words())),
            None if source.is_outside() => (Seen::Outside, source.words().to_string()),
            None => (Seen::Inside, source.words().to_string()),
        };
        ReceiptEvidence { setting: set.name.clone(), seen, by }
    };
    Here { target, evidence: settings.iter().map(evidence).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_or_a_value_that_a_server_lacks_is_told_from_other_complaints() {
        let value = "2026-11-26 13:35:44.446 GMT [7] FATAL:  invalid value for parameter \"wal_compression\": \"lz5\"\n\
                     2026-11-26 13:35:44.446 GMT [7] HINT:  Available values: pglz, lz4, zstd, on, off.\n";
        let found = refusal(value).expect("it lacks the value");
        assert_eq!(
            found,
            "invalid value for parameter \"wal_compression\": \"lz5\"; Available values: pglz, lz4, zstd, on, off"
        );
        let name = "2026 GMT [7] FATAL:  unrecognized configuration parameter \"io_method\"\n";
        assert_eq!(refusal(name).as_deref(), Some("unrecognized configuration parameter \"io_method\""));
        let taken = "postgres: could not access directory \"/proc/self/no-data-directory\": No such file\nRun initdb\n";
        assert_eq!(refusal(taken), None);
        let range = "2026 GMT [7] FATAL:  1 kB is outside the valid range for parameter \"work_mem\" (64 .. 2147483647)\n";
        assert_eq!(refusal(range), None, "the study is wrong, and every version refuses it");
    }

    #[test]
    fn every_version_complains_of_a_value_and_of_a_name_in_words_that_are_known() {
        for version in crate::recorded::VERSIONS {
            let said = crate::recorded::text(version, "refused.txt");
            let at = said.find("unrecognized").and_then(|at| said[..at].rfind('\n')).expect("two complaints");
            let value = refusal(&said[..at]).expect("it lacks the value");
            assert!(
                value.starts_with(
                    "invalid value for parameter \"wal_sync_method\": \"nothing\"; Available values: "
                ),
                "{version}: {value}"
            );
            let name = refusal(&said[at..]).expect("it lacks the name");
            assert_eq!(name, "unrecognized configuration parameter \"no_such_setting\"", "{version}");
        }
    }
}
