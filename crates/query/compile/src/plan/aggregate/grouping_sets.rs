//! Grouping sets, with a hidden finest set of all keys from which coarser sets are derived.

use datafusion::physical_plan::aggregates::PhysicalGroupBy;
use engine::aggregate::GroupingSet;

/// Maximum number of keys: the engine numbers sets with one bit per key.
const SET_KEYS_MAX: usize = 32;

/// Returns the grouping sets, adding a hidden one of all keys if it is missing; `None` if a set occurs twice.
pub(super) fn grouping_sets(groups: &PhysicalGroupBy) -> Option<Vec<GroupingSet>> {
    let mut sets: Vec<GroupingSet> = Vec::with_capacity(groups.groups().len() + 1);
    for absent_keys in groups.groups() {
        // DataFusion's numbering: one bit per key, the last key's lowest.
        let id = absent_keys.iter().fold(0_i64, |id, absent_keys| id << 1 | i64::from(*absent_keys));
        if SET_KEYS_MAX < absent_keys.len() || sets.iter().any(|set| set.id == id) {
            return None;
        }
        sets.push(GroupingSet { absent_keys: absent_keys.clone(), id, is_hidden: false });
    }
    if sets.iter().all(|set| set.id != 0) {
        sets.push(GroupingSet { absent_keys: vec![false; groups.expr().len()], id: 0, is_hidden: true });
    }
    Some(sets)
}
