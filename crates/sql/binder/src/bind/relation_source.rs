//! Sources of relations whose rows are not those of the current snapshot, or not only: AS OF, row identities, the rows
//! of a statement that changes rows, and WITH queries that say whether they are materialized.
//!
//! A resolved query refers to its sources by number, in the version of a relation: the only part of DataFusion's
//! syntax tree that a relation of any name can carry. `relation_planner.rs` plans such relations.

use std::cell::RefCell;
use std::sync::Arc;

use datafusion::sql::sqlparser::ast::{Expr, TableVersion, Value};
use optimizer::common_subplans::WithQuery;
use types::TimeTravelTarget;

/// Source of a relation of a resolved query.
#[derive(Debug, Clone)]
pub(crate) enum RelationSource {
    /// AS OF: the relation of a historical snapshot.
    Snapshot(TimeTravelTarget),
    /// Table of the current snapshot, with the columns that identify its rows.
    RowIdentity,
    /// New rows of the statement, which RETURNING reads.
    NewRows,
    /// Existing rows of ON CONFLICT, each with the row proposed for insertion.
    ConflictingRows,
    /// WITH query of a statement in which a WITH query says whether it is materialized.
    WithQuery(Arc<WithQuery>),
}

/// Sources that the resolved queries of one statement refer to.
#[derive(Debug, Default)]
pub(crate) struct RelationSources {
    sources: RefCell<Vec<RelationSource>>,
}

impl RelationSources {
    /// Adds a source and returns the version by which a relation refers to it.
    pub(crate) fn refer_to(&self, source: RelationSource) -> TableVersion {
        let mut sources = self.sources.borrow_mut();
        sources.push(source);
        let number = Value::Number((sources.len() - 1).to_string(), false);
        TableVersion::ForSystemTimeAsOf(Expr::value(number))
    }

    /// Returns whether no relation refers to a source.
    pub(crate) fn is_empty(&self) -> bool {
        self.sources.borrow().is_empty()
    }

    /// Returns the source that a relation's version refers to; `None` for an AS OF clause as written.
    pub(crate) fn get(&self, version: &TableVersion) -> Option<RelationSource> {
        self.sources.borrow().get(source_number(version)?).cloned()
    }
}

/// Returns the number by which a relation's version refers to a source. Users write no such version.
pub(crate) fn source_number(version: &TableVersion) -> Option<usize> {
    let TableVersion::ForSystemTimeAsOf(Expr::Value(number)) = version else { return None };
    let Value::Number(number, _) = &number.value else { return None };
    number.parse().ok()
}
