//! Parses a claim file. It states what the author published, without any judgement.
//!
//! ```toml
//! statement = "Loads into larger blocks are far faster."
//!
//! [source]
//! title = "..."
//! author = "..."
//! date = "2005-04"
//! place = "section 3"
//!
//! [figures]          # as printed: the interval of rounding follows from the text
//! rows = { text = "8k", unit = "rows" }
//! small = { text = "4.33 secs" }
//! slip = { text = "39,688", unit = "blocks", by = "critic" }
//!
//! [[relation]]       # how the figures are related: a rule, and a figure for each role
//! rule = "rate"
//! count = "rows"
//! time = "small"
//! rate = "claimed"
//!
//! [stated]           # answers to the checklist, as far as the claim has them
//! runs = 1
//! order = "fixed"
//!
//! [experiment]       # a study that asks the same, and a bundle of it
//! study = "block-size"
//! claim = "larger-load"
//! ```
//! A figure with `by = "critic"` is a reader's. A contradiction among such figures is the critic's
//! mistake and does not affect the claim.

use crate::checklist::{Answer, ITEMS};
use crate::rule::{RULES, Rule, Takes, rule};
use plumb_figures::bound::{BOUNDS, bound};
use plumb_figures::claimed::{ClaimedFigure, Meaning, Rounding, printed};
use plumb_figures::unit::Dimension;
use plumb_units::{ValueRange, nearest};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;
use toml::Spanned;

/// An error in a claim file: its line, and a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ClaimError(String);

/// The place where a claim was published.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Publication {
    /// Title of the page or paper.
    pub title: String,
    /// The author of the page, or of the talk.
    pub author: String,
    /// Year, month or day, ISO 8601.
    pub date: String,
    /// Section, page or address of the claim.
    pub place: String,
}

/// A study of plumb that tests the claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// The name of the study.
    pub study: String,
    /// The claim of the study that says the same.
    pub claim: Option<String>,
    /// The claim of the study that says the contrary.
    pub contrary: Option<String>,
    /// The directory of a bundle, from that of the file.
    pub bundle: Option<String>,
    /// The claim's figure, per cent, that the bundle's effect must include.
    pub figure: Option<String>,
}

/// The author of a figure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// The author of the claim.
    #[default]
    Author,
    /// A reader of the claim, with figures against it.
    Critic,
}

#[derive(Debug, Clone)]
pub struct PrintedFigure {
    /// The name in the claim file.
    pub name: String,
    pub text: String,
    /// The author of this figure.
    pub by: By,
    /// A page of this repository with the figure, and its words there.
    pub page: Option<(String, String)>,
    /// True if a rule supplies the figure instead of the claim.
    pub(crate) is_threshold: bool,
    pub(crate) unit: String,
    pub(crate) dimension: Dimension,
    pub(crate) readings: Vec<Meaning>,
}

/// A relation among figures; roles hold indices into [`PublishedClaim::figures`].
#[derive(Debug, Clone)]
pub(crate) struct Relation {
    pub(crate) rule: &'static Rule,
    /// For each case, the figures of each role.
    pub(crate) cases: Vec<Vec<Vec<usize>>>,
    pub(crate) by: By,
}

#[derive(Debug, Clone)]
pub struct PublishedClaim {
    /// The file's name without its ending.
    pub name: String,
    /// The claim in a sentence.
    pub statement: String,
    /// The place where it was published.
    pub source: Publication,
    /// The figures of the file, then the bounds of its rules.
    pub figures: Vec<PrintedFigure>,
    pub(crate) relations: Vec<Relation>,
    pub(crate) stated: BTreeMap<&'static str, Answer>,
    pub experiment: Option<Experiment>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawClaim {
    statement: String,
    source: Publication,
    #[serde(default)]
    figures: BTreeMap<String, Spanned<RawFigure>>,
    #[serde(default)]
    relation: Vec<Spanned<BTreeMap<String, toml::Value>>>,
    #[serde(default)]
    stated: BTreeMap<String, Spanned<toml::Value>>,
    experiment: Option<Experiment>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFigure {
    text: String,
    unit: Option<String>,
    /// An alternative text, if the claim does not say which is meant.
    or: Option<String>,
    #[serde(default)]
    exact: bool,
    #[serde(default)]
    by: By,
    page: Option<String>,
    words: Option<String>,
}

/// Most figures of a relation, because all corners of their intervals are tried.
const FIGURES_MOST: usize = 12;
/// Most cases of a relation.
const CASES_MOST: usize = 100;

/// Parses a claim of this name; `file` names it in errors. Fails with the first fault and its line.
pub fn parse(file: &str, name: &str, text: &str) -> Result<PublishedClaim, ClaimError> {
    let at = |span: Range<usize>, what: &str| {
        let before = &text.as_bytes()[..span.start.min(text.len())];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        ClaimError(format!("{file}:{line}: {what}"))
    };
    let raw: RawClaim = toml::from_str(text).map_err(|error| {
        if !is_claim(text) {
            return ClaimError(format!(
                "{file} is no claim file; expected TOML with a statement and its [source], as docs/audit.md has \
                 it; `plumb import {file}` checks the figures of a report"
            ));
        }
        let span = error.span().unwrap_or(0..0);
        let said = error.message().lines().next().unwrap_or("it is no claim file");
        let missing = missing_key(text).filter(|_| said.starts_with("missing field"));
        at(span, &missing.unwrap_or_else(|| said.to_string()))
    })?;
    let mut claim = PublishedClaim {
        name: name.to_string(),
        statement: raw.statement,
        source: raw.source,
        figures: Vec::new(),
        relations: Vec::new(),
        stated: BTreeMap::new(),
        experiment: raw.experiment,
    };
    for (name, figure) in &raw.figures {
        let read = read_figure(name, figure.get_ref());
        claim.figures.push(read.map_err(|what| at(figure.span(), &format!("figure {name}: {what}")))?);
    }
    for relation in &raw.relation {
        let read = read_relation(&mut claim.figures, relation.get_ref());
        claim.relations.push(read.map_err(|what| at(relation.span(), &what))?);
    }
    for (name, answer) in &raw.stated {
        let item = ITEMS.iter().find(|item| item.name == name);
        let item = item.ok_or_else(|| {
            let near = near(name, ITEMS.iter().map(|item| item.name));
            at(answer.span(), &format!("the checklist has no {name:?}{near}"))
        })?;
        let answer = item.answer(answer.get_ref()).map_err(|what| at(answer.span(), &what))?;
        claim.stated.insert(item.name, answer);
    }
    if let Some(experiment) = &claim.experiment {
        require_experiment(experiment, &claim.figures).map_err(|what| at(0..0, &what))?;
    }
    Ok(claim)
}

/// Returns the first key that a claim file must have and lacks, with its table.
fn missing_key(text: &str) -> Option<String> {
    let file: toml::Table = toml::from_str(text).ok()?;
    let lacks = |table: Option<&toml::Value>, place: &str, keys: &[&str]| {
        let needs = format!("it needs {}", keys.join(", "));
        let Some(table) = table else { return Some(format!("there is no {place}; {needs}")) };
        let own = table.as_table();
        let missing = keys.iter().find(|key| own.is_none_or(|own| !own.contains_key(**key)))?;
        Some(format!("{place} has no {missing}; {needs}"))
    };
    if !file.contains_key("statement") {
        return Some("the file has no statement, the claim in a sentence above its tables".to_string());
    }
    let source = ["title", "author", "date", "place"];
    let figures = file.get("figures").and_then(toml::Value::as_table);
    lacks(file.get("source"), "[source]", &source)
        .or_else(|| {
            let all = figures.into_iter().flatten();
            all.filter(|(_, figure)| figure.is_table())
                .find_map(|(name, figure)| lacks(Some(figure), &format!("figure {name}"), &["text"]))
        })
        .or_else(|| file.get("experiment").and_then(|own| lacks(Some(own), "[experiment]", &["study"])))
}

/// True if a text has a line of a claim file, so that a fault in it is worth its line.
fn is_claim(text: &str) -> bool {
    let begins = ["statement", "[source]", "[figures]", "[[relation]]", "[stated]", "[experiment]"];
    let is_of_claim = |line: &str| begins.iter().any(|own| line.trim_start().starts_with(own));
    toml::from_str::<toml::Table>(text).is_ok() || text.lines().any(is_of_claim)
}

fn near<'n>(name: &str, known: impl Iterator<Item = &'n str> + Clone) -> String {
    nearest(name, known).map_or(String::new(), |near| format!(" (did you mean {near}?)"))
}

fn require_experiment(experiment: &Experiment, figures: &[PrintedFigure]) -> Result<(), String> {
    let named = [&experiment.claim, &experiment.contrary];
    if named.iter().filter(|claim| claim.is_some()).count() != 1 {
        return Err(
            "experiment: expected one of claim and contrary, the name of a claim of the study".to_string()
        );
    }
    match &experiment.figure {
        Some(figure) if figures.iter().all(|known| known.name != *figure) => Err(format!(
            "experiment: there is no figure {figure:?}{}",
            near(figure, figures.iter().map(|one| one.name.as_str()))
        )),
        _ => Ok(()),
    }
}

fn read_figure(name: &str, raw: &RawFigure) -> Result<PrintedFigure, String> {
    let rounding = if raw.exact { Rounding::Exact } else { Rounding::ByText };
    let ClaimedFigure { dimension, unit, readings: mut found } =
        printed(&raw.text, raw.unit.as_deref(), rounding)?;
    if let Some(other) = &raw.or {
        let second = printed(other, raw.unit.as_deref(), rounding)?;
        if second.dimension != dimension {
            return Err(format!("{:?} and {other:?} are of different kinds", raw.text));
        }
        let chosen = |text: &str| (name.to_string(), format!("{name} = {text}"));
        found.iter_mut().for_each(|reading| reading.choices.push(chosen(&raw.text)));
        found.extend(second.readings.into_iter().map(|mut reading| {
            reading.choices.push(chosen(other));
            reading
        }));
    }
    let page = match (&raw.page, &raw.words) {
        (Some(page), Some(words)) if words.contains(&raw.text) => Some((page.clone(), words.clone())),
        (None, None) => None,
        _ => return Err(format!("expected page, and words of it that have {:?}", raw.text)),
    };
    Ok(PrintedFigure {
        name: name.to_string(),
        text: raw.text.clone(),
        by: raw.by,
        page,
        is_threshold: false,
        unit,
        dimension,
        readings: found,
    })
}

/// Fills the roles of a rule with figures.
fn read_relation(
    figures: &mut Vec<PrintedFigure>,
    raw: &BTreeMap<String, toml::Value>,
) -> Result<Relation, String> {
    let named = raw.get("rule").and_then(toml::Value::as_str).unwrap_or_default();
    let names = || RULES.iter().map(|rule| rule.name);
    let rule = rule(named).ok_or_else(|| {
        format!(
            "there is no rule {named:?}{}; they are {}",
            near(named, names()),
            names().collect::<Vec<_>>().join(", ")
        )
    })?;
    let by = match raw.get("by").map(toml::Value::as_str) {
        None | Some(Some("author")) => By::Author,
        Some(Some("critic")) => By::Critic,
        Some(_) => return Err("by: expected author or critic".to_string()),
    };
    let known = |key: &str| key == "rule" || key == "by" || rule.roles.iter().any(|role| role.name == key);
    if let Some(key) = raw.keys().find(|key| !known(key)) {
        let near = near(key, rule.roles.iter().map(|role| role.name));
        return Err(format!("rule {named} has no role {key:?}{near}"));
    }
    let mut filled = Vec::new();
    for role in rule.roles {
        let value = raw.get(role.name);
        filled.push(fill(figures, &Slot { rule: rule.name, role: role.name, takes: role.takes, value })?);
    }
    let count = filled.iter().map(Vec::len).max().unwrap_or(1);
    if count > CASES_MOST || filled.iter().any(|cases| cases.len() != 1 && cases.len() != count) {
        let lengths: Vec<String> = filled.iter().map(|cases| cases.len().to_string()).collect();
        return Err(format!("rule {named}: lists of {} figures; expected one length", lengths.join(", ")));
    }
    let case = |number: usize| -> Vec<Vec<usize>> {
        filled.iter().map(|cases| cases[if cases.len() == 1 { 0 } else { number }].clone()).collect()
    };
    let cases: Vec<Vec<Vec<usize>>> = (0..count).map(case).collect();
    let by_critic = cases.iter().flatten().flatten().any(|place| figures[*place].by == By::Critic);
    let relation = Relation { rule, cases, by: if by_critic { By::Critic } else { by } };
    require_kinds(&relation, figures)?;
    Ok(relation)
}

/// A role of a relation, with its value in the file.
struct Slot<'f> {
    rule: &'static str,
    role: &'static str,
    takes: Takes,
    value: Option<&'f toml::Value>,
}

/// Returns the figures of a role for each case.
fn fill(figures: &mut Vec<PrintedFigure>, slot: &Slot) -> Result<Vec<Vec<usize>>, String> {
    let Slot { rule, role, takes, value } = *slot;
    let missing = || format!("rule {rule}: role {role} is missing");
    let place = |figures: &[PrintedFigure], value: &toml::Value| {
        let name = value.as_str().unwrap_or_default();
        figures.iter().position(|figure| figure.name == name).ok_or_else(|| {
            let near = near(name, figures.iter().map(|figure| figure.name.as_str()));
            format!("rule {rule}: role {role}: there is no figure {value}{near}")
        })
    };
    match (takes, value) {
        (Takes::Threshold(value), None) => {
            let text = format!("{:.0}%", 100.0 * value);
            figures.push(PrintedFigure { is_threshold: true, ..constant("threshold", &text, "%", value) });
            Ok(vec![vec![figures.len() - 1]])
        }
        (_, None) => Err(missing()),
        (Takes::Bound, Some(value)) => {
            let name = value.as_str().unwrap_or_default();
            let bound = bound(name).ok_or_else(|| {
                let known: Vec<&str> = BOUNDS.iter().map(|bound| bound.name).collect();
                format!("rule {rule}: role {role}: {value} is no bound; they are {}", known.join(", "))
            })?;
            let (unit, scale) = if bound.dimension.bytes == 1 { ("MB/s", 1e6) } else { ("/s", 1.0) };
            let shown = format!("{} ({:.0} {unit}: {})", bound.name, bound.value / scale, bound.because);
            let of = constant(bound.name, &shown, unit, bound.value);
            figures.push(PrintedFigure { dimension: bound.dimension, ..of });
            Ok(vec![vec![figures.len() - 1]])
        }
        (Takes::Many, Some(value)) => {
            let list =
                value.as_array().ok_or_else(|| format!("rule {}: role {role}: expected a list", rule))?;
            if list.is_empty() || list.len() > FIGURES_MOST {
                let found = list.len();
                return Err(format!(
                    "rule {rule}: role {role}: {found} figures; expected 1 to {FIGURES_MOST}"
                ));
            }
            Ok(vec![list.iter().map(|value| place(figures, value)).collect::<Result<_, _>>()?])
        }
        (_, Some(value)) => match value.as_array() {
            Some(list) if list.is_empty() => Err(missing()),
            Some(list) => list.iter().map(|value| Ok(vec![place(figures, value)?])).collect(),
            None => Ok(vec![vec![place(figures, value)?]]),
        },
    }
}

/// Returns a figure that a rule supplies.
fn constant(name: &str, text: &str, unit: &str, value: f64) -> PrintedFigure {
    let scale = match unit {
        "%" => 0.01,
        "MB/s" => 1e6,
        _ => 1.0,
    };
    PrintedFigure {
        name: name.to_string(),
        text: text.to_string(),
        by: By::Author,
        page: None,
        is_threshold: false,
        unit: unit.to_string(),
        dimension: Dimension::default(),
        readings: vec![Meaning { range: ValueRange::exactly(value), scale, choices: Vec::new() }],
    }
}

/// Rejects a relation whose sides have different dimensions, such as a rate and a time.
fn require_kinds(relation: &Relation, figures: &[PrintedFigure]) -> Result<(), String> {
    let rule = relation.rule;
    for case in &relation.cases {
        let dimension = |places: &Vec<usize>| figures[places[0]].dimension;
        if case.iter().any(|places| places.iter().any(|place| figures[*place].readings.is_empty())) {
            return Err(format!("rule {}: a figure has no reading", rule.name));
        }
        let roles: Vec<Dimension> = case.iter().map(dimension).collect();
        let computed = match rule.name {
            "product" => Some(
                case[0].iter().fold(Dimension::default(), |all, place| all.times(figures[*place].dimension)),
            ),
            _ => (rule.dimension)(&roles),
        };
        let mixed = rule.name != "product"
            && case
                .iter()
                .any(|places| places.iter().any(|place| figures[*place].dimension != dimension(places)));
        let stated = roles[rule.stated];
        match computed.filter(|_| !mixed) {
            None => return Err(format!("rule {}: its figures are of different kinds", rule.name)),
            Some(computed) if computed != stated => {
                let (computed, stated) = (computed.shown(), stated.shown());
                return Err(format!(
                    "rule {}: it gives {computed}, and {} is {stated}",
                    rule.name, rule.roles[rule.stated].name
                ));
            }
            Some(_) => {}
        }
    }
    Ok(())
}
