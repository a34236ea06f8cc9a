//! SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014): numbers
//! from a seed, to shuffle, to sample and to fill.
//!
//! The streams never change: seeds of tests, of calibrations and of bundles name them. Not for
//! secrets.

/// Distance between two states of a stream.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// A stream of numbers, by its state.
#[derive(Debug, Clone, Default)]
pub struct SplitMix(pub u64);

impl SplitMix {
    /// Returns the `number`th number of the stream of a seed, counted from 1.
    #[inline]
    pub const fn at(seed: u64, number: u64) -> u64 {
        mix(seed.wrapping_add(STEP.wrapping_mul(number)))
    }

    /// Returns the next number.
    #[inline]
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// Returns the next number below a bound above 0; the bias is below `bound` / 2^64.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.draw() % bound
    }

    /// Returns one of some choices.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    /// Puts items in random order, each order alike (Fisher, Yates 1938).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last as u64 + 1) as usize;
            items.swap(last, other);
        }
    }
}

/// The finaliser of SplitMix64: neighbours get unrelated values.
#[inline]
pub const fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_of_a_seed_never_changes() {
        let mut random = SplitMix(1_234_567);
        // The published test vector for this seed.
        let first = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!([(); 5].map(|()| random.draw()), first);
        assert_eq!([1, 2, 3, 4, 5].map(|number| SplitMix::at(1_234_567, number)), first);
        assert_eq!(SplitMix(1_234_567).below(1000), 317);
    }

    #[test]
    fn a_shuffle_keeps_every_item() {
        let mut items: Vec<usize> = (0..50).collect();
        SplitMix(3).shuffle(&mut items);
        assert_ne!(items, (0..50).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..50).collect::<Vec<_>>());
    }
}
