//! VALUES of an INSERT: every value is cast to its column's type by itself, so rows need no common types.
//!
//! Literals and parameters of declared types are converted here; other expressions are bound as SELECT lists. Rows of
//! literals become a record batch, so that a statement with thousands of them is planned as fast as one with a few.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::Schema;
use catalog::Table;
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::{EmptyRelation, Expr, LogicalPlan, LogicalPlanBuilder, Values};
use datafusion::sql::sqlparser::ast::{self, Query, SelectItem, SetExpr, UnaryOperator, Value};
use functions::error::from_datafusion;
use syntax::statement::{Overriding, is_default};
use types::numeric::digit_count;
use types::sql_type::NUMERIC_PRECISION_MAX;
use types::{Condition, SqlError, SqlResult, SqlType};

use super::assignment_cast::cast_for_assignment;
use super::{complete_rows, identity_values};
use crate::bind::Binder;
use crate::bind::modification::select;
use crate::semantics::expr_type::type_of;

/// Returns the rows of a query that is just VALUES; `None` for other queries.
pub(super) fn values_rows(query: &Query) -> Option<Vec<&[ast::Expr]>> {
    let SetExpr::Values(values) = query.body.as_ref() else { return None };
    let is_bare = query.with.is_none()
        && query.order_by.is_none()
        && query.limit_clause.is_none()
        && query.fetch.is_none()
        && query.locks.is_empty();
    is_bare.then(|| values.rows.iter().map(|row| row.content.as_slice()).collect())
}

/// Plans the rows, with every value cast to its column's type.
///
/// # Errors
/// SQLSTATE 42601 for a wrong number of values; errors of a value.
pub(super) fn plan_values(
    binder: &Binder<'_>,
    table: &Table,
    columns: &[usize],
    is_named: bool,
    written: &[&[ast::Expr]],
    declared: &[Option<SqlType>],
    overriding: Option<Overriding>,
) -> SqlResult<ValuesPlan> {
    let width = written.first().map_or(0, |row| row.len());
    if written.iter().any(|row| row.len() != width) {
        return Err(SqlError::new(Condition::SyntaxError, "VALUES lists must all be the same length"));
    }
    let filled = filled_positions(columns, width, is_named)?;
    let mut bound = BoundValues::bind(binder, table, &filled, written, declared)?;
    let mut cells = Vec::with_capacity(written.len());
    for row in written {
        let row = row.iter().zip(&filled).map(|(value, position)| {
            let column = &table.columns[*position];
            if is_default(value) {
                return complete_rows::column_default(binder, column);
            }
            let (value, from) = match literal(value) {
                Some(literal) => literal,
                None => bound.next()?,
            };
            if identity_values::is_ignored(column, overriding)? {
                return complete_rows::column_default(binder, column);
            }
            cast_for_assignment(value, &from, &column.name, &column.sql_type, binder.session())
        });
        cells.push(row.collect::<SqlResult<Vec<Expr>>>()?);
    }
    let names = || filled.iter().map(|position| table.columns[*position].name.as_str());
    let fields = filled.iter().map(|position| {
        let column = &table.columns[*position];
        column.sql_type.arrow_field(&column.name, true)
    });
    let schema = Schema::new(fields.collect::<Vec<_>>());
    let plan = match all_literals(&cells) {
        _ if cells.len() == 1 || bound.has_subqueries => {
            let one = |row: Vec<Expr>| {
                let columns = row.into_iter().zip(names()).map(|(value, name)| value.alias(name)).collect();
                complete_rows::build_projection(columns, one_row())
            };
            let mut plans = cells.into_iter().map(one);
            let first = plans.next().ok_or_else(|| SqlError::internal("a VALUES list without rows"))??;
            plans
                .try_fold(LogicalPlanBuilder::new(first), |all, next| all.union(next?).map_err(from_datafusion))?
                .build()
        }
        Some(values) => batch(schema, values).and_then(|batch| {
            let table = MemTable::try_new(batch.schema(), vec![vec![batch]])?;
            LogicalPlanBuilder::scan("values", provider_as_source(Arc::new(table)), None)?.build()
        }),
        // DataFusion gives these names again when parameters are replaced by values.
        None => DFSchema::try_from(with_numbered_names(&schema))
            .map(|schema| LogicalPlan::Values(Values { schema: Arc::new(schema), values: cells })),
    };
    Ok(ValuesPlan { plan: plan.map_err(from_datafusion)?, filled, parameters: bound.parameters })
}

fn with_numbered_names(schema: &Schema) -> Schema {
    let fields = schema.fields().iter().zip(1..);
    Schema::new(
        fields.map(|(field, number)| field.as_ref().clone().with_name(format!("column{number}"))).collect::<Vec<_>>(),
    )
}

/// Planned rows of VALUES.
pub(super) struct ValuesPlan {
    pub(super) plan: LogicalPlan,
    /// Positions in the table of the filled columns.
    pub(super) filled: Vec<usize>,
    pub(super) parameters: Vec<SqlType>,
}

/// Infers the type of a parameter that fills a column by itself: the column's type without its modifier, so that a
/// value that is too long is rejected when it is stored, not truncated when it is read.
pub(super) fn infer_parameter_type(expr: &ast::Expr, column: &SqlType, types: &mut Vec<Option<SqlType>>) {
    let Some(index) = parameter_index_of(expr) else { return };
    if types.len() <= index {
        types.resize(index + 1, None);
    }
    if types[index].as_ref().is_none_or(|known| *known == SqlType::Unknown) {
        types[index] = Some(column.without_modifier());
    }
}

/// Plans an expression that is just a parameter, if its type is resolved.
fn typed_parameter(written: &ast::Expr, types: &[Option<SqlType>]) -> Option<(Expr, SqlType)> {
    let at = parameter_index_of(written)?;
    let of = types.get(at)?.clone().filter(|of| *of != SqlType::Unknown)?;
    let id = format!("${}", at + 1);
    let field = Arc::new(of.arrow_field(&id, true));
    Some((Expr::Placeholder(Placeholder::new_with_field(id, Some(field))), of))
}

/// Returns the index of the parameter that the expression is, if it is one.
fn parameter_index_of(written: &ast::Expr) -> Option<usize> {
    let ast::Expr::Value(value) = written else { return None };
    let Value::Placeholder(name) = &value.value else { return None };
    let number: u16 = name.strip_prefix('$')?.parse().ok()?;
    usize::from(number).checked_sub(1)
}

/// Limit on the values in one SELECT list, because DataFusion compares each item with all earlier ones.
const SELECT_LIST_MAX: usize = 128;

/// Bound values other than literals, in the order they are written.
struct BoundValues {
    values: std::vec::IntoIter<(Expr, SqlType)>,
    parameters: Vec<SqlType>,
    has_subqueries: bool,
}

impl BoundValues {
    fn bind(
        binder: &Binder<'_>,
        table: &Table,
        filled: &[usize],
        written: &[&[ast::Expr]],
        declared: &[Option<SqlType>],
    ) -> SqlResult<Self> {
        let mut types = declared.to_vec();
        let mut values = Vec::new();
        let mut listed = Vec::new();
        for row in written {
            for (value, position) in row.iter().zip(filled) {
                if is_default(value) || literal(value).is_some() {
                    continue;
                }
                infer_parameter_type(value, &table.columns[*position].sql_type, &mut types);
                let parameter = typed_parameter(value, &types);
                if parameter.is_none() {
                    listed.push((values.len(), SelectItem::UnnamedExpr(value.clone())));
                }
                values.push(parameter);
            }
        }
        binder.add_recorded_types(&mut types);
        for list in listed.chunks(SELECT_LIST_MAX) {
            let items = list.iter().map(|(_, item)| item.clone()).collect();
            let bound = binder.plan_query_part(&select(items)?, &types)?;
            let LogicalPlan::Projection(made) = bound.plan else { return Err(set_returning_error()) };
            if !matches!(made.input.as_ref(), LogicalPlan::EmptyRelation(_)) {
                return Err(set_returning_error());
            }
            for ((at, _), expr) in list.iter().zip(made.expr) {
                let from = type_of(&expr, made.input.schema().as_ref()).map_err(from_datafusion)?;
                values[*at] = Some((expr.unalias(), from));
            }
            types = bound.parameters.into_iter().map(Some).collect();
        }
        let parameters = types.into_iter().map(|of| of.unwrap_or(SqlType::Unknown)).collect();
        let lost = || SqlError::internal("binding a VALUES list returned fewer values than the list has");
        let values = values.into_iter().map(|value| value.ok_or_else(lost)).collect::<SqlResult<Vec<_>>>()?;
        let has_subqueries = values.iter().any(|(value, _)| {
            value
                .exists(|expr| Ok(matches!(expr, Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_))))
                .unwrap_or(true)
        });
        Ok(Self { values: values.into_iter(), parameters, has_subqueries })
    }

    fn next(&mut self) -> SqlResult<(Expr, SqlType)> {
        self.values
            .next()
            .ok_or_else(|| SqlError::internal("binding a VALUES list returned fewer values than the list has"))
    }
}

fn set_returning_error() -> SqlError {
    SqlError::new(Condition::FeatureNotSupported, "set-returning functions are not allowed in VALUES")
}

/// Returns the value and the type of a literal.
fn literal(written: &ast::Expr) -> Option<(Expr, SqlType)> {
    let (value, sql_type) = match written {
        ast::Expr::Value(value) => match &value.value {
            Value::Null => (ScalarValue::Utf8View(None), SqlType::Unknown),
            Value::Boolean(value) => (ScalarValue::Boolean(Some(*value)), SqlType::Bool),
            Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => {
                (ScalarValue::Utf8View(Some(text.clone())), SqlType::Unknown)
            }
            Value::Number(digits, _) => number(digits, false)?,
            _ => return None,
        },
        ast::Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match expr.as_ref() {
            ast::Expr::Value(value) => match &value.value {
                Value::Number(digits, _) => number(digits, true)?,
                _ => return None,
            },
            _ => return None,
        },
        _ => return None,
    };
    Some((Expr::Literal(value, None), sql_type))
}

/// Parses a number of plain digits, with or without a decimal point.
fn number(written: &str, is_negative: bool) -> Option<(ScalarValue, SqlType)> {
    let (whole, fraction) = written.split_once('.').unwrap_or((written, ""));
    if !whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let magnitude: i128 = format!("{whole}{fraction}").parse().ok()?;
    let value = if is_negative { -magnitude } else { magnitude };
    if !written.contains('.') {
        if let Ok(value) = i32::try_from(value) {
            return Some((ScalarValue::Int32(Some(value)), SqlType::Int4));
        }
        if let Ok(value) = i64::try_from(value) {
            return Some((ScalarValue::Int64(Some(value)), SqlType::Int8));
        }
    }
    let scale = u8::try_from(fraction.len()).ok()?;
    let precision = digit_count(value).max(scale).max(1);
    if NUMERIC_PRECISION_MAX < precision {
        return None;
    }
    let value = ScalarValue::Decimal128(Some(value), precision, i8::try_from(scale).ok()?);
    Some((value, SqlType::Numeric { precision, scale }))
}

/// Returns the values if all cells are literals.
fn all_literals(cells: &[Vec<Expr>]) -> Option<Vec<Vec<ScalarValue>>> {
    let value = |cell: &Expr| match cell {
        Expr::Literal(value, _) => Some(value.clone()),
        _ => None,
    };
    cells.iter().map(|row| row.iter().map(value).collect()).collect()
}

fn batch(schema: Schema, rows: Vec<Vec<ScalarValue>>) -> datafusion::common::Result<RecordBatch> {
    let mut columns: Vec<Vec<ScalarValue>> = schema.fields().iter().map(|_| Vec::with_capacity(rows.len())).collect();
    for row in rows {
        for (column, value) in columns.iter_mut().zip(row) {
            column.push(value);
        }
    }
    let columns = columns.into_iter().map(ScalarValue::iter_to_array).collect::<Result<Vec<ArrayRef>, _>>()?;
    Ok(RecordBatch::try_new(Arc::new(schema), columns)?)
}

/// Returns the positions that `count` values fill.
///
/// # Errors
/// SQLSTATE 42601 for more values than columns, and for fewer than named columns.
pub(super) fn filled_positions(columns: &[usize], count: usize, is_named: bool) -> SqlResult<Vec<usize>> {
    let refused = |message: &str| Err(SqlError::new(Condition::SyntaxError, message));
    if columns.len() < count {
        return refused("INSERT has more expressions than target columns");
    }
    if count < columns.len() && is_named {
        return refused("INSERT has more target columns than expressions");
    }
    Ok(columns[..count].to_vec())
}

/// Builds a plan of one row without columns.
pub(super) fn one_row() -> LogicalPlan {
    LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: true, schema: Arc::new(DFSchema::empty()) })
}
