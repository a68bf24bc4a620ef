//! Inputs of terminals: non-uniform random numbers and names, clauses 2.1.6 and 4.3.2.

use crate::random::RandomGenerator;

/// Number of items.
pub(super) const ITEMS: i64 = 100_000;
/// Districts per warehouse, customers per district, and initial orders per district.
pub(super) const DISTRICTS: i64 = 10;
pub(super) const CUSTOMERS: i64 = 3_000;
pub(super) const ORDERS: i64 = 3_000;
/// First order number that is undelivered after loading.
pub(super) const FIRST_NEW_ORDER: i64 = 2_101;

/// Constants C of the non-uniform distribution; for names they differ between load and run, as clause 2.1.6.1
/// requires.
const C_CUSTOMER: i64 = 259;
const C_ITEM: i64 = 7_911;
const C_LAST_LOAD: i64 = 157;
const C_LAST_RUN: i64 = 223;

/// Draws NURand(a, first, last) with the constant `c`.
fn non_uniform(chance: &RandomGenerator, a: i64, c: i64, first: i64, last: i64) -> i64 {
    ((chance.in_range(0, a) | chance.in_range(first, last)) + c) % (last - first + 1) + first
}

/// Draws a customer of a district.
pub(super) fn customer(chance: &RandomGenerator) -> i32 {
    non_uniform(chance, 1_023, C_CUSTOMER, 1, CUSTOMERS) as i32
}

pub(super) fn item(chance: &RandomGenerator) -> i32 {
    non_uniform(chance, 8_191, C_ITEM, 1, ITEMS) as i32
}

/// Draws the last name of a customer to look up.
pub(super) fn last_name(chance: &RandomGenerator) -> String {
    name(non_uniform(chance, 255, C_LAST_RUN, 0, 999))
}

/// Returns the last name of a loaded customer: the first thousand have one each of all names.
pub(super) fn loaded_name(chance: &RandomGenerator, customer: i64) -> String {
    name(if customer <= 1_000 { customer - 1 } else { non_uniform(chance, 255, C_LAST_LOAD, 0, 999) })
}

/// Returns the last name for a number from 0 to 999: one syllable per digit.
fn name(number: i64) -> String {
    const SYLLABLES: [&str; 10] = ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];
    let digit = |tens: i64| SYLLABLES[(number / tens % 10) as usize];
    format!("{}{}{}", digit(100), digit(10), digit(1))
}

/// Draws `length` digits.
pub(super) fn digits(chance: &RandomGenerator, length: usize) -> String {
    (0..length).map(|_| char::from(b'0' + chance.below(10) as u8)).collect()
}

pub(super) fn zip(chance: &RandomGenerator) -> String {
    format!("{}11111", digits(chance, 4))
}

/// Draws a text; a tenth of them contain the word ORIGINAL.
pub(super) fn original_data(chance: &RandomGenerator) -> String {
    let mut data = chance.text_between(26, 50);
    if chance.below(10) == 0 {
        let at = chance.below(data.len() as u64 - 8) as usize;
        data.replace_range(at..at + 8, "ORIGINAL");
    }
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_within_the_specifications_bounds() {
        let chance = RandomGenerator::new(1);
        assert_eq!(
            (name(0), name(371), name(999)),
            ("BARBARBAR".into(), "PRICALLYOUGHT".into(), "EINGEINGEING".into())
        );
        assert_eq!(loaded_name(&chance, 1_000), "EINGEINGEING");
        for _ in 0..10_000 {
            assert!((1..=3_000).contains(&customer(&chance)));
            assert!((1..=100_000).contains(&item(&chance)));
            assert!((26..=50).contains(&original_data(&chance).len()));
        }
        assert_eq!(zip(&chance).len(), 9);
    }

    #[test]
    fn some_customers_are_asked_for_more_often() {
        let chance = RandomGenerator::new(2);
        let mut counts = vec![0_u32; 3_001];
        (0..300_000).for_each(|_| counts[customer(&chance) as usize] += 1);
        let most = *counts.iter().max().unwrap();
        assert!(most > 300, "uniform would be 100 each: {most}");
    }
}
