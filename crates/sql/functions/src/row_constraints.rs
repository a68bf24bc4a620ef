//! NOT NULL and CHECK constraints, tested for every row that is written to a table.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, FieldRef};
use catalog::{ConstraintKind, Table};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use session_context::EvaluationContext;
use types::{Condition, SqlError, SqlType};

use super::cast::TextWriter;
use super::external;

/// Limit on the bytes of a value that an error message shows.
const SHOWN_BYTES_MAX: usize = 64;

/// Function that tests the constraints of a table. Its arguments are all columns of a row and the results of the
/// CHECKs, sorted by name; it returns the first column, or the error of the first row that violates a constraint.
#[derive(Debug)]
pub struct ConstraintCheck {
    table: Arc<Table>,
    schema: String,
    session: Arc<EvaluationContext>,
    signature: Signature,
}

impl ConstraintCheck {
    /// Creates the function for `table` in the schema `schema`; `None` if the table has no constraints.
    pub fn udf(table: &Arc<Table>, schema: &str, session: &Arc<EvaluationContext>) -> Option<Arc<ScalarUDF>> {
        if table.columns.iter().all(|column| !column.not_null) && check_constraints(table).is_empty() {
            return None;
        }
        Some(Arc::new(ScalarUDF::new_from_impl(Self {
            table: Arc::clone(table),
            schema: schema.to_owned(),
            session: Arc::clone(session),
            // Volatile, so that constraints are tested when rows are written, not while the statement is planned.
            signature: Signature::any(table.columns.len() + check_constraints(table).len(), Volatility::Volatile),
        })))
    }

    /// Returns the positions of the NOT NULL columns; `None` if there are CHECKs.
    pub(crate) fn not_null_columns(&self) -> Option<Vec<usize>> {
        let columns = self.table.columns.iter().enumerate();
        let required = columns.filter(|(_, column)| column.not_null).map(|(position, _)| position);
        check_constraints(&self.table).is_empty().then(|| required.collect())
    }

    /// Returns the error of the first row that violates a constraint.
    fn find_violation(&self, columns: &[ArrayRef], checks_hold: &[ArrayRef]) -> Option<SqlError> {
        let nulls = self.table.columns.iter().zip(columns).filter_map(|(column, values)| {
            let row = column.not_null.then(|| first_null(values)).flatten()?;
            Some((row, Violation::NotNull(&column.name)))
        });
        let falses = check_constraints(&self.table).into_iter().zip(checks_hold).filter_map(|((name, _), holds)| {
            let row = holds.as_boolean().iter().position(|holds| holds == Some(false))?;
            Some((row, Violation::Check(name)))
        });
        // For several violations of one row, the first is reported: NOT NULL before CHECK.
        let (row, broken) = nulls.chain(falses).min_by_key(|(row, _)| *row)?;
        let table = &self.table.name;
        let error = match broken {
            Violation::NotNull(column) => {
                let message =
                    format!("null value in column \"{column}\" of relation \"{table}\" violates not-null constraint");
                SqlError::new(Condition::NotNullViolation, message).with_column(column)
            }
            Violation::Check(name) => {
                let message = format!("new row for relation \"{table}\" violates check constraint \"{name}\"");
                SqlError::new(Condition::CheckViolation, message).with_constraint(name)
            }
        };
        let detail = format!("Failing row contains ({}).", self.format_row(columns, row));
        Some(error.with_detail(detail).with_table(&self.schema, table))
    }

    fn format_row(&self, columns: &[ArrayRef], row: usize) -> String {
        let values = self.table.columns.iter().zip(columns).map(|(column, values)| {
            let mut text = String::new();
            write_output(values, &column.sql_type, row, &self.session, &mut text);
            if SHOWN_BYTES_MAX < text.len() {
                text.truncate(text.floor_char_boundary(SHOWN_BYTES_MAX));
                text.push_str("...");
            }
            text
        });
        values.collect::<Vec<_>>().join(", ")
    }
}

/// Returns the first argument of a constraint test without CHECKs, which is also its result; `None` for all other
/// expressions.
#[must_use]
pub fn checked_value(expr: &Expr) -> Option<&Expr> {
    let Expr::ScalarFunction(call) = expr else { return None };
    let constrained = call.func.inner().downcast_ref::<ConstraintCheck>()?;
    call.args.first().filter(|_| check_constraints(&constrained.table).is_empty())
}

/// Returns the CHECKs of a table in evaluation order: names and SQL texts.
pub fn check_constraints(table: &Table) -> Vec<(&str, &str)> {
    let mut checks: Vec<(&str, &str)> = table
        .constraints
        .iter()
        .filter_map(|constraint| match &constraint.kind {
            ConstraintKind::Check { expression, .. } => Some((constraint.name.as_str(), expression.as_str())),
            _ => None,
        })
        .collect();
    checks.sort_unstable();
    checks
}

/// Constraint that a row violates.
enum Violation<'a> {
    NotNull(&'a str),
    Check(&'a str),
}

fn first_null(values: &ArrayRef) -> Option<usize> {
    let nulls = values.nulls().filter(|nulls| nulls.null_count() != 0)?;
    (0..nulls.len()).find(|row| nulls.is_null(*row))
}

/// Writes a value in the client's text format, and `null` for NULL.
fn write_output(values: &ArrayRef, sql_type: &SqlType, row: usize, session: &EvaluationContext, out: &mut String) {
    if values.is_null(row) {
        out.push_str("null");
        return;
    }
    match sql_type {
        SqlType::Bool => out.push(if values.as_boolean().value(row) { 't' } else { 'f' }),
        SqlType::Char(_) => out.push_str(values.as_string_view().value(row)),
        _ => {
            let _ = TextWriter::new(values, sql_type, session.zone).with_names(session.names()).write(row, out);
        }
    }
}

impl PartialEq for ConstraintCheck {
    fn eq(&self, other: &Self) -> bool {
        self.table == other.table && self.session == other.session
    }
}

impl Eq for ConstraintCheck {}

impl Hash for ConstraintCheck {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.table.oid.hash(state);
    }
}

impl ScalarUDFImpl for ConstraintCheck {
    fn name(&self) -> &str {
        "constrained"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(arguments[0].clone())
    }

    fn return_field_from_args(&self, _args: ReturnFieldArgs) -> Result<FieldRef> {
        let first = &self.table.columns[0];
        Ok(Arc::new(first.sql_type.arrow_field(&first.name, !first.not_null)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        // Constant arguments have a value even in an empty batch.
        if args.number_rows == 0 {
            return Ok(args.args.into_iter().next().expect("a constrained table has a column"));
        }
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let (columns, checks_hold) = arrays.split_at(self.table.columns.len());
        match self.find_violation(columns, checks_hold) {
            Some(error) => Err(external(error)),
            None => Ok(args.args.into_iter().next().expect("a constrained table has a column")),
        }
    }
}
