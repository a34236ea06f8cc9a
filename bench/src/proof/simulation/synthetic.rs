//! Generates run times of machines and treatments that misbehave in known ways.
//!
//! A series is generated in the order of execution, one log-noise a run, and only then given to the
//! slots that the schedule put there; so a burst hits neighbours in time, not arms. All models are
//! scaled to a deviation of one run, sigma (heavy tails: to that of their core), so that the
//! log-ratio of two runs has s_d = sigma sqrt 2.
//!
//! ```text
//! lognormal      e                                    e normal, sigma
//! heavy tails    e + 0.1 Pareto(1.5) in one run of ten       a stalled request, a full write cache
//! autocorrelated x_t = 0.8 x_(t-1) + 0.6 e_t          a slow neighbour comes and goes
//! drift          e + trend + a slow wave              a disk fills, a device warms up
//! bursts         e + 0.15 over stretches of 1..6 runs     backup, snapshot, garbage collection
//! carry-over     e + half of what the run before took too long
//! two modes      e + 0.1 in three runs of ten          a process with unlucky addresses
//! credits        e + 0.3 from a random block on        a cloud disk's credits run out
//! unequal        3 e in slot 1                          a treatment that is as fast and less even
//! one tail       as heavy tails, in slot 1 alone        its typical effect is made nothing
//! by block       + s_d e in each block and slot        a treatment that helps on some days only
//! dirty arm      + 4 sigma after slot 1                 a treatment that leaves dirty pages behind
//! ```
//!
//! A carry-over that is the same after every arm costs precision only. A dirty arm is the dangerous
//! kind: with few slots it is the reference that follows.
//!
//! Limits: sizes were chosen to look like a shared virtual disk, not fitted to one.

use plumb_proof::ProofError;
use plumb_proof::design::Schedule;
use plumb_proof::effect::Observations;
use plumb_proof::random::Generator;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Noise {
    Lognormal,
    HeavyTails,
    /// Each run resembles the one before.
    Autocorrelated,
    /// A trend over the whole study, and a wave.
    Drift,
    /// Slow stretches that cover neighbouring runs.
    Bursts,
    /// Runs that slow their successors.
    CarryOver,
    /// Some runs are slower by the same amount.
    TwoModes,
    /// From some block on all runs are slower.
    Credits,
    /// Slot 1 varies more than the others.
    Unequal,
    /// Slot 1 alone has long runs.
    OneTail,
    /// Every slot but the reference's has an effect of its own in every block.
    ByBlock,
    /// Slot 1 slows its successor.
    DirtyArm,
}

impl Noise {
    /// All models, in the order of the tables.
    pub const ALL: [Self; 12] = [
        Self::Lognormal,
        Self::HeavyTails,
        Self::Autocorrelated,
        Self::Drift,
        Self::Bursts,
        Self::CarryOver,
        Self::TwoModes,
        Self::Credits,
        Self::Unequal,
        Self::OneTail,
        Self::ByBlock,
        Self::DirtyArm,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Lognormal => "lognormal",
            Self::HeavyTails => "heavy tails",
            Self::Autocorrelated => "autocorrelated",
            Self::Drift => "drift",
            Self::Bursts => "bursts",
            Self::CarryOver => "carry-over",
            Self::TwoModes => "two modes",
            Self::Credits => "credits",
            Self::Unequal => "unequal",
            Self::OneTail => "one tail",
            Self::ByBlock => "by block",
            Self::DirtyArm => "dirty arm",
        }
    }

    /// Returns the log-noise of `runs` runs in order of execution, without carry-over of slots.
    pub fn series(self, runs: usize, sigma: f64, generator: &mut Generator) -> Vec<f64> {
        let mut state = generator.normal();
        let mut burst_left = 0usize;
        let (trend, phase) = (0.3 * (generator.unit() - 0.5), generator.unit());
        let mut previous = 0.0;
        (0..runs)
            .map(|run| {
                let fresh = generator.normal();
                let time = run as f64 / runs.max(1) as f64;
                match self {
                    Self::Lognormal | Self::Unequal | Self::OneTail | Self::ByBlock | Self::DirtyArm => {
                        sigma * fresh
                    }
                    Self::TwoModes => sigma * fresh + if generator.unit() < 0.3 { 0.1 } else { 0.0 },
                    Self::Credits => sigma * fresh + if time > phase { 0.3 } else { 0.0 },
                    Self::HeavyTails => sigma * fresh + stall(generator),
                    Self::Autocorrelated => {
                        state = 0.8 * state + 0.6 * fresh;
                        sigma * state
                    }
                    Self::Drift => {
                        let wave = (std::f64::consts::TAU * (3.0 * time + phase)).sin();
                        sigma * fresh + trend * time + 2.0 * sigma * wave
                    }
                    Self::Bursts => {
                        if burst_left == 0 && generator.unit() < 0.05 {
                            burst_left = 1 + generator.below(6);
                        }
                        let slow = if burst_left > 0 { 0.15 } else { 0.0 };
                        burst_left = burst_left.saturating_sub(1);
                        sigma * fresh + slow
                    }
                    Self::CarryOver => {
                        let own = sigma * fresh;
                        let log = own + 0.5 * previous;
                        previous = own.max(0.0);
                        log
                    }
                }
            })
            .collect()
    }
}

/// Returns, in one run of ten, a Pareto excess. Its tail has no variance, so it is
/// cut at a hundredfold time.
pub(super) fn stall(generator: &mut Generator) -> f64 {
    if generator.unit() >= 0.1 {
        return 0.0;
    }
    let pareto = (1.0 - generator.unit()).powf(-1.0 / 1.5) - 1.0;
    (1.0 + 0.1 * pareto).ln().min(100f64.ln())
}

/// Shift, in sigma, of the typical difference of a run to two others by a tenth of stalls. From a
/// simulation of 30,000 blocks at s_d 3%.
const ONE_TAIL_SHIFT: f64 = 0.156;

/// A study whose truth is known.
#[derive(Debug, Clone)]
pub(crate) struct Study<'a> {
    pub schedule: Schedule,
    pub blocks: usize,
    /// True log-ratio of each slot to a common base; missing ones are 0.
    pub effects: &'a [f64],
    /// The model of the machine.
    pub noise: Noise,
    /// Deviation of one run, log units.
    pub sigma: f64,
}

impl Study<'_> {
    /// Runs the study. Returns times around 60 seconds, and the order of each block.
    pub fn run(&self, generator: &mut Generator) -> Result<(Observations, Vec<Vec<usize>>), ProofError> {
        let slots = self.schedule.slots();
        let orders = self.schedule.blocks(self.blocks);
        let series = self.noise.series(slots * self.blocks, self.sigma, generator);
        let mut rows = vec![vec![0.0; slots]; self.blocks];
        let mut before = None;
        let places =
            orders.iter().enumerate().flat_map(|(b, order)| order.iter().map(move |slot| (b, *slot)));
        for ((block, slot), log) in places.zip(series) {
            let own = self.of_slot(slot, log, generator);
            let dirt = if before.is_some() && before == self.dirty() { 4.0 * self.sigma } else { 0.0 };
            let effect = self.effects.get(slot).copied().unwrap_or(0.0);
            rows[block][slot] = 60.0 * (own + dirt + effect).exp();
            before = Some(slot);
        }
        Ok((Observations::new(slots, &rows)?, orders))
    }
}

impl Study<'_> {
    /// Returns the slot that slows the next run.
    fn dirty(&self) -> Option<usize> {
        (self.noise == Noise::DirtyArm).then_some(1)
    }

    /// Returns a run's log-noise with the part of its slot added.
    fn of_slot(&self, slot: usize, log: f64, generator: &mut Generator) -> f64 {
        let is_reference = self.schedule.arm_of(slot) == self.schedule.reference;
        match self.noise {
            Noise::Unequal if slot == 1 => 3.0 * log,
            Noise::OneTail if slot == 1 => log + stall(generator) - ONE_TAIL_SHIFT * self.sigma,
            Noise::ByBlock if !is_reference => {
                log + std::f64::consts::SQRT_2 * self.sigma * generator.normal()
            }
            _ => log,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_proof::design::Order;
    use plumb_units::median;

    fn mean(values: &[f64]) -> f64 {
        values.iter().sum::<f64>() / values.len() as f64
    }

    fn variance(values: &[f64]) -> f64 {
        let centre = mean(values);
        values.iter().map(|value| (value - centre).powi(2)).sum::<f64>() / (values.len() - 1) as f64
    }

    #[test]
    fn each_model_is_what_it_says() {
        let mut generator = Generator::new(8);
        let mut series = |noise: Noise| noise.series(20_000, 0.02, &mut generator);
        let lag = |x: &[f64]| {
            let centre = mean(x);
            let products = x.windows(2).map(|w| (w[0] - centre) * (w[1] - centre)).sum::<f64>();
            products / (x.len() as f64 * variance(x))
        };
        assert!((variance(&series(Noise::Lognormal)).sqrt() - 0.02).abs() < 0.001);
        let tails = series(Noise::HeavyTails);
        assert!(median(&tails).abs() < 0.005);
        assert!(tails.iter().any(|log| *log > 1.0));
        assert!((lag(&series(Noise::Autocorrelated)) - 0.8).abs() < 0.03);
        assert!(lag(&series(Noise::Bursts)) > 0.4);
        assert!(lag(&series(Noise::CarryOver)) > 0.1);
    }

    #[test]
    fn effects_reach_their_slot() {
        let schedule = Schedule { arms: 2, reference: 0, seed: 1, order: Order::Shuffled };
        let study = Study { schedule, blocks: 50, effects: &[0.0, 0.5], noise: Noise::Drift, sigma: 0.01 };
        let (seen, orders) = study.run(&mut Generator::new(3)).unwrap();
        assert_eq!(orders, schedule.blocks(50));
        assert!((mean(&seen.log_ratios(1, 0).unwrap()) - 0.5).abs() < 0.02);
    }
}
