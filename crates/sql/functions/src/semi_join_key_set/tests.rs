use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Date32Array, Int32Array, Int64Array, StringArray};
use proptest::prelude::*;

use super::KeySet;

proptest! {
    #[test]
    fn a_set_has_all_its_keys(keys in prop::collection::vec(any::<i64>(), 0..200), shift in 0_u32..60) {
        let keys: Vec<i64> = keys.into_iter().map(|key| key >> shift).collect();
        let set = KeySet::from_keys(&keys);
        prop_assert!(keys.iter().all(|key| set.may_contain(*key)));
        let others: Vec<i64> = keys.iter().map(|key| key.wrapping_mul(3)).chain([i64::MIN, 0, i64::MAX]).collect();
        let words = set.test_values(&others);
        for (row, value) in others.iter().enumerate() {
            prop_assert_eq!(words[row / 64] >> (row % 64) & 1 == 1, set.may_contain(*value), "{}", value);
        }
        prop_assert_eq!(KeySet::from_bytes(&set.to_bytes()), Some(set));
    }

    #[test]
    fn bytes_of_nobody_are_no_set_or_one_that_goes_the_same_way(bytes in prop::collection::vec(any::<u8>(), 0..200), value in any::<i64>()) {
        if let Some(set) = KeySet::from_bytes(&bytes) {
            let has = set.may_contain(value);
            prop_assert_eq!(KeySet::from_bytes(&set.to_bytes()).map(|again| again.may_contain(value)), Some(has));
        }
    }
}

#[test]
fn keys_near_each_other_are_told_from_all_others() {
    let keys: Vec<i64> = (0..1_000).map(|key| key * 7 - 3_000).collect();
    let set = KeySet::from_keys(&keys);
    let expected = |value: i64| keys.contains(&value);
    assert!((-4_000..5_000).all(|value| set.may_contain(value) == expected(value)));
    assert!(!set.may_contain(i64::MIN) && !set.may_contain(i64::MAX));
}

#[test]
fn few_seem_to_be_among_keys_far_apart() {
    let key = |number: i64| number.wrapping_mul(1_000_003_000_017);
    let keys: Vec<i64> = (0..100_000).map(key).collect();
    let set = KeySet::from_keys(&keys);
    let wrong = (100_000..200_000).filter(|number| set.may_contain(key(*number))).count();
    assert!(wrong < 3_000, "{wrong} of 100,000");
}

#[test]
fn rows_are_tested_by_their_type_and_null_has_no_key() {
    let set = KeySet::from_keys(&[3, 5]);
    let has = |array: ArrayRef| {
        let has = set.test_array(&array).expect("it has such keys");
        assert_eq!(has.null_count(), 0);
        has.values().iter().collect::<Vec<_>>()
    };
    assert_eq!(has(Arc::new(Int32Array::from(vec![Some(3), None, Some(4), Some(5)]))), [true, false, false, true]);
    assert_eq!(has(Arc::new(Int64Array::from(vec![5, 6]).slice(1, 1))), [false]);
    assert_eq!(has(Arc::new(Date32Array::from(vec![Some(5)]))), [true]);
    assert_eq!(has(Arc::new(Int64Array::from(Vec::<i64>::new()))), Vec::<bool>::new());
    assert!(set.test_array(&(Arc::new(StringArray::from(vec!["3"])) as ArrayRef)).is_none());
    assert!(!KeySet::from_keys(&[]).may_contain(0));
}
