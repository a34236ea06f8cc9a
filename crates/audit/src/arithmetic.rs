//! Checks a relation by the intervals of its figures, in every reading of their units.

use crate::claim::{By, PrintedFigure, PublishedClaim, Relation};
use crate::rule::Way;
use plumb_figures::claimed::Meaning;
use plumb_figures::relation::Test;
use plumb_figures::unit::Dimension;
use plumb_units::ValueRange;

/// Most readings of a relation; each ambiguous figure multiplies their number.
const READINGS_MOST: usize = 1024;
/// Most results that a reason lists.
const SHOWN_MOST: usize = 4;

/// Result of the check of a relation.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) holds: bool,
    pub(crate) text: String,
    /// The figures of the case described by the text.
    pub(crate) figures: Vec<String>,
}

/// One reading of every figure of a claim; `None` for figures outside the relation.
type Chosen<'c> = Vec<Option<&'c Meaning>>;

/// Judges a relation; `None` if the arithmetic needs an end that a figure leaves open.
pub(crate) fn judge(claim: &PublishedClaim, relation: &Relation) -> Option<Found> {
    let readings = readings(claim, relation);
    let first =
        relation.cases.first().map_or(Dimension::default(), |case| claim.figures[case[0][0]].dimension);
    let ways = relation.rule.ways_of(first);
    let mut attempts = Vec::new();
    for (number, chosen) in readings.iter().enumerate() {
        for way in &ways {
            let case = |case: &Vec<Vec<usize>>| computed(case, chosen, relation, way);
            let cases: Option<Vec<ValueRange>> = relation.cases.iter().map(case).collect();
            attempts.push(Attempt { number, ..Attempt::of(relation, chosen, way, cases?) });
        }
    }
    let (fits, fails): (Vec<&Attempt>, Vec<&Attempt>) =
        attempts.iter().partition(|attempt| attempt.failing.is_empty());
    let holds = !fits.is_empty();
    let shown_attempts = if holds { &fits } else { &fails };
    let case = &relation.cases[shown_attempts.first()?.first_case()];
    let stated = &claim.figures[case[relation.rule.stated][0]];
    let computed = shown_results(shown_attempts, relation, stated);
    let left = left(claim, relation, case);
    let said = said(relation, stated, holds);
    let more = match holds {
        true => only(&fits, readings.len()) + &other_ways(relation, &attempts, &fits, stated),
        false if relation.rule.means.is_empty() => String::new(),
        false => format!(": {}", relation.rule.means),
    };
    let of = of_cases(shown_attempts, relation, holds);
    let text = format!("{left} is {computed}{said}{of}{more}");
    let figures = case.iter().flatten().map(|place| &claim.figures[*place]);
    let figures = figures.filter(|figure| !figure.is_threshold).map(|figure| figure.name.clone()).collect();
    Some(Found { holds, text, figures })
}

/// Returns the words of the stated side; empty for a threshold, which no claim states.
fn said(relation: &Relation, stated: &PrintedFigure, holds: bool) -> String {
    if stated.is_threshold {
        return String::new();
    }
    let words = match (relation.rule.test, holds) {
        (Test::Equal, true) if stated.by == By::Critic => ", as the critic computed:",
        (Test::Equal, false) if stated.by == By::Critic => ", and the critic computed",
        (Test::Equal, true) => ", as stated:",
        (Test::Equal, false) => ", and stated is",
        (Test::AtMost, true) => ", not above",
        (Test::AtMost, false) => ", which is above",
        (Test::AtLeast, true) => ", not below",
        (Test::AtLeast, false) => ", which is below",
    };
    format!("{words} {}", shown(stated))
}

/// A relation in one reading of its units and one way.
struct Attempt {
    /// The number of the reading.
    number: usize,
    /// Indices of the cases that fail.
    failing: Vec<usize>,
    cases: Vec<ValueRange>,
    way: &'static str,
    choices: Vec<String>,
}

impl Attempt {
    fn of(relation: &Relation, chosen: &Chosen, way: &Way, cases: Vec<ValueRange>) -> Attempt {
        let holds = |number: usize| {
            let place = relation.cases[number][relation.rule.stated][0];
            let Some(stated) = chosen[place] else { return false };
            let computed = cases[number];
            relation.rule.test.holds(computed, stated.range)
        };
        let failing = (0..cases.len()).filter(|number| !holds(*number)).collect();
        let mut choices: Vec<String> = Vec::new();
        for (_, meaning) in chosen.iter().flatten().flat_map(|reading| &reading.choices) {
            if !choices.contains(meaning) {
                choices.push(meaning.clone());
            }
        }
        Attempt { number: 0, failing, cases, way: way.name, choices }
    }

    /// Returns the case to print: the first that fails.
    fn first_case(&self) -> usize {
        self.failing.first().copied().unwrap_or(0)
    }

    /// Returns the result in the unit of the stated figure. If one figure is stated for all cases,
    /// the result covers them all.
    fn result(&self, relation: &Relation, stated: &PrintedFigure) -> String {
        let place = |case: usize| relation.cases[case][relation.rule.stated][0];
        let first = self.first_case();
        let is_shown =
            |case: &usize| *case == first || self.failing.is_empty() || self.failing.contains(case);
        let all = (0..self.cases.len()).all(|case| place(case) == place(first));
        let cases: Vec<usize> =
            (0..self.cases.len()).filter(|case| if all { is_shown(case) } else { *case == first }).collect();
        let low = cases.iter().map(|case| self.cases[*case].low).fold(f64::INFINITY, f64::min);
        let high = cases.iter().map(|case| self.cases[*case].high).fold(f64::NEG_INFINITY, f64::max);
        let is_chosen =
            |reading: &&Meaning| reading.choices.iter().all(|(_, meaning)| self.choices.contains(meaning));
        let scale = stated.readings.iter().find(is_chosen).map_or(1.0, |reading| reading.scale);
        amount(low / scale, high / scale, &stated.unit)
    }

    /// Returns the reading in brackets, to follow a result.
    fn read_as(&self) -> String {
        let way = Some(self.way.to_string()).filter(|way| !way.is_empty());
        let said: Vec<String> = way.into_iter().chain(self.choices.iter().cloned()).collect();
        if said.is_empty() { String::new() } else { format!(" ({})", said.join(", ")) }
    }
}

/// Returns the results of some attempts, with the readings that they depend on.
fn shown_results(attempts: &[&Attempt], relation: &Relation, stated: &PrintedFigure) -> String {
    let results = distinct(attempts.iter().map(|attempt| attempt.result(relation, stated)));
    let ways = distinct(attempts.iter().map(|attempt| attempt.way.to_string()));
    match (&results[..], &ways[..]) {
        ([one], [_]) if attempts.len() > 1 => one.clone(),
        _ => distinct(attempts.iter().map(|attempt| attempt.result(relation, stated) + &attempt.read_as()))
            .join("; "),
    }
}

/// Returns a phrase if only some readings hold.
fn only(fits: &[&Attempt], readings: usize) -> String {
    let mut numbers: Vec<usize> = fits.iter().map(|attempt| attempt.number).collect();
    numbers.dedup();
    match numbers.len() {
        count if count == readings => String::new(),
        1 => format!("; of {readings} readings of the units only this one adds up"),
        count => format!("; of {readings} readings of the units only these {count} add up"),
    }
}

/// Returns the results of the ways that do not fit, such as the other meaning of "faster".
fn other_ways(relation: &Relation, all: &[Attempt], fits: &[&Attempt], stated: &PrintedFigure) -> String {
    let is_fit = |attempt: &&Attempt| fits.iter().any(|fit| fit.way == attempt.way);
    let mut others: Vec<&Attempt> = Vec::new();
    for attempt in all.iter().filter(|attempt| !is_fit(attempt)) {
        if others.iter().all(|known| known.way != attempt.way) {
            others.push(attempt);
        }
    }
    others
        .into_iter()
        .map(|attempt| format!("; not {}{}", attempt.result(relation, stated), attempt.read_as()))
        .collect()
}

/// Returns the number of cases in words if there are several.
fn of_cases(shown: &[&Attempt], relation: &Relation, holds: bool) -> String {
    let count = relation.cases.len();
    let failing = shown.iter().map(|attempt| attempt.failing.len()).min().unwrap_or(0);
    match count {
        1 => String::new(),
        _ if holds => format!(" (all {count} cases)"),
        _ => format!(" ({failing} of {count} cases)"),
    }
}

fn distinct(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for text in texts {
        if !found.contains(&text) && found.len() < SHOWN_MOST {
            found.push(text);
        }
    }
    found
}

/// Returns every combination of readings, with one meaning for each ambiguous text.
fn readings<'c>(claim: &'c PublishedClaim, relation: &Relation) -> Vec<Chosen<'c>> {
    let mut all: Vec<Chosen> = vec![vec![None; claim.figures.len()]];
    for place in relation.cases.iter().flatten().flatten() {
        if all[0][*place].is_some() {
            continue;
        }
        let mut next = Vec::new();
        for chosen in &all {
            for reading in claim.figures[*place].readings.iter().filter(|reading| agrees(chosen, reading)) {
                let mut with = chosen.clone();
                with[*place] = Some(reading);
                next.push(with);
            }
        }
        next.truncate(READINGS_MOST);
        all = next;
    }
    all
}

/// True if a reading gives no text another meaning than the chosen ones.
fn agrees(chosen: &Chosen, reading: &Meaning) -> bool {
    let taken = || chosen.iter().flatten().flat_map(|one| &one.choices);
    reading
        .choices
        .iter()
        .all(|(what, meaning)| taken().all(|(other, taken)| other != what || taken == meaning))
}

/// Returns the interval of a way: least and most over all corners of its figures.
fn computed(case: &[Vec<usize>], chosen: &Chosen, relation: &Relation, way: &Way) -> Option<ValueRange> {
    let stated = relation.rule.stated;
    let given: Vec<(usize, usize)> = case
        .iter()
        .enumerate()
        .filter(|(role, _)| *role != stated)
        .flat_map(|(role, places)| (0..places.len()).map(move |at| (role, at)))
        .collect();
    let mut values: Vec<Vec<f64>> = case.iter().map(|places| vec![0.0; places.len()]).collect();
    let mut interval = ValueRange { low: f64::INFINITY, high: f64::NEG_INFINITY };
    for corner in 0..1u32 << given.len() {
        for (bit, (role, at)) in given.iter().enumerate() {
            let reading = chosen[case[*role][*at]]?;
            values[*role][*at] =
                if corner & (1 << bit) == 0 { reading.range.low } else { reading.range.high };
        }
        let value = (way.of)(&values);
        if !value.is_finite() {
            return None;
        }
        interval = ValueRange { low: interval.low.min(value), high: interval.high.max(value) };
    }
    Some(interval)
}

/// Returns the formula of a rule with the claim's figures in place of `{names}`.
fn left(claim: &PublishedClaim, relation: &Relation, case: &[Vec<usize>]) -> String {
    let mut text = relation.rule.left.to_string();
    for (role, places) in relation.rule.roles.iter().zip(case) {
        let texts: Vec<String> = places.iter().map(|place| shown(&claim.figures[*place])).collect();
        text = text.replace(&format!("{{{}}}", role.name), &texts.join(relation.rule.between));
    }
    text
}

/// Returns the text of a figure, with the unit added if the text lacks it.
fn shown(figure: &PrintedFigure) -> String {
    let has_unit = figure.text.ends_with(&figure.unit)
        || figure.text.contains(':')
        || figure.text.contains(" min ")
        || figure.unit == "%";
    if has_unit { figure.text.clone() } else { format!("{} {}", figure.text, figure.unit) }
}

/// Formats an interval in a unit, as one number if its ends agree in four digits.
fn amount(low: f64, high: f64, unit: &str) -> String {
    let (low, high) = (digits(low), digits(high));
    let number = if low == high { low } else { format!("{low} to {high}") };
    match unit {
        "" => number,
        "%" => format!("{number}%"),
        unit => format!("{number} {unit}"),
    }
}

/// Formats a value with four digits, or with all digits before the point.
fn digits(value: f64) -> String {
    let size = value.abs();
    let decimals = match size {
        size if size >= 1000.0 || size == 0.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        size if size >= 1.0 => 3,
        _ => 4,
    };
    let text = format!("{value:.decimals$}");
    let (sign, text) = text.strip_prefix('-').map_or(("", text.as_str()), |rest| ("-", rest));
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut grouped = String::new();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let fraction = fraction.trim_end_matches('0');
    if fraction.is_empty() { format!("{sign}{grouped}") } else { format!("{sign}{grouped}.{fraction}") }
}
