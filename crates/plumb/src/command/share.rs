//! `plumb share`: a copy of a bundle or a file without the names in it.

use crate::arguments::ShareOf;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::targets::KINDS;
use crate::{calibrate, output};
use plumb_engine::Setting;
use plumb_engine::settings::Domain;
use plumb_events::{Event, IoStream, Statistic};
use plumb_figures::bound::BOUNDS;
use plumb_findings::rules;
use plumb_foreign::{READERS, Source, share, stored};
use plumb_pages::{rendered, study};
use plumb_record::{FILE, Record};
use plumb_share::Tokens;
use plumb_study::bundle::{CALIBRATION, Reservation, STUDY};
use plumb_study::share::{Shared, of_claim, of_run, of_study, shipped, write};
use plumb_study::verify;
use plumb_workload::WORKLOADS;
use serde_json::json;
use std::path::Path;

/// Most words that are printed with their tokens; `--json` prints all.
const SHOWN_MOST: usize = 40;
/// Endings of files that say the kind of their contents.
const ENDINGS: [&str; 11] = ["txt", "html", "htm", "json", "toml", "lst", "log", "trc", "csv", "md", "out"];

/// Writes the copy and prints the replaced words. Fails if there is nothing to share, the directory
/// is not empty, or the copy of a study does not verify.
pub fn run(arguments: &ShareOf) -> Result<Outcome, Failure> {
    let names = own_names();
    let mut tokens = Tokens::new(names.iter().map(String::as_str));
    arguments.name.iter().for_each(|name| tokens.unlist(name));
    let reservation = Reservation::named(&arguments.output)?;
    let files = copied(&arguments.bundle, &mut tokens)?;
    let is_study = arguments.bundle.join(STUDY).is_file();
    write(&files, reservation.directory())?;
    drop(reservation);
    let verify = || verify::verify(&arguments.output, KINDS, study::rendered);
    let verified = is_study.then(verify).transpose()?;
    let left_out = tokens.dropped;
    if arguments.json {
        let rows =
            tokens.all().into_iter().map(|(token, word)| json!({ "replaced_by": token, "word": word }));
        output::print_json(&json!({
            "output": arguments.output.display().to_string(),
            "files": files.len(),
            "left_out": left_out,
            "replaced": rows.collect::<Vec<_>>(),
        }))?;
        return Ok(Outcome::Fine);
    }
    let verified = verified
        .map_or(String::new(), |verified| format!(", and verifies with the hash {}", verified.evidence));
    output::print(&format!(
        "{} has {}; {} replaced, {} not understood and left out{verified}\n",
        arguments.output.display(),
        output::counted(files.len() as u64, "file"),
        output::counted(tokens.len() as u64, "word"),
        output::counted(left_out, "line or field"),
    ))?;
    let head = ["REPLACED BY", "WORD"].map(String::from).to_vec();
    let rows = tokens
        .all()
        .into_iter()
        .take(SHOWN_MOST)
        .map(|(token, word)| vec![token.to_string(), word.to_string()]);
    output::print(&output::aligned_under_head(&std::iter::once(head).chain(rows).collect::<Vec<_>>()))?;
    if tokens.len() > SHOWN_MOST {
        output::print(&format!("and {} more; --json lists all\n", tokens.len() - SHOWN_MOST))?;
    }
    Ok(Outcome::Fine)
}

fn copied(bundle: &Path, tokens: &mut Tokens) -> Result<Shared, Failure> {
    let page = |record: &Record| rendered(&plumb_pages::run::document(record)).map(|(_, text)| text);
    let failed = |error: plumb_foreign::ForeignError| Failure::run(error.to_string());
    match bundle {
        study if study.join(STUDY).is_file() => Ok(of_study(study, KINDS, study::rendered, tokens)?),
        calibration if calibration.join(CALIBRATION).is_file() => calibrate::shared(calibration, tokens),
        run if run.is_dir() || run.ends_with(FILE) => {
            let mut files = of_run(run, page, tokens)?;
            let tables = share::tables(run, tokens).map_err(failed)?;
            files.extend(tables.map(|text| (stored::FILE.to_string(), text.into_bytes())));
            Ok(files)
        }
        file => {
            let source = Source::read(file)
                .map_err(|error| Failure::run(format!("{error}; name a bundle's directory, or a report")))?;
            let claim = of_claim(source.part(0, source.len()).text, tokens);
            let text = claim.map_or_else(|| share::copy(&source, READERS, tokens), Ok).map_err(failed)?;
            let ending = file.extension().and_then(|ending| ending.to_str());
            let ending = ending.filter(|ending| ENDINGS.contains(ending)).unwrap_or("txt");
            Ok(vec![(format!("copy.{ending}"), text.into_bytes())])
        }
    }
}

/// Returns the names that a copy keeps: settings, events, workloads and the studies that ship tell
/// nothing about whose system it was.
fn own_names() -> Vec<String> {
    let settings = Setting::ALL.iter().map(|setting| setting.row());
    let words = |domain: Domain| match domain {
        Domain::Word(words) => words.to_vec(),
        _ => Vec::new(),
    };
    let parameters = WORKLOADS.iter().flat_map(|workload| workload.parameters);
    let mut names: Vec<&str> = settings.clone().map(|row| row.name).collect();
    names.extend(settings.clone().flat_map(|row| words(row.domain)));
    names.extend(parameters.clone().map(|parameter| parameter.name));
    names.extend(parameters.flat_map(|parameter| words(parameter.takes)));
    names.extend(WORKLOADS.iter().map(|workload| workload.name));
    names.extend(Event::ALL.iter().map(|event| event.name()));
    names.extend(Statistic::ALL.iter().map(|statistic| statistic.name()));
    names.extend(IoStream::ALL.iter().map(|stream| stream.name()));
    names.extend(BOUNDS.iter().map(|bound| bound.name));
    names.extend(rules().map(|rule| rule.id));
    names.into_iter().map(str::to_string).chain(shipped()).collect()
}
