//! `plumb plans`: plans of execution next to each other, from files or from a running server.

use super::visit::{self, warn_of_password};
use crate::arguments::PlansOf;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::output;
use crate::targets::KINDS;
use plumb_findings::plans::{OPERATIONS_MOST, by_query};
use plumb_foreign::{Source, plan};
use plumb_pages::plans::{LoggedPlan, PlanLog, Plans, document, log_document};
use plumb_postgres::address::{ServerAddress, environment};
use plumb_postgres::explain::{QueryRights, explain};
use plumb_record::outside;
use plumb_record::plan::ExecutionPlan;
use plumb_report::{Document, html};
use plumb_study::compare::period;
use plumb_study::{StudyError, bundle};
use std::path::Path;

/// Most plans of a page.
const ARMS_MOST: usize = 3;

/// Prints the plans side by side, or a list of queries if there are more than three. Fails if a
/// file has none, or one is too large to be matched.
pub fn run(arguments: &PlansOf) -> Result<Outcome, Failure> {
    let mut plans = match (&arguments.target, &arguments.query) {
        (Some(target), Some(query)) => of_server(arguments, target, Path::new(query))?,
        (None, Some(query)) => of_query(query, of_files(arguments)?)?,
        _ => of_files(arguments)?,
    };
    if plans.len() > ARMS_MOST {
        return show_log(arguments, &plans);
    }
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
        true => json()?,
        false => output::report(document),
    })?;
    Ok(Outcome::Fine)
}

/// Prints the queries of a log.
fn show_log(arguments: &PlansOf, plans: &[ExecutionPlan]) -> Result<Outcome, Failure> {
    let names: Vec<String> = arguments.files.iter().map(|file| file.display().to_string()).collect();
    let logged = |plan: &ExecutionPlan| LoggedPlan { at: plan.at.clone(), hash: plan.hash() };
    let log = PlanLog {
        subject: names.join(" and "),
        plans: plans.iter().map(logged).collect(),
        queries: by_query(plans),
    };
    show(arguments, &log_document(&log), || bundle::json(&log))
}

/// Returns the plans to compare of a query in the list.
fn of_query(number: &str, mut plans: Vec<ExecutionPlan>) -> Result<Vec<ExecutionPlan>, Failure> {
    let queries = by_query(&plans);
    let chosen = number.parse::<usize>().ok().and_then(|number| queries.get(number.checked_sub(1)?));
    let Some(chosen) = chosen else {
        return Err(Failure::usage(format!(
            "--query {number}: expected the number of a query, from 1 to {}; a file with a query needs --target",
            queries.len()
        )));
    };
    let pair = chosen.pair(&plans);
    let mut named = Vec::new();
    for at in pair {
        let empty = ExecutionPlan::of(plans[at].source, plans[at].tree, Vec::new());
        named.push(std::mem::replace(&mut plans[at], empty));
    }
    Ok(named)
}

fn of_files(arguments: &PlansOf) -> Result<Vec<ExecutionPlan>, Failure> {
    let mut plans = Vec::new();
    for file in &arguments.files {
        let is_of_bundle = file.is_dir() || !file.exists() && file.to_string_lossy().contains(':');
        plans.extend(if is_of_bundle { of_bundle(&file.to_string_lossy())? } else { of_file(file)? });
    }
    Ok(plans)
}

fn of_file(file: &Path) -> Result<Vec<ExecutionPlan>, Failure> {
    let read = Source::read(file).and_then(|source| plan::read(&source));
    read.map_err(|error| Failure::run(error.to_string()))
}

/// Reads the plan that the typical run of an arm printed, as that of EXPLAIN in a study of
/// commands.
fn of_bundle(named: &str) -> Result<Vec<ExecutionPlan>, Failure> {
    let period = period(named, KINDS)?;
    let output = period.typical().and_then(|run| run.command.as_ref()).map(|command| command.output.as_str());
    let Some(output) = output else {
        return Err(Failure::run(format!(
            "{named} has no plan: its runs are no commands whose output is kept; use --target for a server"
        )));
    };
    let read = plan::read(&Source::of(Path::new(named), output.as_bytes()));
    let mut plans = read.map_err(|error| Failure::run(error.to_string()))?;
    for plan in &mut plans {
        plan.name = period.arm.clone().unwrap_or_else(|| named.to_string());
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
