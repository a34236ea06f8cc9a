//! `plumb plans`: plans of execution next to each other, from files or from a running server.

use super::visit::{self, warn_of_password};
use crate::arguments::PlansOf;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::output;
use plumb_findings::plans::OPERATIONS_MOST;
use plumb_foreign::{Source, plan};
use plumb_pages::plans::{Plans, document};
use plumb_postgres::address::{ServerAddress, environment};
use plumb_postgres::explain::{QueryRights, explain};
use plumb_record::outside;
use plumb_record::plan::ExecutionPlan;
use plumb_report::html;
use plumb_study::bundle;
use std::path::Path;

/// Most plans of a page.
const ARMS_MOST: usize = 3;

/// Prints the plans. Fails if a file has none, there are more than three, or one is too large to be
/// matched.
pub fn run(arguments: &PlansOf) -> Result<Outcome, Failure> {
    let plans = match (&arguments.target, &arguments.query) {
        (Some(target), Some(query)) => of_server(arguments, target, query)?,
        _ => of_files(arguments)?,
    };
    if plans.len() > ARMS_MOST {
        let (count, files) = (plans.len(), arguments.files.len());
        return Err(Failure::usage(format!(
            "{} {} {count} plans, expected {ARMS_MOST} at most; put those to compare into files of their own",
            output::counted(files as u64, "file"),
            if files == 1 { "has" } else { "have" },
        )));
    }
    let large = plans.iter().find(|plan| plans.len() > 1 && plan.operations.len() > OPERATIONS_MOST);
    if let Some(large) = large {
        return Err(Failure::run(format!(
            "{} has {} operators, and {OPERATIONS_MOST} at most are matched; show it alone",
            large.name,
            large.operations.len()
        )));
    }
    let plans = Plans::of(plans);
    let document = document(&plans);
    if let Some(path) = &arguments.html {
        bundle::write_new(path, &html::render(&document))?;
    }
    output::print(&match arguments.json {
        true => bundle::json(&plans)?,
        false => output::report(&document),
    })?;
    Ok(Outcome::Fine)
}

fn of_files(arguments: &PlansOf) -> Result<Vec<ExecutionPlan>, Failure> {
    let mut plans = Vec::new();
    for file in &arguments.files {
        let read = Source::read(file).and_then(|source| plan::read(&source));
        plans.extend(read.map_err(|error| Failure::run(error.to_string()))?);
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
