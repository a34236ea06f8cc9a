//! The places that `--path` names, in the text of a study.
//!
//! A study that compares places has `"@1"`, `"@2"` and so on for the first and the second `--path`,
//! or `"@ext4"` for a file system made for it (`file_systems`). Any other study with two or more
//! places gets a factor of them, and a claim for each against the first.

use super::file_systems;
use crate::failure::Failure;
use plumb_io::named_directory;
use plumb_run::loops;
use plumb_units::path_text;
use std::path::{Path, PathBuf};

/// Expectation for each place against the first.
pub const AS_GOOD: &str = "equal within 10%";

/// The text with these places in it.
///
/// # Errors
/// When a place is missing, or one more is named than the study has.
pub fn named(text: &str, paths: &[PathBuf]) -> Result<String, Failure> {
    require_different(paths)?;
    let base = paths.first().map_or(Path::new("."), PathBuf::as_path);
    let mut filled = text.to_string();
    for kind in file_systems::asked(text) {
        let mounted = loops::mount_point(&plain(base)?, kind);
        filled = filled.replace(&format!("\"@{}\"", kind.name), &quoted(&mounted));
    }
    let asked = (1..).take_while(|number| text.contains(&format!("\"@{number}\""))).count();
    if asked == 0 && paths.len() > 1 {
        return Ok(filled + &factor(paths)?);
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
    for (number, path) in (1..=asked).zip(paths) {
        filled = filled.replace(&format!("\"@{number}\""), &quoted(&plain(path)?));
    }
    Ok(filled)
}

/// The directories of places that are compared with each other.
///
/// # Errors
/// When one is not there, or two are one.
pub fn different(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    require_different(paths)?;
    paths.iter().map(|path| plain(path)).collect()
}

/// Fails on a place that is named twice, in any spelling: a comparison with itself.
fn require_different(paths: &[PathBuf]) -> Result<(), Failure> {
    // A missing place fails where it is needed.
    let there = |path: &PathBuf| path.canonicalize().ok();
    for (number, path) in paths.iter().enumerate().skip(1) {
        let same = paths[..number].iter().find(|other| there(other).is_some() && there(other) == there(path));
        if let Some(same) = same {
            return Err(Failure::usage(format!(
                "--path {} and --path {} are one directory, and places are compared with each other; name two",
                same.display(),
                path.display()
            )));
        }
    }
    Ok(())
}

/// A directory that is there, whose name can stand in a study.
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

fn quoted(path: &Path) -> String {
    format!("{:?}", path_text(path))
}

/// Returns a factor of the places, whose levels are the directories, and a claim
/// for each but the first.
fn factor(paths: &[PathBuf]) -> Result<String, Failure> {
    let places = paths.iter().map(|path| Ok(quoted(&plain(path)?))).collect::<Result<Vec<_>, Failure>>()?;
    let mut text =
        format!("\n[[factor]]\nname = \"place\"\nsetting = \"path\"\nlevels = [{}]\n", places.join(", "));
    for (number, (path, place)) in (1..).zip(paths.iter().zip(&places)).skip(1) {
        text.push_str(&format!(
            "\n[[claim]]\nname = \"path-{number}\"\ntext = {:?}\nfactor = \"place\"\nfrom = {}\nto = {place}\n\
             expect = \"{AS_GOOD}\"\n",
            format!("{} is as good as {}, within 10%.", path_text(path), path_text(&paths[0])),
            places[0]
        ));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_stand_where_they_are_meant_and_none_may_be_missing() {
        let directory = tempfile::tempdir().expect("a directory");
        let [one, other] = ["one", "other"].map(|name| directory.path().join(name));
        let shown = |path: &Path| quoted(&path.canonicalize().expect("it is there"));
        [&one, &other].iter().for_each(|path| std::fs::create_dir(path).expect("a directory"));
        let two = "a = \"@1\"\nb = \"@2\"\n";
        assert_eq!(
            named(two, &[one.clone(), other.clone()]).ok(),
            Some(format!("a = {}\nb = {}\n", shown(&one), shown(&other)))
        );
        let error = named(two, std::slice::from_ref(&one)).expect_err("one is missing").message;
        assert!(error.contains("compares 2 places, and 1 was named"), "{error}");
        let error = named(two, &[one.clone(), other.join("../one")]).expect_err("the same").message;
        assert!(error.contains("are one directory"), "{error}");
        assert_eq!(
            named("name = \"x\"\n", std::slice::from_ref(&one)).ok(),
            Some("name = \"x\"\n".to_string())
        );
        // The arms are called as the directories, in the shipped studies too.
        let levels = format!("levels = [{}, {}]\n", shown(&one), shown(&other));
        let shipped = named("levels = [\"@1\", \"@2\"]\n", &[one.clone(), other.clone()]).unwrap_or_default();
        assert_eq!(shipped, levels);
        for name in ["storage-slob", "storage-commits", "storage-sort"] {
            let (_, text) = plumb_study::definition::catalog::text(name).expect("it comes with the program");
            assert!(text.contains("levels = [\"@1\", \"@2\"]"), "{name}");
        }
        let with_factor = named("name = \"x\"\n", &[one, other]).unwrap_or_default();
        assert!(with_factor.contains(&levels), "{with_factor}");
        assert!(
            with_factor.contains("setting = \"path\"") && with_factor.contains("name = \"path-2\""),
            "{with_factor}"
        );
        assert!(named(two, &["/no/such/place".into(), "/none".into()]).is_err());
    }
}
