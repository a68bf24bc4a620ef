//! Compiles aggregations.
//!
//! - `kept.rs` defines the states of each aggregate and its final value.
//! - `states.rs` collects the states of all aggregates of an operator and the columns that they read.
//! - `distinct.rs` compiles DISTINCT aggregates.
//! - `sets.rs` compiles grouping sets.
//! - `halves.rs` compiles partial and final aggregation in different processes.

mod distinct;
mod halves;
mod kept;
mod sets;
mod states;

use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use engine::Form;
use engine::aggregate::AggregateSpec;
use engine::arrow_form::{form, is_compared};
use engine::expression::Expression;
use engine::pipeline::{Sink, Source, Step};
use scan::ShardScanExec;

pub(super) use self::kept::{Aggregate, spread_of, spread_states, total_of};
use self::sets::grouping_sets;
use self::states::States;
use super::{Branch, Builder, Chain, Input, SourceColumn, through_exchanges};
use crate::expression;

/// Maximum number of group keys: one word holds their NULL bits.
const KEYS_MAX: usize = 60;

impl Builder<'_> {
    /// Compiles an aggregation, including a partial one below it.
    pub(super) fn aggregate(&mut self, last: &AggregateExec) -> Option<Chain> {
        let first = match last.mode() {
            AggregateMode::Single | AggregateMode::SinglePartitioned => last,
            AggregateMode::Final | AggregateMode::FinalPartitioned => {
                let below = through_exchanges(last.input()).downcast_ref::<AggregateExec>();
                match below.filter(|below| *below.mode() == AggregateMode::Partial) {
                    Some(below) => below,
                    None => return self.second_half(last),
                }
            }
            AggregateMode::Partial => return self.first_half(last),
            AggregateMode::PartialReduce => return None,
        };
        self.grouped(first, last, |states, aggregate, filter| Some(vec![states.value_of(aggregate, filter)?]))
    }

    /// Compiles a grouping of the input of `first` with the output of `last`; `finish` returns the output columns of
    /// each aggregate.
    fn grouped(
        &mut self,
        first: &AggregateExec,
        last: &AggregateExec,
        mut finish: impl FnMut(
            &mut States,
            &Arc<AggregateFunctionExpr>,
            Option<&Arc<dyn PhysicalExpr>>,
        ) -> Option<Vec<Expression>>,
    ) -> Option<Chain> {
        let groups = first.group_expr();
        let is_plain = first.limit_options().is_none() && last.limit_options().is_none();
        if !is_plain {
            return None;
        }
        let sets = if groups.has_grouping_set() { grouping_sets(groups)? } else { Vec::new() };
        let chain = self.below(first.input())?;
        let count = groups.expr().len();
        let keys =
            groups.expr().iter().map(|(key, _)| expression::lower(key, &chain.schema)).collect::<Option<Vec<_>>>()?;
        // The number of the grouping set follows the keys.
        let key_columns = count + usize::from(!sets.is_empty());
        let mut states = States::new(Arc::clone(&chain.schema), keys, key_columns);
        let calls = first.aggr_expr().iter().zip(first.filter_expr());
        let finished = calls
            .map(|(aggregate, filter)| finish(&mut states, aggregate, filter.as_ref()))
            .collect::<Option<Vec<_>>>()?
            .concat();
        if KEYS_MAX < count + states.distinct.len() {
            return None;
        }
        self.has_work = true;
        let padded = chain.padded.clone();
        let schema = last.schema();
        let chain = chain.projected(states.all_columns(), Arc::new(Schema::empty()));
        let is_costly = |key: usize| matches!(form(schema.field(key).data_type()), Some(Form::Texts | Form::Opaque));
        let is_unique = |column| self.is_unique(column);
        let redundant = match sets.is_empty() {
            true => self.dependencies.redundant(&chain.sources[..count], is_unique, is_costly),
            // A dependent key is not constant in groups of a set without the key that determines it.
            false => vec![false; count],
        };
        let (carried, keys): (Vec<usize>, Vec<usize>) = (0..count).partition(|key| redundant[*key]);
        if !keys.iter().all(|key| is_compared(schema.field(*key).data_type())) {
            return None;
        }
        // Groups with wide keys do not leave early.
        let is_wide = |key: usize| form(schema.field(key).data_type()) == Some(Form::Wide);
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
            [branch] => (of_keys(&branch.origins), of_keys(&chain.sources)),
            _ => (of_keys(&[]), of_keys(&[])),
        };
        let key_forms: Vec<Form> = keys.iter().filter_map(|key| form(schema.field(*key).data_type())).collect();
        let pipeline = if states.distinct.is_empty() {
            let states = states.of_rows();
            let spec = AggregateSpec { keys, key_forms, carried, states, sets, total: None, clustered };
            self.end(chain, &Sink::Groups(Arc::new(spec)))
        } else {
            // Its states follow from those of the rows.
            let spec = AggregateSpec { keys, key_forms, carried, states: Vec::new(), sets, total: None, clustered };
            self.grouped_twice(chain, &states, spec)
        };
        let (source, steps) = (Source::Groups(pipeline), vec![Step::Project(output)]);
        let branches = vec![Branch::new(source, steps, origins)];
        Some(Chain { branches, schema, sources, padded, is_ordered: false })
    }

    /// Returns whether each value of a scanned column occurs in one row only.
    fn is_unique(&self, (number, column): SourceColumn) -> bool {
        self.scanned(number).is_some_and(|scan| scan.scan.is_unique(column))
    }

    /// Returns the scan that is the input with this number.
    fn scanned(&self, number: usize) -> Option<&ShardScanExec> {
        let Input::Scan(input) = &self.inputs[number] else { return None };
        input.scan.downcast_ref::<ShardScanExec>()
    }

    /// Returns whether a column comes from the scan at the pipeline's source and its values are clustered.
    fn is_clustered(&self, chain: &Chain, column: usize) -> bool {
        let [branch] = chain.branches.as_slice() else { return false };
        let source = chain.sources[column].filter(|(number, _)| branch.source == Source::Input(*number));
        source.is_some_and(|(number, column)| self.scanned(number).is_some_and(|scan| scan.scan.is_clustered(column)))
    }
}
