//! Evaluates filters on the row sample that the catalog has of each table.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow::compute::{and, cast, filter, max, min, prep_null_mask_filter};
use arrow::datatypes::{DataType, Field, Float64Type, Schema};
use datafusion::common::DFSchema;
use datafusion::common::tree_node::TreeNode;
use datafusion::execution::context::ExecutionProps;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Expr, TableScan};
use datafusion::physical_expr::create_physical_expr;
use plan::ShardTable;
use plan::estimate::RelationEstimate;

use super::scan::with_table;
use crate::correlated_subqueries::is_correlated_call;

/// Least number of passing rows from which the sample's selectivity is used alone.
const TRUSTED_SAMPLE_ROWS_MIN: f64 = 12.0;
/// Least number of passing rows from which columns' ranges are taken from them.
const RANGE_SAMPLE_ROWS_MIN: usize = 4;

/// Result of a filter on a table's sample.
#[derive(Debug)]
pub(super) struct SampleResult {
    /// Per conjunct, which rows pass. Conjuncts that cannot be evaluated on the sample are left out.
    masks: Vec<BooleanArray>,
    /// Rows of the sample.
    rows: RecordBatch,
    /// Whether the sample is the whole table.
    is_complete: bool,
}

/// Evaluates `predicate` on the sample of the scanned table; `None` if there is no sample or no conjunct can be
/// evaluated.
pub(super) fn evaluate_on_sample(scan: &TableScan, predicate: &Expr) -> Option<SampleResult> {
    with_table(scan, |table| {
        let rows = table.estimates.sample.get_or_init(|| sample_rows(table)).clone()?;
        let schema = DFSchema::try_from_qualified_schema(scan.table_name.clone(), rows.schema_ref()).ok()?;
        let masks: Vec<BooleanArray> = split_conjunction(predicate)
            .into_iter()
            .filter(|conjunct| can_evaluate(conjunct))
            .filter_map(|conjunct| evaluate_mask(conjunct, &schema, &rows))
            .collect();
        let is_complete = table
            .rows
            .shards
            .sample
            .as_ref()
            .is_some_and(|sample| table.rows.len() <= sample.rows && table.rows.is_fully_flushed());
        (!masks.is_empty() && 0 < rows.num_rows()).then_some(SampleResult { masks, rows, is_complete })
    })
    .flatten()
}

impl SampleResult {
    /// Returns the filter's selectivity. `guessed` is its estimate from column statistics, with which the sample's
    /// result is averaged if few rows pass.
    pub(super) fn selectivity(&self, guessed: f64) -> f64 {
        let rows = self.rows.num_rows() as f64;
        let hits = self.combined_mask().true_count() as f64;
        if self.is_complete || TRUSTED_SAMPLE_ROWS_MIN <= hits {
            return hits / rows;
        }
        // With a larger selectivity more rows of the sample would have passed.
        let most = (hits + 3.0) / rows;
        let trust = hits / TRUSTED_SAMPLE_ROWS_MIN;
        trust * (hits / rows) + (1.0 - trust) * guessed.min(most)
    }

    /// Narrows the bounds of the columns of `kept`, within those of `scanned`, to the values of the passing rows: the
    /// rows of one year of a calendar have only that year's keys.
    pub(super) fn narrow_bounds(&self, kept: &mut RelationEstimate, scanned: &RelationEstimate, schema: &DFSchema) {
        let total = self.rows.num_rows();
        let masks = || self.masks.iter().cloned().chain([self.combined_mask()]);
        let Some(mask) = masks()
            .filter(|mask| RANGE_SAMPLE_ROWS_MIN <= mask.true_count())
            .min_by_key(BooleanArray::true_count)
            .filter(|mask| mask.true_count() < total)
        else {
            return;
        };
        let hits = mask.true_count() as f64;
        for ((facts, before), field) in kept.columns.iter_mut().zip(&scanned.columns).zip(schema.fields()) {
            let (Some(least), Some(most)) = (before.min, before.max) else { continue };
            let Some((low, high)) = self.rows.column_by_name(field.name()).and_then(|values| range(values, &mask))
            else {
                continue;
            };
            // The table's passing rows reach about one gap between two sampled values beyond the sample's.
            let margin = ((high - low) / hits).max((most - least) / total as f64);
            let (low, high) = (least.max(low - margin), most.min(high + margin));
            if high - low < (most - least) / 2.0 {
                facts.restrict_to_range(before, low, high);
            }
        }
    }

    /// Returns which rows pass all conjuncts.
    fn combined_mask(&self) -> BooleanArray {
        let all = self.masks.iter().cloned().reduce(|a, b| and(&a, &b).unwrap_or(a));
        all.unwrap_or_else(|| BooleanArray::from(vec![true; self.rows.num_rows()]))
    }
}

/// Returns whether a condition can be evaluated on a row alone: it has no subquery, placeholder or volatile function.
fn can_evaluate(conjunct: &Expr) -> bool {
    let reads_more = conjunct.exists(|expr| {
        let is_subquery = matches!(expr, Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_));
        Ok(is_subquery || is_correlated_call(expr) || matches!(expr, Expr::Placeholder(_)))
    });
    !conjunct.is_volatile() && !reads_more.unwrap_or(true)
}

/// Evaluates a conjunct; returns which rows pass, `None` if it cannot be evaluated.
fn evaluate_mask(conjunct: &Expr, schema: &DFSchema, rows: &RecordBatch) -> Option<BooleanArray> {
    let context = PhysicalPlanningContext::default();
    let evaluable = create_physical_expr(conjunct, schema, &ExecutionProps::new(), &context).ok()?;
    let passed = evaluable.evaluate(rows).ok()?.into_array(rows.num_rows()).ok()?;
    let passed = passed.as_boolean_opt()?;
    Some(if passed.null_count() == 0 { passed.clone() } else { prep_null_mask_filter(passed) })
}

/// Returns the minimum and maximum of the masked values, for types whose values have positions on an axis.
fn range(values: &ArrayRef, mask: &BooleanArray) -> Option<(f64, f64)> {
    let has_place = matches!(
        values.data_type(),
        DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::Date32
            | DataType::Timestamp(..)
            | DataType::Decimal128(..)
    );
    if !has_place {
        return None;
    }
    let values = filter(values, mask).ok()?;
    // Dates and timestamps cannot be cast to floats directly.
    let values = match values.data_type() {
        DataType::Date32 => cast(&values, &DataType::Int32).ok()?,
        DataType::Timestamp(..) => cast(&values, &DataType::Int64).ok()?,
        _ => values,
    };
    let values = cast(&values, &DataType::Float64).ok()?;
    let values = values.as_primitive_opt::<Float64Type>()?;
    Some((min(values)?, max(values)?))
}

/// Returns the sample's rows with the columns' current names, without columns that were added or retyped since
/// sampling.
fn sample_rows(table: &ShardTable) -> Option<RecordBatch> {
    let sample = table.rows.shards.sample.as_ref()?;
    let batch = sample.batch()?;
    let columns = table.table.columns.iter().filter_map(|column| {
        let values = batch.column_by_name(&column.id.0.to_string())?;
        let data_type = column.sql_type.arrow_type();
        (*values.data_type() == data_type).then(|| (Field::new(&column.name, data_type, true), Arc::clone(values)))
    });
    let (fields, columns): (Vec<Field>, Vec<ArrayRef>) = columns.unzip();
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options).ok()
}
