//! What a study as a whole says: the worst of its claims' verdicts, and how many say what.

use super::result::{Analysis, Bearing, JudgedClaim, StudyState};
use plumb_proof::verdict::Verdict;

impl Analysis {
    /// The verdict with the largest exit code, the first of equals; none without claims.
    #[must_use]
    pub fn verdict(&self) -> Option<&Verdict> {
        let worst = self.claims.iter().map(|claim| claim.verdict.exit_code()).max()?;
        self.claims.iter().map(|claim| &claim.verdict).find(|verdict| verdict.exit_code() == worst)
    }

    /// The exit code of the study: that of its verdict, 0 without claims.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        self.verdict().map_or(0, Verdict::exit_code)
    }

    /// The verdict in a word: the worst one's label. Several claims that are proved differently are just PROVED.
    #[must_use]
    pub fn headline(&self) -> &'static str {
        let Some(verdict) = self.verdict() else { return "no claim" };
        let alike = self.claims.iter().all(|claim| claim.verdict.label() == verdict.label());
        if verdict.exit_code() == 0 && !alike { "PROVED" } else { verdict.label() }
    }

    /// What the verdicts mean for the claims, in one line: `6 claims: 3 held, 1 refuted, 2 open`.
    #[must_use]
    pub fn tally(&self) -> String {
        let count = |bearing| self.claims.iter().filter(|claim| claim.bearing == bearing).count();
        let parts = [(Bearing::Holds, "held"), (Bearing::Refuted, "refuted"), (Bearing::Open, "open")];
        let parts = parts.map(|(bearing, word)| format!("{} {word}", count(bearing)));
        let interrupted = match self.state {
            StudyState::Finished => "",
            StudyState::Interrupted => "; interrupted",
        };
        let claims = if self.claims.len() == 1 { "claim" } else { "claims" };
        format!("{} {claims}: {}{interrupted}", self.claims.len(), parts.join(", "))
    }

    /// An arm's name; its number where the context has no such arm.
    pub(crate) fn arm_name(&self, arm: usize) -> String {
        self.arms.get(arm).map_or_else(|| format!("arm {arm}"), |arm| arm.name.clone())
    }

    /// The name of a slot: its arm's, or that of the reference with a mark.
    pub(crate) fn slot_name(&self, slot: usize) -> String {
        match self.arms.get(slot) {
            Some(arm) => arm.name.clone(),
            None => format!("{} (again)", self.arm_name(self.design.reference_arm)),
        }
    }
}

impl JudgedClaim {
    /// The word for what the verdict means for the claim.
    pub(crate) fn bearing_word(&self) -> &'static str {
        match self.bearing {
            Bearing::Holds => "holds",
            Bearing::Refuted => "REFUTED",
            Bearing::Open => "open",
        }
    }
}
