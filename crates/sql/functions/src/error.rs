//! Translates DataFusion's errors to PostgreSQL's, and passes SQL errors through DataFusion.

use std::io;

use datafusion::common::{Column, DataFusionError, Diagnostic, SchemaError};
use datafusion::sql::sqlparser::parser::ParserError;
use types::stack_limit::too_complex_error;
use types::{Condition, SqlError};

#[cfg(test)]
mod tests;

/// Wraps a `SqlError` to pass it through DataFusion; [`from_datafusion`] unwraps it.
#[must_use]
pub fn to_datafusion(error: SqlError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// Returns the `SqlError` within a DataFusion error, or translates it to the nearest SQLSTATE.
#[must_use]
pub fn from_datafusion(error: DataFusionError) -> SqlError {
    from_datafusion_with_position(error).0
}

/// Translates an error; also returns the line and column in the SQL text (both from 1), if it has a position.
pub fn from_datafusion_with_position(error: DataFusionError) -> (SqlError, Option<(u64, u64)>) {
    match error {
        DataFusionError::External(inner) => match inner.downcast::<SqlError>() {
            Ok(ours) => (*ours, None),
            Err(other) => match other.downcast::<DataFusionError>() {
                Ok(nested) => from_datafusion_with_position(*nested),
                Err(other) => (SqlError::internal(other.to_string()), None),
            },
        },
        DataFusionError::Diagnostic(diagnostic, inner) => {
            let (error, inner_place) = from_datafusion_with_position(*inner);
            (error, inner_place.or_else(|| diagnostic_position(&diagnostic)))
        }
        DataFusionError::Context(_, inner) => from_datafusion_with_position(*inner),
        DataFusionError::Collection(errors) => errors.into_iter().next().map_or_else(
            || (SqlError::internal("DataFusion reported a failure with an empty list of errors"), None),
            from_datafusion_with_position,
        ),
        DataFusionError::Shared(shared) => match std::sync::Arc::try_unwrap(shared) {
            Ok(inner) => from_datafusion_with_position(inner),
            Err(shared) => (shared_error(&shared), None),
        },
        DataFusionError::SchemaError(error, _) => {
            let place = match error.as_ref() {
                SchemaError::AmbiguousReference { field } | SchemaError::FieldNotFound { field, .. } => {
                    field.spans().first().map(|span| (span.start.line, span.start.column))
                }
                _ => None,
            };
            (schema_error(&error), place)
        }
        other => (translate_single_error(&other), None),
    }
}

fn diagnostic_position(diagnostic: &Diagnostic) -> Option<(u64, u64)> {
    diagnostic.span.map(|span| (span.start.line, span.start.column))
}

/// Translates an error that is shared and so cannot be moved out.
fn shared_error(error: &DataFusionError) -> SqlError {
    match error {
        DataFusionError::External(inner) => match inner.downcast_ref::<SqlError>() {
            Some(ours) => ours.clone(),
            None => match inner.downcast_ref::<DataFusionError>() {
                Some(nested) => shared_error(nested),
                None => SqlError::internal(inner.to_string()),
            },
        },
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => shared_error(inner),
        DataFusionError::Shared(inner) => shared_error(inner),
        DataFusionError::Collection(errors) => errors.first().map_or_else(
            || SqlError::internal("DataFusion reported a failure with an empty list of errors"),
            shared_error,
        ),
        DataFusionError::SchemaError(inner, _) => schema_error(inner),
        other => translate_single_error(other),
    }
}

fn translate_single_error(error: &DataFusionError) -> SqlError {
    match error {
        DataFusionError::ArrowError(inner, _) => arrow_error(inner),
        DataFusionError::IoError(inner) => io_error(inner),
        DataFusionError::SQL(inner, _) => match inner.as_ref() {
            ParserError::RecursionLimitExceeded => too_complex_error(),
            ParserError::ParserError(text) | ParserError::TokenizerError(text) => {
                SqlError::new(Condition::SyntaxError, text.clone())
            }
        },
        DataFusionError::NotImplemented(text) => {
            SqlError::new(Condition::FeatureNotSupported, first_line_without_prefix(text))
        }
        DataFusionError::Plan(text) | DataFusionError::Configuration(text) => plan_error(text),
        DataFusionError::Execution(text) => execution_error(text),
        DataFusionError::ResourcesExhausted(text) => {
            SqlError::new(Condition::OutOfMemory, "out of memory").with_detail(first_line_without_prefix(text))
        }
        DataFusionError::Internal(text) => internal_error(text),
        other => SqlError::internal(other.to_string()),
    }
}

fn schema_error(error: &SchemaError) -> SqlError {
    match error {
        SchemaError::AmbiguousReference { field } => {
            SqlError::new(Condition::AmbiguousColumn, format!("column reference \"{}\" is ambiguous", field.name))
        }
        SchemaError::DuplicateQualifiedField { name, .. } | SchemaError::DuplicateUnqualifiedField { name } => {
            SqlError::new(Condition::DuplicateColumn, format!("column name \"{name}\" appears more than once"))
        }
        SchemaError::FieldNotFound { field, valid_fields } => missing_column(field, valid_fields),
    }
}

/// Builds the error 42703 for a column that is not among the `valid` ones, with a similar name as the hint; 42P01 if
/// there is no relation of that name.
#[must_use]
pub fn missing_column(field: &Column, valid: &[Column]) -> SqlError {
    match &field.relation {
        Some(relation) => {
            let known = valid
                .iter()
                .any(|other| other.relation.as_ref().is_some_and(|other| other.table() == relation.table()));
            if !known {
                let message = format!("missing FROM-clause entry for table \"{}\"", relation.table());
                return SqlError::new(Condition::UndefinedTable, message);
            }
            let message = format!("column {}.{} does not exist", relation.table(), field.name);
            with_column_hint(SqlError::new(Condition::UndefinedColumn, message), field, valid)
        }
        None => {
            let message = format!("column \"{}\" does not exist", field.name);
            with_column_hint(SqlError::new(Condition::UndefinedColumn, message), field, valid)
        }
    }
}

/// Adds PostgreSQL's hint: the most similar column name, if it is similar enough.
fn with_column_hint(error: SqlError, field: &Column, valid: &[Column]) -> SqlError {
    let limit = field.name.chars().count() / 2;
    let nearest = valid
        .iter()
        .map(|other| (levenshtein_distance(&field.name, &other.name), other))
        .filter(|(distance, _)| (1..=limit.min(3)).contains(distance))
        .min_by_key(|(distance, _)| *distance);
    match nearest {
        Some((_, other)) => {
            let name = match &other.relation {
                Some(relation) => format!("{}.{}", relation.table(), other.name),
                None => other.name.clone(),
            };
            error.with_hint(format!("Perhaps you meant to reference the column \"{name}\"."))
        }
        None => error,
    }
}

/// Returns the Levenshtein distance of two names.
fn levenshtein_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

fn arrow_error(error: &arrow::error::ArrowError) -> SqlError {
    use arrow::error::ArrowError;
    match error {
        ArrowError::DivideByZero => SqlError::new(Condition::DivisionByZero, "division by zero"),
        ArrowError::ArithmeticOverflow(text) => out_of_range(text),
        ArrowError::ExternalError(inner) => match inner.downcast_ref::<SqlError>() {
            Some(ours) => ours.clone(),
            None => match inner.downcast_ref::<DataFusionError>() {
                Some(nested) => shared_error(nested),
                None => SqlError::internal(inner.to_string()),
            },
        },
        ArrowError::IoError(_, inner) => io_error(inner),
        ArrowError::CastError(text) => {
            if text.contains("overflow") || text.contains("Can't cast value") || text.contains("too large") {
                return out_of_range(text);
            }
            SqlError::new(Condition::InvalidTextRepresentation, first_line_without_prefix(text))
        }
        ArrowError::InvalidArgumentError(text) if text.contains("too large to store in a Decimal") => {
            SqlError::new(Condition::NumericValueOutOfRange, "numeric field overflow")
        }
        ArrowError::ComputeError(text) | ArrowError::InvalidArgumentError(text)
            if text.to_lowercase().contains("overflow") =>
        {
            out_of_range(text)
        }
        other => SqlError::internal(other.to_string()),
    }
}

/// Translates an error of reading or writing a spill file.
fn io_error(error: &io::Error) -> SqlError {
    if is_disk_full(error) {
        return SqlError::new(Condition::DiskFull, "no space left for temporary files")
            .with_hint("Free space on the disk of the data folder, or give queries more memory.");
    }
    SqlError::new(Condition::IoError, error.to_string())
}

fn is_disk_full(error: &io::Error) -> bool {
    if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
        return true;
    }
    match error.get_ref().and_then(|inner| inner.downcast_ref::<DataFusionError>()) {
        Some(DataFusionError::IoError(inner)) => is_disk_full(inner),
        // DataFusion's limit on the size of the spill folder has no error kind.
        _ => error.to_string().contains("disk space during the spilling process has exceeded"),
    }
}

fn out_of_range(text: &str) -> SqlError {
    SqlError::new(Condition::NumericValueOutOfRange, "value out of range").with_detail(first_line_without_prefix(text))
}

fn plan_error(text: &str) -> SqlError {
    let condition_message = |condition, message: String| SqlError::new(condition, message);
    if let Some(rest) = text.strip_prefix("Invalid function '") {
        let name = rest.split('\'').next().unwrap_or_default();
        return condition_message(Condition::UndefinedFunction, format!("function {name} does not exist")).with_hint(
            "No function matches the given name and argument types. You might need to add explicit type casts.",
        );
    }
    if let Some(rest) = text.strip_prefix("table function '") {
        let name = rest.split('\'').next().unwrap_or_default();
        return condition_message(Condition::UndefinedFunction, format!("function {name} does not exist"));
    }
    if let Some(error) = boolean_error(text) {
        return error;
    }
    if let Some(error) = misplaced_error(text) {
        return error;
    }
    if text.contains("must appear in the GROUP BY clause")
        || text.contains("must appear in the GROUP BY clause or must be part of an aggregate function")
    {
        return grouping_error(text);
    }
    if text.contains("Aggregate functions are not allowed in the WHERE clause") {
        return condition_message(Condition::GroupingError, "aggregate functions are not allowed in WHERE".to_owned());
    }
    if let Some((_, rest)) = text.split_once("for logical boolean operation ") {
        let sides: Vec<&str> = rest.split(' ').collect();
        let operator = sides.get(1).copied().unwrap_or("AND");
        let found = sides.iter().step_by(2).find(|side| **side != "Boolean");
        let found = match found.map_or("", |side| side.trim()) {
            "Int16" => "smallint",
            "Int32" | "Int64" => "integer",
            "Utf8" | "Utf8View" => "text",
            other => other,
        };
        let message = format!("argument of {operator} must be type boolean, not type {found}");
        return condition_message(Condition::DatatypeMismatch, message);
    }
    if let Some((_, rest)) = text.split_once("coercion failed with: External error: ") {
        let message = rest.split(". No function matches").next().unwrap_or(rest);
        return condition_message(Condition::UndefinedFunction, message.to_owned()).with_hint(
            "No function matches the given name and argument types. You might need to add explicit type casts.",
        );
    }
    if text.contains("to grouping function is not in grouping columns") {
        let message = "arguments to GROUPING must be grouping expressions of the associated query level";
        return condition_message(Condition::GroupingError, message.to_owned());
    }
    if text.contains("No function matches the given name and argument types") || text.contains("coerce") {
        return condition_message(Condition::UndefinedFunction, first_line_without_prefix(text)).with_hint(
            "No function or operator matches the given argument types. You might need to add explicit type casts.",
        );
    }
    if text.contains("Cannot infer common argument type") || text.contains("common type") {
        return condition_message(Condition::UndefinedFunction, operator_message(text)).with_hint(
            "No operator matches the given name and argument types. You might need to add explicit type casts.",
        );
    }
    if text.contains("require unique expression names") || text.contains("WITH query name") {
        return condition_message(Condition::DuplicateAlias, first_line_without_prefix(text));
    }
    if text.contains("must have the same number of columns") || text.contains("different number of columns") {
        return condition_message(
            Condition::SyntaxError,
            "each UNION query must have the same number of columns".to_owned(),
        );
    }
    if text.contains("only one column") || text.contains("should only return one column") {
        return condition_message(Condition::SyntaxError, "subquery must return only one column".to_owned());
    }
    if text.contains("position") && text.contains("not in select list") {
        return condition_message(Condition::InvalidColumnReference, first_line_without_prefix(text));
    }
    if text.contains("Source table contains") || text.contains("columns but only") {
        return condition_message(Condition::InvalidColumnReference, first_line_without_prefix(text));
    }
    if text.contains("not supported") || text.contains("Unsupported") || text.contains("unsupported") {
        return condition_message(Condition::FeatureNotSupported, first_line_without_prefix(text));
    }
    condition_message(Condition::SyntaxError, first_line_without_prefix(text))
}

/// Recognizes the error 42804 of a condition that is not boolean.
fn boolean_error(text: &str) -> Option<SqlError> {
    let after = |marker: &str| text.split_once(marker).map(|(_, rest)| rest);
    let (place, found) = if text.contains("create filter with non-boolean predicate") {
        ("WHERE", after("' returning ")?)
    } else if let Some(found) = after("operator 'NOT' requires a boolean expression, got ") {
        ("NOT", found)
    } else {
        ("JOIN/ON", after("oin condition must be boolean type, but got ")?)
    };
    let found = match found.trim() {
        "Int16" => "smallint",
        // Integer literals are 64 bits wide until their type is resolved.
        "Int32" | "Int64" => "integer",
        "Float32" => "real",
        "Float64" => "double precision",
        "Utf8" | "Utf8View" => "text",
        "Date32" => "date",
        other if other.starts_with("Decimal") => "numeric",
        other => other,
    };
    let message = format!("argument of {place} must be type boolean, not type {found}");
    Some(SqlError::new(Condition::DatatypeMismatch, message))
}

/// Recognizes aggregates, window functions and ORDER BY expressions in places where they are not allowed.
fn misplaced_error(text: &str) -> Option<SqlError> {
    let lower = text.to_lowercase();
    let (condition, message) = if lower.contains("aggregate function calls cannot be nested") {
        (Condition::GroupingError, "aggregate function calls cannot be nested".to_owned())
    } else if lower.contains("aggregate function calls cannot contain window function calls") {
        (Condition::GroupingError, "aggregate function calls cannot contain window function calls".to_owned())
    } else if lower.contains("for select distinct, order by expressions") {
        let message = "for SELECT DISTINCT, ORDER BY expressions must appear in select list".to_owned();
        (Condition::InvalidColumnReference, message)
    } else if lower.contains("select distinct on expressions must match") {
        let message = "SELECT DISTINCT ON expressions must match initial ORDER BY expressions".to_owned();
        (Condition::InvalidColumnReference, message)
    } else {
        let name = lower.strip_prefix("the window ")?.strip_suffix(" is not defined!")?;
        (Condition::UndefinedObject, format!("window \"{name}\" does not exist"))
    };
    Some(SqlError::new(condition, message))
}

/// Builds the error `column "t.a" must appear in the GROUP BY clause or be used in an aggregate function`.
fn grouping_error(text: &str) -> SqlError {
    let column = text.split('"').nth(1).filter(|_| text.starts_with("Column")).map(str::to_owned);
    let message = match column {
        Some(column) => {
            format!("column \"{column}\" must appear in the GROUP BY clause or be used in an aggregate function")
        }
        None => first_line_without_prefix(text),
    };
    SqlError::new(Condition::GroupingError, message)
}

fn operator_message(text: &str) -> String {
    format!("operator does not exist: {}", first_line_without_prefix(text))
}

fn execution_error(text: &str) -> SqlError {
    let lower = text.to_lowercase();
    if lower.contains("divide by zero") || lower.contains("division by zero") {
        return SqlError::new(Condition::DivisionByZero, "division by zero");
    }
    if lower.contains("overflow") {
        return out_of_range(text);
    }
    if lower.contains("more than one row") || lower.contains("more than 1 row") {
        let message = "more than one row returned by a subquery used as an expression";
        return SqlError::new(Condition::CardinalityViolation, message);
    }
    SqlError::new(Condition::InvalidParameterValue, first_line_without_prefix(text))
}

fn internal_error(text: &str) -> SqlError {
    if text.contains("Physical plan does not support logical expression")
        || text.contains("This feature is not implemented")
    {
        return SqlError::new(Condition::FeatureNotSupported, first_line_without_prefix(text));
    }
    SqlError::internal(first_line_without_prefix(text))
}

/// Returns the first line without DataFusion's prefixes and final full stop; a sentence starts in lower case.
fn first_line_without_prefix(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let line = line.strip_prefix("Error during planning: ").unwrap_or(line);
    let line = line.strip_prefix("This feature is not implemented: ").unwrap_or(line).trim_end_matches('.');
    let mut letters = line.chars();
    match (letters.next(), letters.next()) {
        (Some(first), Some(second)) if first.is_uppercase() && second.is_lowercase() => {
            first.to_lowercase().chain(line.chars().skip(1)).collect()
        }
        _ => line.to_owned(),
    }
}
