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
mod plot;
mod strip;
mod table;

use crate::ReportContext;
use crate::profile::Chart;
use crate::section::{self, Block, Drawing, Headline, Section, Setting};
use crate::text;
use crate::validity::RunState;
use escape::json_in_script;

pub(crate) use escape::escape;

pub(crate) const UPLOT_SCRIPT: &str = include_str!("../../assets/uPlot.iife.min.js");
pub(crate) const UPLOT_STYLE: &str = include_str!("../../assets/uPlot.min.css");
const REPORT_STYLE: &str = include_str!("../../assets/report.css");
/// Drawings in tables, the order of runs, pairs of profiles.
pub(crate) const STUDY_STYLE: &str = include_str!("../../assets/study.css");
const ERRORS_SCRIPT: &str = include_str!("../../assets/errors.js");
const PLOT_SCRIPT: &str = include_str!("../../assets/plot.js");

/// The whole file.
#[must_use]
pub fn render(context: &ReportContext) -> String {
    // Without its JSON the page still shows every table, and the plot's failure to read it is recorded.
    let json = serde_json::to_string(context).unwrap_or_else(|_| "null".to_string());
    page(&Page {
        title: &context.header.title,
        body: &body(context),
        json: &json,
        styles: &[UPLOT_STYLE],
        scripts: &[UPLOT_SCRIPT, PLOT_SCRIPT],
    })
}

/// What a file is put together from.
pub(crate) struct Page<'a> {
    /// The window's title.
    pub title: &'a str,
    /// What is shown, as HTML.
    pub body: &'a str,
    /// The data that is embedded.
    pub json: &'a str,
    /// Style sheets before that of all reports.
    pub styles: &'a [&'a str],
    /// Scripts, in their order.
    pub scripts: &'a [&'a str],
}

/// A whole file.
pub(crate) fn page(page: &Page<'_>) -> String {
    let title = escape(page.title);
    let json = json_in_script(page.json);
    let styles: String = page.styles.iter().map(|style| format!("<style>{style}</style>\n")).collect();
    let scripts: String = page.scripts.iter().map(|script| format!("<script>{script}</script>\n")).collect();
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
         <script>{ERRORS_SCRIPT}</script>\n{styles}\
         <style>{REPORT_STYLE}</style>\n</head>\n<body>\n{}\
         <script type=\"application/json\" id=\"context\">{json}</script>\n\
         {scripts}</body>\n</html>\n",
        page.body
    )
}

/// What stands above all sections, always in the same place.
pub(crate) struct Masthead<'a> {
    /// The report's title.
    pub title: &'a str,
    /// The class of the state, which chooses its colour.
    pub class: &'a str,
    /// The state in a word.
    pub state: &'a str,
    /// What the state rests on.
    pub basis: &'a str,
    /// What speaks against it.
    pub reasons: &'a [String],
    /// The figures to read first.
    pub headline: Vec<Headline>,
}

/// What the page shows, without styles and scripts.
pub(crate) fn body(context: &ReportContext) -> String {
    let masthead = section::masthead(context);
    let validity = &masthead.validity;
    let masthead = Masthead {
        title: &masthead.title,
        class: match validity.state {
            RunState::Valid => "valid",
            RunState::Unverified => "unverified",
            RunState::Invalid => "invalid",
        },
        state: validity.state.word(),
        basis: &validity.basis,
        reasons: &validity.reasons,
        headline: section::headline(context),
    };
    body_of(&masthead, &section::sections(context), &footer(context))
}

/// What any page shows.
pub(crate) fn body_of(masthead: &Masthead<'_>, sections: &[Section], footer: &str) -> String {
    body_under(&self::masthead(masthead), sections, footer)
}

/// What a page shows that has a masthead of its own, given as HTML.
pub(crate) fn body_under(masthead: &str, sections: &[Section], footer: &str) -> String {
    let mut html = contents(sections);
    html.push_str("<main>\n");
    html.push_str(masthead);
    for section in sections {
        html.push_str(&render_section(section));
    }
    html.push_str(&format!("<footer>{}</footer>\n", escape(footer)));
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

fn masthead(masthead: &Masthead<'_>) -> String {
    let Masthead { title, class, state, basis, reasons, headline } = masthead;
    let mut html = format!(
        "<header>\n<h1>{}</h1>\n<div class=\"state {class}\"><strong>{state}</strong> \
         <span>{}</span>",
        escape(title),
        escape(basis)
    );
    if !reasons.is_empty() {
        let reasons = reasons.iter().map(|reason| format!("<li>{}</li>", escape(reason)));
        html.push_str(&format!("\n<ul>{}</ul>", reasons.collect::<String>()));
    }
    html.push_str("</div>\n");
    html.push_str(&self::headline(headline));
    html + "</header>\n"
}

/// The figures to read first.
pub(crate) fn headline(figures: &[Headline]) -> String {
    let mut html = "<dl class=\"headline\">\n".to_string();
    for figure in figures {
        html.push_str(&format!(
            "<div><dt>{}</dt><dd>{}</dd><dd class=\"aside\">{}</dd></div>\n",
            escape(&figure.name),
            with_small_unit(&figure.value),
            escape(&figure.aside)
        ));
    }
    html + "</dl>\n"
}

/// A figure whose unit stands beside it, smaller; any other text as it is.
fn with_small_unit(value: &str) -> String {
    match value.split_once(' ') {
        Some((figure, unit)) if figure.starts_with(|c: char| c.is_ascii_digit()) && !unit.contains(' ') => {
            format!("{} <small>{}</small>", escape(figure), escape(unit))
        }
        _ => escape(value),
    }
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
            Block::Profile(chart) => profile(chart),
            Block::Pair(pair) => pair::figure(pair),
            Block::Order(plot) => order::figure(plot),
            Block::Drawings(drawings) => self::drawings(drawings),
        });
    }
    html + "</section>\n"
}

fn drawings(drawings: &[Drawing]) -> String {
    let drawn = drawings.iter().map(|drawing| match drawing {
        Drawing::Plot(plot) => plot::plot(plot),
        Drawing::Bars(bars) => plot::bars(bars),
    });
    format!("<div class=\"drawings\">{}</div>\n", drawn.collect::<String>())
}

fn profile(chart: &Chart) -> String {
    let characters = escape(&text::chart_lines(chart).join("\n"));
    format!(
        "<figure><div id=\"plot\" data-x-max=\"{}\" data-y-max=\"{}\"></div>\
         <noscript><pre>{characters}</pre></noscript></figure>\n",
        chart.x_max_s, chart.y_max_mb_per_s
    )
}

fn footer(context: &ReportContext) -> String {
    format!(
        "plumb {}, record schema {}. The record of this run is embedded in this file \
         as JSON. Plot by uPlot (MIT licence, Leon Sorokin).",
        context.header.plumb_version, context.schema_version
    )
}
