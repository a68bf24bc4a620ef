//! The function that a dependent subquery becomes: runs its plan for every distinct combination of outer values in a batch.

use std::collections::HashMap;
use std::future::Future;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ListArray, RecordBatch, StructArray, new_empty_array};
use arrow::buffer::OffsetBuffer;
use arrow::compute::concat;
use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion::common::{Column, DataFusionError, Result as DfResult, ScalarValue};
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::{
    ColumnarValue, LogicalPlan, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::{ExecutionPlan, collect};
use parking_lot::Mutex;
use tokio::runtime::{Handle, RuntimeFlavor};
use types::{Condition, SqlError};

use super::Surroundings;
use super::parameter::{Slots, parameterize};
use crate::error::to_datafusion;
use crate::shared::by_rules;
use crate::stop::{canceled, stoppable};

/// What is asked of the subquery's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Question {
    /// The value of its one row, NULL without one.
    Value,
    /// The values of all rows as a list, in their order.
    All,
    /// All rows as a list of structs with fields [`field_name`].
    Rows,
    /// Whether there is a row.
    Exists,
    /// Whether the last argument is among the values, unknown where a NULL could be it.
    Contains,
}

/// A subquery as a function of the outer columns it uses.
#[derive(Debug)]
pub(super) struct Dependent {
    question: Question,
    plan: Arc<LogicalPlan>,
    outer: Vec<Column>,
    within: Surroundings,
    result: FieldRef,
    signature: Signature,
}

impl Dependent {
    /// `outer` are the columns that `plan` uses of the queries around it: the function's arguments in this order, then for
    /// [`Question::Contains`] the value looked for.
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

    /// The subquery's plan with slots for the outer values: small and run often, so in one partition.
    async fn prepare(&self, slots: &Slots) -> DfResult<(Arc<SessionState>, Arc<dyn ExecutionPlan>)> {
        let mut config = self.within.state.config().clone().with_target_partitions(1);
        // Scans would go on with what the first run's joins and top-k learned, which is not true of the next.
        let rules = &mut config.options_mut().optimizer;
        rules.enable_dynamic_filter_pushdown = false;
        rules.enable_topk_dynamic_filter_pushdown = false;
        rules.enable_join_dynamic_filter_pushdown = false;
        rules.enable_aggregate_dynamic_filter_pushdown = false;
        let state =
            SessionStateBuilder::new_from_existing(self.within.state.as_ref().clone()).with_config(config).build();
        let plan = parameterize(self.plan.as_ref().clone(), &self.outer, slots)?;
        let plan = by_rules(plan, &state)?;
        let physical = state.query_planner().create_physical_plan(&plan, &state).await?;
        let physical = stoppable(physical, &self.within.stop)?;
        Ok((Arc::new(state), physical))
    }

    async fn answer(&self, columns: Vec<ColumnarValue>, rows: usize) -> DfResult<ColumnarValue> {
        let columns = columns.iter().map(|column| column.to_array(rows)).collect::<DfResult<Vec<_>>>()?;
        let mut prepared = None;
        let slots: Slots = Arc::new(Mutex::new(Vec::new()));
        let mut known: HashMap<Vec<ScalarValue>, Vec<RecordBatch>> = HashMap::new();
        let mut answers = Vec::with_capacity(rows);
        for row in 0..rows {
            let key = columns[..self.outer.len()]
                .iter()
                .map(|column| ScalarValue::try_from_array(column, row))
                .collect::<DfResult<Vec<_>>>()?;
            if !known.contains_key(&key) {
                slots.lock().clone_from(&key);
                let (state, plan) = match prepared.take() {
                    Some((state, plan)) => (state, reset_plan_states(plan)?),
                    None => self.prepare(&slots).await?,
                };
                let batches = tokio::select! {
                    biased;
                    () = self.within.stop.cancelled() => return Err(to_datafusion(canceled())),
                    batches = collect(Arc::clone(&plan), state.task_ctx()) => batches?,
                };
                prepared = Some((state, plan));
                known.insert(key.clone(), batches);
            }
            let looked_for = columns.get(self.outer.len()).map(|column| ScalarValue::try_from_array(column, row));
            answers.push(self.judge(&known[&key], looked_for.transpose()?)?);
        }
        if answers.is_empty() {
            return Ok(ColumnarValue::Array(new_empty_array(self.result.data_type())));
        }
        Ok(ColumnarValue::Array(ScalarValue::iter_to_array(answers)?))
    }

    fn judge(&self, batches: &[RecordBatch], looked_for: Option<ScalarValue>) -> DfResult<ScalarValue> {
        let count: usize = batches.iter().map(RecordBatch::num_rows).sum();
        match self.question {
            Question::Exists => Ok(ScalarValue::Boolean(Some(count > 0))),
            Question::All => self.list(batches),
            Question::Rows => self.rows(batches),
            Question::Value if count > 1 => Err(DataFusionError::External(Box::new(SqlError::new(
                Condition::CardinalityViolation,
                "more than one row returned by a subquery used as an expression",
            )))),
            Question::Value => match batches.iter().find(|batch| batch.num_rows() == 1) {
                Some(batch) => ScalarValue::try_from_array(batch.column(0), 0),
                None => ScalarValue::try_from(self.result.data_type()),
            },
            Question::Contains => {
                let looked_for = looked_for.filter(|value| !value.is_null());
                let mut has_null = looked_for.is_none();
                for batch in batches {
                    for row in 0..batch.num_rows() {
                        let value = ScalarValue::try_from_array(batch.column(0), row)?;
                        has_null |= value.is_null();
                        if looked_for.as_ref() == Some(&value) {
                            return Ok(ScalarValue::Boolean(Some(true)));
                        }
                    }
                }
                Ok(ScalarValue::Boolean(if has_null && count > 0 { None } else { Some(false) }))
            }
        }
    }
}

impl Dependent {
    fn list(&self, batches: &[RecordBatch]) -> DfResult<ScalarValue> {
        let DataType::List(item) = self.result.data_type() else {
            return Err(DataFusionError::Internal("the rows of a subquery are a list".to_owned()));
        };
        let parts: Vec<&dyn Array> = batches.iter().map(|batch| batch.column(0).as_ref()).collect();
        let items = if parts.is_empty() { new_empty_array(item.data_type()) } else { concat(&parts)? };
        let offsets = OffsetBuffer::from_lengths([items.len()]);
        let list = ListArray::try_new(Arc::clone(item), offsets, items, None)?;
        Ok(ScalarValue::List(Arc::new(list)))
    }

    fn rows(&self, batches: &[RecordBatch]) -> DfResult<ScalarValue> {
        let DataType::List(item) = self.result.data_type() else {
            return Err(DataFusionError::Internal("the rows of a subquery are a list".to_owned()));
        };
        let DataType::Struct(fields) = item.data_type() else {
            return Err(DataFusionError::Internal("the rows of a subquery are structs".to_owned()));
        };
        let count = batches.iter().map(RecordBatch::num_rows).sum();
        let columns = fields
            .iter()
            .enumerate()
            .map(|(at, field)| {
                let parts: Vec<&dyn Array> = batches.iter().map(|batch| batch.column(at).as_ref()).collect();
                Ok(if parts.is_empty() { new_empty_array(field.data_type()) } else { concat(&parts)? })
            })
            .collect::<DfResult<Vec<_>>>()?;
        let rows = StructArray::try_new_with_length(fields.clone(), columns, None, count)?;
        let offsets = OffsetBuffer::from_lengths([count]);
        let list = ListArray::try_new(Arc::clone(item), offsets, Arc::new(rows), None)?;
        Ok(ScalarValue::List(Arc::new(list)))
    }
}

/// The name of a row's value at `at`.
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

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let constant = args.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        let rows = if constant { args.number_rows.min(1) } else { args.number_rows };
        let answer = wait_for(self.answer(args.args, rows))?;
        match answer {
            ColumnarValue::Array(array) if constant && rows == 1 => {
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?))
            }
            other => Ok(other),
        }
    }
}

/// Runs to its end a future that an operator in the middle of a batch needs the result of.
fn wait_for<F>(future: F) -> DfResult<ColumnarValue>
where
    F: Future<Output = DfResult<ColumnarValue>> + Send,
{
    match Handle::try_current() {
        Ok(handle) if handle.runtime_flavor() == RuntimeFlavor::MultiThread => {
            tokio::task::block_in_place(|| handle.block_on(future))
        }
        // A runtime of one thread cannot wait for itself.
        _ => std::thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
                runtime.block_on(future)
            });
            waiter.join().unwrap_or_else(|_| Err(DataFusionError::Execution("a subquery's run panicked".to_owned())))
        }),
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
