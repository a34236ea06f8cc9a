//! `plumb diagnose`: what holds a run or a reported system back, by the table of rules.

use super::{ad_hoc, of_workload};
use crate::arguments::{Arguments, Command, Diagnose};
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::{bundle, output};
use clap::Parser as _;
use plumb_findings::{Signals, findings};
use plumb_foreign::{READERS, Source, import};
use plumb_pages::run::diagnosis;
use plumb_record::{Finding, Record};
use plumb_study::bundle::run_record;
use plumb_study::definition::catalog;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;

/// Prints the diagnosis of each run and each report. Fails on a file that is neither,
/// and on `--study` without a study to write.
pub fn run(arguments: &Diagnose) -> Result<Outcome, Failure> {
    let mut all = Vec::new();
    for path in &arguments.of {
        all.extend(records(path)?);
    }
    if arguments.json {
        let found: Vec<&Vec<Finding>> = all.iter().map(|record| &record.findings).collect();
        let text = serde_json::to_string_pretty(&found).map_err(|error| Failure::run(error.to_string()))?;
        output::print(&(text + "\n"))?;
    } else {
        for record in &all {
            output::print(&output::report(&diagnosis::document(record)))?;
        }
    }
    if let Some(path) = &arguments.study {
        write_study(path, all.iter().flat_map(|record| &record.findings))?;
    }
    Ok(Outcome::Fine)
}

/// The records of a bundle, or of all reports of a file.
fn records(path: &Path) -> Result<Vec<Record>, Failure> {
    let is_record = path.file_name().is_some_and(|name| name == "record.json");
    if path.is_dir() || is_record {
        let (_, mut record) = run_record(path)?;
        // Older records have findings without a rule, or none.
        if record.findings.iter().all(|finding| finding.rule.is_empty()) {
            record.findings = findings(&Signals::of(&record));
        }
        return Ok(vec![record]);
    }
    let imported = |error: plumb_foreign::ForeignError| Failure::run(error.to_string());
    let source = Source::read(path).map_err(imported)?;
    let imports = import(&source, READERS, env!("CARGO_PKG_VERSION")).map_err(imported)?;
    Ok(imports.into_iter().filter_map(|import| import.record.or(import.undated)).collect())
}

/// Writes the study of the first finding that has one.
fn write_study<'f>(path: &Path, mut found: impl Iterator<Item = &'f Finding>) -> Result<(), Failure> {
    let finding = found.find(|finding| !finding.study.is_empty()).ok_or_else(|| {
        Failure::run(format!("--study {}: no finding has a study that would prove it", path.display()))
    })?;
    let text = text(&finding.study)?;
    let refused = |error: std::io::Error| {
        Failure::run(format!("--study {}: cannot be written: {error}; name a new file", path.display()))
    };
    File::create_new(path).and_then(|mut file| file.write_all(text.as_bytes())).map_err(refused)?;
    let proves = format!("{} ({}): {}", finding.what, finding.rule, finding.study);
    output::print(&format!("Study of: {proves}\n"))?;
    output::print(&bundle::listed(&[path.to_path_buf()]))
}

/// The file of a command such as `plumb study NAME` or `plumb study WORKLOAD --factor NAME=A,B`.
fn text(command: &str) -> Result<String, Failure> {
    let name = command.strip_prefix("plumb study ").unwrap_or(command);
    if let Some((_, text)) = catalog::text(name) {
        return Ok(text.to_string());
    }
    let unknown = || Failure::run(format!("{command}: no study of this program; run it as it stands"));
    let arguments = Arguments::try_parse_from(command.split(' ')).map_err(|_| unknown())?;
    match arguments.command {
        Some(Command::Study(study)) => match &study.command {
            Some(command) => Ok(ad_hoc::study(command, &study.factor, &study.around)?.to_toml()),
            None => Ok(of_workload::study(&study)?.to_toml()),
        },
        _ => Err(unknown()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::KINDS;
    use plumb_study::definition;

    #[test]
    fn the_study_of_every_rule_of_a_report_is_at_hand() {
        for (rule, name) in plumb_foreign::awr::signals::STUDIES {
            assert!(text(&format!("plumb study {name}")).is_ok(), "{rule}: {name}");
            assert!(plumb_findings::rules().any(|known| known.id == rule), "{rule}");
        }
        assert!(text("plumb study redo --factor log_file_size=64M,512M").is_ok());
    }

    #[test]
    fn the_study_that_each_rule_offers_is_a_file_that_plumb_study_takes() {
        // What every rule says if it fires, with the commands of their studies.
        let said = include_str!(
            "../../../findings/tests/it/snapshots/it__rules__each_rule_fires_on_its_own_signal.snap"
        );
        let of_rules = said.lines().filter_map(|line| line.trim().strip_prefix("$ ")).map(str::to_string);
        let of_reports = plumb_foreign::awr::signals::STUDIES.iter();
        let commands: Vec<String> =
            of_rules.chain(of_reports.map(|(_, name)| format!("plumb study {name}"))).collect();
        assert!(commands.len() > 16, "{commands:?}");
        for command in commands {
            let file = text(&command).unwrap_or_else(|error| panic!("{command}: {error:?}"));
            let study = definition::parse("proof.toml", &file, KINDS);
            let study = study.unwrap_or_else(|error| panic!("{command}: {error}"));
            assert!(!study.factors.is_empty(), "{command}");
        }
    }
}
