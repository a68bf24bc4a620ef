//! Compiles scans and filters, and determines the columns that are materialized late.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, InListExpr, LikeExpr, Literal};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr, split_conjunction};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;
use engine::arrow_convert::is_supported;
use engine::expression::ExpressionState;
use engine::join::OutputColumn;
use engine::pipeline::{Source, Step};
use engine::{Batch, Bitmap, ColumnData};
use functions::{KeySet, tested_keys};
use scan::{ShardScanExec, predicates};
use shards::Test;

use super::{Input, OpenPipeline, OpenPipelines, OperatorId, OperatorOutput, ProgramBuilder, ScanFilter, ScanInput};
use crate::expression;

impl ProgramBuilder<'_> {
    /// Compiles a scan; `None` if a column has no form in the engine.
    pub(super) fn lower_scan(&mut self, plan: &Arc<dyn ExecutionPlan>, scan: &ShardScanExec) -> Option<OpenPipelines> {
        let schema = plan.schema();
        // A column whose type has no form in the engine cannot be read.
        if !schema.fields().iter().all(|field| is_supported(field.data_type())) {
            return None;
        }
        let wanted = vec![false; schema.fields().len()];
        let (filters, keys) = (Vec::new(), Vec::new());
        let input = ScanInput { scan: Arc::clone(plan), filters, keys, late_columns: wanted, filter_operator: None };
        let chain = self.add_input(Input::Scan(input), schema, true);
        if scan.fetch().is_some() { self.add_limit(chain, 0, scan.fetch()) } else { Some(chain) }
    }

    /// Compiles a filter: into the scan below, if there is nothing between, else as a step.
    pub(super) fn lower_filter(&mut self, filter: &FilterExec, fetch: Option<usize>) -> Option<OpenPipelines> {
        let mut chain = self.lower_input(filter.input())?;
        let parts = split_conjunction(filter.predicate());
        let conditions = parts.iter().map(|part| expression::lower(part, &chain.schema)).collect::<Option<Vec<_>>>()?;
        match chain.branches.as_slice() {
            [OpenPipeline { source: Source::Input(number), steps, .. }]
                if steps.is_empty()
                    && let Input::Scan(scan) = &mut self.inputs[*number] =>
            {
                let filters = parts.iter().zip(conditions).map(|(part, condition)| ScanFilter {
                    condition,
                    test: equivalent_test(&scan.scan, part),
                    keys: key_set_of(part),
                });
                let filters: Vec<_> = filters.collect();
                scan.filters.extend(filters);
                // If other steps follow, the filter's rows are counted after them.
                let is_all = filter.projection().is_none() && fetch.is_none();
                scan.filter_operator = is_all.then(|| OperatorId::new(filter));
            }
            _ => chain.push(&Step::Filter(conditions)),
        }
        let chain = match filter.projection() {
            Some(columns) => chain.select_columns(columns)?,
            None => chain,
        };
        if fetch.is_some() { self.add_limit(chain, 0, fetch) } else { Some(chain) }
    }

    /// In a pipeline with a LIMIT, moves conditions that may fail from the scan into a filter step. A scan evaluates
    /// them for whole pages, a step batch by batch, and the rows before a failing one may be enough.
    pub(super) fn move_filter_after_scan(&mut self, branch: &mut OpenPipeline) {
        let Source::Input(number) = branch.source else { return };
        let Input::Scan(scan) = &mut self.inputs[number] else { return };
        let may_fail = |filter: &ScanFilter| filter.keys.is_none() && !filter.condition.never_fails();
        let first = scan.filters.iter().position(may_fail).filter(|_| branch.steps.iter().any(Step::may_end_early));
        let Some(first) = first else { return };
        let conditions = scan.filters.split_off(first).into_iter().map(|filter| filter.condition).collect();
        branch.steps.insert(0, Step::Filter(conditions));
        branch.operator_outputs.iter_mut().for_each(|mark| mark.step += 1);
        branch
            .operator_outputs
            .extend(scan.filter_operator.take().map(|operator| OperatorOutput { operator, step: 1 }));
    }

    /// Adds a runtime filter by the keys of a hash table to the scan at the source of a probing pipeline.
    pub(super) fn add_key_filter(&mut self, probe: &OpenPipelines, built_by: usize, keys: &[usize]) {
        for (key, column) in keys.iter().enumerate() {
            for (number, column) in probe.branches.iter().filter_map(|branch| branch.filterable_sources[*column]) {
                if let Input::Scan(scan) = &mut self.inputs[number]
                    // Keys of this type are numbered by the engine; the numbers mean nothing to the scan.
                    && !matches!(scan.scan.schema().field(column).data_type(), DataType::FixedSizeBinary(_))
                {
                    scan.keys.push((column, built_by, key));
                }
            }
        }
    }

    /// Marks the columns of scans that pipelines read after the filters.
    pub(super) fn mark_late_columns(&mut self) {
        for pipeline in &self.pipelines {
            let Source::Input(number) = pipeline.source else { continue };
            let Input::Scan(scan) = &mut self.inputs[number] else { continue };
            match source_columns(&pipeline.steps) {
                Some(columns) => columns.into_iter().for_each(|column| scan.late_columns[column] = true),
                None => scan.late_columns.fill(true),
            }
        }
    }
}

impl ScanFilter {
    /// Returns the rows of a batch that pass.
    pub(crate) fn passes(&self, batch: &Batch, memory: &mut ExpressionState) -> engine::Result<Bitmap> {
        if let Some((column, keys)) = &self.keys
            && let engine::Column { data: ColumnData::Ints { values, .. }, validity } = &batch.columns[*column]
        {
            let among = Bitmap::from_words(keys.test_values(values), values.len());
            return Ok(match validity {
                Some(valid) => among.and(valid),
                None => among,
            });
        }
        self.condition.is_true_in_portions(batch, memory)
    }
}

/// Returns the column test that a condition is equivalent to, if the scan evaluates it.
fn equivalent_test(scan: &Arc<dyn ExecutionPlan>, condition: &Arc<dyn PhysicalExpr>) -> Option<(usize, Test)> {
    let scan = &scan.downcast_ref::<ShardScanExec>()?.scan;
    let is_plain = condition.downcast_ref::<BinaryExpr>().is_some_and(|binary| {
        let is_comparison = !matches!(binary.op(), Operator::And | Operator::Or);
        let is_leaf = |side: &Arc<dyn PhysicalExpr>| side.is::<Column>() || side.is::<Literal>();
        is_comparison && is_leaf(binary.left()) && is_leaf(binary.right())
    });
    let is_pattern = condition.downcast_ref::<LikeExpr>().is_some_and(|like| like.expr().is::<Column>());
    let is_list = condition.downcast_ref::<InListExpr>().is_some_and(|list| list.expr().is::<Column>());
    let mut found = if is_plain || is_list || is_pattern {
        predicates::extract_predicates(condition, &scan.columns)
    } else {
        Vec::new()
    };
    let predicate = found.pop().filter(|predicate| found.is_empty() && scan.predicates.contains(predicate))?;
    // Long lists are tested by their bounds only.
    let is_exact = matches!(&predicate.test, Test::Compare(..) | Test::In(_) | Test::Like { .. });
    let column = scan.columns.iter().position(|column| column.id == predicate.column)?;
    is_exact.then_some((column, predicate.test))
}

/// Returns the column and the key set of a membership condition.
fn key_set_of(condition: &Arc<dyn PhysicalExpr>) -> Option<(usize, Arc<KeySet>)> {
    let call = condition.downcast_ref::<ScalarFunctionExpr>()?;
    let (keys, [argument]) = (tested_keys(call.fun())?, call.args()) else { return None };
    Some((argument.downcast_ref::<Column>()?.index(), Arc::clone(keys)))
}

/// Returns the columns of the source that steps read; `None` for all.
fn source_columns(steps: &[Step]) -> Option<Vec<usize>> {
    let mut columns = Vec::new();
    for step in steps {
        match step {
            Step::Limit { .. } => {}
            Step::Filter(conditions) => conditions.iter().for_each(|condition| condition.collect_columns(&mut columns)),
            Step::Project(expressions) => {
                expressions.iter().for_each(|expression| expression.collect_columns(&mut columns));
                return Some(columns);
            }
            Step::Expand(lists) => {
                lists.iter().flatten().for_each(|expression| expression.collect_columns(&mut columns));
                return Some(columns);
            }
            Step::Probe { spec, .. } => {
                columns.extend(spec.keys.iter().map(|(_, probe)| *probe));
                let residual = spec.residual.iter().flat_map(|residual| &residual.columns);
                columns.extend(spec.output.iter().chain(residual).filter_map(|column| match column {
                    OutputColumn::Probe(column) => Some(*column),
                    _ => None,
                }));
                return Some(columns);
            }
        }
    }
    None
}
