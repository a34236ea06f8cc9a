//! The page of fixed calibrations, as snapshots; and what no snapshot shows.

use super::fixture::{least, normal};
use super::section::sections;
use super::{CalibrationContext, Confidence, document};
use crate::document::browser;
use plumb_report::html;

#[test]
fn sections_are_what_a_reader_sees() {
    for section in sections(&normal()) {
        insta::assert_snapshot!(format!("calibration_{}", section.id), html::render_section(&section));
    }
}

#[test]
fn what_was_not_measured_has_no_section() {
    let ids: Vec<&str> = sections(&least()).iter().map(|section| section.id).collect();
    assert_eq!(ids, ["figures", "unsettled", "environment", "points"]);
    let mut context = normal();
    for cell in &mut context.matrix.as_mut().expect("a matrix").cells {
        cell.small = 0;
    }
    assert!(sections(&context).iter().all(|section| section.id != "matrix"), "no two sizes ever met");
}

#[test]
fn the_verdict_follows_from_the_figures() {
    let verdict = least().verdict();
    assert_eq!(verdict.confidence, Confidence::Settled);
    assert_eq!(verdict.basis, "4 of 4 main figures settled, the device answered 1 of 1 points");
    let mut context = normal();
    context.other_load = Some("another load used the device".to_string());
    context.header.direct = false;
    let verdict = context.verdict();
    assert_eq!(verdict.confidence, Confidence::InDoubt);
    insta::assert_snapshot!(format!("{}\n{}", verdict.basis, verdict.reasons.join("\n")));
}

fn html_of(context: &CalibrationContext) -> String {
    sections(context).iter().map(html::render_section).collect()
}

#[test]
fn a_context_survives_being_written_and_read() {
    let json = normal().to_json().expect("plain data");
    let back = CalibrationContext::from_json(&json).expect("its own form");
    // The last digit of a number may change on the way; what the page shows may not.
    assert_eq!(html_of(&back), html_of(&normal()));
    let later = CalibrationContext { schema_version: super::CALIBRATION_SCHEMA_VERSION + 1, ..normal() };
    let error = CalibrationContext::from_json(&later.to_json().expect("plain data")).expect_err("refused");
    assert!(error.to_string().contains("use the release that wrote it"), "{error}");
}

#[test]
fn markup_stays_text_and_the_page_asks_the_network_for_nothing() {
    let mut context = normal();
    let hostile = "</script><script>fail()</script><b>&\"it's\"";
    context.header.title = hostile.to_string();
    context.figures[0].name = hostile.to_string();
    context.curves[0].name = hostile.to_string();
    context.transfers[0].what = hostile.to_string();
    context.warnings.push(hostile.to_string());
    let page = html::render(&document(&context));
    for breach in ["<script>fail", "<b>", "src=", "href=\"http", "@import", "url("] {
        assert!(!page.contains(breach), "{breach}");
    }
}

#[test]
fn a_browser_shows_a_calibration_and_no_script_fails() {
    let Some(browser) = browser::browser() else {
        println!("skipped: no {:?} in PATH", browser::NAMES);
        return;
    };
    let dom = browser::dom(&browser, "calibration.html", &html::render(&document(&normal())));
    assert_eq!(dom.matches("<svg").count(), 6, "two curves, three groups of bars, the read cost");
    assert!(dom.contains("</footer>"), "the page ends before its end");
    assert!(!dom.contains("data-errors="), "a script failed: {}", &dom[..400]);
}
