//! Plans and pilots of the shipped studies.

use plumb_events::Cancel;
use plumb_postgres::Postgres;
use plumb_proof::random::Generator;
use plumb_run::embedded::Engine;
use plumb_run::fixture::{Nobody, Scripted};
use plumb_study::StudyError;
use plumb_study::definition::catalog;
use plumb_study::pilot::{Pilot, Sought, pilot};
use plumb_study::plan::{Plan, PlanOptions, Until};
use plumb_study::targets::command::Commands;
use plumb_study::vocabulary::Assignment;
use plumb_units::Nanos;

#[test]
fn fewer_rows_are_advised_only_where_the_study_takes_them() {
    for (name, takes) in [("large-sort", true), ("storage-slob", false)] {
        let study =
            catalog::find(name, &[&Engine, &Commands, &Postgres]).expect("well formed").expect("it ships");
        assert!(study.rows() > 0, "{name}");
        let plan = Plan::new(study, PlanOptions::default(), Until::Blocks, 1).expect("a design");
        let refused = plan.require_room(Some(Nanos(50_000_000))).expect_err("less than a run").to_string();
        assert_eq!(refused.contains("--rows"), takes, "{refused}");
    }
}

/// The pilot of a shipped study whose runs have noise of this size.
fn piloted(noise: f64, effect: f64) -> Result<Option<Pilot>, StudyError> {
    let study = catalog::find("large-sort", &[&Engine, &Commands, &Postgres])
        .expect("well formed")
        .expect("it ships");
    let plan = Plan::new(study, PlanOptions::default(), Until::Blocks, 1).expect("a design");
    let mut generator = Generator::new(7);
    let mut target = Scripted::new(move |_, _: &[Assignment]| {
        Ok(plumb_record::fixture::record((1e9 * (noise * generator.normal()).exp()) as u64, 2))
    });
    let sought = Sought { effect, budget: None };
    pilot(&mut target, &plan, sought, &Cancel::default(), &Nobody)
}

#[test]
fn noise_and_small_effects_need_more_blocks() {
    let blocks = |noise, effect| piloted(noise, effect).expect("it runs").expect("to its end").blocks;
    assert!(blocks(0.06, 0.05) > blocks(0.01, 0.05));
    assert!(blocks(0.06, 0.02) > 3 * blocks(0.06, 0.05), "less than half the effect takes six times as many");
    let refused = piloted(0.2, 0.0005).expect_err("nobody waits for that").to_string();
    assert!(refused.contains("--find 0.05%") && refused.contains("more than 1000 blocks"), "{refused}");
}
