//! Inputs of terminals: non-uniform random numbers and names, clauses 2.1.6 and 4.3.2.

use crate::random::RandomGenerator;

/// Number of items.
pub(super) const ITEM_COUNT: i64 = 100_000;
/// Districts per warehouse, customers per district, and initial orders per district.
pub(super) const DISTRICTS_PER_WAREHOUSE: i64 = 10;
pub(super) const CUSTOMERS_PER_DISTRICT: i64 = 3_000;
pub(super) const ORDERS_PER_DISTRICT: i64 = 3_000;
/// First order number that is undelivered after loading.
pub(super) const FIRST_NEW_ORDER: i64 = 2_101;

/// Constants C of the non-uniform distribution; for names they differ between load and run, as clause 2.1.6.1
/// requires.
const C_CUSTOMER: i64 = 259;
const C_ITEM: i64 = 7_911;
const C_LAST_LOAD: i64 = 157;
const C_LAST_RUN: i64 = 223;

/// Draws NURand(a, first, last) with the constant `c`.
fn non_uniform(random: &RandomGenerator, a: i64, c: i64, first: i64, last: i64) -> i64 {
    ((random.next_in_range(0, a) | random.next_in_range(first, last)) + c) % (last - first + 1) + first
}

/// Draws a customer of a district.
pub(super) fn draw_customer(random: &RandomGenerator) -> i32 {
    non_uniform(random, 1_023, C_CUSTOMER, 1, CUSTOMERS_PER_DISTRICT) as i32
}

pub(super) fn draw_item(random: &RandomGenerator) -> i32 {
    non_uniform(random, 8_191, C_ITEM, 1, ITEM_COUNT) as i32
}

/// Draws the last name of a customer to look up.
pub(super) fn draw_last_name(random: &RandomGenerator) -> String {
    syllable_name(non_uniform(random, 255, C_LAST_RUN, 0, 999))
}

/// Returns the last name of a loaded customer: the first thousand have one each of all names.
pub(super) fn draw_loaded_last_name(random: &RandomGenerator, customer: i64) -> String {
    syllable_name(if customer <= 1_000 { customer - 1 } else { non_uniform(random, 255, C_LAST_LOAD, 0, 999) })
}

/// Returns the last name for a number from 0 to 999: one syllable per digit.
fn syllable_name(number: i64) -> String {
    const SYLLABLES: [&str; 10] = ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];
    let digit = |tens: i64| SYLLABLES[(number / tens % 10) as usize];
    format!("{}{}{}", digit(100), digit(10), digit(1))
}

/// Draws `length` digits.
pub(super) fn draw_digits(random: &RandomGenerator, length: usize) -> String {
    (0..length).map(|_| char::from(b'0' + random.next_below(10) as u8)).collect()
}

pub(super) fn draw_zip_code(random: &RandomGenerator) -> String {
    format!("{}11111", draw_digits(random, 4))
}

/// Draws a text; a tenth of them contain the word ORIGINAL.
pub(super) fn draw_original_data(random: &RandomGenerator) -> String {
    let mut data = random.next_text_between(26, 50);
    if random.next_below(10) == 0 {
        let at = random.next_below(data.len() as u64 - 8) as usize;
        data.replace_range(at..at + 8, "ORIGINAL");
    }
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_within_the_specifications_bounds() {
        let random = RandomGenerator::new(1);
        assert_eq!(
            (syllable_name(0), syllable_name(371), syllable_name(999)),
            ("BARBARBAR".into(), "PRICALLYOUGHT".into(), "EINGEINGEING".into())
        );
        assert_eq!(draw_loaded_last_name(&random, 1_000), "EINGEINGEING");
        for _ in 0..10_000 {
            assert!((1..=3_000).contains(&draw_customer(&random)));
            assert!((1..=100_000).contains(&draw_item(&random)));
            assert!((26..=50).contains(&draw_original_data(&random).len()));
        }
        assert_eq!(draw_zip_code(&random).len(), 9);
    }

    #[test]
    fn some_customers_are_asked_for_more_often() {
        let random = RandomGenerator::new(2);
        let mut counts = vec![0_u32; 3_001];
        (0..300_000).for_each(|_| counts[draw_customer(&random) as usize] += 1);
        let most = *counts.iter().max().unwrap();
        assert!(most > 300, "uniform would be 100 each: {most}");
    }
}
