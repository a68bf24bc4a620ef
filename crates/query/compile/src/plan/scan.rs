//! Compiles scans and filters, and determines the columns that are materialized late.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, InListExpr, LikeExpr, Literal};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr, split_conjunction};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;
use engine::arrow_form::has_form;
use engine::expression::Memory;
use engine::join::OutputColumn;
use engine::pipeline::{Source, Step};
use engine::{Batch, Bits, Data};
use functions::{KeySet, keys_asked};
use scan::{ShardScanExec, predicates};
use shards::Test;

use super::{Branch, Builder, Chain, Input, Mark, OperatorId, ScanFilter, ScanInput};
use crate::expression;

impl Builder<'_> {
    /// Compiles a scan; `None` if a column has no form in the engine.
    pub(super) fn scan(&mut self, plan: &Arc<dyn ExecutionPlan>, scan: &ShardScanExec) -> Option<Chain> {
        let schema = plan.schema();
        // A column whose type has no form in the engine cannot be read.
        if !schema.fields().iter().all(|field| has_form(field.data_type())) {
            return None;
        }
        let wanted = vec![false; schema.fields().len()];
        let (filters, keys) = (Vec::new(), Vec::new());
        let input = ScanInput { scan: Arc::clone(plan), filters, keys, wanted, filter: None };
        let chain = self.input(Input::Scan(input), schema, true);
        if scan.fetch().is_some() { self.limited(chain, 0, scan.fetch()) } else { Some(chain) }
    }

    /// Compiles a filter: into the scan below, if there is nothing between, else as a step.
    pub(super) fn filter(&mut self, filter: &FilterExec, fetch: Option<usize>) -> Option<Chain> {
        let mut chain = self.below(filter.input())?;
        let parts = split_conjunction(filter.predicate());
        let conditions = parts.iter().map(|part| expression::lower(part, &chain.schema)).collect::<Option<Vec<_>>>()?;
        match chain.branches.as_slice() {
            [Branch { source: Source::Input(number), steps, .. }]
                if steps.is_empty()
                    && let Input::Scan(scan) = &mut self.inputs[*number] =>
            {
                let filters = parts.iter().zip(conditions).map(|(part, condition)| ScanFilter {
                    condition,
                    test: tested_by(&scan.scan, part),
                    keys: keys_of(part),
                });
                let filters: Vec<_> = filters.collect();
                scan.filters.extend(filters);
                // If other steps follow, the filter's rows are counted after them.
                let is_all = filter.projection().is_none() && fetch.is_none();
                scan.filter = is_all.then(|| OperatorId::of(filter));
            }
            _ => chain.push(&Step::Filter(conditions)),
        }
        let chain = match filter.projection() {
            Some(columns) => chain.chosen(columns)?,
            None => chain,
        };
        if fetch.is_some() { self.limited(chain, 0, fetch) } else { Some(chain) }
    }

    /// In a pipeline with a LIMIT, moves conditions that may fail from the scan into a filter step. A scan evaluates
    /// them for whole pages, a step batch by batch, and the rows before a failing one may be enough.
    pub(super) fn filter_after_scan(&mut self, branch: &mut Branch) {
        let Source::Input(number) = branch.source else { return };
        let Input::Scan(scan) = &mut self.inputs[number] else { return };
        let may_fail = |filter: &ScanFilter| filter.keys.is_none() && !filter.condition.never_fails();
        let first = scan.filters.iter().position(may_fail).filter(|_| branch.steps.iter().any(Step::is_limit));
        let Some(first) = first else { return };
        let conditions = scan.filters.split_off(first).into_iter().map(|filter| filter.condition).collect();
        branch.steps.insert(0, Step::Filter(conditions));
        branch.marks.iter_mut().for_each(|mark| mark.step += 1);
        branch.marks.extend(scan.filter.take().map(|operator| Mark { operator, step: 1 }));
    }

    /// Adds a runtime filter by the keys of a hash table to the scan at the source of a probing pipeline.
    pub(super) fn filter_source(&mut self, probe: &Chain, built_by: usize, keys: &[usize]) {
        for (key, column) in keys.iter().enumerate() {
            for (number, column) in probe.branches.iter().filter_map(|branch| branch.origins[*column]) {
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
    pub(super) fn want(&mut self) {
        for pipeline in &self.pipelines {
            let Source::Input(number) = pipeline.source else { continue };
            let Input::Scan(scan) = &mut self.inputs[number] else { continue };
            match read_first(&pipeline.steps) {
                Some(columns) => columns.into_iter().for_each(|column| scan.wanted[column] = true),
                None => scan.wanted.fill(true),
            }
        }
    }
}

impl ScanFilter {
    /// Returns the rows of a batch that pass.
    pub(crate) fn passes(&self, batch: &Batch, memory: &mut Memory) -> engine::Result<Bits> {
        if let Some((column, keys)) = &self.keys
            && let engine::Column { data: Data::Ints { values, .. }, validity } = &batch.columns[*column]
        {
            let among = Bits::of_words(keys.among(values), values.len());
            return Ok(match validity {
                Some(valid) => among.and(valid),
                None => among,
            });
        }
        self.condition.is_true_in_portions(batch, memory)
    }
}

/// Returns the column test that a condition is equivalent to, if the scan evaluates it.
fn tested_by(scan: &Arc<dyn ExecutionPlan>, condition: &Arc<dyn PhysicalExpr>) -> Option<(usize, Test)> {
    let scan = &scan.downcast_ref::<ShardScanExec>()?.scan;
    let is_plain = condition.downcast_ref::<BinaryExpr>().is_some_and(|binary| {
        let is_comparison = !matches!(binary.op(), Operator::And | Operator::Or);
        let is_leaf = |side: &Arc<dyn PhysicalExpr>| side.is::<Column>() || side.is::<Literal>();
        is_comparison && is_leaf(binary.left()) && is_leaf(binary.right())
    });
    let is_pattern = condition.downcast_ref::<LikeExpr>().is_some_and(|like| like.expr().is::<Column>());
    let is_list = condition.downcast_ref::<InListExpr>().is_some_and(|list| list.expr().is::<Column>());
    let mut found =
        if is_plain || is_list || is_pattern { predicates::of(condition, &scan.columns) } else { Vec::new() };
    let predicate = found.pop().filter(|predicate| found.is_empty() && scan.predicates.contains(predicate))?;
    // Long lists are tested by their bounds only.
    let is_exact = matches!(&predicate.test, Test::Compare(..) | Test::In(_) | Test::Like { .. });
    let column = scan.columns.iter().position(|column| column.id == predicate.column)?;
    is_exact.then_some((column, predicate.test))
}

/// Returns the column and the key set of a membership condition.
fn keys_of(condition: &Arc<dyn PhysicalExpr>) -> Option<(usize, Arc<KeySet>)> {
    let call = condition.downcast_ref::<ScalarFunctionExpr>()?;
    let (keys, [argument]) = (keys_asked(call.fun())?, call.args()) else { return None };
    Some((argument.downcast_ref::<Column>()?.index(), Arc::clone(keys)))
}

/// Returns the columns of the source that steps read; `None` for all.
fn read_first(steps: &[Step]) -> Option<Vec<usize>> {
    let mut columns = Vec::new();
    for step in steps {
        match step {
            Step::Limit { .. } => {}
            Step::Filter(conditions) => conditions.iter().for_each(|condition| condition.columns(&mut columns)),
            Step::Project(expressions) => {
                expressions.iter().for_each(|expression| expression.columns(&mut columns));
                return Some(columns);
            }
            Step::Repeat(lists) => {
                lists.iter().flatten().for_each(|expression| expression.columns(&mut columns));
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
