//! The HTML report: one file, no network.
//!
//! The same sections as the text, as tables; the I/O profile drawn by uPlot
//! from the context, which is embedded as JSON, so that the file is also the
//! record. Style sheet, plot and uPlot (MIT, see `assets/uPlot.LICENSE`) are
//! inlined, and a content security policy forbids every request. A script that
//! fails says so in `data-errors` on the root element; the plot says
//! `data-plot="drawn"` once uPlot has drawn it. Without scripts the profile is
//! shown in characters.

mod escape;
mod order;
mod pair;
mod strip;
mod table;

use crate::ReportContext;
use crate::profile::Chart;
use crate::section::{self, Block, Headline, Section, Setting};
use crate::text;
use crate::validity::RunState;
use escape::json_in_script;
use serde::Serialize;

pub(crate) use escape::escape;

const UPLOT_SCRIPT: &str = include_str!("../../assets/uPlot.iife.min.js");
const UPLOT_STYLE: &str = include_str!("../../assets/uPlot.min.css");
const REPORT_STYLE: &str = include_str!("../../assets/report.css");
/// Drawings, the order of runs, pairs of profiles.
const STUDY_STYLE: &str = include_str!("../../assets/study.css");
const ERRORS_SCRIPT: &str = include_str!("../../assets/errors.js");
const PLOT_SCRIPT: &str = include_str!("../../assets/plot.js");

/// The whole file.
#[must_use]
pub fn render(context: &ReportContext) -> String {
    document(&context.header.title, &body(context), context, PLOT_SCRIPT)
}

/// A page: its title, what it shows, the context it was made from, and the script that plots it.
pub(crate) fn document(title: &str, body: &str, context: &impl Serialize, plot_script: &str) -> String {
    let title = escape(title);
    // Without its JSON the page still shows every table, and the plot's failure to read it is recorded.
    let json = serde_json::to_string(context).unwrap_or_else(|_| "null".to_string());
    let json = json_in_script(&json);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
         <script>{ERRORS_SCRIPT}</script>\n<style>{UPLOT_STYLE}</style>\n\
         <style>{REPORT_STYLE}{STUDY_STYLE}</style>\n</head>\n<body>\n{body}\
         <script type=\"application/json\" id=\"context\">{json}</script>\n\
         <script>{UPLOT_SCRIPT}</script>\n<script>{plot_script}</script>\n</body>\n</html>\n"
    )
}

/// What the page shows, without styles and scripts.
pub(crate) fn body(context: &ReportContext) -> String {
    let sections = section::sections(context);
    page(&masthead(context), &sections, &footer(context))
}

/// Contents, masthead, sections and footer.
pub(crate) fn page(masthead: &str, sections: &[Section], footer: &str) -> String {
    let mut html = contents(sections);
    html.push_str("<main>\n");
    html.push_str(masthead);
    for section in sections {
        html.push_str(&render_section(section));
    }
    html.push_str(footer);
    html.push_str("</main>\n");
    html
}

fn contents(sections: &[Section]) -> String {
    let mut html = "<nav aria-label=\"Contents\">\n<ol>\n".to_string();
    for section in sections {
        let title = escape(&section.title);
        html.push_str(&format!("<li><a href=\"#{}\">{title}</a></li>\n", section.id));
    }
    html + "</ol>\n</nav>\n"
}

fn masthead(context: &ReportContext) -> String {
    let masthead = section::masthead(context);
    let validity = &masthead.validity;
    let class = match validity.state {
        RunState::Valid => "valid",
        RunState::Unverified => "unverified",
        RunState::Invalid => "invalid",
    };
    let mut html = format!(
        "<header>\n<h1>{}</h1>\n<div class=\"state {class}\"><strong>{}</strong> \
         <span>{}</span>",
        escape(&masthead.title),
        validity.state.word(),
        escape(&validity.basis)
    );
    if !validity.reasons.is_empty() {
        let reasons = validity.reasons.iter().map(|reason| format!("<li>{}</li>", escape(reason)));
        html.push_str(&format!("\n<ul>{}</ul>", reasons.collect::<String>()));
    }
    html.push_str("</div>\n");
    html.push_str(&headline(&section::headline(context)));
    html + "</header>\n"
}

/// The figures to read first.
pub(crate) fn headline(figures: &[Headline]) -> String {
    let mut html = "<dl class=\"headline\">\n".to_string();
    for figure in figures {
        html.push_str(&format!(
            "<div><dt>{}</dt><dd>{}</dd><dd class=\"aside\">{}</dd></div>\n",
            figure.name,
            escape(&figure.value),
            escape(&figure.aside)
        ));
    }
    html + "</dl>\n"
}

/// One section.
pub(crate) fn render_section(section: &Section) -> String {
    let class = match section.setting {
        Setting::Front => "front",
        Setting::Detail => "detail",
    };
    let title = escape(&section.title);
    let mut html = format!("<section id=\"{}\" class=\"{class}\">\n<h2>{title}</h2>\n", section.id);
    if !section.notes.is_empty() {
        let notes = section.notes.iter().map(|note| format!("<li>{}</li>", escape(note)));
        html.push_str(&format!("<ul class=\"notes\">{}</ul>\n", notes.collect::<String>()));
    }
    if section.blocks.is_empty() {
        html.push_str(&table::no_data());
    }
    for block in &section.blocks {
        html.push_str(&match block {
            Block::Table(table) => table::table(table),
            Block::Facts(facts) => table::facts(facts),
            Block::Profile(chart) => plot(chart),
            Block::Pair(pair) => pair::figure(pair),
            Block::Order(plot) => order::figure(plot),
        });
    }
    html + "</section>\n"
}

fn plot(chart: &Chart) -> String {
    let characters = escape(&text::chart_lines(chart).join("\n"));
    format!(
        "<figure><div id=\"plot\" data-x-max=\"{}\" data-y-max=\"{}\"></div>\
         <noscript><pre>{characters}</pre></noscript></figure>\n",
        chart.x_max_s, chart.y_max_mb_per_s
    )
}

fn footer(context: &ReportContext) -> String {
    format!(
        "<footer>plumb {}, record schema {}. The record of this run is embedded in this file \
         as JSON. Plot by uPlot (MIT licence, Leon Sorokin).</footer>\n",
        escape(&context.header.plumb_version),
        context.schema_version
    )
}
