//! The sections of a study's report, from the answer down to what it rests on.
//!
//! First the question and the verdicts, one line each; then the settings to use, where the
//! differences come from, all effects, and the published table beside ours. Behind these stands what
//! lets a reader believe them or not: the noise floor, the tests of order, every run, the design,
//! what lies under the path, and the settings.

mod advice;
mod design;
mod effects;
mod noise;
mod published;
mod runs;
mod verdicts;
mod why;

pub(super) use advice::{assignments, gain};
#[cfg(test)]
pub(super) use why::{Part, Parts};

use crate::section::{Section, devices_of};
use crate::study::context::StudyContext;
use crate::study::verdict::exit_code;
use crate::table::Tone;

/// All sections of a report.
pub(super) fn sections(study: &StudyContext) -> Vec<Section> {
    let mut sections = vec![verdicts::question(study), verdicts::verdicts(study)];
    sections.push(advice::advice(study));
    sections.push(verdicts::evidence(study));
    sections.extend(why::why(study));
    sections.extend(why::profiles(study));
    sections.push(effects::claims(study));
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
