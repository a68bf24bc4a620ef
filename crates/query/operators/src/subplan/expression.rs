//! Expressions that await subqueries asynchronously.
//!
//! An expression is split at its subquery calls and at the nodes that decide whether a call is made: CASE, AND and OR.
//! Each of these becomes a column, evaluated only for the rows that need it; the remaining expression is evaluated over
//! these columns as usual.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, UInt32Array, new_empty_array, new_null_array,
};
use arrow::compute::{and_kleene, interleave, or_kleene, take_record_batch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DataFusionError, Result as DfResult, ScalarValue};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, CaseExpr, Column};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use futures::FutureExt;
use futures::future::BoxFuture;
use optimizer::correlated_subqueries::CorrelatedSubquery;

use super::subquery_results::{SubqueryContext, SubqueryResults};

/// Expression compiled for one partition, with the cached results of its subqueries.
pub(super) struct AsyncExpression {
    /// Parts that are evaluated first; their values are columns after those of the rows, in this order.
    parts: Vec<AsyncPart>,
    /// Remaining expression, over the columns of the rows and of the parts.
    remaining: Arc<dyn PhysicalExpr>,
    schema: SchemaRef,
}

/// Subexpression that waits for a subquery, or decides whether one is called.
enum AsyncPart {
    Subquery {
        results: Box<SubqueryResults>,
        arguments: Vec<AsyncExpression>,
    },
    Case(Box<Case>),
    /// AND or OR: the right side is evaluated for rows that the left side does not decide.
    Logic {
        is_and: bool,
        left: Box<AsyncExpression>,
        right: Box<AsyncExpression>,
    },
}

/// CASE whose branches are evaluated only for the rows that reach them.
struct Case {
    /// Operand of a simple CASE, appended to the rows as a column for the branches.
    operand: Option<AsyncExpression>,
    schema: SchemaRef,
    branches: Vec<(AsyncExpression, AsyncExpression)>,
    otherwise: Option<AsyncExpression>,
    data_type: DataType,
}

impl AsyncExpression {
    /// Compiles `expr` over rows of `schema`.
    pub(super) fn compile(expr: &Arc<dyn PhysicalExpr>, schema: &SchemaRef, run: &SubqueryContext) -> DfResult<Self> {
        let mut parts = Vec::new();
        let mut fields = schema.fields().to_vec();
        let rest = Arc::clone(expr).transform_down(|node| {
            if !calls_subquery(&node) {
                return Ok(Transformed::new(node, false, TreeNodeRecursion::Jump));
            }
            let Some(part) = AsyncPart::compile(&node, schema, run)? else { return Ok(Transformed::no(node)) };
            let field = node.return_field(schema)?.as_ref().clone().with_nullable(true);
            let column = Column::new(field.name(), fields.len());
            fields.push(Arc::new(field));
            parts.push(part);
            Ok(Transformed::new(Arc::new(column) as Arc<dyn PhysicalExpr>, true, TreeNodeRecursion::Jump))
        })?;
        Ok(Self { parts, remaining: rest.data, schema: Arc::new(Schema::new(fields)) })
    }

    /// Evaluates the expression for the rows of a batch.
    pub(super) fn evaluate<'a>(&'a mut self, batch: &'a RecordBatch) -> BoxFuture<'a, DfResult<ArrayRef>> {
        async move {
            if self.parts.is_empty() {
                return self.remaining.evaluate(batch)?.into_array(batch.num_rows());
            }
            let mut columns = batch.columns().to_vec();
            for part in &mut self.parts {
                columns.push(part.evaluate(batch).await?);
            }
            let batch = with_columns(&self.schema, columns, batch.num_rows())?;
            self.remaining.evaluate(&batch)?.into_array(batch.num_rows())
        }
        .boxed()
    }
}

impl AsyncPart {
    /// Compiles a node; `None` if it is an ordinary expression over its parts.
    fn compile(node: &Arc<dyn PhysicalExpr>, schema: &SchemaRef, run: &SubqueryContext) -> DfResult<Option<Self>> {
        let compile = |expr: &Arc<dyn PhysicalExpr>| AsyncExpression::compile(expr, schema, run);
        if let Some(call) = node.downcast_ref::<ScalarFunctionExpr>() {
            let Some(dependent) = call.fun().inner().downcast_ref::<CorrelatedSubquery>() else { return Ok(None) };
            let results = Box::new(SubqueryResults::new(dependent.clone(), run)?);
            let arguments = call.args().iter().map(compile).collect::<DfResult<_>>()?;
            return Ok(Some(Self::Subquery { results, arguments }));
        }
        if let Some(case) = node.downcast_ref::<CaseExpr>() {
            return Ok(Some(Self::Case(Box::new(Case::compile(case, node.data_type(schema)?, schema, run)?))));
        }
        if let Some(binary) = node.downcast_ref::<BinaryExpr>()
            && matches!(binary.op(), Operator::And | Operator::Or)
        {
            let (left, right) = (Box::new(compile(binary.left())?), Box::new(compile(binary.right())?));
            return Ok(Some(Self::Logic { is_and: *binary.op() == Operator::And, left, right }));
        }
        Ok(None)
    }

    async fn evaluate(&mut self, batch: &RecordBatch) -> DfResult<ArrayRef> {
        match self {
            Self::Subquery { results, arguments } => {
                let mut columns = Vec::with_capacity(arguments.len());
                for argument in arguments {
                    columns.push(argument.evaluate(batch).await?);
                }
                results.evaluate(&columns, batch.num_rows()).await
            }
            Self::Case(case) => case.evaluate(batch).await,
            Self::Logic { is_and, left, right } => evaluate_logic(*is_and, left, right, batch).await,
        }
    }
}

async fn evaluate_logic(
    is_and: bool,
    left: &mut AsyncExpression,
    right: &mut AsyncExpression,
    batch: &RecordBatch,
) -> DfResult<ArrayRef> {
    let decided = left.evaluate(batch).await?;
    let left = booleans(&decided)?;
    let is_open = |row: &u32| left.is_null(*row as usize) || left.value(*row as usize) == is_and;
    let open: Vec<u32> = rows_of(batch)?.filter(is_open).collect();
    if open.is_empty() {
        return Ok(decided);
    }
    let asked = right.evaluate(&select_rows(batch, &open)?).await?;
    // Where the left side decides, its value is used for both sides.
    let mut places: Vec<(usize, usize)> = (0..batch.num_rows()).map(|row| (0, row)).collect();
    for (at, row) in open.iter().enumerate() {
        places[*row as usize] = (1, at);
    }
    let right = interleave(&[decided.as_ref(), asked.as_ref()], &places)?;
    let right = booleans(&right)?;
    Ok(Arc::new(if is_and { and_kleene(left, right)? } else { or_kleene(left, right)? }))
}

impl Case {
    fn compile(case: &CaseExpr, data_type: DataType, schema: &SchemaRef, run: &SubqueryContext) -> DfResult<Self> {
        let mut fields = schema.fields().to_vec();
        let operand = case.expr().map(|operand| {
            fields.push(Arc::new(Field::new("operand", operand.data_type(schema)?, true)));
            AsyncExpression::compile(operand, schema, run)
        });
        let operand = operand.transpose()?;
        let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new("operand", schema.fields().len()));
        let schema = Arc::new(Schema::new(fields));
        let compile = |expr: &Arc<dyn PhysicalExpr>| AsyncExpression::compile(expr, &schema, run);
        let branches = case.when_then_expr().iter().map(|(when, then)| {
            let when = match operand {
                Some(_) => Arc::new(BinaryExpr::new(Arc::clone(&column), Operator::Eq, Arc::clone(when))),
                None => return Ok((compile(when)?, compile(then)?)),
            };
            Ok((compile(&(when as Arc<dyn PhysicalExpr>))?, compile(then)?))
        });
        let branches = branches.collect::<DfResult<_>>()?;
        let otherwise = case.else_expr().map(compile).transpose()?;
        Ok(Self { operand, schema, branches, otherwise, data_type })
    }

    async fn evaluate(&mut self, batch: &RecordBatch) -> DfResult<ArrayRef> {
        let mut columns = batch.columns().to_vec();
        if let Some(operand) = &mut self.operand {
            columns.push(operand.evaluate(batch).await?);
        }
        let batch = with_columns(&self.schema, columns, batch.num_rows())?;
        let mut open: Vec<u32> = rows_of(&batch)?.collect();
        let mut values: Vec<ArrayRef> = Vec::with_capacity(self.branches.len() + 1);
        let mut places = vec![(0, 0); batch.num_rows()];
        let mut put = |rows: &[u32], of_rows: ArrayRef| {
            for (at, row) in rows.iter().enumerate() {
                places[*row as usize] = (values.len(), at);
            }
            values.push(of_rows);
        };
        for (when, then) in &mut self.branches {
            if open.is_empty() {
                break;
            }
            let holds = when.evaluate(&select_rows(&batch, &open)?).await?;
            let holds = booleans(&holds)?;
            let rows = open.iter().enumerate();
            let (taken, left): (Vec<_>, Vec<_>) = rows.partition(|(at, _)| holds.is_valid(*at) && holds.value(*at));
            let taken: Vec<u32> = taken.into_iter().map(|(_, row)| *row).collect();
            let left = left.into_iter().map(|(_, row)| *row).collect();
            if !taken.is_empty() {
                put(&taken, then.evaluate(&select_rows(&batch, &taken)?).await?);
            }
            open = left;
        }
        if !open.is_empty() {
            let rest = match &mut self.otherwise {
                Some(otherwise) => otherwise.evaluate(&select_rows(&batch, &open)?).await?,
                None => new_null_array(&self.data_type, open.len()),
            };
            put(&open, rest);
        }
        if values.is_empty() {
            return Ok(new_empty_array(&self.data_type));
        }
        let values: Vec<&dyn Array> = values.iter().map(AsRef::as_ref).collect();
        Ok(interleave(&values, &places)?)
    }
}

fn calls_subquery(expr: &Arc<dyn PhysicalExpr>) -> bool {
    let is_call =
        expr.downcast_ref::<ScalarFunctionExpr>().is_some_and(|call| call.fun().inner().is::<CorrelatedSubquery>());
    is_call || expr.children().into_iter().any(calls_subquery)
}

fn with_columns(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> DfResult<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}

fn rows_of(batch: &RecordBatch) -> DfResult<std::ops::Range<u32>> {
    let rows = u32::try_from(batch.num_rows());
    rows.map(|rows| 0..rows).map_err(|_| DataFusionError::Internal("a batch has more than 2^32 rows".to_owned()))
}

/// Returns the batch's rows at the positions `rows`, which are ascending.
fn select_rows(batch: &RecordBatch, rows: &[u32]) -> DfResult<RecordBatch> {
    if rows.len() == batch.num_rows() {
        return Ok(batch.clone());
    }
    Ok(take_record_batch(batch, &UInt32Array::from(rows.to_vec()))?)
}

fn booleans(values: &ArrayRef) -> DfResult<&arrow::array::BooleanArray> {
    let not_boolean = || DataFusionError::Internal(format!("a subplan's condition has type {}", values.data_type()));
    values.as_boolean_opt().ok_or_else(not_boolean)
}

/// Compares two values of a type as SQL does: zeros are equal whatever their sign, and NaN equals NaN.
pub(super) fn are_equal(one: &ScalarValue, other: &ScalarValue) -> bool {
    match (one, other) {
        (ScalarValue::Float64(Some(one)), ScalarValue::Float64(Some(other))) => {
            one == other || (one.is_nan() && other.is_nan())
        }
        (ScalarValue::Float32(Some(one)), ScalarValue::Float32(Some(other))) => {
            one == other || (one.is_nan() && other.is_nan())
        }
        _ => one == other,
    }
}
