//! `plumb report`: the reports of a bundle of a run, a study or a calibration, rendered again.

use crate::arguments::{PrintForm, Report, ReportOf};
use crate::command::study::{self, End};
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::targets::KINDS;
use crate::{bundle, calibrate, output, run};
use plumb_foreign::{READERS, Source, import};
use plumb_pages::rendered;
use plumb_record::Record;
use plumb_report::format::{Figure, Reading};
use plumb_report::html;
use plumb_serve::{SeriesError, figure_named};
use plumb_study::best_level::best_level;
use plumb_study::bundle::{Contents, run_period, run_record, write_new};
use serde_json::json;
use std::path::Path;

/// Renders the reports of a bundle again, and prints the summary.
pub fn run(arguments: &Report) -> Result<Outcome, Failure> {
    if !arguments.series.is_empty() {
        return of_series(arguments);
    }
    let (bundle, end) = match arguments.of().map_err(Failure::usage)? {
        ReportOf::Period(bundle, period) => return of_period(&bundle, period, arguments.shown()),
        ReportOf::Whole(bundle) => (bundle, End::Kept),
        ReportOf::Ended(bundle) => (bundle, End::Here),
    };
    if bundle.join(plumb_study::bundle::STUDY).exists() {
        if let Some(factor) = &arguments.best {
            return best(&bundle, factor, arguments.limit.as_deref(), arguments.shown());
        }
        return study::rebuild(&bundle, end, arguments.picture.as_deref(), arguments.shown());
    }
    let of_studies = [
        (arguments.picture.is_some(), "--picture", "has no effects to draw"),
        (end == End::Here, "--end", "has ended"),
        (arguments.best.is_some(), "--best", "has no factor"),
        (arguments.format.is_some(), "--format", "has no claims"),
    ];
    if let Some((_, option, has)) = of_studies.into_iter().find(|(given, ..)| *given) {
        return Err(Failure::usage(format!(
            "{option}: {} is no study, and {has}; leave it out",
            bundle.display()
        )));
    }
    if bundle.join(plumb_study::bundle::CALIBRATION).exists() {
        return calibrate::rebuild(&bundle, arguments.shown());
    }
    let (directory, record) = run_record(&bundle)?;
    let document =
        plumb_serve::run_document(&directory, &record).map_err(|error| Failure::run(error.to_string()))?;
    let files = bundle::write(&directory, &rendered(&document))?;
    match arguments.shown() {
        PrintForm::Json => output::print(&document.answered(&record.to_json()?))?,
        _ => output::print(&(output::summary(&document) + &bundle::listed(&files)))?,
    }
    Ok(run::outcome(&record))
}

/// Prints the levels of a factor with the best of them.
fn best(bundle: &Path, factor: &str, limit: Option<&str>, shown: PrintForm) -> Result<Outcome, Failure> {
    let (_, contents) = Contents::read(bundle, KINDS)?;
    let found =
        best_level(&contents, factor, limit).map_err(|why| Failure::usage(format!("--best: {why}")))?;
    let label = |place: usize| found.levels[place].label.as_str();
    if shown == PrintForm::Json {
        let levels = found
            .levels
            .iter()
            .map(|row| json!({ "level": row.label, "median": row.median, "limited": row.limited }));
        output::print_json(&json!({
            "factor": found.factor,
            "measure": found.measure.title(),
            "unit": found.measure.unit(),
            "levels": levels.collect::<Vec<_>>(),
            "best": found.knee.map(|knee| label(knee.level)),
            "low": found.knee.map(|knee| label(knee.low)),
            "high": found.knee.map(|knee| label(knee.high)),
        }))?;
        return Ok(Outcome::Fine);
    }
    let mut head = vec![found.factor.to_uppercase(), found.measure.title(), String::new()];
    head.extend(found.limited.iter().map(|(measure, _)| measure.title()));
    let reading = |value: f64| Reading(value).figure();
    let rows = found.levels.iter().enumerate().map(|(place, row)| {
        let is_best = found.knee.is_some_and(|knee| knee.level == place);
        let within = found.knee.is_some_and(|knee| (knee.low..=knee.high).contains(&place));
        let mark = if is_best {
            "<- best"
        } else if within {
            "<- or this"
        } else {
            ""
        };
        let mut cells = vec![row.label.clone(), format!("{} {}", reading(row.median), found.measure.unit())];
        cells.push(mark.to_string());
        cells.extend(row.limited.zip(found.limited.as_ref()).map(|(value, (measure, limit))| {
            let over = if value > *limit { ", over the limit" } else { "" };
            format!("{} {}{over}", reading(value), measure.unit())
        }));
        cells
    });
    let said = match found.knee {
        Some(knee) => format!(
            "{factor}={}: the first level at 95% of the best; 95% interval {} to {}, by draws of blocks; a reading, no claim\n",
            label(knee.level),
            label(knee.low),
            label(knee.high)
        ),
        None => "no level keeps the limit\n".to_string(),
    };
    let table = output::aligned_under_head(&std::iter::once(head).chain(rows).collect::<Vec<_>>());
    output::print(&(table + &said)).map(|()| Outcome::Fine)
}

/// Prints the report of all reports of some files in the order of their begin; in the order of the
/// files where a begin is in a form that is not known.
fn of_series(arguments: &Report) -> Result<Outcome, Failure> {
    let (mut imports, mut all) = (Vec::new(), Vec::<(String, Record)>::new());
    for file in &arguments.series {
        if file.is_dir() {
            all.push((file.display().to_string(), run_record(file)?.1));
            continue;
        }
        let read = Source::read(file).and_then(|source| import(&source, READERS, env!("CARGO_PKG_VERSION")));
        imports.extend(read.map_err(|error| Failure::run(error.to_string()))?);
    }
    all.extend(imports.into_iter().filter_map(|import| Some((import.imported.file, import.record?))));
    let figure = figure_named(arguments.figure.as_deref().unwrap_or_default())
        .map_err(|why| Failure::usage(format!("--figure: {why}")))?;
    let refused = |error: SeriesError| Failure::run(format!("--series: {error}"));
    let (document, is_dated) =
        plumb_serve::series(all, figure, env!("CARGO_PKG_VERSION")).map_err(refused)?;
    if !is_dated {
        output::remark("the begin of a report has no known form: they are in the order of the files\n");
    }
    if let Some(path) = &arguments.html {
        write_new(path, &html::render(&document))?;
    }
    output::print(&match arguments.json {
        true => document.data + "\n",
        false => output::report(&document),
    })?;
    Ok(Outcome::Fine)
}

/// Prints the whole report of a period, and writes it next to the run's under a name of its own.
fn of_period(bundle: &Path, (first, last): (usize, usize), shown: PrintForm) -> Result<Outcome, Failure> {
    let (directory, record) = run_period(bundle, (first, last))?;
    let document = plumb_pages::run::document(&record);
    let named = rendered(&document).map(|(name, text)| {
        let (stem, end) = name.split_once('.').unwrap_or((name, "txt"));
        (format!("{stem}-{first}-{last}.{end}"), text)
    });
    if shown == PrintForm::Json {
        bundle::write(&directory, &named)?;
        output::print(&document.answered(&record.to_json()?))?;
        return Ok(run::outcome(&record));
    }
    output::print(&output::report(&document))?;
    output::print(&bundle::listed(&bundle::write(&directory, &named)?))?;
    Ok(run::outcome(&record))
}
