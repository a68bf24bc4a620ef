//! Tests of the limit of the exhaustive search.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};

use super::*;
use crate::test_fixtures::{TableColumns, Warehouse};

/// Returns whether a star join of `inputs` tables is searched exhaustively.
async fn is_complete(inputs: usize) -> bool {
    const NAMES: [&str; 12] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];
    const KEYS: [&str; 12] = ["ka", "kb", "kc", "kd", "ke", "kf", "kg", "kh", "ki", "kj", "kk", "kl"];
    let around = inputs - 1;
    let keys = |count| (0..count).map(Some).collect::<Vec<_>>();
    let middle: TableColumns = KEYS[..around].iter().map(|key| (*key, keys(100))).collect();
    let mut tables: Vec<(&str, TableColumns)> = vec![("middle", middle)];
    tables.extend(NAMES[..around].iter().map(|name| (*name, vec![("id", keys(10))])));
    let from: Vec<&str> = tables.iter().map(|(name, _)| *name).collect();
    let conditions: Vec<String> =
        NAMES.iter().zip(KEYS).take(around).map(|(a, key)| format!("{a}.id = {key}")).collect();
    let sql = format!("SELECT 1 FROM {} WHERE {}", from.join(", "), conditions.join(" AND "));
    let plan = Warehouse::new(&tables).plan(&sql, false).await;
    let mut found = None;
    let walked = plan.apply(|node| {
        found = JoinGraph::try_from_plan(node);
        Ok(if found.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    walked.unwrap();
    let graph = found.unwrap();
    assert_eq!(graph.leaves.len(), inputs);
    let sizes = SizeEstimates::new(&graph);
    Search::new(&graph, &sizes).exhaustive(LeafSet::first(inputs)).is_some()
}

#[tokio::test]
async fn twelve_inputs_around_one_another_are_searched_completely_and_thirteen_are_not() {
    assert!(is_complete(12).await);
    assert!(!is_complete(13).await);
}
