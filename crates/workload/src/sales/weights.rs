//! Distribution of sales over days, stores and products, and the prices.
//!
//! The source gives the columns, the numbers of stores and products and their ten weighted classes,
//! the order holiday > weekend > week day, the split of quantities 50/25/25 and the price weights
//! 1, 4/5, 3/5. It gives no weight of a day or a class, no quantity and no price. Those are chosen
//! here; quantities and prices so that a row takes 42 bytes on average, as it reports.

use crate::chunks::mix;
use plumb_types::{DateTime, Weekday};

/// Number of stores, as the source states.
pub(super) const STORE_COUNT: u32 = 2_000;

/// Number of products, as the source states.
pub(super) const PRODUCT_COUNT: u32 = 16_700;

/// Number of classes of either, as the source states.
pub(super) const CLASS_COUNT: u32 = 10;

/// The month, September 1995, is chosen here. Its Labor Day weekend is the long one of the
/// source. A month of 30 days makes 1% of all combinations 10.02 million, closer to the reported
/// 10 million than 31 days.
const YEAR: u16 = 1995;
const MONTH: u8 = 9;
pub(super) const DAY_COUNT: u8 = 30;

/// Saturday the 2nd to Labor Day, Monday the 4th.
const HOLIDAYS: std::ops::RangeInclusive<u8> = 2..=4;

/// Weights of a day: the source has the order, the numbers are chosen here.
const HOLIDAY_WEIGHT: u64 = 5;
const WEEKEND_WEIGHT: u64 = 3;
const WEEKDAY_WEIGHT: u64 = 2;

/// Percent of the rows for each class of 200 stores. The source has differing classes; the numbers
/// are chosen here. The first class sells four times as much as the last.
pub(super) const STORE_CLASSES: [u8; CLASS_COUNT as usize] = [20, 16, 13, 11, 9, 8, 7, 6, 5, 5];

/// Percent of the rows for each class of 1,670 products: chosen here, and steeper than for stores.
/// The first class sells fifteen times as much as the last.
pub(super) const PRODUCT_CLASSES: [u8; CLASS_COUNT as usize] = [30, 20, 13, 10, 8, 6, 5, 4, 2, 2];

/// Largest quantity of a row at each price. Quantities start at 1 and are equally likely, so the
/// means are 10, 5 and 5: the source's 50%, 25% and 25%. The sizes are chosen here.
pub(super) const QUANTITY_MAX: Quantities = Quantities { regular: 19, discount: 9, promo: 9 };
const _: () = assert!(1 + QUANTITY_MAX.regular == 2 * (1 + QUANTITY_MAX.discount));
const _: () = assert!(QUANTITY_MAX.discount == QUANTITY_MAX.promo);

/// A quantity for each of the three prices.
pub(super) struct Quantities {
    pub(super) regular: u64,
    pub(super) discount: u64,
    pub(super) promo: u64,
}

/// Regular prices of 1.00 to 100.00, chosen here; in steps of 5 cents, so that four and
/// three fifths are whole cents.
const PRICE_STEP_CENTS: u32 = 5;
const PRICE_STEPS_MIN: u32 = 20;
const PRICE_STEPS_MAX: u32 = 2_000;

/// Returns the regular price in cents of a product, whose index is its id less 1. The price belongs
/// to the product, not to the seed: another seed is another sample of the same shops.
pub(super) fn price_cents(product: u32) -> u32 {
    // Mixed, so that neighbours have unrelated prices.
    let hash = mix(u64::from(product));
    let steps = PRICE_STEPS_MIN + (hash % u64::from(PRICE_STEPS_MAX - PRICE_STEPS_MIN + 1)) as u32;
    steps * PRICE_STEP_CENTS
}

/// Returns the days of the month in order.
pub(super) fn dates() -> impl Iterator<Item = DateTime> {
    (1..=DAY_COUNT).map(|day| DateTime::date(YEAR, MONTH, day).expect("September has 30 days"))
}

/// Returns the weight of a day's sales, relative to other days.
pub(super) fn day_weight(date: &DateTime) -> u64 {
    if HOLIDAYS.contains(&date.day()) {
        return HOLIDAY_WEIGHT;
    }
    match date.weekday() {
        Weekday::Saturday | Weekday::Sunday => WEEKEND_WEIGHT,
        _ => WEEKDAY_WEIGHT,
    }
}

/// Draws a member of a weighted class: one of a hundred slots names the class, and all members of a
/// class are equally likely. A table of 100 bytes, instead of one entry for each store or product,
/// stays in the first-level cache.
#[derive(Debug)]
pub(super) struct ClassDraw {
    class_of_slot: [u8; 100],
    class_members: u32,
}

impl ClassDraw {
    /// Creates a draw of `count` members, a multiple of ten; `percents` must sum to 100.
    pub(super) fn new(percents: &[u8; CLASS_COUNT as usize], count: u32) -> Self {
        assert_eq!(percents.iter().map(|percent| u32::from(*percent)).sum::<u32>(), 100);
        assert!(count.is_multiple_of(CLASS_COUNT));
        let mut class_of_slot = [0; 100];
        let classes =
            percents.iter().zip(0_u8..).flat_map(|(percent, class)| (0..*percent).map(move |_| class));
        for (slot, class) in class_of_slot.iter_mut().zip(classes) {
            *slot = class;
        }
        ClassDraw { class_of_slot, class_members: count / CLASS_COUNT }
    }

    /// Returns a member, from 0 to below the count; its class is its last decimal digit. The upper
    /// half of `random` draws the class, the lower the member.
    #[inline]
    pub(super) fn draw(&self, random: u64) -> u32 {
        let slot = ((random >> 32) * 100) >> 32;
        let member = ((random & 0xFFFF_FFFF) * u64::from(self.class_members)) >> 32;
        member as u32 * CLASS_COUNT + u32::from(self.class_of_slot[slot as usize])
    }
}
