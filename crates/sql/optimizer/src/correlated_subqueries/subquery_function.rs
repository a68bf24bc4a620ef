//! The function that replaces a correlated subquery; its arguments are the outer columns that the subquery uses.
//!
//! [`lift`](super::lift_calls::lift) moves its calls to a node whose operator evaluates them asynchronously.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion::common::{Column, DataFusionError, Result as DfResult};
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use plan::plan_has_expression;

use super::SubqueryContext;

/// Kind of value that is computed from the subquery's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SubqueryKind {
    /// The value of its only row, NULL without a row (scalar subquery).
    Scalar,
    /// The values of all rows as a list, in the subquery's order (`ARRAY(subquery)`).
    Array,
    /// All rows as a list of structs whose fields are named by [`field_name`] (LATERAL).
    Rows,
    /// Whether there is a row (EXISTS).
    Exists,
    /// Whether the last argument is among the values; NULL if a NULL prevents an answer (IN).
    In,
}

/// Correlated subquery as a function of the outer columns that it uses.
#[derive(Debug, Clone)]
pub struct CorrelatedSubquery {
    pub kind: SubqueryKind,
    /// Plan of the subquery's rows.
    pub plan: Arc<LogicalPlan>,
    /// Columns of enclosing queries that `plan` uses; the function's first arguments, in this order.
    pub outer_columns: Vec<Column>,
    /// Session state and cancellation token that the subquery runs with.
    pub context: SubqueryContext,
    /// Field of the function's result.
    pub result: FieldRef,
    signature: Signature,
}

impl CorrelatedSubquery {
    /// Creates the function. Its arguments are the values of `outer`, the columns of enclosing queries that `plan`
    /// uses, in this order; for [`SubqueryKind::In`] the value to look for follows.
    pub(super) fn new(
        question: SubqueryKind,
        plan: Arc<LogicalPlan>,
        outer: Vec<Column>,
        within: &SubqueryContext,
    ) -> Self {
        let result = match question {
            SubqueryKind::Scalar => plan.schema().field(0).as_ref().clone().with_nullable(true),
            SubqueryKind::Array => super::array_subquery::list_field(plan.schema().field(0)),
            SubqueryKind::Rows => rows_field(&plan),
            SubqueryKind::Exists | SubqueryKind::In => Field::new("subquery", DataType::Boolean, true),
        };
        let count = outer.len() + usize::from(question == SubqueryKind::In);
        let signature =
            if count == 0 { Signature::nullary(Volatility::Stable) } else { Signature::any(count, Volatility::Stable) };
        Self {
            kind: question,
            plan,
            outer_columns: outer,
            context: within.clone(),
            result: Arc::new(result),
            signature,
        }
    }

    /// Returns whether two runs for the same outer values may give different results.
    ///
    /// # Errors
    /// None that well-formed plans meet.
    pub fn is_volatile(&self) -> DfResult<bool> {
        plan_has_expression(&self.plan, |expr| {
            let dependent = match expr {
                Expr::ScalarFunction(call) => call.func.inner().downcast_ref::<CorrelatedSubquery>(),
                _ => None,
            };
            expr.is_volatile_node() || dependent.is_some_and(|dependent| dependent.is_volatile().unwrap_or(true))
        })
    }
}

/// Returns the name of the struct field that holds column `at` of a row.
pub(super) fn field_name(at: usize) -> String {
    format!("c{at}")
}

fn rows_field(plan: &LogicalPlan) -> Field {
    let fields = plan.schema().fields().iter().enumerate();
    let fields: Fields =
        fields.map(|(at, field)| field.as_ref().clone().with_name(field_name(at)).with_nullable(true)).collect();
    let item = Field::new("item", DataType::Struct(fields), true);
    Field::new("rows", DataType::List(Arc::new(item)), true)
}

impl ScalarUDFImpl for CorrelatedSubquery {
    fn name(&self) -> &str {
        match self.kind {
            SubqueryKind::Scalar => "subquery",
            SubqueryKind::Array => "subquery_values",
            SubqueryKind::Rows => "subquery_rows",
            SubqueryKind::Exists => "subquery_exists",
            SubqueryKind::In => "subquery_contains",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> DfResult<DataType> {
        Ok(self.result.data_type().clone())
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> DfResult<FieldRef> {
        Ok(Arc::clone(&self.result))
    }

    /// Fails always: constant folding and estimates try it and do without, and physical plans never contain it.
    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        Err(DataFusionError::Internal(format!("{} was called outside of a SubPlan", self.name())))
    }
}

impl PartialEq for CorrelatedSubquery {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind && self.outer_columns == other.outer_columns && self.plan == other.plan
    }
}

impl Eq for CorrelatedSubquery {}

impl Hash for CorrelatedSubquery {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.kind.hash(state);
        self.outer_columns.hash(state);
        self.plan.hash(state);
    }
}
