//! The page of a document: one self-contained file.
//!
//! Style sheet, scripts and data are in the file. It makes no network request, and its policy
//! forbids any. The report's input is embedded as JSON. Pictures are SVG and style sheets; only
//! bytes over time are drawn by a script, from data next to each. Without scripts everything is
//! readable: the profile is then drawn in characters.

mod drawing;
mod escape;
mod heat;
mod order;
mod pair;
mod parts;
mod plot;
mod table;

use crate::Headline;
use crate::document::{Block, Document, Drawing, Placement, Section};
use crate::profile::Chart;
use crate::table::Tone;
use crate::text;
use escape::json_in_script;
use serde::Serialize;

pub use escape::escape;

const UPLOT_SCRIPT: &str = include_str!("../../assets/uPlot.iife.min.js");
const UPLOT_STYLE: &str = include_str!("../../assets/uPlot.min.css");
/// Style sheet of a page.
pub const STYLE: &str = include_str!("../../assets/report.css");
/// First script of a page, so that tests see a failure of any other.
const ERRORS_SCRIPT: &str = include_str!("../../assets/errors.js");
const PROFILE_SCRIPT: &str = include_str!("../../assets/profile.js");
/// Every script of a page, so that a server can allow these and no other.
pub const SCRIPTS: [&str; 3] = [ERRORS_SCRIPT, UPLOT_SCRIPT, PROFILE_SCRIPT];

/// Renders the whole file of a page.
pub fn render(document: &Document) -> String {
    let mut blocks = document.sections.iter().flat_map(|section| &section.blocks);
    let is_drawn = blocks.any(|block| matches!(block, Block::Profile(_) | Block::Pair(_)));
    let (style, scripts) = match is_drawn {
        true => {
            (UPLOT_STYLE, format!("<script>{UPLOT_SCRIPT}</script>\n<script>{PROFILE_SCRIPT}</script>\n"))
        }
        false => ("", String::new()),
    };
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n\
         <script>{ERRORS_SCRIPT}</script>\n<style>{style}{STYLE}</style>\n</head>\n<body>\n{}\
         <script type=\"application/json\" id=\"context\">{}</script>\n\
         {scripts}</body>\n</html>\n",
        escape(&document.title),
        body(document),
        json_in_script(&document.data)
    )
}

/// Renders the body without head and scripts.
pub fn body(document: &Document) -> String {
    let mut html = contents(&document.sections) + "<main>\n" + &masthead(document);
    document.sections.iter().for_each(|section| html.push_str(&render_section(section)));
    html + &format!("<footer>{}</footer>\n</main>\n", escape(&document.footer))
}

fn contents(sections: &[Section]) -> String {
    let mut html = "<nav aria-label=\"Contents\">\n<ol>\n".to_string();
    for section in sections {
        let title = escape(&section.title);
        html.push_str(&format!("<li><a href=\"#{}\">{title}</a></li>\n", section.id));
    }
    html + "</ol>\n</nav>\n"
}

fn masthead(document: &Document) -> String {
    let Document { title, answer, question, state, basis, reasons, .. } = document;
    let class = match state.tone {
        Tone::Good => "valid",
        Tone::Bad => "invalid",
        Tone::Plain | Tone::Open => "unverified",
    };
    let mut html = format!("<header>\n<h1>{}</h1>\n", escape(title));
    let said = answer.sentence();
    if !said.is_empty() {
        html.push_str(&format!("<p class=\"answer\">{}</p>\n", escape(&said)));
    }
    // A question may begin the answer.
    if !question.is_empty() && *question != answer.asked {
        html.push_str(&format!("<p class=\"question\">{}</p>\n", escape(question)));
    }
    html.push_str(&format!(
        "<div class=\"state {class}\">{} <strong>{}</strong> <span>{}</span>",
        state.of,
        escape(&state.word),
        escape(basis)
    ));
    if !reasons.is_empty() {
        let reasons = reasons.iter().map(|reason| format!("<li>{}</li>", escape(reason)));
        html.push_str(&format!("\n<ul>{}</ul>", reasons.collect::<String>()));
    }
    html + "</div>\n" + &headline(&document.headline) + "</header>\n"
}

fn headline(figures: &[Headline]) -> String {
    if figures.is_empty() {
        return String::new();
    }
    let mut html = "<dl class=\"headline\">\n".to_string();
    for figure in figures {
        html.push_str(&format!(
            "<div><dt>{}</dt><dd>{}</dd><dd class=\"aside\">{}</dd></div>\n",
            escape(&figure.name),
            with_small_unit(&figure.value),
            with_breaks(&escape(&figure.aside))
        ));
    }
    html + "</dl>\n"
}

/// Allows line breaks in long names after the marks that join their parts.
fn with_breaks(escaped: &str) -> String {
    let mut text = String::with_capacity(escaped.len());
    for (place, letter) in escaped.char_indices() {
        text.push(letter);
        let goes_on = !escaped[place + letter.len_utf8()..].starts_with([' ', letter]);
        if matches!(letter, '=' | '/') && goes_on {
            text.push_str("<wbr>");
        }
    }
    text
}

/// Renders a figure with its unit smaller; other text is unchanged.
fn with_small_unit(value: &str) -> String {
    match value.split_once(' ') {
        Some((figure, unit)) if figure.starts_with(|c: char| c.is_ascii_digit()) && !unit.contains(' ') => {
            format!("{} <small>{}</small>", escape(figure), escape(unit))
        }
        _ => escape(value),
    }
}

/// Renders a section of a page.
pub fn render_section(section: &Section) -> String {
    let class = match section.placement {
        Placement::Front => "front",
        Placement::Detail => "detail",
    };
    let title = escape(&section.title);
    let mut html = format!("<section id=\"{}\" class=\"{class}\">\n<h2>{title}</h2>\n", section.id);
    if !section.notes.is_empty() {
        let notes = section.notes.iter().map(|note| format!("<li>{}</li>", escape(note)));
        html.push_str(&format!("<ul class=\"notes\">{}</ul>\n", notes.collect::<String>()));
    }
    // A note gives the reason if nothing follows.
    if section.blocks.is_empty() && section.notes.is_empty() {
        html.push_str(&table::no_data());
    }
    for block in &section.blocks {
        html.push_str(&match block {
            Block::Table(table) => table::table(table),
            Block::Facts(facts) => table::facts(facts),
            Block::Parts(parts) => parts::figure(parts),
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
        Drawing::Heat(heat) => heat::heat(heat),
    });
    format!("<div class=\"drawings\">{}</div>\n", drawn.collect::<String>())
}

fn profile(chart: &Chart) -> String {
    let characters = escape(&text::chart_lines(chart, text::WIDTH).join("\n"));
    format!(
        "<figure class=\"profile\"><div class=\"plot\"></div><div class=\"strips\"></div>{}<noscript><pre>{characters}</pre></noscript></figure>\n",
        data(chart)
    )
}

/// Renders the script's data, next to the place where it draws.
fn data(value: &impl Serialize) -> String {
    let json = serde_json::to_string(value).unwrap_or_else(|_| "null".to_string());
    format!("<script type=\"application/json\">{}</script>", json_in_script(&json))
}
