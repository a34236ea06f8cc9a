//! Named baselines: bundles that later runs are compared with.
//!
//! A baseline is a file NAME.baseline in `plumb-reports` with the path of its bundle. The bundle
//! stays where it is, because a comparison needs all of it. Saving a name again moves it to another
//! bundle.

use crate::failure::Failure;
use crate::history::REPORTS;
use crate::output;
use plumb_io::cure;
use plumb_record::outside;
use plumb_study::bundle::run_record;
use plumb_units::nearest;
use std::fs;
use std::path::{Path, PathBuf};

const ENDING: &str = "baseline";

fn file(name: &str) -> PathBuf {
    Path::new(REPORTS).join(format!("{name}.{ENDING}"))
}

/// Keeps a name for the bundle of a run.
///
/// # Errors
/// When it is no bundle of a run, or the file cannot be written.
pub fn save(name: &str, bundle: &Path) -> Result<(), Failure> {
    run_record(bundle)?;
    let path = file(name);
    let refused = |error: std::io::Error| {
        let cure = cure(&error, &path, "make plumb-reports here, or run in its directory");
        Failure::run(format!("cannot write the baseline {}: {error}{cure}", path.display()))
    };
    let whole = bundle.canonicalize().map_err(refused)?;
    let shown = whole.to_str().ok_or_else(|| {
        Failure::run(format!("cannot keep {} as a baseline: its path is no UTF-8", whole.display()))
    })?;
    fs::create_dir_all(REPORTS).map_err(refused)?;
    fs::write(&path, format!("{shown}\n")).map_err(refused)?;
    output::remark(&format!("baseline {name} is {shown}\n"));
    Ok(())
}

/// Returns the bundle of a name.
///
/// # Errors
/// When there is no baseline of this name.
pub fn find(name: &str) -> Result<String, Failure> {
    let path = file(name);
    let text = outside::text(&path).map_err(|error| {
        let known = names();
        let near = nearest(name, known.iter().map(String::as_str));
        let near = near.map_or(String::new(), |near| format!(" (did you mean {near}?)"));
        Failure::usage(format!(
            "--baseline {name}: {}: {error}{near}; `plumb compare BUNDLE --save-baseline {name}` makes one",
            path.display()
        ))
    })?;
    Ok(text.trim_end_matches('\n').to_string())
}

fn names() -> Vec<String> {
    let entries = fs::read_dir(REPORTS).into_iter().flatten().flatten();
    let name = |entry: fs::DirEntry| {
        let path = entry.path();
        let is_one = path.extension().is_some_and(|ending| ending == ENDING);
        is_one.then(|| path.file_stem()?.to_str().map(str::to_string)).flatten()
    };
    let mut names: Vec<String> = entries.filter_map(name).collect();
    names.sort_unstable();
    names
}
