//! `plumb audit`: checks published claims against their own figures and against bundles.

use crate::arguments::AuditOf;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::output;
use crate::targets::KINDS;
use plumb_audit::{Backing, Experiment, PublishedClaim, audit, catalog, parse};
use plumb_pages::{audit as page, study};
use plumb_record::outside;
use plumb_report::html;
use plumb_study::analysis::result::{JudgedClaim, Standing};
use plumb_study::{StudyError, bundle, verify};
use plumb_units::nearest;
use std::fs;
use std::path::{Path, PathBuf};

/// Most bytes of a claim file. The largest shipped one has 3 KB.
const FILE_MOST: u64 = 1 << 20;
/// Most claims of one audit.
const CLAIMS_MOST: usize = 10_000;

/// A claim, and the directory that its bundle's path is relative to.
struct Read {
    claim: PublishedClaim,
    from: PathBuf,
}

/// Audits claims; the outcome is that of the worst. Fails if a given bundle is
/// not of the claim's study.
pub fn run(arguments: &AuditOf) -> Result<Outcome, Failure> {
    let claims = read(&arguments.claims)?;
    if let (Some(bundle), [_, another, ..]) = (&arguments.bundle, &claims[..]) {
        let (bundle, name) = (bundle.display(), &another.claim.name);
        return Err(Failure::usage(format!(
            "--bundle {bundle} is one of one claim, and {name} is a second one; name one claim"
        )));
    }
    let mut audits = Vec::new();
    for Read { claim, from } in &claims {
        audits.push(audit(claim, &evidence(claim, from, arguments.bundle.as_deref())?));
    }
    let document = page::document(&audits);
    if let Some(path) = &arguments.html {
        bundle::write_new(path, &html::render(&document))?;
    }
    output::print(&match arguments.json {
        true => bundle::json(&audits)?,
        false => output::report(&document),
    })?;
    Ok(Outcome::Stands(page::worst(&audits).unwrap_or(Standing::Proved)))
}

/// Reads the named claims: files, directories, or shipped claims.
fn read(named: &[PathBuf]) -> Result<Vec<Read>, Failure> {
    let refused = |error: plumb_audit::ClaimError| Failure::usage(error.to_string());
    if named.is_empty() {
        let claims = catalog::all().map_err(refused)?.into_iter();
        return Ok(claims.map(|claim| Read { claim, from: PathBuf::from(".") }).collect());
    }
    let mut claims = Vec::new();
    for path in named {
        match path.to_str().and_then(catalog::find).filter(|_| !path.exists()) {
            Some(claim) => claims.push(Read { claim: claim.map_err(refused)?, from: PathBuf::from(".") }),
            None => {
                for file in files(path)? {
                    claims.push(of_file(&file)?);
                }
            }
        }
        if claims.len() > CLAIMS_MOST {
            return Err(Failure::usage(format!(
                "{} claims and more; expected {CLAIMS_MOST} at most",
                claims.len()
            )));
        }
    }
    Ok(claims)
}

/// Returns a file, or the claim files of a directory by name.
fn files(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    if !path.is_dir() {
        return Ok(vec![path.to_path_buf()]);
    }
    let entries = fs::read_dir(path)
        .map_err(|error| Failure::run(format!("cannot read {}: {error}", path.display())))?;
    let files = entries.flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> =
        files.filter(|file| file.extension().is_some_and(|end| end == "toml")).collect();
    files.sort();
    if files.is_empty() {
        let path = path.display();
        return Err(Failure::run(format!(
            "{path} has no claim file; expected one or more that end in .toml"
        )));
    }
    Ok(files)
}

fn of_file(path: &Path) -> Result<Read, Failure> {
    let shown = path.display().to_string();
    let too_long = fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() > FILE_MOST);
    if too_long {
        return Err(Failure::run(format!("{shown} is longer than {FILE_MOST} bytes, and no claim file")));
    }
    let text = outside::text(path).map_err(|error| {
        let names = || catalog::FILES.iter().map(|(file, _)| catalog::name_of(file));
        let near = nearest(&shown, names()).filter(|_| !path.exists());
        let near = near
            .map_or("`plumb list claims` shows those that come with the program".to_string(), |near| {
                format!("did you mean {near}?")
            });
        Failure::run(format!("cannot read the claim {shown}: {error}; {near}"))
    })?;
    let name = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let claim = parse(&shown, &name, &text).map_err(|error| Failure::usage(error.to_string()))?;
    Ok(Read { claim, from: path.parent().map_or_else(PathBuf::new, Path::to_path_buf) })
}

/// Verifies the bundle behind a claim and finds its verdict.
fn evidence(claim: &PublishedClaim, from: &Path, given: Option<&Path>) -> Result<Backing, Failure> {
    let Some(experiment) = &claim.experiment else {
        return match given {
            None => Ok(Backing::None),
            Some(_) => Err(Failure::usage(format!(
                "--bundle: {} names no study, so no bundle speaks of it; give it an [experiment]",
                claim.name
            ))),
        };
    };
    let named = experiment.bundle.as_ref().map(|bundle| from.join(bundle));
    let Some(directory) = given.map(Path::to_path_buf).or(named) else { return Ok(Backing::None) };
    let verified = match verify::verify(&directory, KINDS, study::rendered) {
        Ok(verified) => verified,
        Err(error @ StudyError::Tampered { .. }) => return Ok(Backing::Broken { why: error.to_string() }),
        Err(error) if given.is_none() => return Ok(Backing::Broken { why: error.to_string() }),
        Err(error) => return Err(error.into()),
    };
    let broken = |why: &str| Ok(Backing::Broken { why: format!("{}: {why}", directory.display()) });
    let Some(analysis) = &verified.analysis else {
        return broken("the study has not come to an analysis yet");
    };
    if analysis.study.name != experiment.study {
        return broken(&format!("it is of the study {}, expected {}", analysis.study.name, experiment.study));
    }
    let name = asked(experiment);
    let Some(judged) = analysis.claims.iter().find(|judged| judged.name == name) else {
        return broken(&format!("its study has no claim {name}"));
    };
    Ok(Backing::Sound {
        bundle: directory.display().to_string(),
        hash: verified.evidence.clone(),
        standing: standing(judged),
        verdict: judged.verdict.to_string(),
        change: judged.verdict.gain(),
    })
}

/// Returns the study's claim that corresponds to a published claim.
fn asked(experiment: &Experiment) -> &str {
    experiment.claim.as_deref().or(experiment.contrary.as_deref()).unwrap_or_default()
}

/// Returns the standing of a study's claim. The proved effect may be less than the claimed one.
fn standing(judged: &JudgedClaim) -> Standing {
    judged.standing()
}
