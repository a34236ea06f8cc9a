//! Copies of traces without the spans that a warm system would not have.
//!
//! ```text
//! file ──[otlp | csv | log]──> spans ──[rule]──> chosen ──[tree]──> removed, new times
//!   └──────────── read again ─────────────────────────────────────────────┴──> copy
//! ```
//!
//! The file is read twice and never written. The first pass keeps numbers of each span
//! ([`SPAN_BYTES`]), so the size of texts does not matter; the second one writes the bytes of the
//! file without the removed spans, with new ids and corrected times ([`tree`]). So whatever a file
//! has that is not understood is in the copy as it was.
//!
//! Rejected: the types of the crate opentelemetry-proto. They cost 47 more crates, lose fields that
//! are newer than they are, and hold a document as a whole.
//!
//! A file that ends within a span is refused: what it had is unknown, and sums of the rest would
//! be taken for sums of all.

mod csv;
mod input;
mod json;
mod labels;
mod log;
mod otlp;
mod rule;
mod sums;
mod tree;

pub use csv::ColumnMapping;
pub use rule::DropRule;
pub use sums::{PruneReport, SpanSums, SumsRow};
pub use tree::SPAN_BYTES;

use input::{Fault, FaultKind, Input};
use rule::SpanFields;
use sha2::{Digest, Sha256};
use std::io::Write;
use std::path::{Path, PathBuf};
use tree::{Starts, Tree};

/// Bytes of a file by which its form is known.
const HEAD_BYTES: usize = 64 * 1024;

/// Reasons why a trace is not pruned.
#[derive(Debug, thiserror::Error)]
pub enum PruneError {
    /// A rule that cannot be understood.
    #[error("--drop {text}: {why}")]
    Rule { text: String, why: String },
    /// A mapping that cannot be understood.
    #[error("--map {text}: {why}")]
    Mapping { text: String, why: String },
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    /// The copy, or standard output, takes no more bytes.
    #[error("cannot write the copy: {0}")]
    Write(std::io::Error),
    #[error(
        "{} is cut off in line {line}, within {within}: what it had behind is unknown, and sums of the rest would be \
         wrong; export it again, or remove the last line",
        path.display()
    )]
    Cut { path: PathBuf, line: u64, within: &'static str },
    #[error("{} line {line}: {why}", path.display())]
    Line { path: PathBuf, line: u64, why: String },
    #[error("{}: {why}", path.display())]
    File { path: PathBuf, why: String },
}

/// The rules, and how many spans each has chosen.
pub(crate) struct Chosen {
    rules: Vec<(DropRule, u64)>,
}

impl Chosen {
    fn attributes(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().filter_map(|(rule, _)| rule.attribute())
    }

    fn wants(&self, attribute: &str) -> bool {
        self.attributes().any(|wanted| wanted == attribute)
    }

    /// Counts a span for each rule that holds; true if one does.
    fn takes(&mut self, fields: &SpanFields) -> bool {
        let mut is_chosen = false;
        for (_, count) in self.rules.iter_mut().filter(|(rule, _)| rule.holds(fields)) {
            *count += 1;
            is_chosen = true;
        }
        is_chosen
    }
}

enum Form {
    Otlp(otlp::Traces),
    Csv(Option<csv::Columns>),
    Log(Option<String>),
}

/// A trace whose spans are known, and what is removed of it.
pub struct PrunedTrace {
    path: PathBuf,
    form: Form,
    tree: Tree,
    rules: Vec<(String, u64)>,
    hash: [u8; 32],
}

/// Returns the hash of an id, which is never 0.
pub(crate) fn key(parts: &[&[u8]]) -> u128 {
    let mut hash = Sha256::new();
    parts.iter().for_each(|part| hash.update(part));
    let bytes = hash.finalize();
    bytes[..16].iter().fold(0, |key, byte| key << 8 | u128::from(*byte)).max(1)
}

/// Returns the form of a file by its first bytes.
fn form_of(head: &str) -> Option<Form> {
    let first = head.lines().next().unwrap_or_default();
    match () {
        () if head.contains("\"resourceSpans\"") => Some(Form::Otlp(otlp::Traces::default())),
        () if csv::is_source(first) => Some(Form::Csv(None)),
        () if log::is_log(head) => Some(Form::Log(None)),
        () => None,
    }
}

impl PrunedTrace {
    /// True if the file is a trace by its first bytes.
    #[must_use]
    pub fn recognises(path: &Path) -> bool {
        let head = Input::open(path).ok().and_then(|mut input| head(&mut input).ok());
        head.is_some_and(|head| form_of(&head).is_some())
    }

    /// Reads a trace and finds what the rules remove; a mapping makes it a CSV file.
    ///
    /// # Errors
    /// A line about a file that is no trace, cut off, or contradicts itself.
    pub fn read(
        path: &Path,
        rules: Vec<DropRule>,
        mapping: Option<&ColumnMapping>,
    ) -> Result<PrunedTrace, PruneError> {
        let mut chosen = Chosen { rules: rules.into_iter().map(|rule| (rule, 0)).collect() };
        let (mut input, mut tree) = (Input::open(path)?, Tree::default());
        let failed = |fault: Fault| fault.of(path);
        let head = head(&mut input).map_err(failed)?;
        let form = if mapping.is_some() { Some(Form::Csv(None)) } else { form_of(&head) };
        // A collector's first lines may be metrics, and a log's first plan may be far below.
        let form = form.unwrap_or(match head.trim_start().starts_with(['{', '[']) {
            true => Form::Otlp(otlp::Traces::default()),
            false => Form::Log(None),
        });
        let form = match form {
            Form::Otlp(_) => Form::Otlp(otlp::read(&mut input, &mut tree, &mut chosen).map_err(failed)?),
            Form::Csv(_) => {
                Form::Csv(Some(csv::read(&mut input, mapping, &mut tree, &mut chosen).map_err(failed)?))
            }
            Form::Log(_) => Form::Log(log::read(&mut input, &mut tree, &mut chosen).map_err(failed)?),
        };
        if tree.spans.is_empty() {
            let why = match form {
                Form::Csv(_) => "it has no row below the names of its columns",
                _ => {
                    "no span is in it; expected OTLP as JSON (resourceSpans), CSV with the columns of PSPMTRANSHIST or \
                     with --map, or a log of auto_explain"
                }
            };
            return Err(PruneError::File { path: path.to_path_buf(), why: why.to_string() });
        }
        let starts = if matches!(form, Form::Otlp(_)) { Starts::Known } else { Starts::OneAfterTheOther };
        tree.link(starts).map_err(|why| PruneError::File { path: path.to_path_buf(), why })?;
        if let Form::Csv(Some(columns)) = &form {
            columns.require_tops(&tree).map_err(|why| PruneError::File { path: path.to_path_buf(), why })?;
        }
        tree.prune(starts);
        let rules = chosen.rules.into_iter().map(|(rule, count)| (rule.text, count)).collect();
        Ok(PrunedTrace { path: path.to_path_buf(), form, tree, rules, hash: input.hash() })
    }

    /// Writes the copy, and flushes it.
    ///
    /// # Errors
    /// If it cannot be written, or the file has changed since it was read.
    pub fn write(&self, mut to: impl Write) -> Result<(), PruneError> {
        let mut input = Input::open(&self.path)?;
        let rules = self.rules.iter().map(|(text, _)| text.as_bytes());
        let mask = key(&std::iter::once(&self.hash[..]).chain(rules).collect::<Vec<_>>()).to_be_bytes();
        let written = match &self.form {
            Form::Otlp(traces) => otlp::write(&mut input, &self.tree, traces, mask, &mut to),
            Form::Csv(Some(columns)) => csv::write(&mut input, columns, &self.tree, mask, &mut to),
            Form::Csv(None) => Ok(()),
            Form::Log(_) => log::write(&mut input, &self.tree, &mut to),
        };
        written.map_err(|fault| fault.of(&self.path))?;
        to.flush().map_err(PruneError::Write)?;
        match input.hash() == self.hash {
            true => Ok(()),
            false => {
                let why = "it changed while it was read; copy it first".to_string();
                Err(PruneError::File { path: self.path.clone(), why })
            }
        }
    }

    /// Returns the sums of the trace before and after.
    #[must_use]
    pub fn report(&self) -> PruneReport {
        PruneReport::of(sums::of(&self.tree), self.rules.clone(), self.notes())
    }

    /// Returns the sums of two traces by statement.
    #[must_use]
    pub fn compared(&self, other: &PrunedTrace) -> PruneReport {
        let ([before, _], [after, _]) = (sums::of(&self.tree), sums::of(&other.tree));
        let notes = self.notes().into_iter().chain(other.notes()).collect();
        // Top spans of a copy may have names with new ids.
        PruneReport { tops: Vec::new(), ..PruneReport::of([before, after], Vec::new(), notes) }
    }

    fn notes(&self) -> Vec<String> {
        let Tree { missing, outside, clamped, .. } = self.tree;
        let several = match &self.form {
            Form::Otlp(traces) => traces.several_tops,
            _ => 0,
        };
        let counted = [
            (
                missing,
                "spans whose parent is not in the file",
                "each is a top span here, and the rest of its trace is unknown",
            ),
            (
                several,
                "top spans behind the first of their trace",
                "the duration of such a trace as a whole is unknown",
            ),
            (outside, "children outside of their parent's time, or longer", "only the part inside counts"),
            (clamped, "sums set to 0 or to their span's duration", "less than that was left of them"),
        ];
        let counted = counted.into_iter().filter(|(count, ..)| *count > 0);
        let mut notes: Vec<String> =
            counted.map(|(count, what, then)| format!("{what}: {count}; {then}")).collect();
        let unused = self.rules.iter().filter(|(_, count)| *count == 0);
        notes.extend(unused.map(|(text, _)| format!("no span satisfies {text}")));
        if let Form::Log(Some(note)) = &self.form {
            notes.push(note.clone());
        }
        notes
    }
}

fn head(input: &mut Input) -> Result<String, Fault> {
    let ahead = input.ahead()?;
    Ok(String::from_utf8_lossy(&ahead[..ahead.len().min(HEAD_BYTES)]).into_owned())
}

impl Fault {
    fn of(self, path: &Path) -> PruneError {
        let (path, line) = (path.to_path_buf(), self.line);
        match self.why {
            FaultKind::Read(source) => PruneError::Read { path, source },
            FaultKind::Write(error) => PruneError::Write(error),
            FaultKind::Cut(within) => PruneError::Cut { path, line, within },
            FaultKind::Other(why) => PruneError::Line { path, line, why },
        }
    }
}

#[cfg(test)]
mod tests;
