//! Cycles of a graph: its strongly connected components (Tarjan, "Depth-First Search and Linear Graph Algorithms",
//! 1972).

/// Returns the components of more than one node, the largest first; `edges[n]` are the successors of node `n`.
pub(super) fn find_cycles(edges: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut search = TarjanSearch {
        edges,
        visit_order: vec![None; edges.len()],
        low_link: vec![0; edges.len()],
        on_path: vec![false; edges.len()],
        path: Vec::new(),
        visited_count: 0,
        components: Vec::new(),
    };
    for node in 0..edges.len() {
        if search.visit_order[node].is_none() {
            search.visit(node);
        }
    }
    let mut found = search.components;
    found.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    found
}

struct TarjanSearch<'a> {
    edges: &'a [Vec<usize>],
    /// Number of nodes visited before this one.
    visit_order: Vec<Option<usize>>,
    /// Earliest node on the path that a node reaches.
    low_link: Vec<usize>,
    on_path: Vec<bool>,
    path: Vec<usize>,
    visited_count: usize,
    components: Vec<Vec<usize>>,
}

impl TarjanSearch<'_> {
    fn visit(&mut self, node: usize) {
        let order = self.visited_count;
        self.visited_count += 1;
        self.visit_order[node] = Some(order);
        self.low_link[node] = order;
        self.path.push(node);
        self.on_path[node] = true;
        let edges = self.edges;
        for &next in &edges[node] {
            match self.visit_order[next] {
                None => {
                    self.visit(next);
                    self.low_link[node] = self.low_link[node].min(self.low_link[next]);
                }
                Some(seen) if self.on_path[next] => self.low_link[node] = self.low_link[node].min(seen),
                Some(_) => {}
            }
        }
        if self.low_link[node] != order {
            return;
        }
        let start = self.path.iter().rposition(|&other| other == node).expect("a node lies on its own path");
        let mut component = self.path.split_off(start);
        for &member in &component {
            self.on_path[member] = false;
        }
        if 1 < component.len() {
            component.sort_unstable();
            self.components.push(component);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circle_is_what_reaches_itself_again() {
        // 0 → 1 → 2 → 0; 2 → 3 → 4 → 3; 5 alone.
        let edges = [vec![1], vec![2], vec![0, 3], vec![4], vec![3], vec![0]];
        assert_eq!(find_cycles(&edges), [vec![0, 1, 2], vec![3, 4]]);
    }

    #[test]
    fn a_line_has_none() {
        assert!(find_cycles(&[vec![1, 2], vec![2], vec![]]).is_empty());
    }
}
