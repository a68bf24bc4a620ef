//! Limit on the size of a query after its WITH queries are inlined.
//!
//! DataFusion inlines a WITH query at every reference and walks the plan again for each SELECT. Thirty WITH queries
//! that each read the previous one twice would become a billion nodes, so they are rejected before the plan is built.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{ObjectName, Query, Visitor};
use plan::plan_limits::NODES_MAX;
use syntax::Walk;
use types::SqlResult;
use types::stack_limit::{PLAN_DEPTH_MAX, too_complex_error};

use super::with_materialization::unqualified_name;

/// Checks that a query reads few enough relations, in few enough levels. Names must be resolved: the names of WITH
/// queries are unique in the statement.
///
/// # Errors
/// SQLSTATE 54001.
pub(super) fn check_expansion(query: &Query) -> SqlResult<()> {
    match query.walk(&mut SizeChecker::default()) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(too_complex_error()),
    }
}

/// Lower bound on the size of a query's plan.
#[derive(Debug, Clone, Copy)]
struct Size {
    relations: usize,
    levels: usize,
}

#[derive(Default)]
struct SizeChecker {
    /// Names of WITH queries by the address of their syntax tree: the visitor does not pass the name.
    names: HashMap<*const Query, String>,
    sizes: HashMap<String, Size>,
    /// Sizes so far of the queries that enclose the visited node.
    enclosing_sizes: Vec<Size>,
}

impl SizeChecker {
    /// Adds a relation to the enclosing query.
    fn add_relation(&mut self, read: Size) -> ControlFlow<()> {
        let Some(reader) = self.enclosing_sizes.last_mut() else { return ControlFlow::Continue(()) };
        reader.relations = reader.relations.saturating_add(read.relations);
        reader.levels = reader.levels.max(read.levels + 1);
        let is_bounded = reader.relations <= NODES_MAX && reader.levels <= PLAN_DEPTH_MAX;
        if is_bounded { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}

impl Visitor for SizeChecker {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        for with in query.with.iter().flat_map(|with| &with.cte_tables) {
            self.names.insert(std::ptr::from_ref(&*with.query), with.alias.name.value.clone());
        }
        self.enclosing_sizes.push(Size { relations: 1, levels: 1 });
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        // A recursive reference has no size yet and counts as one relation.
        let with = unqualified_name(relation).and_then(|name| self.sizes.get(name));
        self.add_relation(with.copied().unwrap_or(Size { relations: 1, levels: 1 }))
    }

    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let size = self.enclosing_sizes.pop().expect("pre_visit_query pushed an entry");
        match self.names.remove(&std::ptr::from_ref(query)) {
            Some(name) => {
                self.sizes.insert(name, size);
                ControlFlow::Continue(())
            }
            None => self.add_relation(size),
        }
    }
}
