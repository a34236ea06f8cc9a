//! The verdict on a claim, with all its reasons.
//!
//! | verdict | when |
//! |---|---|
//! | INVALID | a bundle is named, and does not verify |
//! | IMPOSSIBLE | figures of the author contradict each other or physics, in every reading |
//! | REFUTED | a sound bundle proves the contrary, or an effect without the claim's figure |
//! | PROVED | a sound bundle proves it |
//! | NOT PROVED | all else: each flaw and each unanswered question is a reason |
//!
//! The caller verifies the bundle and passes the result; this file reads nothing.

use crate::arithmetic;
use crate::checklist::{Answer, ITEMS};
use crate::claim::{By, Publication, PublishedClaim, Relation};
use crate::rule::Consequence;
use plumb_proof::verdict::Standing;
use serde::Serialize;

/// State of the bundle that a claim names.
#[derive(Debug, Clone, PartialEq)]
pub enum Backing {
    /// The claim names no bundle.
    None,
    /// The bundle does not verify, or has no such claim.
    Broken {
        /// The reason, as `plumb verify` prints it.
        why: String,
    },
    /// The bundle verifies to the byte.
    Sound {
        /// The directory of the bundle.
        bundle: String,
        /// The hash of the evidence, as `plumb verify` prints it.
        hash: String,
        /// The standing of the study's claim.
        standing: Standing,
        /// The verdict on that claim in words.
        verdict: String,
        /// Both ends of a proved effect's interval, per cent.
        change: Option<[f64; 2]>,
    },
}

/// The kind of a reason; the worst kinds come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReasonKind {
    /// The claim contradicts itself, or physics.
    Contradiction,
    /// A bundle of this program proves it or the contrary.
    Evidence,
    /// The figures or the design prove less than is claimed.
    Flaw,
    /// The claim does not state what the checklist asks.
    NotStated,
    /// A critic's figures contradict each other, which says nothing about the claim.
    Slip,
    /// The figures of a relation add up.
    Holds,
}

impl ReasonKind {
    /// Returns the word of reports.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            ReasonKind::Contradiction => "contradiction",
            ReasonKind::Evidence => "evidence",
            ReasonKind::Flaw => "flaw",
            ReasonKind::NotStated => "not stated",
            ReasonKind::Slip => "critic's slip",
            ReasonKind::Holds => "adds up",
        }
    }
}

/// A reason of a verdict, tied to its figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reason {
    pub kind: ReasonKind,
    /// Name of the rule, or of the item of the checklist.
    pub rule: String,
    /// Source of the rule: its author, or a fact of arithmetic or physics.
    pub origin: String,
    pub text: String,
    /// Texts of the figures that it uses.
    pub figures: Vec<String>,
}

/// A verdict on a claim, with its reasons.
#[derive(Debug, Clone, Serialize)]
pub struct Audit {
    /// Name of the claim's file, without its ending.
    pub name: String,
    pub statement: String,
    pub source: Publication,
    pub verdict: String,
    /// Standing of the verdict, which decides the exit code.
    #[serde(skip)]
    pub standing: Standing,
    /// All reasons, the worst first.
    pub reasons: Vec<Reason>,
    /// Command of a study that tests the claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub experiment: Option<String>,
}

impl Audit {
    /// Returns the reasons of one kind.
    pub fn of(&self, kind: ReasonKind) -> impl Iterator<Item = &Reason> {
        self.reasons.iter().filter(move |reason| reason.kind == kind)
    }
}

/// Judges a claim by its rules, its checklist and the bundle behind it.
#[must_use]
pub fn audit(claim: &PublishedClaim, backing: &Backing) -> Audit {
    let mut reasons: Vec<Reason> =
        claim.relations.iter().map(|relation| of_relation(claim, relation)).collect();
    let (standing, said) = of_evidence(claim, backing);
    reasons.extend(said);
    // A sound bundle answers all these questions itself.
    if !matches!(backing, Backing::Sound { .. }) {
        reasons.extend(of_checklist(claim));
    }
    reasons.sort_by_key(|reason| reason.kind);
    let contradicted = reasons.iter().any(|reason| reason.kind == ReasonKind::Contradiction);
    let standing = match standing {
        Standing::Invalid => Standing::Invalid,
        _ if contradicted => Standing::Impossible,
        standing => standing,
    };
    Audit {
        name: claim.name.clone(),
        statement: claim.statement.clone(),
        source: claim.source.clone(),
        verdict: standing.word().to_string(),
        standing,
        reasons,
        experiment: claim.experiment.as_ref().map(|of| format!("plumb study {}", of.study)),
    }
}

fn of_relation(claim: &PublishedClaim, relation: &Relation) -> Reason {
    let rule = relation.rule;
    let reason = |kind, text, figures| Reason {
        kind,
        rule: rule.name.to_string(),
        origin: rule.origin.to_string(),
        text,
        figures,
    };
    let Some(found) = arithmetic::judge(claim, relation) else {
        let text = "a figure that is open at one end cannot be computed with".to_string();
        return reason(ReasonKind::NotStated, text, Vec::new());
    };
    let kind = match (found.holds, relation.by, rule.consequence) {
        (true, ..) => ReasonKind::Holds,
        (false, By::Critic, _) => ReasonKind::Slip,
        (false, By::Author, Consequence::Contradiction) => ReasonKind::Contradiction,
        (false, By::Author, Consequence::Flaw) => ReasonKind::Flaw,
    };
    reason(kind, found.text, found.figures)
}

fn of_checklist(claim: &PublishedClaim) -> impl Iterator<Item = Reason> {
    ITEMS.iter().filter_map(|item| {
        let (kind, text) = match claim.stated.get(item.name) {
            Some(Answer::Good) => return None,
            Some(Answer::Flaw(text)) => (ReasonKind::Flaw, text.clone()),
            None => (ReasonKind::NotStated, item.asks.to_string()),
        };
        let (rule, origin) = (item.name.to_string(), item.origin.to_string());
        Some(Reason { kind, rule, origin, text, figures: Vec::new() })
    })
}

fn of_evidence(claim: &PublishedClaim, backing: &Backing) -> (Standing, Option<Reason>) {
    let reason = |text: String| {
        let (rule, origin) = ("bundle".to_string(), "plumb verify".to_string());
        Some(Reason { kind: ReasonKind::Evidence, rule, origin, text, figures: Vec::new() })
    };
    match backing {
        Backing::None => (Standing::NotProved, None),
        Backing::Broken { why } => (Standing::Invalid, reason(why.clone())),
        Backing::Sound { bundle, hash, standing, verdict, change } => {
            let shown = format!("{bundle} verifies (hash {hash}) and says {verdict}");
            let says_contrary = claim.experiment.as_ref().is_some_and(|of| of.contrary.is_some());
            if *standing == Standing::Proved && says_contrary {
                return (Standing::Refuted, reason(format!("{shown}, which is the contrary")));
            }
            if *standing == Standing::Proved
                && let (Some([low, high]), Some(figure)) = (change, stated_change(claim))
                && (figure.1 < *low || figure.0 > *high)
            {
                let stated = format!("{shown}; the claim's figure is not in this interval");
                return (Standing::Refuted, reason(stated));
            }
            (*standing, reason(shown))
        }
    }
}

/// Returns both ends, per cent, of the stated effect that the bundle's effect must include.
fn stated_change(claim: &PublishedClaim) -> Option<(f64, f64)> {
    let name = claim.experiment.as_ref()?.figure.as_ref()?;
    let reading = claim.figures.iter().find(|figure| figure.name == *name)?.readings.first()?;
    Some((100.0 * reading.range.low, 100.0 * reading.range.high))
}
