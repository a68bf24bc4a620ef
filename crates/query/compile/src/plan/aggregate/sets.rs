//! Grouping sets, as the engine makes them: coarser ones of the groups by all keys.

use datafusion::physical_plan::aggregates::PhysicalGroupBy;
use engine::aggregate::GroupingSet;

/// Keys whose number, a bit for each, is one that the engine has.
const SET_KEYS_MAX: usize = 32;

/// The sets, and that of all keys where it is not among them; `None` where one comes twice.
pub(super) fn grouping_sets(groups: &PhysicalGroupBy) -> Option<Vec<GroupingSet>> {
    let mut sets: Vec<GroupingSet> = Vec::with_capacity(groups.groups().len() + 1);
    for absent in groups.groups() {
        // As DataFusion numbers them: a bit for each key, that of the last lowest.
        let id = absent.iter().fold(0_i64, |id, absent| id << 1 | i64::from(*absent));
        if SET_KEYS_MAX < absent.len() || sets.iter().any(|set| set.id == id) {
            return None;
        }
        sets.push(GroupingSet { absent: absent.clone(), id, is_hidden: false });
    }
    if sets.iter().all(|set| set.id != 0) {
        sets.push(GroupingSet { absent: vec![false; groups.expr().len()], id: 0, is_hidden: true });
    }
    Some(sets)
}
