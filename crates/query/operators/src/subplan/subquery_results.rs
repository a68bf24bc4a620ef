//! Results of a correlated subquery, cached by outer values, and the runs that compute them.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ListArray, RecordBatch, StructArray, new_empty_array};
use arrow::buffer::OffsetBuffer;
use arrow::compute::concat;
use arrow::datatypes::DataType;
use datafusion::common::{DataFusionError, Result as DfResult, ScalarValue};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SessionStateBuilder, TaskContext};
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use functions::error::to_datafusion;
use futures::StreamExt;
use optimizer::common_subplans::apply_rules;
use optimizer::correlated_subqueries::{CorrelatedSubquery, OuterValues, SubqueryKind, lift, parameterize};
use parking_lot::Mutex;
use plan::cancellation::make_cancellable;
use types::interrupt::canceled_error;
use types::{Condition, SqlError};

use super::expression::are_equal;
use crate::shared_rows::SharedRowsRegistry;

/// Execution context of the plan around a subquery.
#[derive(Clone)]
pub(super) struct SubqueryContext {
    pub(super) context: Arc<TaskContext>,
    /// Rows that the plan and its subqueries share.
    pub(super) rows: Option<Arc<SharedRowsRegistry>>,
}

/// Cache of one partition's results of a correlated subquery; each is computed once while there is memory.
pub(super) struct SubqueryResults {
    dependent: CorrelatedSubquery,
    run: SubqueryContext,
    slots: OuterValues,
    prepared: Option<PreparedSubquery>,
    /// Results by outer values.
    results: HashMap<Vec<ScalarValue>, SubqueryResult>,
    /// True if equal outer values give equal results.
    is_stable: bool,
    /// Memory of the cached results.
    results_memory: MemoryReservation,
    /// Memory of the running subquery.
    run_memory: MemoryReservation,
}

/// Operators of the subquery with slots for the outer values, and their task context.
struct PreparedSubquery {
    plan: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
}

/// Result of a correlated subquery for one combination of outer values.
#[derive(Debug, Clone)]
enum SubqueryResult {
    Value(ScalarValue),
    /// Values of an IN subquery, to be searched for each row.
    InValues(Vec<ArrayRef>),
}

impl SubqueryResult {
    fn size(&self) -> usize {
        match self {
            Self::Value(value) => value.size(),
            Self::InValues(values) => values.iter().map(|values| values.get_array_memory_size()).sum(),
        }
    }
}

impl SubqueryResults {
    pub(super) fn new(dependent: CorrelatedSubquery, run: &SubqueryContext) -> DfResult<Self> {
        let kept = MemoryConsumer::new("correlated subquery").register(run.context.memory_pool());
        let running = kept.new_empty();
        let is_stable = !dependent.is_volatile()?;
        Ok(Self {
            dependent,
            run: run.clone(),
            slots: Arc::new(Mutex::new(Vec::new())),
            prepared: None,
            results: HashMap::new(),
            is_stable,
            results_memory: kept,
            run_memory: running,
        })
    }

    /// Returns the results for rows; `columns` are the outer values, followed by the value to search for (IN).
    pub(super) async fn evaluate(&mut self, columns: &[ArrayRef], rows: usize) -> DfResult<ArrayRef> {
        let (outer, looked_for) = columns.split_at(self.dependent.outer_columns.len());
        let results = self.results_memory.new_empty();
        let mut answers = Vec::with_capacity(rows);
        for row in 0..rows {
            let key =
                outer.iter().map(|column| ScalarValue::try_from_array(column, row)).collect::<DfResult<Vec<_>>>()?;
            let answer = match self.results.get(&key) {
                Some(answer) => answer.clone(),
                None => self.run_and_cache(key).await?,
            };
            let value = match (answer, looked_for.first()) {
                (SubqueryResult::Value(value), _) => value,
                (SubqueryResult::InValues(values), Some(column)) => {
                    contains(&values, &ScalarValue::try_from_array(column, row)?)?
                }
                (SubqueryResult::InValues(_), None) => {
                    return Err(DataFusionError::Internal("IN subquery: the value to look for is missing".to_owned()));
                }
            };
            self.reserve(&results, value.size())?;
            answers.push(value);
        }
        if answers.is_empty() {
            return Ok(new_empty_array(self.dependent.result.data_type()));
        }
        ScalarValue::iter_to_array(answers)
    }

    /// Runs the subquery for outer values and caches the result.
    async fn run_and_cache(&mut self, key: Vec<ScalarValue>) -> DfResult<SubqueryResult> {
        self.slots.lock().clone_from(&key);
        let PreparedSubquery { plan, context } = match self.prepared.take() {
            Some(PreparedSubquery { plan, context }) => PreparedSubquery { plan: reset_plan_states(plan)?, context },
            None => self.plan_subquery().await?,
        };
        let batches = self.run(&plan, &context).await?;
        let answer = self.to_result(&batches)?;
        self.prepared = Some(PreparedSubquery { plan, context });
        drop(batches);
        self.run_memory.free();
        let size = answer.size() + key.iter().map(ScalarValue::size).sum::<usize>();
        if self.is_stable && self.results_memory.try_grow(size).is_ok() {
            self.results.insert(key, answer.clone());
        }
        Ok(answer)
    }

    /// Plans the subquery with slots for the outer values, in one partition: it is small and runs often.
    async fn plan_subquery(&self) -> DfResult<PreparedSubquery> {
        let within = &self.dependent.context;
        let mut config = within.state.config().clone().with_target_partitions(1);
        // Scans would keep the dynamic filters that the first run's joins and top-k computed, which do not hold for the
        // next.
        let rules = &mut config.options_mut().optimizer;
        rules.enable_dynamic_filter_pushdown = false;
        rules.enable_topk_dynamic_filter_pushdown = false;
        rules.enable_join_dynamic_filter_pushdown = false;
        rules.enable_aggregate_dynamic_filter_pushdown = false;
        if let Some(rows) = &self.run.rows {
            rows.install_in(&mut config);
        }
        let state = SessionStateBuilder::new_from_existing(within.state.as_ref().clone()).with_config(config).build();
        let plan = parameterize(self.dependent.plan.as_ref().clone(), &self.dependent.outer_columns, &self.slots)?;
        let plan = apply_rules(plan, &state)?;
        let plan = state.query_planner().create_physical_plan(lift(&plan)?.as_ref(), &state).await?;
        let plan = make_cancellable(plan, &within.cancellation)?;
        // The query's own memory pool.
        let context = TaskContext::from(&state).with_runtime(self.run.context.runtime_env());
        Ok(PreparedSubquery { plan, context: Arc::new(context) })
    }

    /// Reads as many of the subquery's rows as its result depends on.
    async fn run(&mut self, plan: &Arc<dyn ExecutionPlan>, context: &Arc<TaskContext>) -> DfResult<Vec<RecordBatch>> {
        let enough = match self.dependent.kind {
            SubqueryKind::Exists => 1,
            SubqueryKind::Scalar => 2,
            SubqueryKind::Array | SubqueryKind::Rows | SubqueryKind::In => usize::MAX,
        };
        let stop = self.dependent.context.cancellation.clone();
        let mut rows = execute_stream(Arc::clone(plan), Arc::clone(context))?;
        let (mut batches, mut count) = (Vec::new(), 0);
        while count < enough {
            let batch = tokio::select! {
                biased;
                () = stop.cancelled() => return Err(to_datafusion(canceled_error())),
                batch = rows.next() => batch,
            };
            let Some(batch) = batch.transpose()? else { break };
            count += batch.num_rows();
            let size = batch.get_array_memory_size();
            if self.run_memory.try_grow(size).is_err() {
                self.clear();
                self.run_memory.try_grow(size)?;
            }
            batches.push(batch);
        }
        Ok(batches)
    }

    fn reserve(&mut self, results: &MemoryReservation, size: usize) -> DfResult<()> {
        if results.try_grow(size).is_ok() {
            return Ok(());
        }
        self.clear();
        results.try_grow(size)
    }

    /// Drops all cached results to free memory.
    fn clear(&mut self) {
        self.results = HashMap::new();
        self.results_memory.free();
    }

    fn to_result(&self, batches: &[RecordBatch]) -> DfResult<SubqueryResult> {
        let count: usize = batches.iter().map(RecordBatch::num_rows).sum();
        let value = match self.dependent.kind {
            SubqueryKind::Exists => ScalarValue::Boolean(Some(count > 0)),
            SubqueryKind::Array => self.list_result(batches)?,
            SubqueryKind::Rows => self.rows_result(batches)?,
            SubqueryKind::Scalar if count > 1 => {
                return Err(DataFusionError::External(Box::new(SqlError::new(
                    Condition::CardinalityViolation,
                    "more than one row returned by a subquery used as an expression",
                ))));
            }
            SubqueryKind::Scalar => match batches.iter().find(|batch| batch.num_rows() == 1) {
                Some(batch) => ScalarValue::try_from_array(batch.column(0), 0)?,
                None => ScalarValue::try_from(self.dependent.result.data_type())?,
            },
            SubqueryKind::In => {
                let batches = batches.iter().filter(|batch| batch.num_rows() != 0);
                return Ok(SubqueryResult::InValues(batches.map(|batch| Arc::clone(batch.column(0))).collect()));
            }
        };
        Ok(SubqueryResult::Value(value))
    }

    fn list_result(&self, batches: &[RecordBatch]) -> DfResult<ScalarValue> {
        let DataType::List(item) = self.dependent.result.data_type() else {
            return Err(DataFusionError::Internal("ARRAY subquery: the result type is not a list".to_owned()));
        };
        let parts: Vec<&dyn Array> = batches.iter().map(|batch| batch.column(0).as_ref()).collect();
        let items = if parts.is_empty() { new_empty_array(item.data_type()) } else { concat(&parts)? };
        let offsets = OffsetBuffer::from_lengths([items.len()]);
        let list = ListArray::try_new(Arc::clone(item), offsets, items, None)?;
        Ok(ScalarValue::List(Arc::new(list)))
    }

    fn rows_result(&self, batches: &[RecordBatch]) -> DfResult<ScalarValue> {
        let DataType::List(item) = self.dependent.result.data_type() else {
            return Err(DataFusionError::Internal("LATERAL subquery: the result type is not a list".to_owned()));
        };
        let DataType::Struct(fields) = item.data_type() else {
            return Err(DataFusionError::Internal("LATERAL subquery: the list items are not structs".to_owned()));
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

/// Evaluates IN: NULL if the value is not found but a NULL might equal it.
fn contains(among: &[ArrayRef], looked_for: &ScalarValue) -> DfResult<ScalarValue> {
    if among.is_empty() {
        return Ok(ScalarValue::Boolean(Some(false)));
    }
    if looked_for.is_null() {
        return Ok(ScalarValue::Boolean(None));
    }
    let mut has_null = false;
    for values in among {
        for row in 0..values.len() {
            let value = ScalarValue::try_from_array(values, row)?;
            if are_equal(looked_for, &value) {
                return Ok(ScalarValue::Boolean(Some(true)));
            }
            has_null |= value.is_null();
        }
    }
    Ok(ScalarValue::Boolean(if has_null { None } else { Some(false) }))
}
