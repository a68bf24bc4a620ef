//! Statements whose rows an index finds: no operator runs for them, so they are shown as the operators that they do without.

use planner::Planned;

use super::node::{Node, Property};
use crate::RunContext;
use crate::point::PointProgram;

/// The tree with an index scan for its scan, where the statement is run so. Statements that EXPLAIN runs are run by operators, which
/// count what they do.
pub(super) fn shown(root: Node, statement: &Planned, context: &RunContext, ran: bool) -> Node {
    if ran || !context.settings.index_scan() {
        return root;
    }
    let Some(used) = PointProgram::of(statement).and_then(|program| program.index()) else { return root };
    let mut root = alone(root, used.is_ordered);
    let mut node = &mut root;
    while !node.children.is_empty() {
        node = &mut node.children[0];
    }
    node.name = format!("Index Scan using {}", used.index);
    node.properties.retain(|property| !matches!(property.key, "Shards" | "Row Groups"));
    node.properties.insert(0, Property::text("Index Cond", used.condition));
    root
}

/// The tree without what only spreads work over threads, or makes columns; and without sorts where rows come in order.
fn alone(mut node: Node, is_ordered: bool) -> Node {
    if is_ordered && node.name == "Top-N Sort" {
        node.name = "Limit".to_owned();
        node.properties.retain(|property| property.key != "Sort Key");
    }
    let is_left_out = matches!(node.name.as_str(), "Redistribute" | "Project" | "Gather" | "Gather Merge")
        || (is_ordered && node.name == "Sort");
    let mut children = std::mem::take(&mut node.children).into_iter().map(|child| alone(child, is_ordered));
    match children.next() {
        Some(only) if is_left_out => only,
        first => {
            node.children = first.into_iter().chain(children).collect();
            node
        }
    }
}
