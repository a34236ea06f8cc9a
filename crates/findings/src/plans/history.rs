//! Plans of many executions by query: counts, times, and where the plan of a query changed.
//!
//! Two statements are one query if they differ by literals, the number of values in a list, and
//! blanks. A plan without its statement is a query with those of its hash. The plans are in the
//! order of the log.
//!
//! A change is judged by the medians of the executions with each plan, because one execution may
//! have waited for a lock.

use super::matching::without_literal;
use plumb_record::plan::ExecutionPlan;
use serde::Serialize;
use std::collections::HashMap;

/// Executions of one query, with all plans that it had.
#[derive(Debug, Serialize)]
pub struct QueryPlans {
    /// The statement with a `?` for each literal, or the first operator.
    pub query: String,
    /// Places of the plans, in the order of the log.
    pub places: Vec<usize>,
    /// Hashes of its plans, in the order in which they first came.
    pub hashes: Vec<String>,
    pub total_seconds: f64,
    pub median_seconds: f64,
    pub max_seconds: f64,
    /// The change to a plan that took longer by most, otherwise by least less.
    pub change: Option<PlanChange>,
}

/// A change from one plan to another.
#[derive(Debug, Clone, Serialize)]
pub struct PlanChange {
    /// Places of the last plan before it and of the first after it.
    pub before: usize,
    pub after: usize,
    /// Ratio of the medians of all executions with each plan.
    pub times_slower: f64,
}

impl QueryPlans {
    /// Returns the two plans to compare: those around the change, otherwise the fastest and the
    /// slowest.
    #[must_use]
    pub fn pair(&self, plans: &[ExecutionPlan]) -> Vec<usize> {
        if let Some(change) = &self.change {
            return vec![change.before, change.after];
        }
        let mut places = self.places.clone();
        places.sort_by(|one, two| seconds(&plans[*one]).total_cmp(&seconds(&plans[*two])));
        let mut pair: Vec<usize> = places.first().into_iter().chain(places.last()).copied().collect();
        pair.dedup();
        pair
    }
}

/// Returns the queries of some plans, those with the longest total time first.
#[must_use]
pub fn by_query(plans: &[ExecutionPlan]) -> Vec<QueryPlans> {
    let hashes: Vec<String> = plans.iter().map(ExecutionPlan::hash).collect();
    let mut known: HashMap<String, usize> = HashMap::new();
    let mut queries: Vec<(String, Vec<usize>)> = Vec::new();
    for (at, plan) in plans.iter().enumerate() {
        let (key, shown) = match plan.query.is_empty() {
            true => (hashes[at].clone(), plan.operations.first().map_or_else(String::new, super::called)),
            false => {
                let query = normalised(&plan.query);
                (query.clone(), query)
            }
        };
        let place = *known.entry(key).or_insert_with(|| {
            queries.push((shown, Vec::new()));
            queries.len() - 1
        });
        queries[place].1.push(at);
    }
    let mut queries: Vec<QueryPlans> =
        queries.into_iter().map(|(query, places)| of_query(query, places, plans, &hashes)).collect();
    queries.sort_by(|one, two| two.total_seconds.total_cmp(&one.total_seconds));
    queries
}

fn of_query(query: String, places: Vec<usize>, plans: &[ExecutionPlan], hashes: &[String]) -> QueryPlans {
    let mut own: Vec<&str> = Vec::new();
    let mut times: HashMap<&str, Vec<f64>> = HashMap::new();
    for at in &places {
        let times = times.entry(&hashes[*at]).or_default();
        if times.is_empty() {
            own.push(&hashes[*at]);
        }
        times.push(seconds(&plans[*at]));
    }
    let all: Vec<f64> = places.iter().map(|at| seconds(&plans[*at])).collect();
    let medians: HashMap<&str, f64> = times.iter().map(|(hash, times)| (*hash, median(times))).collect();
    let mut change: Option<PlanChange> = None;
    for pair in places.windows(2).filter(|pair| hashes[pair[0]] != hashes[pair[1]]) {
        let times_slower = medians[hashes[pair[1]].as_str()] / medians[hashes[pair[0]].as_str()];
        if change.as_ref().is_none_or(|known| times_slower > known.times_slower) {
            change = Some(PlanChange { before: pair[0], after: pair[1], times_slower });
        }
    }
    QueryPlans {
        query,
        total_seconds: all.iter().sum(),
        median_seconds: median(&all),
        max_seconds: all.iter().copied().fold(0.0, f64::max),
        hashes: own.into_iter().map(str::to_string).collect(),
        places,
        change,
    }
}

fn seconds(plan: &ExecutionPlan) -> f64 {
    plan.time().map_or(0.0, |time| time.value)
}

fn median(times: &[f64]) -> f64 {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(0.0)
}

/// Returns a statement with a `?` for each literal and each list of them.
fn normalised(query: &str) -> String {
    let mut plain = without_literal(query).split_whitespace().collect::<Vec<_>>().join(" ");
    for list in ["?, ?", "?,?"] {
        while plain.contains(list) {
            plain = plain.replace(list, "?");
        }
    }
    plain.to_lowercase()
}
