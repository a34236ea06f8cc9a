//! The page of some plans: what differs, findings, and each plan as DBMS_XPLAN prints it.
//!
//! ```text
//! (first)        the answer in a sentence; those of further arms below it
//! Plans          a line an arm: hash, operators, time, buffers
//! Findings       of all arms, with the number of the arm
//! Side by Side   a line for each operator of an arm, next to its like in the others, then figures
//! Plan           a table for each arm, with its other figures, predicates, triggers and notes
//! ```

use crate::run::findings_table;
use plumb_findings::plans::{
    LoggedPlan, MatchedRow, QueryPlans, answers, matched, of_pair, of_plan, own_times,
};
use plumb_record::Finding;
use plumb_record::plan::{ExecutionPlan, PlanFigure, PlanOperation, PlanSource, PlanTree};
use plumb_report::table::{Cell, Column, Facts, Table, Tone};
use plumb_report::{Document, ReportAnswer, Section, State, Summary, cells, text};
use plumb_units::Nanos;
use serde::Serialize;

/// Deepest indentation of an operator; deeper ones are below it.
const INDENT_MOST: usize = 40;
const CONDITION: usize = 100;
/// Letters of an operator with its name before it is broken, where its indentation is lost.
const NAMED: usize = 64;

/// Plans with all that follows from them.
#[derive(Debug, Serialize)]
pub struct Plans {
    /// A sentence for each arm but the first, or one for a single plan.
    pub answers: Vec<String>,
    pub arms: Vec<PlanArm>,
    /// Empty for a single plan.
    pub operators: Vec<PlanRow>,
}

#[derive(Debug, Serialize)]
pub struct PlanArm {
    pub hash: String,
    pub plan: ExecutionPlan,
    pub findings: Vec<Finding>,
}

/// An operator of some arms.
#[derive(Debug, Serialize)]
pub struct PlanRow {
    /// The operator's place in each arm, from 0.
    pub places: Vec<Option<usize>>,
    pub differences: Vec<&'static str>,
}

impl Plans {
    /// Judges plans, and matches their operators with those of the first.
    ///
    /// # Panics
    /// If one of several has more operators than [`plumb_findings::plans::OPERATIONS_MOST`].
    #[must_use]
    pub fn of(plans: Vec<ExecutionPlan>) -> Plans {
        let all: Vec<&ExecutionPlan> = plans.iter().collect();
        let rows = if plans.len() > 1 { matched(&all) } else { Vec::new() };
        let row = |MatchedRow { places, differences }| {
            let differences: Vec<plumb_findings::plans::PlanDifference> = differences;
            PlanRow { places, differences: differences.into_iter().map(|it| it.word()).collect() }
        };
        let answers = answers(&plans);
        let mut compared: Vec<Vec<Finding>> = (2..)
            .zip(plans.iter().skip(1))
            .map(|(number, other)| of_pair(&plans[0], other, number))
            .collect();
        compared.insert(0, Vec::new());
        let arm = |(plan, compared): (ExecutionPlan, Vec<Finding>)| PlanArm {
            hash: plan.hash(),
            findings: compared.into_iter().chain(of_plan(&plan)).collect(),
            plan,
        };
        let arms = plans.into_iter().zip(compared).map(arm).collect();
        Plans { answers, arms, operators: rows.into_iter().map(row).collect() }
    }

    fn are_same(&self) -> bool {
        self.arms.windows(2).all(|pair| pair[0].plan.is_same_plan(&pair[1].plan))
    }
}

/// Most figures of [`FIGURES`] that are columns of an executed plan.
const COLUMNS: usize = 6;

/// A figure of operators, in the order of the columns.
type Shown = (&'static str, fn(&PlanOperation) -> String);

const FIGURES: [Shown; 10] = [
    ("Starts", |operation| shown(&operation.starts)),
    ("E-Rows", |operation| shown(&operation.expected_rows)),
    ("A-Rows", |operation| shown(&operation.rows)),
    ("A-Time", |operation| shown(&operation.time)),
    ("Buffers", |operation| shown(&operation.buffers)),
    ("Reads", |operation| shown(&operation.reads)),
    ("Read-Time", |operation| shown(&operation.read_time)),
    ("Used-Mem", |operation| shown(&operation.used_memory)),
    ("TempSpc", |operation| shown(&operation.temp_space)),
    // Behind the dots is the cost of all rows.
    ("Cost", |operation| shown(&operation.cost).rsplit("..").next().unwrap_or_default().to_string()),
];
/// Figures that stand next to those of other arms, in tables of their own.
const COMPARED: [&[Shown]; 2] = [
    &[FIGURES[0], FIGURES[1], FIGURES[2], FIGURES[3]],
    &[FIGURES[4], FIGURES[5], FIGURES[6], FIGURES[7], FIGURES[9]],
];

fn shown(figure: &Option<PlanFigure>) -> String {
    figure.as_ref().map_or_else(String::new, |figure| figure.text.clone())
}

/// Returns the page of some plans.
#[must_use]
pub fn document(plans: &Plans) -> Document {
    let names: Vec<&str> = plans.arms.iter().map(|arm| arm.plan.name.as_str()).collect();
    let subject = names.join(" and ");
    let sections = [Some(overview(plans)), findings(plans), side_by_side(plans)];
    let each = (1..).zip(&plans.arms).map(|(number, arm)| plan_section(number, arm, plans.arms.len()));
    Document {
        title: format!("PLANS  {subject}"),
        answer: answer(plans),
        question: String::new(),
        running_head: match names.len() {
            1 | 2 => format!("Plans: {subject}"),
            count => format!("Plans: {count} of a statement"),
        },
        width: text::WIDTH,
        state: state(plans),
        basis: basis(plans),
        reasons: plans.answers.iter().skip(1).cloned().collect(),
        headline: Vec::new(),
        sections: sections.into_iter().flatten().chain(each).collect(),
        summary: Summary { subject, ..Summary::default() },
        footer: "A plan shows where rows and time went in one execution. Whether one of two is faster is a question \
                 for a study."
            .to_string(),
        data: serde_json::to_string(plans).unwrap_or_else(|_| "null".to_string()),
    }
}

/// Returns the sentence of the second arm, or of a single plan, with the first advice.
fn answer(plans: &Plans) -> ReportAnswer {
    let advice = plans.arms.iter().flat_map(|arm| &arm.findings).find(|finding| !finding.advice.is_empty());
    let executed = plans.arms.iter().all(|arm| arm.plan.time().is_some());
    ReportAnswer {
        found: plans.answers.first().cloned().unwrap_or_default(),
        sure: if executed { "one execution each" } else { "of the planner's estimates" }.to_string(),
        advice: advice.map_or(String::new(), |finding| format!("next: {}", finding.advice)),
        ..ReportAnswer::default()
    }
}

fn state(plans: &Plans) -> State {
    let count: usize = plans.arms.iter().map(|arm| arm.findings.len()).sum();
    let (word, tone) = match (plans.arms.len(), plans.are_same(), count) {
        (1, _, 0) => ("NO FINDINGS".to_string(), Tone::Good),
        (1, _, 1) => ("1 FINDING".to_string(), Tone::Open),
        (1, _, count) => (format!("{count} FINDINGS"), Tone::Open),
        (_, true, _) => ("SAME PLAN".to_string(), Tone::Good),
        (_, false, _) => ("PLANS DIFFER".to_string(), Tone::Open),
    };
    State { of: "Plans".to_string(), word, tone }
}

fn basis(plans: &Plans) -> String {
    let rows = &plans.operators;
    let differing = rows.iter().filter(|row| !row.differences.is_empty()).count();
    match rows.len() {
        0 => String::new(),
        all => format!("{differing} of {all} operators differ"),
    }
}

fn overview(plans: &Plans) -> Section {
    let mut table = Table::new(Vec::new())
        .numbers(["#"])
        .wrapped("Arm", 40)
        .text(["Database", "Plan hash"])
        .numbers(["Operators", "Rows", "Time", "Buffers", "Reads", "Cost"]);
    for (number, arm) in (1..).zip(&plans.arms) {
        let operations = &arm.plan.operations;
        let top = operations.first();
        let figure = |of: fn(&PlanOperation) -> &Option<PlanFigure>| {
            top.map_or_else(String::new, |operation| shown(of(operation)))
        };
        table.row(cells![
            number.to_string(),
            &arm.plan.name,
            match arm.plan.source {
                PlanSource::Oracle => "Oracle",
                PlanSource::Postgres => "PostgreSQL",
            },
            &arm.hash,
            operations.len().to_string(),
            figure(|operation| &operation.rows),
            shown(&arm.plan.time().cloned()),
            figure(|operation| &operation.buffers),
            figure(|operation| &operation.reads),
            top.map_or_else(String::new, FIGURES[FIGURES.len() - 1].1),
        ]);
    }
    let cut = |arm: &PlanArm| Some(format!("{} may be cut off: {}", arm.plan.name, arm.plan.may_be_cut?));
    let section = plans.arms.iter().filter_map(cut).fold(Section::front("plans", "Plans"), Section::note);
    section
        .note("the hash is of operators, join types, order of inputs and access paths, and not of costs, rows or literals")
        .note(match plans.arms.iter().any(|arm| arm.plan.source == PlanSource::Postgres) {
            true => "of PostgreSQL, all figures but E-Rows are of all loops; time is a sum over parallel processes; reads may come from \
             the cache of the system",
            false => "",
        })
        .table(table)
}

fn findings(plans: &Plans) -> Option<Section> {
    let several = plans.arms.len() > 1;
    let of_arm = |(number, arm): (usize, &PlanArm)| {
        arm.findings
            .iter()
            .cloned()
            .map(move |mut finding| {
                if several {
                    finding.what = format!("Arm {number}: {}", finding.what);
                }
                finding
            })
            .collect::<Vec<_>>()
    };
    let all: Vec<Finding> = (1..).zip(&plans.arms).flat_map(of_arm).collect();
    let section = Section::front("findings", "Findings");
    (!all.is_empty()).then(|| section.table(findings_table(&all, [40, 46, 40])))
}

fn side_by_side(plans: &Plans) -> Option<Section> {
    if plans.operators.is_empty() {
        return None;
    }
    let mut operators = Table::default();
    for number in 1..=plans.arms.len() {
        operators = operators.numbers(["Id"]).wrapped(&format!("{number}: Operation and name"), NAMED);
    }
    operators = operators.wrapped("Differs", 24);
    for row in &plans.operators {
        let of_arm = |(arm, place): (&PlanArm, &Option<usize>)| match place {
            Some(place) => {
                let operation = &arm.plan.operations[*place];
                let name =
                    if operation.name.is_empty() { String::new() } else { format!(" {}", operation.name) };
                [Cell::from(marked(operation)), Cell::from(format!("{}{name}", indented(operation)))]
            }
            None => [Cell::default(), Cell::default()],
        };
        let mut cells: Vec<Cell> = plans.arms.iter().zip(&row.places).flat_map(of_arm).collect();
        let tone = if row.differences.is_empty() { Tone::Plain } else { Tone::Open };
        cells.push(Cell::from(row.differences.join(", ")).with_tone(tone));
        operators.row(cells);
    }
    let section = Section::front("side", "Side by Side")
        .note("operators of arm 1 next to what they are in the others; literals do not differ");
    let section = differing_notes(plans).into_iter().fold(section, Section::note);
    let figures = COMPARED.iter().filter_map(|figures| figures_side_by_side(plans, figures));
    let section = figures.fold(section.table(operators), Section::table);
    Some(details_side_by_side(plans).into_iter().fold(section, Section::table))
}

/// Returns a line for each note that only some arms have.
fn differing_notes(plans: &Plans) -> Vec<String> {
    let mut seen: Vec<&str> = Vec::new();
    let mut lines = Vec::new();
    for note in plans.arms.iter().flat_map(|arm| &arm.plan.notes) {
        let has_note = |arm: &PlanArm| arm.plan.notes.contains(note);
        if seen.contains(&note.as_str()) || plans.arms.iter().all(has_note) {
            continue;
        }
        seen.push(note);
        let arms = (1..).zip(&plans.arms).filter(|(_, arm)| has_note(arm));
        let arms: Vec<String> = arms.map(|(number, _): (usize, _)| number.to_string()).collect();
        lines.push(format!("a note of arm {} only: {note}", arms.join(" and ")));
    }
    lines
}

/// Returns the operators of a row; `None` for an arm that lacks it.
fn found<'p>(plans: &'p Plans, row: &PlanRow) -> Vec<Option<&'p PlanOperation>> {
    let arms = plans.arms.iter().zip(&row.places);
    arms.map(|(arm, place)| place.map(|place| &arm.plan.operations[place])).collect()
}

/// Returns a table of these figures; `None` if no arm has one.
fn figures_side_by_side(plans: &Plans, figures: &[Shown]) -> Option<Table> {
    let mut table = Table::default().wrapped("Operation", NAMED);
    let operations = || plans.arms.iter().flat_map(|arm| &arm.plan.operations);
    let has_figure = |(_, of): &&Shown| operations().any(|operation| !of(operation).is_empty());
    let figures: Vec<&Shown> = figures.iter().filter(has_figure).collect();
    for (title, _) in &figures {
        for number in 1..=plans.arms.len() {
            table = table.column(Column::number(format!("{number}:\n{title}")));
        }
    }
    for row in &plans.operators {
        let found = found(plans, row);
        let first = found.iter().flatten().next();
        let mut cells = vec![Cell::from(first.map_or_else(String::new, |operation| indented(operation)))];
        for (_, of) in &figures {
            cells.extend(found.iter().map(|operation| Cell::from(operation.map_or_else(String::new, of))));
        }
        table.row(cells);
    }
    (!figures.is_empty()).then_some(table)
}

/// Returns a line for each further figure that differs.
fn details_side_by_side(plans: &Plans) -> Option<Table> {
    let mut table = Table::default()
        .wrapped("Operation", NAMED)
        .text(["Figure"])
        .with_caption("Other figures that differ");
    for number in 1..=plans.arms.len() {
        table = table.column(Column::number(number.to_string()));
    }
    for row in &plans.operators {
        let found = found(plans, row);
        let mut names: Vec<&str> = Vec::new();
        for detail in found.iter().flatten().flat_map(|operation| &operation.details) {
            if !names.contains(&detail.name.as_str()) {
                names.push(&detail.name);
            }
        }
        for name in names {
            let text = |operation: &Option<&PlanOperation>| {
                let details = operation.map_or(&[][..], |operation| &operation.details);
                details
                    .iter()
                    .find(|detail| detail.name == name)
                    .map_or("", |detail| &detail.text)
                    .to_string()
            };
            let texts: Vec<String> = found.iter().map(text).collect();
            if texts.windows(2).any(|pair| pair[0] != pair[1]) {
                let operation = found.iter().flatten().next().map_or_else(String::new, |it| it.titled());
                table.row([operation, name.to_string()].into_iter().chain(texts).map(Cell::from).collect());
            }
        }
    }
    (!table.rows.is_empty()).then_some(table)
}

fn plan_section(number: usize, arm: &PlanArm, count: usize) -> Section {
    let plan = &arm.plan;
    let ids = ["plan-1", "plan-2", "plan-3"];
    let title = if count == 1 { "Plan".to_string() } else { format!("Plan {number}: {}", plan.name) };
    let mut section = Section::detail(ids[(number - 1).min(2)], title);
    section = section.note(match plan.tree {
        PlanTree::Printed => "",
        PlanTree::Inferred => {
            "the depth of each operator follows from the number of inputs that operators take"
        }
        PlanTree::Unknown => {
            "the plan is printed without indentation: which operator feeds which is not known"
        }
    });
    let unseen = plan.operations.iter().any(|operation| {
        operation.operation.starts_with("PX ")
            && operation.starts.as_ref().is_some_and(|starts| starts.value == 0.0)
    });
    if unseen {
        section = section.note("zeros of parallel servers are figures that this plan does not have");
    }
    let mut facts = Facts::default();
    plan.facts.iter().for_each(|(name, value)| facts.add(name, value));
    if !facts.rows.is_empty() {
        section = section.facts(facts);
    }
    let section = section.table(operators(plan));
    let below = [details(plan), conditions(plan), triggers(plan), notes(plan)];
    below.into_iter().flatten().fold(section, Section::table)
}

fn operators(plan: &ExecutionPlan) -> Table {
    let (figures, _) = columns(plan);
    let own = own_times(plan);
    let mut table = Table::default().numbers(["Id"]).wrapped("Operation", NAMED).wrapped("Name", NAMED);
    for (title, _) in &figures {
        table = table.column(Column::number(*title));
        if *title == "A-Time" {
            table = table.column(Column::number("Own-Time"));
        }
    }
    let most = |of: fn(&PlanOperation) -> &Option<PlanFigure>| {
        plan.operations.iter().filter_map(|it| of(it).as_ref()).map(|figure| figure.value).fold(0.0, f64::max)
    };
    let (time, reads) = (most(|it| &it.time), most(|it| &it.reads));
    let share =
        |value: Option<f64>, whole: f64| value.filter(|value| *value > 0.0).map(|value| value / whole);
    for (operation, own) in plan.operations.iter().zip(own) {
        let mut cells = cells![marked(operation), indented(operation), &operation.name];
        for (title, of) in &figures {
            let value = |figure: &Option<PlanFigure>| figure.as_ref().map(|figure| figure.value);
            let bar = match *title {
                "A-Time" => share(value(&operation.time), time),
                "Reads" => share(value(&operation.reads), reads),
                _ => None,
            };
            cells.push(Cell::from(of(operation)).with_share(bar));
            if *title == "A-Time" {
                let text = own.map_or_else(String::new, |own| Nanos((own * 1e9) as u64).to_string());
                cells.push(Cell::from(text).with_share(share(own, time)));
            }
        }
        table.row(cells);
    }
    table
}

/// Returns the figures that are columns, and those below the table. A page has no room for all of
/// an executed plan.
fn columns(plan: &ExecutionPlan) -> (Vec<&'static Shown>, Vec<&'static Shown>) {
    let is_shown = |(_, of): &&Shown| plan.operations.iter().any(|operation| !of(operation).is_empty());
    let mut shown: Vec<&Shown> = FIGURES.iter().filter(is_shown).collect();
    let was_executed = plan.operations.iter().any(|operation| operation.rows.is_some());
    let count = if was_executed { COLUMNS } else { shown.len() };
    let others = shown.split_off(count.min(shown.len()));
    (shown, others)
}

fn details(plan: &ExecutionPlan) -> Option<Table> {
    let mut table = Table::default().numbers(["Id"]).wrapped("Other figures", CONDITION);
    let (_, others) = columns(plan);
    for operation in &plan.operations {
        let named = others.iter().map(|(title, of)| (title.to_string(), of(operation)));
        let details = operation.details.iter().map(|detail| (detail.name.clone(), detail.text.clone()));
        let all = named.chain(details).filter(|(_, text)| !text.is_empty());
        let all: Vec<String> = all.map(|(name, text)| format!("{name} {text}")).collect();
        if !all.is_empty() {
            table.row(cells![operation.id.to_string(), all.join(", ")]);
        }
    }
    (!table.rows.is_empty()).then_some(table)
}

fn conditions(plan: &ExecutionPlan) -> Option<Table> {
    let mut table = Table::default()
        .numbers(["Id"])
        .text(["Kind"])
        .wrapped("Predicate", CONDITION)
        .with_caption("Predicates (access finds rows, filter drops them)");
    for operation in &plan.operations {
        let kinds = [("access", &operation.access), ("filter", &operation.filter)];
        for (kind, condition) in kinds.iter().flat_map(|(kind, all)| all.iter().map(move |one| (*kind, one)))
        {
            table.row(cells![operation.id.to_string(), kind, condition]);
        }
    }
    (!table.rows.is_empty()).then_some(table)
}

fn triggers(plan: &ExecutionPlan) -> Option<Table> {
    let mut table = Table::default()
        .wrapped("Trigger", CONDITION)
        .numbers(["Time", "Calls"])
        .with_caption("Triggers (their time is part of the execution time)");
    for fired in &plan.triggers {
        table.row(cells![&fired.name, shown(&fired.time), &fired.calls.text]);
    }
    (!table.rows.is_empty()).then_some(table)
}

fn notes(plan: &ExecutionPlan) -> Option<Table> {
    let mut table = Table::default().wrapped("Note", CONDITION);
    plan.notes.iter().for_each(|note| table.row(cells![note]));
    (!table.rows.is_empty()).then_some(table)
}

/// Returns the number of an operator, with a star if it has predicates.
fn marked(operation: &PlanOperation) -> String {
    let has_conditions = !(operation.access.is_empty() && operation.filter.is_empty());
    format!("{}{}", if has_conditions { "* " } else { "" }, operation.id)
}

fn indented(operation: &PlanOperation) -> String {
    let indent = operation.depth.min(INDENT_MOST);
    format!("{:indent$}{}", "", operation.titled())
}

/// Letters of a hash with `to` behind it.
const HASH: usize = 19;
/// Most queries of a list.
const QUERIES_MOST: usize = 100;

/// Plans of a log by query.
#[derive(Debug, Serialize)]
pub struct PlanLog {
    pub subject: String,
    /// Time and hash of each plan, which the queries number from 0.
    pub plans: Vec<LoggedPlan>,
    pub queries: Vec<QueryPlans>,
    /// Lines of the log and reasons why the plans in them are left out.
    pub left_out: Vec<String>,
}

/// Returns the section of the queries without its table.
fn queries_section(log: &PlanLog) -> Section {
    let further = log.queries.len().saturating_sub(QUERIES_MOST);
    let left_out = log.left_out.first().map_or_else(String::new, |first| {
        let count = log.left_out.len();
        format!("{count} of {} entries are left out, such as {first}", log.plans.len() + count)
    });
    Section::front("queries", "Queries")
        .note("by total time; literals are left out; `--query N` shows the two plans around the change, otherwise the fastest and the slowest")
        .note("times slower is the ratio of the medians of all executions with each plan; only what the log has is counted")
        .note(if further == 0 { String::new() } else { format!("{further} further queries are in --json") })
        .note(left_out)
}

/// Returns the page of a log: its queries, and where the plan of one changed.
#[must_use]
pub fn log_document(log: &PlanLog) -> Document {
    let shown = |seconds: f64| Nanos((seconds * 1e9) as u64).to_string();
    let mut table = Table::default()
        .numbers(["#"])
        .wrapped("Query", 60)
        .numbers(["Count", "Total", "Median", "Most", "Plans"])
        .wrapped("Plan hash", HASH)
        .wrapped("Changed at", HASH)
        .numbers(["Times slower"]);
    let changed = log.queries.iter().filter(|query| query.change.is_some()).count();
    for (number, query) in (1..).zip(log.queries.iter().take(QUERIES_MOST)) {
        let change = query.change.as_ref();
        let is_slower = change.is_some_and(|change| change.times_slower > 1.0);
        table.row(cells![
            number.to_string(),
            query.query.chars().take(300).collect::<String>(),
            query.places.len().to_string(),
            shown(query.total_seconds),
            shown(query.median_seconds),
            shown(query.max_seconds),
            query.hashes.len().to_string(),
            match change {
                Some(change) =>
                    format!("{} to {}", log.plans[change.before].hash, log.plans[change.after].hash),
                None => query.hashes.first().cloned().unwrap_or_default(),
            },
            change.map_or_else(String::new, |change| log.plans[change.after].at.clone()),
            Cell::from(change.map_or_else(String::new, |change| format!("{:.1}", change.times_slower)))
                .with_tone(if is_slower { Tone::Open } else { Tone::Plain }),
        ]);
    }
    let worst = (1..).zip(&log.queries).filter_map(|(number, query)| Some((number, query.change.as_ref()?)));
    let worst = worst.max_by(|(_, one), (_, two)| one.times_slower.total_cmp(&two.times_slower));
    let worst = worst.filter(|(_, change)| change.times_slower > 1.0).map_or_else(
        || "no plan changed to a slower one".to_string(),
        |(number, change): (usize, &plumb_findings::plans::PlanChange)| {
            format!(
                "query {number} got {:.1} times slower with another plan at {}",
                change.times_slower, log.plans[change.after].at
            )
        },
    );
    let (plans, queries) = (log.plans.len(), log.queries.len());
    Document {
        title: format!("PLANS OF A LOG  {}", log.subject),
        answer: ReportAnswer {
            asked: format!("{plans} plans, {queries} {}", if queries == 1 { "query" } else { "queries" }),
            found: worst,
            ..ReportAnswer::default()
        },
        question: String::new(),
        running_head: format!("Plans: {}", log.subject),
        width: text::WIDTH,
        state: match changed {
            0 => State { of: "Plans".to_string(), word: "NO PLAN CHANGED".to_string(), tone: Tone::Good },
            _ => State { of: "Plans".to_string(), word: "PLANS CHANGED".to_string(), tone: Tone::Open },
        },
        basis: format!("queries with several plans: {changed} of {queries}"),
        reasons: Vec::new(),
        headline: Vec::new(),
        sections: vec![queries_section(log).table(table)],
        summary: Summary { subject: log.subject.clone(), ..Summary::default() },
        footer: "auto_explain logs only executions above its threshold: a count is not that of all."
            .to_string(),
        data: serde_json::to_string(log).unwrap_or_else(|_| "null".to_string()),
    }
}
