//! Fills the directories of `--path` into a study.
//!
//! A study that compares places has `"@1"`, `"@2"` and so on for each `--path`, or `"@ext4"` for a
//! file system made for it (`file_systems`). Any other study with two or more places gets a factor
//! of them, with a claim for each against the first.

use super::file_systems;
use crate::failure::Failure;
use plumb_io::named_directory;
use plumb_run::loops;
use plumb_study::definition::{Draft, DraftClaim, DraftValue};
use plumb_units::path_text;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Expectation for each place against the first.
pub const AS_GOOD: &str = "equal within 10%";
/// The option that names places.
const OPTION: &str = "--path";

/// Fills these places into a study. Fails if a place is missing, or one more is
/// named than the study has.
pub fn fill(draft: &mut Draft<'_>, paths: &[PathBuf]) -> Result<(), Failure> {
    require_different(paths)?;
    let base = paths.first().map_or(Path::new("."), PathBuf::as_path);
    for kind in file_systems::asked(draft) {
        let mounted = loops::mount_point(&plain(base)?, kind);
        draft.replace(&format!("@{}", kind.name), &path_text(&mounted));
    }
    let asked = (1..).take_while(|number| draft.has(&format!("@{number}"))).count();
    if asked == 0 && paths.len() > 1 {
        return add_factor(draft, paths);
    }
    if asked > 0 && asked != paths.len() {
        return Err(Failure::usage(format!(
            "this study compares {asked} places, and {} named; name each of them with a --path",
            match paths.len() {
                1 => "1 was".to_string(),
                several => format!("{several} were"),
            }
        )));
    }
    if ["temp_path", "index_path"].iter().any(|key| draft.has_key(key)) {
        require_two_devices(paths)?;
    }
    for (number, path) in (1..=asked).zip(paths) {
        draft.replace(&format!("@{number}"), &path_text(&plain(path)?));
    }
    Ok(())
}

/// Returns the directories of places to be compared. Fails if one is missing, or two are the same.
pub fn different(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    require_different(paths)?;
    paths.iter().map(|path| plain(path)).collect()
}

/// Fails on a place that is named twice, in any spelling: a comparison with itself.
fn require_different(paths: &[PathBuf]) -> Result<(), Failure> {
    let why = "are one directory, and places are compared with each other; name two";
    require_apart(paths, |path| path.canonicalize().ok(), why)
}

/// Fails if two places of different kinds of files are on one device: there is nothing to compare.
fn require_two_devices(paths: &[PathBuf]) -> Result<(), Failure> {
    let why =
        "are on one device, and this study moves files from one device to another; name directories on two";
    require_apart(paths, |path| std::fs::metadata(path).ok().map(|found| found.dev()), why)
}

/// Fails if two paths have the same of something. A missing place fails where it is needed.
fn require_apart<T: PartialEq>(
    paths: &[PathBuf],
    of: impl Fn(&Path) -> Option<T>,
    why: &str,
) -> Result<(), Failure> {
    for (number, path) in paths.iter().enumerate().skip(1) {
        let same = paths[..number].iter().find(|other| of(other).is_some() && of(other) == of(path));
        if let Some(same) = same {
            return Err(Failure::usage(format!(
                "--path {} and --path {} {why}",
                same.display(),
                path.display()
            )));
        }
    }
    Ok(())
}

/// Returns an existing directory whose name a study can contain.
fn plain(path: &Path) -> Result<PathBuf, Failure> {
    let found = named_directory::require("--path", path)?;
    match loops::is_plain(&found) {
        true => Ok(found),
        false => Err(Failure::usage(format!(
            "--path {}: a comma, a quotation mark or a backslash in its name cannot stand in a study; name another directory",
            found.display()
        ))),
    }
}

/// Adds a factor of the places, named after them, and a claim for each except the first.
fn add_factor(draft: &mut Draft<'_>, paths: &[PathBuf]) -> Result<(), Failure> {
    let places =
        paths.iter().map(|path| Ok(path_text(&plain(path)?))).collect::<Result<Vec<_>, Failure>>()?;
    let levels = places.iter().map(|place| DraftValue::from(place.as_str())).collect();
    draft.push(
        OPTION,
        "factor",
        [("name", "place".into()), ("setting", "path".into()), ("levels", DraftValue::List(levels))],
    );
    for (number, (path, place)) in (1..).zip(paths.iter().zip(&places)).skip(1) {
        let text = format!("{} is as good as {}, within 10%.", path_text(path), path_text(&paths[0]));
        let claim = DraftClaim {
            name: &format!("path-{number}"),
            text: &text,
            factor: "place",
            from: &places[0],
            to: place,
            expect: AS_GOOD,
        };
        draft.push_claim(OPTION, &claim);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of a study with these places in it, as they are checked.
    fn filled(text: &str, paths: &[PathBuf]) -> Result<String, Failure> {
        let mut draft = Draft::of_text("x.toml", text).expect("TOML");
        fill(&mut draft, paths)?;
        Ok(format!("{draft:?}"))
    }

    #[test]
    fn places_stand_where_they_are_meant_and_none_may_be_missing() {
        let directory = tempfile::tempdir().expect("a directory");
        let [one, other] = ["one", "other"].map(|name| directory.path().join(name));
        let shown = |path: &Path| format!("{:?}", path_text(&path.canonicalize().expect("it is there")));
        [&one, &other].iter().for_each(|path| std::fs::create_dir(path).expect("a directory"));
        let two = "a = \"@1\"\nb = \"@2\"\n";
        let both = filled(two, &[one.clone(), other.clone()]).expect("two places");
        let at = |path: &Path| both.find(&format!("String({})", shown(path)));
        assert!(at(&one).is_some() && at(&one) < at(&other), "{both}");
        let error = filled(two, std::slice::from_ref(&one)).expect_err("one is missing").message;
        assert!(error.contains("compares 2 places, and 1 was named"), "{error}");
        let error = filled(two, &[one.clone(), other.join("../one")]).expect_err("the same").message;
        assert!(error.contains("are one directory"), "{error}");
        let plain = "name = \"x\"\n";
        let unchanged = format!("{:?}", Draft::of_text("x.toml", plain).expect("TOML"));
        assert_eq!(filled(plain, std::slice::from_ref(&one)).ok(), Some(unchanged));
        for name in ["storage-slob", "storage-commits", "storage-sort"] {
            let (_, text) = plumb_study::definition::catalog::text(name).expect("it comes with the program");
            assert!(text.contains("levels = [\"@1\", \"@2\"]"), "{name}");
        }
        let with_factor = filled(plain, &[one, other]).expect("a factor");
        for part in ["\"setting\"", "String(\"path\")", "String(\"path-2\")", AS_GOOD] {
            assert!(with_factor.contains(part), "{part}: {with_factor}");
        }
        assert!(filled(two, &["/no/such/place".into(), "/none".into()]).is_err());
    }
}
