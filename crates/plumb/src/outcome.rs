//! How the program ends: one table, from which exit codes and the help follow.

use plumb_study::analysis::result::Standing;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Fine,
    /// An error of the run.
    Error,
    Usage,
    /// What came of it stands so: a study as its worst claim does, a run or data that are not right
    /// as INVALID.
    Stands(Standing),
}

/// Every way with what it means.
const TABLE: [(Outcome, &str); 9] = [
    (Outcome::Fine, "fine, or proved"),
    (Outcome::Error, "an error of the run"),
    (Outcome::Usage, "wrong usage"),
    (Outcome::Stands(Standing::NotProved), "not proved"),
    (Outcome::Stands(Standing::Unstable), "unstable, or a calibration in doubt"),
    (Outcome::INVALID, "invalid: a receipt contradicts its setting, or a verification failed"),
    (Outcome::Stands(Standing::Impossible), "impossible"),
    (Outcome::Stands(Standing::Refuted), "a claim is refuted"),
    (Outcome::Stands(Standing::Mixed), "mixed: the typical run and the average disagree"),
];

impl Outcome {
    /// A receipt contradicts its setting, or a verification failed.
    pub const INVALID: Outcome = Outcome::Stands(Standing::Invalid);

    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Outcome::Fine => 0,
            Outcome::Error => 1,
            Outcome::Usage => 2,
            Outcome::Stands(standing) => standing.exit_code(),
        }
    }
}

/// What the help says at its end.
#[must_use]
pub fn help() -> String {
    let rows: Vec<String> =
        TABLE.iter().map(|(outcome, means)| format!("{} {means}", outcome.code())).collect();
    format!(
        "Exit codes: {}; 130 interrupted (128 and the number of the signal).\nA study exits as its worst claim stands.\nWithout a command, plumb says what to try.",
        rows.join("; ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_their_rows() {
        let codes: Vec<u8> = TABLE.iter().map(|(outcome, _)| outcome.code()).collect();
        assert_eq!(codes, (0..TABLE.len() as u8).collect::<Vec<_>>());
    }
}
