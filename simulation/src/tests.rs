//! Runs of many seeds, and proof that every injected bug is detected.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use types::{Clock, InjectedBug, SystemClock};

use super::simulated_world::SimulatedWorld;
use super::simulation_driver::{RunParameters, RunStatistics, run};

const STEPS: usize = 800;
/// Seeds of an ordinary run, which [`TIME_MAX`] limits, and of a nightly one.
const SEEDS: u64 = 300;
const SEEDS_NIGHTLY: u64 = 5_000;
const TIME_MAX: Duration = Duration::from_secs(45);
/// Seeds within which a injected bug must be detected.
const DETECTION_SEEDS_MAX: u64 = 60;

fn plan(seed: u64) -> RunParameters {
    RunParameters { seed, steps: STEPS, disk_acknowledges_early: false }
}

/// Runs a plan; after a failure it prints the last log lines and the seed.
fn run_reporting_failure(plan: RunParameters) -> RunStatistics {
    let world = SimulatedWorld::new(plan.seed);
    catch_unwind(AssertUnwindSafe(|| run(plan, &world))).unwrap_or_else(|panic| {
        let last: Vec<String> = world.log.lock().drain(..).collect();
        println!("{}", last.join("\n"));
        println!("again: KILN_SEED={} cargo test --workspace --lib -- tests::seeds", plan.seed);
        resume_unwind(panic)
    })
}

#[test]
fn seeds() {
    if let Some(seed) = std::env::var("KILN_SEED").ok().and_then(|seed| seed.parse().ok()) {
        println!("{:?}", run_reporting_failure(plan(seed)));
        return;
    }
    let is_night = std::env::var_os("KILN_NIGHTLY").is_some();
    let clock = SystemClock::new();
    let mut all = RunStatistics::default();
    let mut seeds = 0;
    for seed in 1..=if is_night { SEEDS_NIGHTLY } else { SEEDS } {
        if !is_night && TIME_MAX < clock.monotonic() {
            break;
        }
        let one = run_reporting_failure(plan(seed));
        seeds += 1;
        all.steps += one.steps;
        all.commits += one.commits;
        all.crashes += one.crashes;
        all.lost_disks += one.lost_disks;
        all.stale_starts += one.stale_starts;
        all.faults += one.faults;
    }
    println!("{seeds} seeds in {:?}: {all:?}", clock.monotonic());
    assert!(
        0 < all.commits && 0 < all.crashes && 0 < all.lost_disks && 0 < all.stale_starts && 0 < all.faults,
        "something happens: {all:?}"
    );
}

#[test]
fn a_seed_is_a_history() {
    for seed in 1..4 {
        let worlds = [SimulatedWorld::new(seed), SimulatedWorld::new(seed)];
        let tallies = worlds.each_ref().map(|world| run(plan(seed), world));
        assert_eq!(tallies[0], tallies[1]);
        assert_eq!(*worlds[0].log.lock(), *worlds[1].log.lock());
    }
}

#[test]
fn every_forgotten_rule_is_noticed() {
    let lies = |seed| RunParameters { disk_acknowledges_early: true, ..plan(seed) };
    let mut unnoticed = Vec::new();
    let notice = |what: &str, plan: &dyn Fn(u64) -> RunParameters| {
        let noticed = (1..=DETECTION_SEEDS_MAX).find(|seed| {
            let world = SimulatedWorld::new(*seed);
            catch_unwind(AssertUnwindSafe(|| run(plan(*seed), &world))).is_err()
        });
        println!("{what}: noticed by seed {noticed:?}");
        noticed.is_some()
    };
    for bug in InjectedBug::ALL {
        let _on = bug.activate();
        let what = format!("{bug:?}");
        if !notice(&what, &plan) {
            unnoticed.push(what);
        }
    }
    if !notice("AcknowledgedBeforeDurable", &lies) {
        unnoticed.push("AcknowledgedBeforeDurable".to_owned());
    }
    assert!(unnoticed.is_empty(), "not noticed: {unnoticed:?}");
}
