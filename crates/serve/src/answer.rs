//! Bodies of the routes, which commands print as well.

use crate::Program;
use crate::health::Health;
use plumb_calibrate::Calibration;
use plumb_foreign::figure::stamp;
use plumb_foreign::{ForeignError, page, stored};
use plumb_pages::figure_series;
use plumb_pages::list::{self, RowList};
use plumb_pages::series::{self, Member};
use plumb_record::figures::{FIGURES, FigureRow};
use plumb_record::{FILE, Record};
use plumb_report::{Document, html};
use plumb_study::StudyError;
use plumb_study::bundle::listing::{self, FoundBundle, REPORTS_BELOW};
use plumb_study::bundle::{CALIBRATION, Contents, RUNS, STUDY, json, run_record, text};
use plumb_study::compare::{Comparison, compare};
use plumb_study::provenance::Provenance;
use plumb_study::report::{self, Derived};
use std::fs;
use std::path::{Path, PathBuf};

/// Runs in a series at most, the newest: a search for steps takes the square of their number.
const SERIES_MOST: usize = 200;

/// A request that is refused: an HTTP status and one line.
#[derive(Debug, PartialEq, Eq)]
pub struct HttpRefusal {
    pub status: u16,
    pub line: String,
}

impl HttpRefusal {
    pub fn new(status: u16, line: impl Into<String>) -> HttpRefusal {
        HttpRefusal { status, line: line.into() }
    }
}

impl From<StudyError> for HttpRefusal {
    fn from(error: StudyError) -> HttpRefusal {
        let status = match error {
            StudyError::Sides { .. } | StudyError::Plan { .. } => 400,
            _ => 500,
        };
        HttpRefusal::new(status, error.to_string())
    }
}

/// Directories whose bundles are served.
pub struct Site {
    pub program: Program,
    pub directories: Vec<PathBuf>,
}

/// A bundle of a list, with the name that its routes have.
pub struct Named {
    /// Name of the directory; that of the N-th served directory follows `N!`, from 2 on. Empty for
    /// a command that left no bundle.
    pub id: String,
    pub found: FoundBundle,
}

impl Site {
    /// Returns all bundles, the oldest first.
    pub fn found(&self) -> Result<Vec<Named>, HttpRefusal> {
        let mut all = Vec::new();
        for (number, directory) in (1..).zip(&self.directories) {
            for found in listing::find(directory, self.program.kinds)? {
                let name = found.path.as_ref().and_then(|path| path.file_name()?.to_str());
                let id = match name {
                    Some(name) if number > 1 => format!("{number}!{name}"),
                    name => name.unwrap_or_default().to_string(),
                };
                all.push(Named { id, found });
            }
        }
        all.sort_by(|one, two| one.found.head.date.cmp(&two.found.head.date));
        Ok(all)
    }

    pub fn bundles(&self) -> Result<RowList, HttpRefusal> {
        let found: Vec<FoundBundle> = self.found()?.into_iter().map(|named| named.found).collect();
        Ok(list::bundles(&found))
    }

    /// Returns the directory of a bundle. Fails if the name leads elsewhere, or the bundle has a
    /// link.
    pub fn path(&self, id: &str) -> Result<PathBuf, HttpRefusal> {
        let numbered = id.split_once('!').and_then(|(number, name)| {
            let number: usize = number.parse().ok()?;
            Some((self.directories.get(number.checked_sub(1).filter(|place| *place > 0)?)?, name))
        });
        let first = self.directories.first().map(|directory| (directory, id));
        let unknown = || HttpRefusal::new(404, format!("there is no bundle {id:?}; /bundles lists them"));
        let (directory, name) = numbered.or(first).ok_or_else(unknown)?;
        let is_name = !matches!(name, "" | "." | "..") && !name.contains(['/', '\\', '\0']);
        let path = directory.join(REPORTS_BELOW).join(name);
        let is_directory = || fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir());
        if !is_name || !is_directory() {
            return Err(unknown());
        }
        match [path.clone(), path.join(RUNS)].iter().find_map(|inside| link_in(inside)) {
            Some(link) => {
                Err(HttpRefusal::new(403, format!("{} is a link, and none is followed", link.display())))
            }
            None => Ok(path),
        }
    }

    fn require(&self, id: &str, kind: &str, has: bool, route: &str) -> Result<(), HttpRefusal> {
        match has {
            true => Ok(()),
            false => Err(HttpRefusal::new(404, format!("{id} is no {kind}: see /bundles/{id}/{route}"))),
        }
    }

    /// Returns the record of a run or a calibration, as `plumb report BUNDLE --json` prints it.
    pub fn record(&self, id: &str) -> Result<String, HttpRefusal> {
        let path = self.path(id)?;
        self.require(id, "run", !path.join(STUDY).is_file(), "analysis")?;
        if path.join(CALIBRATION).is_file() {
            return Ok(calibration(&path)?.answered(&text(&path.join(CALIBRATION))?));
        }
        let (directory, record) = run_record(&path)?;
        let wrong = |why: String| HttpRefusal::new(500, why);
        let document = run_document(&directory, &record).map_err(|error| wrong(error.to_string()))?;
        Ok(document.answered(&record.to_json().map_err(|error| wrong(error.to_string()))?))
    }

    /// Returns the analysis of a study, as `plumb report BUNDLE --json` prints it.
    pub fn analysis(&self, id: &str) -> Result<String, HttpRefusal> {
        let path = self.path(id)?;
        self.require(id, "study", path.join(STUDY).is_file(), "record")?;
        let analysis = self.derived(&path)?.analysis;
        Ok(plumb_pages::study::document(&analysis).answered(&json(&analysis)?))
    }

    /// Returns the page of a bundle, from its data.
    pub fn report(&self, id: &str) -> Result<String, HttpRefusal> {
        let path = self.path(id)?;
        if path.join(STUDY).is_file() {
            return Ok(html::render(&plumb_pages::study::document(&self.derived(&path)?.analysis)));
        }
        if path.join(CALIBRATION).is_file() {
            return Ok(html::render(&calibration(&path)?));
        }
        let (directory, record) = run_record(&path)?;
        let document = run_document(&directory, &record);
        Ok(html::render(&document.map_err(|error| HttpRefusal::new(500, error.to_string()))?))
    }

    fn derived(&self, path: &Path) -> Result<Derived, HttpRefusal> {
        let (manifest, contents) = Contents::read(path, self.program.kinds)?;
        Ok(report::derive(&contents, manifest.evidence(), plumb_pages::study::rendered)?)
    }

    /// Compares two bundles, or arms as `ID:ARM`.
    pub fn compare(&self, first: &str, second: &str) -> Result<Comparison, HttpRefusal> {
        let [first, second] = [self.side(first)?, self.side(second)?];
        Ok(compare(&first, &second, self.program.kinds)?)
    }

    fn side(&self, named: &str) -> Result<String, HttpRefusal> {
        match (self.path(named), named.rsplit_once(':')) {
            (Ok(path), _) => Ok(path.display().to_string()),
            (Err(HttpRefusal { status: 404, .. }), Some((id, arm))) => {
                Ok(format!("{}:{arm}", self.path(id)?.display()))
            }
            (Err(refusal), _) => Err(refusal),
        }
    }

    pub fn comparison(&self, first: &str, second: &str) -> Result<String, HttpRefusal> {
        let comparison = self.compare(first, second)?;
        Ok(plumb_pages::compare::document(&comparison).answered(&json(&comparison)?))
    }

    /// Returns the series of all runs of a workload. `figure` may be empty.
    pub fn series(&self, figure: &str, workload: &str) -> Result<Document, HttpRefusal> {
        let figure = figure_named(figure).map_err(|line| HttpRefusal::new(400, line))?;
        let asks = |named: &Named| {
            let word = named.found.head.asked.split(' ').next();
            named.found.head.kind == "run" && (workload.is_empty() || word == Some(workload))
        };
        let mut paths: Vec<String> = self
            .found()?
            .into_iter()
            .filter(asks)
            .map(|named| named.id)
            .filter(|id| !id.is_empty())
            .collect();
        paths.drain(..paths.len().saturating_sub(SERIES_MOST));
        let mut all = Vec::new();
        for id in paths {
            let path = self.path(&id)?;
            all.push((path.display().to_string(), run_record(&path)?.1));
        }
        let (document, _) = series(all, figure, self.program.version)
            .map_err(|error| HttpRefusal::new(400, format!("{error}; ?workload= names one")))?;
        Ok(document)
    }

    pub fn health(&self) -> Result<Health, HttpRefusal> {
        Ok(Health::of(&self.program, &self.directories)?)
    }
}

/// Returns a link among the entries of a directory.
fn link_in(directory: &Path) -> Option<PathBuf> {
    let mut entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.find(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink())).map(|entry| entry.path())
}

fn calibration(path: &Path) -> Result<Document, HttpRefusal> {
    let refused =
        |name: &str, why: String| HttpRefusal::new(500, format!("{}: {why}", path.join(name).display()));
    let made = Calibration::from_json(&text(&path.join(CALIBRATION))?)
        .map_err(|error| refused(CALIBRATION, error.to_string()))?;
    let by =
        Provenance::from_json(&text(&path.join(FILE))?).map_err(|error| refused(FILE, error.to_string()))?;
    Ok(plumb_pages::calibration::document(&made, &by))
}

/// Builds the report of a run, or of the report of another program that its bundle keeps.
pub fn run_document(directory: &Path, record: &Record) -> Result<Document, ForeignError> {
    let Some(imported) = &record.imported else { return Ok(plumb_pages::run::document(record)) };
    let tables = stored::read(directory)?;
    let findings = plumb_pages::run::findings(record).into_iter().collect();
    Ok(page::of_record(record, imported, &tables, findings))
}

/// Finds a figure by its name, in any case; `None` for an empty name. Fails with all names.
pub fn figure_named(name: &str) -> Result<Option<&'static FigureRow>, String> {
    if name.is_empty() {
        return Ok(None);
    }
    let found = FIGURES.iter().find(|row| row.name.eq_ignore_ascii_case(name));
    found.map(Some).ok_or_else(|| {
        let names: Vec<&str> = FIGURES.iter().map(|row| row.name).collect();
        format!("there is no figure {name:?}; there are {}", names.join("; "))
    })
}

#[derive(Debug, thiserror::Error)]
pub enum SeriesError {
    #[error("no report says how long its interval was")]
    Empty,
    #[error("{file} is of {other}, and the first report is of {first}; name reports of one database")]
    Mixed { file: String, other: String, first: String },
    #[error("{0}")]
    Figure(String),
}

/// Builds the report of named records, in the order of their begin: of a figure, or of average
/// active sessions with their parts. Returns false if a begin has no known form, so that the order
/// is that of `all`.
pub fn series(
    mut all: Vec<(String, Record)>,
    figure: Option<&'static FigureRow>,
    version: &str,
) -> Result<(Document, bool), SeriesError> {
    let (_, first) = all.first().ok_or(SeriesError::Empty)?;
    let first = first.header.workload.clone();
    if let Some((file, other)) = all.iter().find(|(_, record)| record.header.workload != first) {
        let (file, other) = (file.clone(), other.header.workload.clone());
        return Err(SeriesError::Mixed { file, other, first });
    }
    let second = |record: &Record| stamp::second(&record.header.begin_time);
    let is_dated = all.iter().all(|(_, record)| second(record).is_some());
    if is_dated {
        all.sort_by_key(|(_, record)| second(record));
    }
    let members: Vec<Member<'_>> =
        all.iter().map(|(name, record)| Member { name: name.clone(), record }).collect();
    let document = match figure {
        Some(figure) => figure_series::document(&members, figure, version).map_err(SeriesError::Figure)?,
        None => series::document(&members, version),
    };
    Ok((document, is_dated))
}
