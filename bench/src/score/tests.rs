use std::time::Duration;

use super::score;

#[test]
fn the_slowest_third_does_not_count() {
    let runs = [Duration::from_secs(4), Duration::from_secs(1), Duration::from_secs(1000)];
    let figure = score(&runs).expect("there are runs");
    assert!((figure.as_secs_f64() - 2.0).abs() < 1e-6);
}

#[test]
fn no_runs_have_no_figure() {
    assert_eq!(score(&[]), None);
}
