use super::*;

#[test]
fn percentiles_are_exact_to_a_step() {
    let mut latencies = LatencyHistogram::default();
    (1..=10_000).for_each(|micros| latencies.record(Duration::from_micros(micros)));
    for (share, exact) in [(0.5, 5_000.0), (0.95, 9_500.0), (0.99, 9_900.0)] {
        let found = latencies.percentile(share).as_micros() as f64;
        assert!((exact..exact * 1.016).contains(&found), "{share}: {found}");
    }
    assert_eq!(latencies.percentile(1.0), Duration::from_millis(10));
    assert_eq!(latencies.mean(), Duration::from_nanos(5_000_500));
}

#[test]
fn every_time_is_in_the_slot_that_reaches_it() {
    for micros in (0..200).chain([1_000, 65_535, 65_536, 1 << 40, u64::MAX >> 1]) {
        let upper = upper_bound(bucket(micros));
        assert!(micros <= upper && upper as f64 <= micros as f64 * 1.016 + 1.0, "{micros}: {upper}");
    }
}

#[test]
fn two_together_have_the_operations_of_both() {
    let (mut left, mut right) = (LatencyHistogram::default(), LatencyHistogram::default());
    left.record(Duration::from_micros(5));
    right.record(Duration::from_millis(5));
    left.merge(&right);
    assert_eq!((left.count(), left.max()), (2, Duration::from_millis(5)));
    assert_eq!(left.percentile(0.5), Duration::from_micros(5));
    assert_eq!(LatencyHistogram::default().percentile(0.5), Duration::ZERO);
}
