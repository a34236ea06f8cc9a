//! The target of a study: prepared, run in processes of their own, and gone.

use crate::server::{asked, installed, place};
use plumb_events::Cancel;
use plumb_postgres::target::RequestTracing;
use plumb_postgres::{Postgres, PostgresTarget};
use plumb_record::{Held, RequestSizes, TraceBucket};
use plumb_study::definition::{Study, parse};
use plumb_study::targets::{ExplainedPlan, NoRecord, Opening, Preparation, Target};
use plumb_study::{Observer, Stage};
use std::path::{Path, PathBuf};

struct Silent;

impl Observer for Silent {
    fn stage(&self, _: &Stage<'_>) {}
    fn begins(&self) {}
    fn made(&self, _: &Path) {}
}

/// Returns the program that makes runs, which is built with the tests.
fn program() -> PathBuf {
    let test = std::env::current_exe().expect("a program");
    let built = test.parent().and_then(Path::parent).expect("target/debug");
    built.join("examples/study_run")
}

/// Returns the setting that names the server of these tests.
fn server() -> String {
    asked().map_or_else(String::new, |server| format!("server = \"{server}\"\n"))
}

pub fn study(rows: &str, factor: &str) -> Study {
    study_on(&server(), rows, factor)
}

/// Returns a study with these further settings.
pub fn study_on(settings: &str, rows: &str, factor: &str) -> Study {
    let text = study_text(settings, rows, factor);
    parse("x.toml", &text, &[&Postgres]).unwrap_or_else(|error| panic!("{error}"))
}

fn study_text(settings: &str, rows: &str, factor: &str) -> String {
    format!(
        "target = \"postgres\"\nname = \"x\"\ntitle = \"x\"\nquestion = \"x\"\nworkload = \"large-sort\"\nrows = \"{rows}\"\n\
         blocks = 5\n[settings]\nmax_parallel_maintenance_workers = 0\n{settings}{factor}\n[[claim]]\nname = \"c\"\ntext = \"x\"\n\
         factor = \"f\"\nfrom = \"a\"\nto = \"b\"\nexpect = \"differs\"\n"
    )
}

pub fn levels(setting: &str, one: &str, other: &str) -> String {
    let level =
        |label: &str, value: &str| format!("{{ label = \"{label}\", set = {{ {setting} = \"{value}\" }} }}");
    format!("[[factor]]\nname = \"f\"\nlevels = [{}, {}]", level("a", one), level("b", other))
}

pub fn opening<'a>(path: &'a Path, cancel: &Cancel) -> Opening<'a> {
    Opening {
        path,
        program: program(),
        command_line: "plumb study x.toml".to_string(),
        calibration: None,
        cancel: cancel.clone(),
        observer: &Silent,
    }
}

#[track_caller]
fn nothing_in(directory: &Path) -> bool {
    std::fs::read_dir(directory).expect("a directory").next().is_none()
}

#[test]
fn arms_share_a_loaded_directory_and_leave_nothing() {
    if installed().is_none() {
        return;
    }
    let (place, cancel) = (place(), Cancel::default());
    let study = study("100K", &levels("maintenance_work_mem", "1MB", "16MB"));
    let mut target = PostgresTarget::open(&study, opening(place.path(), &cancel)).expect("a server");
    let environment = target.environment().expect("a device");
    assert!(environment.target.starts_with("PostgreSQL "), "{}", environment.target);
    let arms: Vec<_> = (0..2).map(|level| study.arm_settings(&[level])).collect();
    target
        .prepare(&Preparation { arms: &arms, expects_same: false, name: "plumb-study-it" })
        .unwrap_or_else(|error| panic!("{error}"));
    for arm in &arms {
        let settled = target.ready(arm).unwrap_or_else(|error| panic!("{error}"));
        assert!(settled.total_pages > 1000 && !settled.own_data, "{settled:?}");
        let record = target.run(arm, &cancel).unwrap_or_else(|error| panic!("{error:?}"));
        assert!(record.checks.iter().all(|check| check.passed), "{:?}", record.checks);
        assert!(record.receipts.iter().all(|receipt| receipt.held == Held::Held), "{:?}", record.receipts);
        // Where the tests are given a server, it has a receipt, too.
        let of_study = record.readings.iter().filter(|reading| reading.setting != "server");
        assert_eq!(of_study.count(), 2, "{:?}", record.readings);
    }
    // A server that refuses a setting of an arm fails that run, and the next one works.
    let mut refused = arms[0].clone();
    let memory = refused.iter_mut().find(|set| set.name == "maintenance_work_mem").expect("it varies");
    memory.value = "1".to_string();
    let error = target.run(&refused, &cancel).expect_err("out of range");
    let NoRecord::Failed(failure) = error else { panic!("{error:?}") };
    assert!(failure.why.contains("maintenance_work_mem"), "{failure:?}");
    target.run(&arms[1], &cancel).unwrap_or_else(|error| panic!("{error:?}"));
    cancel.request();
    assert!(matches!(target.run(&arms[1], &cancel), Err(NoRecord::Interrupted)));
    drop(target);
    assert!(nothing_in(place.path()), "after an interrupt, too");
}

/// A tracer that asserts what it is given, and counts one read.
struct OneRead<'a>(&'a Path);

impl RequestTracing for OneRead<'_> {
    fn during(&self, pid: u32, below: &Path, work: &mut dyn FnMut()) -> RequestSizes {
        let postmaster = std::fs::read_to_string(below.join("postmaster.pid")).expect("a server that runs");
        assert_eq!(postmaster.lines().next(), Some(pid.to_string().as_str()));
        assert!(below.starts_with(self.0), "{}", below.display());
        work();
        let sizes = vec![TraceBucket { to: 8192, reads: 1, writes: 0 }];
        RequestSizes { read_bytes: 8192, sizes, ..RequestSizes::default() }
    }
}

#[test]
fn the_execution_of_a_plan_is_traced_and_one_without_a_plan_is_not() {
    if installed().is_none() {
        return;
    }
    let (place, cancel) = (place(), Cancel::default());
    for (workload, has_plan) in [("scan", true), ("large-sort", false)] {
        let text = study_text("", "10K", &levels("work_mem", "1MB", "4MB")).replace("large-sort", workload);
        let study = parse("x.toml", &text, &[&Postgres]).unwrap_or_else(|error| panic!("{error}"));
        let tracer = OneRead(place.path());
        let target = PostgresTarget::open(&study, opening(place.path(), &cancel)).expect("a server");
        let mut target = target.traced_by(&tracer);
        let arms: Vec<_> = (0..2).map(|level| study.arm_settings(&[level])).collect();
        target
            .prepare(&Preparation { arms: &arms, expects_same: true, name: "plumb-study-it" })
            .unwrap_or_else(|error| panic!("{error}"));
        let explained = target.explain(&arms[1], &cancel).unwrap_or_else(|error| panic!("{error:?}"));
        let means = explained.map(|ExplainedPlan { plan, sizes }| {
            assert!(plan.contains("\"Node Type\""), "{plan}");
            sizes.expect("it was traced").means()
        });
        assert_eq!(means, has_plan.then_some([Some(8192), None]));
        drop(target);
        assert!(nothing_in(place.path()));
    }
}

#[test]
fn a_value_equal_to_the_default_is_one_treatment_and_creation_is_made_for_each_run() {
    if installed().is_none() {
        return;
    }
    let (place, cancel) = (place(), Cancel::default());
    let same = study("10K", &levels("maintenance_work_mem", "64MB", "65536kB"));
    let mut target = PostgresTarget::open(&same, opening(place.path(), &cancel)).expect("a server");
    let arms: Vec<_> = (0..2).map(|level| same.arm_settings(&[level])).collect();
    let preparation = Preparation { arms: &arms, expects_same: false, name: "plumb-study-it" };
    let error = target.prepare(&preparation).expect_err("one treatment").to_string();
    assert!(
        error.contains("maintenance_work_mem=64MB and maintenance_work_mem=65536kB have the same effect"),
        "{error}"
    );
    drop(target);
    assert!(nothing_in(place.path()));

    let fixed = study("10K", &levels("data_checksums", "off", "on"));
    let mut target = PostgresTarget::open(&fixed, opening(place.path(), &cancel)).expect("a server");
    let arms: Vec<_> = (0..2).map(|level| fixed.arm_settings(&[level])).collect();
    target
        .prepare(&Preparation { arms: &arms, expects_same: false, name: "plumb-study-it" })
        .unwrap_or_else(|error| panic!("{error}"));
    for (arm, sum) in arms.iter().zip([0.0, 1.0]) {
        assert!(target.ready(arm).unwrap_or_else(|error| panic!("{error}")).own_data);
        let record = target.run(arm, &cancel).unwrap_or_else(|error| panic!("{error:?}"));
        let checksums = record.readings.iter().find(|reading| reading.setting == "data_checksums");
        assert_eq!(checksums.map(|reading| reading.value), Some(sum), "{:?}", record.receipts);
    }
}

#[test]
fn a_place_is_a_level_whose_runs_have_their_data_there() {
    if installed().is_none() {
        return;
    }
    let (one, other, cancel) = (place(), place(), Cancel::default());
    let [first, second] = [&one, &other].map(|place| place.path().display().to_string());
    let study = study("10K", &levels("path", &first, &second));
    let mut target = PostgresTarget::open(&study, opening(one.path(), &cancel)).expect("a server");
    assert_eq!(target.environment().expect("devices").devices.len(), 2);
    let arms: Vec<_> = (0..2).map(|level| study.arm_settings(&[level])).collect();
    target
        .prepare(&Preparation { arms: &arms, expects_same: false, name: "plumb-study-it" })
        .unwrap_or_else(|error| panic!("{error}"));
    assert!(!nothing_in(one.path()) && !nothing_in(other.path()));
    for (arm, directory) in arms.iter().zip([&first, &second]) {
        target.ready(arm).unwrap_or_else(|error| panic!("{error}"));
        let record = target.run(arm, &cancel).unwrap_or_else(|error| panic!("{error:?}"));
        let receipt = record.receipts.iter().find(|receipt| receipt.setting == "path").expect("a receipt");
        assert_eq!(receipt.held, Held::Held, "{receipt:?}");
        assert!(receipt.evidence.starts_with(directory.as_str()), "{receipt:?}");
    }
    drop(target);
    assert!(nothing_in(one.path()) && nothing_in(other.path()));
}

/// A study of an import with two levels of a setting.
fn import(setting: &str) -> Study {
    let text = format!(
        "target = \"postgres\"\nname = \"x\"\ntitle = \"x\"\nquestion = \"x\"\nworkload = \"redo\"\nrows = \"300\"\n\
         blocks = 5\n[settings]\n{}{}\n[[claim]]\nname = \"c\"\ntext = \"x\"\nfactor = \"f\"\nfrom = \"a\"\nto = \"b\"\nexpect = \
         \"differs\"\n",
        server(),
        levels(setting, "on", "off")
    );
    parse("x.toml", &text, &[&Postgres]).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn checksums_of_pages_that_the_work_has_added_are_seen() {
    if installed().is_none() {
        return;
    }
    let (place, cancel) = (place(), Cancel::default());
    let study = import("data_checksums");
    let mut target = PostgresTarget::open(&study, opening(place.path(), &cancel)).expect("a server");
    let arms: Vec<_> = (0..2).map(|level| study.arm_settings(&[level])).collect();
    target
        .prepare(&Preparation { arms: &arms, expects_same: false, name: "plumb-study-it" })
        .unwrap_or_else(|error| panic!("{error}"));
    for arm in &arms {
        target.ready(arm).unwrap_or_else(|error| panic!("{error}"));
        let record = target.run(arm, &cancel).unwrap_or_else(|error| panic!("{error:?}"));
        assert!(record.receipts.iter().all(|receipt| receipt.held == Held::Held), "{:?}", record.receipts);
    }
}

#[test]
fn each_run_of_a_writer_begins_with_the_bytes_that_were_loaded() {
    if installed().is_none() {
        return;
    }
    let (place, cancel) = (place(), Cancel::default());
    let study = import("synchronous_commit");
    let mut target = PostgresTarget::open(&study, opening(place.path(), &cancel)).expect("a server");
    let arms: Vec<_> = (0..2).map(|level| study.arm_settings(&[level])).collect();
    target
        .prepare(&Preparation { arms: &arms, expects_same: false, name: "plumb-study-it" })
        .unwrap_or_else(|error| panic!("{error}"));
    let mut run = |arm: &[_]| {
        assert!(target.ready(arm).unwrap_or_else(|error| panic!("{error}")).own_data);
        let record = target.run(arm, &cancel).unwrap_or_else(|error| panic!("{error:?}"));
        record.checks.into_iter().find(|check| check.name == "data before the run").expect("a check")
    };
    let (first, second) = (run(&arms[0]), run(&arms[1]));
    assert!(first.passed && second.passed, "{first:?} {second:?}");
    assert!(first.detail.starts_with("as they were loaded: "), "{first:?}");
    assert_eq!(first.detail, second.detail, "the same bytes, although the first run has written");
}
