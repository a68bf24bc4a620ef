//! The states of all aggregates of an operator, each once, and the columns that they are of.

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

/// States of groups, in the order in which groups have them.
pub(super) struct States {
    schema: SchemaRef,
    /// The columns that are grouped: keys, then arguments and filters, each once.
    columns: Vec<Expression>,
    places: Vec<Place>,
    /// Arguments whose values count once in a group.
    pub(super) distinct: Vec<Distinct>,
    pub(super) all: Vec<State>,
    /// The place of the first among the columns of groups.
    first: usize,
}

/// The column of an expression.
struct Place {
    expression: Arc<dyn PhysicalExpr>,
    /// The condition of the rows that it is computed for; all rows without one.
    filter: Option<Arc<dyn PhysicalExpr>>,
    column: usize,
}

/// A state of a group.
#[derive(Debug, Clone)]
pub(super) enum State {
    /// Of its rows.
    Rows(StateSpec),
    /// Of the values of one of [`States::distinct`], each once.
    Once { kept: Kept, distinct: usize },
}

/// Values that count once in a group.
pub(super) struct Distinct {
    argument: Arc<dyn PhysicalExpr>,
    filter: Option<Arc<dyn PhysicalExpr>>,
    /// The argument of the rows that count, NULL of others.
    pub(super) value: Expression,
    pub(super) form: Form,
}

impl States {
    /// None yet, of groups by `keys` over columns of `schema`.
    pub(super) fn new(schema: SchemaRef, keys: Vec<Expression>, first: usize) -> Self {
        let (places, distinct, all) = (Vec::new(), Vec::new(), Vec::new());
        Self { schema, columns: keys, places, distinct, all, first }
    }

    /// The value of an aggregate out of its states, which are among these from now on.
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

    /// The states of an aggregate as they are, which are among these from now on.
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

    /// The columns that are grouped, then the values that count once.
    pub(super) fn all_columns(&self) -> Vec<Expression> {
        self.columns.iter().chain(self.distinct.iter().map(|distinct| &distinct.value)).cloned().collect()
    }

    /// How many columns there are before the values that count once.
    pub(super) fn plain_columns(&self) -> usize {
        self.columns.len()
    }

    /// The states of rows.
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

    /// Returns the column of an expression, which is evaluated only for rows that pass the FILTER. Native loops compute it for all rows first, and a batch in
    /// which that fails again for these rows alone. An argument that calls functions may have effects or take long: it is under a CASE from the start.
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

    /// Makes `CASE WHEN filter THEN value END`; `None` for types that CASE cannot choose between, and for volatile filters.
    fn where_filter_passes(
        &self,
        value: Expression,
        argument: &Arc<dyn PhysicalExpr>,
        filter: &Arc<dyn PhysicalExpr>,
    ) -> Option<Expression> {
        // It would be evaluated twice.
        if is_volatile(filter) {
            return None;
        }
        let is_chosen = is_compared(&argument.data_type(&self.schema).ok()?);
        let condition = is_chosen.then(|| expression::lower(filter, &self.schema)).flatten()?;
        Some(Expression::Case { branches: vec![(condition, value)], otherwise: None })
    }

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

/// The aggregate in which each value counts as often as it comes: of values that come once they are the same.
fn of_each(aggregate: &AggregateFunctionExpr, schema: &SchemaRef) -> Option<Arc<AggregateFunctionExpr>> {
    let builder = AggregateExprBuilder::new(Arc::new(aggregate.fun().clone()), aggregate.expressions());
    builder.schema(Arc::clone(schema)).alias(aggregate.name()).build().ok().map(Arc::new)
}
