//! Collects the distinct states of all aggregates of an operator, and the columns that they read.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::{AggregateExprBuilder, AggregateFunctionExpr};
use datafusion::physical_expr_common::physical_expr::is_volatile;
use engine::PhysicalType;
use engine::aggregate::{AggregateKind, StateSpec};
use engine::arrow_convert::{is_comparable, physical_type};
use engine::expression::Expression;

use super::AggregateFunction;
use super::aggregate_functions::StateInput;
use crate::expression;

/// States of the groups, in storage order.
pub(super) struct AggregateStates {
    schema: SchemaRef,
    /// Columns to aggregate: keys, then arguments and filters without duplicates.
    columns: Vec<Expression>,
    expression_columns: Vec<ExpressionColumn>,
    /// Arguments of DISTINCT aggregates.
    pub(super) distinct: Vec<DistinctArgument>,
    pub(super) all: Vec<State>,
    /// Position of the first state among the columns of groups.
    first_column: usize,
}

/// Column of an expression.
struct ExpressionColumn {
    expression: Arc<dyn PhysicalExpr>,
    /// Condition on the rows for which it is evaluated; all rows if absent.
    filter: Option<Arc<dyn PhysicalExpr>>,
    column: usize,
}

/// State of a group.
#[derive(Debug, Clone)]
pub(super) enum State {
    /// Over rows.
    Rows(StateSpec),
    /// Over the distinct values of an entry of [`AggregateStates::add_distinct`].
    Distinct { kind: AggregateKind, distinct: usize },
}

/// Argument of a DISTINCT aggregate.
pub(super) struct DistinctArgument {
    argument: Arc<dyn PhysicalExpr>,
    filter: Option<Arc<dyn PhysicalExpr>>,
    /// Argument of the rows that pass the filter, NULL for others.
    pub(super) value: Expression,
    pub(super) physical_type: PhysicalType,
}

impl AggregateStates {
    /// Returns an empty collection for groups by `keys` over `schema`; states start at column `first`.
    pub(super) fn new(schema: SchemaRef, keys: Vec<Expression>, first: usize) -> Self {
        let (places, distinct, all) = (Vec::new(), Vec::new(), Vec::new());
        Self { schema, columns: keys, expression_columns: places, distinct, all, first_column: first }
    }

    /// Adds the states of an aggregate and returns its final value.
    pub(super) fn add_value(
        &mut self,
        aggregate: &Arc<AggregateFunctionExpr>,
        filter: Option<&Arc<dyn PhysicalExpr>>,
    ) -> Option<Expression> {
        let is_distinct = aggregate.is_distinct();
        let aggregate = &if is_distinct { without_distinct(aggregate, &self.schema)? } else { Arc::clone(aggregate) };
        let kind = AggregateFunction::from_call(aggregate, &self.schema)?;
        if is_distinct && let Some(kind) = kind.clone().over_distinct() {
            let distinct = self.add_distinct(&kind.argument(aggregate)?, filter)?;
            return Some(
                kind.final_value(aggregate, |kept, _| self.add_state(State::Distinct { kind: kept, distinct })),
            );
        }
        let (column, filter) = self.add_columns(kind.argument(aggregate).as_ref(), filter)?;
        Some(kind.final_value(aggregate, |kept, of| {
            let column = match of {
                StateInput::Rows => None,
                StateInput::Values => column,
            };
            self.add_state(State::Rows(StateSpec { kind: kept, column, filter }))
        }))
    }

    /// Adds the states of an aggregate and returns them as columns, for a partial aggregation.
    pub(super) fn add_states(
        &mut self,
        aggregate: &Arc<AggregateFunctionExpr>,
        filter: Option<&Arc<dyn PhysicalExpr>>,
    ) -> Option<Vec<Expression>> {
        if aggregate.is_distinct() {
            return None;
        }
        let kind = AggregateFunction::from_call(aggregate, &self.schema)?;
        let kept = kind.clone().states()?;
        let (column, filter) = self.add_columns(kind.argument(aggregate).as_ref(), filter)?;
        let place = |(kept, of)| {
            let column = column.filter(|_| of != StateInput::Rows);
            self.add_state(State::Rows(StateSpec { kind: kept, column, filter }))
        };
        Some(kept.into_iter().map(place).collect())
    }

    /// Returns the columns to aggregate, followed by the distinct arguments.
    pub(super) fn all_columns(&self) -> Vec<Expression> {
        self.columns.iter().chain(self.distinct.iter().map(|distinct| &distinct.value)).cloned().collect()
    }

    /// Returns the number of columns before the distinct arguments.
    pub(super) fn plain_columns(&self) -> usize {
        self.columns.len()
    }

    /// Returns the states over rows.
    pub(super) fn row_states(&self) -> Vec<StateSpec> {
        let of_rows = |state: &State| if let State::Rows(spec) = state { Some(spec.clone()) } else { None };
        self.all.iter().filter_map(of_rows).collect()
    }

    /// Returns the columns of an aggregate's argument and of its FILTER.
    fn add_columns(
        &mut self,
        argument: Option<&Arc<dyn PhysicalExpr>>,
        filter: Option<&Arc<dyn PhysicalExpr>>,
    ) -> Option<(Option<usize>, Option<usize>)> {
        let filter_column = match filter {
            Some(filter) => Some(self.add_column(filter, None)?),
            None => None,
        };
        let column = match argument {
            Some(argument) => Some(self.add_column(argument, filter)?),
            None => None,
        };
        Some((column, filter_column))
    }

    /// Returns the column of an expression that is evaluated only for rows that pass the FILTER. A native loop first
    /// computes it for all rows; a batch in which that fails is computed again for the passing rows only. An argument
    /// with function calls, which may be slow or have effects, is wrapped in a CASE from the start.
    fn add_column(
        &mut self,
        argument: &Arc<dyn PhysicalExpr>,
        filter: Option<&Arc<dyn PhysicalExpr>>,
    ) -> Option<usize> {
        let value = expression::lower(argument, &self.schema)?;
        let filter = filter.filter(|_| !value.never_fails());
        let is_it = |known: &ExpressionColumn| &known.expression == argument && known.filter.as_ref() == filter;
        if let Some(known) = self.expression_columns.iter().find(|known| is_it(known)) {
            return Some(known.column);
        }
        let value = match filter {
            Some(filter) => {
                let mut functions = Vec::new();
                value.collect_arrow_functions(&mut functions);
                let (is_native, guarded) =
                    (functions.is_empty(), self.guard_by_filter(value.clone(), argument, filter)?);
                if is_native {
                    Expression::Fallible { value: Box::new(value), fallback: Arc::new(guarded) }
                } else {
                    guarded
                }
            }
            None => value,
        };
        let column = self.columns.len();
        self.columns.push(value);
        self.expression_columns.push(ExpressionColumn {
            expression: Arc::clone(argument),
            filter: filter.cloned(),
            column,
        });
        Some(column)
    }

    /// Returns `CASE WHEN filter THEN value END`; `None` for types that CASE cannot choose between and for volatile
    /// filters.
    fn guard_by_filter(
        &self,
        value: Expression,
        argument: &Arc<dyn PhysicalExpr>,
        filter: &Arc<dyn PhysicalExpr>,
    ) -> Option<Expression> {
        // The filter would be evaluated twice.
        if is_volatile(filter) {
            return None;
        }
        let is_chosen = is_comparable(&argument.data_type(&self.schema).ok()?);
        let condition = is_chosen.then(|| expression::lower(filter, &self.schema)).flatten()?;
        Some(Expression::Case { branches: vec![(condition, value)], otherwise: None })
    }

    /// Adds the argument of a DISTINCT aggregate; returns its position.
    fn add_distinct(
        &mut self,
        argument: &Arc<dyn PhysicalExpr>,
        filter: Option<&Arc<dyn PhysicalExpr>>,
    ) -> Option<usize> {
        let is_it = |known: &DistinctArgument| &known.argument == argument && known.filter.as_ref() == filter;
        if let Some(at) = self.distinct.iter().position(is_it) {
            return Some(at);
        }
        let data_type = argument.data_type(&self.schema).ok()?;
        let form = physical_type(&data_type).filter(|_| is_comparable(&data_type))?;
        let value = expression::lower(argument, &self.schema)?;
        let value = match filter {
            Some(filter) => self.guard_by_filter(value, argument, filter)?,
            None => value,
        };
        self.distinct.push(DistinctArgument {
            argument: Arc::clone(argument),
            filter: filter.cloned(),
            value,
            physical_type: form,
        });
        Some(self.distinct.len() - 1)
    }

    /// Adds a state, if it is new; returns its column.
    fn add_state(&mut self, state: State) -> Expression {
        let at = self.all.iter().position(|known| known.is_same(&state)).unwrap_or_else(|| {
            self.all.push(state);
            self.all.len() - 1
        });
        Expression::Column(self.first_column + at)
    }
}

impl State {
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Rows(one), Self::Rows(other)) => {
                one.kind == other.kind && one.column == other.column && one.filter == other.filter
            }
            (Self::Distinct { kind, distinct }, Self::Distinct { kind: other_kind, distinct: other }) => {
                kind == other_kind && distinct == other
            }
            _ => false,
        }
    }
}

/// Returns the aggregate without DISTINCT.
fn without_distinct(aggregate: &AggregateFunctionExpr, schema: &SchemaRef) -> Option<Arc<AggregateFunctionExpr>> {
    let builder = AggregateExprBuilder::new(Arc::new(aggregate.fun().clone()), aggregate.expressions());
    builder.schema(Arc::clone(schema)).alias(aggregate.name()).build().ok().map(Arc::new)
}
