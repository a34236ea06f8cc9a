//! Counters that only grow: the growth between two readings, and the sum of two periods.
//!
//! [`counters!`](crate::counters) names the fields of a struct once, and the struct is a counter
//! itself. A field left out does not compile, so a new counter is in every difference and sum.

use crate::{Bytes, Nanos};

/// A counter, or several that are read together.
pub trait Counter {
    /// Returns the growth since an earlier reading; zero where the counter fell.
    #[must_use]
    fn grown(&self, earlier: &Self) -> Self;

    /// Adds the growth of the next period.
    fn grow(&mut self, next: &Self);
}

impl Counter for u64 {
    fn grown(&self, earlier: &u64) -> u64 {
        self.saturating_sub(*earlier)
    }

    fn grow(&mut self, next: &u64) {
        *self = self.saturating_add(*next);
    }
}

impl Counter for Bytes {
    fn grown(&self, earlier: &Bytes) -> Bytes {
        Bytes(self.0.grown(&earlier.0))
    }

    fn grow(&mut self, next: &Bytes) {
        self.0.grow(&next.0);
    }
}

impl Counter for Nanos {
    fn grown(&self, earlier: &Nanos) -> Nanos {
        Nanos(self.0.grown(&earlier.0))
    }

    fn grow(&mut self, next: &Nanos) {
        self.0.grow(&next.0);
    }
}

/// Known only where both sides are.
impl<C: Counter> Counter for Option<C> {
    fn grown(&self, earlier: &Option<C>) -> Option<C> {
        self.as_ref().zip(earlier.as_ref()).map(|(later, earlier)| later.grown(earlier))
    }

    fn grow(&mut self, next: &Option<C>) {
        match (&mut *self, next) {
            (Some(sum), Some(next)) => sum.grow(next),
            _ => *self = None,
        }
    }
}

impl<C: Counter, const COUNT: usize> Counter for [C; COUNT] {
    fn grown(&self, earlier: &[C; COUNT]) -> [C; COUNT] {
        std::array::from_fn(|place| self[place].grown(&earlier[place]))
    }

    fn grow(&mut self, next: &[C; COUNT]) {
        self.iter_mut().zip(next).for_each(|(sum, next)| sum.grow(next));
    }
}

/// A figure read with counters that is no counter: a period has the one of its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Latest(pub u64);

impl Counter for Latest {
    fn grown(&self, _: &Latest) -> Latest {
        *self
    }

    fn grow(&mut self, next: &Latest) {
        *self = *next;
    }
}

/// Makes a counter of a struct whose fields are counters, `counters!(Moved { requests, bytes })`,
/// with methods `since` and `add`. A field that wraps names its own difference: `time: elapsed`.
#[macro_export]
macro_rules! counters {
    (@grown $later:expr, $earlier:expr) => { $crate::Counter::grown(&$later, &$earlier) };
    (@grown $later:expr, $earlier:expr, $difference:path) => { $difference($later, $earlier) };
    ($name:ident { $($field:ident $(: $difference:path)?),+ $(,)? }) => {
        impl $name {
            /// Returns the growth since an earlier reading.
            #[must_use]
            pub fn since(&self, earlier: &$name) -> $name {
                $name { $($field: $crate::counters!(@grown self.$field, earlier.$field $(, $difference)?)),+ }
            }

            /// Adds the growth of the next period.
            pub fn add(&mut self, next: &$name) {
                $($crate::Counter::grow(&mut self.$field, &next.$field);)+
            }
        }

        impl $crate::Counter for $name {
            fn grown(&self, earlier: &$name) -> $name {
                self.since(earlier)
            }

            fn grow(&mut self, next: &$name) {
                self.add(next);
            }
        }
    };
}
