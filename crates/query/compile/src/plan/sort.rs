//! Compiles sorts and merges: sorted rows are the source of another pipeline.

use std::sync::Arc;

use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use engine::Form;
use engine::arrow_form::{form, is_compared};
use engine::pipeline::{Sink, Source};
use engine::sort::{SortKey, SortSpec};
use engine::window::WindowSpec;

use super::{Branch, Builder, Chain, OperatorId, ordered, through_exchanges};
use crate::top::Top;
use crate::whole_sorts::is_of_partitions;

impl Builder<'_> {
    /// Compiles a merge of sorted partitions, which in the engine is one sort or an input that already has the order.
    pub(super) fn merge(&mut self, merge: &SortPreservingMergeExec) -> Option<Chain> {
        let input = merge.input();
        if let Some(sort) = input.downcast_ref::<SortExec>() {
            let mut chain = self.sort(sort, merge.expr())?;
            chain.mark(OperatorId::of(sort));
            chain.branches.iter_mut().for_each(|branch| branch.in_order = true);
            return if merge.fetch().is_some() { self.limited(chain, 0, merge.fetch()) } else { Some(chain) };
        }
        let chain = self.operator(through_exchanges(input))?;
        let is_sorted = ordered(input).ordering_satisfy(merge.expr().iter().cloned()).unwrap_or(false);
        if !chain.is_ordered || !is_sorted {
            // An operator in between, such as a join, has not preserved the order.
            return self.sorted_by(chain, merge.expr(), merge.fetch());
        }
        let chain = chain.in_order_of(input)?;
        if merge.fetch().is_some() { self.limited(chain, 0, merge.fetch()) } else { Some(chain) }
    }

    /// Compiles a sort, with keys that order all partitions together.
    pub(super) fn sort(&mut self, sort: &SortExec, keys: &LexOrdering) -> Option<Chain> {
        if is_of_partitions(sort, keys) {
            return None;
        }
        let chain = self.below(sort.input())?;
        let first_key = keys.first();
        let told = first_key.expr.data_type(&chain.schema).ok().zip(sort.dynamic_expressions_produced().pop());
        let top = told.and_then(|(data_type, filter)| Top::new(filter, first_key, data_type, keys.len() == 1));
        let chain = self.sorted_by(chain, keys, sort.fetch())?;
        self.tops.extend(top.map(|top| (self.pipelines.len() - 1, top)));
        Some(chain)
    }

    /// Sorts rows by keys; with `fetch`, only the first rows are retained.
    pub(super) fn sorted_by(&mut self, mut chain: Chain, keys: &LexOrdering, fetch: Option<usize>) -> Option<Chain> {
        let (schema, columns) = (Arc::clone(&chain.schema), chain.schema.fields().len());
        if fetch.is_some() {
            chain.forget_origins();
        }
        let (chain, places) = chain.with_keys(keys.iter().map(|key| &key.expr))?;
        let keys = keys.iter().zip(places).map(|(sort, column)| key(sort, column)).collect();
        let chain = self.sorted(chain, keys, fetch, None)?;
        if chain.schema.fields().len() == columns {
            return Some(Chain { schema, ..chain });
        }
        // Computed keys are not needed after the sort.
        chain.chosen(&(0..columns).collect::<Vec<_>>()).map(|chain| Chain { schema, ..chain })
    }

    /// Sorts rows by key columns and evaluates window functions over them.
    pub(super) fn sorted(
        &mut self,
        chain: Chain,
        keys: Vec<SortKey>,
        fetch: Option<usize>,
        windows: Option<WindowSpec>,
    ) -> Option<Chain> {
        let forms: Option<Vec<Form>> = chain.schema.fields().iter().map(|field| form(field.data_type())).collect();
        let functions = windows.as_ref().map_or(0, |windows| windows.functions.len());
        let compared = keys.iter().map(|key| &key.column);
        let of_windows = windows.iter().flat_map(|windows| windows.partition_by.iter().chain(&windows.order_by));
        if !compared.chain(of_windows).all(|column| is_compared(chain.schema.field(*column).data_type())) {
            return None;
        }
        let spec = SortSpec { keys, fetch, forms: forms?, windows };
        self.has_work = true;
        let (schema, padded) = (Arc::clone(&chain.schema), chain.padded.clone());
        let mut sources = chain.sources.clone();
        let mut origins = match chain.branches.as_slice() {
            [branch] => branch.origins.clone(),
            _ => vec![None; sources.len()],
        };
        sources.resize(sources.len() + functions, None);
        origins.resize(origins.len() + functions, None);
        let number = self.end(chain, &Sink::Sort(Arc::new(spec)));
        let branches = vec![Branch::new(Source::Sorted(number), Vec::new(), origins)];
        Some(Chain { branches, schema, sources, padded, is_ordered: true })
    }
}

/// Returns a sort key on a column.
pub(super) fn key(sort: &PhysicalSortExpr, column: usize) -> SortKey {
    SortKey { column, is_descending: sort.options.descending, nulls_first: sort.options.nulls_first }
}
