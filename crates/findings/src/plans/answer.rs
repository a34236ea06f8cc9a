//! One sentence about plans: why another one takes longer, or where the time of one goes.
//!
//! ```text
//! 4 ms to 400 ms (100 times): Index Scan k_pkey on k (1) became Seq Scan k (1); 12 to 32,900 ...
//! └─ times, otherwise costs    └─ the changed join and access      └─ other differences: blocks,
//!                                                                     predicates, workers, rows
//! ```
//!
//! Of several changed accesses, the sentence names the one whose own buffers, time or cost differ
//! most. The plans show that these differ, and not that one is the cause of the other.

use super::matching::{MatchedRow, PlanDifference, is_join, matched, ordered};
use super::{called, estimates, finding};
use plumb_record::Finding;
use plumb_record::plan::{ExecutionPlan, PlanFigure, PlanOperation, PlanSource, PlanTree};
use plumb_units::{Nanos, RowCount};
use std::collections::HashSet;

/// Factor from which rows and times of one plan differ.
const DIFFERS: f64 = 1.5;
/// Factor from which a cost is another plan's.
const COST_OFF: f64 = 10.0;
/// Share of the time from which its part is named.
const PART: f64 = 0.1;
/// Most letters of a condition.
const CONDITION_MOST: usize = 80;

type Measure = fn(&PlanOperation) -> Option<&PlanFigure>;

const MEASURES: [Measure; 3] = [|it| it.buffers.as_ref(), |it| it.time.as_ref(), |it| it.cost.as_ref()];

/// Returns a sentence for each plan but the first, or one for a single plan.
#[must_use]
pub fn answers(plans: &[ExecutionPlan]) -> Vec<String> {
    match plans {
        [] => Vec::new(),
        [plan] => vec![alone(plan)],
        [first, others @ ..] => {
            (2..).zip(others).map(|(number, other)| Pair::of(first, other, number).sentence()).collect()
        }
    }
}

/// Returns the findings about another plan, which has this number on the page, compared with the
/// first.
#[must_use]
pub fn of_pair(first: &ExecutionPlan, other: &ExecutionPlan, number: usize) -> Vec<Finding> {
    let pair = Pair::of(first, other, number);
    pair.moved_finding().into_iter().chain(pair.cost_finding()).collect()
}

/// Returns the seconds of each operator without those of its inputs; `None` without a time.
#[must_use]
pub fn own_times(plan: &ExecutionPlan) -> Vec<Option<f64>> {
    own(plan, |it| it.time.as_ref())
}

fn own(plan: &ExecutionPlan, of: Measure) -> Vec<Option<f64>> {
    let value = |at: usize| {
        of(&plan.operations[at]).map(|figure| figure.value).filter(|_| plan.tree != PlanTree::Unknown)
    };
    let inputs = plan.inputs();
    // An operator without a figure, such as that of a parallel server, has that of its inputs.
    let mut wholes = vec![0.0; plan.operations.len()];
    for at in (0..wholes.len()).rev() {
        wholes[at] = value(at).unwrap_or_else(|| inputs[at].iter().map(|input| wholes[*input]).sum());
    }
    let below = |inputs: &Vec<usize>| inputs.iter().map(|input| wholes[*input]).sum::<f64>();
    // Processes may have spent more time below an operator than the one that waited in it.
    (0..plan.operations.len()).map(|at| Some((value(at)? - below(&inputs[at])).max(0.0))).collect()
}

fn alone(plan: &ExecutionPlan) -> String {
    let mut parts = Vec::new();
    let (times, costs) = (own_times(plan), own(plan, |it| it.cost.as_ref()));
    let (values, of) = if times.iter().any(Option::is_some) { (times, "time") } else { (costs, "cost") };
    let all: f64 = values.iter().flatten().sum();
    let most =
        (0..values.len()).max_by(|a, b| values[*a].unwrap_or(0.0).total_cmp(&values[*b].unwrap_or(0.0)));
    if let Some((at, value)) = most.and_then(|at| Some((at, values[at].filter(|value| *value > 0.0)?))) {
        let share = 100.0 * value / all;
        parts.push(format!("{} has {share:.0}% of the {of}", called(&plan.operations[at])));
    }
    if plan.tree == PlanTree::Unknown {
        parts.push(
            "which operator took it is not known, because the blanks before operators were lost".into(),
        );
    }
    let root = plan.operations.first();
    if let Some(buffers) = root.and_then(|root| root.buffers.as_ref()) {
        let reads = root.and_then(|root| root.reads.as_ref()).filter(|reads| reads.value > 0.0);
        let time = root
            .and_then(|root| root.read_time.as_ref())
            .map_or(String::new(), |it| format!(" in {}", it.text));
        let reads = reads.map_or(String::new(), |reads| {
            format!(", {}{} read from disk{time}", of_these(reads.value <= buffers.value), reads.text)
        });
        let unit = if buffers.text == "1" { "buffer" } else { "buffers" };
        parts.push(format!("{} {unit}{reads}", buffers.text));
    }
    parts.extend(compilation(plan));
    parts.extend(super::of_plan(plan).first().map(|found| lowered(&found.what)));
    let head = match (plan.time(), root.and_then(|root| root.cost.as_ref())) {
        (Some(time), _) => seconds(time.value),
        (None, Some(cost)) => format!("cost {}", total(cost)),
        (None, None) => format!("{} operators", plan.operations.len()),
    };
    if parts.is_empty() {
        parts.push("the plan shows no operator that takes more than others".into());
    }
    format!("{head}: {}", parts.join("; "))
}

/// Returns how reads belong to buffers: those of temporary segments in Oracle are in addition.
fn of_these(are_within: bool) -> &'static str {
    if are_within { "of these " } else { "with temporary segments " }
}

/// Two plans of one statement with their matching.
struct Pair<'p> {
    first: &'p ExecutionPlan,
    other: &'p ExecutionPlan,
    /// Number of the other on the page.
    number: usize,
    rows: Vec<MatchedRow>,
}

impl<'p> Pair<'p> {
    fn of(first: &'p ExecutionPlan, other: &'p ExecutionPlan, number: usize) -> Pair<'p> {
        Pair { first, other, number, rows: matched(&[first, other]) }
    }

    fn plans(&self) -> [&'p ExecutionPlan; 2] {
        [self.first, self.other]
    }

    /// Returns operators in the same place of both plans, with the row.
    fn both(&self) -> impl Iterator<Item = (&'p PlanOperation, &'p PlanOperation, &MatchedRow)> {
        self.rows.iter().filter_map(|row| {
            let (one, another) = (row.places[0]?, row.places[1]?);
            Some((&self.first.operations[one], &self.other.operations[another], row))
        })
    }

    fn sentence(&self) -> String {
        let number = self.number;
        let is_same = self.first.is_same_plan(self.other);
        let mut parts = if is_same { vec!["same plan".to_string()] } else { Vec::new() };
        // If the same table has the filter, the change of its operator is enough.
        parts.extend(
            self.moved().filter(|(from, _, to, _)| from.name.is_empty() || !is_of_table(from, to)).map(
                |(from, access, to, filter)| {
                    let is_view = ["VIEW", "Subquery Scan"].iter().any(|name| to.operation.starts_with(name));
                    let pushed = if is_view { "a predicate is no longer pushed: " } else { "" };
                    let (from, to) = (called(from), called(to));
                    format!(
                        "{pushed}access {} of {from} is now filter {} of {to}",
                        shortened(access),
                        shortened(filter)
                    )
                },
            ),
        );
        parts.extend(if is_same { Vec::new() } else { self.changes() });
        parts.extend(self.buffers(is_same));
        let lost: Vec<&str> = self.lost_indexes().collect();
        parts.extend((!lost.is_empty()).then(|| format!("plan {number} has no index {}", lost.join(", "))));
        parts.extend(self.beside());
        parts.extend(self.slow_estimate());
        if parts.len() == usize::from(is_same) {
            parts.push("nothing that the plans show differs beside".to_string());
        }
        let of = if number > 2 { format!("Plan {number}: ") } else { String::new() };
        format!("{of}{}: {}", self.head(), parts.join("; "))
    }

    /// Returns the measure of both plans with their ratio.
    fn head(&self) -> String {
        let compared = |one: f64, another: f64, texts: [String; 2]| {
            let (ratio, word) = if another >= one { (another / one, "") } else { (one / another, " faster") };
            let times = match ratio {
                ratio if !ratio.is_finite() || ratio < 1.05 => String::new(),
                ratio => format!(" ({} times{word})", estimates::rounded(ratio)),
            };
            format!("{} to {}{times}", texts[0], texts[1])
        };
        if let [Some(one), Some(another)] = self.plans().map(|plan| plan.time().map(|time| time.value)) {
            return compared(one, another, [seconds(one), seconds(another)]);
        }
        let costs = self.plans().map(|plan| plan.operations.first().and_then(|root| root.cost.as_ref()));
        if let [Some(one), Some(another)] = costs {
            let text = compared(one.value, another.value, [total(one), total(another)]);
            return format!("cost {}", text.replace(" faster", " less"));
        }
        let counts = self.plans().map(|plan| plan.operations.len());
        format!("{} and {} operators", counts[0], counts[1])
    }

    /// Returns the changed join and the changed access that matter most.
    fn changes(&self) -> Vec<String> {
        let has_changed = |one: &PlanOperation, another: &PlanOperation| {
            one.operator() != another.operator() || one.lasting_object() != another.lasting_object()
        };
        let became = |one: &PlanOperation, another: &PlanOperation| {
            let rows = [one, another].map(|it| it.rows.as_ref().or(it.expected_rows.as_ref()));
            let rows = match rows {
                [Some(one), Some(another)] if is_apart(one.value, another.value) => {
                    format!(", {} to {} rows", one.text, another.text)
                }
                _ => String::new(),
            };
            let dropped = another.detail("rows removed by filter").filter(|rows| *rows >= 1000.0);
            let dropped = dropped
                .map_or(String::new(), |rows| format!(", which drops {} rows by its filter", count(rows)));
            format!("{} became {}{rows}{dropped}", called(one), called(another))
        };
        let changed: Vec<_> = self.both().filter(|(one, another, _)| has_changed(one, another)).collect();
        let join = changed.iter().find(|(one, another, row)| {
            (is_join(one) || is_join(another)) && row.differences.contains(&PlanDifference::Operator)
        });
        let owns = MEASURES.map(|of| self.plans().map(|plan| own(plan, of)));
        let weight = |row: &MatchedRow| {
            let values = owns.iter().find_map(|own| Some((own[0][row.places[0]?]?, own[1][row.places[1]?]?)));
            values.map_or(0.0, |(one, another)| (one - another).abs())
        };
        let accesses = changed.iter().filter(|(one, another, _)| !is_join(one) && !is_join(another));
        let has_object = |it: &PlanOperation| !it.lasting_object().is_empty();
        let access = accesses
            .filter(|(one, another, _)| has_object(one) && has_object(another))
            // The first of equals.
            .reduce(|most, next| if weight(next.2) > weight(most.2) { next } else { most });
        let named: Vec<String> =
            join.into_iter().chain(access).map(|(one, another, _)| became(one, another)).collect();
        if named.is_empty() { self.only_in_one() } else { named }
    }

    /// Returns the operators that one plan has alone.
    fn only_in_one(&self) -> Vec<String> {
        let alone = |arm: usize, plan: &ExecutionPlan| {
            let number = if arm == 0 { 1 } else { self.number };
            let places = self
                .rows
                .iter()
                .filter(|row| row.places[1 - arm].is_none())
                .filter_map(|row| row.places[arm]);
            let names: Vec<String> = places.take(3).map(|at| called(&plan.operations[at])).collect();
            (!names.is_empty()).then(|| format!("only plan {number} has {}", names.join(", ")))
        };
        alone(0, self.first).into_iter().chain(alone(1, self.other)).collect()
    }

    /// Returns conditions that found rows in the first plan and drop rows in the other.
    fn moved(&self) -> impl Iterator<Item = (&'p PlanOperation, &'p str, &'p PlanOperation, &'p str)> {
        let filters: HashSet<String> =
            self.first.operations.iter().flat_map(|it| &it.filter).map(|it| ordered(it)).collect();
        let accesses: HashSet<String> =
            self.other.operations.iter().flat_map(|it| &it.access).map(|it| ordered(it)).collect();
        let lost = self
            .first
            .operations
            .iter()
            .flat_map(|it| it.access.iter().map(move |access| (it, access.as_str())));
        let lost = lost.filter(|(_, access)| !accesses.contains(&ordered(access)));
        let lost: Vec<_> = lost.map(|(it, access)| (it, access, columns(access))).collect();
        let gained = self
            .other
            .operations
            .iter()
            .flat_map(|it| it.filter.iter().map(move |filter| (it, filter.as_str())));
        let gained = gained.filter(|(_, filter)| !filters.contains(&ordered(filter)));
        let mut found: Vec<_> = gained
            .filter_map(|(to, filter)| {
                let names = columns(filter);
                let (from, access, _) = lost.iter().find(|(_, _, own)| *own == names && !names.is_empty())?;
                Some((*from, *access, to, filter))
            })
            .collect();
        found.truncate(1);
        found.into_iter()
    }

    /// Returns the indexes that only the first plan reads.
    fn lost_indexes(&self) -> impl Iterator<Item = &'p str> {
        let indexes = |plan: &'p ExecutionPlan| {
            plan.operations.iter().filter_map(|it| {
                let object = it.lasting_object();
                let is_index = it.operation.to_uppercase().contains("INDEX")
                    && !it.operation.starts_with("TABLE ACCESS");
                (is_index && !object.is_empty()).then(|| object.split(" on ").next().unwrap_or(object))
            })
        };
        let kept: Vec<&str> = indexes(self.other).collect();
        let mut lost: Vec<&str> = indexes(self.first).filter(|index| !kept.contains(index)).collect();
        lost.dedup();
        lost.truncate(2);
        lost.into_iter()
    }

    /// Returns how many blocks both plans took and read from disk.
    fn buffers(&self, is_same: bool) -> Option<String> {
        let [one, another] = self.plans().map(|plan| plan.operations.first());
        let (one, another) = (one?, another?);
        let reads = [one, another].map(|it| it.reads.as_ref().map_or(0.0, |reads| reads.value));
        let (own, theirs) = (one.buffers.as_ref()?, another.buffers.as_ref()?);
        let (most, least) = (reads[0].max(reads[1]), reads[0].min(reads[1]));
        let slow = usize::from(reads[1] > reads[0]);
        let time = [one, another][slow].read_time.as_ref().map(|time| time.value);
        if is_same && most >= 8.0 && least <= PART * most {
            let (whole, cached) = (self.plans()[slow].time(), if slow == 0 { self.number } else { 1 });
            return Some(match time.zip(whole).filter(|(time, whole)| *time <= whole.value) {
                Some((time, whole)) => format!(
                    "{} of {} were reads that plan {cached} found in the cache ({} and {} blocks read)",
                    seconds(time),
                    seconds(whole.value),
                    count(reads[0]),
                    count(reads[1])
                ),
                None => format!("{} and {} blocks were read from disk", count(reads[0]), count(reads[1])),
            });
        }
        if !is_apart(own.value, theirs.value) && !is_apart(reads[0], reads[1]) {
            return None;
        }
        let of = of_these(reads[0] <= own.value && reads[1] <= theirs.value);
        let read = match reads {
            [0.0, 0.0] => String::new(),
            [0.0, other] => format!(", {of}{} read from disk", count(other)),
            [first, other] => format!(", {of}{} and {} read from disk", count(first), count(other)),
        };
        Some(format!("{} to {} buffers{read}", own.text, theirs.text))
    }

    /// Returns the differences in workers, work areas, rows, compilation and settings.
    fn beside(&self) -> Vec<String> {
        let mut parts = Vec::new();
        let [(planned, one), (also_planned, another)] = self.plans().map(workers);
        if planned == also_planned && one != another {
            parts.push(format!("{one:.0} and {another:.0} of {planned:.0} workers launched"));
        }
        for (one, another, _) in
            self.both().filter(|(one, another, _)| one.spilled != another.spilled).take(2)
        {
            let (spilled, number) = if one.spilled { (one, 1) } else { (another, self.number) };
            let used = spilled.used_memory.as_ref().map_or(String::new(), |used| format!(" ({})", used.text));
            parts.push(format!("{} went to disk in plan {number} only{used}", called(spilled)));
        }
        parts.extend(self.rows_apart());
        for (number, plan) in [(1, self.first), (self.number, self.other)] {
            parts.extend(compilation(plan).map(|text| format!("{text} in plan {number}")));
        }
        let settings = self
            .plans()
            .map(|plan| plan.fact("Settings").map_or(Vec::new(), |all| all.split(", ").collect()));
        for (number, own, others) in
            [(1, &settings[0], &settings[1]), (self.number, &settings[1], &settings[0])]
        {
            let own: Vec<&str> =
                own.iter().filter(|setting| !others.contains(setting)).copied().take(4).collect();
            if !own.is_empty() {
                parts.push(format!("{} in plan {number} only", own.join(", ")));
            }
        }
        parts
    }

    /// Returns the matched table or index whose rows differ most.
    fn rows_apart(&self) -> Option<String> {
        let of = |it: &'p PlanOperation| it.rows.as_ref().map(|rows| (rows, "rows"));
        let expected = |it: &'p PlanOperation| it.expected_rows.as_ref().map(|rows| (rows, "rows expected"));
        let has_rows = self.plans().iter().all(|plan| plan.operations.iter().any(|it| it.rows.is_some()));
        if !has_rows && !self.first.is_same_plan(self.other) {
            return None;
        }
        let of = |it: &'p PlanOperation| if has_rows { of(it) } else { expected(it) };
        let pairs = self.both().filter(|(one, _, row)| !one.name.is_empty() && row.differences.is_empty());
        let apart = pairs.filter_map(|(one, another, _)| {
            let ((own, word), (theirs, _)) = (of(one)?, of(another)?);
            let ratio = own.value.max(theirs.value).max(1.0) / own.value.min(theirs.value).max(1.0);
            is_apart(own.value, theirs.value)
                .then(|| (ratio, format!("{}: {} and {} {word}", called(one), own.text, theirs.text)))
        });
        apart.max_by(|(one, _), (another, _)| one.total_cmp(another)).map(|(_, text)| text)
    }

    /// Returns the first misestimate of the slower plan.
    fn slow_estimate(&self) -> Option<String> {
        let times = self.plans().map(|plan| plan.time().map_or(0.0, |time| time.value));
        let slow = usize::from(times[1] > times[0]);
        let found = estimates::findings(self.plans()[slow]).into_iter().next()?;
        let is_also =
            estimates::findings(self.plans()[1 - slow]).iter().any(|other| other.what == found.what);
        let number = if slow == 0 { 1 } else { self.number };
        (!is_also && times[0] != times[1]).then(|| format!("in plan {number}, {}", found.what))
    }

    /// P5: a condition that no longer finds rows.
    fn moved_finding(&self) -> Option<Finding> {
        let (from, access, to, filter) = self.moved().next()?;
        let what = "A predicate that found rows now drops rows that were read".to_string();
        let evidence = format!(
            "plan 1: access {} of {}; plan {}: filter {} of {}",
            shortened(access),
            called(from),
            self.number,
            shortened(filter),
            called(to)
        );
        let advice = match self.other.source {
            PlanSource::Oracle => {
                "try the hint PUSH_PRED; an optimizer trace (10053) gives the reason in a line with `bypassed`"
            }
            PlanSource::Postgres => "look for the index, and for a cast or a function around the column",
        };
        Some(finding("P5", what, evidence, advice.to_string()))
    }

    /// P6: a cost that grew tenfold.
    fn cost_finding(&self) -> Option<Finding> {
        let [one, another] =
            self.plans().map(|plan| plan.operations.first().and_then(|root| root.cost.as_ref()));
        let (one, another) = (one?, another?);
        let ratio = another.value / one.value;
        let ratio = Some(ratio).filter(|ratio| *ratio >= COST_OFF && ratio.is_finite())?;
        let what = format!("The optimizer expects {} times the cost", estimates::rounded(ratio));
        let evidence = format!("cost {} of plan 1, {} of plan {}", total(one), total(another), self.number);
        let advice = "it knew that this plan is worse and had no better one: an index, a statistic or a transformation is missing";
        Some(finding("P6", what, evidence, advice.to_string()))
    }
}

/// True if both read one table, or one an index of the table of the other.
fn is_of_table(one: &PlanOperation, another: &PlanOperation) -> bool {
    let table = |it: &PlanOperation| it.object.rsplit(" on ").next().unwrap_or_default().to_string();
    table(one) == table(another)
}

/// Returns the sums of workers planned and launched.
pub(super) fn workers(plan: &ExecutionPlan) -> (f64, f64) {
    let sum =
        |name: &str| plan.operations.iter().filter_map(|it| it.detail(name)).fold(0.0, |sum, it| sum + it);
    (sum("workers planned"), sum("workers launched"))
}

/// Returns the time of compilation if it is a part of the time.
fn compilation(plan: &ExecutionPlan) -> Option<String> {
    let ms: f64 = plan.fact("JIT")?.strip_suffix(" ms")?.parse().ok()?;
    let time = plan.time()?;
    // A parallel plan has the sum over its processes.
    let processes = if ms / 1e3 > time.value { " in all processes" } else { "" };
    (ms / 1e3 >= PART * time.value)
        .then(|| format!("JIT took {}{processes} of {}", seconds(ms / 1e3), seconds(time.value)))
}

/// True if two counts differ by more than noise.
fn is_apart(one: f64, another: f64) -> bool {
    let (least, most) = (one.min(another), one.max(another));
    most >= DIFFERS * least && most - least >= 2.0
}

/// Returns the names of columns in a condition, without tables and in order.
fn columns(condition: &str) -> Vec<String> {
    let plain = ordered(condition).replace('"', "");
    let words = plain.split(|letter: char| !(letter.is_alphanumeric() || "_$#.".contains(letter)));
    let is_name = |word: &&str| word.starts_with(|letter: char| letter.is_alphabetic() || letter == '_');
    let mut names: Vec<String> =
        words.filter(is_name).map(|word| word.rsplit('.').next().unwrap_or(word).to_lowercase()).collect();
    names.retain(|name| !["and", "or", "text", "integer", "bigint", "numeric"].contains(&name.as_str()));
    names.sort_unstable();
    names.dedup();
    names
}

fn seconds(value: f64) -> String {
    Nanos((value * 1e9) as u64).to_string()
}

fn count(value: f64) -> String {
    RowCount(value.round() as u64).to_string()
}

/// Returns a cost without that of the first row and without the share of CPU.
fn total(cost: &PlanFigure) -> String {
    let text = cost.text.split('(').next().unwrap_or_default().trim();
    text.rsplit("..").next().unwrap_or_default().to_string()
}

fn shortened(text: &str) -> String {
    let short: String = text.chars().take(CONDITION_MOST).collect();
    if short.len() < text.len() { short + "..." } else { short }
}

fn lowered(text: &str) -> String {
    let mut letters = text.chars();
    let is_word =
        text.split(' ').next().is_some_and(|word| word.chars().skip(1).all(|letter| letter.is_lowercase()));
    match letters.next().filter(|_| is_word && !text.contains('(')) {
        Some(first) => first.to_lowercase().chain(letters).collect(),
        None => text.to_string(),
    }
}
