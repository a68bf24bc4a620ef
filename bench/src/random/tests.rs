use super::*;

#[test]
fn numbers_stay_within_their_bounds_and_reach_them() {
    let random = RandomGenerator::new(1);
    let drawn: Vec<i64> = (0..10_000).map(|_| random.next_in_range(-3, 3)).collect();
    assert_eq!((drawn.iter().min(), drawn.iter().max()), (Some(&-3), Some(&3)));
    assert!((0..1_000).all(|_| random.next_below(1) == 0 && random.next_fraction() < 1.0));
    assert_eq!(random.next_text(100).len(), 100);
    assert_eq!(RandomGenerator::new(7).next_text(20), RandomGenerator::new(7).next_text(20));
}

#[test]
fn the_first_ranks_are_as_frequent_as_zipf_says() {
    let (random, zipf) = (RandomGenerator::new(2), ZipfDistribution::new(1_000));
    let mut counts = vec![0_u32; 1_000];
    let draws = 200_000;
    (0..draws).for_each(|_| counts[zipf.draw(&random) as usize] += 1);
    let zeta: f64 = (1..=1_000).map(|rank| f64::from(rank).powf(-0.99)).sum();
    // Gray's method is exact for the first two ranks.
    for (rank, count) in counts.iter().take(2).enumerate() {
        let expected = f64::from(draws) * (rank as f64 + 1.0).powf(-0.99) / zeta;
        assert!((f64::from(*count) / expected - 1.0).abs() < 0.05, "rank {rank}: {count} of {expected}");
    }
    let last: u32 = counts[500..].iter().sum();
    assert!(last < draws as u32 / 8, "the last half is rare: {last}");
}

#[test]
fn scrambling_spreads_the_frequent_numbers() {
    let (random, zipf) = (RandomGenerator::new(3), ZipfDistribution::new(10_000));
    let upper = (0..10_000).filter(|_| zipf.draw_scrambled(&random) >= 5_000).count();
    assert!((2_000..8_000).contains(&upper), "{upper}");
    assert!((0..10_000).all(|_| ZipfDistribution::new(1).draw_scrambled(&random) == 0));
}
