//! WITH queries that say whether they are materialized, and the node that marks their references in a plan.
//!
//! The binder puts a [`WithQueryReference`] above each reference; `materialized_with.rs` takes these nodes out before
//! any rule sees them, because DataFusion decorrelates no subquery across an extension node.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::common::{DFSchemaRef, Result, TableReference, internal_err};
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, SubqueryAlias, UserDefinedLogicalNodeCore};

/// `MATERIALIZED` clause of a WITH query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaterializeClause {
    /// `MATERIALIZED`: all rows are computed once, whatever readers need of them.
    Materialized,
    /// `NOT MATERIALIZED`: each reader computes the rows that it needs.
    NotMaterialized,
    /// No clause, in a statement in which another WITH query has one.
    Unspecified,
}

/// WITH query of a statement in which a WITH query has a clause. All references to it share one of these, and are
/// recognized by its address.
#[derive(Debug)]
pub struct WithQuery {
    /// Name in the statement.
    pub name: String,
    pub clause: MaterializeClause,
}

/// WITH queries by the aliases that their references have in a plan.
pub(super) type WithQueryAliases = HashMap<TableReference, Arc<WithQuery>>;

/// Node above a reference to a WITH query; its columns are those of its input, the query's plan.
#[derive(Debug, Clone)]
pub struct WithQueryReference {
    pub(super) query: Arc<WithQuery>,
    pub(super) input: Arc<LogicalPlan>,
}

impl WithQueryReference {
    /// Creates a plan of the node.
    #[must_use]
    pub fn into_plan(query: Arc<WithQuery>, input: LogicalPlan) -> LogicalPlan {
        LogicalPlan::Extension(Extension { node: Arc::new(Self { query, input: Arc::new(input) }) })
    }

    /// Returns the node if `plan` is one.
    #[must_use]
    pub fn from_plan(plan: &LogicalPlan) -> Option<&Self> {
        let LogicalPlan::Extension(Extension { node }) = plan else { return None };
        node.as_any().downcast_ref()
    }

    /// Returns the input: the query's plan under the alias of the query.
    ///
    /// # Errors
    /// An internal error if a rule has changed the input before the reference was taken out.
    pub(super) fn alias(&self) -> Result<&SubqueryAlias> {
        match self.input.as_ref() {
            LogicalPlan::SubqueryAlias(alias) => Ok(alias),
            _ => internal_err!("a reference to WITH query {} has no alias", self.query.name),
        }
    }
}

impl PartialEq for WithQueryReference {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.query, &other.query) && self.input == other.input
    }
}

impl Eq for WithQueryReference {}

impl Hash for WithQueryReference {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.query).hash(state);
        self.input.hash(state);
    }
}

impl PartialOrd for WithQueryReference {
    fn partial_cmp(&self, _: &Self) -> Option<Ordering> {
        None
    }
}

impl UserDefinedLogicalNodeCore for WithQueryReference {
    fn name(&self) -> &'static str {
        "WithQueryReference"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        self.input.schema()
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WithQueryReference: {} {:?}", self.query.name, self.query.clause)
    }

    fn with_exprs_and_inputs(&self, _: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> Result<Self> {
        let Some(input) = inputs.pop() else { return internal_err!("WithQueryReference was rebuilt without an input") };
        Ok(Self { query: Arc::clone(&self.query), input: Arc::new(input) })
    }
}
