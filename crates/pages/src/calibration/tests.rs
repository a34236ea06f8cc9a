//! Snapshots of reports of fixed calibrations, and properties that no snapshot shows.

use super::fixture::{self, least, normal, provenance};
use super::{Provenance, against, document, sections};
use crate::tests::{browser, page_rules};
use plumb_calibrate::{Calibration, Sustained, VolumeLayout, VolumePath, VolumeRecord, Warning, Window};
use plumb_report::{html, summary, text};

#[test]
fn sections_are_what_a_reader_sees() {
    for section in sections(&normal(), &provenance()) {
        insta::assert_snapshot!(format!("calibration_{}", section.id), html::render_section(&section));
    }
}

#[test]
fn the_text_has_what_the_page_has() {
    insta::assert_snapshot!(text::render(&document(&normal(), &provenance())));
}

#[test]
fn a_summary_fits_a_screen() {
    let summary = summary::render(&document(&normal(), &provenance()));
    assert!(summary.lines().count() <= 46);
    insta::assert_snapshot!(summary);
}

#[test]
fn what_was_not_measured_has_no_section() {
    let ids = |calibration: &Calibration| {
        sections(calibration, &provenance()).iter().map(|section| section.id.to_string()).collect::<Vec<_>>()
    };
    let always = ["words", "figures", "derived", "asynchronous", "unsettled", "environment", "points"];
    assert_eq!(ids(&least()), always);
    let mut calibration = normal();
    assert!(ids(&calibration).contains(&"matrix".to_string()));
    calibration.tasks.retain(|result| result.point().is_none_or(|point| point.loads.len() < 2));
    assert!(!ids(&calibration).contains(&"matrix".to_string()), "no two sizes ever met");
}

#[test]
fn the_state_follows_from_the_figures() {
    let settled = document(&least(), &provenance());
    assert_eq!(settled.state.word, "SETTLED");
    assert_eq!(settled.basis, "4 of 4 main figures settled, the device answered 1 of 1 points");
    let mut calibration = normal();
    calibration.warnings.push(Warning::OtherLoad {
        busy_rounds: 0,
        requests_per_second: 0.0,
        tasks: 1,
        bytes_per_second: 3e8,
    });
    calibration.environment.direct = false;
    let doubted = document(&calibration, &provenance());
    assert_eq!(doubted.state.word, "IN DOUBT");
    insta::assert_snapshot!(format!("{}\n{}", doubted.basis, doubted.reasons.join("\n")));
    let written = |calibration: &Calibration| serde_json::to_value(calibration.stated()).expect("plain data");
    assert_eq!(written(&least())["state"], "SETTLED");
    assert_eq!(written(&calibration)["state"], "IN DOUBT");
    assert_eq!(written(&calibration)["doubts"][0], "all requests went through the page cache");
    let read = Calibration::from_json(&written(&calibration).to_string()).expect("its own form");
    assert_eq!(read.doubts(), doubted.reasons);
}

#[test]
fn two_calibrations_are_compared_in_a_few_lines() {
    let (first, mut second) = (normal(), normal());
    for figure in &mut second.figures[2..] {
        figure.estimate.median *= 1.2;
    }
    insta::assert_snapshot!(against(&first, &second));
}

#[test]
fn records_survive_being_written_and_read() {
    let rendered = |calibration: &Calibration, by: &Provenance| text::render(&document(calibration, by));
    let json = serde_json::to_string(&normal()).expect("plain data");
    let back = Calibration::from_json(&json).expect("its own form");
    let made = serde_json::to_value(provenance()).expect("plain data");
    let by = Provenance::from_json(&made.to_string()).expect("its own form");
    // The last digit of a number may change in JSON, but not in the report.
    assert_eq!(rendered(&back, &by), rendered(&normal(), &provenance()));

    // The first version had a header, and all figures of the page.
    let mut header = made.as_object().expect("an object").clone();
    let device = header.remove("device").expect("a field");
    header.insert("mode".to_string(), "normal".into());
    let first = serde_json::json!({ "schema_version": 1, "header": header, "device": device, "figures": [] });
    assert_eq!(Provenance::from_json(&first.to_string()).expect("the first version"), provenance());
}

#[test]
fn markup_stays_text_and_the_page_loads_nothing() {
    let mut calibration = normal();
    let hostile = "</script><script>fail()</script><b>&\"it's\"";
    calibration.environment.path = hostile.to_string();
    calibration.figures[0].at = hostile.to_string();
    calibration.ladder_small[0].name = hostile.to_string();
    calibration.tasks[0].answer.reason = hostile.to_string();
    calibration.warnings.push(Warning::NotDirect { why: hostile.to_string() });
    let page = html::render(&document(&calibration, &provenance()));
    page_rules::loads_nothing(&page);
}

#[test]
fn a_browser_shows_a_calibration_and_no_script_fails() {
    let Some(browser) = browser::browser() else { return };
    let page = html::render(&document(&normal(), &provenance()));
    let dom = browser::dom(&browser, "calibration.html", &page);
    assert_eq!(dom.matches("<svg").count(), 6, "two curves, three groups of bars, the read cost");
    assert!(dom.contains("</footer>"), "the page ends before its end");
    assert!(!dom.contains("data-errors="), "a script failed: {}", &dom[..400]);
}

/// A calibration of two disks as stripes, behind a link, with a load of minutes at the end.
fn several() -> Calibration {
    let mut calibration = normal();
    let path = |number: usize| VolumePath {
        path: format!("/u0{number}/oradata"),
        disk: format!("vd{}", if number == 1 { "a" } else { "b" }),
        bytes: 8 << 30,
    };
    calibration.volume = Some(VolumeRecord {
        layout: VolumeLayout::Raid0,
        stripe_bytes: 1 << 20,
        paths: vec![path(1), path(2)],
    });
    calibration.link_bytes_per_second = Some(1_200_000_000);
    calibration.max_rate = Some(200_000);
    calibration.tasks.extend(fixture::on_two_paths());
    let point = calibration.tasks[0].point().expect("a point").clone();
    let window = |second: u64| Window {
        begin_ns: second * 1_000_000_000,
        iops: if second < 180 { 3_000.0 } else { 600.0 } + (second * 7 % 11) as f64,
        p99_micros: if second < 180 { 12_000.0 } else { 90_000.0 },
    };
    let windows = (0..300).map(window).collect();
    calibration.sustained = Some(Sustained { point, window_ns: 1_000_000_000, windows, seed: 1 });
    calibration
}

#[test]
fn paths_sustained_loads_and_links_have_sections() {
    let calibration = several();
    for section in sections(&calibration, &provenance()) {
        if ["words", "figures", "paths", "sustained"].contains(&section.id.as_ref()) {
            insta::assert_snapshot!(format!("several_{}", section.id), html::render_section(&section));
        }
    }
    let page = document(&calibration, &provenance());
    insta::assert_snapshot!("several_reasons", page.reasons.join("\n"));
    assert_eq!(calibration.impossible().len(), 2, "both sequential reads are above 1,144 MB/s");
    let text = text::render(&page);
    let paths = text.split("Several Paths").nth(1).expect("a section");
    insta::assert_snapshot!(
        "several_paths_as_text",
        paths.split("\n\n").take(2).collect::<Vec<_>>().join("\n\n")
    );
}
