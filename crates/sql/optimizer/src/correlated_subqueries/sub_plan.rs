//! Logical node that computes expressions with correlated subqueries and appends them to the columns of its input.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use datafusion::common::{DFSchema, DFSchemaRef, Result as DfResult, internal_err};
use datafusion::logical_expr::{Expr, ExprSchemable, Extension, LogicalPlan, UserDefinedLogicalNodeCore};

/// Node that gives all columns of its input, then one for each expression.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SubPlan {
    pub(super) input: Arc<LogicalPlan>,
    /// Expressions that call correlated subqueries.
    pub exprs: Vec<Expr>,
    schema: DFSchemaRef,
}

impl SubPlan {
    /// Creates a plan of the node. Each expression comes with the name of its column, which no column of the input has.
    pub(super) fn into_plan(input: Arc<LogicalPlan>, exprs: Vec<(String, Expr)>) -> DfResult<LogicalPlan> {
        let mut fields = Vec::with_capacity(exprs.len());
        for (name, expr) in &exprs {
            let field = expr.to_field(input.schema())?.1;
            fields.push(Arc::new(field.as_ref().clone().with_name(name).with_nullable(true)));
        }
        let computed = DFSchema::from_unqualified_fields(fields.into(), HashMap::new())?;
        let schema = Arc::new(input.schema().join(&computed)?);
        let exprs = exprs.into_iter().map(|(_, expr)| expr).collect();
        Ok(LogicalPlan::Extension(Extension { node: Arc::new(Self { input, exprs, schema }) }))
    }

    /// Returns the schema: the columns of the input, then those of the expressions.
    #[must_use]
    pub fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }
}

impl PartialOrd for SubPlan {
    fn partial_cmp(&self, _: &Self) -> Option<Ordering> {
        None
    }
}

impl UserDefinedLogicalNodeCore for SubPlan {
    fn name(&self) -> &'static str {
        "SubPlan"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        self.exprs.clone()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SubPlan")
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> DfResult<Self> {
        let Some(input) = inputs.pop() else { return internal_err!("SubPlan was rebuilt without an input") };
        Ok(Self { input: Arc::new(input), exprs, schema: Arc::clone(&self.schema) })
    }
}
