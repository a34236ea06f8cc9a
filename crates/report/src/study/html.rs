//! The HTML report of a study: one file, no network, as that of a run.
//!
//! Intervals, the parts of differences and the order of runs are inline SVG; the profiles of two
//! arms are drawn by uPlot from the embedded context.

use super::context::StudyContext;
use super::section::{assignments, gain, sections};
use super::text::title;
use super::verdict::exit_code;
use crate::format::{Count, Figure, Seconds, Share};
use crate::html::{Page, STUDY_STYLE, UPLOT_SCRIPT, UPLOT_STYLE, body_under, escape, headline, page};
use crate::section::Headline;

const STUDY_SCRIPT: &str = include_str!("../../assets/study.js");

/// The whole file.
#[must_use]
pub fn render(study: &StudyContext) -> String {
    // Without its JSON the page still shows every table, and the plots' failure to read it is recorded.
    let json = serde_json::to_string(study).unwrap_or_else(|_| "null".to_string());
    page(&Page {
        title: &title(study),
        body: &body(study),
        json: &json,
        styles: &[UPLOT_STYLE, STUDY_STYLE],
        scripts: &[UPLOT_SCRIPT, STUDY_SCRIPT],
    })
}

/// What the page shows, without styles and scripts.
pub(crate) fn body(study: &StudyContext) -> String {
    body_under(&masthead(study), &sections(study), &footer(study))
}

fn masthead(study: &StudyContext) -> String {
    let verdict = study.headline();
    let class = match study.exit_code() {
        exit_code::PROVED => "valid",
        exit_code::NOT_PROVED => "unverified",
        _ => "invalid",
    };
    let mut html = format!(
        "<header>\n<h1>{}</h1>\n<p class=\"question\">{}</p>\n<div class=\"state {class}\"><strong>{}</strong> <span>{}</span></div>\n",
        escape(&title(study)),
        escape(&study.header.question),
        escape(verdict),
        escape(&study.tally())
    );
    if let Some(recommendation) = &study.recommendation {
        html.push_str(&format!(
            "<p class=\"use\"><strong>Use</strong><code>{}</code><br>{} in {}, against {}</p>\n",
            escape(&assignments(&recommendation.settings)),
            escape(&gain(recommendation)),
            escape(&study.header.measure.name),
            escape(&recommendation.against)
        ));
    }
    html.push_str(&headline(&figures(study)));
    html + "</header>\n"
}

/// The figures to read first.
fn figures(study: &StudyContext) -> Vec<Headline> {
    let (design, header) = (&study.design, &study.header);
    let counted = study.runs.iter().filter(|run| run.counted == super::context::Counted::Yes).count();
    let mut figures = vec![
        Headline {
            name: "Blocks used".to_string(),
            value: Count(design.blocks_used).figure(),
            aside: format!("{} planned, {} marked", design.blocks_planned, design.blocks_marked.len()),
        },
        Headline {
            name: "Arms".to_string(),
            value: study.arms.len().to_string(),
            aside: design.kind.clone(),
        },
        Headline {
            name: "Runs counted".to_string(),
            value: counted.to_string(),
            aside: format!("of {} that ran", study.runs.len()),
        },
    ];
    figures.extend(study.floor.as_ref().map(|floor| Headline {
        name: "Smallest effect".to_string(),
        value: Share(floor.smallest_effect).figure(),
        aside: "found with 80% power".to_string(),
    }));
    figures.push(Headline {
        name: "Elapsed".to_string(),
        value: format!("{} s", Seconds(header.elapsed_ns).figure()),
        aside: header.host.name.clone(),
    });
    figures
}

fn footer(study: &StudyContext) -> String {
    format!(
        "plumb {}, study schema {}. What this report was made from is embedded in this file as JSON. \
         Plots by uPlot (MIT licence, Leon Sorokin).",
        study.header.plumb_version, study.schema_version
    )
}
