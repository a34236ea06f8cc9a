//! The report of a study, from the answer down to what it rests on.
//!
//! First the effects of the claims with their intervals, as a picture, the question and the verdicts, one line each; then
//! the settings to use, where the differences come from, other effects, and the published table beside ours. Behind these stands what
//! lets a reader believe them or not: the noise floor, the tests of order, every run, the design,
//! what lies under the path, and the settings.

mod advice;
mod design;
mod effects;
mod noise;
mod order;
mod published;
mod runs;
mod summary;
mod verdicts;
mod why;

use crate::analysis::result::{Analysis, Counted};
use crate::analysis::tally::exit_code;
use crate::document::run::devices_of;
use plumb_report::format::{Change, Count, Figure, Seconds, Share};
use plumb_report::table::Tone;
use plumb_report::{Document, Headline, Section, State};

/// The longest line.
const WIDTH: usize = 110;

/// What a study's report says.
#[must_use]
pub fn document(study: &Analysis) -> Document {
    let header = &study.header;
    Document {
        title: format!("PLUMB STUDY REPORT  {}: {}", header.name, header.title),
        question: header.question.clone(),
        running_head: format!("Study: {}/{}  Host: {}", header.name, header.study_hash, header.host.name),
        width: WIDTH,
        state: State { of: "Study", word: study.headline().to_string(), tone: tone_of(study.exit_code()) },
        basis: study.tally(),
        reasons: Vec::new(),
        headline: headline(study),
        sections: sections(study),
        summary: summary::summary(study),
        footer: format!(
            "plumb {}, study schema {}. What this report was made from is embedded in this file as JSON. \
             Plots by uPlot (MIT licence, Leon Sorokin).",
            header.plumb_version, study.schema_version
        ),
        data: serde_json::to_string(study).unwrap_or_else(|_| "null".to_string()),
    }
}

fn headline(study: &Analysis) -> Vec<Headline> {
    let design = &study.design;
    let counted = study.runs.iter().filter(|run| run.counted == Counted::Yes).count();
    let figure = |name: &str, value: String, aside: String| Headline { name: name.to_string(), value, aside };
    let marked = format!("{} planned, {} marked", design.blocks_planned, design.blocks_marked.len());
    let mut figures = vec![
        figure("Blocks used", Count(design.blocks_used).figure(), marked),
        figure("Arms", study.arms.len().to_string(), design.kind.clone()),
        figure("Runs counted", counted.to_string(), format!("of {} that ran", study.runs.len())),
    ];
    figures.extend(study.floor.as_ref().map(|floor| {
        let found = "found with 80% power".to_string();
        figure("Smallest effect", Share(floor.smallest_effect).figure(), found)
    }));
    figures.extend(study.recommendation.as_ref().map(|found| {
        figure("Gain to expect", Change(found.gain.ratio).figure(), advice::assignments(&found.settings))
    }));
    let elapsed = format!("{} s", Seconds(study.header.elapsed_ns).figure());
    figures.push(figure("Elapsed", elapsed, study.header.host.name.clone()));
    figures
}

fn sections(study: &Analysis) -> Vec<Section> {
    let mut sections = vec![effects::claims(study), verdicts::question(study), verdicts::verdicts(study)];
    sections.push(advice::advice(study));
    sections.push(verdicts::evidence(study));
    sections.extend(why::why(study));
    sections.extend(why::profiles(study));
    sections.extend(effects::main_effects(study));
    sections.extend(effects::interactions(study));
    sections.extend(published::table(study));
    sections.push(effects::arms(study));
    sections.push(noise::floor(study));
    sections.push(noise::order(study));
    sections.extend(runs::plot(study));
    sections.push(design::design(study));
    sections.push(design::factors(study));
    sections.extend(devices_of(&study.devices, study.calibration.as_ref()));
    sections.push(design::settings(study));
    sections.push(runs::list(study));
    sections
}

/// The colour of a verdict.
fn tone_of(verdict_code: u8) -> Tone {
    match verdict_code {
        exit_code::PROVED => Tone::Good,
        exit_code::NOT_PROVED => Tone::Open,
        _ => Tone::Bad,
    }
}

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;
