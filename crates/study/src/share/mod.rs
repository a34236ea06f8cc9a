//! Copies a bundle without the names in it, and derives its analysis and reports again.
//!
//! ```text
//! bundle ──> names (find) ──> study, environment, records (replace) ──> analysis, reports
//! ```
//! Each file is parsed, its texts are replaced, and it is written in the format of bundles. Order,
//! analysis, reports and checksums are derived again, so `plumb verify` accepts the copy. Rejected:
//! replacing names in the text of reports, because a name may be split over two lines.
//!
//! Numbers stay unchanged. Files that do not belong to a bundle are left out.

pub mod names;
mod page;

use crate::bundle::{
    Contents, END, ENVIRONMENT, EndFile, Environment, LAST, MANIFEST, Manifest, ORDER, OrderFile, REPORTS,
    RUNS, RunRecord, STUDY, errors_name, json, record_name, run_record, text,
};
use crate::plan::{Plan, PlanOptions};
use crate::report::{self, RenderPage, Rendered};
use crate::vocabulary::Kinds;
use crate::{StudyError, definition};
use names::{Names, Secret, TextLayout};
use page::PagePart;
use plumb_io::Directory;
use plumb_record::trace::{self, RunTrace};
use plumb_record::{BESIDE, FILE, FIO_JOB, Record, outside};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// A name that was replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replaced {
    pub original: String,
    /// The word that replaces it.
    pub replacement: String,
    /// The number of places with it.
    pub places: usize,
}

/// The files of the copy.
#[derive(Debug, Default)]
pub struct Shared {
    /// Names and bytes of the files.
    pub files: Vec<(String, Vec<u8>)>,
    places: BTreeMap<String, usize>,
}

/// Renders the page of a run.
pub type RenderRun = fn(&Record) -> Rendered;

/// Keys whose texts are names.
const KEYS: [(&str, Secret); 5] = [
    ("hostname", Secret::Host),
    ("host_name", Secret::Host),
    ("nodename", Secret::Host),
    ("user", Secret::User),
    ("username", Secret::User),
];
/// Keys whose texts are paths, absolute or relative.
const PATHS: [&str; 5] = ["path", "paths", "directory", "filename", "bundle"];
/// Keys whose texts are commands.
const COMMANDS: [&str; 2] = ["command_line", "arguments"];

/// Options of plumb whose values are paths, absolute or relative.
const PLACES: [&str; 8] =
    ["--path", "--bundle", "--temp-path", "--data-path", "--index-path", "--log-path", "--conf", "--resume"];

impl Shared {
    /// Returns the replaced names, sorted by their replacement.
    #[must_use]
    pub fn replaced(&self, names: &Names) -> Vec<Replaced> {
        let found = names.iter().filter_map(|(original, replacement)| {
            let places = *self.places.get(original)?;
            Some(Replaced { original: original.to_string(), replacement: replacement.to_string(), places })
        });
        let mut found: Vec<Replaced> = found.collect();
        found.sort_by_cached_key(|one| natural(&one.replacement));
        found
    }

    fn text(&mut self, names: &Names, text: &str) -> String {
        self.text_in(names, text, TextLayout::Free)
    }

    fn text_in(&mut self, names: &Names, text: &str, layout: TextLayout) -> String {
        let (replaced, counts) = names.replace_in(text, layout);
        for (name, count) in counts {
            *self.places.entry(name.to_string()).or_insert(0) += count;
        }
        replaced
    }

    /// Replaces the names in every text of a JSON value.
    pub fn value(&mut self, names: &Names, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(names, text),
            Value::Array(list) => list.iter_mut().for_each(|value| self.value(names, value)),
            Value::Object(fields) => fields.values_mut().for_each(|value| self.value(names, value)),
            _ => {}
        }
    }

    /// Replaces the names in every key, because the claims of a study have factors as keys.
    fn keys(&mut self, names: &Names, value: &mut Value) {
        match value {
            Value::Array(list) => list.iter_mut().for_each(|value| self.keys(names, value)),
            Value::Object(fields) => {
                let renamed = std::mem::take(fields).into_iter().map(|(key, mut value)| {
                    self.keys(names, &mut value);
                    (self.text(names, &key), value)
                });
                *fields = renamed.collect();
            }
            _ => {}
        }
    }

    /// Replaces the names in the texts of a page of HTML, and keeps its tags.
    fn page(&mut self, names: &mut Names, page: &str) -> String {
        let pieces = page::pieces(page);
        for piece in &pieces {
            if let PagePart::Text(text) = piece
                && !names.find_statement(text)
            {
                names.find(text);
            }
        }
        let copy = |piece: &PagePart<'_>| match piece {
            PagePart::Kept(kept) => kept.to_string(),
            PagePart::Text(text) => self.text(names, text),
        };
        pieces.iter().map(copy).collect()
    }

    /// Returns a value with every text replaced.
    fn typed<T: Serialize + DeserializeOwned>(&mut self, names: &Names, of: &T) -> Result<T, StudyError> {
        let wrong = |source| StudyError::Json { source };
        let mut value = serde_json::to_value(of).map_err(wrong)?;
        self.value(names, &mut value);
        serde_json::from_value(value).map_err(wrong)
    }

    /// Adds a file of the copy.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<Vec<u8>>) {
        self.files.push((name.into(), text.into()));
    }

    /// Writes the files to a new or empty directory. A half copy lacks the file by which a reader
    /// would know it.
    pub fn write(&self, directory: &Path) -> Result<(), StudyError> {
        let held = Directory::open(directory)?;
        if self.files.iter().any(|(name, _)| name.starts_with(RUNS)) {
            held.make_directory(RUNS)?;
        }
        let mut files: Vec<_> = self.files.iter().collect();
        files.sort_by_key(|(name, _)| LAST.iter().position(|last| name == last));
        files.into_iter().try_for_each(|(name, bytes)| Ok(held.replace(name, bytes)?))
    }
}

fn natural(replacement: &str) -> (String, usize) {
    let (word, number) = replacement.rsplit_once('-').unwrap_or((replacement, ""));
    (word.to_string(), number.parse().unwrap_or(0))
}

/// Collects the names in a JSON document: texts under known keys, and texts in the form of a name.
pub fn find(names: &mut Names, value: &Value) {
    match value {
        Value::String(text) => names.find(text),
        Value::Array(list) => list.iter().for_each(|value| find(names, value)),
        Value::Object(fields) => {
            for (key, value) in fields {
                find_of_key(names, key, value);
                find(names, value);
            }
        }
        _ => {}
    }
}

fn find_of_key(names: &mut Names, key: &str, value: &Value) {
    let texts: Vec<&str> = match value {
        Value::String(text) => vec![text],
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
        // In a record, `host` is an object with the host's name.
        Value::Object(fields) if key == "host" => {
            fields
                .get("name")
                .and_then(Value::as_str)
                .into_iter()
                .for_each(|name| names.add(Secret::Host, name));
            return;
        }
        _ => return,
    };
    for text in texts {
        if let Some((_, secret)) = KEYS.iter().find(|(known, _)| *known == key) {
            names.add(*secret, text);
        } else if PATHS.contains(&key) {
            names.add_path(text);
        } else if COMMANDS.contains(&key) {
            let words: Vec<&str> = text.split_whitespace().collect();
            words.iter().for_each(|word| find_word(names, word));
            let named = words.windows(2).filter(|pair| PLACES.contains(&pair[0]));
            named.for_each(|pair| names.add_path(pair[1].trim_matches(['\'', '"'])));
        }
    }
}

/// Collects a word of a command. It is a path if it has a slash, or is the value of
/// an option for a path.
fn find_word(names: &mut Names, word: &str) {
    let word = word.trim_matches(['\'', '"']);
    let word = word.split_once('=').map_or(word, |(_, value)| value);
    if word.contains('/') && !word.contains(' ') {
        names.add_path(word);
    }
}

/// Replaces the names of a study's bundle. Fails if the bundle does not verify.
pub fn of_study(
    directory: &Path,
    kinds: &Kinds,
    page: RenderPage,
    names: &mut Names,
) -> Result<Shared, StudyError> {
    let (manifest, contents) = Contents::read(directory, kinds)?;
    let study_text = manifest.text(directory, STUDY)?;
    let printed: Vec<(u64, String)> = contents
        .runs
        .iter()
        .map(|run| (run.number, errors_name(run.number)))
        .filter(|(_, name)| manifest.lists(name))
        .map(|(number, name)| Ok((number, manifest.text(directory, &name)?)))
        .collect::<Result<_, StudyError>>()?;
    let wrong = |source| StudyError::Json { source };
    let environment = serde_json::to_value(&contents.environment).map_err(wrong)?;
    find(names, &environment);
    for run in &contents.runs {
        find(names, &serde_json::to_value(run).map_err(wrong)?);
    }
    printed.iter().for_each(|(_, text)| names.find(text));
    let unreadable = |why: String| StudyError::BundleRead { path: directory.join(STUDY), why };
    let mut values: Value = toml::from_str(&study_text).map_err(|error| unreadable(error.to_string()))?;
    find(names, &values);

    let mut shared = Shared::default();
    shared.value(names, &mut values);
    shared.keys(names, &mut values);
    let replaced = toml::to_string(&values).map_err(|error| unreadable(error.to_string()))?;
    let study = definition::parse_kept(STUDY, &replaced, kinds)?;
    let (until, seed) = (contents.plan.until, contents.plan.schedule.seed);
    let plan = Plan::new(study, PlanOptions::default(), until, seed)?;
    let environment: Environment = shared.typed(names, &contents.environment)?;
    let runs: Vec<RunRecord> =
        contents.runs.iter().map(|run| shared.typed(names, run)).collect::<Result<_, _>>()?;
    shared.add(STUDY, plan.study.to_toml());
    shared.add(ENVIRONMENT, json(&environment)?);
    shared.add(ORDER, json(&OrderFile::of(&plan))?);
    for run in &runs {
        shared.add(record_name(run.number), json(run)?);
    }
    for (number, text) in printed {
        let text = shared.text(names, &text);
        shared.add(errors_name(number), text);
    }
    let end: Option<EndFile> = contents.end;
    if let Some(end) = end {
        shared.add(END, json(&end)?);
    }
    sealed(shared, Contents { plan, environment, runs, end }, page)
}

/// Derives analysis and reports, and adds checksums.
fn sealed(mut shared: Shared, contents: Contents, page: RenderPage) -> Result<Shared, StudyError> {
    let mut manifest = Manifest::default();
    let listed = |manifest: &mut Manifest, files: &[(String, Vec<u8>)]| {
        files.iter().for_each(|(name, bytes)| manifest.list(name, &String::from_utf8_lossy(bytes)));
    };
    listed(&mut manifest, &shared.files);
    if contents.has_ended() {
        let derived = report::derive(&contents, manifest.evidence(), page)?;
        for (name, text) in derived.files {
            manifest.list(name, &text);
            shared.add(name, text);
        }
    }
    shared.add(MANIFEST, manifest.to_text());
    Ok(shared)
}

/// Replaces the names of a run's bundle.
pub fn of_run(bundle: &Path, page: RenderRun, names: &mut Names) -> Result<Shared, StudyError> {
    let (directory, record) = run_record(bundle)?;
    find(names, &serde_json::to_value(&record).map_err(|source| StudyError::Json { source })?);
    let held = Directory::open(&directory)?;
    let kept = held.read(trace::FILE, outside::TRACE_MOST)?;
    let unreadable = |why: String| StudyError::BundleRead { path: directory.join(trace::FILE), why };
    let kept = kept.map(|bytes| RunTrace::of_bytes(&bytes)).transpose();
    let kept = kept.map_err(|error| unreadable(error.to_string()))?;
    kept.iter().flat_map(|trace| &trace.files).for_each(|file| names.add_path(file));

    let mut shared = Shared::default();
    let record: Record = shared.typed(names, &record)?;
    shared.add(
        FILE,
        record.to_json().map_err(|source| StudyError::Record { path: bundle.to_path_buf(), source })?,
    );
    record.beside.iter().for_each(|beside| shared.add(BESIDE, beside.to_csv()));
    record.mix.iter().for_each(|mix| shared.add(FIO_JOB, mix.fio_job()));
    if let Some(mut trace) = kept {
        trace.files = trace.files.iter().map(|file| shared.text(names, file)).collect();
        shared.add(trace::FILE, trace.to_bytes());
    }
    for (name, text) in REPORTS.into_iter().zip(page(&record)) {
        shared.add(name, text);
    }
    Ok(shared)
}

/// Replaces the names in a file of text, HTML or JSON. Fails if it cannot be read.
pub fn of_file(path: &Path, names: &mut Names) -> Result<Shared, StudyError> {
    let text = text(path)?;
    let mut shared = Shared::default();
    let name = path.file_name().map_or("file".into(), |name| name.to_string_lossy().into_owned());
    let document: Option<Value> = serde_json::from_str(&text).ok().filter(|value: &Value| !value.is_string());
    let replaced = match document {
        Some(mut value) => {
            find(names, &value);
            shared.value(names, &mut value);
            json(&value)?
        }
        None if page::is_page(&text) => shared.page(names, &text),
        None => {
            names.find(&text);
            shared.text_in(names, &text, TextLayout::Columns)
        }
    };
    let name = shared.text(names, &name);
    shared.add(name, replaced);
    Ok(shared)
}
