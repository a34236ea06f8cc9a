//! Copies a bundle without the names in it, and derives its analysis and reports again.
//!
//! ```text
//! study.toml      names of settings and workloads, figures ── stay; all else: tokens
//! environment,    field by field (`plumb_record::share`)
//! records
//! analysis, reports, checksums ── derived again, so that `plumb verify` accepts the copy
//! ```
//! Commands become `command` and the places of their factors; what they printed is left out,
//! but for the figures that were read from it. Files that do not belong to a bundle are left out,
//! too.
//!
//! The file of a claim is copied by the same rules: figures, rules and answers stay.

use crate::bundle::{
    Contents, END, ENVIRONMENT, EndFile, Environment, LAST, MANIFEST, Manifest, ORDER, OrderFile, REPORTS,
    RUNS, RunRecord, STUDY, errors_name, json, record_name, run_record,
};
use crate::plan::{Plan, PlanOptions};
use crate::report::{self, RenderPage, Rendered};
use crate::targets::command::OWN as MEASURES;
use crate::vocabulary::Kinds;
use crate::{StudyError, definition};
use plumb_io::Directory;
use plumb_record::trace::{self, RunTrace};
use plumb_record::{BESIDE, FILE, FIO_JOB, Record, outside};
use plumb_share::{Label, Tokens};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::Path;
use toml::{Table, Value};

/// The files of the copy, with their names.
pub type Shared = Vec<(String, Vec<u8>)>;

/// Renders the page of a run.
pub type RenderRun = fn(&Record) -> Rendered;

/// Writes the files of a copy to an empty directory. A half copy lacks the file by which a reader
/// would know it.
///
/// # Errors
/// When a file cannot be written.
pub fn write(files: &Shared, directory: &Path) -> Result<(), StudyError> {
    let held = Directory::open(directory)?;
    if files.iter().any(|(name, _)| name.starts_with(RUNS)) {
        held.make_directory(RUNS)?;
    }
    let mut files: Vec<_> = files.iter().collect();
    files.sort_by_key(|(name, _)| LAST.iter().position(|last| name == last));
    files.into_iter().try_for_each(|(name, bytes)| Ok(held.replace(name, bytes)?))
}

/// Copies a study's bundle. Fails if the bundle does not verify.
///
/// # Errors
/// When a file of the bundle has changed, or the copy is no study.
pub fn of_study(
    directory: &Path,
    kinds: &Kinds,
    page: RenderPage,
    tokens: &mut Tokens,
) -> Result<Shared, StudyError> {
    let (manifest, contents) = Contents::read(directory, kinds)?;
    let unreadable = |why: String| StudyError::BundleRead { path: directory.join(STUDY), why };
    let text = manifest.text(directory, STUDY)?;
    let mut values: Table = toml::from_str(&text).map_err(|error| unreadable(error.to_string()))?;
    study(tokens, &mut values);
    let copied = toml::to_string(&values).map_err(|error| unreadable(error.to_string()))?;
    let study = definition::parse_kept(STUDY, &copied, kinds)?;
    let (until, seed) = (contents.plan.until, contents.plan.schedule.seed);
    let plan = Plan::new(study, PlanOptions::default(), until, seed)?;
    let environment: Environment = typed(tokens, &contents.environment)?;
    let mut runs: Vec<RunRecord> =
        contents.runs.iter().map(|run| typed(tokens, run)).collect::<Result<_, _>>()?;
    runs.iter_mut().for_each(|run| run.arm = plan.arm_name(run.arm_index));
    let mut files = vec![
        (STUDY.to_string(), plan.study.to_toml().into_bytes()),
        (ENVIRONMENT.to_string(), json(&environment)?.into_bytes()),
        (ORDER.to_string(), json(&OrderFile::of(&plan))?.into_bytes()),
    ];
    for run in &runs {
        files.push((record_name(run.number), json(run)?.into_bytes()));
        if manifest.lists(&errors_name(run.number)) {
            files.push((errors_name(run.number), Vec::new()));
            tokens.dropped += 1;
        }
    }
    let end: Option<EndFile> = contents.end;
    if let Some(end) = end {
        files.push((END.to_string(), json(&end)?.into_bytes()));
    }
    sealed(files, Contents { plan, environment, runs, end }, page)
}

/// Derives analysis and reports, and adds checksums.
fn sealed(mut files: Shared, contents: Contents, page: RenderPage) -> Result<Shared, StudyError> {
    let mut manifest = Manifest::default();
    files.iter().for_each(|(name, bytes)| manifest.list(name, &String::from_utf8_lossy(bytes)));
    if contents.has_ended() {
        let derived = report::derive(&contents, manifest.evidence(), page)?;
        for (name, text) in derived.files {
            manifest.list(name, &text);
            files.push((name.to_string(), text.into_bytes()));
        }
    }
    files.push((MANIFEST.to_string(), manifest.to_text().into_bytes()));
    Ok(files)
}

/// Copies a run's bundle.
///
/// # Errors
/// When its record or its trace cannot be read.
pub fn of_run(bundle: &Path, page: RenderRun, tokens: &mut Tokens) -> Result<Shared, StudyError> {
    let (directory, record) = run_record(bundle)?;
    let kept = Directory::open(&directory)?.read(trace::FILE, outside::TRACE_MOST)?;
    let unreadable = |why: String| StudyError::BundleRead { path: directory.join(trace::FILE), why };
    let kept = kept.map(|bytes| RunTrace::of_bytes(&bytes)).transpose();
    let kept = kept.map_err(|error| unreadable(error.to_string()))?;
    let record: Record = typed(tokens, &record)?;
    let wrong = |source| StudyError::Record { path: bundle.to_path_buf(), source };
    let mut files = vec![(FILE.to_string(), record.to_json().map_err(wrong)?.into_bytes())];
    files.extend(record.beside.iter().map(|beside| (BESIDE.to_string(), beside.to_csv().into_bytes())));
    files.extend(record.mix.iter().map(|mix| (FIO_JOB.to_string(), mix.fio_job().into_bytes())));
    if let Some(mut trace) = kept {
        trace.files = trace.files.iter().map(|file| tokens.hidden(file)).collect();
        files.push((trace::FILE.to_string(), trace.to_bytes()));
    }
    files.extend(
        REPORTS.into_iter().zip(page(&record)).map(|(name, text)| (name.to_string(), text.into_bytes())),
    );
    Ok(files)
}

/// Returns a value of a document without the names in it.
fn typed<T: Serialize + DeserializeOwned>(tokens: &mut Tokens, of: &T) -> Result<T, StudyError> {
    let wrong = |source| StudyError::Json { source };
    let mut value = serde_json::to_value(of).map_err(wrong)?;
    plumb_record::share::replace_names(tokens, &mut value);
    serde_json::from_value(value).map_err(wrong)
}

/// Returns the texts of the studies that ship, which are no names of anybody.
pub fn shipped() -> Vec<String> {
    let mut found: Vec<String> = MEASURES.iter().map(|(name, _)| name.to_string()).collect();
    for (_, text) in definition::catalog::FILES {
        let values: Table = toml::from_str(text).unwrap_or_default();
        texts(&Value::Table(values), &mut found);
    }
    found
}

fn texts(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Array(list) => list.iter().for_each(|value| texts(value, found)),
        Value::Table(fields) => {
            found.extend(fields.keys().cloned());
            fields.values().for_each(|value| texts(value, found));
        }
        _ => {}
    }
}

/// Tables of a study whose texts are commands, files and patterns.
const OF_COMMANDS: [&str; 3] = ["command", "file", "receipt"];
/// Fields of these tables with words and figures of this program.
const KEPT: &str = " timeout shell exit_codes kind better take at_least at_most unit ";
/// Fields of a study with sentences in this program's words.
const SENTENCES: &str =
    " expect order expects sought workload target blocks data_seed rows column statistic phase ";

/// Replaces the names in a study's file.
fn study(tokens: &mut Tokens, values: &mut Table) {
    for (key, value) in values.iter_mut() {
        match key.as_str() {
            key if OF_COMMANDS.contains(&key) => commands(tokens, key, value),
            "measure" => measures(tokens, value),
            _ => field(tokens, key, value),
        }
    }
}

fn field(tokens: &mut Tokens, key: &str, value: &mut Value) {
    match value {
        Value::String(text) => *text = study_text(tokens, key, text),
        Value::Array(list) => list.iter_mut().for_each(|value| field(tokens, key, value)),
        Value::Table(fields) => {
            // Only the keys of these tables are names: of settings, parameters and factors.
            let has_names = matches!(key, "settings" | "parameters" | "set" | "at");
            let copied = std::mem::take(fields).into_iter().map(|(own, mut value)| {
                field(tokens, if has_names { "" } else { &own }, &mut value);
                (if has_names { tokens.name(&own) } else { own }, value)
            });
            *fields = copied.collect();
        }
        _ => {}
    }
}

fn study_text(tokens: &mut Tokens, key: &str, text: &str) -> String {
    let is_kept = SENTENCES.contains(&format!(" {key} "));
    match key {
        "statistic" | "phase" => statistic(tokens, text),
        "times" | "sought" => tokens.value(Label::Figures, text),
        _ if is_kept => tokens.sentence(text),
        _ => tokens.name(text),
    }
}

/// Copies `elapsed minus EVENT`, `share of EVENT` and `NAME/s`.
fn statistic(tokens: &mut Tokens, text: &str) -> String {
    let parts: Vec<String> = text
        .split(" minus ")
        .map(|part| {
            let (of, part) = part.strip_prefix("share of ").map_or(("", part), |part| ("share of ", part));
            let (part, per) = part.strip_suffix("/s").map_or((part, ""), |part| (part, "/s"));
            format!("{of}{}{per}", tokens.name(part))
        })
        .collect();
    parts.join(" minus ")
}

/// Replaces commands by the places of their factors.
fn commands(tokens: &mut Tokens, key: &str, value: &mut Value) {
    match value {
        Value::String(_) if KEPT.contains(&format!(" {key} ")) => {}
        Value::String(text) if key == "regex" => *text = ".".to_string(),
        Value::String(text) if key == "flag" => *text = tokens.name(text),
        Value::String(text) => *text = places(tokens, text),
        Value::Array(list) => list.iter_mut().for_each(|value| commands(tokens, key, value)),
        Value::Table(fields) => {
            let has_names = matches!(key, "file" | "environment" | "when");
            let copied = std::mem::take(fields).into_iter().map(|(own, mut value)| {
                match (has_names, &mut value) {
                    (true, Value::String(text)) if key == "when" => *text = tokens.name(text),
                    (_, value) => commands(tokens, &own, value),
                }
                (if has_names { tokens.name(&own) } else { own }, value)
            });
            *fields = copied.collect();
        }
        _ => {}
    }
}

/// Returns `command` and the places of a template, which must be those of factors.
fn places(tokens: &mut Tokens, text: &str) -> String {
    let mut copy = "command".to_string();
    let is_name = |name: &str| {
        name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.'))
    };
    for piece in text.split('{').skip(1) {
        let name = piece.split_once('}').map(|(name, _)| name).filter(|name| is_name(name));
        if let Some(name) = name {
            let name = if name == "path" { name.to_string() } else { tokens.name(name) };
            copy.push_str(&format!(" {{{name}}}"));
        }
    }
    copy
}

/// Replaces the names of declared measures and the ways in which they are read.
fn measures(tokens: &mut Tokens, value: &mut Value) {
    let Value::Table(all) = value else { return };
    let copied = std::mem::take(all).into_iter().map(|(name, mut measure)| {
        if let Value::Table(fields) = &mut measure {
            for (key, value) in fields.iter_mut() {
                match (key.as_str(), value) {
                    ("regex", Value::String(text)) => *text = "(.+)".to_string(),
                    ("unit", Value::String(text)) => *text = tokens.value(Label::Words, text),
                    ("json", Value::String(text)) => *text = "/value".to_string(),
                    (key, value) => commands(tokens, key, value),
                }
            }
        }
        (tokens.name(&name), measure)
    });
    *all = copied.collect();
}

/// Copies the file of a claim; `None` of another file.
#[must_use]
pub fn of_claim(text: &str, tokens: &mut Tokens) -> Option<String> {
    /// The claims that ship have 3 KB.
    const BYTES_MOST: usize = 1 << 20;
    if text.len() > BYTES_MOST {
        return None;
    }
    let mut values: Table = toml::from_str(text).ok()?;
    if !(values.contains_key("statement") && values.contains_key("source")) {
        return None;
    }
    known_keys(tokens, &mut values);
    for (key, value) in values.iter_mut() {
        match (key.as_str(), value) {
            ("figures", Value::Table(figures)) => {
                let copied = std::mem::take(figures).into_iter().map(|(name, mut figure)| {
                    claim_figure(tokens, &mut figure);
                    (tokens.hidden(&name), figure)
                });
                *figures = copied.collect();
            }
            ("relation", value) => relation(tokens, "", value),
            ("stated", value) => stated(tokens, value),
            ("source", Value::Table(source)) => {
                known_keys(tokens, source);
                for (key, value) in source.iter_mut() {
                    if let Value::String(text) = value {
                        let label = if key == "date" { Label::Times } else { Label::Names };
                        *text = tokens.value(label, text);
                    }
                }
            }
            (_, value) => hidden(tokens, value),
        }
    }
    toml::to_string(&values).ok()
}

/// Keeps the figure, its unit and its author's kind.
fn claim_figure(tokens: &mut Tokens, figure: &mut Value) {
    let Value::Table(fields) = figure else { return };
    fields.retain(|key, _| !matches!(key, "page" | "words"));
    known_keys(tokens, fields);
    for (key, value) in fields.iter_mut() {
        if let Value::String(text) = value
            && !(key == "by" && is_author(text))
        {
            let sentence = tokens.sentence(text);
            *text = sentence;
        }
    }
}

/// Replaces the names of figures in a relation; the rule and the names of bounds stay.
fn relation(tokens: &mut Tokens, key: &str, value: &mut Value) {
    match value {
        Value::String(text) if key == "by" && is_author(text) => {}
        Value::String(text) if key == "rule" && tokens.is_listed(text) => {}
        Value::String(text) if matches!(key, "link" | "device") && tokens.is_name(text) => {}
        Value::String(text) => *text = tokens.hidden(text),
        Value::Array(list) => list.iter_mut().for_each(|value| relation(tokens, key, value)),
        Value::Table(fields) => {
            known_keys(tokens, fields);
            fields.iter_mut().for_each(|(key, value)| relation(tokens, key, value));
        }
        _ => {}
    }
}

/// True for a kind of author that a claim may name.
fn is_author(text: &str) -> bool {
    matches!(text, "author" | "critic")
}

/// Drops the fields of a claim whose keys are no words of the lists.
fn known_keys(tokens: &mut Tokens, fields: &mut Table) {
    let before = fields.len();
    fields.retain(|key, _| tokens.is_listed(key));
    tokens.dropped += (before - fields.len()) as u64;
}

/// Keeps the answers of a claim that are listed words, and its figures.
fn stated(tokens: &mut Tokens, value: &mut Value) {
    match value {
        Value::String(text) => *text = tokens.value(Label::Values, text),
        Value::Array(list) => list.iter_mut().for_each(|value| stated(tokens, value)),
        Value::Table(fields) => {
            known_keys(tokens, fields);
            fields.iter_mut().for_each(|(_, value)| stated(tokens, value));
        }
        _ => {}
    }
}

fn hidden(tokens: &mut Tokens, value: &mut Value) {
    match value {
        Value::String(text) => *text = tokens.name(text),
        Value::Array(list) => list.iter_mut().for_each(|value| hidden(tokens, value)),
        Value::Table(fields) => fields.iter_mut().for_each(|(_, value)| hidden(tokens, value)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_keeps_its_figures_and_answers_and_loses_every_name() {
        let text = "\
statement = \"Payroll is 7.5% faster; 'sesame' is the word\"
customer-acme = \"acme\"
[source]
title = \"Payroll\"
date = \"2010-12\"
[figures]
payrun = { text = \"4 s\" } # acme
payfast = { text = \"2 s\", by = \"critic\", acme = \"acme\" }
[[relation]]
rule = \"faster\"
from = \"payrun\"
to = \"payfast\"
by = \"payrun\"
[stated]
runs = 1
reproducible = \"withheld\"
spread = \"acme\"
";
        let mut tokens = Tokens::new([]);
        let copy = of_claim(text, &mut tokens).expect("a claim");
        for name in ["acme", "Payroll", "payrun", "payfast", "sesame"] {
            assert!(!copy.contains(name), "{name}: {copy}");
        }
        for kept in ["4 s", "2010-12", "critic", "faster", "withheld", "runs = 1"] {
            assert!(copy.contains(kept), "{kept}: {copy}");
        }
        assert_eq!(tokens.dropped, 2);
    }
}
