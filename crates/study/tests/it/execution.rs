//! Order, failures, resumption, changed bundles.

use plumb_pages::study;
use plumb_record::{Held, Receipt};
use plumb_run::embedded::Engine;
use plumb_run::fixture::{Scripted, bundle, plan, run, run_within};
use plumb_study::bundle::{Bundle, EndFile, Ended, MANIFEST, Reservation, Stop, record_name};
use plumb_study::report::publish;
use plumb_study::targets::NoRecord;
use plumb_study::verify::verify;
use plumb_study::vocabulary::Assignment;
use plumb_units::Nanos;
use std::fs;
use std::path::Path;

const SECOND: u64 = 1_000_000_000;

/// Receipts that hold for the varied settings.
fn receipts() -> Vec<Receipt> {
    ["sort_direct_writes", "sort_area_size"]
        .map(|name| plumb_record::fixture::receipt(name, Held::Held, "seen"))
        .to_vec()
}

fn steady() -> Scripted {
    Scripted::new(|run, _: &[Assignment]| {
        let mut record = plumb_record::fixture::record(SECOND + run as u64 * 1_000, 2);
        record.receipts = receipts();
        Ok(record)
    })
}

/// The arms in order of execution.
fn arms(bundle: &Bundle) -> Vec<String> {
    bundle.contents().runs.iter().map(|run| run.arm.clone()).collect()
}

#[test]
fn the_same_seed_runs_in_the_same_order() {
    let order = |seed| {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut bundle = bundle(directory.path(), &plan(seed));
        assert_eq!(run(&mut bundle, &mut steady()).expect("it runs"), Stop::Planned);
        assert_eq!(
            bundle.contents().runs.len(),
            11 * 5,
            "a warm-up block and ten more of four arms and the reference"
        );
        arms(&bundle)
    };
    assert_eq!(order(4), order(4));
    assert_ne!(order(4), order(5));
}

#[test]
fn a_small_budget_fails_and_more_resumes_the_study() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut bundle = bundle(directory.path(), &plan(1));
    let spent = run_within(&mut bundle, &mut steady(), Some(Nanos(1))).expect_err("nothing counts");
    let text = spent.to_string();
    assert!(text.contains("is not enough for a block that counts: 1 of 10 runs"), "{text}");
    assert_eq!(bundle.contents().runs.len(), 1, "one run says it");
    assert!(bundle.contents().end.is_none(), "it has not ended");
    assert_eq!(run(&mut bundle, &mut steady()).expect("it goes on"), Stop::Planned);
}

#[test]
fn three_blocks_with_failed_runs_end_the_study() {
    for (failures, stop, used) in [(vec![7], Stop::Planned, 9), (vec![7, 12, 20], Stop::Failures, 1)] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut bundle = bundle(directory.path(), &plan(1));
        let failing = failures.clone();
        let mut target = Scripted::new(move |run, _: &[Assignment]| match failing.contains(&run) {
            true => Err(NoRecord::Failed("signal 11".to_string().into())),
            false => Ok(plumb_record::fixture::record(SECOND, 2)),
        });
        assert_eq!(run(&mut bundle, &mut target).expect("it runs"), stop, "{failures:?}");
        let context = publish(&mut bundle, study::rendered).expect("it is written");
        assert_eq!(context.design.blocks_used, used, "{failures:?}");
        let marked = &context.design.blocks_marked;
        assert!(marked[0].reason.contains("signal 11"), "{marked:?}");
        let failed = bundle.contents().runs.iter().filter(|run| run.ended != Ended::Finished).count();
        assert_eq!(failed, failures.len(), "a failed run is kept");
    }
}

#[test]
fn a_wrong_result_makes_its_block_and_claims_invalid() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let plan = plan(1);
    let mut bundle = bundle(directory.path(), &plan);
    // In the third block, the arm that only the second and third claim use.
    let wrong = plan.block(0).len() + plan.block(1).len() + plan.block(2).len();
    let place = plan
        .block(3)
        .iter()
        .position(|cell| plan.arm_name(cell.arm) == "direct=TRUE area=2M")
        .expect("an arm");
    let mut target = Scripted::new(move |run, _: &[Assignment]| {
        let mut record = plumb_record::fixture::record(SECOND, 2);
        record.receipts = receipts();
        record.checks[0].passed = run != wrong + place;
        Ok(record)
    });
    run(&mut bundle, &mut target).expect("it runs");
    let context = publish(&mut bundle, study::rendered).expect("it is written");
    assert_eq!(context.design.blocks_marked.len(), 1);
    assert_eq!(context.design.blocks_marked[0].block, 3);
    let codes: Vec<u8> = context.claims.iter().map(|claim| claim.verdict.exit_code()).collect();
    assert_ne!(codes[0], 5, "{}", context.claims[0].verdict);
    assert_eq!(codes[1..], [5, 5]);
    assert!(context.claims[1].verdict.to_string().contains("verification failed: keys in order"));
}

#[test]
fn an_interrupted_study_goes_on_where_it_stopped() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let whole = tempfile::tempdir().expect("a temporary directory");
    let mut once = bundle(whole.path(), &plan(9));
    run(&mut once, &mut steady()).expect("it runs");

    let mut first = bundle(directory.path(), &plan(9));
    let mut stopped = Scripted::new(|run, _: &[Assignment]| match run {
        18 => Err(NoRecord::Interrupted),
        _ => Ok(plumb_record::fixture::record(SECOND, 2)),
    });
    assert_eq!(run(&mut first, &mut stopped).expect("it stops"), Stop::Interrupted);
    publish(&mut first, study::rendered).expect("it is written");
    drop(first);
    // Files that a study killed during a write leaves behind.
    fs::write(directory.path().join("runs/0019.unfinished"), "{").expect("a file");
    fs::write(directory.path().join("runs/0019.json.new"), "{").expect("a file");
    fs::write(directory.path().join("notes.txt"), "the user's").expect("a file");

    let mut second = Bundle::open(directory.path(), &[&Engine]).expect("it is whole");
    assert!(directory.path().join("runs/0019.unfinished").exists(), "it may still be refused");
    let cleared = second.clear().expect("removed");
    assert_eq!(cleared.removed, ["runs/0019.json.new", "runs/0019.unfinished"]);
    assert_eq!(cleared.left, ["notes.txt"]);
    assert!(!directory.path().join("runs/0019.unfinished").exists());
    let why = verify(directory.path(), &[&Engine], study::rendered).expect_err("a stray").to_string();
    assert!(why.contains("notes.txt") && why.contains("move it elsewhere"), "{why}");
    fs::remove_file(directory.path().join("notes.txt")).expect("it is still there");
    second.go_on().expect("it is written");
    assert!(!directory.path().join("analysis.json").exists(), "what was said then does not hold now");
    assert!(
        verify(directory.path(), &[&Engine], study::rendered).expect("the rest is whole").analysis.is_none()
    );
    assert_eq!(run(&mut second, &mut steady()).expect("it runs"), Stop::Planned);
    publish(&mut second, study::rendered).expect("it is written");
    let planned: Vec<String> =
        second.contents().runs.iter().filter(|run| run.position > 0).map(|run| run.arm.clone()).collect();
    assert_eq!(planned, arms(&once), "the order is that of an uninterrupted study");
    let again = second.contents().runs.iter().filter(|run| run.position == 0).count();
    assert_eq!(again, 1, "and one run warmed the new databases up");
    // By the wall clock the study started in another year.
    let last = second.contents().runs.iter().map(|run| run.start_ns).max();
    assert!(last.is_some_and(|last| last < 3600 * SECOND), "{last:?}: a pause is no time of the study");
    assert!(second.contents().ran().0 < 3600 * SECOND);
    drop(second);
    verify(directory.path(), &[&Engine], study::rendered).expect("it verifies");
}

#[test]
fn figures_are_hidden_until_a_study_has_ended() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut first = bundle(directory.path(), &plan(9));
    let mut stopped = Scripted::new(|run, _: &[Assignment]| match run {
        48 => Err(NoRecord::Interrupted),
        _ => Ok(plumb_record::fixture::record(SECOND, 2)),
    });
    assert_eq!(run(&mut first, &mut stopped).expect("it stops"), Stop::Interrupted);
    let said = publish(&mut first, study::rendered).expect("it is written");
    assert!(said.claims.is_empty() && said.main_effects.is_empty() && said.recommendation.is_none());
    assert!(said.runs.iter().all(|run| run.value.is_none() && run.elapsed_ns.is_none()));
    assert!(said.arms.iter().all(|arm| arm.median.is_none()));
    assert_eq!(said.exit_code(), 3);

    first.end_here().expect("it is written");
    let said = publish(&mut first, study::rendered).expect("it is written");
    assert_eq!((said.claims.len(), said.design.blocks_used), (3, 8));
    let why = run(&mut first, &mut steady()).expect_err("it has ended").to_string();
    assert!(why.contains("its figures were shown"), "{why}");
    first.end_here().expect("nothing changes");
    assert_eq!(first.contents().end.map(|end| end.stop), Some(Stop::Ended));
}

#[test]
fn a_budget_ends_a_study_for_good() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut bundle = bundle(directory.path(), &plan(9));
    let mut stopped = Scripted::new(|run, _: &[Assignment]| match run {
        48 => Err(NoRecord::Interrupted),
        _ => Ok(plumb_record::fixture::record(SECOND, 2)),
    });
    run(&mut bundle, &mut stopped).expect("it stops");
    bundle.end(EndFile { stop: Stop::Budget, end_ns: 1 }).expect("it is written");
    assert_eq!(publish(&mut bundle, study::rendered).expect("it is written").claims.len(), 3);
    let why = run(&mut bundle, &mut steady()).expect_err("it has ended").to_string();
    assert!(why.contains("more blocks after a look at them would prove too much"), "{why}");
}

#[test]
fn a_failed_write_keeps_earlier_runs() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut first = bundle(directory.path(), &plan(9));
    // An existing file is not overwritten, and a directory cannot be removed.
    let blocked = directory.path().join("runs/0012.json.new");
    fs::create_dir(&blocked).expect("a directory");
    let error = run(&mut first, &mut steady()).expect_err("it cannot be written").to_string();
    assert!(error.contains("runs/0012.json") && error.contains("Is a directory"), "{error}");
    fs::remove_dir(&blocked).expect("it is still there");
    drop(first);
    verify(directory.path(), &[&Engine], study::rendered).expect("what finished is whole");

    let mut second = Bundle::open(directory.path(), &[&Engine]).expect("it is whole");
    let kept = second.contents().runs.len();
    assert_eq!(kept, 11, "of twelve runs the last was not kept");
    second.go_on().expect("it is written");
    assert_eq!(run(&mut second, &mut steady()).expect("it runs"), Stop::Planned);
    publish(&mut second, study::rendered).expect("it is written");
    drop(second);
    verify(directory.path(), &[&Engine], study::rendered).expect("it verifies");
}

#[test]
fn a_study_that_ended_stays_as_it_is() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut bundle = bundle(directory.path(), &plan(2));
    run(&mut bundle, &mut steady()).expect("it runs");
    let mut again = steady();
    assert_eq!(run(&mut bundle, &mut again).expect("it has ended"), Stop::Planned);
    assert_eq!(again.runs, 0);
}

#[test]
fn a_bundle_with_linked_runs_is_rejected() {
    let (directory, other) = [(); 2].map(|()| tempfile::tempdir().expect("a temporary directory")).into();
    drop(bundle(directory.path(), &plan(2)));
    fs::write(other.path().join("0001.unfinished"), "precious").expect("a file");
    fs::remove_dir(directory.path().join("runs")).expect("it is empty");
    std::os::unix::fs::symlink(other.path(), directory.path().join("runs")).expect("a link");
    let refused = Bundle::open(directory.path(), &[&Engine]).expect_err("a link").to_string();
    assert!(refused.contains("runs") && refused.contains("it is no directory"), "{refused}");
    assert_eq!(fs::read_dir(directory.path()).expect("a directory").count(), 5, "no mark stays");
    let why = verify(directory.path(), &[&Engine], study::rendered).expect_err("a link").to_string();
    assert!(why.contains("/runs has changed since it was written: the manifest does not list it"), "{why}");
    assert!(other.path().join("0001.unfinished").exists());
}

/// The creator of a bundle may have placed links under the names written next.
#[test]
fn nothing_of_a_bundle_is_written_through_a_link() {
    let (directory, other) = [(); 2].map(|()| tempfile::tempdir().expect("a temporary directory")).into();
    let mut bundle = bundle(directory.path(), &plan(2));
    let victim = other.path().join("victim");
    fs::write(&victim, "precious").expect("a file");
    let written =
        ["runs/0001.json", "manifest.sha256", "report.txt", "report.html", "analysis.json", "end.json"];
    for name in written {
        let link = |name: String| {
            let path = directory.path().join(name);
            let _ = fs::remove_file(&path);
            std::os::unix::fs::symlink(&victim, path).expect("a link");
        };
        ["", ".new"].iter().for_each(|end| link(format!("{name}{end}")));
        link(std::path::Path::new(name).with_extension("unfinished").display().to_string());
    }
    run(&mut bundle, &mut steady()).expect("it runs");
    publish(&mut bundle, study::rendered).expect("it is written");
    assert_eq!(fs::read_to_string(&victim).expect("read"), "precious");
    for name in written {
        let found = fs::symlink_metadata(directory.path().join(name)).expect("written");
        assert!(found.is_file(), "{name}: the link has gone");
    }
}

#[test]
fn only_a_bundle_that_this_process_made_is_discarded() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    drop(bundle(directory.path(), &plan(2)));
    Bundle::open(directory.path(), &[&Engine]).expect("it is whole").discard();
    verify(directory.path(), &[&Engine], study::rendered).expect("it is all there");
}

#[test]
fn a_running_study_is_not_resumed() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let bundle = bundle(directory.path(), &plan(2));
    let refused = Bundle::open(directory.path(), &[&Engine]).expect_err("it is open");
    assert!(
        refused
            .to_string()
            .contains(" is being written by another process: wait until its run or study ends"),
        "{refused}"
    );
    drop(bundle);
    Bundle::open(directory.path(), &[&Engine]).expect("it is free");
}

#[test]
fn a_bundle_is_not_put_where_something_is() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    fs::write(directory.path().join("mine"), "kept").expect("a file");
    let refused = Reservation::named(directory.path()).expect_err("occupied");
    assert!(refused.to_string().contains("it has contents"), "{refused}");
    assert_eq!(fs::read_to_string(directory.path().join("mine")).expect("a file"), "kept");
}

fn files(directory: &Path) -> Vec<String> {
    let manifest = fs::read_to_string(directory.join(MANIFEST)).expect("a manifest");
    let listed = manifest.lines().map(|line| line.split_once("  ").expect("two columns").1.to_string());
    listed.chain([MANIFEST.to_string()]).collect()
}

#[test]
fn a_changed_byte_of_any_file_is_found() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut bundle = bundle(directory.path(), &plan(3));
    run(&mut bundle, &mut steady()).expect("it runs");
    publish(&mut bundle, study::rendered).expect("it is written");
    drop(bundle);
    let verified = verify(directory.path(), &[&Engine], study::rendered).expect("it is as it was written");
    assert_eq!((verified.runs, verified.analysis.expect("an analysis").claims.len()), (55, 3));
    let mut seed = plumb_run::fixture::Noise::new(11);
    for name in files(directory.path()) {
        let path = directory.path().join(&name);
        let whole = fs::read(&path).expect("a file");
        let mut changed = whole.clone();
        let at = (seed.draw() * whole.len() as f64) as usize;
        changed[at] ^= 1;
        fs::write(&path, &changed).expect("a file");
        let refused = verify(directory.path(), &[&Engine], study::rendered)
            .expect_err("a byte has changed")
            .to_string();
        let names_it = refused.contains(&name) || name == MANIFEST;
        assert!(
            names_it && refused.contains("has changed since it was written"),
            "{name} at byte {at}: {refused}"
        );
        fs::write(&path, &whole).expect("a file");
    }
    fs::remove_file(directory.path().join(record_name(3))).expect("a file");
    let refused =
        verify(directory.path(), &[&Engine], study::rendered).expect_err("a file is missing").to_string();
    assert!(refused.contains("runs/0003.json"), "{refused}");
}

#[test]
fn a_forged_analysis_is_found_despite_its_checksum() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut bundle = bundle(directory.path(), &plan(3));
    run(&mut bundle, &mut steady()).expect("it runs");
    publish(&mut bundle, study::rendered).expect("it is written");
    let text = fs::read_to_string(directory.path().join("report.txt")).expect("a report");
    bundle
        .write(
            "report.txt",
            &text.replacen("NOT PROVED", "PROVED faster", 1).replacen("PROVED typically EQUAL", "PROVED", 1),
        )
        .expect("a file");
    drop(bundle);
    let refused = verify(directory.path(), &[&Engine], study::rendered).expect_err("forged").to_string();
    assert!(
        refused.ends_with(
            "report.txt has changed since it was written: it does not follow from the raw records"
        ),
        "{refused}"
    );
}
