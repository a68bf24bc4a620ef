//! The function that replaces a correlated subquery; its arguments are the outer columns that the subquery uses.
//!
//! [`lift`](super::lift::lift) moves its calls to a node whose operator evaluates them asynchronously.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion::common::{Column, DataFusionError, Result as DfResult};
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use plan::any_expression;

use super::Surroundings;

/// Kind of value that is computed from the subquery's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Question {
    /// The value of its only row, NULL without a row (scalar subquery).
    Value,
    /// The values of all rows as a list, in the subquery's order (`ARRAY(subquery)`).
    All,
    /// All rows as a list of structs whose fields are named by [`field_name`] (LATERAL).
    Rows,
    /// Whether there is a row (EXISTS).
    Exists,
    /// Whether the last argument is among the values; NULL if a NULL prevents an answer (IN).
    Contains,
}

/// Correlated subquery as a function of the outer columns that it uses.
#[derive(Debug, Clone)]
pub struct Dependent {
    pub question: Question,
    /// Plan of the subquery's rows.
    pub plan: Arc<LogicalPlan>,
    /// Columns of enclosing queries that `plan` uses; the function's first arguments, in this order.
    pub outer: Vec<Column>,
    /// Session state and cancellation token that the subquery runs with.
    pub within: Surroundings,
    /// Field of the function's result.
    pub result: FieldRef,
    signature: Signature,
}

impl Dependent {
    /// Creates the function. Its arguments are the values of `outer`, the columns of enclosing queries that `plan`
    /// uses, in this order; for [`Question::Contains`] the value to look for follows.
    pub(super) fn new(question: Question, plan: Arc<LogicalPlan>, outer: Vec<Column>, within: &Surroundings) -> Self {
        let result = match question {
            Question::Value => plan.schema().field(0).as_ref().clone().with_nullable(true),
            Question::All => super::array::list_field(plan.schema().field(0)),
            Question::Rows => rows_field(&plan),
            Question::Exists | Question::Contains => Field::new("subquery", DataType::Boolean, true),
        };
        let count = outer.len() + usize::from(question == Question::Contains);
        let signature =
            if count == 0 { Signature::nullary(Volatility::Stable) } else { Signature::any(count, Volatility::Stable) };
        Self { question, plan, outer, within: within.clone(), result: Arc::new(result), signature }
    }

    /// Returns whether two runs for the same outer values may give different results.
    ///
    /// # Errors
    /// None that well-formed plans meet.
    pub fn is_volatile(&self) -> DfResult<bool> {
        any_expression(&self.plan, |expr| {
            let dependent = match expr {
                Expr::ScalarFunction(call) => call.func.inner().downcast_ref::<Dependent>(),
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

impl ScalarUDFImpl for Dependent {
    fn name(&self) -> &str {
        match self.question {
            Question::Value => "subquery",
            Question::All => "subquery_values",
            Question::Rows => "subquery_rows",
            Question::Exists => "subquery_exists",
            Question::Contains => "subquery_contains",
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

impl PartialEq for Dependent {
    fn eq(&self, other: &Self) -> bool {
        self.question == other.question && self.outer == other.outer && self.plan == other.plan
    }
}

impl Eq for Dependent {}

impl Hash for Dependent {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.question.hash(state);
        self.outer.hash(state);
        self.plan.hash(state);
    }
}
