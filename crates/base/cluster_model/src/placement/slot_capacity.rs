//! Load limit for statements that a single worker runs.

/// Returns for each worker whether it may get one more statement that it runs alone. That is so if it runs fewer than
/// `at_once`, or fewer than `percent` of the mean including the new statement. `running` has the number of statements
/// of each worker. At least one worker has room.
///
/// # Panics
/// If `percent` is below 100, because then possibly no worker has room.
#[must_use]
pub fn have_capacity(running: &[u32], min_statements: u32, percent: u64) -> Vec<bool> {
    assert!(100 <= percent, "have_room: with {percent} percent of the mean load possibly no worker has room");
    let with_it = running.iter().copied().map(u64::from).sum::<u64>() + 1;
    let count = running.len().max(1) as u64;
    let limit = with_it.saturating_mul(percent).div_ceil(100 * count).max(u64::from(min_statements));
    running.iter().map(|running| u64::from(*running) < limit).collect()
}

#[cfg(test)]
mod tests {
    use types::Random;
    use types::random::SeededRandom;

    use super::*;

    #[test]
    fn overloaded_workers_are_left_out() {
        assert_eq!(have_capacity(&[1, 0, 0, 0], 2, 125), [true; 4], "below the minimum all have room");
        assert_eq!(have_capacity(&[2, 0, 0, 0], 2, 125), [false, true, true, true]);
        assert_eq!(have_capacity(&[2, 2, 2, 2], 2, 125), [true; 4], "all are below the limit");
        assert_eq!(have_capacity(&[4, 2, 2, 2], 2, 125), [false, true, true, true]);
        assert_eq!(have_capacity(&[40, 30], 2, 125), [true, true]);
        assert_eq!(have_capacity(&[50, 20], 2, 125), [false, true]);
        assert_eq!(have_capacity(&[9], 2, 125), [true], "a single worker always has room");
        assert_eq!(have_capacity(&[], 2, 125), [false; 0]);
    }

    #[test]
    fn the_least_loaded_worker_has_capacity() {
        let random = SeededRandom::new(5);
        let below = |limit: u64| u32::try_from(random.next_u64() % limit).expect("the number fits into 32 bits");
        for _ in 0..10_000 {
            let running: Vec<u32> = (0..=below(8)).map(|_| below(50)).collect();
            let room = have_capacity(&running, below(9), 100 + u64::from(below(100)));
            let least = running.iter().min().expect("there is a worker");
            let has_room = |(running, has_room): (&u32, &bool)| *has_room || least < running;
            assert!(running.iter().zip(&room).all(has_room), "{running:?}: {room:?}");
        }
    }
}
