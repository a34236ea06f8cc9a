//! Snapshots of reports of fixed records, and properties that no snapshot shows.

use super::fixture::{self, empty, large_sort};
use super::{document, sections};
use crate::section_text;
use crate::tests::{browser, page_rules};
use plumb_events::LatencyHistogram;
use plumb_record::{
    Beside, Circumstance, DeviceLimits, DeviceSample, DeviceTally, Fact, Held, Phase, Receipt, Record,
    RecordError, Response, RunState, Sample, Sampling, SamplingError, SettingRow,
};
use plumb_report::{html, summary, text};
use plumb_units::Nanos;

/// A record with markup in its texts.
fn hostile() -> Record {
    let mut record = large_sort();
    let path = "/u02/<b>&\"it's\"</script><script>fail()</script>";
    record.devices[0].path = path.to_string();
    record.io_files[0].path = path.to_string();
    record.header.title = path.to_string();
    record.phases[0].name = path.to_string();
    record
}

/// A run that failed verification.
fn invalid() -> Record {
    let mut record = large_sort();
    record.checks[1].passed = false;
    record.checks[1].detail = "rowid file 1 block 17 slot 3 is missing".to_string();
    record.receipts[0] = Receipt {
        seen: plumb_record::Seen::Outside,
        setting: "filesystemio_options".to_string(),
        asked: "directio".to_string(),
        evidence: "no O_DIRECT in the open flags of users01.dbf".to_string(),
        held: Held::Contradicted,
    };
    record
}

#[test]
fn text_sections_read_like_an_awr_report() {
    let record = large_sort();
    for section in sections(&record) {
        let shown = section_text(&section, &document(&record));
        insta::assert_snapshot!(format!("text_{}", section.id), shown);
    }
}

#[test]
fn html_sections_show_the_same_tables() {
    let record = large_sort();
    for section in sections(&record) {
        insta::assert_snapshot!(format!("html_{}", section.id), html::render_section(&section));
    }
}

/// Users during the build and several builds, in the sections that have them.
#[test]
fn users_and_builds_at_once_are_shown_part_by_part() {
    let mut record = large_sort();
    let users = fixture::users();
    let response = |part: &plumb_record::UsersPart| Response {
        operation: format!("users {}", part.name),
        latency: part.latency.clone(),
        elapsed_ns: Some(part.elapsed_ns),
    };
    record.responses = users.parts.iter().map(response).collect();
    record.users = Some(users);
    if let Some(sort) = &mut record.sort {
        sort.sorters = fixture::sorters();
    }
    let shown = sections(&record);
    let shown = shown.iter().filter(|section| ["users", "responses", "sort"].contains(&section.id.as_ref()));
    let lines: Vec<String> =
        shown.flat_map(|section| text::render_section(section, &document(&record))).collect();
    let lines = lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>();
    insta::assert_snapshot!(lines.join("\n"));
    insta::assert_snapshot!("summary_of_a_run_with_users", summary::render(&document(&record)));
    let section = sections(&record).into_iter().find(|section| section.id == "users");
    insta::assert_snapshot!("html_users", html::render_section(&section.expect("a section")));
}

/// A quantile with few waits above it is blank.
#[test]
fn quantiles_stand_beside_the_counts_behind_them() {
    let lasting = |count: u64| {
        let mut latency = LatencyHistogram::default();
        (1..=count).for_each(|number| latency.add(Nanos(number * 1000)));
        latency
    };
    let mut record = large_sort();
    record.foreground_events[0].latency = Some(lasting(100_000));
    record.foreground_events[1].latency = Some(lasting(120));
    record.background_events[0].latency = Some(lasting(3));
    record.responses =
        vec![Response { operation: "select".to_string(), latency: lasting(3000), elapsed_ns: None }];
    let shown = sections(&record);
    let shown = shown.iter().filter(|section| ["responses", "latency"].contains(&section.id.as_ref()));
    let lines: Vec<String> =
        shown.flat_map(|section| text::render_section(section, &document(&record))).collect();
    let lines = lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>();
    insta::assert_snapshot!(lines.join("\n"));
}

/// Times by samples have an error, and neither waits nor an average.
#[test]
fn sampled_events_have_an_error_beside_their_time() {
    let mut record = large_sort();
    let errors = record.foreground_events.iter().enumerate();
    let errors = errors.map(|(place, event)| SamplingError {
        event: event.event.clone(),
        error_ns: 100_000_000 * (place as u64 + 1),
    });
    let errors = errors.collect();
    record.sampling =
        Some(Sampling { interval_ns: 10_000_000, samples: 4_120, late: 3, cost_ns: 90_000_000, errors });
    let shown = sections(&record);
    let shown =
        shown.iter().filter(|section| ["top-events", "foreground-events"].contains(&section.id.as_ref()));
    let lines: Vec<String> =
        shown.flat_map(|section| text::render_section(section, &document(&record))).collect();
    let heads = lines.iter().filter(|line| line.contains("Std Err"));
    assert_eq!(heads.count(), 2, "{lines:#?}");
    assert!(lines.iter().any(|line| line.contains("4,120 samples, one in 10.0 ms")), "{lines:#?}");
    let event = &record.foreground_events[0].event;
    let rows = lines.iter().filter(|line| line.starts_with(event.as_str()) && line.contains(" 0.10 "));
    assert_eq!(rows.count(), 2, "{lines:#?}");
    assert!(lines.iter().all(|line| !line.contains("Avg") && !line.contains("Waits")), "{lines:#?}");
}

#[test]
fn whole_report_as_text() {
    insta::assert_snapshot!(text::render(&document(&large_sort())));
}

#[test]
fn whole_report_of_an_empty_run() {
    insta::assert_snapshot!(text::render(&document(&empty())));
}

#[test]
fn whole_report_as_html_without_its_assets() {
    let body = html::body(&document(&large_sort()));
    let (head, _) = body.split_once("<section").unwrap();
    insta::assert_snapshot!("html_contents_and_masthead", head);
    assert!(html::render(&document(&large_sort())).contains(&body));
}

#[test]
fn summary_fits_a_terminal() {
    let summary = summary::render(&document(&large_sort()));
    let count = summary.lines().count();
    assert!((10..=22).contains(&count), "{count} lines");
    insta::assert_snapshot!(summary);
    insta::assert_snapshot!("summary_of_an_invalid_run", summary::render(&document(&invalid())));
}

#[test]
fn a_run_without_calibration_asks_for_one() {
    let mut record = large_sort();
    record.limits = Some(DeviceLimits::NotCalibrated {
        reason: "/u02/oradata/plumb-calibration.json does not hold: kernel: calibrated on 6.1, this is 6.12"
            .to_string(),
        cure: "plumb calibrate --path /u02/oradata makes one".to_string(),
    });
    let section = sections(&record).into_iter().find(|section| section.id == "calibration");
    let section = text::render_section(&section.expect("a section"), &document(&record));
    let summary = summary::render(&document(&record));
    let asked = summary.lines().filter(|line| line.contains("plumb calibrate"));
    insta::assert_snapshot!(format!("{}\n{}", section[..6].join("\n"), asked.collect::<Vec<_>>().join("\n")));
    // Files on several devices have no common limit.
    let mut other = record.devices[0].clone();
    other.device = "nvme2n1".to_string();
    record.devices.push(other);
    assert!(!summary::render(&document(&record)).contains("of the device's)"));
}

#[test]
fn an_invalid_run_says_so_below_the_title() {
    let report = text::render(&document(&invalid()));
    let head = report.lines().take(5).collect::<Vec<_>>().join("\n");
    insta::assert_snapshot!(head);
    assert!(
        html::render(&document(&invalid()))
            .contains("<div class=\"state invalid\">Run <strong>INVALID</strong>")
    );
    assert_eq!(invalid().validity().reasons.len(), 2);
}

#[test]
fn a_run_is_valid_only_when_something_was_checked() {
    assert_eq!(large_sort().validity().state, RunState::Valid);
    assert_eq!(empty().validity().state, RunState::Unverified);
    let mut unchecked = empty();
    unchecked.receipts = vec![large_sort().receipts[4].clone()];
    assert_eq!(unchecked.validity().state, RunState::Unverified);
    assert_eq!(invalid().validity().state, RunState::Invalid);
}

/// A run through the page cache, during which others used the machine.
fn disturbed() -> Record {
    let circumstance = |fact, share, doubtful, evidence: &str| Circumstance {
        fact,
        share,
        threshold: 0.1,
        doubtful,
        evidence: evidence.to_string(),
    };
    let mut record = large_sort();
    record.header.host.cpu_quota = Some(1.5);
    record.devices[0].used_direct_io = Some(false);
    record.circumstances = Some(vec![
        circumstance(Fact::Device, 0.96, true, "96% of its writes, 4.31 GB of 4.48 GB"),
        circumstance(Fact::Processors, 0.02, false, "3.0% of the host's CPU time, of which 99% was ours"),
        circumstance(Fact::Quota, 0.83, true, "CPU quota 1.5 CPUs: throttled in 25 of 30 periods, 1.56 s"),
        circumstance(Fact::PageCache, 0.94, true, "94% of the bytes read"),
    ]);
    record
}

#[test]
fn a_disturbed_run_says_so_next_to_its_state() {
    let words = "VALID, DISTURBED (others used the device; a CPU quota stopped it), NOT THE DEVICE (the page cache \
                 answered reads)";
    let validity = disturbed().validity();
    assert_eq!((validity.words().as_str(), validity.state), (words, RunState::Valid));
    let json: serde_json::Value = serde_json::from_str(&disturbed().to_json().unwrap()).unwrap();
    assert_eq!(json["state"], words);
    assert_eq!(json["circumstances"][0]["fact"], "device");
    let shown = summary::render(&document(&disturbed()));
    let lines: Vec<&str> = shown
        .lines()
        .filter(|line| ["large-sort", "Elapsed", "Path"].iter().any(|name| line.trim().starts_with(name)))
        .collect();
    insta::assert_snapshot!(lines.join("\n"));
    let mut invalid = invalid();
    invalid.circumstances = disturbed().circumstances;
    assert!(invalid.validity().words().starts_with("INVALID, DISTURBED ("));
}

#[test]
fn log_files_with_another_access_are_named() {
    let path = |direct: bool, log: &str| {
        let mut record = large_sort();
        record.devices[0].used_direct_io = Some(direct);
        let row = record.settings[0].clone();
        record.settings.push(SettingRow { name: "log_file_io".to_string(), value: log.to_string(), ..row });
        let shown = summary::render(&document(&record));
        shown.split("method ").nth(1).and_then(|rest| rest.split("  Limit").next()).map(String::from)
    };
    let said =
        |direct, log| path(direct, log).expect("a path").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said(true, "buffered").ends_with(", log files through the page cache"));
    assert!(said(false, "direct").ends_with(", log files by direct I/O"));
    for (direct, log) in [(true, "auto"), (true, "direct"), (false, "buffered"), (false, "auto")] {
        assert!(!said(direct, log).contains("log files"), "{direct} {log}");
    }
}

#[test]
fn an_older_record_without_circumstances_is_not_doubtful() {
    let mut json = serde_json::to_value(disturbed()).unwrap();
    json.as_object_mut().unwrap().remove("circumstances").expect("they are kept");
    let record = Record::from_json(&json.to_string()).unwrap();
    assert_eq!((record.circumstances.as_ref(), record.validity().words().as_str()), (None, "VALID"));
}

#[test]
fn a_calibration_in_doubt_says_so_wherever_it_is_used() {
    let mut record = large_sort();
    let Some(DeviceLimits::Calibrated(stored)) = &mut record.limits else { panic!("it is calibrated") };
    stored.doubts = vec!["not settled: sequential read; small reads".to_string(), "another".to_string()];
    let shown = summary::render(&document(&record));
    let device = shown.lines().find(|line| line.trim().starts_with("Device")).unwrap();
    assert!(
        device.contains("before this run), IN DOUBT: not settled: sequential read, and 2 more: /u02"),
        "{device}"
    );
}

/// A single probe of a shared device does not show its limit.
#[test]
fn a_raw_read_whose_parts_disagree_has_no_share() {
    let mut record = large_sort();
    record.limits = None;
    let measured = record.calibration.as_mut().unwrap();
    measured.shares.clear();
    measured.sequential_read_unsettled = Some("interval of 6 repeats is 150% wide (limit 50%)".to_string());
    let shown = summary::render(&document(&record));
    let limit = shown.lines().find(|line| line.trim().starts_with("Limit")).unwrap();
    assert!(
        limit.ends_with(
            "no share is stated of the raw sequential read: interval of 6 repeats is 150% wide (limit 50%)"
        ),
        "{limit}"
    );
    let shares = |record: &Record| text::render(&document(record)).contains("% of\ndevice");
    assert!(!shares(&record));
}

#[test]
fn a_narrow_terminal_is_kept_within() {
    let records = [large_sort(), empty(), invalid(), hostile(), disturbed()];
    records.iter().for_each(|record| page_rules::keeps_within_a_terminal(&document(record)));
}

#[test]
fn text_stays_within_its_columns() {
    let records = [large_sort(), empty(), invalid(), hostile()];
    records.iter().for_each(|record| page_rules::keeps_within_its_columns(&document(record)));
}

#[test]
fn markup_in_names_stays_text_and_the_page_loads_nothing() {
    let page = html::render(&document(&hostile()));
    page_rules::loads_nothing(&page);
    assert!(page.contains("/u02/&lt;b&gt;&amp;&quot;it&#39;s&quot;&lt;/script&gt;"));
}

#[test]
fn only_tables_of_the_page_scroll_sideways() {
    for (name, record) in [("run-narrow.html", disturbed()), ("run-long-names.html", hostile())] {
        page_rules::scrolls_only_tables(name, &html::render(&document(&record)));
    }
}

#[test]
fn a_record_survives_being_written_and_read() {
    for record in [large_sort(), empty(), invalid(), hostile()] {
        let json = record.to_json().unwrap();
        assert_eq!(Record::from_json(&json).unwrap(), record);
    }
    insta::assert_snapshot!("record", large_sort().to_json().unwrap());
}

#[test]
fn a_record_from_before_parameters_were_kept_is_read() {
    let mut json = serde_json::to_value(large_sort()).unwrap();
    json.as_object_mut().unwrap().remove("parameters").expect("they are kept");
    let record = Record::from_json(&json.to_string()).unwrap();
    assert_eq!(record, Record { parameters: Vec::new(), ..large_sort() });
    assert!(sections(&record).iter().all(|section| section.id != "parameters"));
}

#[test]
fn a_record_of_another_version_is_refused_by_its_number() {
    let error = Record::from_json("{\"schema_version\": 99}").unwrap_err();
    assert!(matches!(error, RecordError::Version { found: 99, .. }));
    insta::assert_snapshot!(error.to_string());
    assert!(matches!(Record::from_json("{}"), Err(RecordError::Json(_))));
}

#[test]
fn a_rate_above_a_fixed_axis_is_cut_and_marked() {
    let mut record = large_sort();
    record.io_profile.y_max_mb_per_s = Some(100.0);
    record.io_profile.x_max_s = Some(60.0);
    let section = sections(&record).into_iter().find(|section| section.id == "io-profile");
    let lines = text::render_section(&section.unwrap(), &document(&record));
    insta::assert_snapshot!(lines[..33].join("\n"));
}

/// A record with samples to its end and a measurement of the device after all other work.
fn measured_afterwards() -> Record {
    let mut record = large_sort();
    let end_ns = record.phases.iter().map(|phase| phase.end_ns).max().unwrap();
    record.phases.push(Phase {
        name: "device mix after".to_string(),
        operation: "calibration".to_string(),
        start_ns: end_ns,
        end_ns: end_ns + 6_000_000_000,
        rows: 0,
        bytes: 0,
        direction: None,
    });
    let look = |begin_ns, end_ns, requests| Sample {
        begin_ns,
        end_ns,
        devices: vec![DeviceSample {
            device: "nvme0n1".to_string(),
            reads: DeviceTally { requests, merged: 0, bytes: requests << 13, time_ns: requests * 100_000 },
            busy_ns: end_ns - begin_ns,
            ..DeviceSample::default()
        }],
        ..Sample::default()
    };
    let samples = vec![look(0, end_ns, 1_000), look(end_ns, end_ns + 6_100_000_000, 180_000)];
    record.beside = Some(Beside { interval_ns: 1_000_000_000, cost_ns: 1_000_000, samples });
    record
}

#[test]
fn the_axis_covers_the_last_phase_and_sample() {
    let record = measured_afterwards();
    let shown = |id: &str| {
        let section = sections(&record).into_iter().find(|section| section.id == id).unwrap();
        let lines = text::render_section(&section, &document(&record));
        lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!("profile_that_ends_with_the_last_phase", shown("io-profile"));
    let streams = shown("io-streams");
    let row = streams.lines().find(|line| line.starts_with("device mix after")).unwrap();
    let operation = row.split("calibration").nth(1).unwrap();
    assert_eq!(operation.split_whitespace().count(), 3, "start, end and elapsed alone: {row}");
}

#[test]
fn the_record_is_documented() {
    let record = serde_json::to_value(disturbed()).unwrap();
    let fields = page_rules::undocumented(&record, include_str!("../../../../docs/record.md"));
    assert!(fields.is_empty(), "docs/record.md does not describe {fields:?}");
}

#[test]
fn a_browser_draws_the_profile_and_no_script_fails() {
    let Some(browser) = browser::browser() else { return };
    for (name, record) in [("run.html", large_sort()), ("run-hostile.html", hostile())] {
        let dom = browser::dom(&browser, name, &html::render(&document(&record)));
        assert!(dom.contains("data-plot=\"drawn\""), "the plot was not drawn");
        assert!(dom.contains("<canvas"), "there is no canvas");
        assert!(!dom.contains("data-errors="), "a script failed: {}", &dom[..400]);
    }
    let dom = browser::dom(&browser, "run-empty.html", &html::render(&document(&empty())));
    assert!(!dom.contains("<canvas"), "nothing was recorded, and something is drawn");
    assert!(!dom.contains("data-errors="), "a script failed: {}", &dom[..400]);
}
