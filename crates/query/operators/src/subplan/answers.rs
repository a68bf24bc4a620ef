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
use optimizer::dependent::{Dependent, Question, Slots, lift, parameterize};
use optimizer::shared::by_rules;
use parking_lot::Mutex;
use plan::stop::stoppable;
use types::interrupt::canceled;
use types::{Condition, SqlError};

use super::expression::are_equal;
use crate::shared_rows::RowsOfRun;

/// Execution context of the plan around a subquery.
#[derive(Clone)]
pub(super) struct Run {
    pub(super) context: Arc<TaskContext>,
    /// Rows that the plan and its subqueries share.
    pub(super) rows: Option<Arc<RowsOfRun>>,
}

/// Cache of one partition's results of a correlated subquery; each is computed once while there is memory.
pub(super) struct Answers {
    dependent: Dependent,
    run: Run,
    slots: Slots,
    prepared: Option<Prepared>,
    /// Results by outer values.
    known: HashMap<Vec<ScalarValue>, Answer>,
    /// True if equal outer values give equal results.
    is_stable: bool,
    /// Memory of the cached results.
    kept: MemoryReservation,
    /// Memory of the running subquery.
    running: MemoryReservation,
}

/// Operators of the subquery with slots for the outer values, and their task context.
struct Prepared {
    plan: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
}

/// Result of a correlated subquery for one combination of outer values.
#[derive(Debug, Clone)]
enum Answer {
    Value(ScalarValue),
    /// Values of an IN subquery, to be searched for each row.
    Among(Vec<ArrayRef>),
}

impl Answer {
    fn size(&self) -> usize {
        match self {
            Self::Value(value) => value.size(),
            Self::Among(values) => values.iter().map(|values| values.get_array_memory_size()).sum(),
        }
    }
}

impl Answers {
    pub(super) fn new(dependent: Dependent, run: &Run) -> DfResult<Self> {
        let kept = MemoryConsumer::new("correlated subquery").register(run.context.memory_pool());
        let running = kept.new_empty();
        let is_stable = !dependent.is_volatile()?;
        Ok(Self {
            dependent,
            run: run.clone(),
            slots: Arc::new(Mutex::new(Vec::new())),
            prepared: None,
            known: HashMap::new(),
            is_stable,
            kept,
            running,
        })
    }

    /// Returns the results for rows; `columns` are the outer values, followed by the value to search for (IN).
    pub(super) async fn answer(&mut self, columns: &[ArrayRef], rows: usize) -> DfResult<ArrayRef> {
        let (outer, looked_for) = columns.split_at(self.dependent.outer.len());
        let results = self.kept.new_empty();
        let mut answers = Vec::with_capacity(rows);
        for row in 0..rows {
            let key =
                outer.iter().map(|column| ScalarValue::try_from_array(column, row)).collect::<DfResult<Vec<_>>>()?;
            let answer = match self.known.get(&key) {
                Some(answer) => answer.clone(),
                None => self.find(key).await?,
            };
            let value = match (answer, looked_for.first()) {
                (Answer::Value(value), _) => value,
                (Answer::Among(values), Some(column)) => contains(&values, &ScalarValue::try_from_array(column, row)?)?,
                (Answer::Among(_), None) => {
                    return Err(DataFusionError::Internal("IN subquery: the value to look for is missing".to_owned()));
                }
            };
            self.take(&results, value.size())?;
            answers.push(value);
        }
        if answers.is_empty() {
            return Ok(new_empty_array(self.dependent.result.data_type()));
        }
        ScalarValue::iter_to_array(answers)
    }

    /// Runs the subquery for outer values and caches the result.
    async fn find(&mut self, key: Vec<ScalarValue>) -> DfResult<Answer> {
        self.slots.lock().clone_from(&key);
        let Prepared { plan, context } = match self.prepared.take() {
            Some(Prepared { plan, context }) => Prepared { plan: reset_plan_states(plan)?, context },
            None => self.prepare().await?,
        };
        let batches = self.run(&plan, &context).await?;
        let answer = self.judge(&batches)?;
        self.prepared = Some(Prepared { plan, context });
        drop(batches);
        self.running.free();
        let size = answer.size() + key.iter().map(ScalarValue::size).sum::<usize>();
        if self.is_stable && self.kept.try_grow(size).is_ok() {
            self.known.insert(key, answer.clone());
        }
        Ok(answer)
    }

    /// Plans the subquery with slots for the outer values, in one partition: it is small and runs often.
    async fn prepare(&self) -> DfResult<Prepared> {
        let within = &self.dependent.within;
        let mut config = within.state.config().clone().with_target_partitions(1);
        // Scans would keep the dynamic filters that the first run's joins and top-k computed, which do not hold for the
        // next.
        let rules = &mut config.options_mut().optimizer;
        rules.enable_dynamic_filter_pushdown = false;
        rules.enable_topk_dynamic_filter_pushdown = false;
        rules.enable_join_dynamic_filter_pushdown = false;
        rules.enable_aggregate_dynamic_filter_pushdown = false;
        if let Some(rows) = &self.run.rows {
            rows.extend(&mut config);
        }
        let state = SessionStateBuilder::new_from_existing(within.state.as_ref().clone()).with_config(config).build();
        let plan = parameterize(self.dependent.plan.as_ref().clone(), &self.dependent.outer, &self.slots)?;
        let plan = by_rules(plan, &state)?;
        let plan = state.query_planner().create_physical_plan(lift(&plan)?.as_ref(), &state).await?;
        let plan = stoppable(plan, &within.stop)?;
        // The query's own memory pool.
        let context = TaskContext::from(&state).with_runtime(self.run.context.runtime_env());
        Ok(Prepared { plan, context: Arc::new(context) })
    }

    /// Reads as many of the subquery's rows as its result depends on.
    async fn run(&mut self, plan: &Arc<dyn ExecutionPlan>, context: &Arc<TaskContext>) -> DfResult<Vec<RecordBatch>> {
        let enough = match self.dependent.question {
            Question::Exists => 1,
            Question::Value => 2,
            Question::All | Question::Rows | Question::Contains => usize::MAX,
        };
        let stop = self.dependent.within.stop.clone();
        let mut rows = execute_stream(Arc::clone(plan), Arc::clone(context))?;
        let (mut batches, mut count) = (Vec::new(), 0);
        while count < enough {
            let batch = tokio::select! {
                biased;
                () = stop.cancelled() => return Err(to_datafusion(canceled())),
                batch = rows.next() => batch,
            };
            let Some(batch) = batch.transpose()? else { break };
            count += batch.num_rows();
            let size = batch.get_array_memory_size();
            if self.running.try_grow(size).is_err() {
                self.forget();
                self.running.try_grow(size)?;
            }
            batches.push(batch);
        }
        Ok(batches)
    }

    fn take(&mut self, results: &MemoryReservation, size: usize) -> DfResult<()> {
        if results.try_grow(size).is_ok() {
            return Ok(());
        }
        self.forget();
        results.try_grow(size)
    }

    /// Drops all cached results to free memory.
    fn forget(&mut self) {
        self.known = HashMap::new();
        self.kept.free();
    }

    fn judge(&self, batches: &[RecordBatch]) -> DfResult<Answer> {
        let count: usize = batches.iter().map(RecordBatch::num_rows).sum();
        let value = match self.dependent.question {
            Question::Exists => ScalarValue::Boolean(Some(count > 0)),
            Question::All => self.list(batches)?,
            Question::Rows => self.rows(batches)?,
            Question::Value if count > 1 => {
                return Err(DataFusionError::External(Box::new(SqlError::new(
                    Condition::CardinalityViolation,
                    "more than one row returned by a subquery used as an expression",
                ))));
            }
            Question::Value => match batches.iter().find(|batch| batch.num_rows() == 1) {
                Some(batch) => ScalarValue::try_from_array(batch.column(0), 0)?,
                None => ScalarValue::try_from(self.dependent.result.data_type())?,
            },
            Question::Contains => {
                let batches = batches.iter().filter(|batch| batch.num_rows() != 0);
                return Ok(Answer::Among(batches.map(|batch| Arc::clone(batch.column(0))).collect()));
            }
        };
        Ok(Answer::Value(value))
    }

    fn list(&self, batches: &[RecordBatch]) -> DfResult<ScalarValue> {
        let DataType::List(item) = self.dependent.result.data_type() else {
            return Err(DataFusionError::Internal("ARRAY subquery: the result type is not a list".to_owned()));
        };
        let parts: Vec<&dyn Array> = batches.iter().map(|batch| batch.column(0).as_ref()).collect();
        let items = if parts.is_empty() { new_empty_array(item.data_type()) } else { concat(&parts)? };
        let offsets = OffsetBuffer::from_lengths([items.len()]);
        let list = ListArray::try_new(Arc::clone(item), offsets, items, None)?;
        Ok(ScalarValue::List(Arc::new(list)))
    }

    fn rows(&self, batches: &[RecordBatch]) -> DfResult<ScalarValue> {
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
