//! A study as a JUnit report, so that a build server shows its claims as tests.
//!
//! A claim that holds passes. A refuted one and an open one fail, because a build asks for the
//! claim; one whose evidence is contradicted is an error.

use super::words;
use plumb_study::analysis::result::{Analysis, ClaimOutcome, JudgedClaim, Standing};
use plumb_units::{Nanos, visible};

/// Result of a test case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Case {
    Passed,
    Failed,
    Error,
}

/// Renders the study as XML, a test case for each claim.
pub fn junit(analysis: &Analysis) -> String {
    let cases: Vec<Case> = analysis.claims.iter().map(case_of).collect();
    let count = |of: Case| cases.iter().filter(|case| **case == of).count();
    let name = attribute(&analysis.study.name);
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"plumb study {name}\" tests=\"{}\" \
         failures=\"{}\" errors=\"{}\" skipped=\"0\" time=\"{:.3}\">\n",
        cases.len(),
        count(Case::Failed),
        count(Case::Error),
        Nanos(analysis.elapsed_ns).seconds()
    );
    for (claim, case) in analysis.claims.iter().zip(cases) {
        let message = attribute(&words::verdict(analysis, claim));
        let reasons = attribute(&claim.reasons.join("\n"));
        let title = attribute(&format!("{}: {}", claim.name, claim.text));
        xml.push_str(&format!("<testcase classname=\"{name}\" name=\"{title}\">"));
        xml.push_str(&match case {
            Case::Passed => format!("<system-out>{message}</system-out>"),
            Case::Failed => format!("<failure message=\"{message}\">{reasons}</failure>"),
            Case::Error => format!("<error message=\"{message}\">{reasons}</error>"),
        });
        xml.push_str("</testcase>\n");
    }
    xml + "</testsuite>\n</testsuites>\n"
}

fn case_of(claim: &JudgedClaim) -> Case {
    let broken = [Standing::Invalid, Standing::Impossible, Standing::Unstable, Standing::Mixed];
    match claim.outcome {
        _ if broken.iter().any(|standing| standing.exit_code() == claim.verdict.exit_code()) => Case::Error,
        ClaimOutcome::Holds => Case::Passed,
        ClaimOutcome::Refuted | ClaimOutcome::Open => Case::Failed,
    }
}

/// Escapes a text for XML.
fn attribute(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            '\n' => escaped.push_str("&#10;"),
            // XML has no other control characters.
            letter => escaped.push_str(&visible(&letter.to_string())),
        }
    }
    escaped
}
