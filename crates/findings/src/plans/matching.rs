//! Matches the operators of two plans.
//!
//! The matching is the cheapest edit of one tree into the other. Removing or adding an operator
//! costs [`ALONE`]; another object or operator in the same place costs less, and two operators that
//! have nothing in common cost more than both. Inputs of an operator may change places, because a
//! hash join with its build side exchanged is the commonest difference.
//!
//! A Hash, a Materialize and their like belong to a side of their join and not to the table that is
//! read on this side. The edit leaves out such feeds, and pairs those of two matched joins last.
//!
//! An equality with its sides exchanged is the same condition, alone and in a list of AND.
//!
//! The edit is constrained (Zhang 1996): what is below an operator stays together. Without that the
//! problem is NP-hard for trees whose inputs may change places.
//!
//! ```text
//! tree(i, j)    the least of: both are one operator, and their inputs match;
//!               an input of j is i, and the rest of j is added; the same with i and j exchanged
//! inputs(i, j)  the least of: each input of i is one of j, or is alone;
//!               an input of j has all inputs of i; the same with i and j exchanged
//! ```
//!
//! Time and memory are the product of both numbers of operators, at most [`CELLS_MOST`].
//!
//! Rejected: a matching of the lines in order. It loses one of two tables that changed places.

use plumb_record::plan::{ExecutionPlan, PlanOperation};
use std::collections::HashMap;

/// Most operators of a plan that is matched.
pub const OPERATIONS_MOST: usize = 2000;
const CELLS_MOST: usize = OPERATIONS_MOST * OPERATIONS_MOST;
/// Cost of an operator that only one plan has.
const ALONE: u32 = 10;
/// Cost of two inputs that changed places.
const EXCHANGED: u32 = 2;
/// Cost of other conditions of the same operator: those of two inputs cost more than an exchange.
const CONDITIONS: u32 = 2;
/// Most inputs whose assignments are all tried; of more the cheapest pair is taken first.
const TRIED_MOST: usize = 4;

/// PlanDifference of an operator from the one that it is matched with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanDifference {
    Operator,
    Object,
    Access,
    Filter,
    Inputs,
    /// Only some plans have it.
    Alone,
}

impl PlanDifference {
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            PlanDifference::Operator => "operator",
            PlanDifference::Object => "object",
            PlanDifference::Access => "access",
            PlanDifference::Filter => "filter",
            PlanDifference::Inputs => "order of inputs",
            PlanDifference::Alone => "not in all",
        }
    }
}

/// An operator of some plans, in the order of the plans.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchedRow {
    /// The operator's place in each plan; `None` if the plan lacks it.
    pub places: Vec<Option<usize>>,
    pub differences: Vec<PlanDifference>,
}

/// Matches the operators of each plan with those of the first. An operator that the first lacks is
/// below the one that precedes it in its plan.
///
/// # Panics
/// If a plan has more operators than [`OPERATIONS_MOST`].
#[must_use]
pub fn matched(plans: &[&ExecutionPlan]) -> Vec<MatchedRow> {
    let Some((first, others)) = plans.split_first() else { return Vec::new() };
    assert!(plans.iter().all(|plan| plan.operations.len() <= OPERATIONS_MOST));
    let count = plans.len();
    let places = |at| std::iter::once(Some(at)).chain(std::iter::repeat_n(None, count - 1)).collect();
    let mut rows: Vec<MatchedRow> = (0..first.operations.len())
        .map(|at| MatchedRow { places: places(at), differences: Vec::new() })
        .collect();
    for (arm, other) in (1..).zip(others) {
        let trees = Trees::of(first, other);
        let pairs = trees.pairs();
        for (own, theirs) in trees.feed_pairs(&pairs).into_iter().chain(pairs.iter().copied()) {
            let row = rows.iter_mut().find(|row| row.places[0] == Some(own));
            if let Some(row) = row {
                row.places[arm] = Some(theirs);
                note(&mut row.differences, trees.differences(own, theirs));
            }
        }
        for (own, theirs) in trees.exchanged(pairs) {
            let row =
                rows.iter_mut().find(|row| row.places[0] == Some(own) && row.places[arm] == Some(theirs));
            row.into_iter().for_each(|row| note(&mut row.differences, vec![PlanDifference::Inputs]));
        }
        for at in 0..other.operations.len() {
            if rows.iter().all(|row| row.places[arm] != Some(at)) {
                let before = at.checked_sub(1);
                let place = rows.iter().position(|row| before.is_some() && row.places[arm] == before);
                let mut places = vec![None; count];
                places[arm] = Some(at);
                let row = MatchedRow { places, differences: Vec::new() };
                rows.insert(place.map_or(0, |place| place + 1), row);
            }
        }
    }
    for row in &mut rows {
        if row.places.iter().any(Option::is_none) {
            note(&mut row.differences, vec![PlanDifference::Alone]);
        }
    }
    rows
}

fn note(known: &mut Vec<PlanDifference>, more: Vec<PlanDifference>) {
    more.into_iter().for_each(|difference| {
        if !known.contains(&difference) {
            known.push(difference);
        }
    });
}

/// A way to make one tree, or the inputs of an operator, from another.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Edit {
    Same,
    /// The inputs are these pairs.
    Inputs(Vec<(usize, usize)>),
    /// All of the first is in this input of the second.
    InSecond(usize),
    InFirst(usize),
}

/// An edit with its cost, operators below included.
#[derive(Debug)]
struct CostedEdit {
    cost: u32,
    edit: Edit,
}

impl CostedEdit {
    /// Returns this edit, or another one that costs less.
    fn or(self, cost: u32, edit: Edit) -> CostedEdit {
        if cost < self.cost { CostedEdit { cost, edit } } else { self }
    }
}

/// Two plans; each has a root above its operators, after the last one.
struct Trees<'p> {
    operations: [&'p [PlanOperation]; 2],
    /// Numbers of the access and filter conditions, which are equal if the conditions are.
    conditions: [Vec<[usize; 2]>; 2],
    feeds: [Vec<Feed>; 2],
    /// Inputs of each operator; a join has the input of a feed instead of the feed.
    inputs: [Vec<Vec<usize>>; 2],
    sizes: [Vec<u32>; 2],
    tree_costs: Vec<u32>,
    input_costs: Vec<u32>,
}

impl<'p> Trees<'p> {
    fn of(first: &'p ExecutionPlan, second: &'p ExecutionPlan) -> Trees<'p> {
        let [one, another] = [first, second].map(rooted);
        let cells = one.inputs.len() * another.inputs.len();
        let mut known = HashMap::new();
        assert!(cells <= CELLS_MOST + 2 * OPERATIONS_MOST + 1);
        let mut trees = Trees {
            operations: [&first.operations, &second.operations],
            conditions: [first, second].map(|plan| numbered_conditions(plan, &mut known)),
            feeds: [one.feeds, another.feeds],
            inputs: [one.inputs, another.inputs],
            sizes: [one.sizes, another.sizes],
            tree_costs: vec![0; cells],
            input_costs: vec![0; cells],
        };
        // Inputs have greater places than their operator, except those of the root.
        for i in order(trees.inputs[0].len()) {
            for j in order(trees.inputs[1].len()) {
                let cell = trees.cell(i, j);
                trees.input_costs[cell] = trees.inputs_edit(i, j).cost;
                trees.tree_costs[cell] = trees.tree_edit(i, j).cost;
            }
        }
        trees
    }

    fn cell(&self, i: usize, j: usize) -> usize {
        i * self.inputs[1].len() + j
    }

    fn tree_cost(&self, i: usize, j: usize) -> u32 {
        self.tree_costs[self.cell(i, j)]
    }

    /// Returns the cost of one operator in the place of the other.
    fn relabel(&self, i: usize, j: usize) -> u32 {
        let [first, second] = self.operations;
        match (first.get(i), second.get(j)) {
            (Some(one), Some(another)) => match likeness(one, another) {
                0 if self.conditions[0][i] != self.conditions[1][j] => CONDITIONS,
                cost => cost,
            },
            (None, None) => 0,
            // A root is no operator.
            _ => 10 * ALONE,
        }
    }

    fn tree_edit(&self, i: usize, j: usize) -> CostedEdit {
        let cost = self.relabel(i, j) + self.input_costs[self.cell(i, j)];
        let mut best = CostedEdit { cost, edit: Edit::Same };
        for b in &self.inputs[1][j] {
            let cost = self.tree_cost(i, *b) + ALONE * (self.sizes[1][j] - self.sizes[1][*b]);
            best = best.or(cost, Edit::InSecond(*b));
        }
        for a in &self.inputs[0][i] {
            let cost = self.tree_cost(*a, j) + ALONE * (self.sizes[0][i] - self.sizes[0][*a]);
            best = best.or(cost, Edit::InFirst(*a));
        }
        best
    }

    fn inputs_edit(&self, i: usize, j: usize) -> CostedEdit {
        let (own, theirs) = (&self.inputs[0][i], &self.inputs[1][j]);
        let below = |side: usize, at: usize| self.sizes[side][at] - 1;
        let pairs = self.assigned(own, theirs);
        let alone = ALONE * (below(0, i) + below(1, j));
        let saved = self.saved(&pairs);
        let mut best = CostedEdit { cost: alone - saved, edit: Edit::Inputs(pairs) };
        for b in theirs.iter().filter(|_| !own.is_empty()) {
            let cost = self.input_costs[self.cell(i, *b)] + ALONE * (below(1, j) - below(1, *b));
            best = best.or(cost, Edit::InSecond(*b));
        }
        for a in own.iter().filter(|_| !theirs.is_empty()) {
            let cost = self.input_costs[self.cell(*a, j)] + ALONE * (below(0, i) - below(0, *a));
            best = best.or(cost, Edit::InFirst(*a));
        }
        best
    }

    /// Returns the saving of matching a pair: both alone cost that much more.
    fn gain(&self, a: usize, b: usize) -> u32 {
        (ALONE * (self.sizes[0][a] + self.sizes[1][b])).saturating_sub(self.tree_cost(a, b))
    }

    /// Returns the saving of these pairs together, less the cost of inputs that change places.
    fn saved(&self, pairs: &[(usize, usize)]) -> u32 {
        let gains: u32 = pairs.iter().map(|(a, b)| self.gain(*a, *b)).sum();
        gains.saturating_sub(EXCHANGED * inversions(pairs))
    }

    /// Returns the pairs of inputs that save most.
    fn assigned(&self, own: &[usize], theirs: &[usize]) -> Vec<(usize, usize)> {
        if own.len() <= TRIED_MOST && theirs.len() <= TRIED_MOST {
            let mut best = Vec::new();
            self.try_all(own, theirs, &mut Vec::new(), &mut best);
            return best;
        }
        let all = own.iter().flat_map(|a| theirs.iter().map(|b| (self.gain(*a, *b), *a, *b)));
        let mut all: Vec<(u32, usize, usize)> = all.filter(|(gain, ..)| *gain > 0).collect();
        all.sort_by_key(|(gain, a, b)| (std::cmp::Reverse(*gain), a.abs_diff(*b)));
        let mut pairs: Vec<(usize, usize)> = Vec::new();
        for (_, a, b) in all {
            if pairs.iter().all(|(taken, theirs)| *taken != a && *theirs != b) {
                pairs.push((a, b));
            }
        }
        pairs.sort_unstable();
        pairs
    }

    fn try_all(
        &self,
        own: &[usize],
        theirs: &[usize],
        chosen: &mut Vec<(usize, usize)>,
        best: &mut Vec<(usize, usize)>,
    ) {
        let Some((a, rest)) = own.split_first() else {
            if self.saved(chosen) > self.saved(best) {
                best.clone_from(chosen);
            }
            return;
        };
        for b in theirs {
            if chosen.iter().all(|(_, taken)| taken != b) && self.gain(*a, *b) > 0 {
                chosen.push((*a, *b));
                self.try_all(rest, theirs, chosen, best);
                chosen.pop();
            }
        }
        self.try_all(rest, theirs, chosen, best);
    }

    /// Returns the matched operators as pairs of indices. A pair precedes those of its inputs.
    fn pairs(&self) -> Vec<(usize, usize)> {
        let mut pairs = Vec::new();
        let mut trees = vec![(self.inputs[0].len() - 1, self.inputs[1].len() - 1)];
        while let Some((i, j)) = trees.pop() {
            match self.tree_edit(i, j).edit {
                Edit::InSecond(b) => trees.push((i, b)),
                Edit::InFirst(a) => trees.push((a, j)),
                _ => {
                    pairs.push((i, j));
                    trees.extend(self.input_pairs(i, j));
                }
            }
        }
        pairs.retain(|(i, j)| *i < self.operations[0].len() && *j < self.operations[1].len());
        pairs
    }

    /// Returns the matched inputs of two matched operators.
    fn input_pairs(&self, mut i: usize, mut j: usize) -> Vec<(usize, usize)> {
        loop {
            match self.inputs_edit(i, j).edit {
                Edit::InSecond(b) => j = b,
                Edit::InFirst(a) => i = a,
                Edit::Inputs(pairs) => return pairs,
                Edit::Same => return Vec::new(),
            }
        }
    }

    /// Returns pairs of the feeds of matched joins. Feeds of the same input are paired first, then
    /// equal operators, then operators of one kind.
    fn feed_pairs(&self, pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
        let theirs: HashMap<usize, usize> = pairs.iter().copied().collect();
        let cost =
            |own: &Feed, other: &Feed| likeness(&self.operations[0][own.at], &self.operations[1][other.at]);
        let is_alike = |step: u8, own: &Feed, other: &Feed| match step {
            0 => cost(own, other) == 0 && theirs.get(&own.input) == Some(&other.input),
            1 => cost(own, other) == 0,
            _ => cost(own, other) < 2 * ALONE,
        };
        let mut found = Vec::new();
        let mut taken = [vec![false; self.feeds[0].len()], vec![false; self.feeds[1].len()]];
        for step in 0..3 {
            for (a, own) in self.feeds[0].iter().enumerate() {
                let Some(join) = theirs.get(&own.join).filter(|_| !taken[0][a]) else { continue };
                let mut others = self.feeds[1].iter().enumerate();
                let other = others
                    .find(|(b, other)| other.join == *join && !taken[1][*b] && is_alike(step, own, other));
                if let Some((b, other)) = other {
                    found.push((own.at, other.at));
                    (taken[0][a], taken[1][b]) = (true, true);
                }
            }
        }
        found
    }

    /// Returns the pairs of operators whose inputs changed places.
    fn exchanged(&self, mut pairs: Vec<(usize, usize)>) -> Vec<(usize, usize)> {
        pairs.retain(|(i, j)| inversions(&self.input_pairs(*i, *j)) > 0);
        pairs
    }

    fn differences(&self, i: usize, j: usize) -> Vec<PlanDifference> {
        let (one, another) = (&self.operations[0][i], &self.operations[1][j]);
        let (own, theirs) = (self.conditions[0][i], self.conditions[1][j]);
        let differ = [
            (one.operation != another.operation, PlanDifference::Operator),
            (one.lasting_object() != another.lasting_object(), PlanDifference::Object),
            (own[0] != theirs[0], PlanDifference::Access),
            (own[1] != theirs[1], PlanDifference::Filter),
        ];
        differ.into_iter().filter_map(|(differs, difference)| differs.then_some(difference)).collect()
    }
}

/// A tree of a plan's operators and of a root above them.
struct Rooted {
    inputs: Vec<Vec<usize>>,
    sizes: Vec<u32>,
    feeds: Vec<Feed>,
}

/// An operator between a join and an input, which belongs to a side of the join.
struct Feed {
    at: usize,
    join: usize,
    input: usize,
}

const FEEDS: [&str; 8] = [
    "HASH",
    "PARALLEL HASH",
    "MATERIALIZE",
    "MEMOIZE",
    "BUFFER SORT",
    "JOIN FILTER ",
    "PX RECEIVE",
    "PX SEND ",
];

/// True if the operator is a feed where it has one input and is below a join.
fn feeds(operation: &PlanOperation) -> bool {
    let name = operation.operation.to_uppercase();
    let name = name.strip_prefix("PART ").unwrap_or(&name);
    operation.role.is_empty()
        && FEEDS.iter().any(|feed| name == *feed || feed.ends_with(' ') && name.starts_with(feed))
}

fn rooted(plan: &ExecutionPlan) -> Rooted {
    let mut inputs = plan.inputs();
    let is_input: Vec<usize> = inputs.iter().flatten().copied().collect();
    let count = inputs.len();
    let mut has_parent = vec![false; count];
    is_input.into_iter().for_each(|at| has_parent[at] = true);
    inputs.push((0..count).filter(|at| !has_parent[*at]).collect());
    let mut found = Vec::new();
    for join in (0..count).filter(|at| is_join(&plan.operations[*at])) {
        let mut kept = Vec::new();
        for first in std::mem::take(&mut inputs[join]) {
            let (begin, mut below) = (found.len(), Some(first));
            let is_feed = |at: &usize| inputs[*at].len() <= 1 && feeds(&plan.operations[*at]);
            while let Some(at) = below.filter(is_feed) {
                found.push(Feed { at, join, input: at });
                below = inputs[at].first().copied();
            }
            // A plan that is cut off may end with a feed.
            if let Some(input) = below {
                found[begin..].iter_mut().for_each(|feed| feed.input = input);
                kept.push(input);
            }
        }
        inputs[join] = kept;
    }
    let mut sizes = vec![1u32; count + 1];
    for at in order(count + 1) {
        sizes[at] += inputs[at].iter().map(|input| sizes[*input]).sum::<u32>();
    }
    Rooted { inputs, sizes, feeds: found }
}

pub(super) fn is_join(operation: &PlanOperation) -> bool {
    let name = operation.operation.to_uppercase();
    (name.contains(" JOIN") || name.contains("NESTED LOOP")) && !name.contains("JOIN FILTER")
}

/// Returns places so that inputs precede their operator: from the last one up, then the root.
fn order(count: usize) -> impl Iterator<Item = usize> {
    (0..count - 1).rev().chain(std::iter::once(count - 1))
}

/// Returns the number of pairs that are in another order in both plans.
fn inversions(pairs: &[(usize, usize)]) -> u32 {
    let is_inverted = |one: &(usize, usize), another: &(usize, usize)| one.0 < another.0 && one.1 > another.1;
    let count = pairs.iter().map(|one| pairs.iter().filter(|another| is_inverted(one, another)).count());
    u32::try_from(count.sum::<usize>()).unwrap_or(u32::MAX)
}

/// Returns the cost of two operators in one place.
fn likeness(one: &PlanOperation, another: &PlanOperation) -> u32 {
    let table = |operation: &PlanOperation| {
        let object = operation.lasting_object();
        object.split_once(" on ").map_or(object, |(_, table)| table).to_string()
    };
    let kind = |operation: &PlanOperation| {
        operation.operation.split([' ', '-']).next().unwrap_or_default().to_string()
    };
    let same_operator = one.operator() == another.operator();
    let same_table = table(one) == table(another);
    let has_object = !table(one).is_empty() && !table(another).is_empty();
    match (same_operator, same_table) {
        (true, true) if one.lasting_object() == another.lasting_object() => 0,
        (true, true) => 4,
        (false, true) if has_object => 6,
        (true, false) => 9,
        _ if is_join(one) && is_join(another) || has_object => 12,
        _ if is_join(one) == is_join(another) && kind(one) == kind(another) => 14,
        _ => 25,
    }
}

/// Returns two numbers for each operator, of its access and of its filter conditions. Conditions
/// that differ only by literals, the sides of an equality or the order of a list have one number.
fn numbered_conditions(plan: &ExecutionPlan, known: &mut HashMap<Vec<String>, usize>) -> Vec<[usize; 2]> {
    let mut number = |conditions: &[String]| {
        let next = known.len();
        *known.entry(conditions.iter().map(|condition| ordered(condition)).collect()).or_insert(next)
    };
    plan.operations.iter().map(|operation| [number(&operation.access), number(&operation.filter)]).collect()
}

/// Most pairs of brackets around a condition that are left out.
const BRACKETS_MOST: usize = 4;

/// Returns a condition without literals: the parts of a list in the order of their texts, and so
/// the sides of each equality.
pub(super) fn ordered(condition: &str) -> String {
    let plain = without_literal(condition);
    // AND binds tighter than OR, so that a list with both has no order of parts.
    if parts(unbracketed(&plain), " OR ").len() > 1 {
        return unbracketed(&plain).to_string();
    }
    let mut parts: Vec<String> = parts(unbracketed(&plain), " AND ").into_iter().map(equality).collect();
    parts.sort_unstable();
    parts.join(" AND ")
}

fn equality(part: &str) -> String {
    let part = unbracketed(part);
    // An operator such as <=, <>, := or => is no equality.
    let is_operator = |letter: Option<char>| letter.is_some_and(|letter| "<>=!:~*^|&@#%+-".contains(letter));
    match parts(part, "=")[..] {
        [one, another] if !is_operator(one.chars().last()) && !is_operator(another.chars().next()) => {
            let (one, another) = (unbracketed(one), unbracketed(another));
            format!("{} = {}", one.min(another), one.max(another))
        }
        _ => part.to_string(),
    }
}

/// Divides a text where no bracket and no quote is open.
fn parts<'t>(text: &'t str, between: &str) -> Vec<&'t str> {
    let mut parts = Vec::new();
    let (mut begin, mut depth, mut in_quotes) = (0, 0_i64, false);
    for (at, letter) in text.char_indices() {
        match letter {
            '"' => in_quotes = !in_quotes,
            '(' | '[' if !in_quotes => depth += 1,
            ')' | ']' if !in_quotes => depth -= 1,
            _ if !in_quotes && depth == 0 && at >= begin && text[at..].starts_with(between) => {
                parts.push(&text[begin..at]);
                begin = at + between.len();
            }
            _ => {}
        }
    }
    parts.push(&text[begin..]);
    parts
}

/// Returns a condition without the brackets around all of it.
fn unbracketed(text: &str) -> &str {
    let mut text = text.trim();
    for _ in 0..BRACKETS_MOST {
        let inside = text.strip_prefix('(').and_then(|text| text.strip_suffix(')'));
        let Some(inside) = inside.filter(|inside| is_closed(inside)) else { break };
        text = inside.trim();
    }
    text
}

/// True if each bracket closes one that is in the text.
fn is_closed(text: &str) -> bool {
    let (mut depth, mut in_quotes) = (0_i64, false);
    text.chars().all(|letter| {
        match letter {
            '"' => in_quotes = !in_quotes,
            '(' if !in_quotes => depth += 1,
            ')' if !in_quotes => depth -= 1,
            _ => {}
        }
        depth >= 0
    }) && depth == 0
}

/// Returns a condition with a `?` for each number and each text in quotes.
pub(super) fn without_literal(condition: &str) -> String {
    let mut plain = String::with_capacity(condition.len());
    let mut letters = condition.chars().peekable();
    let mut before = ' ';
    while let Some(letter) = letters.next() {
        let is_name = before.is_alphanumeric() || matches!(before, '_' | '$' | '"' | '.');
        if letter == '\'' {
            // A quote within is doubled, which reads as two texts.
            letters.by_ref().find(|letter| *letter == '\'');
            plain.push('?');
        } else if letter.is_ascii_digit() && !is_name {
            while letters
                .next_if(|letter| letter.is_ascii_digit() || matches!(letter, '.' | 'e' | 'E'))
                .is_some()
            {}
            plain.push('?');
        } else {
            plain.push(letter);
        }
        before = letter;
    }
    plain.replace("??", "?")
}
