//! Aggregates: what is kept of each group, and what is computed of that in the end.

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::Literal;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::{ExecutionPlan, InputOrderMode};
use engine::aggregate::{AggregateSpec, Kept, StateSpec};
use engine::arrow_form::form;
use engine::expression::Expression;
use engine::pipeline::{Sink, Source, Step};

use super::{Builder, Chain, through_exchanges};
use crate::cover::expression;
use crate::cover::foreign::FinishAggregate;

/// Keys of a group: a word says which of them are NULL.
const KEYS_MAX: usize = 60;

impl Builder {
    pub(super) fn aggregate(&mut self, last: &AggregateExec) -> Option<Chain> {
        let first = match last.mode() {
            AggregateMode::Single | AggregateMode::SinglePartitioned => last,
            AggregateMode::Final | AggregateMode::FinalPartitioned => {
                let below = through_exchanges(last.input()).downcast_ref::<AggregateExec>()?;
                (*below.mode() == AggregateMode::Partial).then_some(below)?
            }
            AggregateMode::Partial | AggregateMode::PartialReduce => return None,
        };
        let groups = first.group_expr();
        let is_plain = groups.expr().len() <= KEYS_MAX
            && !groups.has_grouping_set()
            && first.limit_options().is_none()
            && last.limit_options().is_none()
            && *first.input_order_mode() == InputOrderMode::Linear;
        if !is_plain {
            return None;
        }
        let chain = self.below(first.input())?;
        // The columns that are grouped: keys, then arguments and filters, each once.
        let mut columns =
            groups.expr().iter().map(|(key, _)| expression::lower(key, &chain.schema)).collect::<Option<Vec<_>>>()?;
        let mut places: Vec<(Arc<dyn PhysicalExpr>, usize)> = Vec::new();
        let mut place = |argument: &Arc<dyn PhysicalExpr>, columns: &mut Vec<Expression>| {
            if let Some((_, at)) = places.iter().find(|(known, _)| known == argument) {
                return Some(*at);
            }
            columns.push(expression::lower(argument, &chain.schema)?);
            places.push((Arc::clone(argument), columns.len() - 1));
            Some(columns.len() - 1)
        };
        let mut states: Vec<StateSpec> = Vec::new();
        let mut finished = Vec::new();
        for (aggregate, filter) in first.aggr_expr().iter().zip(first.filter_expr()) {
            let filter = filter.as_ref().map(|filter| place(filter, &mut columns));
            let filter = match filter {
                Some(place) => Some(place?),
                None => None,
            };
            let kept = Aggregate::of(aggregate, &chain.schema)?;
            let column = match kept.argument(aggregate) {
                Some(argument) => Some(place(&argument, &mut columns)?),
                None => None,
            };
            let mut state = |kept: Kept, column: Option<usize>| {
                let same = |state: &StateSpec| state.kept == kept && state.column == column && state.filter == filter;
                let at = states.iter().position(same).unwrap_or_else(|| {
                    states.push(StateSpec { kept, column, filter });
                    states.len() - 1
                });
                Expression::Column(groups.expr().len() + at)
            };
            finished.push(match kept {
                Aggregate::CountRows => state(Kept::Count, None),
                Aggregate::Count => state(Kept::Count, column),
                Aggregate::Min => state(Kept::Min, column),
                Aggregate::Max => state(Kept::Max, column),
                Aggregate::Total { sum, form } => {
                    let arguments = vec![state(sum, column), state(Kept::Count, column)];
                    let function = Arc::new(FinishAggregate::new(aggregate, vec![form, DataType::Int64]));
                    Expression::Foreign { function, arguments }
                }
            });
        }
        self.has_work = true;
        let keys: Vec<usize> = (0..groups.expr().len()).collect();
        let mut output: Vec<Expression> = keys.iter().map(|key| Expression::Column(*key)).collect();
        output.extend(finished);
        let chain = chain.projected(columns, Arc::new(Schema::empty()));
        // Rows of a group that nobody asks for need not be grouped.
        let origins = (0..output.len()).map(|column| keys.get(column).and_then(|key| chain.origins[*key])).collect();
        let pipeline = self.end(chain, Sink::Groups(Arc::new(AggregateSpec { keys, states })));
        let steps = vec![Step::Project(output)];
        Some(Chain { source: Source::Groups(pipeline), steps, schema: last.schema(), origins, marks: Vec::new() })
    }
}

/// The aggregates that the engine keeps states of.
enum Aggregate {
    CountRows,
    Count,
    Min,
    Max,
    /// `sum` and `avg`: what is summed, in which form the sum comes back.
    Total {
        sum: Kept,
        form: DataType,
    },
}

impl Aggregate {
    fn of(aggregate: &AggregateFunctionExpr, schema: &Schema) -> Option<Self> {
        let is_plain = !aggregate.is_distinct() && aggregate.order_bys().is_empty() && !aggregate.ignore_nulls();
        let arguments = aggregate.expressions();
        let [argument] = arguments.as_slice() else { return None };
        let data_type = argument.data_type(schema).ok()?;
        let is_constant = argument.downcast_ref::<Literal>().is_some_and(|literal| !literal.value().is_null());
        let is_ordered = form(&data_type).is_some() && data_type != DataType::Boolean;
        match aggregate.fun().name() {
            _ if !is_plain => None,
            "count" if is_constant => Some(Self::CountRows),
            "count" => Some(Self::Count),
            "min" if is_ordered => Some(Self::Min),
            "max" if is_ordered => Some(Self::Max),
            "sum" | "avg" => {
                let fields = aggregate.state_fields().ok()?;
                let form = fields.first()?.data_type().clone();
                let sum = match (&data_type, &form) {
                    (DataType::Float64, DataType::Float64) => Kept::FloatSum,
                    (
                        DataType::Int16 | DataType::Int32 | DataType::Int64 | DataType::Decimal128(..),
                        DataType::Decimal128(..),
                    ) => Kept::Sum,
                    _ => return None,
                };
                (fields.len() == 2).then_some(Self::Total { sum, form })
            }
            _ => None,
        }
    }

    fn argument(&self, aggregate: &AggregateFunctionExpr) -> Option<Arc<dyn PhysicalExpr>> {
        match self {
            Self::CountRows => None,
            _ => aggregate.expressions().into_iter().next(),
        }
    }
}
