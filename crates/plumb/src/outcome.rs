//! Exit codes: one table, from which the codes and the help follow.

use plumb_study::analysis::result::Standing;

/// End of a command, with its exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Fine,
    /// An error of the run.
    Error,
    Usage,
    /// The result has this standing: that of a study's worst claim; INVALID for a run
    /// or data that are wrong.
    Stands(Standing),
}

/// Every outcome, with its meaning.
const TABLE: [(Outcome, &str); 9] = [
    (Outcome::Fine, "fine, or all claims hold"),
    (Outcome::Error, "an error of the run"),
    (Outcome::Usage, "wrong usage"),
    (Outcome::Stands(Standing::NotProved), "not proved: a claim is open, whatever else is proved"),
    (Outcome::Stands(Standing::Unstable), "unstable, or a calibration in doubt"),
    (Outcome::INVALID, "invalid: a receipt contradicts its setting, or a verification failed"),
    (Outcome::Stands(Standing::Impossible), "impossible"),
    (Outcome::Stands(Standing::Refuted), "a claim is refuted"),
    (Outcome::Stands(Standing::Mixed), "mixed: the typical run and the average disagree"),
];

impl Outcome {
    /// A receipt contradicts its setting, or a verification failed.
    pub const INVALID: Outcome = Outcome::Stands(Standing::Invalid);

    pub fn code(self) -> u8 {
        match self {
            Outcome::Fine => 0,
            Outcome::Error => 1,
            Outcome::Usage => 2,
            Outcome::Stands(standing) => standing.exit_code(),
        }
    }
}

/// Returns the text at the end of the help.
pub fn help() -> String {
    let rows: Vec<String> =
        TABLE.iter().map(|(outcome, means)| format!("{} {means}", outcome.code())).collect();
    format!(
        "Exit codes: {}; 130 interrupted (128 and the number of the signal).\nA study exits with the code of its worst claim.\nWithout a command, plumb says what to try.",
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
