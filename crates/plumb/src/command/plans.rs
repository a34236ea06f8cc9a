//! `plumb plans`: plans of execution next to each other, from files or from a running server.

use super::visit::{self, warn_of_password};
use crate::arguments::PlansOf;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::output;
use crate::targets::KINDS;
use plumb_findings::plans::{LoggedPlan, OPERATIONS_MOST, by_query};
use plumb_foreign::Source;
use plumb_foreign::plan::{self, COMPARED_MOST, PlanFile};
use plumb_pages::plans::{PlanLog, Plans, document, log_document};
use plumb_postgres::address::{ServerAddress, environment};
use plumb_postgres::explain::{QueryRights, explain};
use plumb_record::plan::ExecutionPlan;
use plumb_record::{RequestSizes, outside};
use plumb_report::{Document, html};
use plumb_study::compare::period;
use plumb_study::{StudyError, bundle};
use std::path::Path;

/// Prints the plans side by side, or a list of queries if there are more than three. Fails if a
/// file has none, or one is too large to be matched.
pub fn run(arguments: &PlansOf) -> Result<Outcome, Failure> {
    let mut plans = match (&arguments.target, &arguments.query) {
        (Some(target), Some(query)) => of_server(arguments, target, Path::new(query))?,
        _ => {
            let files = arguments.files.iter().map(|file| of_file(file)).collect::<Result<Vec<_>, _>>()?;
            let logged: Vec<LoggedPlan> = files.iter().flat_map(|file| file.plans.clone()).collect();
            match &arguments.query {
                Some(number) => some_of(&files, of_query(number, &logged)?)?,
                None if logged.len() > COMPARED_MOST
                    || files.iter().any(|file| !file.left_out.is_empty()) =>
                {
                    return show_log(arguments, &files, logged);
                }
                None => some_of(&files, (0..logged.len()).collect())?,
            }
        }
    };
    let large = plans.iter().find(|plan| plans.len() > 1 && plan.operations.len() > OPERATIONS_MOST);
    if let Some(large) = large {
        return Err(Failure::run(format!(
            "{} has {} operators, and {OPERATIONS_MOST} at most are matched; show it alone",
            large.name,
            large.operations.len()
        )));
    }
    for plan in plans.iter_mut().filter(|plan| !plan.at.is_empty()) {
        plan.facts.insert(0, ("Logged at".to_string(), plan.at.clone()));
    }
    let plans = Plans::of(plans);
    show(arguments, &document(&plans), || bundle::json(&plans))
}

fn show(
    arguments: &PlansOf,
    document: &Document,
    json: impl Fn() -> Result<String, StudyError>,
) -> Result<Outcome, Failure> {
    if let Some(path) = &arguments.html {
        bundle::write_new(path, &html::render(document))?;
    }
    output::print(&match arguments.json {
        true => document.answered(&json()?),
        false => output::report(document),
    })?;
    Ok(Outcome::Fine)
}

/// Prints the queries of a log.
fn show_log(arguments: &PlansOf, files: &[PlanFile], plans: Vec<LoggedPlan>) -> Result<Outcome, Failure> {
    let names: Vec<String> = arguments.files.iter().map(|file| file.display().to_string()).collect();
    let log = PlanLog {
        subject: names.join(" and "),
        queries: by_query(&plans),
        left_out: files.iter().flat_map(|file| file.left_out.clone()).collect(),
        plans,
    };
    show(arguments, &log_document(&log), || bundle::json(&log))
}

/// Returns the places of the plans to compare of a query in the list.
fn of_query(number: &str, plans: &[LoggedPlan]) -> Result<Vec<usize>, Failure> {
    let queries = by_query(plans);
    let chosen = number.parse::<usize>().ok().and_then(|number| queries.get(number.checked_sub(1)?));
    chosen.map(|chosen| chosen.pair(plans)).ok_or_else(|| {
        Failure::usage(format!(
            "--query {number}: expected the number of a query, from 1 to {}; a file with a query needs --target",
            queries.len()
        ))
    })
}

/// Returns the plans at these places of all files together.
fn some_of(files: &[PlanFile], places: Vec<usize>) -> Result<Vec<ExecutionPlan>, Failure> {
    let all: Vec<(&PlanFile, usize)> =
        files.iter().flat_map(|file| (0..file.plans.len()).map(move |at| (file, at))).collect();
    let read = |(file, at): (&PlanFile, usize)| file.plan(at);
    let plans = places.into_iter().map(|at| read(all[at])).collect::<Result<Vec<_>, _>>();
    plans.map_err(|error| Failure::run(error.to_string()))
}

fn of_file(file: &Path) -> Result<PlanFile, Failure> {
    if file.is_dir() || !file.exists() && file.to_string_lossy().contains(':') {
        return of_bundle(&file.to_string_lossy()).map(PlanFile::of);
    }
    Source::read(file).and_then(PlanFile::read).map_err(|error| Failure::run(error.to_string()))
}

/// Reads the plan that a study kept of an arm, otherwise the one that its typical run printed.
fn of_bundle(named: &str) -> Result<Vec<ExecutionPlan>, Failure> {
    let period = period(named, KINDS)?;
    let command = period.typical().and_then(|run| run.command.as_ref());
    let printed = period.plan.as_ref().or(command.map(|command| &command.output));
    let Some(printed) = printed.filter(|printed| !printed.is_empty()) else {
        return Err(Failure::run(format!(
            "{named} has no plan: its study kept none, and its runs printed none; a study has plans of scan and slob on \
             PostgreSQL, or by `explain` of its [command]"
        )));
    };
    let read = plan::read(&Source::of(Path::new(named), printed.as_bytes()));
    let mut plans = read.map_err(|error| Failure::run(error.to_string()))?;
    let sizes = period.request_sizes.as_ref().map(RequestSizes::facts).unwrap_or_default();
    for plan in &mut plans {
        plan.name = period.arm.clone().unwrap_or_else(|| named.to_string());
        plan.facts.extend(sizes.clone());
    }
    Ok(plans)
}

/// Executes the query on a server, with `--set`, and again with `--against`.
fn of_server(arguments: &PlansOf, target: &str, query: &Path) -> Result<Vec<ExecutionPlan>, Failure> {
    let refused = |error: plumb_postgres::PostgresError| Failure::run(error.to_string());
    let address =
        ServerAddress::parse(target, &environment).map_err(|error| Failure::usage(error.to_string()))?;
    let wrong = |why: String| Failure::run(format!("--query {}: {why}", query.display()));
    let text = outside::text(query).map_err(|error| wrong(error.to_string()))?;
    let statement = text.trim().trim_end_matches(';').trim_end();
    if statement.is_empty() {
        return Err(wrong("the file is empty, expected one statement".to_string()));
    }
    let set = settings("--set", &arguments.set)?;
    let mut arms = vec![set.clone()];
    if !arguments.against.is_empty() {
        let against = settings("--against", &arguments.against)?;
        arms.push(replaced(set, against));
    }
    let rights = if arguments.write { QueryRights::Write } else { QueryRights::Read };
    warn_of_password(target);
    visit::say_what_is_left(&address);
    let mut plans = Vec::new();
    for (settings, printed) in arms.iter().zip(explain(&address, statement, &arms, rights).map_err(refused)?)
    {
        let found = plan::read_json(&printed).map_err(|why| Failure::run(format!("{address}: {why}")))?;
        let named = settings.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>();
        let name = if named.is_empty() { "as the server is set".to_string() } else { named.join(" ") };
        let server = ("Server".to_string(), address.to_string());
        plans.extend(found.into_iter().map(|plan| {
            let facts = std::iter::once(server.clone()).chain(plan.facts).collect();
            ExecutionPlan { name: name.clone(), facts, ..plan }
        }));
    }
    Ok(plans)
}

/// Returns settings with others in addition, of which one of the same name replaces the first.
fn replaced(mut set: Vec<(String, String)>, others: Vec<(String, String)>) -> Vec<(String, String)> {
    for (name, value) in others {
        // Names of settings have no case.
        match set.iter_mut().find(|(known, _)| known.eq_ignore_ascii_case(&name)) {
            Some((_, replaced)) => *replaced = value,
            None => set.push((name, value)),
        }
    }
    set
}

fn settings(option: &str, given: &[String]) -> Result<Vec<(String, String)>, Failure> {
    let one = |text: &String| match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_string(), value.to_string())),
        _ => {
            Err(Failure::usage(format!("{option} {text}: expected NAME=VALUE, as in {option} work_mem=64MB")))
        }
    };
    given.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_of_the_second_arm_replaces_that_of_both() {
        let of = |given: &[&str]| {
            let given: Vec<String> = given.iter().map(ToString::to_string).collect();
            settings("--set", &given).expect("settings")
        };
        let both = of(&["work_mem=64kB", "jit=off"]);
        let second = replaced(both, of(&["WORK_MEM=64MB", "enable_hashjoin=off"]));
        assert_eq!(second, of(&["work_mem=64MB", "jit=off", "enable_hashjoin=off"]));
    }
}
