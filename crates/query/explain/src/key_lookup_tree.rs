//! Plans of statements on the primary-key fast path: no operator runs for them, so the tree shows the index scans that
//! are done instead.

use binder::StatementPlan;
use executor::RunContext;
use key_lookup::{CompiledKeyLookup, IndexUse};

use crate::plan_node::{Node, NodeKind, Property};

/// Shows index scans in place of table scans, if the statement takes the fast path. With ANALYZE it does not: operators
/// run then, because they measure.
pub(crate) fn show_index_scans(root: Node, statement: &StatementPlan, context: &RunContext, ran: bool) -> Node {
    if ran || !context.settings.index_scan() {
        return root;
    }
    let used = CompiledKeyLookup::compile(statement).map(|program| program.indexes()).unwrap_or_default();
    match used.as_slice() {
        [] => root,
        [used] => {
            let mut root = without_parallelism(root, used.is_ordered);
            let mut node = &mut root;
            while !node.children.is_empty() {
                node = &mut node.children[0];
            }
            use_index(node, used);
            root
        }
        used => to_nested_loops(without_parallelism(root, false), used),
    }
}

fn use_index(scan: &mut Node, used: &IndexUse) {
    scan.name = format!("Index Scan using {}", used.index);
    scan.properties.retain(|property| !matches!(property.key, "Shards" | "Row Groups"));
    scan.properties.insert(0, Property::text("Index Cond", used.condition.as_str()));
}

/// Replaces joins by nested loops over index scans.
fn to_nested_loops(mut node: Node, used: &[IndexUse]) -> Node {
    if node.children.len() < 2 {
        node.children = node.children.into_iter().map(|child| to_nested_loops(child, used)).collect();
        return node;
    }
    let estimate = node.estimate;
    let mut scans = Vec::new();
    collect_leaves(&node, &mut scans);
    let scan = |used: &IndexUse| {
        let at = scans.iter().position(|scan| scan.relation.as_ref() == Some(&used.table))?;
        let scan = scans.swap_remove(at);
        let relation = scan.relation.clone();
        let mut scan = Node {
            name: String::new(),
            kind: NodeKind::Other,
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
        kind: NodeKind::Other,
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

fn collect_leaves<'a>(node: &'a Node, leaves: &mut Vec<&'a Node>) {
    if node.children.is_empty() {
        leaves.push(node);
    }
    node.children.iter().for_each(|child| collect_leaves(child, leaves));
}

/// Removes nodes that only exchange rows between threads or compute columns, and sorts if the index returns the rows in
/// order.
fn without_parallelism(mut node: Node, is_ordered: bool) -> Node {
    if is_ordered && node.kind == NodeKind::TopNSort {
        (node.name, node.kind) = ("Limit".to_owned(), NodeKind::Other);
        node.properties.retain(|property| property.key != "Sort Key");
    }
    let is_left_out = match node.kind {
        NodeKind::Exchange | NodeKind::Projection => true,
        NodeKind::Sort => is_ordered,
        NodeKind::TopNSort | NodeKind::Other => false,
    };
    node.engine = None;
    let mut children =
        std::mem::take(&mut node.children).into_iter().map(|child| without_parallelism(child, is_ordered));
    match children.next() {
        Some(only) if is_left_out => only,
        first => {
            node.children = first.into_iter().chain(children).collect();
            node
        }
    }
}
