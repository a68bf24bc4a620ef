//! Statements whose rows an index finds: no operator runs for them, so they are shown as the operators that they do without.

use binder::Planned;
use executor::RunContext;
use key_lookup::{IndexUse, PointProgram};

use crate::node::{Node, Property};

/// The tree with an index scan for its scan, where the statement is run so. Statements that EXPLAIN runs are run by operators, which
/// count what they do.
pub(crate) fn shown(root: Node, statement: &Planned, context: &RunContext, ran: bool) -> Node {
    if ran || !context.settings.index_scan() {
        return root;
    }
    let used = PointProgram::of(statement).map(|program| program.indexes()).unwrap_or_default();
    match used.as_slice() {
        [] => root,
        [used] => {
            let mut root = alone(root, used.is_ordered);
            let mut node = &mut root;
            while !node.children.is_empty() {
                node = &mut node.children[0];
            }
            use_index(node, used);
            root
        }
        used => looped(alone(root, false), used),
    }
}

fn use_index(scan: &mut Node, used: &IndexUse) {
    scan.name = format!("Index Scan using {}", used.index);
    scan.properties.retain(|property| !matches!(property.key, "Shards" | "Row Groups"));
    scan.properties.insert(0, Property::text("Index Cond", used.condition.as_str()));
}

/// The tree with loops over index scans for its joins.
fn looped(mut node: Node, used: &[IndexUse]) -> Node {
    if node.children.len() < 2 {
        node.children = node.children.into_iter().map(|child| looped(child, used)).collect();
        return node;
    }
    let estimate = node.estimate;
    let mut scans = Vec::new();
    leaves(&node, &mut scans);
    let scan = |used: &IndexUse| {
        let at = scans.iter().position(|scan| scan.relation.as_ref() == Some(&used.table))?;
        let scan = scans.swap_remove(at);
        let relation = scan.relation.clone();
        let mut scan = Node {
            name: String::new(),
            relation,
            properties: scan.properties.clone(),
            estimate: scan.estimate,
            engine: None,
            actual: None,
            init_plans: Vec::new(),
            children: Vec::new(),
        };
        use_index(&mut scan, used);
        Some(scan)
    };
    let Some(scans) = used.iter().map(scan).collect::<Option<Vec<Node>>>() else { return node };
    let loops = scans.into_iter().reduce(|outer, inner| Node {
        name: "Nested Loop".to_owned(),
        relation: None,
        properties: Vec::new(),
        estimate,
        engine: None,
        actual: None,
        init_plans: Vec::new(),
        children: vec![outer, inner],
    });
    loops.unwrap_or(node)
}

fn leaves<'a>(node: &'a Node, found: &mut Vec<&'a Node>) {
    if node.children.is_empty() {
        found.push(node);
    }
    node.children.iter().for_each(|child| leaves(child, found));
}

/// The tree without what only spreads work over threads, or makes columns; and without sorts where rows come in order.
fn alone(mut node: Node, is_ordered: bool) -> Node {
    if is_ordered && node.name == "Top-N Sort" {
        node.name = "Limit".to_owned();
        node.properties.retain(|property| property.key != "Sort Key");
    }
    let is_left_out = matches!(node.name.as_str(), "Redistribute" | "Project" | "Gather" | "Gather Merge")
        || (is_ordered && node.name == "Sort");
    node.engine = None;
    let mut children = std::mem::take(&mut node.children).into_iter().map(|child| alone(child, is_ordered));
    match children.next() {
        Some(only) if is_left_out => only,
        first => {
            node.children = first.into_iter().chain(children).collect();
            node
        }
    }
}
