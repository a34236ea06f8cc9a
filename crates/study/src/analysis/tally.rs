//! Summary of a study: the worst of its claims' verdicts, and counts of outcomes.

use super::result::{Analysis, ClaimOutcome, Covered, Effect, JudgedClaim, StudyState};
use plumb_proof::verdict::{Standing, Verdict};
use plumb_report::format::{Change, Ends, Figure, Share};

/// Treatment of claims of which nothing is proved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenClaims {
    Fail,
    /// They are skipped. A claim is not, if an effect is proved that leaves it open.
    Allowed,
}

impl Analysis {
    /// Returns the verdict of the claim with the worst standing, the first
    /// of equals; `None` without claims.
    #[must_use]
    pub fn verdict(&self) -> Option<&Verdict> {
        let worst = self.claims.iter().min_by_key(|claim| claim.standing())?;
        Some(&worst.verdict)
    }

    /// Returns the standing of the worst claim, or not proved before the
    /// study's end; `None` without claims.
    #[must_use]
    pub fn standing(&self) -> Option<Standing> {
        match self.state {
            StudyState::Interrupted => Some(Standing::NotProved),
            StudyState::Finished => self.claims.iter().map(JudgedClaim::standing).min(),
        }
    }

    /// Returns the standing for an exit code: open claims may be allowed. An unfinished study
    /// stays open.
    #[must_use]
    pub fn standing_with(&self, open: OpenClaims) -> Option<Standing> {
        let standing = self.standing()?;
        if standing != Standing::NotProved || open == OpenClaims::Fail || self.state != StudyState::Finished {
            return Some(standing);
        }
        let rest = self.claims.iter().filter(|claim| !claim.is_undecided());
        Some(rest.map(JudgedClaim::standing).min().unwrap_or(Standing::Proved))
    }

    /// Returns the exit code of the study's standing, 0 without claims.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        self.standing().map_or(0, Standing::exit_code)
    }

    /// Returns the answer in a few words: the standing of the worst claim, or the label that all
    /// proved claims share. If other claims are merely open, a first claim that holds is the
    /// answer, because a study's first claim is its question.
    #[must_use]
    pub fn headline(&self) -> String {
        if self.state == StudyState::Interrupted {
            return "UNFINISHED".to_string();
        }
        let (Some(verdict), Some(standing)) = (self.verdict(), self.standing()) else {
            return "no claim".to_string();
        };
        let alike = self.claims.iter().all(|claim| claim.verdict.label() == verdict.label());
        if standing == Standing::NotProved && self.claims.iter().all(JudgedClaim::is_open_although_proved) {
            return "NOT HELD".to_string();
        }
        let first = self.claims.first().filter(|claim| claim.standing() == Standing::Proved);
        if let Some(first) = first.filter(|_| standing == Standing::NotProved) {
            return format!("first claim {}", first.label());
        }
        let word = if standing == Standing::Proved && alike { verdict.label() } else { standing.word() };
        word.to_string()
    }

    /// Counts claims by outcome in one line: `3 of 6 claims held, 1 REFUTED, 2 open`.
    #[must_use]
    pub fn tally(&self) -> String {
        if self.state == StudyState::Interrupted {
            return "interrupted; no verdict before its end".to_string();
        }
        let count = |outcome| self.claims.iter().filter(|claim| claim.outcome == outcome).count();
        let (held, all) = (count(ClaimOutcome::Holds), self.claims.len());
        let mut text = format!("{held} of {all} claim{} held", if all == 1 { "" } else { "s" });
        for (outcome, word) in [(ClaimOutcome::Refuted, "REFUTED"), (ClaimOutcome::Open, "open")] {
            if count(outcome) > 0 {
                text.push_str(&format!(", {} {word}", count(outcome)));
            }
        }
        text
    }

    /// Returns the smallest detectable effects of the most and of the least sensitive claim.
    pub fn floors(&self) -> Option<[(&str, f64); 2]> {
        let floors =
            self.claims.iter().filter_map(|claim| Some((claim.name.as_str(), claim.smallest_effect?)));
        let least = floors.clone().min_by(|one, two| one.1.total_cmp(&two.1))?;
        let most = floors.max_by(|one, two| one.1.total_cmp(&two.1))?;
        Some([least, most])
    }

    /// Returns an arm's name, or its number if the analysis has no such arm.
    pub fn arm_name(&self, arm: usize) -> String {
        self.arms.get(arm).map_or_else(|| format!("arm {arm}"), |arm| arm.name.clone())
    }

    /// Returns the arm's name of a slot; the reference's second slot is marked `(again)`.
    pub fn slot_name(&self, slot: usize) -> String {
        match self.arms.get(slot) {
            Some(arm) => arm.name.clone(),
            None => format!("{} (again)", self.arm_name(self.design.reference_arm)),
        }
    }
}

impl JudgedClaim {
    /// Returns the standing of the claim: that of its outcome, unless the verdict is worse. A
    /// proved effect does not help a claim that it leaves open.
    #[must_use]
    pub fn standing(&self) -> Standing {
        let answer = match self.outcome {
            ClaimOutcome::Holds => Standing::Proved,
            ClaimOutcome::Refuted => Standing::Refuted,
            ClaimOutcome::Open => Standing::NotProved,
        };
        self.verdict.standing().min(answer)
    }

    /// True if nothing is proved of the claim, for it or against it.
    #[must_use]
    pub fn is_undecided(&self) -> bool {
        self.outcome == ClaimOutcome::Open && self.verdict.standing() == Standing::NotProved
    }

    /// True if an effect is proved that leaves the claim open.
    #[must_use]
    pub fn is_open_although_proved(&self) -> bool {
        self.outcome == ClaimOutcome::Open && self.verdict.standing() == Standing::Proved
    }

    /// Returns the effect that refutes the claim if nothing else is proved, so
    /// that more blocks decide nothing.
    fn refuting(&self) -> Option<Effect> {
        let open = matches!(self.verdict, Verdict::NotProved { .. });
        self.effect.filter(|_| open && self.outcome == ClaimOutcome::Refuted)
    }

    /// Returns the words of the verdict before its first figure. An effect that is proved against
    /// the claim must not look like a proof of it.
    pub fn label(&self) -> &'static str {
        match self.outcome {
            _ if self.refuting().is_some() => Standing::Refuted.word(),
            ClaimOutcome::Refuted if self.verdict.standing() == Standing::Proved => Standing::Refuted.word(),
            ClaimOutcome::Open if self.is_open_although_proved() => "NOT HELD",
            _ => self.verdict.label(),
        }
    }

    /// Returns the verdict as it is printed.
    #[must_use]
    pub fn shown(&self) -> String {
        if let Some(Effect { ratio, low, high, .. }) = self.refuting() {
            let change = format!("{} {}", Change(ratio).figure(), Ends { low, high }.figure());
            return format!("{}: the change is {change}, which excludes the claim", self.label());
        }
        let asked_only = if self.asked_only { " (asked only)" } else { "" };
        let (label, verdict) = (self.label(), self.verdict.to_string());
        match label == self.verdict.label() {
            false => format!("{label}: {}{asked_only}", verdict.replacen("PROVED", "proved", 1)),
            true => format!("{verdict}{asked_only}"),
        }
    }

    /// Returns the share of the difference in the excluded statistic, as it is printed.
    #[must_use]
    pub fn covers(&self) -> Option<String> {
        let Covered { parts, of, share, low, high } = self.covered.as_ref()?;
        let percent = |share: f64| Share(share).figure().trim_end_matches('%').to_string();
        let ends = format!("[{}, {}]", percent(*low), percent(*high));
        let are = if parts.len() == 1 { "is" } else { "are" };
        Some(format!("{} {are} {} {ends} of the change of {of}", parts.join(" and "), Share(*share).figure()))
    }

    /// Returns the word for the claim's outcome.
    #[must_use]
    pub fn outcome_word(&self) -> &'static str {
        match self.outcome {
            ClaimOutcome::Holds => "holds",
            ClaimOutcome::Refuted => "REFUTED",
            ClaimOutcome::Open if self.is_open_although_proved() => "not held",
            ClaimOutcome::Open => "open",
        }
    }
}
