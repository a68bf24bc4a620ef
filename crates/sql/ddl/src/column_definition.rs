//! Column definitions of CREATE TABLE and ALTER TABLE ADD COLUMN.

use binder::Binder;
use binder::write::is_assignable;
use catalog::{Column, Table};
use datafusion::sql::sqlparser::ast::{Expr, ObjectName, UnaryOperator, Value};
use functions::type_rules::plain_type_name;
use plan::{ROW_ID, ROW_POSITION};
use syntax::statement::{ColumnConstraintKind, ColumnDefinition, IdentityDefinition};
use syntax::to_sql_text;
use system_catalog::resolve_default;
use types::{ColumnId, Condition, Oid, SqlError, SqlResult, SqlType};

use super::column_sequence::{self, NewSequence, serial_type};
use super::name_resolution;

/// Reserved column names: PostgreSQL's system columns, and Kiln's, which identify a row.
const SYSTEM_COLUMNS: [&str; 8] = ["tableoid", "xmin", "cmin", "xmax", "cmax", "ctid", ROW_ID, ROW_POSITION];

/// Builds a column from its definition, without an id and without table constraints, and the sequence that it needs.
///
/// # Errors
/// `42601` for contradictory clauses, `0A000` for types that tables cannot have, and errors of the type or the DEFAULT.
pub(super) fn build_column(binder: &Binder<'_>, table: &str, definition: &ColumnDefinition) -> SqlResult<NewColumn> {
    let name = &definition.name.value;
    let serial = serial_type(&definition.data_type);
    let sql_type = serial.clone().map_or_else(|| binder.sql_type(&definition.data_type), Ok)?;
    refuse_system_type(name, &sql_type)?;
    check_collation(definition.collation.as_ref(), &sql_type)?;
    let mut not_null: Option<bool> = serial.is_some().then_some(true);
    let mut default: Option<&Expr> = None;
    let mut identity: Option<&IdentityDefinition> = None;
    for constraint in &definition.constraints {
        let nullable = match &constraint.kind {
            ColumnConstraintKind::Null => true,
            ColumnConstraintKind::NotNull => false,
            ColumnConstraintKind::Default(expression) => {
                if default.replace(expression).is_some() || serial.is_some() {
                    let message =
                        format!("multiple default values specified for column \"{name}\" of table \"{table}\"");
                    return Err(SqlError::new(Condition::SyntaxError, message));
                }
                continue;
            }
            ColumnConstraintKind::Identity(definition) => {
                if identity.replace(definition).is_some() {
                    let message =
                        format!("multiple identity specifications for column \"{name}\" of table \"{table}\"");
                    return Err(SqlError::new(Condition::SyntaxError, message));
                }
                false
            }
            _ => continue,
        };
        if not_null.is_some_and(|known| known == nullable) {
            let message = format!("conflicting NULL/NOT NULL declarations for column \"{name}\" of table \"{table}\"");
            return Err(SqlError::new(Condition::SyntaxError, message));
        }
        not_null = Some(!nullable);
    }
    if identity.is_some() && (default.is_some() || serial.is_some()) {
        let message = format!("both default and identity specified for column \"{name}\" of table \"{table}\"");
        return Err(SqlError::new(Condition::SyntaxError, message));
    }
    let default = default.map(|expression| default_text(binder, name, expression, &sql_type)).transpose()?.flatten();
    let (default, sequences) = default.unzip();
    let mut column = Column {
        id: ColumnId(0),
        name: name.clone(),
        sql_type,
        not_null: not_null.unwrap_or(false),
        default,
        missing: None,
        comment: None,
        identity: None,
        sequences: sequences.unwrap_or_default(),
    };
    let sequence = match identity {
        Some(identity) => Some(column_sequence::make_identity(binder.context(), &mut column, identity)?),
        None if serial.is_some() => Some(column_sequence::make_serial(binder.context(), &mut column)?),
        None => None,
    };
    Ok(NewColumn { column, sequence })
}

/// Column from a definition, with the sequence to create for it.
pub(super) struct NewColumn {
    pub(super) column: Column,
    pub(super) sequence: Option<NewSequence>,
}

/// Returns the text of a DEFAULT for the catalog, as PostgreSQL displays it except for references to sequences, and
/// these sequences; `None` for NULL, which is the same as no default.
///
/// # Errors
/// `42804` if the type does not fit, `0A000` for columns and subqueries.
pub(super) fn default_text(
    binder: &Binder<'_>,
    column: &str,
    default: &Expr,
    sql_type: &SqlType,
) -> SqlResult<Option<(String, Vec<Oid>)>> {
    let default_type = binder.default_type(default)?;
    if !is_assignable(&default_type, sql_type) {
        let message = format!(
            "column \"{column}\" is of type {} but default expression is of type {}",
            plain_type_name(sql_type),
            plain_type_name(&default_type)
        );
        return Err(SqlError::new(Condition::DatatypeMismatch, message)
            .with_hint("You will need to rewrite or cast the expression."));
    }
    binder.bind_default_expression(default, sql_type)?;
    let (default, sequences) = resolve_default(binder.context(), default)?;
    let text = match &default {
        Expr::Value(value) => match &value.value {
            Value::Null => None,
            Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => {
                Some(format!("{}::{}", system_catalog::quote_literal(text), name_without_modifier(sql_type)))
            }
            other => Some(other.to_string()),
        },
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match expr.as_ref() {
            Expr::Value(value) if matches!(value.value, Value::Number(..)) => {
                let number = format!("-{}", value.value);
                let number_type = number_type(&number);
                Some(format!("'{number}'::{number_type}"))
            }
            _ => Some(to_sql_text(&default)),
        },
        other => Some(to_sql_text(other)),
    };
    Ok(text.map(|text| (text, sequences)))
}

/// Returns the type of a numeric constant.
fn number_type(number: &str) -> SqlType {
    if number.parse::<i32>().is_ok() {
        SqlType::Int4
    } else if number.parse::<i64>().is_ok() {
        SqlType::Int8
    } else {
        SqlType::BARE_NUMERIC
    }
}

/// Returns the type's name without its modifier.
fn name_without_modifier(sql_type: &SqlType) -> String {
    match sql_type {
        SqlType::Varchar(_) => "character varying".to_owned(),
        SqlType::Char(_) => "bpchar".to_owned(),
        SqlType::Numeric { .. } => "numeric".to_owned(),
        SqlType::Array(element) => format!("{}[]", name_without_modifier(element)),
        other => other.to_string(),
    }
}

/// Refuses the types of PostgreSQL's own catalog (`0A000`).
#[deny(clippy::wildcard_enum_match_arm, reason = "a new type must not compile until columns may have it or not")]
pub(super) fn refuse_system_type(column: &str, sql_type: &SqlType) -> SqlResult<()> {
    let innermost = sql_type.element().unwrap_or_else(|| sql_type.clone());
    match innermost {
        SqlType::Oid
        | SqlType::Name
        | SqlType::InternalChar
        | SqlType::Regclass
        | SqlType::Regtype
        | SqlType::Regproc
        | SqlType::Regnamespace
        | SqlType::Regrole
        | SqlType::Regprocedure
        | SqlType::Regoperator
        | SqlType::Int2Vector
        | SqlType::OidVector => Err(SqlError::unsupported(format!("column \"{column}\" of type {sql_type}"))),
        SqlType::Unknown => Err(SqlError::new(
            Condition::InvalidTableDefinition,
            format!("column \"{column}\" has pseudo-type unknown"),
        )),
        SqlType::Bool
        | SqlType::Int2
        | SqlType::Int4
        | SqlType::Int8
        | SqlType::Numeric { .. }
        | SqlType::Float4
        | SqlType::Float8
        | SqlType::Text
        | SqlType::Varchar(_)
        | SqlType::Char(_)
        | SqlType::Date
        | SqlType::Time
        | SqlType::Timestamp
        | SqlType::TimestampTz
        | SqlType::Interval
        | SqlType::Bytea
        | SqlType::Uuid
        | SqlType::Json
        | SqlType::Jsonb
        | SqlType::Array(_) => Ok(()),
    }
}

/// Accepts the collations that sort text by its bytes, as Kiln does, and refuses others.
pub(super) fn check_collation(collation: Option<&ObjectName>, sql_type: &SqlType) -> SqlResult<()> {
    let Some(collation) = collation else { return Ok(()) };
    if !sql_type.element().unwrap_or_else(|| sql_type.clone()).is_textual() {
        let message = format!("collations are not supported by type {sql_type}");
        return Err(SqlError::new(Condition::DatatypeMismatch, message));
    }
    let plain = name_resolution::join_name(collation);
    match plain.strip_prefix("pg_catalog.").unwrap_or(&plain) {
        "default" | "C" | "POSIX" | "ucs_basic" => Ok(()),
        other => Err(SqlError::unsupported(format!("the collation \"{other}\""))),
    }
}

/// Refuses the names of system columns (`42701`).
pub(super) fn refuse_system_name(name: &str) -> SqlResult<()> {
    if !SYSTEM_COLUMNS.contains(&name) {
        return Ok(());
    }
    let message = format!("column name \"{name}\" conflicts with a system column name");
    Err(SqlError::new(Condition::DuplicateColumn, message))
}

/// Refuses more columns than a table can have (`54011`).
pub(super) fn refuse_too_many(count: usize) -> SqlResult<()> {
    if count <= Table::COLUMN_COUNT_MAX {
        return Ok(());
    }
    let message = format!("tables can have at most {} columns", Table::COLUMN_COUNT_MAX);
    Err(SqlError::new(Condition::TooManyColumns, message))
}
