//! A simulated study: a plan, a law of its figures, and what is true of them.
//!
//! The study is a text like a user's, of a command whose figure is measured. The plan draws the
//! order of the runs, the law each figure. The contents of a bundle go to the product's own
//! [`analyse`], [`decided`] and [`pilot`], so what is counted is what a user reads. Nothing of the
//! inference is repeated here.
//!
//! Rejected: calling the inference directly, which is faster and tests neither the analysis nor
//! its words.

use super::law::{Law, Memory, Run};
use plumb_events::Cancel;
use plumb_proof::random::Generator;
use plumb_record::{Header, Held, Host, MeasuredFigure, Receipt, Record, Seen};
use plumb_study::analysis::result::Analysis;
use plumb_study::analysis::{analyse, decided};
use plumb_study::bundle::{Contents, EndFile, Ended, Environment, RunRecord, Settled, Stop};
use plumb_study::canary::Canary;
use plumb_study::definition::{self, Study};
use plumb_study::pilot::{Sought, pilot};
use plumb_study::plan::{Plan, PlanOptions, Until};
use plumb_study::targets::command::Commands;
use plumb_study::targets::{NoRecord, Preparation, Target};
use plumb_study::vocabulary::{Assignment, Better};
use plumb_study::{Observer, Stage, StudyError};
use std::path::Path;

/// Truth about a claim: the logarithms of its typical and of its average effect on the cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Truth {
    pub(super) typical: f64,
    pub(super) average: f64,
}

impl Truth {
    /// The same effect on every run, in per cent.
    pub(super) fn percent(percent: f64) -> Truth {
        let log = (percent / 100.0).ln_1p();
        Truth { typical: log, average: log }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Size {
    Blocks(usize),
    /// Stops when decided, at most this many.
    Decided(usize),
    /// As many as a pilot says that it takes to find this share.
    Find(f64),
}

/// A claim: its name, its lines after `factor`, and the truth.
pub(super) struct Claimed {
    pub(super) lines: String,
    pub(super) expects: &'static str,
    pub(super) truth: Truth,
}

/// Effect of the levels of an arm.
pub(super) type Effect = Box<dyn Fn(&[usize]) -> f64 + Send + Sync>;

pub(super) struct Simulated {
    pub(super) name: String,
    pub(super) size: Size,
    pub(super) factors: Vec<usize>,
    pub(super) claims: Vec<Claimed>,
    /// Unit of the figure, and its better direction.
    pub(super) unit: (&'static str, Better),
    /// Typical effect of an arm's levels on the cost, a logarithm, for advice.
    pub(super) effect: Effect,
    /// Deviation of the canary's own noise; none without a canary.
    pub(super) canary: Option<f64>,
    pub(super) law: Law,
}

impl Simulated {
    /// A study of two arms with one claim.
    pub(super) fn two(
        name: &str,
        size: Size,
        expects: &'static str,
        truth: Truth,
        law: impl Fn(&mut Run<'_>) -> f64 + Send + Sync + 'static,
    ) -> Simulated {
        Simulated {
            name: name.to_string(),
            size,
            factors: vec![2],
            claims: vec![Claimed { lines: change(0, 1), expects, truth }],
            unit: ("s", Better::Lower),
            effect: Box::new(move |levels| if levels[0] == 1 { truth.typical } else { 0.0 }),
            canary: None,
            law: Box::new(law),
        }
    }

    /// A study of a factor whose levels have these effects, in per cent, each claimed to differ
    /// from the reference.
    pub(super) fn arms(
        name: &str,
        blocks: usize,
        percents: &[f64],
        law: impl Fn(&mut Run<'_>) -> f64 + Send + Sync + 'static,
    ) -> Simulated {
        let effects: Vec<f64> = percents.iter().map(|percent| (percent / 100.0).ln_1p()).collect();
        let claim = |level: usize| {
            let truth = Truth { typical: effects[level], average: effects[level] };
            Claimed { lines: change(0, level), expects: "differs", truth }
        };
        let claims = (1..effects.len()).map(claim).collect();
        let mut of = Simulated::two(name, Size::Blocks(blocks), "", Truth::percent(0.0), law);
        (of.factors, of.claims) = (vec![effects.len()], claims);
        of.effect = Box::new(move |levels| effects[levels[0]]);
        of
    }

    /// The same with figures for which more is better: a rate.
    pub(super) fn into_rate(self) -> Simulated {
        Simulated { unit: ("/s", Better::Higher), ..self }
    }

    /// The same with figures that are counted.
    pub(super) fn counted(self) -> Simulated {
        Simulated { unit: ("rows", Better::Lower), ..self }
    }

    pub(super) fn blocks(&self) -> usize {
        match self.size {
            Size::Blocks(blocks) | Size::Decided(blocks) => blocks,
            Size::Find(_) => 6,
        }
    }

    fn text(&self) -> String {
        let (unit, better) = self.unit;
        let better = if better == Better::Higher { "higher" } else { "lower" };
        let names: Vec<String> = (0..self.factors.len()).map(|at| format!("{{f{at}}}")).collect();
        let mut text = format!(
            "name = 'simulated'\ntitle = 't'\nquestion = 'q'\ntarget = 'command'\nstatistic = 'figure'\n\
             blocks = {}\n[command]\nrun = 'true {}'\n[measure.figure]\nregex = '(.*)'\n\
             better = '{better}'\nunit = '{unit}'\n",
            self.blocks(),
            names.join(" ")
        );
        for (at, levels) in self.factors.iter().enumerate() {
            let levels: Vec<String> = (0..*levels).map(|level| format!("'{level}'")).collect();
            text += &format!("[[factor]]\nname = 'f{at}'\nlevels = [{}]\n", levels.join(", "));
        }
        for (at, claim) in self.claims.iter().enumerate() {
            text += &format!("[[claim]]\nname = 'c{at}'\ntext = 'Made up.'\nexpect = '{}'\n", claim.expects);
            text += &claim.lines;
        }
        text
    }

    pub(super) fn study(&self) -> anyhow::Result<Study> {
        Ok(definition::parse("simulated", &self.text(), &[&Commands])?)
    }

    /// Draws a study and returns its contents; `None` if its pilot refuses it.
    pub(super) fn contents(&self, study: &Study, seed: u64) -> anyhow::Result<Option<Contents>> {
        let until = if matches!(self.size, Size::Decided(_)) { Until::Decided } else { Until::Blocks };
        let mut plan = Plan::new(study.clone(), PlanOptions::default(), until, seed)?;
        let mut generator = Generator::of_part(seed, 1);
        if let Size::Find(effect) = self.size {
            let Some(blocks) = self.piloted(&plan, effect, &mut generator) else { return Ok(None) };
            plan = Plan::new(study.clone(), PlanOptions { blocks: Some(blocks), rows: None }, until, seed)?;
        }
        let mut contents = Contents { plan, environment: environment(), runs: Vec::new(), end: None };
        let (mut memory, mut before) = (Memory::new(&mut generator), None);
        let blocks = contents.plan.study.blocks;
        for block in 1..=blocks {
            for cell in contents.plan.block(block) {
                let at = contents.runs.len() as f64 / (blocks * contents.plan.schedule.slots()) as f64;
                let levels = &contents.plan.design.arms[cell.arm];
                let mut run = Run {
                    generator: &mut generator,
                    memory: &mut memory,
                    block: block - 1,
                    at,
                    arm: cell.arm,
                    levels,
                    before: before.replace(cell.arm),
                };
                let log = (self.law)(&mut run);
                let canary = self.canary.map(|deviation| Canary {
                    cpu_ns: (5e6 * (deviation * generator.normal()).exp()) as u64,
                    read_ns: None,
                });
                let record = log.is_finite().then(|| self.record(&contents.plan, cell.arm, log));
                let number = contents.runs.len() as u64 + 1;
                contents.runs.push(RunRecord {
                    number,
                    arm: contents.plan.arm_name(cell.arm),
                    arm_index: cell.arm,
                    block: Some(block as u64),
                    position: cell.position as u64,
                    slot: cell.slot,
                    start_ns: number,
                    settled: Settled { idle: true, canary, ..Settled::default() },
                    ended: match record {
                        Some(_) => Ended::Finished,
                        None => Ended::Failed { reason: "made up".to_string() },
                    },
                    record,
                });
            }
            if until == Until::Decided && decided(&contents) {
                contents.end = Some(EndFile { stop: Stop::Decided, end_ns: 1 });
                return Ok(Some(contents));
            }
        }
        contents.end = Some(EndFile { stop: Stop::Planned, end_ns: 1 });
        Ok(Some(contents))
    }

    /// Draws a study and judges it; `None` if its pilot refuses it.
    pub(super) fn judged(&self, study: &Study, seed: u64) -> anyhow::Result<Option<Analysis>> {
        Ok(self.contents(study, seed)?.map(|contents| analyse(&contents)))
    }

    fn record(&self, plan: &Plan, arm: usize, log: f64) -> Record {
        let value = if self.unit.1 == Better::Higher { (-log).exp() } else { log.exp() };
        let receipt = |set: Assignment| Receipt {
            setting: set.name,
            asked: set.value,
            evidence: "made up".to_string(),
            held: Held::Held,
            seen: Seen::Outside,
        };
        let receipts = plan.arm_settings(arm).into_iter().map(receipt).collect();
        let measures = vec![MeasuredFigure { name: "figure".into(), value, unit: self.unit.0.into() }];
        Record { receipts, measures, ..Record::of(header()) }
    }

    /// Returns the blocks that the pilot plans; `None` if it refuses the study.
    fn piloted(&self, plan: &Plan, effect: f64, generator: &mut Generator) -> Option<usize> {
        let memory = Memory::new(generator);
        let mut target = Drawn { of: self, plan, generator, memory };
        let sought = Sought { effect, budget: None };
        pilot(&mut target, plan, sought, &Cancel::default(), &Silent).ok()?.map(|found| found.blocks)
    }
}

/// Returns the lines of a claim that moves a factor from its first level to another.
pub(super) fn change(factor: usize, to: usize) -> String {
    format!("factor = 'f{factor}'\nfrom = '0'\nto = '{to}'\n")
}

struct Silent;

impl Observer for Silent {
    fn stage(&self, _: &Stage<'_>) {}
    fn begins(&self) {}
    fn made(&self, _: &Path) {}
}

/// The reference as the pilot runs it.
struct Drawn<'a> {
    of: &'a Simulated,
    plan: &'a Plan,
    generator: &'a mut Generator,
    memory: Memory,
}

impl Target for Drawn<'_> {
    fn environment(&mut self) -> Result<Environment, StudyError> {
        Ok(environment())
    }

    fn prepare(&mut self, _: &Preparation<'_>) -> Result<(), StudyError> {
        Ok(())
    }

    fn ready(&mut self, _: &[Assignment]) -> Result<Settled, StudyError> {
        Ok(Settled::default())
    }

    fn run(&mut self, _: &[Assignment], _: &Cancel) -> Result<Record, NoRecord> {
        let Drawn { of, plan, generator, memory } = self;
        let arm = plan.schedule.reference;
        let levels = &plan.design.arms[arm];
        let mut run = Run { generator, memory, block: 0, at: 0.0, arm, levels, before: None };
        let log = (of.law)(&mut run);
        Ok(of.record(plan, arm, log))
    }
}

fn header() -> Header {
    Header {
        title: String::new(),
        workload: "command".to_string(),
        plumb_version: String::new(),
        git_revision: None,
        profile: None,
        host: host(),
        begin_time: String::new(),
        end_time: String::new(),
        elapsed_ns: 1_000_000_000,
        db_time_ns: None,
        db_cpu_ns: None,
        command_line: String::new(),
        seed: None,
        settings_hash: String::new(),
        clock_source: None,
        clock_precision_ns: None,
    }
}

fn environment() -> Environment {
    Environment {
        plumb_version: String::new(),
        git_revision: None,
        profile: None,
        target: "made-up figures".to_string(),
        host: host(),
        devices: Vec::new(),
        calibration_date: None,
        calibration_doubts: Vec::new(),
        limits: Vec::new(),
        settings: Vec::new(),
        begin_ns: 0,
        begin_time: String::new(),
        command_line: String::new(),
        between_runs: None,
        spawn_ns: None,
    }
}

fn host() -> Host {
    Host {
        name: String::new(),
        cpus: Some(2),
        cpu_model: String::new(),
        memory_bytes: Some(1 << 33),
        kernel: String::new(),
        cpu_quota: None,
    }
}
