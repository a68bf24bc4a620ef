//! Aggregates: what is kept of each group, and what is computed of that in the end.

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::Literal;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use engine::aggregate::{AggregateSpec, GroupingSet, Kept, StateSpec};
use engine::arrow_form::form;
use engine::expression::{Division, Expression, Operation};
use engine::pipeline::{Sink, Source, Step};
use engine::{Bounds, Form};
use types::numeric::{checked_power_of_ten, power_of_ten};
use types::sql_type::NUMERIC_PRECISION_MAX;

use super::{Branch, Builder, Chain, Input, SourceColumn, through_exchanges};
use crate::cover::expression;
use crate::cover::foreign::FinishAggregate;
use crate::scan::ShardScanExec;

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
        let is_plain =
            groups.expr().len() <= KEYS_MAX && first.limit_options().is_none() && last.limit_options().is_none();
        if !is_plain {
            return None;
        }
        let sets = if groups.has_grouping_set() { grouping_sets(groups)? } else { Vec::new() };
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
        // The number of a set comes after the keys.
        let key_columns = groups.expr().len() + usize::from(!sets.is_empty());
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
                Expression::Column(key_columns + at)
            };
            finished.push(match kept {
                Aggregate::CountRows => state(Kept::Count, None),
                Aggregate::Count => state(Kept::Count, column),
                Aggregate::Min => state(Kept::Min, column),
                Aggregate::Max => state(Kept::Max, column),
                Aggregate::Spread => {
                    let square = square(&columns[column?]);
                    columns.push(square);
                    let squares = Some(columns.len() - 1);
                    let arguments =
                        vec![state(Kept::Count, column), state(Kept::Sum, column), state(Kept::Sum, squares)];
                    let kept = DataType::Decimal256(76, 0);
                    let function = Arc::new(FinishAggregate::new(aggregate, vec![DataType::Int64, kept.clone(), kept]));
                    Expression::Foreign { function, arguments }
                }
                Aggregate::Total { sum, form } => {
                    let (total, count) = (state(sum, column), state(Kept::Count, column));
                    total_of(aggregate, form, total, count)
                }
            });
        }
        self.has_work = true;
        let chain = chain.projected(columns, Arc::new(Schema::empty()));
        let schema = last.schema();
        let is_text = |key: usize| form(schema.field(key).data_type()) == Some(Form::Texts);
        let count = groups.expr().len();
        let is_unique = |column| self.is_unique(column);
        let redundant = match sets.is_empty() {
            true => self.dependencies.redundant(&chain.sources[..count], is_unique, is_text),
            // Without the key that determines it, it does not stay one value.
            false => vec![false; count],
        };
        let (carried, keys): (Vec<usize>, Vec<usize>) = (0..count).partition(|key| redundant[*key]);
        let clustered = keys.iter().position(|key| sets.is_empty() && self.is_clustered(&chain, *key));
        let mut output: Vec<Expression> = (0..key_columns).map(Expression::Column).collect();
        for (place, key) in keys.iter().chain(&carried).enumerate() {
            output[*key] = Expression::Column(place);
        }
        output.extend(finished);
        // Rows of a group that nobody asks for need not be grouped, unless other groups have them too.
        let plain = if sets.is_empty() { count } else { 0 };
        let of_keys = |columns: &[Option<SourceColumn>]| {
            (0..output.len()).map(|column| columns.get(column).copied().flatten().filter(|_| column < plain)).collect()
        };
        let (origins, sources) = match chain.branches.as_slice() {
            [branch] => (of_keys(&branch.origins), of_keys(&chain.sources)),
            _ => (of_keys(&[]), of_keys(&[])),
        };
        let padded = chain.padded.clone();
        let pipeline =
            self.end(chain, &Sink::Groups(Arc::new(AggregateSpec { keys, carried, states, sets, clustered })));
        let (source, steps) = (Source::Groups(pipeline), vec![Step::Project(output)]);
        let branches = vec![Branch::new(source, steps, origins)];
        Some(Chain { branches, schema, sources, padded, is_ordered: false })
    }

    fn is_unique(&self, (number, column): SourceColumn) -> bool {
        self.scanned(number).is_some_and(|scan| scan.scan.is_unique(column))
    }

    fn scanned(&self, number: usize) -> Option<&ShardScanExec> {
        let Input::Scan(input) = &self.inputs[number] else { return None };
        input.scan.downcast_ref::<ShardScanExec>()
    }

    /// Whether a column is one of the scan that its pipeline reads, whose values come in order.
    fn is_clustered(&self, chain: &Chain, column: usize) -> bool {
        let [branch] = chain.branches.as_slice() else { return false };
        let source = chain.sources[column].filter(|(number, _)| branch.source == Source::Input(*number));
        source.is_some_and(|(number, column)| self.scanned(number).is_some_and(|scan| scan.scan.is_clustered(column)))
    }
}

/// The sets, where one of them has all keys and none comes twice.
fn grouping_sets(groups: &PhysicalGroupBy) -> Option<Vec<GroupingSet>> {
    let mut sets: Vec<GroupingSet> = Vec::with_capacity(groups.groups().len());
    for absent in groups.groups() {
        // As DataFusion numbers them: a bit for each key, that of the last lowest.
        let id = absent.iter().fold(0_i64, |id, absent| id << 1 | i64::from(*absent));
        if absent.len() > 32 || sets.iter().any(|set| set.id == id) {
            return None;
        }
        sets.push(GroupingSet { absent: absent.clone(), id });
    }
    sets.iter().any(|set| set.id == 0).then_some(sets)
}

/// The value of `sum` or `avg`, out of a total in a form and of how many values it is; NULL where it is of none.
pub(super) fn total_of(
    aggregate: &Arc<AggregateFunctionExpr>,
    form: DataType,
    total: Expression,
    count: Expression,
) -> Expression {
    let sum = |total: Expression| Expression::Sum { sum: Box::new(total), count: Box::new(count.clone()) };
    if aggregate.fun().name() == "sum" {
        return sum(total);
    }
    let gives = aggregate.field();
    let digits = match (&form, gives.data_type()) {
        (DataType::Decimal128(_, has), DataType::Decimal128(_, gets)) => gets.checked_sub(*has),
        _ => None,
    };
    let factor = digits.and_then(|digits| checked_power_of_ten(u8::try_from(digits).ok()?));
    match factor {
        Some(factor) => {
            let beyond = power_of_ten(NUMERIC_PRECISION_MAX);
            Expression::Divide {
                division: Division::Rounded { factor },
                left: Box::new(sum(total)),
                right: Box::new(count),
                limits: Bounds { min: 1 - beyond, max: beyond - 1 },
            }
        }
        None => {
            let function = Arc::new(FinishAggregate::new(aggregate, vec![form, DataType::Int64]));
            Expression::Foreign { function, arguments: vec![total, count] }
        }
    }
}

/// A number times itself, as digits.
fn square(value: &Expression) -> Expression {
    Expression::Arithmetic {
        operation: Operation::Multiply,
        left: Box::new(value.clone()),
        right: Box::new(value.clone()),
        factors: (1, 1),
        limits: Bounds { min: i128::MIN, max: i128::MAX },
    }
}

/// The aggregates that the engine keeps states of.
pub(super) enum Aggregate {
    CountRows,
    Count,
    Min,
    Max,
    /// `sum` and `avg`: what is summed, in which form the sum comes back.
    Total {
        sum: Kept,
        form: DataType,
    },
    /// Variances and deviations of exact numbers: by their count, sum and sum of squares.
    Spread,
}

impl Aggregate {
    pub(super) fn of(aggregate: &AggregateFunctionExpr, schema: &Schema) -> Option<Self> {
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
            "variance" | "var_samp" | "var_pop" | "stddev" | "stddev_samp" | "stddev_pop" => {
                let is_exact =
                    matches!(data_type, DataType::Int16 | DataType::Int32 | DataType::Int64 | DataType::Decimal128(..));
                is_exact.then_some(Self::Spread)
            }
            _ => None,
        }
    }

    pub(super) fn argument(&self, aggregate: &AggregateFunctionExpr) -> Option<Arc<dyn PhysicalExpr>> {
        match self {
            Self::CountRows => None,
            _ => aggregate.expressions().into_iter().next(),
        }
    }
}
