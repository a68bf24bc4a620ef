use xxhash_rust::xxh3::xxh3_64;

use super::*;

fn sketch(values: std::ops::Range<u64>) -> Hll {
    let mut sketch = Hll::default();
    values.for_each(|value| sketch.add_hash(xxh3_64(&value.to_le_bytes())));
    sketch
}

#[test]
fn small_sets_are_counted_exactly() {
    for count in [0, 1, 2, 100, 256] {
        assert_eq!(sketch(0..count).estimate(), count);
    }
}

#[test]
fn estimates_are_within_three_percent_at_every_size() {
    for count in [257, 300, 1_000, 3_000, 6_000, 10_000, 20_000, 60_000, 200_000, 1_000_000] {
        let estimate = sketch(0..count).estimate();
        let error = (estimate as f64 - count as f64).abs() / count as f64;
        assert!(error < 0.03, "{count} estimated as {estimate}, off by {error}");
    }
}

#[test]
fn merged_parts_equal_the_whole() {
    for (middle, end) in [(100, 200), (200, 5_000), (4_900, 5_000), (3_000, 50_000)] {
        let mut merged = sketch(0..middle);
        merged.merge(&sketch(middle / 2..end));
        assert_eq!(merged, sketch(0..end));
        let mut other_way = sketch(middle / 2..end);
        other_way.merge(&sketch(0..middle));
        assert_eq!(other_way, merged);
    }
}

#[test]
fn a_sketch_survives_its_stored_form() {
    for count in [0, 5, 256, 257, 10_000] {
        let whole = sketch(0..count);
        let bytes = rmp_serde::to_vec(&whole).expect("serialises");
        assert_eq!(rmp_serde::from_slice::<Hll>(&bytes).expect("deserialises"), whole);
        let text = serde_json::to_string(&whole).expect("serialises");
        assert_eq!(serde_json::from_str::<Hll>(&text).expect("deserialises"), whole);
    }
}

#[test]
fn damaged_sketches_are_errors() {
    for bytes in [&[][..], &[2], &[0, 1, 2], &[1; 4_096], &[1, 255]] {
        let stored = rmp_serde::to_vec(&serde_json::Value::from(bytes.to_vec())).expect("serialises");
        assert!(rmp_serde::from_slice::<Hll>(&stored).is_err(), "{bytes:?}");
    }
}
