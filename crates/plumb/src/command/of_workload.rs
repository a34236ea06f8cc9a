//! Studies of a workload given on the command line: `plumb study slob --factor SETTING=A,B`.

use super::ad_hoc::with_options;
use super::{ad_hoc, places, visit};
use crate::arguments::Study;
use crate::failure::Failure;
use plumb_postgres::{Postgres, workload};
use plumb_run::embedded::Engine;
use plumb_study::StudyError;
use plumb_study::definition::{self, Given, Inline, Varied, catalog};
use plumb_study::vocabulary::TargetKind;
use plumb_units::path_text;
use plumb_workload::WORKLOADS;
use std::path::Path;

const EXAMPLE: &str = "filesystemio_options=none,setall";

pub fn study(arguments: &Study) -> Result<definition::Study, Failure> {
    let name = arguments.study.as_deref().unwrap_or_default();
    let kind = kind(arguments)?;
    require_workload(name, kind)?;
    require_its_setting(arguments, name, kind)?;
    let server = arguments.server.iter().map(|server| stated("--server", "server", server.clone()));
    let set = arguments.set.iter().map(|text| setting(text));
    let set = set.chain(server.map(Ok)).collect::<Result<Vec<_>, _>>()?;
    let rows = arguments.rows.map(|rows| ("rows", "rows", rows.to_string()));
    let parameters = arguments.parameters.given.iter().cloned().chain(rows);
    let factors = arguments.factor.iter().map(|text| varied(text)).collect::<Result<Vec<_>, _>>()?;
    let asked = Inline {
        workload: name.to_string(),
        parameters: parameters
            .map(|(option, name, value)| stated(&format!("--{option}"), name, value))
            .collect(),
        settings: set,
        factors: factors.into_iter().chain(of_places(arguments)?).collect(),
        measure: arguments.around.measure.clone().map(|name| stated("--measure", "", name)),
        expects_same: arguments.around.same,
    };
    let study = definition::inline(&asked, kind);
    let study = study.map_err(|error| with_options(Failure::from(StudyError::from(error))))?;
    require_effect(&asked, &study)?;
    Ok(study)
}

fn stated(origin: &str, name: &str, value: String) -> Given {
    Given { origin: origin.to_string(), name: name.to_string(), value }
}

/// Returns the kind of target that the arguments name; the embedded engine without a name.
fn kind(arguments: &Study) -> Result<&'static dyn TargetKind, Failure> {
    let Some(named) = &arguments.target else { return Ok(&Engine) };
    let ours: [&'static dyn TargetKind; 2] = [&Engine, &Postgres];
    if visit::is_address(named) {
        return Ok(&Postgres);
    }
    ours.into_iter().find(|kind| kind.name() == named).ok_or_else(|| {
        let names = ours.map(TargetKind::name).join(" or ");
        Failure::usage(format!("--target {named}: a workload with --factor runs on {names}, or on a running server by its postgres://..."))
    })
}

/// Fails on the name of a study or a file, with the way to use that.
fn require_workload(name: &str, kind: &dyn TargetKind) -> Result<(), Failure> {
    let workloads = if kind.name() == Postgres.name() { workload::WORKLOADS } else { WORKLOADS };
    let known = workloads.iter().map(|workload| workload.name).collect::<Vec<_>>().join(", ");
    let is = match name {
        _ if workloads.iter().any(|workload| workload.name == name) => return Ok(()),
        _ if Path::new(name).is_file() || name.ends_with(".toml") => {
            format!("{name} is a study file, which has its own factors; write another [[factor]] into it")
        }
        _ if catalog::text(name).is_some() || catalog::suite(name).is_some() => {
            format!("the study {name} has its own factors; name a workload instead ({known})")
        }
        // The parser of the study lists the known names.
        _ => return Ok(()),
    };
    Err(Failure::usage(format!("--factor: {is}, or leave it out")))
}

/// Settings of PostgreSQL that a workload does not read although their names suggest it: the
/// workload, the setting, the one that it reads, and the reason.
const MISTAKEN: [(&str, &str, &str, &str); 2] = [
    ("large-sort", "work_mem", "maintenance_work_mem", "CREATE INDEX sorts in maintenance_work_mem"),
    (
        "large-sort",
        "max_parallel_workers_per_gather",
        "max_parallel_maintenance_workers",
        "CREATE INDEX takes workers by max_parallel_maintenance_workers",
    ),
];

/// Fails on a factor that has no effect on the workload, with the setting that has.
fn require_its_setting(arguments: &Study, workload: &str, kind: &dyn TargetKind) -> Result<(), Failure> {
    let varied = arguments.factor.iter().filter_map(|text| Some((text, text.split_once('=')?)));
    for (text, (name, values)) in varied.filter(|_| kind.name() == Postgres.name()) {
        let name = name.trim();
        let wrong =
            MISTAKEN.iter().find(|(of, wrong, ..)| *of == workload && name.eq_ignore_ascii_case(wrong));
        if let Some((_, _, right, why)) = wrong {
            return Err(Failure::usage(format!("--factor {text}: {why}; vary {right}={values}")));
        }
    }
    Ok(())
}

fn setting(text: &str) -> Result<Given, Failure> {
    let origin = format!("--set {text}");
    let (name, value) = text.split_once('=').ok_or_else(|| {
        Failure::usage(format!("{origin}: expected name=value, as in --set sort_area_size=64M"))
    })?;
    Ok(stated(&origin, name.trim(), value.trim().to_string()))
}

fn varied(text: &str) -> Result<Varied, Failure> {
    let (setting, values) = ad_hoc::named_values(text, EXAMPLE)?;
    Ok(Varied { origin: format!("--factor {text}"), setting, values, expect: "differs".to_string() })
}

/// Returns a factor of the places if there are two or more.
fn of_places(arguments: &Study) -> Result<Option<Varied>, Failure> {
    let paths = &arguments.conduct.path;
    if paths.len() < 2 {
        return Ok(None);
    }
    let values = places::different(paths)?.iter().map(|path| path_text(path)).collect();
    Ok(Some(Varied {
        origin: "--path".to_string(),
        setting: "path".to_string(),
        values,
        expect: places::AS_GOOD.to_string(),
    }))
}

/// Fails on a parameter, given or varied, without effect in any arm.
fn require_effect(asked: &Inline, study: &definition::Study) -> Result<(), Failure> {
    let Some(work) = &study.work else { return Ok(()) };
    let given = asked.parameters.iter().map(|stated| ("--", stated.name.clone()));
    let varied = asked.factors.iter().map(|factor| ("--factor ", factor.setting.replace('_', "-")));
    let all: Vec<(&str, String)> = given.chain(varied).collect();
    let switched = |name: &str| all.iter().any(|(option, varied)| *option == "--factor " && varied == name);
    for (option, name) in &all {
        let idle = work.without_effect(&[name]);
        if let Some((parameter, why)) =
            idle.filter(|(it, _)| !it.depends_on(work.workload).is_some_and(switched))
        {
            let what = format!("{option}{}: it has no effect, for {why}; or leave it out", parameter.name);
            return Err(Failure::usage(what));
        }
    }
    Ok(())
}
