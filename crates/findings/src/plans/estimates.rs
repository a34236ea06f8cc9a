//! P1: expected rows that are off by ten where an operator above was chosen by them.
//!
//! E-Rows are of one start, so E-Rows x Starts is compared with A-Rows. The finding names the
//! operator that depends on the rows, its input, and the lowest operators at which they are off.
//! Estimates further up are off for the same reason and are no findings of their own.
//!
//! Fewer rows than expected are no misestimate if
//!
//! - an operator above stopped reading, with none between them that reads its whole input first: a
//!   LIMIT, a semi join, a merge join, or any join whose other input is empty;
//! - one row was expected of each start, because no optimizer expects less;
//! - parallel servers did the work, and all below the coordinator are zero: the plan has no figures
//!   of them.
//!
//! EXPLAIN of PostgreSQL has the rows that it expects of one process, and divides those of a
//! parallel scan by the workers planned and a part of the leader. If fewer were launched, each has
//! more rows, so that the number of processes is any between both.
//!
//! Limits: a client that stops fetching leaves no operator behind. Ten is the factor from which an
//! optimizer's choices usually change; a factor below it proves nothing.

use super::{called, finding};
use plumb_record::Finding;
use plumb_record::plan::{ExecutionPlan, PlanFigure, PlanOperation, PlanSource};
use plumb_units::ValueRange;

/// Least factor between expected and actual rows.
const OFF: f64 = 10.0;
/// Most predicates that the advice names.
const PREDICATES_MOST: usize = 4;
/// Most letters of a predicate in the advice.
const PREDICATE_MOST: usize = 80;

/// Direction in which an estimate is off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Off {
    More,
    Fewer,
}

struct Estimates<'p> {
    plan: &'p ExecutionPlan,
    inputs: Vec<Vec<usize>>,
    above: Vec<Option<usize>>,
    off: Vec<Option<Off>>,
}

pub(super) fn findings(plan: &ExecutionPlan) -> Vec<Finding> {
    let inputs = plan.inputs();
    let mut above = vec![None; inputs.len()];
    for (at, own) in inputs.iter().enumerate() {
        own.iter().for_each(|input| above[*input] = Some(at));
    }
    let mut estimates = Estimates { plan, inputs, above, off: Vec::new() };
    let unseen = estimates.unseen();
    estimates.off = (0..plan.operations.len()).map(|at| estimates.judged(at, &unseen)).collect();
    // From the lowest operator up, so that what follows from a finding is known.
    let mut found = Vec::new();
    let mut explained = vec![false; plan.operations.len()];
    for at in (0..plan.operations.len()).rev() {
        let inputs = &estimates.inputs[at];
        explained[at] = inputs.iter().any(|input| explained[*input]);
        if !depends(&plan.operations[at].operation) {
            continue;
        }
        let unexplained = inputs.iter().filter(|input| !explained[**input]);
        let off = unexplained.filter_map(|input| Some((*input, estimates.off[*input]?)));
        let own: Vec<Finding> = off.map(|(input, off)| estimates.found(at, input, off)).collect();
        explained[at] |= !own.is_empty();
        found.extend(own);
    }
    found.reverse();
    found
}

/// True if the operator or its place was chosen by the rows of its inputs.
fn depends(operation: &str) -> bool {
    let name = operation.to_uppercase();
    let joins = name.contains(" JOIN") && !name.starts_with("JOIN FILTER");
    // A Memoize is chosen by the rows of the other side of its join.
    let gathers = ["SORT", "HASH ", "HASHAGG", "MATERIALIZE", "WINDOW"];
    let gathers = gathers.iter().any(|word| name.contains(word)) && name != "SORT AGGREGATE";
    joins || gathers || name.contains("NESTED LOOP")
}

/// True if the operator reads all of this input before it returns a row.
fn reads_all(source: PlanSource, operation: &PlanOperation, input: usize, below: &PlanOperation) -> bool {
    let name = operation.operation.to_uppercase();
    let starts = |words: &[&str]| words.iter().any(|word| name.starts_with(word));
    match source {
        // The table of a hash join is built from its first input.
        PlanSource::Oracle if name.starts_with("HASH JOIN") => input == 0 || name.contains("BUFFERED"),
        PlanSource::Oracle => {
            let whole = ["SORT ", "HASH ", "BUFFER SORT", "LOAD ", "TEMP TABLE", "BITMAP "];
            starts(&whole) && !name.contains("NOSORT")
        }
        PlanSource::Postgres => {
            let whole = ["SORT", "HASHAGG", "MIXEDAGG", "AGGREGATE", "HASHSETOP", "BITMAP INDEX"];
            let writes = ["INSERT", "UPDATE", "DELETE", "MERGE ON", "WINDOWAGG"];
            let builds = |operation: &PlanOperation| operation.operation.ends_with("Hash");
            builds(operation) || builds(below) || starts(&whole) || starts(&writes)
        }
    }
}

/// True if the operator may stop before the end of this input.
fn stops(operation: &PlanOperation, input: usize) -> bool {
    let name = operation.operation.to_uppercase();
    let is_semi = name.contains("SEMI") || name.contains("ANTI");
    name == "LIMIT"
        || name.contains("STOPKEY")
        || name.starts_with("MERGE") && name.contains("JOIN")
        || is_semi && input == 1
}

impl Estimates<'_> {
    fn operation(&self, at: usize) -> &PlanOperation {
        &self.plan.operations[at]
    }

    /// Marks operators below a coordinator all of which show no row.
    fn unseen(&self) -> Vec<bool> {
        let operations = &self.plan.operations;
        let mut unseen = vec![false; operations.len()];
        for (at, coordinator) in operations.iter().enumerate() {
            if !coordinator.operation.starts_with("PX COORDINATOR") {
                continue;
            }
            let below = operations[at + 1..].iter();
            let count = below.take_while(|operation| operation.depth > coordinator.depth).count();
            let servers = at + 1..at + 1 + count;
            let is_zero = |at: usize| operations[at].rows.as_ref().is_none_or(|rows| rows.value == 0.0);
            if servers.clone().all(is_zero) {
                servers.for_each(|at| unseen[at] = true);
            }
        }
        unseen
    }

    /// Returns the rows that an operator was expected to return, or the sum of its inputs' if it
    /// has no estimate of its own, such as a UNION ALL.
    fn expected(&self, at: usize) -> Option<ValueRange> {
        let operation = self.operation(at);
        if let Some(each) = &operation.expected_rows {
            let starts = operation.starts.as_ref()?;
            let processes = self.processes(at).filter(|(_, started)| starts.value <= *started);
            let planned = processes.map_or(starts.range, |(planned, _)| ValueRange {
                low: starts.range.low.min(planned),
                high: starts.range.high.max(planned),
            });
            return Some(each.range.times(planned));
        }
        let inputs = self.inputs[at].iter().map(|input| self.expected(*input));
        inputs.sum::<Option<SumOfRanges>>().map(|sum| sum.0).filter(|_| !self.inputs[at].is_empty())
    }

    /// Returns the processes of a parallel part that the optimizer divided by, and those started.
    fn processes(&self, mut at: usize) -> Option<(f64, f64)> {
        while let Some(above) = self.above[at] {
            let gather = self.operation(above);
            if let Some(planned) = gather.detail("workers planned") {
                let launched = gather.detail("workers launched").unwrap_or(planned);
                return Some((planned + (1.0 - 0.3 * planned).max(0.0), launched + 1.0));
            }
            at = above;
        }
        None
    }

    fn judged(&self, at: usize, unseen: &[bool]) -> Option<Off> {
        let operation = self.operation(at);
        let ran = operation.starts.as_ref().is_some_and(|starts| starts.value > 0.0);
        let came = operation.rows.as_ref().filter(|_| ran && !unseen[at])?.range;
        let expected = self.expected(at)?;
        let at_least_one = |each: &PlanFigure| each.value <= 1.0;
        if came.low >= OFF * expected.high.max(f64::MIN_POSITIVE) {
            Some(Off::More)
        } else if expected.low >= OFF * came.high
            && !operation.expected_rows.as_ref().is_some_and(at_least_one)
            && !self.stopped(at)
        {
            Some(Off::Fewer)
        } else {
            None
        }
    }

    /// Returns the place of an input among those of its operator.
    fn place(&self, above: usize, input: usize) -> usize {
        self.inputs[above].iter().position(|other| *other == input).unwrap_or_default()
    }

    /// True if an operator above may have stopped reading.
    fn stopped(&self, at: usize) -> bool {
        let mut below = at;
        while let Some(above) = self.above[below] {
            let input = self.place(above, below);
            let operation = self.operation(above);
            let is_part = !self.operation(below).role.is_empty();
            if stops(operation, input) || is_part || self.joins_nothing(above, below) {
                return true;
            }
            if reads_all(self.plan.source, operation, input, self.operation(below)) {
                return false;
            }
            below = above;
        }
        false
    }

    /// True if another input of a join returned no row.
    fn joins_nothing(&self, join: usize, input: usize) -> bool {
        let is_empty = |other: &usize| {
            *other != input && self.operation(*other).rows.as_ref().is_some_and(|rows| rows.value == 0.0)
        };
        self.operation(join).operation.to_uppercase().contains("JOIN")
            && self.inputs[join].iter().any(is_empty)
    }

    /// Returns the lowest operators at which an estimate is off in this direction.
    fn origins(&self, at: usize, off: Off) -> Vec<usize> {
        let below: Vec<usize> = self.inputs[at].iter().flat_map(|input| self.origins(*input, off)).collect();
        let own = below.is_empty() && self.off[at] == Some(off);
        if own { vec![at] } else { below }
    }

    fn found(&self, at: usize, input: usize, off: Off) -> Finding {
        let (operation, source) = (self.operation(at), self.operation(input));
        let expected = self.expected(input).map_or(0.0, ValueRange::middle);
        let came = source.rows.as_ref().map_or(0.0, |rows| rows.value);
        let text = |figure: &Option<PlanFigure>| figure.as_ref().map_or(String::new(), |it| it.text.clone());
        let origins = self.origins(input, off);
        let named: Vec<String> = origins.iter().map(|origin| called(self.operation(*origin))).collect();
        let from =
            if origins == [input] { String::new() } else { format!("; off from {} on", named.join(", ")) };
        let factor = match off {
            Off::More => {
                let is_first = reads_all(self.plan.source, operation, self.place(at, input), source);
                let before = if is_first { " before its first row" } else { "" };
                format!("{} times as many came{before}", rounded(came / expected))
            }
            Off::Fewer if came == 0.0 => "none came".to_string(),
            Off::Fewer => format!("1 in {} came", rounded(expected / came)),
        };
        let what = format!(
            "{} was planned for {} rows of {}, and {factor}",
            called(operation),
            rounded(expected),
            called(source)
        );
        let work =
            [("Buffers ", &source.buffers), ("Used-Mem of the operator above ", &operation.used_memory)];
        let work = work.iter().filter(|(_, figure)| figure.is_some());
        let work: String = work.map(|(name, figure)| format!(", {name}{}", text(figure))).collect();
        let each = match &source.expected_rows {
            Some(each) => format!("E-Rows {} x Starts {}", each.text, text(&source.starts)),
            None => format!("E-Rows x Starts {} of its inputs", rounded(expected)),
        };
        let evidence = format!("{each}, A-Rows {}{work}{from}", text(&source.rows));
        finding("P1", what, evidence, self.advice(&origins))
    }

    fn advice(&self, origins: &[usize]) -> String {
        let by_columns = |at: &&usize| is_found_by_columns(self.plan.source, self.operation(**at));
        let (found, others): (Vec<&usize>, Vec<&usize>) = origins.iter().partition(by_columns);
        let table = |at: &usize| {
            let object = self.operation(*at).lasting_object();
            object.split_once(" on ").map_or(object, |(_, table)| table).to_string()
        };
        let objects = distinct(others.into_iter().map(table));
        let of = if objects.is_empty() { String::new() } else { format!(" of {}", objects.join(", ")) };
        if self.plan.source == PlanSource::Postgres {
            return format!(
                "ANALYZE, or CREATE STATISTICS where columns depend on each other, corrects the estimates{of}"
            );
        }
        let access = found.into_iter().flat_map(|at| &self.operation(*at).access);
        let mut predicates = distinct(access.map(|access| shortened(access)));
        predicates.truncate(PREDICATES_MOST);
        let columns = match predicates.is_empty() {
            true => String::new(),
            false => format!("column statistics (histogram) of the columns in: {}", predicates.join(", ")),
        };
        let all = format!("statistics{of} (age, histograms, column groups)");
        let suspects = match (columns.is_empty(), objects.is_empty()) {
            (true, _) => all,
            (false, true) => columns,
            (false, false) => format!("{all}, the {columns}"),
        };
        format!("look at the {suspects}, and whether an optimizer mode plans for the first rows only")
    }
}

/// True if the rows of an operator follow from its predicates and the statistics of columns, which
/// are those of the table and not of the index that it reads.
fn is_found_by_columns(source: PlanSource, operation: &PlanOperation) -> bool {
    let is_index = ["INDEX ", "BITMAP INDEX "].iter().any(|word| operation.operation.starts_with(word));
    source == PlanSource::Oracle && is_index && !operation.access.is_empty()
}

fn distinct(all: impl Iterator<Item = String>) -> Vec<String> {
    let mut distinct: Vec<String> = Vec::new();
    for one in all.filter(|one| !one.is_empty()) {
        if !distinct.contains(&one) {
            distinct.push(one);
        }
    }
    distinct
}

/// Returns the start of a predicate without the quotes of its names.
fn shortened(predicate: &str) -> String {
    let mut letters = predicate.chars().filter(|letter| *letter != '"');
    let short: String = letters.by_ref().take(PREDICATE_MOST).collect();
    if letters.next().is_some() { short + "..." } else { short }
}

/// Returns a number for a sentence: no decimals from ten on.
pub(super) fn rounded(value: f64) -> String {
    match value {
        value if value < 10.0 && value.fract() != 0.0 => format!("{value:.1}"),
        value => plumb_units::RowCount(value.round() as u64).to_string(),
    }
}

/// A sum of ranges, none if one is not known.
struct SumOfRanges(ValueRange);

impl std::iter::Sum<ValueRange> for SumOfRanges {
    fn sum<I: Iterator<Item = ValueRange>>(ranges: I) -> SumOfRanges {
        SumOfRanges(ranges.fold(ValueRange::exactly(0.0), ValueRange::plus))
    }
}
