//! Compiles aggregations.
//!
//! - `aggregate_functions.rs` defines the states of each aggregate and its final value.
//! - `aggregate_states.rs` collects the states of all aggregates of an operator and the columns that they read.
//! - `distinct.rs` compiles DISTINCT aggregates.
//! - `grouping_sets.rs` compiles grouping sets.
//! - `partial_aggregation.rs` compiles partial and final aggregation in different processes.

mod aggregate_functions;
mod aggregate_states;
mod distinct;
mod grouping_sets;
mod partial_aggregation;

use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use engine::PhysicalType;
use engine::aggregate::AggregateSpec;
use engine::arrow_convert::{is_comparable, physical_type};
use engine::expression::Expression;
use engine::pipeline::{Sink, Source, Step};
use scan::ShardScanExec;

pub(super) use self::aggregate_functions::{AggregateFunction, total_value, variance_states, variance_value};
use self::aggregate_states::AggregateStates;
use self::grouping_sets::grouping_sets;
use super::{Input, OpenPipeline, OpenPipelines, ProgramBuilder, SourceColumn, skip_exchanges};
use crate::expression;

/// Maximum number of group keys: one word holds their NULL bits.
const KEYS_MAX: usize = 60;

impl ProgramBuilder<'_> {
    /// Compiles an aggregation, including a partial one below it.
    pub(super) fn lower_aggregate(&mut self, last: &AggregateExec) -> Option<OpenPipelines> {
        let first = match last.mode() {
            AggregateMode::Single | AggregateMode::SinglePartitioned => last,
            AggregateMode::Final | AggregateMode::FinalPartitioned => {
                let below = skip_exchanges(last.input()).downcast_ref::<AggregateExec>();
                match below.filter(|below| *below.mode() == AggregateMode::Partial) {
                    Some(below) => below,
                    None => return self.lower_final(last),
                }
            }
            AggregateMode::Partial => return self.lower_partial(last),
            AggregateMode::PartialReduce => return None,
        };
        self.add_grouping(first, last, |states, aggregate, filter| Some(vec![states.add_value(aggregate, filter)?]))
    }

    /// Compiles a grouping of the input of `first` with the output of `last`; `finish` returns the output columns of
    /// each aggregate.
    fn add_grouping(
        &mut self,
        first: &AggregateExec,
        last: &AggregateExec,
        mut finish: impl FnMut(
            &mut AggregateStates,
            &Arc<AggregateFunctionExpr>,
            Option<&Arc<dyn PhysicalExpr>>,
        ) -> Option<Vec<Expression>>,
    ) -> Option<OpenPipelines> {
        let groups = first.group_expr();
        let is_plain = first.limit_options().is_none() && last.limit_options().is_none();
        if !is_plain {
            return None;
        }
        let sets = if groups.has_grouping_set() { grouping_sets(groups)? } else { Vec::new() };
        let chain = self.lower_input(first.input())?;
        let count = groups.expr().len();
        let keys =
            groups.expr().iter().map(|(key, _)| expression::lower(key, &chain.schema)).collect::<Option<Vec<_>>>()?;
        // The number of the grouping set follows the keys.
        let key_columns = count + usize::from(!sets.is_empty());
        let mut states = AggregateStates::new(Arc::clone(&chain.schema), keys, key_columns);
        let calls = first.aggr_expr().iter().zip(first.filter_expr());
        let finished = calls
            .map(|(aggregate, filter)| finish(&mut states, aggregate, filter.as_ref()))
            .collect::<Option<Vec<_>>>()?
            .concat();
        if KEYS_MAX < count + states.distinct.len() {
            return None;
        }
        self.has_work = true;
        let padded = chain.null_padded_inputs.clone();
        let schema = last.schema();
        let chain = chain.project(states.all_columns(), Arc::new(Schema::empty()));
        let is_costly = |key: usize| {
            matches!(physical_type(schema.field(key).data_type()), Some(PhysicalType::Texts | PhysicalType::Opaque))
        };
        let is_unique = |column| self.is_unique(column);
        let redundant = match sets.is_empty() {
            true => self.dependencies.redundant(&chain.value_sources[..count], is_unique, is_costly),
            // A dependent key is not constant in groups of a set without the key that determines it.
            false => vec![false; count],
        };
        let (carried, keys): (Vec<usize>, Vec<usize>) = (0..count).partition(|key| redundant[*key]);
        if !keys.iter().all(|key| is_comparable(schema.field(*key).data_type())) {
            return None;
        }
        // Groups with wide keys do not leave early.
        let is_wide = |key: usize| physical_type(schema.field(key).data_type()) == Some(PhysicalType::WideInts);
        let clustered =
            keys.iter().position(|key| sets.is_empty() && !is_wide(*key) && self.is_clustered(&chain, *key));
        let mut output: Vec<Expression> = (0..key_columns).map(Expression::Column).collect();
        for (place, key) in keys.iter().chain(&carried).enumerate() {
            output[*key] = Expression::Column(place);
        }
        output.extend(finished);
        // A group that is filtered away later need not be built, unless its rows belong to other groups too.
        let plain = if sets.is_empty() { count } else { 0 };
        let of_keys = |columns: &[Option<SourceColumn>]| {
            (0..output.len()).map(|column| columns.get(column).copied().flatten().filter(|_| column < plain)).collect()
        };
        let (origins, sources) = match chain.branches.as_slice() {
            [branch] => (of_keys(&branch.filterable_sources), of_keys(&chain.value_sources)),
            _ => (of_keys(&[]), of_keys(&[])),
        };
        let key_types: Vec<PhysicalType> =
            keys.iter().filter_map(|key| physical_type(schema.field(*key).data_type())).collect();
        let pipeline = if states.distinct.is_empty() {
            let states = states.row_states();
            let spec = AggregateSpec { keys, key_types, carried, states, sets, grand_total_id: None, clustered };
            self.end_pipelines(chain, &Sink::Aggregate(Arc::new(spec)))
        } else {
            // Its states follow from those of the rows.
            let spec =
                AggregateSpec { keys, key_types, carried, states: Vec::new(), sets, grand_total_id: None, clustered };
            self.add_distinct_grouping(chain, &states, spec)
        };
        let (source, steps) = (Source::Groups(pipeline), vec![Step::Project(output)]);
        let branches = vec![OpenPipeline::new(source, steps, origins)];
        Some(OpenPipelines { branches, schema, value_sources: sources, null_padded_inputs: padded, is_ordered: false })
    }

    /// Returns whether each value of a scanned column occurs in one row only.
    fn is_unique(&self, (number, column): SourceColumn) -> bool {
        self.scan_of_input(number).is_some_and(|scan| scan.scan.is_unique(column))
    }

    /// Returns the scan that is the input with this number.
    fn scan_of_input(&self, number: usize) -> Option<&ShardScanExec> {
        let Input::Scan(input) = &self.inputs[number] else { return None };
        input.scan.downcast_ref::<ShardScanExec>()
    }

    /// Returns whether a column comes from the scan at the pipeline's source and its values are clustered.
    fn is_clustered(&self, chain: &OpenPipelines, column: usize) -> bool {
        let [branch] = chain.branches.as_slice() else { return false };
        let source = chain.value_sources[column].filter(|(number, _)| branch.source == Source::Input(*number));
        source.is_some_and(|(number, column)| {
            self.scan_of_input(number).is_some_and(|scan| scan.scan.is_clustered(column))
        })
    }
}
