//! `plumb share`: a copy of a bundle or a file without the names in it.

use crate::arguments::ShareOf;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::targets::KINDS;
use crate::{calibrate, output};
use plumb_engine::Setting;
use plumb_engine::settings::Domain;
use plumb_events::{Event, IoStream, Statistic};
use plumb_foreign::names::{Named, words};
use plumb_foreign::reader::reports;
use plumb_foreign::{READERS, Source};
use plumb_pages::{rendered, study};
use plumb_record::{FILE, Record};
use plumb_study::bundle::{CALIBRATION, Reservation, STUDY};
use plumb_study::definition::catalog;
use plumb_study::share::names::{Names, Secret};
use plumb_study::share::{Shared, of_file, of_run, of_study};
use plumb_study::verify;
use plumb_workload::WORKLOADS;
use serde_json::json;
use std::path::Path;

/// Writes the copy and prints the replaced names. Fails if there is nothing to share, the directory
/// is not empty, or the copy of a study does not verify.
pub fn run(arguments: &ShareOf) -> Result<Outcome, Failure> {
    let mut names = Names::new(kept());
    arguments.name.iter().for_each(|name| names.add(Secret::Word, name));
    let shared = shared(&arguments.bundle, &mut names)?;
    let reservation = Reservation::named(&arguments.output)?;
    shared.write(reservation.directory())?;
    drop(reservation);
    let is_study = arguments.bundle.join(STUDY).is_file();
    let verified = match is_study {
        true => {
            let verified = verify::verify(&arguments.output, KINDS, study::rendered)?;
            format!(", and verifies with the hash {}", verified.evidence)
        }
        false => String::new(),
    };
    let replaced = shared.replaced(&names);
    if arguments.json {
        let rows = replaced.iter().map(
            |name| json!({ "replaced_by": name.replacement, "places": name.places, "name": name.original }),
        );
        output::print_json(&json!({
            "output": arguments.output.display().to_string(),
            "files": shared.files.len(),
            "replaced": rows.collect::<Vec<_>>(),
        }))?;
        return Ok(Outcome::Fine);
    }
    let places: usize = replaced.iter().map(|name| name.places).sum();
    output::print(&format!(
        "{} has {}; {} replaced in {}{verified}\n",
        arguments.output.display(),
        output::counted(shared.files.len() as u64, "file"),
        output::counted(replaced.len() as u64, "name"),
        output::counted(places as u64, "place"),
    ))?;
    let head = ["REPLACED BY", "PLACES", "NAME"].map(String::from).to_vec();
    let rows = replaced.into_iter().map(|name| {
        let first = name.original.lines().next().unwrap_or_default().to_string();
        vec![name.replacement, name.places.to_string(), first]
    });
    output::print(&output::aligned_under_head(&std::iter::once(head).chain(rows).collect::<Vec<_>>()))?;
    Ok(Outcome::Fine)
}

fn shared(bundle: &Path, names: &mut Names) -> Result<Shared, Failure> {
    let page = |record: &Record| rendered(&plumb_pages::run::document(record)).map(|(_, text)| text);
    match bundle {
        study if study.join(STUDY).is_file() => Ok(of_study(study, KINDS, study::rendered, names)?),
        calibration if calibration.join(CALIBRATION).is_file() => calibrate::shared(calibration, names),
        run if run.is_dir() || run.ends_with(FILE) => Ok(of_run(run, page, names)?),
        file => {
            add_fields(file, names);
            Ok(of_file(file, names)?)
        }
    }
}

/// Adds the names in the fields of known reports, and keeps the words that all reports have.
fn add_fields(file: &Path, names: &mut Names) {
    let Ok(source) = Source::read(file) else { return };
    let Ok(reports) = reports(&source, READERS) else { return };
    let words = words(reports.iter().map(|(_, report)| report));
    names.keep(words.vocabulary.iter().map(String::as_str));
    for (name, named) in &words.names {
        let secret = match named {
            Named::Host => Secret::Host,
            Named::User => Secret::User,
            Named::Thing => Secret::Name,
            Named::Statement => Secret::Sql,
        };
        names.add_field(secret, name);
    }
}

/// Returns words that a copy keeps: names of settings, events and workloads tell nothing about
/// whose system it was.
fn kept() -> Vec<&'static str> {
    let settings = Setting::ALL.iter().map(|setting| setting.row());
    let values = settings.clone().flat_map(|row| match row.domain {
        Domain::Word(words) => words.to_vec(),
        _ => Vec::new(),
    });
    let parameters = WORKLOADS.iter().flat_map(|workload| workload.parameters);
    let words = parameters.clone().flat_map(|parameter| match parameter.takes {
        Domain::Word(words) => words.to_vec(),
        _ => Vec::new(),
    });
    let studies = catalog::FILES.iter().map(|(file, _)| file.trim_end_matches(".toml"));
    let mut kept: Vec<&'static str> = settings.map(|row| row.name).chain(values).chain(studies).collect();
    kept.extend(WORKLOADS.iter().map(|workload| workload.name));
    kept.extend(parameters.map(|parameter| parameter.name).chain(words));
    kept.extend(Event::ALL.iter().map(|event| event.name()));
    kept.extend(Statistic::ALL.iter().map(|statistic| statistic.name()));
    kept.extend(IoStream::ALL.iter().map(|stream| stream.name()));
    kept
}
