//! UPDATEs applied to stored rows: only the columns that are set are computed, all others stay as they are stored.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::datatypes::{Field, Schema, SchemaRef};
use binder::{Action, ModifyPlan};
use catalog::Table;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchemaRef, Result as DfResult, ScalarValue};
use datafusion::logical_expr::Expr;
use functions::checked_value;
use functions::error::from_datafusion;
use rowstore::{ColumnBuilder, ColumnValues, StoredColumn, Tuple, decode_columns};
use scan::{column_defs, stored_column};
use storage_error::from_rowstore;
use types::{ColumnId, SqlResult, SqlType};

use super::index_range::{column_values, input_position};
use super::lookup_chain::{Step, StepKind};
use super::row_projection::stored_type;
use super::value_expression::{ValueExpression, evaluate_all, scalars_to_values};
use super::vectorized_expression::{Expression, compile, evaluate, new_batch, repeat_parameters, step_input_schema};

/// Number of columns that precede those of the table in the rows of a [`ModifyPlan`].
const LEADING_COLUMNS: usize = 3;

/// UPDATE of the rows that an index finds.
#[derive(Debug)]
pub(super) struct RowUpdate {
    /// Columns that the new values are computed from.
    input_columns: Vec<StoredColumn>,
    /// Schema of `needed`, followed by the parameters.
    input_schema: SchemaRef,
    /// New values, by ascending column id.
    set: Vec<NewValue>,
    pub(super) columns: Arc<[ColumnId]>,
    /// The same expressions, if all can be computed value by value.
    by_value: Option<ValueUpdate>,
    /// Expressions of RETURNING.
    returning: Vec<Expression>,
    returning_schema: SchemaRef,
}

/// New versions of rows, with the rows of RETURNING.
pub(super) struct UpdateResult {
    pub(super) rows: Vec<Tuple>,
    pub(super) returning: RecordBatch,
}

/// Expressions of an UPDATE that are computed value by value.
#[derive(Debug)]
struct ValueUpdate {
    set: Vec<ValueExpression>,
    returning: Vec<ValueExpression>,
    returning_types: Vec<SqlType>,
}

/// New value of a column, and whether the column is NOT NULL.
#[derive(Debug)]
struct NewValue {
    value: Expression,
    is_not_null: bool,
}

/// Returns true if the plan only sets columns, checks NOT NULL and computes RETURNING.
pub(super) fn is_plain_update(plan: &ModifyPlan) -> bool {
    plan.command_tag == "UPDATE" && plan.old_columns.is_empty() && plan.references.is_empty()
}

impl RowUpdate {
    /// Converts the steps of an UPDATE; `None` if they do more than set columns.
    pub(super) fn try_new(table: &Table, steps: &[Step], parameters: &[Field]) -> SqlResult<Option<Self>> {
        let mut projections = Vec::new();
        for step in steps {
            match &step.kind {
                StepKind::Project(exprs) => projections.push((exprs.as_slice(), &step.input)),
                // The index range implies this filter.
                StepKind::Filter(_) if projections.is_empty() => {}
                _ => return Ok(None),
            }
        }
        let Some(first) = steps.iter().find(|step| matches!(step.kind, StepKind::Project(_))) else { return Ok(None) };
        let width = table.columns.len();
        let count = projections.last().map_or(0, |(exprs, _)| exprs.len()).max(LEADING_COLUMNS + width);
        let made = (0..count).map(|position| inline_projections(&projections, position));
        let made = made.collect::<DfResult<Option<Vec<Expr>>>>().map_err(from_datafusion)?;
        let Some(made) = made else { return Ok(None) };
        let is_update = matches!(&made[0], Expr::Literal(ScalarValue::Int8(Some(action)), _)
            if Action::from_value(*action) == Some(Action::Update));
        let says_which =
            (width..width + 2).eq(made[1..LEADING_COLUMNS].iter().filter_map(|expr| input_position(expr, first)));
        if !is_update || !says_which {
            return Ok(None);
        }
        let (columns, returning) = made[LEADING_COLUMNS..].split_at(width);
        let changed = columns.iter().enumerate();
        let mut changed: Vec<(usize, &Expr)> =
            changed.filter(|(position, expr)| input_position(expr, first) != Some(*position)).collect();
        changed.sort_unstable_by_key(|(position, _)| table.columns[*position].id);

        let mut needed: Vec<usize> = Vec::new();
        let computed = || changed.iter().map(|(_, expr)| *expr).chain(returning);
        for expr in computed() {
            needed
                .extend(expr.column_refs().into_iter().filter_map(|column| first.input.maybe_index_of_column(column)));
        }
        needed.sort_unstable();
        needed.dedup();
        if computed().any(Expr::is_volatile) || needed.last().is_some_and(|last| width <= *last) {
            return Ok(None);
        }
        let defs = column_defs(table);
        let types: Vec<_> = needed.iter().map(|position| defs[*position].sql_type.arrow_type()).collect();
        let over = step_input_schema(first, Some(&needed), &types, parameters)?;
        let mut set = Vec::with_capacity(changed.len());
        for (position, expr) in &changed {
            let column = &table.columns[*position];
            let value = compile(expr, &over)?;
            if value.data_type(over.as_arrow()).map_err(from_datafusion)? != column.sql_type.arrow_type() {
                return Ok(None);
            }
            set.push(NewValue { value, is_not_null: column.not_null });
        }
        let returning = returning.iter().map(|expr| compile(expr, &over)).collect::<SqlResult<Vec<_>>>()?;
        let field = |expr: &Expression| {
            let of = expr.data_type(over.as_arrow()).map_err(from_datafusion)?;
            Ok(Field::new("", of, true))
        };
        let returned = Arc::new(Schema::new(returning.iter().map(field).collect::<SqlResult<Vec<_>>>()?));
        let cells = || {
            Some(ValueUpdate {
                set: ValueExpression::try_compile_all(set.iter().map(|set| &set.value), over.as_arrow())?,
                returning: ValueExpression::try_compile_all(&returning, over.as_arrow())?,
                returning_types: returned
                    .fields()
                    .iter()
                    .map(|field| stored_type(field.data_type()))
                    .collect::<Option<_>>()?,
            })
        };
        Ok(Some(Self {
            by_value: cells(),
            returning,
            returning_schema: returned,
            input_columns: needed.iter().map(|position| stored_column(&defs[*position])).collect::<SqlResult<_>>()?,
            input_schema: Arc::clone(over.inner()),
            set,
            columns: changed.iter().map(|(position, _)| table.columns[*position].id).collect(),
        }))
    }

    /// Computes the new versions of the rows; `None` if one violates NOT NULL, which the plan reports.
    ///
    /// # Errors
    /// Errors of the expressions.
    pub(super) fn apply(
        &self,
        rows: &[Tuple],
        parameters: &[ScalarValue],
        one: impl FnOnce() -> SqlResult<RecordBatch>,
    ) -> SqlResult<Option<UpdateResult>> {
        if let Some(applied) = self.apply_by_value(rows, parameters)? {
            return Ok(Some(applied));
        }
        let one = &one()?;
        let mut columns = decode_columns(rows, &self.input_columns, rows.len()).map_err(from_rowstore)?;
        columns.extend(repeat_parameters(one, rows.len())?);
        let over = new_batch(&self.input_schema, columns, rows.len())?;
        let mut values: Vec<ArrayRef> = Vec::with_capacity(self.set.len());
        for set in &self.set {
            let value = evaluate(&set.value, &over)?;
            if set.is_not_null && value.null_count() != 0 {
                return Ok(None);
            }
            values.push(value);
        }
        let values = ColumnValues::for_columns(&values).map_err(from_rowstore)?;
        let patched = rows.iter().enumerate().map(|(at, row)| {
            row.with_changes(self.columns.iter().copied().zip(values.iter().map(|values| values.get(at))))
        });
        let patched = patched.collect::<Result<_, _>>().map_err(from_rowstore)?;
        let returning = self.returning.iter().map(|expr| evaluate(expr, &over)).collect::<SqlResult<_>>()?;
        let returning = new_batch(&self.returning_schema, returning, rows.len())?;
        Ok(Some(UpdateResult { rows: patched, returning }))
    }
}

impl RowUpdate {
    /// Like [`RowUpdate::apply`], value by value; `None` if arrays are needed.
    fn apply_by_value(&self, rows: &[Tuple], parameters: &[ScalarValue]) -> SqlResult<Option<UpdateResult>> {
        let (Some(cells), Some(parameters)) = (&self.by_value, scalars_to_values(parameters)) else { return Ok(None) };
        let builder = |returned| ColumnBuilder::new(returned, rows.len());
        let mut returning =
            cells.returning_types.iter().map(builder).collect::<Result<Vec<_>, _>>().map_err(from_rowstore)?;
        let mut patched = Vec::with_capacity(rows.len());
        for row in rows {
            let mut fields = column_values(&self.input_columns, row)?;
            fields.extend_from_slice(&parameters);
            let Some(made) = evaluate_all(&cells.set, &fields)? else { return Ok(None) };
            if self.set.iter().zip(&made).any(|(set, value)| set.is_not_null && value.is_null()) {
                return Ok(None);
            }
            patched.push(row.with_changes(self.columns.iter().copied().zip(made)).map_err(from_rowstore)?);
            let Some(returned) = evaluate_all(&cells.returning, &fields)? else { return Ok(None) };
            for (column, value) in returning.iter_mut().zip(returned) {
                column.append(value).map_err(from_rowstore)?;
            }
        }
        let returning = returning.iter_mut().map(ColumnBuilder::finish).collect();
        Ok(Some(UpdateResult { rows: patched, returning: new_batch(&self.returning_schema, returning, rows.len())? }))
    }
}

/// Returns the expression at `position` of the last projection, rewritten over the input of the first; `None` if it
/// reads a volatile expression, which must be evaluated only once.
fn inline_projections(projections: &[(&[Expr], &DFSchemaRef)], position: usize) -> DfResult<Option<Expr>> {
    let Some(((exprs, input), before)) = projections.split_last() else { return Ok(None) };
    let Some(expr) = exprs.get(position) else { return Ok(None) };
    let expr = expr.clone().unalias();
    let expr = checked_value(&expr).cloned().unwrap_or(expr);
    if before.is_empty() {
        return Ok(Some(expr));
    }
    if expr.is_volatile() {
        return Ok(None);
    }
    let mut is_whole = true;
    let made = expr.transform_up(|node| {
        let Expr::Column(column) = &node else { return Ok(Transformed::no(node)) };
        // No projection computes this column: it is a parameter.
        let Some(at) = input.maybe_index_of_column(column) else { return Ok(Transformed::no(node)) };
        Ok(match inline_projections(before, at)? {
            Some(made) => Transformed::yes(made),
            None => {
                is_whole = false;
                Transformed::no(node)
            }
        })
    })?;
    Ok(is_whole.then_some(made.data))
}
