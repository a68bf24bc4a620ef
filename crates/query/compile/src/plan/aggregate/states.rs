//! The states of all aggregates of an operator, each once, and the columns that they are of.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::{AggregateExprBuilder, AggregateFunctionExpr};
use engine::aggregate::{Kept, StateSpec};
use engine::arrow_form::{form, has_wide_numbers, is_compared};
use engine::expression::{Expression, Operation};
use engine::{Bounds, Form};

use super::Aggregate;
use super::kept::Of;
use crate::expression;

/// States of groups, in the order in which groups have them.
pub(super) struct States {
    schema: SchemaRef,
    /// The columns that are grouped: keys, then arguments, squares of these and filters, each once.
    columns: Vec<Expression>,
    places: Vec<(Arc<dyn PhysicalExpr>, usize)>,
    squares: Vec<(usize, usize)>,
    /// Arguments whose values count once in a group.
    pub(super) distinct: Vec<Distinct>,
    pub(super) all: Vec<State>,
    /// The place of the first among the columns of groups.
    first: usize,
}

/// A state of a group.
#[derive(Debug, Clone)]
pub(super) enum State {
    /// Of its rows.
    Rows(StateSpec),
    /// Of the values of one of [`States::distinct`], each once.
    Once { kept: Kept, distinct: usize, is_of_squares: bool },
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
        let (places, squares, distinct, all) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { schema, columns: keys, places, squares, distinct, all, first }
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
            return Some(kind.finished(aggregate, |kept, of| {
                self.place(State::Once { kept, distinct, is_of_squares: of == Of::Squares })
            }));
        }
        let filter = match filter {
            Some(filter) => Some(self.column(filter)?),
            None => None,
        };
        let column = match kind.argument(aggregate) {
            Some(argument) => Some(self.column(&argument)?),
            None => None,
        };
        Some(kind.finished(aggregate, |kept, of| {
            let column = match of {
                Of::Rows => None,
                Of::Values => column,
                Of::Squares => column.map(|column| self.squares_of(column)),
            };
            self.place(State::Rows(StateSpec { kept, column, filter }))
        }))
    }

    /// The values that count once of which some need 128 bits, by their numbers.
    pub(super) fn wide_values(&self) -> impl Iterator<Item = usize> {
        let is_wide = |(_, distinct): &(usize, &Distinct)| {
            distinct.argument.data_type(&self.schema).is_ok_and(|value| has_wide_numbers(&value))
        };
        self.distinct.iter().enumerate().filter(is_wide).map(|(number, _)| number)
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
        let filter = match filter {
            Some(filter) => Some(self.column(filter)?),
            None => None,
        };
        let column = match kind.argument(aggregate) {
            Some(argument) => Some(self.column(&argument)?),
            None => None,
        };
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

    fn column(&mut self, argument: &Arc<dyn PhysicalExpr>) -> Option<usize> {
        if let Some((_, at)) = self.places.iter().find(|(known, _)| known == argument) {
            return Some(*at);
        }
        self.columns.push(expression::lower(argument, &self.schema)?);
        self.places.push((Arc::clone(argument), self.columns.len() - 1));
        Some(self.columns.len() - 1)
    }

    fn squares_of(&mut self, column: usize) -> usize {
        if let Some((_, at)) = self.squares.iter().find(|(known, _)| *known == column) {
            return *at;
        }
        self.columns.push(square(&self.columns[column]));
        self.squares.push((column, self.columns.len() - 1));
        self.columns.len() - 1
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
            Some(filter) => {
                let condition = expression::lower(filter, &self.schema)?;
                Expression::Case { branches: vec![(condition, value)], otherwise: None }
            }
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
            (
                Self::Once { kept, distinct, is_of_squares },
                Self::Once { kept: other_kept, distinct: other, is_of_squares: other_squares },
            ) => kept == other_kept && distinct == other && is_of_squares == other_squares,
            _ => false,
        }
    }
}

/// The aggregate in which each value counts as often as it comes: of values that come once they are the same.
fn of_each(aggregate: &AggregateFunctionExpr, schema: &SchemaRef) -> Option<Arc<AggregateFunctionExpr>> {
    let builder = AggregateExprBuilder::new(Arc::new(aggregate.fun().clone()), aggregate.expressions());
    builder.schema(Arc::clone(schema)).alias(aggregate.name()).build().ok().map(Arc::new)
}

/// A number times itself, as digits.
pub(super) fn square(value: &Expression) -> Expression {
    Expression::Arithmetic {
        operation: Operation::Multiply,
        left: Box::new(value.clone()),
        right: Box::new(value.clone()),
        factors: (1, 1),
        limits: Bounds { min: i128::MIN, max: i128::MAX },
    }
}
