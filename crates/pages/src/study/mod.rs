//! The report of a study, from the answer to its basis.
//!
//! First come the effects of the claims as a picture, the question, and the verdicts in a line
//! each. Then the recommended settings, the origin of differences, other effects, and the published
//! table next to ours. The basis follows: the noise floor, the tests of order, every run, the
//! design, the devices, and the settings.

mod advice;
mod answer;
mod design;
mod effects;
mod junit;
mod noise;
mod order;
mod published;
mod runs;
mod summary;
mod verdicts;
pub(super) mod why;
mod words;

pub use junit::junit;

use crate::run::devices_of;
use crate::tone_of_standing;
use plumb_report::format::{Change, Count, Figure, Seconds, Share};
use plumb_report::{Document, Headline, Section, State};
use plumb_study::analysis::result::{Analysis, Counted};

const WIDTH: usize = 110;

/// Renders the page of a study, as text and as HTML: see [`plumb_study::report::RenderPage`].
pub fn rendered(analysis: &Analysis) -> plumb_study::report::Rendered {
    crate::rendered(&document(analysis)).map(|(_, text)| text)
}

/// Builds the report of a study.
pub fn document(analysis: &Analysis) -> Document {
    Document {
        title: format!("PLUMB STUDY REPORT  {}: {}", analysis.study.name, analysis.study.title),
        answer: answer::answer(analysis),
        question: analysis.study.question.clone(),
        running_head: format!(
            "Study: {}/{}  Host: {}",
            analysis.study.name, analysis.study_hash, analysis.environment.host.name
        ),
        width: WIDTH,
        state: State {
            of: "Study".to_string(),
            word: analysis.headline(),
            tone: tone_of_standing(analysis.standing()),
        },
        basis: analysis.tally(),
        reasons: Vec::new(),
        headline: headline(analysis),
        sections: sections(analysis),
        summary: summary::summary(analysis),
        footer: format!(
            "plumb {}, study schema {}. What this report was made from is embedded in this file as JSON. \
             Plots by uPlot (MIT licence, Leon Sorokin).",
            analysis.environment.plumb_version, analysis.schema_version
        ),
        data: serde_json::to_string(analysis).unwrap_or_else(|_| "null".to_string()),
    }
}

fn headline(analysis: &Analysis) -> Vec<Headline> {
    let design = &analysis.design;
    let counted = analysis.runs.iter().filter(|run| run.counted == Counted::Yes).count();
    let figure = |name: &str, value: String, aside: String| Headline { name: name.to_string(), value, aside };
    let disturbed = analysis.doubtful.as_ref().map_or(0, |found| found.disturbed_blocks);
    let disturbed = if disturbed > 0 { format!(", {disturbed} disturbed") } else { String::new() };
    let marked =
        format!("{} planned, {} marked{disturbed}", analysis.study.blocks, design.blocks_marked.len());
    let mut figures = vec![
        figure("Blocks used", Count(design.blocks_used).figure(), marked),
        figure("Arms", analysis.arms.len().to_string(), design.kind.clone()),
        figure("Runs counted", counted.to_string(), format!("of {} that ran", analysis.runs.len())),
    ];
    figures.extend(analysis.floors().map(|[(least_name, least), (name, most)]| {
        if least_name == name {
            return figure(
                "Smallest effect",
                Share(most).figure(),
                format!("found with 80% power by {name}"),
            );
        }
        let aside = format!("found with 80% power by claim, the most by {name}");
        figure("Smallest effects", format!("{} to {}", Share(least).figure(), Share(most).figure()), aside)
    }));
    figures.extend(analysis.recommendation.as_ref().map(|found| {
        figure("Gain to expect", Change(found.gain.ratio).figure(), advice::assignments(&found.settings))
    }));
    let elapsed = format!("{} s", Seconds(analysis.elapsed_ns).figure());
    figures.push(figure("Elapsed", elapsed, analysis.environment.host.name.clone()));
    figures
}

/// Appends the unit of a title's figures in brackets, unless they are counts.
fn with_unit(title: &str, unit: &str) -> String {
    if unit.is_empty() { title.trim_end().to_string() } else { format!("{title}({unit})") }
}

fn sections(analysis: &Analysis) -> Vec<Section> {
    let mut sections =
        vec![effects::claims(analysis), verdicts::question(analysis), verdicts::verdicts(analysis)];
    sections.push(advice::advice(analysis));
    sections.push(verdicts::evidence(analysis));
    sections.extend(why::why(analysis));
    sections.extend(why::profiles(analysis));
    sections.extend(effects::main_effects(analysis));
    sections.extend(effects::interactions(analysis));
    sections.extend(published::table(analysis));
    sections.push(effects::arms(analysis));
    sections.extend(effects::other_figures(analysis));
    sections.extend(effects::beside_arms(analysis));
    sections.extend(effects::devices_of_arms(analysis));
    sections.extend(effects::arms_io(analysis));
    sections.push(noise::floor(analysis));
    sections.push(noise::order(analysis));
    sections.extend(runs::plot(analysis));
    sections.push(design::design(analysis));
    sections.push(design::factors(analysis));
    sections.extend(devices_of(&analysis.environment.devices, analysis.calibration.as_ref()));
    sections.push(design::settings(analysis));
    sections.push(runs::list(analysis));
    sections
}

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;
