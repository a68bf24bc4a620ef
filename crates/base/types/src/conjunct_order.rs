//! Adaptive order of conjuncts, filter conditions that must all hold: the most selective per unit of time comes first.

/// Number of rounds after which the order is reconsidered. A round is a page or a batch.
const ROUNDS_PER_ADAPTATION: u32 = 16;

/// Number of rounds for which an optional condition is skipped after it was not selective.
const SKIPPED_ROUNDS: u32 = 128;
/// Percentage of passing rows above which an optional condition is skipped.
const SKIPPED_PASSING_PERCENT_MIN: u64 = 85;

/// Permission to move or skip a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mobility {
    /// The condition keeps its position, and no other condition moves across it, because it may fail on rows that the
    /// conditions before it remove.
    Fixed,
    /// The condition may be evaluated earlier or later.
    Movable,
    /// The condition may be moved or skipped: a later operator removes the same rows.
    Optional,
}

impl Mobility {
    /// Returns the permission for a condition that must be evaluated.
    #[must_use]
    pub fn from_never_fails(never_fails: bool) -> Self {
        if never_fails { Self::Movable } else { Self::Fixed }
    }
}

/// Measured selectivity and cost of a condition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConditionStats {
    /// Rows on which the condition was evaluated.
    pub rows_in: u64,
    /// Rows that passed.
    pub rows_out: u64,
    /// Time in nanoseconds.
    pub ns: u64,
}

impl ConditionStats {
    /// Returns the time per removed row; `None` if the condition was never evaluated.
    #[expect(clippy::cast_precision_loss, reason = "orders of magnitude decide")]
    fn cost(self) -> Option<f64> {
        let left_out = self.rows_in.saturating_sub(self.rows_out) as f64;
        (self.rows_in != 0).then(|| (self.ns + 1) as f64 / left_out.max(1e-3))
    }

    fn passes_most(self) -> bool {
        self.rows_in * SKIPPED_PASSING_PERCENT_MIN < self.rows_out * 100
    }

    fn plus(self, other: Self) -> Self {
        Self { rows_in: self.rows_in + other.rows_in, rows_out: self.rows_out + other.rows_out, ns: self.ns + other.ns }
    }

    /// Halves all measurements, so that older ones count less.
    fn halved(self) -> Self {
        Self { rows_in: self.rows_in / 2, rows_out: self.rows_out / 2, ns: self.ns / 2 }
    }
}

/// Returns a better order of conditions than `order`: within each run of movable conditions they are sorted by time per
/// removed row. Conditions that no row has reached come last in their run.
fn best_order(order: &[usize], places: &[Mobility], effects: &[ConditionStats]) -> Vec<usize> {
    let mut order = order.to_vec();
    let cost = |condition: &usize| effects[*condition].cost().unwrap_or(f64::INFINITY);
    for stretch in order.chunk_by_mut(|one, next| places[*one] != Mobility::Fixed && places[*next] != Mobility::Fixed) {
        stretch.sort_by(|one, other| cost(one).total_cmp(&cost(other)));
    }
    order
}

/// Evaluation order of conditions, given by their numbers, adapted to the measurements of one worker.
#[derive(Debug, Clone, Default)]
pub struct ConjunctOrder {
    /// Permissions, by condition.
    mobilities: Vec<Mobility>,
    /// Conditions in evaluation order.
    order: Vec<usize>,
    /// Measurements, by condition.
    stats: Vec<ConditionStats>,
    /// Round until which each condition is skipped.
    skipped_until: Vec<u32>,
    /// Number of the current round.
    round: u32,
}

impl ConjunctOrder {
    /// Creates the initial order, that of the conditions' numbers.
    #[must_use]
    pub fn new(places: Vec<Mobility>) -> Self {
        let count = places.len();
        let (effects, without) = (vec![ConditionStats::default(); count], vec![0; count]);
        Self { mobilities: places, order: (0..count).collect(), stats: effects, skipped_until: without, round: 0 }
    }

    /// Returns the number of conditions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether there are no conditions.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Whether the order can change, so that callers should measure the conditions.
    #[must_use]
    pub fn is_adaptive(&self) -> bool {
        self.mobilities.contains(&Mobility::Optional)
            || self.mobilities.windows(2).any(|places| places.iter().all(|place| *place != Mobility::Fixed))
    }

    /// Returns the condition at a position of the order; `None` if it is skipped in this round.
    #[must_use]
    pub fn condition_at(&self, place: usize) -> Option<usize> {
        let condition = self.order[place];
        (self.skipped_until[condition] <= self.round).then_some(condition)
    }

    /// Records a measurement of a condition.
    pub fn record(&mut self, condition: usize, effect: ConditionStats) {
        self.stats[condition] = self.stats[condition].plus(effect);
    }

    /// Ends a round; every 16 rounds the order is adapted.
    pub fn end_round(&mut self) {
        self.round += 1;
        if !self.round.is_multiple_of(ROUNDS_PER_ADAPTATION) {
            return;
        }
        self.order = best_order(&self.order, &self.mobilities, &self.stats);
        for (condition, effect) in self.stats.iter_mut().enumerate() {
            if self.mobilities[condition] == Mobility::Optional && effect.passes_most() {
                self.skipped_until[condition] = self.round + SKIPPED_ROUNDS;
                *effect = ConditionStats::default();
            }
            *effect = effect.halved();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effect(rows_in: u64, rows_out: u64, ns: u64) -> ConditionStats {
        ConditionStats { rows_in, rows_out, ns }
    }

    #[test]
    fn what_leaves_most_out_in_the_least_time_comes_first() {
        use Mobility::{Fixed, Movable};
        let effects = [
            effect(1000, 900, 1000), // 10 ns for each row that it leaves out
            effect(900, 90, 81_000), // 100
            effect(90, 9, 81),       // 1
            effect(9, 9, 1),         // none at all
            effect(0, 0, 0),         // not tried
        ];
        assert_eq!(best_order(&[0, 1, 2, 3, 4], &[Movable; 5], &effects), [2, 0, 1, 3, 4]);
        assert_eq!(best_order(&[4, 3, 2, 1, 0], &[Movable; 5], &effects), [2, 0, 1, 3, 4]);
        // No condition moves across a fixed one.
        let places = [Movable, Movable, Fixed, Movable, Movable];
        assert_eq!(best_order(&[0, 1, 2, 3, 4], &places, &effects), [0, 1, 2, 3, 4]);
        assert_eq!(best_order(&[1, 0, 2, 4, 3], &places, &effects), [0, 1, 2, 3, 4]);
        assert_eq!(best_order(&[0, 1, 2, 3, 4], &[Fixed; 5], &effects), [0, 1, 2, 3, 4]);
    }

    /// Runs one round in which `passing[c]` of ten rows pass condition `c`, all at the same cost per row.
    fn round(conjuncts: &mut ConjunctOrder, passing: &[u64]) -> Vec<usize> {
        let mut tried = Vec::new();
        let mut rows = 1_000_000;
        for place in 0..conjuncts.len() {
            let Some(condition) = conjuncts.condition_at(place) else { continue };
            tried.push(condition);
            let left = rows * passing[condition] / 10;
            conjuncts.record(condition, effect(rows, left, rows));
            rows = left;
        }
        conjuncts.end_round();
        tried
    }

    #[test]
    fn an_order_follows_what_is_seen() {
        let mut conjuncts = ConjunctOrder::new(vec![Mobility::Movable; 2]);
        assert!(conjuncts.is_adaptive());
        for _ in 0..ROUNDS_PER_ADAPTATION {
            assert_eq!(round(&mut conjuncts, &[9, 1]), [0, 1]);
        }
        assert_eq!(round(&mut conjuncts, &[9, 1]), [1, 0]);
        // The rows change.
        for _ in 0..20 * ROUNDS_PER_ADAPTATION {
            round(&mut conjuncts, &[1, 9]);
        }
        assert_eq!(round(&mut conjuncts, &[1, 9]), [0, 1]);
    }

    #[test]
    fn what_lets_most_rows_pass_is_left_out_for_a_while() {
        let mut conjuncts = ConjunctOrder::new(vec![Mobility::Optional, Mobility::Fixed]);
        for _ in 0..ROUNDS_PER_ADAPTATION {
            assert_eq!(round(&mut conjuncts, &[9, 5]), [0, 1]);
        }
        for _ in 0..SKIPPED_ROUNDS {
            assert_eq!(round(&mut conjuncts, &[9, 5]), [1]);
        }
        // Then it is evaluated again, and stays if it is selective now.
        for _ in 0..SKIPPED_ROUNDS {
            assert_eq!(round(&mut conjuncts, &[5, 5]), [0, 1]);
        }
        assert!(!ConjunctOrder::new(vec![Mobility::Movable, Mobility::Fixed, Mobility::Movable]).is_adaptive());
    }
}
