//! Compiles sorts and merges: sorted rows are the source of another pipeline.

use std::sync::Arc;

use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use engine::PhysicalType;
use engine::arrow_convert::{is_comparable, physical_type};
use engine::pipeline::{Sink, Source};
use engine::sort::{SortKey, SortSpec};
use engine::window::WindowSpec;

use super::{OpenPipeline, OpenPipelines, OperatorId, ProgramBuilder, ordered, skip_exchanges};
use crate::merge_sort_keys::is_top_k_per_partition;
use crate::top_k::TopKFilter;

impl ProgramBuilder<'_> {
    /// Compiles a merge of sorted partitions, which in the engine is one sort or an input that already has the order.
    pub(super) fn lower_merge(&mut self, merge: &SortPreservingMergeExec) -> Option<OpenPipelines> {
        let input = merge.input();
        if let Some(sort) = input.downcast_ref::<SortExec>() {
            let mut chain = self.lower_sort(sort, merge.expr())?;
            chain.record_output_of(OperatorId::new(sort));
            chain.branches.iter_mut().for_each(|branch| branch.in_order = true);
            return if merge.fetch().is_some() { self.add_limit(chain, 0, merge.fetch()) } else { Some(chain) };
        }
        let chain = self.lower_operator(skip_exchanges(input))?;
        let is_sorted = ordered(input).ordering_satisfy(merge.expr().iter().cloned()).unwrap_or(false);
        if !chain.is_ordered || !is_sorted {
            // An operator in between, such as a join, has not preserved the order.
            return self.add_sort_by(chain, merge.expr(), merge.fetch());
        }
        let chain = chain.require_order_of(input)?;
        if merge.fetch().is_some() { self.add_limit(chain, 0, merge.fetch()) } else { Some(chain) }
    }

    /// Compiles a sort, with keys that order all partitions together.
    pub(super) fn lower_sort(&mut self, sort: &SortExec, keys: &LexOrdering) -> Option<OpenPipelines> {
        if is_top_k_per_partition(sort, keys) {
            return None;
        }
        let chain = self.lower_input(sort.input())?;
        let first_key = keys.first();
        let told = first_key.expr.data_type(&chain.schema).ok().zip(sort.dynamic_expressions_produced().pop());
        let top = told.and_then(|(data_type, filter)| TopKFilter::new(filter, first_key, data_type, keys.len() == 1));
        let chain = self.add_sort_by(chain, keys, sort.fetch())?;
        self.top_k_filters.extend(top.map(|top| (self.pipelines.len() - 1, top)));
        Some(chain)
    }

    /// Sorts rows by keys; with `fetch`, only the first rows are retained.
    pub(super) fn add_sort_by(
        &mut self,
        mut chain: OpenPipelines,
        keys: &LexOrdering,
        fetch: Option<usize>,
    ) -> Option<OpenPipelines> {
        let (schema, columns) = (Arc::clone(&chain.schema), chain.schema.fields().len());
        if fetch.is_some() {
            chain.block_filters();
        }
        let (chain, places) = chain.with_keys(keys.iter().map(|key| &key.expr))?;
        let keys = keys.iter().zip(places).map(|(sort, column)| sort_key(sort, column)).collect();
        let chain = self.add_sort(chain, keys, fetch, None)?;
        if chain.schema.fields().len() == columns {
            return Some(OpenPipelines { schema, ..chain });
        }
        // Computed keys are not needed after the sort.
        chain.select_columns(&(0..columns).collect::<Vec<_>>()).map(|chain| OpenPipelines { schema, ..chain })
    }

    /// Sorts rows by key columns and evaluates window functions over them.
    pub(super) fn add_sort(
        &mut self,
        chain: OpenPipelines,
        keys: Vec<SortKey>,
        fetch: Option<usize>,
        windows: Option<WindowSpec>,
    ) -> Option<OpenPipelines> {
        let forms: Option<Vec<PhysicalType>> =
            chain.schema.fields().iter().map(|field| physical_type(field.data_type())).collect();
        let functions = windows.as_ref().map_or(0, |windows| windows.functions.len());
        let compared = keys.iter().map(|key| &key.column);
        let of_windows = windows.iter().flat_map(|windows| windows.partition_by.iter().chain(&windows.order_by));
        if !compared.chain(of_windows).all(|column| is_comparable(chain.schema.field(*column).data_type())) {
            return None;
        }
        let spec = SortSpec { keys, fetch, column_types: forms?, windows };
        self.has_work = true;
        let (schema, padded) = (Arc::clone(&chain.schema), chain.null_padded_inputs.clone());
        let mut sources = chain.value_sources.clone();
        let mut origins = match chain.branches.as_slice() {
            [branch] => branch.filterable_sources.clone(),
            _ => vec![None; sources.len()],
        };
        sources.resize(sources.len() + functions, None);
        origins.resize(origins.len() + functions, None);
        let number = self.end_pipelines(chain, &Sink::Sort(Arc::new(spec)));
        let branches = vec![OpenPipeline::new(Source::Sorted(number), Vec::new(), origins)];
        Some(OpenPipelines { branches, schema, value_sources: sources, null_padded_inputs: padded, is_ordered: true })
    }
}

/// Returns a sort key on a column.
pub(super) fn sort_key(sort: &PhysicalSortExpr, column: usize) -> SortKey {
    SortKey { column, is_descending: sort.options.descending, nulls_first: sort.options.nulls_first }
}
