//! Collects the distinct states of all aggregates of an operator, and the columns that they read.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::{AggregateExprBuilder, AggregateFunctionExpr};
use datafusion::physical_expr_common::physical_expr::is_volatile;
use engine::Form;
use engine::aggregate::{Kept, StateSpec};
use engine::arrow_form::{form, is_compared};
use engine::expression::Expression;

use super::Aggregate;
use super::kept::Of;
use crate::expression;

/// States of the groups, in storage order.
pub(super) struct States {
    schema: SchemaRef,
    /// Columns to aggregate: keys, then arguments and filters without duplicates.
    columns: Vec<Expression>,
    places: Vec<Place>,
    /// Arguments of DISTINCT aggregates.
    pub(super) distinct: Vec<Distinct>,
    pub(super) all: Vec<State>,
    /// Position of the first state among the columns of groups.
    first: usize,
}

/// Column of an expression.
struct Place {
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
    /// Over the distinct values of an entry of [`States::distinct`].
    Once { kept: Kept, distinct: usize },
}

/// Argument of a DISTINCT aggregate.
pub(super) struct Distinct {
    argument: Arc<dyn PhysicalExpr>,
    filter: Option<Arc<dyn PhysicalExpr>>,
    /// Argument of the rows that pass the filter, NULL for others.
    pub(super) value: Expression,
    pub(super) form: Form,
}

impl States {
    /// Returns an empty collection for groups by `keys` over `schema`; states start at column `first`.
    pub(super) fn new(schema: SchemaRef, keys: Vec<Expression>, first: usize) -> Self {
        let (places, distinct, all) = (Vec::new(), Vec::new(), Vec::new());
        Self { schema, columns: keys, places, distinct, all, first }
    }

    /// Adds the states of an aggregate and returns its final value.
    pub(super) fn value_of(
        &mut self,
        aggregate: &Arc<AggregateFunctionExpr>,
        filter: Option<&Arc<dyn PhysicalExpr>>,
    ) -> Option<Expression> {
        let is_distinct = aggregate.is_distinct();
        let aggregate = &if is_distinct { of_each(aggregate, &self.schema)? } else { Arc::clone(aggregate) };
        let kind = Aggregate::of(aggregate, &self.schema)?;
        if is_distinct && let Some(kind) = kind.clone().of_once() {
            let distinct = self.distinct(&kind.argument(aggregate)?, filter)?;
            return Some(kind.finished(aggregate, |kept, _| self.place(State::Once { kept, distinct })));
        }
        let (column, filter) = self.columns_of(kind.argument(aggregate).as_ref(), filter)?;
        Some(kind.finished(aggregate, |kept, of| {
            let column = match of {
                Of::Rows => None,
                Of::Values => column,
            };
            self.place(State::Rows(StateSpec { kept, column, filter }))
        }))
    }

    /// Adds the states of an aggregate and returns them as columns, for a partial aggregation.
    pub(super) fn given(
        &mut self,
        aggregate: &Arc<AggregateFunctionExpr>,
        filter: Option<&Arc<dyn PhysicalExpr>>,
    ) -> Option<Vec<Expression>> {
        if aggregate.is_distinct() {
            return None;
        }
        let kind = Aggregate::of(aggregate, &self.schema)?;
        let kept = kind.clone().kept()?;
        let (column, filter) = self.columns_of(kind.argument(aggregate).as_ref(), filter)?;
        let place = |(kept, of)| {
            let column = column.filter(|_| of != Of::Rows);
            self.place(State::Rows(StateSpec { kept, column, filter }))
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
    pub(super) fn of_rows(&self) -> Vec<StateSpec> {
        let of_rows = |state: &State| if let State::Rows(spec) = state { Some(spec.clone()) } else { None };
        self.all.iter().filter_map(of_rows).collect()
    }

    /// Returns the columns of an aggregate's argument and of its FILTER.
    fn columns_of(
        &mut self,
        argument: Option<&Arc<dyn PhysicalExpr>>,
        filter: Option<&Arc<dyn PhysicalExpr>>,
    ) -> Option<(Option<usize>, Option<usize>)> {
        let filter_column = match filter {
            Some(filter) => Some(self.column(filter, None)?),
            None => None,
        };
        let column = match argument {
            Some(argument) => Some(self.column(argument, filter)?),
            None => None,
        };
        Some((column, filter_column))
    }

    /// Returns the column of an expression that is evaluated only for rows that pass the FILTER. A native loop first
    /// computes it for all rows; a batch in which that fails is computed again for the passing rows only. An argument
    /// with function calls, which may be slow or have effects, is wrapped in a CASE from the start.
    fn column(&mut self, argument: &Arc<dyn PhysicalExpr>, filter: Option<&Arc<dyn PhysicalExpr>>) -> Option<usize> {
        let value = expression::lower(argument, &self.schema)?;
        let filter = filter.filter(|_| !value.never_fails());
        let is_it = |known: &Place| &known.expression == argument && known.filter.as_ref() == filter;
        if let Some(known) = self.places.iter().find(|known| is_it(known)) {
            return Some(known.column);
        }
        let value = match filter {
            Some(filter) => {
                let mut functions = Vec::new();
                value.foreign(&mut functions);
                let (is_native, guarded) =
                    (functions.is_empty(), self.where_filter_passes(value.clone(), argument, filter)?);
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
        self.places.push(Place { expression: Arc::clone(argument), filter: filter.cloned(), column });
        Some(column)
    }

    /// Returns `CASE WHEN filter THEN value END`; `None` for types that CASE cannot choose between and for volatile
    /// filters.
    fn where_filter_passes(
        &self,
        value: Expression,
        argument: &Arc<dyn PhysicalExpr>,
        filter: &Arc<dyn PhysicalExpr>,
    ) -> Option<Expression> {
        // The filter would be evaluated twice.
        if is_volatile(filter) {
            return None;
        }
        let is_chosen = is_compared(&argument.data_type(&self.schema).ok()?);
        let condition = is_chosen.then(|| expression::lower(filter, &self.schema)).flatten()?;
        Some(Expression::Case { branches: vec![(condition, value)], otherwise: None })
    }

    /// Adds the argument of a DISTINCT aggregate; returns its position.
    fn distinct(&mut self, argument: &Arc<dyn PhysicalExpr>, filter: Option<&Arc<dyn PhysicalExpr>>) -> Option<usize> {
        let is_it = |known: &Distinct| &known.argument == argument && known.filter.as_ref() == filter;
        if let Some(at) = self.distinct.iter().position(is_it) {
            return Some(at);
        }
        let data_type = argument.data_type(&self.schema).ok()?;
        let form = form(&data_type).filter(|_| is_compared(&data_type))?;
        let value = expression::lower(argument, &self.schema)?;
        let value = match filter {
            Some(filter) => self.where_filter_passes(value, argument, filter)?,
            None => value,
        };
        self.distinct.push(Distinct { argument: Arc::clone(argument), filter: filter.cloned(), value, form });
        Some(self.distinct.len() - 1)
    }

    /// Adds a state, if it is new; returns its column.
    fn place(&mut self, state: State) -> Expression {
        let at = self.all.iter().position(|known| known.is(&state)).unwrap_or_else(|| {
            self.all.push(state);
            self.all.len() - 1
        });
        Expression::Column(self.first + at)
    }
}

impl State {
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Rows(one), Self::Rows(other)) => {
                one.kept == other.kept && one.column == other.column && one.filter == other.filter
            }
            (Self::Once { kept, distinct }, Self::Once { kept: other_kept, distinct: other }) => {
                kept == other_kept && distinct == other
            }
            _ => false,
        }
    }
}

/// Returns the aggregate without DISTINCT.
fn of_each(aggregate: &AggregateFunctionExpr, schema: &SchemaRef) -> Option<Arc<AggregateFunctionExpr>> {
    let builder = AggregateExprBuilder::new(Arc::new(aggregate.fun().clone()), aggregate.expressions());
    builder.schema(Arc::clone(schema)).alias(aggregate.name()).build().ok().map(Arc::new)
}
