use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, ObjectName, Query, Select, Statement, TableFactor, ValueWithSpan, Visit, VisitMut, Visitor, VisitorMut,
};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;

use super::Walk;

/// Visitor that records the nodes it visits and breaks after a number of them.
struct Recorder {
    seen: Vec<String>,
    nodes_max: usize,
}

impl Recorder {
    fn record(&mut self, event: &str, node: &impl std::fmt::Display) -> ControlFlow<usize> {
        self.seen.push(format!("{event} {node}"));
        if self.seen.len() < self.nodes_max { ControlFlow::Continue(()) } else { ControlFlow::Break(self.seen.len()) }
    }
}

macro_rules! recorder {
    ($($visit:ident: $node:ty),*) => {
        impl Visitor for Recorder {
            type Break = usize;

            $(fn $visit(&mut self, node: &$node) -> ControlFlow<usize> {
                self.record(stringify!($visit), node)
            })*
        }

        impl VisitorMut for Recorder {
            type Break = usize;

            $(fn $visit(&mut self, node: &mut $node) -> ControlFlow<usize> {
                self.record(stringify!($visit), node)
            })*
        }
    };
}

recorder!(
    pre_visit_query: Query,
    post_visit_query: Query,
    pre_visit_select: Select,
    post_visit_select: Select,
    pre_visit_relation: ObjectName,
    post_visit_relation: ObjectName,
    pre_visit_table_factor: TableFactor,
    post_visit_table_factor: TableFactor,
    pre_visit_expr: Expr,
    post_visit_expr: Expr,
    pre_visit_statement: Statement,
    post_visit_statement: Statement,
    pre_visit_value: ValueWithSpan,
    post_visit_value: ValueWithSpan
);

fn statement() -> Statement {
    let sql = "WITH w AS (SELECT a + 1 AS b FROM t WHERE c IN (SELECT 'x' FROM u)) SELECT sum(b) OVER (ORDER BY -b) FROM w, v";
    Parser::parse_sql(&PostgreSqlDialect {}, sql).expect("it is SQL").remove(0)
}

#[test]
fn a_walk_shows_what_the_generic_visit_shows() {
    let mut tree = statement();
    let recorder = |nodes_max| Recorder { seen: Vec::new(), nodes_max };
    for nodes_max in [usize::MAX, 1, 7] {
        let (mut generic, mut walk) = (recorder(nodes_max), recorder(nodes_max));
        assert_eq!(Walk::walk(&tree, &mut walk), Visit::visit(&tree, &mut generic), "{nodes_max}");
        assert_eq!(walk.seen, generic.seen);
        let (mut generic, mut walk) = (recorder(nodes_max), recorder(nodes_max));
        assert_eq!(Walk::walk_mut(&mut tree, &mut walk), VisitMut::visit(&mut tree, &mut generic), "{nodes_max}");
        assert_eq!(walk.seen, generic.seen);
        assert!(nodes_max == walk.seen.len() || nodes_max == usize::MAX);
    }
}

#[test]
fn a_walk_over_expressions_or_relations_shows_these_alone() {
    let mut tree = statement();
    let mut relations = Vec::new();
    let walked: ControlFlow<()> = tree.walk_relations(|name| {
        relations.push(name.to_string());
        ControlFlow::Continue(())
    });
    assert_eq!((walked, relations.join(" ")), (ControlFlow::Continue(()), "t u w v".to_owned()));
    let first = tree.walk_expressions(|expr| ControlFlow::Break(expr.to_string()));
    assert_eq!(first, ControlFlow::Break("a + 1".to_owned()), "an expression comes before those in it");
    let first = tree.walk_expressions_mut(|expr| ControlFlow::Break(expr.to_string()));
    assert_eq!(first, ControlFlow::Break("a".to_owned()), "an expression comes after those in it");
}
