use super::*;

const DURATION: Duration = Duration::from_secs(15);

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn reading(holder: &str, version: u64) -> ObservedLease {
    ObservedLease { holder: holder.to_owned(), version: version.to_string() }
}

#[test]
fn the_first_makes_the_lease() {
    assert_eq!(LeaseObserver::default().decide(None, "a", DURATION, at(0)), LeaseAction::Create);
}

#[test]
fn who_leads_renews() {
    assert_eq!(LeaseObserver::default().decide(Some(&reading("a", 1)), "a", DURATION, at(0)), LeaseAction::Renew);
}

#[test]
fn one_that_was_given_back_is_taken_at_once() {
    assert_eq!(LeaseObserver::default().decide(Some(&reading("", 1)), "a", DURATION, at(0)), LeaseAction::TakeOver);
}

#[test]
fn others_wait_as_long_as_it_is_renewed() {
    let mut watch = LeaseObserver::default();
    for round in 0..10 {
        let lease = reading("a", round);
        let now = at(1_000 + round * 14);
        assert_eq!(watch.decide(Some(&lease), "b", DURATION, now), LeaseAction::Wait(DURATION), "{round}");
    }
}

#[test]
fn one_that_is_not_renewed_is_taken_after_its_duration_and_not_before() {
    let mut watch = LeaseObserver::default();
    let lease = reading("a", 7);
    assert_eq!(watch.decide(Some(&lease), "b", DURATION, at(100)), LeaseAction::Wait(DURATION));
    assert_eq!(watch.decide(Some(&lease), "b", DURATION, at(114)), LeaseAction::Wait(at(1)));
    assert_eq!(watch.decide(Some(&lease), "b", DURATION, at(115)), LeaseAction::TakeOver);
}

/// Simulates operators that act, hang and restart in random order, and asserts that no two of them ever lead at the
/// same time, each having renewed within the duration of the lease.
#[test]
fn two_never_lead_at_a_time() {
    use std::collections::HashMap;
    const NAMES: [&str; 3] = ["a", "b", "c"];
    for seed in 0_u64..2_000 {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut draw = |most: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % most
        };
        let mut lease: Option<ObservedLease> = None;
        let mut version = 0;
        let mut watches: HashMap<&str, LeaseObserver> = HashMap::new();
        // Time until which each operator believes that it leads.
        let mut leads: HashMap<&str, Duration> = HashMap::new();
        for now in 0..300 {
            let name = NAMES[usize::try_from(draw(3)).expect("below 3")];
            match draw(12) {
                // It restarts without any state.
                0 => drop((watches.remove(name), leads.remove(name))),
                // It hangs in this turn.
                1..4 => {}
                _ => {
                    let watch = watches.entry(name).or_default();
                    match watch.decide(lease.as_ref(), name, DURATION, at(now)) {
                        LeaseAction::Wait(_) => drop(leads.remove(name)),
                        LeaseAction::Create | LeaseAction::TakeOver | LeaseAction::Renew => {
                            version += 1;
                            lease = Some(reading(name, version));
                            leads.insert(name, at(now) + DURATION);
                        }
                    }
                }
            }
            let leading = leads.values().filter(|until| at(now) < **until).count();
            assert!(leading <= 1, "seed {seed}: {leads:?} at {now}");
        }
    }
}
