//! Reports: a document of each kind, built from its data.
//!
//! `plumb_report` has the document and its renderers; this crate decides on the content, in a
//! folder for each kind. Derived figures (rates, shares, averages, unaccounted time) are computed
//! here. Statistical tests are not: verdicts and intervals are part of the data.

pub mod audit;
pub mod calibration;
pub mod compare;
pub mod figure_series;
pub mod info;
pub mod list;
pub mod plans;
pub mod run;
pub mod series;
mod snoop;
pub mod study;

use plumb_proof::verdict::{Standing, Verdict};
use plumb_record::{Finding, RunState, Validity};
use plumb_report::table::Tone;
use plumb_report::{Document, html, text};
use plumb_study::bundle::REPORTS;

/// Returns a report of any kind as the files of a bundle: name and text.
pub fn rendered(document: &Document) -> [(&'static str, String); 2] {
    let [text_name, html_name] = REPORTS;
    [(text_name, text::render(document)), (html_name, html::render(document))]
}

/// Returns the advice of a finding, or the study that would prove it.
fn advice(finding: &Finding) -> String {
    match (finding.advice.is_empty(), finding.study.is_empty()) {
        (false, _) => format!("next: {}", finding.advice),
        (true, false) => format!("proof: {}", finding.study),
        (true, true) => String::new(),
    }
}

fn tone_of(verdict: &Verdict) -> Tone {
    match verdict {
        Verdict::Faster(_)
        | Verdict::Slower(_)
        | Verdict::Equal { .. }
        | Verdict::NotSlower { .. }
        | Verdict::P95(_) => Tone::Good,
        Verdict::Mixed { .. } | Verdict::NotProved { .. } | Verdict::NoFigure { .. } => Tone::Open,
        Verdict::Unstable { .. } | Verdict::Invalid { .. } | Verdict::Impossible { .. } => Tone::Bad,
    }
}

const fn tone_of_run(state: RunState) -> Tone {
    match state {
        RunState::Valid => Tone::Good,
        RunState::Unverified => Tone::Open,
        RunState::Invalid => Tone::Bad,
    }
}

/// Returns the colour of a run's headline: valid figures may still be doubtful.
fn tone_of_validity(validity: &Validity) -> Tone {
    match validity.state {
        RunState::Valid if !validity.doubtful.is_empty() => Tone::Open,
        state => tone_of_run(state),
    }
}

/// Returns the colour of a study's standing.
fn tone_of_standing(standing: Option<Standing>) -> Tone {
    match standing {
        Some(Standing::Proved) => Tone::Good,
        None | Some(Standing::NotProved | Standing::Mixed) => Tone::Open,
        Some(_) => Tone::Bad,
    }
}

/// Renders a section as in the text of its document, without blanks at the ends of lines.
#[cfg(test)]
fn section_text(section: &plumb_report::Section, document: &Document) -> String {
    let lines = text::render_section(section, document);
    lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests;
