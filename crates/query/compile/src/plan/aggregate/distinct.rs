//! DISTINCT aggregates as two-level aggregation: rows are grouped by the keys and the distinct argument, then these
//! groups by the keys.
//!
//! The first level also has the states of the other aggregates, which the second level merges. If there are several
//! distinct arguments, each has its own groups in one common hash table: a row is repeated once per argument, with the
//! other arguments NULL, and once for the other aggregates.

use std::sync::Arc;

use arrow::datatypes::Schema;
use engine::aggregate::{AggregateSpec, StateSpec};
use engine::expression::Expression;
use engine::pipeline::{Sink, Source, Step};
use engine::{Bitmap, Column, ColumnData, PhysicalType};

use super::super::{OpenPipeline, OpenPipelines, ProgramBuilder};
use super::aggregate_states::{AggregateStates, DistinctArgument, State};

impl ProgramBuilder<'_> {
    /// Appends both levels of grouping to a chain with the columns of `states`. `spec` describes the grouping without
    /// states. Returns the number of the pipeline that ends in the final groups.
    pub(super) fn add_distinct_grouping(
        &mut self,
        mut chain: OpenPipelines,
        states: &AggregateStates,
        spec: AggregateSpec,
    ) -> usize {
        let (plain, count) = (states.plain_columns(), states.distinct.len());
        let mut of_rows = states.row_states();
        if 1 < count {
            chain.push(&Step::Expand(repeated_columns(plain, &states.distinct, &mut of_rows)));
        }
        let AggregateSpec { keys, key_types, carried, mut sets, clustered, .. } = spec;
        let total = sets.iter().find(|set| set.absent_keys.iter().all(|absent_keys| *absent_keys)).map(|set| set.id);
        let (key_count, carried_count, set_numbers) = (keys.len(), carried.len(), usize::from(!sets.is_empty()));
        // Values are distinct within each grouping set.
        sets.iter_mut().for_each(|set| set.absent_keys.extend(vec![false; count]));
        let with_values =
            key_types.iter().copied().chain(states.distinct.iter().map(|distinct| distinct.physical_type));
        let forms_with_values: Vec<PhysicalType> = with_values.collect();
        let keys = keys.into_iter().chain(plain..plain + count).collect();
        let state_count = of_rows.len();
        let spec = AggregateSpec {
            keys,
            key_types: forms_with_values,
            carried,
            states: of_rows.clone(),
            sets,
            grand_total_id: None,
            clustered,
        };
        let first = self.end_pipelines(chain, &Sink::Aggregate(Arc::new(spec)));

        // Columns of the first-level groups: keys, distinct arguments, number of the grouping set, dependent keys,
        // states.
        let after_values = key_count + count;
        let others = after_values..after_values + set_numbers + carried_count + state_count;
        let mut columns: Vec<Expression> = (0..key_count).chain(others).map(Expression::Column).collect();
        let mut of_rows = of_rows.iter().zip(columns.len() - state_count..);
        let mut all = Vec::with_capacity(states.all.len());
        for state in &states.all {
            all.extend(match state {
                State::Rows(_) => of_rows.next().map(|(spec, column)| spec.merge_spec(column)),
                State::Distinct { kind, distinct } => {
                    columns.push(Expression::Column(key_count + distinct));
                    Some(StateSpec { kind: *kind, column: Some(columns.len() - 1), filter: None })
                }
            });
        }
        let keys = key_count + set_numbers;
        let key_types = key_types.into_iter().chain(std::iter::repeat_n(PhysicalType::Ints, set_numbers)).collect();
        let spec = AggregateSpec {
            keys: (0..keys).collect(),
            key_types,
            carried: (keys..keys + carried_count).collect(),
            states: all,
            sets: Vec::new(),
            grand_total_id: total,
            clustered: None,
        };
        let branch = OpenPipeline::new(Source::Groups(first), vec![Step::Project(columns)], Vec::new());
        let (schema, sources, padded) = (Arc::new(Schema::empty()), Vec::new(), Vec::new());
        let chain = OpenPipelines {
            branches: vec![branch],
            schema,
            value_sources: sources,
            null_padded_inputs: padded,
            is_ordered: false,
        };
        self.end_pipelines(chain, &Sink::Aggregate(Arc::new(spec)))
    }
}

/// Returns the column lists of the repeated rows: once for states of rows, if there are any, and once per distinct
/// argument. `row_states` gets a filter so that its states only see the former.
fn repeated_columns(plain: usize, values: &[DistinctArgument], of_rows: &mut [StateSpec]) -> Vec<Vec<Expression>> {
    // Column that is true in the repetition for the states of rows.
    let are_rows = plain + values.len();
    let filters: Vec<usize> = of_rows.iter().filter_map(|state| state.filter).collect();
    of_rows.iter_mut().for_each(|state| state.filter = state.filter.or(Some(are_rows)));
    let of_row = |column: usize| Expression::Column(column);
    let of_value =
        |column: usize| if filters.contains(&column) { bool_constant(false) } else { Expression::Column(column) };
    let value = |number: usize| Expression::Column(plain + number);
    let none = |number: usize| Expression::Constant(values[number].physical_type.null_column(1));
    let all = 0..values.len();
    let mut lists: Vec<Vec<Expression>> = Vec::with_capacity(values.len() + 1);
    if !of_rows.is_empty() {
        lists.push((0..plain).map(of_row).chain(all.clone().map(none)).chain([bool_constant(true)]).collect());
    }
    lists.extend(all.clone().map(|chosen| {
        let values = all.clone().map(|number| if number == chosen { value(number) } else { none(number) });
        (0..plain).map(of_value).chain(values).chain([bool_constant(false)]).collect()
    }));
    lists
}

fn bool_constant(value: bool) -> Expression {
    Expression::Constant(Column::new(ColumnData::Bools(Arc::new(Bitmap::filled(1, value)))))
}
