//! Laws of figures: the next figure of a simulated machine, as the logarithm of a cost.
//!
//! A law is a function of the run about to be drawn: its arm, its block, the arm before it. Laws
//! with memory (a slow neighbour, a burst, an effect that wanders) keep it in [`Memory`]. A figure
//! that is NaN is a run that failed.

use plumb_proof::random::Generator;

/// Standard deviation of a run's logarithm, unless a law says otherwise.
pub(super) const NOISE: f64 = 0.03;

/// A law: draws the figure of a run.
pub(super) type Law = Box<dyn Fn(&mut Run<'_>) -> f64 + Send + Sync>;

/// State of a machine that outlives a run.
pub(super) struct Memory {
    /// Noise that resembles the run before, of deviation 1.
    state: f64,
    /// Effect that resembles the block before, of deviation 1, and its block.
    effect: (f64, usize),
    burst_left: usize,
    trend: f64,
    phase: f64,
}

impl Memory {
    pub(super) fn new(generator: &mut Generator) -> Memory {
        let (state, effect) = (generator.normal(), (generator.normal(), 0));
        Memory { state, effect, burst_left: 0, trend: generator.unit() - 0.5, phase: generator.unit() }
    }
}

/// A run about to be drawn.
pub(super) struct Run<'a> {
    pub(super) generator: &'a mut Generator,
    pub(super) memory: &'a mut Memory,
    pub(super) block: usize,
    /// Place in the study, from 0 to 1.
    pub(super) at: f64,
    pub(super) arm: usize,
    /// Levels of the arm's factors.
    pub(super) levels: &'a [usize],
    /// Arm of the run before; none for the first.
    pub(super) before: Option<usize>,
}

impl Run<'_> {
    /// Draws normal noise of a deviation.
    pub(super) fn normal(&mut self, deviation: f64) -> f64 {
        deviation * self.generator.normal()
    }

    pub(super) fn noise(&mut self) -> f64 {
        self.normal(NOISE)
    }

    /// Returns the logarithm of a factor with a probability, otherwise 0.
    pub(super) fn sometimes(&mut self, probability: f64, factor: f64) -> f64 {
        if self.generator.unit() < probability { factor.ln() } else { 0.0 }
    }

    /// Draws the usual noise with stalls: a tenth of the runs takes three times as long.
    pub(super) fn stalls(&mut self) -> f64 {
        self.noise() + self.sometimes(0.1, 3.0)
    }

    /// Draws an exponential variable of mean 1.
    pub(super) fn exponential(&mut self) -> f64 {
        -(1.0 - self.generator.unit()).ln()
    }

    /// Returns a value in the treatment's runs, otherwise 0.
    pub(super) fn treated(&self, value: f64) -> f64 {
        if self.arm == 1 { value } else { 0.0 }
    }

    /// Draws noise that resembles the run before.
    pub(super) fn resembling(&mut self, rho: f64) -> f64 {
        self.memory.state = rho * self.memory.state + (1.0 - rho * rho).sqrt() * self.generator.normal();
        NOISE * self.memory.state
    }

    /// Returns an effect that resembles that of the block before, of deviation 1.
    pub(super) fn wandering(&mut self, rho: f64) -> f64 {
        if self.memory.effect.1 != self.block {
            let fresh = (1.0 - rho * rho).sqrt() * self.generator.normal();
            self.memory.effect = (rho * self.memory.effect.0 + fresh, self.block);
        }
        self.memory.effect.0
    }

    /// Draws noise with a trend and a slow wave.
    pub(super) fn drifting(&mut self) -> f64 {
        let wave = (std::f64::consts::TAU * (3.0 * self.at + self.memory.phase)).sin();
        self.noise() + 0.3 * self.memory.trend * self.at + 2.0 * NOISE * wave
    }

    /// Draws noise with slow stretches of one to six runs.
    pub(super) fn bursts(&mut self) -> f64 {
        if self.memory.burst_left == 0 && self.generator.unit() < 0.05 {
            self.memory.burst_left = 1 + self.generator.below(6);
        }
        let slow = if self.memory.burst_left > 0 { 0.15 } else { 0.0 };
        self.memory.burst_left = self.memory.burst_left.saturating_sub(1);
        self.noise() + slow
    }

    /// Draws a count of a mean (Poisson), by the times between events.
    pub(super) fn count(&mut self, mean: f64) -> f64 {
        let (mut time, mut count) = (self.exponential(), 0.0);
        while time < mean {
            time += self.exponential();
            count += 1.0;
        }
        count
    }

    /// Reads a cost on a clock of whole steps, with noise.
    pub(super) fn clocked(&mut self, cost: f64, step: f64, deviation: f64) -> f64 {
        let exact = cost * self.normal(deviation).exp();
        (step * (exact / step).round()).ln()
    }
}
