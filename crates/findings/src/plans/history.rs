//! Plans of many executions by query: counts, times, and where the plan of a query changed.
//!
//! Two statements are one query if they differ by literals, the number of values in a list, and
//! blanks. A plan without its statement is a query with those of its hash. The plans are in the
//! order of the log. Of each, [`LoggedPlan`] has what the list needs, because a log may have more
//! operators than fit into memory.
//!
//! A change is judged by the medians of the executions with each plan, because one execution may
//! have waited for a lock.

use super::matching::without_literal;
use plumb_record::plan::ExecutionPlan;
use serde::Serialize;
use std::collections::HashMap;

/// A plan of a log without its operators.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct LoggedPlan {
    /// Time at which the log has it; otherwise empty.
    pub at: String,
    pub hash: String,
    /// Empty for a plan that was printed without its statement.
    #[serde(skip)]
    pub query: String,
    #[serde(skip)]
    pub seconds: f64,
    /// The first operator, for a plan without a statement.
    #[serde(skip)]
    pub first: String,
}

impl LoggedPlan {
    #[must_use]
    pub fn of(plan: &ExecutionPlan) -> LoggedPlan {
        LoggedPlan {
            at: plan.at.clone(),
            hash: plan.hash(),
            query: plan.query.clone(),
            seconds: plan.time().map_or(0.0, |time| time.value),
            first: plan.operations.first().map_or_else(String::new, super::called),
        }
    }
}

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
    pub fn pair(&self, plans: &[LoggedPlan]) -> Vec<usize> {
        if let Some(change) = &self.change {
            return vec![change.before, change.after];
        }
        let mut places = self.places.clone();
        places.sort_by(|one, two| plans[*one].seconds.total_cmp(&plans[*two].seconds));
        let mut pair: Vec<usize> = places.first().into_iter().chain(places.last()).copied().collect();
        pair.dedup();
        pair
    }
}

/// Returns the queries of some plans, those with the longest total time first.
#[must_use]
pub fn by_query(plans: &[LoggedPlan]) -> Vec<QueryPlans> {
    let mut known: HashMap<String, usize> = HashMap::new();
    let mut queries: Vec<(String, Vec<usize>)> = Vec::new();
    for (at, plan) in plans.iter().enumerate() {
        let (key, shown) = match plan.query.is_empty() {
            true => (plan.hash.clone(), plan.first.clone()),
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
        queries.into_iter().map(|(query, places)| of_query(query, places, plans)).collect();
    queries.sort_by(|one, two| two.total_seconds.total_cmp(&one.total_seconds));
    queries
}

fn of_query(query: String, places: Vec<usize>, plans: &[LoggedPlan]) -> QueryPlans {
    let mut own: Vec<&str> = Vec::new();
    let mut times: HashMap<&str, Vec<f64>> = HashMap::new();
    for at in &places {
        let times = times.entry(&plans[*at].hash).or_default();
        if times.is_empty() {
            own.push(&plans[*at].hash);
        }
        times.push(plans[*at].seconds);
    }
    let all: Vec<f64> = places.iter().map(|at| plans[*at].seconds).collect();
    let medians: HashMap<&str, f64> = times.iter().map(|(hash, times)| (*hash, median(times))).collect();
    let mut change: Option<PlanChange> = None;
    for pair in places.windows(2).filter(|pair| plans[pair[0]].hash != plans[pair[1]].hash) {
        let [before, after] = [pair[0], pair[1]].map(|at| medians[plans[at].hash.as_str()]);
        if change.as_ref().is_none_or(|known| after / before > known.times_slower) {
            change = Some(PlanChange { before: pair[0], after: pair[1], times_slower: after / before });
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

fn median(times: &[f64]) -> f64 {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(0.0)
}

/// Returns a statement with a `?` for each literal and each list of them.
#[must_use]
pub fn normalised(query: &str) -> String {
    let mut plain = without_literal(query).split_whitespace().collect::<Vec<_>>().join(" ");
    for list in ["?, ?", "?,?"] {
        while plain.contains(list) {
            plain = plain.replace(list, "?");
        }
    }
    plain.to_lowercase()
}
