//! The laboratory on made-up runs whose truth is known: in milliseconds, and the same every time.

mod analysis;
mod execution;
mod studies;

use crate::LabError;
use crate::bundle::{Bundle, Reservation, Stop};
use crate::execution::execute;
use crate::fixture::{self, Scripted};
use crate::observer::{Observer, Stage};
use crate::plan::{Plan, PlanOptions, Until};
use crate::study::{Study, parse};
use crate::target::Target;
use crate::target::embedded::Engine;
use plumb_events::Cancel;
use plumb_units::Nanos;
use std::path::Path;

/// Two factors, a claim of each kind.
pub const STUDY: &str = r#"
name = "made-up"
title = "A study of made-up runs"
question = "What follows from figures whose truth is known?"
workload = "large-sort"
rows = 1000
blocks = 10

[[factor]]
name = "direct"
setting = "sort_direct_writes"
levels = ["FALSE", "TRUE"]

[[factor]]
name = "area"
setting = "sort_area_size"
levels = ["1M", "2M"]

[[claim]]
name = "direct"
text = "Direct writes make it faster."
factor = "direct"
from = "FALSE"
to = "TRUE"
at = { area = "1M" }
expect = "faster by at least 10%"

[[claim]]
name = "area"
text = "The area does not matter."
factor = "area"
from = "1M"
to = "2M"
expect = "equal within 5%"

[[claim]]
name = "both"
text = "The effects simply multiply."
factor = "direct"
from = "FALSE"
to = "TRUE"
with = { factor = "area", from = "1M", to = "2M" }
expect = "equal within 5%"
"#;

/// Sees nothing.
pub struct Nobody;

impl Observer for Nobody {
    fn stage(&self, _: &Stage<'_>) {}
    fn begins(&self) {}
    fn made(&self, _: &Path) {}
}

/// The study of made-up runs.
pub fn study() -> Study {
    parse("made-up.toml", STUDY, &[&Engine]).expect("a study that is well formed")
}

/// Its plan.
pub fn plan(seed: u64) -> Plan {
    Plan::new(study(), PlanOptions::default(), Until::Blocks, seed).expect("a design")
}

/// A new bundle of a plan.
pub fn bundle(directory: &Path, plan: &Plan) -> Bundle {
    let mut environment = fixture::environment();
    environment.settings = plan.setting_facts();
    let reserved = Reservation::named(directory).expect("an empty directory");
    Bundle::create(reserved, plan, environment).expect("a bundle can be written")
}

/// Runs a plan to its end.
pub fn run(bundle: &mut Bundle, target: &mut Scripted) -> Result<Stop, LabError> {
    run_within(bundle, target, None)
}

pub fn run_within(
    bundle: &mut Bundle,
    target: &mut Scripted,
    budget: Option<Nanos>,
) -> Result<Stop, LabError> {
    execute(bundle, target as &mut dyn Target, budget, &Cancel::default(), &Nobody)
}

/// Numbers between 0 and 1 from a seed (splitmix64), for noise.
pub struct Noise(u64);

impl Noise {
    pub fn new(seed: u64) -> Noise {
        Noise(seed)
    }

    pub fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((bits ^ (bits >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// About a normal number: the sum of twelve.
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.next()).sum::<f64>() - 6.0
    }
}
