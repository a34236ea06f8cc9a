//! The spans of a file as trees, and their times after some are removed.
//!
//! ```text
//! add ──> link: ids to parents ──> prune, top down: removed if chosen, or if the parent is removed
//!                                    └──> squeeze, bottom up: duration = own time + kept children
//!                                           └──> starts, top down
//! ```
//!
//! The own time of a span is the part of its interval in which no child runs: children that
//! overlap count once, and the part of a child outside of its parent does not count. A removed
//! child's time is gone unless another child ran at that moment, and later children begin earlier
//! by it. So own time is never subtracted from, and no duration needs a correction of its own:
//!
//! - S1 The own time of a kept span is the same before and after.
//! - S2 No span becomes longer, and none shorter than its own time.
//! - S3 Children that did not overlap do not overlap afterwards, and their order stays.
//!
//! Rejected: subtracting each removed span from all spans above it, as a procedure for PeopleSoft
//! does. It subtracts a removed span below another one twice, and parallel children too much.
//!
//! Files without starts have one child after the other. Children longer than their parent together
//! are taken to overlap, as late as their parent's end allows; this is counted as `outside`.
//!
//! Memory: [`SPAN_BYTES`] a span, in lists that may have twice their length while they grow.

use crate::labels::Labels;
use std::collections::HashMap;
use std::mem::size_of;
use std::ops::Range;

/// Most spans of a file.
pub(crate) const SPANS_MOST: usize = 50_000_000;
/// Longest duration in nanoseconds: a start and a duration have a sum.
pub(crate) const TIME_MOST: i64 = i64::MAX / 2;
/// Place of the parent of a top span.
pub(crate) const NONE: u32 = u32::MAX;
/// Fetches of a span that does not say them.
pub(crate) const UNKNOWN: u64 = u64::MAX;
/// Bytes of a span while its file is read: the span, its id with its place, and its parent's id.
pub const SPAN_BYTES: usize = size_of::<Span>() + size_of::<(u128, u32)>() + size_of::<u128>();

#[derive(Debug, Clone)]
pub(crate) struct Span {
    pub start: i64,
    pub duration: i64,
    /// Rows or calls, as the file has them; [`UNKNOWN`] if it does not.
    pub fetches: u64,
    pub parent: u32,
    /// Label of the top span.
    pub top: u32,
    /// Label of the statement; 0 if it executes none.
    pub statement: u32,
    pub executions: u8,
    pub removed: bool,
}

/// Times of a kept span: its new start, its new duration, and its own time, which stays.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Times {
    pub start: i64,
    pub duration: i64,
    pub own: i64,
}

/// Sums of removed spans: time in SQL, executions and fetches. A file may keep them at a span for
/// all spans below it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    pub sql: Option<i64>,
    pub executions: Option<i64>,
    pub fetches: Option<i64>,
}

/// The order in which spans of a file run if it has no starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Starts {
    Known,
    OneAfterTheOther,
}

#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub spans: Vec<Span>,
    pub times: Vec<Times>,
    pub labels: Labels,
    /// Sums that the file has at some spans, and then those of the pruned trace.
    pub summaries: HashMap<u32, Summary>,
    /// Spans whose parent is not in the file.
    pub missing: u64,
    /// Spans that are partly or wholly outside of their parent's time.
    pub outside: u64,
    /// Sums that would be negative, or longer than their span.
    pub clamped: u64,
    ids: Vec<(u128, u32)>,
    parents: Vec<u128>,
    /// The children of each span, by start; top spans are last.
    children: Vec<u32>,
    /// Place of the first child of each span.
    first: Vec<u32>,
}

impl Tree {
    /// Adds a span; its id may be 0 if its file has none, and the parent's if it is a top span.
    pub fn add(&mut self, span: Span, id: u128, parent: u128) {
        let at = self.spans.len() as u32;
        if id != 0 {
            self.ids.push((id, at));
        }
        self.parents.push(parent);
        self.spans.push(span);
    }

    /// Finds the parent and the children of each span.
    ///
    /// # Errors
    /// A reason, if two spans have one id or spans are their own ancestors.
    pub fn link(&mut self, starts: Starts) -> Result<(), String> {
        self.ids.sort_unstable();
        if let Some(pair) = self.ids.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            let [one, two] = [pair[0].1 + 1, pair[1].1 + 1];
            return Err(format!("spans {one} and {two} have one id, expected an id of its own for each"));
        }
        for (span, parent) in self.spans.iter_mut().zip(&self.parents).filter(|(_, parent)| **parent != 0) {
            match self.ids.binary_search_by_key(parent, |(id, _)| *id) {
                Ok(found) => span.parent = self.ids[found].1,
                Err(_) => {
                    self.missing += 1;
                    span.top = self.labels.of("(a span whose parent is not in the file)");
                }
            }
        }
        (self.ids, self.parents) = (Vec::new(), Vec::new());
        self.order();
        let order = self.top_down();
        if order.len() < self.spans.len() {
            let mut reached = vec![false; self.spans.len()];
            order.iter().for_each(|at| reached[*at as usize] = true);
            let mut at = reached.iter().position(|reached| !reached).unwrap_or(0);
            // From any span that no top span reaches, its ancestors lead into the circle.
            reached.iter().for_each(|_| at = self.spans[at].parent as usize);
            let (one, two) = (at + 1, self.spans[at].parent + 1);
            return Err(format!("span {one} is below span {two}, and span {two} below span {one}: a circle"));
        }
        if starts == Starts::OneAfterTheOther {
            order.iter().for_each(|at| self.lay(*at as usize));
            self.order();
        }
        Ok(())
    }

    /// Sorts the children of each span.
    fn order(&mut self) {
        let mut first = vec![0; self.spans.len() + 2];
        let place = |span: &Span, spans: usize| (span.parent as usize).min(spans);
        self.spans.iter().for_each(|span| first[place(span, self.spans.len()) + 1] += 1);
        for at in 1..first.len() {
            first[at] += first[at - 1];
        }
        let mut next = first.clone();
        self.children = vec![0; self.spans.len()];
        for (at, span) in self.spans.iter().enumerate() {
            let next = &mut next[place(span, self.spans.len())];
            self.children[*next as usize] = at as u32;
            *next += 1;
        }
        for pair in first.windows(2) {
            let own = &mut self.children[pair[0] as usize..pair[1] as usize];
            own.sort_unstable_by_key(|at| (self.spans[*at as usize].start, *at));
        }
        self.first = first;
    }

    fn children(&self, at: usize) -> Range<usize> {
        self.first[at] as usize..self.first[at + 1] as usize
    }

    /// Returns the spans that a top span reaches, each behind its parent.
    fn top_down(&self) -> Vec<u32> {
        let mut order = self.children[self.children(self.spans.len())].to_vec();
        let mut next = 0;
        while let Some(at) = order.get(next) {
            let own = self.children(*at as usize);
            order.extend_from_slice(&self.children[own]);
            next += 1;
        }
        order
    }

    /// Gives the children of a span starts, one after the other.
    fn lay(&mut self, parent: usize) {
        let Span { start, duration, .. } = self.spans[parent];
        let mut before: i64 = 0;
        for place in self.children(parent) {
            let child = &mut self.spans[self.children[place] as usize];
            let offset = before.min((duration - child.duration).max(0));
            child.start = start.saturating_add(offset).min(TIME_MOST);
            before = before.saturating_add(child.duration);
        }
        self.outside += u64::from(before > duration);
    }

    /// Removes the chosen spans with all below them, and computes the times and sums of the others.
    pub fn prune(&mut self, starts: Starts) {
        let order = self.top_down();
        for at in &order {
            let at = *at as usize;
            let parent = self.spans[at].parent;
            if let Some(above) = self.spans.get(parent as usize) {
                let (top, removed) = (above.top, above.removed);
                let is_inside = self.spans[at].is_within(above);
                self.outside += u64::from(starts == Starts::Known && !is_inside);
                self.spans[at].top = top;
                self.spans[at].removed |= removed;
            }
        }
        self.times = vec![Times::default(); self.spans.len()];
        order.iter().rev().for_each(|at| self.squeeze(*at as usize));
        self.summarise(&order);
        for at in order {
            let span = &self.spans[at as usize];
            let start = match self.times.get(span.parent as usize) {
                Some(above) => above.start,
                None => span.start,
            };
            self.times[at as usize].start += start;
        }
    }

    /// Computes a span's times from those of its children. A child's start is relative to its
    /// parent's until the starts of all are known.
    fn squeeze(&mut self, at: usize) {
        let Span { start: begin, duration, parent, .. } = self.spans[at];
        let end = begin + duration;
        // Latest end of a child up to now, and the same in the new time, which begins at 0.
        let (mut busy, mut now, mut own, mut shift) = (begin, 0, 0, begin);
        for place in self.children(at) {
            let child = self.children[place] as usize;
            let Span { start, duration, removed, .. } = self.spans[child];
            let from = start.clamp(begin, end);
            let idle = (from - busy).max(0);
            // S1: idle moments are in both times.
            (own, now) = (own + idle, now + idle);
            busy = busy.max(from).max((start + duration).min(end));
            if removed && !self.spans[at].removed {
                continue;
            }
            // A moment in which removed children alone ran is gone; S3: for all later children.
            shift = shift.max(from - now);
            let times = &mut self.times[child];
            times.start = from - shift + (start - from);
            let behind = (start + duration - end).max(0);
            now = now.max(times.start + times.duration - behind);
        }
        own += (end - busy).max(0);
        now += (end - busy).max(0);
        assert!(own >= 0 && now >= own && now <= duration, "S2: {own} own of {now}, at most {duration}");
        // A top span stays where it is.
        let start = if parent == NONE { 0 } else { self.times[at].start };
        self.times[at] = Times { start, duration: now, own };
    }

    /// Corrects the sums that the file has at some spans.
    fn summarise(&mut self, order: &[u32]) {
        if self.summaries.is_empty() {
            return;
        }
        let mut lost = vec![[0_i64; 3]; self.spans.len()];
        for at in order.iter().rev().map(|at| *at as usize) {
            let span = &self.spans[at];
            let place = at as u32;
            if span.removed {
                let own = [
                    if span.statement != 0 { span.duration } else { 0 },
                    i64::from(span.executions),
                    if span.fetches == UNKNOWN { 0 } else { span.fetches as i64 },
                ];
                let sum = self.summaries.get(&place).copied().unwrap_or_default();
                // A span of SQL, or one with a sum, has the time of those below it.
                lost[at][0] = sum.sql.unwrap_or(own[0].max(lost[at][0]));
                lost[at][1] += own[1];
                lost[at][2] += own[2];
            } else if let Some(sum) = self.summaries.get_mut(&place) {
                let mut less = |value: &mut Option<i64>, lost: i64, most: i64| {
                    if let Some(value) = value {
                        let left = *value - lost;
                        self.clamped += u64::from(!(0..=most).contains(&left));
                        *value = left.clamp(0, most);
                    }
                };
                less(&mut sum.sql, lost[at][0], self.times[at].duration);
                less(&mut sum.executions, lost[at][1], i64::MAX);
                less(&mut sum.fetches, lost[at][2], i64::MAX);
            }
            if let Some(above) = lost.get(span.parent as usize).copied() {
                let sum = [0, 1, 2].map(|kind| above[kind].saturating_add(lost[at][kind]));
                lost[span.parent as usize] = sum;
            }
        }
    }
}

impl Span {
    fn is_within(&self, above: &Span) -> bool {
        self.start >= above.start && self.start + self.duration <= above.start + above.duration
    }
}

#[cfg(test)]
mod tests;
