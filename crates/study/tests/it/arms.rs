//! Comparison of two arms of one study.

use plumb_proof::verdict::Verdict;
use plumb_run::embedded::Engine;
use plumb_run::fixture::{Scripted, bundle, plan, run};
use plumb_study::analysis::analyse;
use plumb_study::bundle::Contents;
use plumb_study::compare::{Judged, compare};
use plumb_study::vocabulary::Assignment;
use std::path::Path;

/// A study whose second level of the factor `direct` takes 80% of the time.
fn study(directory: &Path) -> Contents {
    let mut bundle = bundle(directory, &plan(3));
    let mut target = Scripted::new(|run, settings: &[Assignment]| {
        let faster = settings.iter().any(|set| set.name == "sort_direct_writes" && set.value == "true");
        let share = if faster { 0.8 } else { 1.0 };
        let mut record =
            plumb_record::fixture::record((1e9 * share * (1.0 + 0.001 * (run % 7) as f64)) as u64, 2);
        record.receipts = ["sort_direct_writes", "sort_area_size"]
            .map(|name| plumb_record::fixture::receipt(name, plumb_record::Held::Held, "seen"))
            .to_vec();
        Ok(record)
    });
    run(&mut bundle, &mut target).expect("it runs");
    bundle.contents().clone()
}

/// Returns the verdict on the study's own measure, from one arm to another.
fn said(directory: &Path, from: usize, to: usize) -> Judged {
    let [from, to] = [from, to].map(|arm| format!("{}:{}", directory.display(), arm + 1));
    let mut comparison = compare(&from, &to, &[&Engine]).expect("two arms of a study");
    comparison.judged.remove(0)
}

#[test]
fn a_claim_about_two_arms_is_turned_with_them_and_others_are_not_asked() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let contents = study(directory.path());
    let (claims, plan) = (analyse(&contents).claims, &contents.plan);
    let mut pairs = 0;
    for (claim, judged) in plan.study.claims.iter().zip(&claims) {
        let sides = claim.sides(&plan.design);
        let ([from], [to]) = (&sides.from[..], &sides.to[..]) else { continue };
        let (as_claimed, turned) = (said(directory.path(), *from, *to), said(directory.path(), *to, *from));
        assert!(as_claimed.claim.is_some() && turned.claim.is_some(), "a claim");
        assert_eq!(as_claimed.verdict, judged.verdict);
        let (Verdict::Faster(change), Verdict::Slower(back)) = (&as_claimed.verdict, &turned.verdict) else {
            panic!("{} and {}", as_claimed.verdict, turned.verdict)
        };
        let product = (1.0 - change.percent / 100.0) * (1.0 + back.percent / 100.0);
        assert!((product - 1.0).abs() < 1e-9, "{product}");
        assert!(back.low <= back.percent && back.percent <= back.high);
        pairs += 1;
    }
    assert!(pairs > 0, "a claim about two arms");
    let others = (0..plan.design.arms.len()).flat_map(|one| (0..one).map(move |two| (one, two)));
    let unclaimed = others.filter(|(one, two)| said(directory.path(), *one, *two).claim.is_none()).count();
    assert!(unclaimed > 0, "two arms of which no claim says anything");
}
