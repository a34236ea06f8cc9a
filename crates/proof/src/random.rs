//! Random numbers that never change, because a seed in a bundle must give the
//! same order in ten years.
//!
//! xoshiro256++ (Blackman, Vigna 2019), its state filled by SplitMix64 (Steele, Lea,
//! Flood 2014). A library's generator may change its stream between versions; this one
//! never does. Not for secrets.

use plumb_units::SplitMix;

/// A stream of random numbers that follows from its seed.
#[derive(Debug, Clone)]
pub struct Generator {
    state: [u64; 4],
    spare: Option<f64>,
}

impl Generator {
    /// Returns the stream of a seed.
    pub fn new(seed: u64) -> Self {
        let mut filler = SplitMix(seed);
        let state = std::array::from_fn(|_| filler.draw());
        Self { state, spare: None }
    }

    /// Returns the stream of one part of a seeded whole: block 7 has the same order, with or
    /// without six blocks before it.
    pub fn of_part(seed: u64, part: u64) -> Self {
        Self::new(SplitMix::at(seed, 1) ^ part.wrapping_mul(0xD134_2543_DE82_EF95))
    }

    /// Returns the next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        result
    }

    /// Draws uniformly from [0, 1), with 53 bits.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Draws uniformly from 0..bound, without bias (Lemire 2019). `bound` is above 0.
    pub fn below(&mut self, bound: usize) -> usize {
        assert!(bound > 0, "nothing lies below 0");
        let bound = bound as u64;
        let threshold = bound.wrapping_neg() % bound;
        loop {
            let wide = u128::from(self.bits()) * u128::from(bound);
            if wide as u64 >= threshold {
                return (wide >> 64) as usize;
            }
        }
    }

    /// Draws from the standard normal, by the polar method (Marsaglia, Bray 1964).
    pub fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        loop {
            let (x, y) = (2.0 * self.unit() - 1.0, 2.0 * self.unit() - 1.0);
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                let factor = (-2.0 * square.ln() / square).sqrt();
                self.spare = Some(y * factor);
                return x * factor;
            }
        }
    }

    /// Shuffles with every order equally likely (Fisher, Yates 1938; Durstenfeld 1964).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_of_a_seed_never_changes() {
        let mut generator = Generator::new(42);
        let first: Vec<u64> = (0..3).map(|_| generator.bits()).collect();
        assert_eq!(
            first,
            [15_021_278_609_987_233_951, 5_881_210_131_331_364_753, 18_149_643_915_985_481_100]
        );
    }

    #[test]
    fn uniform_and_normal_have_their_moments() {
        let mut generator = Generator::new(7);
        let draws: Vec<f64> = (0..40_000).map(|_| generator.normal()).collect();
        let mean = draws.iter().sum::<f64>() / 40_000.0;
        let square = draws.iter().map(|x| x * x).sum::<f64>() / 40_000.0;
        assert!(mean.abs() < 0.02);
        assert!((square - 1.0).abs() < 0.03);
        let mut counts = [0usize; 5];
        (0..10_000).for_each(|_| counts[generator.below(5)] += 1);
        assert!(counts.iter().all(|count| (1_850..2_150).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_shuffle_keeps_every_item() {
        let mut items: Vec<usize> = (0..50).collect();
        Generator::of_part(3, 9).shuffle(&mut items);
        assert_ne!(items, (0..50).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..50).collect::<Vec<_>>());
    }
}
