//! How large a query is with its WITH queries in the place of each that reads them, which is how DataFusion plans it.
//!
//! It goes over that plan again for every SELECT. Thirty WITH queries that each read the one before twice would be thousands of millions of nodes, and are
//! refused before they are one.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{ObjectName, Query, Visit, Visitor};
use types::SqlResult;
use types::stack::{PLAN_LEVELS, too_complex};

use super::with_queries::only_part;
use crate::levels::NODES_MAX;

/// Checks that a query reads few enough relations, in few enough levels. Names must be settled: those of WITH queries are given once in the statement.
///
/// # Errors
/// `54001`.
pub(super) fn check(query: &Query) -> SqlResult<()> {
    match query.visit(&mut Measure::default()) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(too_complex()),
    }
}

/// What is at least in the plan of a query: its relations, or what stands for none.
#[derive(Debug, Clone, Copy)]
struct Size {
    relations: usize,
    levels: usize,
}

#[derive(Default)]
struct Measure {
    /// WITH queries by where they lie, which is how they are recognized when they are visited.
    names: HashMap<*const Query, String>,
    sizes: HashMap<String, Size>,
    /// The queries around what is visited, as far as they have been.
    open: Vec<Size>,
}

impl Measure {
    /// Adds what is read to the query that reads it.
    fn read(&mut self, read: Size) -> ControlFlow<()> {
        let Some(reader) = self.open.last_mut() else { return ControlFlow::Continue(()) };
        reader.relations = reader.relations.saturating_add(read.relations);
        reader.levels = reader.levels.max(read.levels + 1);
        let is_bounded = reader.relations <= NODES_MAX && reader.levels <= PLAN_LEVELS;
        if is_bounded { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}

impl Visitor for Measure {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        for with in query.with.iter().flat_map(|with| &with.cte_tables) {
            self.names.insert(std::ptr::from_ref(&*with.query), with.alias.name.value.clone());
        }
        self.open.push(Size { relations: 1, levels: 1 });
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        // A query that reads itself is not known yet, and read once.
        let with = only_part(relation).and_then(|name| self.sizes.get(name));
        self.read(with.copied().unwrap_or(Size { relations: 1, levels: 1 }))
    }

    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let size = self.open.pop().expect("it was opened before what is in it");
        match self.names.remove(&std::ptr::from_ref(query)) {
            Some(name) => {
                self.sizes.insert(name, size);
                ControlFlow::Continue(())
            }
            None => self.read(size),
        }
    }
}
