//! Conversion between names and OIDs for the `reg…` types.

use catalog::CatalogState;
use functions::catalog_entry;
use types::{Condition, Oid, SqlError, SqlResult, SqlType};

use super::function_declaration::{FunctionDeclaration, function};
use crate::format_type;
use crate::pg_catalog::access_methods_and_operators::{OPERATORS, OperatorEntry};
use crate::pg_catalog::{SCHEMA, routine_by_oid, routines_named};
use crate::relation_lookup::{parse_name, resolve_relation};
use crate::row_source::{self, VisibleRelations};
use crate::sql_text::{quote_ident, relation_name};

pub(super) const FUNCTIONS: &[FunctionDeclaration] = &[
    function("to_regclass", "convert classname to regclass", 1..=1, "regclass", |call| {
        Ok(resolve_relation(call.relations(), call.text(0)).ok().map(|relation| relation.oid).into())
    })
    .in_catalog(&[catalog_entry(3495, "text", "regclass").stable()]),
    function("to_regtype", "convert type name to regtype", 1..=1, "regtype", |call| {
        Ok(resolve_type(call.text(0)).ok().into())
    })
    .in_catalog(&[catalog_entry(3493, "text", "regtype").stable()]),
    function("to_regproc", "convert proname to regproc", 1..=1, "regproc", |call| {
        Ok(resolve_procedure(call.text(0)).ok().into())
    })
    .in_catalog(&[catalog_entry(3494, "text", "regproc").stable()]),
    function("to_regprocedure", "convert proname to regprocedure", 1..=1, "regprocedure", |call| {
        Ok(resolve_signature(call.text(0)).ok().into())
    })
    .in_catalog(&[catalog_entry(3479, "text", "regprocedure").stable()]),
    function("to_regoperator", "convert operator name to regoperator", 1..=1, "regoperator", |call| {
        Ok(resolve_operator(call.text(0)).ok().into())
    })
    .in_catalog(&[catalog_entry(3476, "text", "regoperator").stable()]),
    function("to_regnamespace", "convert namespace name to regnamespace", 1..=1, "regnamespace", |call| {
        Ok(resolve_schema(call.state(), call.text(0)).ok().into())
    })
    .in_catalog(&[catalog_entry(4086, "text", "regnamespace").stable()]),
    function("to_regrole", "convert role name to regrole", 1..=1, "regrole", |call| {
        Ok(resolve_role(call.state(), call.text(0)).ok().into())
    })
    .in_catalog(&[catalog_entry(4093, "text", "regrole").stable()]),
    function("pg_get_userbyid", "role name by OID", 1..=1, "name", |call| {
        Ok(row_source::role_name(call.state(), call.oid(0)?).into())
    })
    .in_catalog(&[catalog_entry(1642, "oid", "name").stable()]),
];

/// Returns the OID of the object that a text names, for `sql_type`, one of the `reg…` types; digits are the OID itself.
pub(crate) fn parse_object_name(sql_type: &SqlType, text: &str, relations: VisibleRelations<'_>) -> SqlResult<u32> {
    if text == "-" && *sql_type != SqlType::Regoperator {
        return Ok(0);
    }
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return types::text::parse_oid(text);
    }
    let state = relations.state();
    let oid = match sql_type {
        SqlType::Regclass => resolve_relation(relations, text)?.oid,
        SqlType::Regtype => resolve_type(text)?,
        SqlType::Regproc => resolve_procedure(text)?,
        SqlType::Regprocedure => resolve_signature(text)?,
        SqlType::Regoperator => resolve_operator(text)?,
        SqlType::Regnamespace => resolve_schema(state, text)?,
        SqlType::Regrole => resolve_role(state, text)?,
        other => {
            return Err(SqlError::internal(format!(
                "parse_object_name was called for the type {other}, which is not a reg… type"
            )));
        }
    };
    Ok(oid.0)
}

/// Returns the text form of a value of a `reg…` type: the object's name, `-` for OID 0, and the number of an unknown
/// object.
pub(crate) fn display_name(sql_type: &SqlType, oid: u32, relations: VisibleRelations<'_>) -> String {
    let state = relations.state();
    let name = match sql_type {
        SqlType::Regclass => relations.find_by_oid(Oid(oid)).map(|relation| relation_name(relations, &relation)),
        SqlType::Regtype => format_type::format_type(oid, -1),
        SqlType::Regproc => procedure_name(Oid(oid)),
        SqlType::Regprocedure => signature_name(Oid(oid)),
        SqlType::Regoperator => operator_name(Oid(oid)),
        SqlType::Regnamespace => state.schema(Oid(oid)).map(|schema| quote_ident(&schema.name)),
        SqlType::Regrole => state.role(Oid(oid)).map(|role| quote_ident(&role.name)),
        _ => None,
    };
    match name {
        Some(name) => name,
        // Only regoperatorout prints 0 instead of a dash.
        None if oid == 0 && *sql_type != SqlType::Regoperator => "-".to_owned(),
        None => oid.to_string(),
    }
}

fn resolve_type(text: &str) -> SqlResult<Oid> {
    format_type::type_oid(text)
        .map(Oid)
        .ok_or_else(|| SqlError::new(Condition::UndefinedObject, format!("type \"{text}\" does not exist")))
}

fn resolve_procedure(text: &str) -> SqlResult<Oid> {
    let parts = parse_name(text)?;
    let name = parts.last().map_or("", String::as_str);
    let mut found = routines_named(name);
    let missing = || SqlError::new(Condition::UndefinedFunction, format!("function \"{text}\" does not exist"));
    let routine = found.next().ok_or_else(missing)?;
    match found.next() {
        None => Ok(routine.oid),
        Some(_) => Err(SqlError::new(Condition::AmbiguousFunction, format!("more than one function named \"{text}\""))),
    }
}

fn procedure_name(oid: Oid) -> Option<String> {
    let routine = routine_by_oid(oid)?;
    let name = quote_ident(routine.name);
    // A name that several functions share identifies none of them.
    let is_only = routines_named(routine.name).nth(1).is_none();
    Some(if is_only { name } else { format!("{SCHEMA}.{name}") })
}

/// Finds the function of a signature `name(type, …)`.
fn resolve_signature(text: &str) -> SqlResult<Oid> {
    let (name, arguments) = split_signature(text)?;
    let parts = parse_name(name)?;
    let name = match parts.as_slice() {
        [name] => name,
        [schema, name] if schema == SCHEMA => name,
        _ => "",
    };
    routines_named(name)
        .find(|routine| routine.arguments == arguments)
        .map(|routine| routine.oid)
        .ok_or_else(|| SqlError::new(Condition::UndefinedFunction, format!("function \"{text}\" does not exist")))
}

fn signature_name(oid: Oid) -> Option<String> {
    let routine = routine_by_oid(oid)?;
    let arguments: Vec<String> =
        routine.arguments.iter().filter_map(|oid| format_type::format_type(*oid, -1)).collect();
    Some(format!("{}({})", quote_ident(routine.name), arguments.join(",")))
}

/// Finds the operator of a signature `=(type, type)`; Kiln lists only operators between two values of one type.
fn resolve_operator(text: &str) -> SqlResult<Oid> {
    let (name, arguments) = split_signature(text)?;
    let name = name.trim();
    let name = name.strip_prefix("pg_catalog.").unwrap_or(name);
    let [left, right] = arguments.as_slice() else {
        let error = if arguments.len() < 2 {
            SqlError::new(Condition::UndefinedParameter, "missing argument")
                .with_hint("Use NONE to denote the missing argument of a unary operator.")
        } else {
            SqlError::new(Condition::TooManyArguments, "too many arguments")
                .with_hint("Provide two argument types for operator.")
        };
        return Err(error);
    };
    let matches =
        |operator: &&OperatorEntry| operator.name == name && operator.operand == *left && operator.operand == *right;
    OPERATORS
        .iter()
        .find(matches)
        .map(|operator| operator.oid)
        .ok_or_else(|| SqlError::new(Condition::UndefinedFunction, format!("operator does not exist: {text}")))
}

fn operator_name(oid: Oid) -> Option<String> {
    let operator = OPERATORS.iter().find(|operator| operator.oid == oid)?;
    let operand = format_type::format_type(operator.operand, -1)?;
    Some(format!("{}({operand},{operand})", operator.name))
}

/// Splits a signature into the name and the OIDs of the types in parentheses.
fn split_signature(text: &str) -> SqlResult<(&str, Vec<u32>)> {
    let invalid =
        |what: &str| SqlError::new(Condition::InvalidTextRepresentation, format!("expected a {what} parenthesis"));
    let (name, rest) = text.split_once('(').ok_or_else(|| invalid("left"))?;
    let list = rest.trim_end().strip_suffix(')').ok_or_else(|| invalid("right"))?;
    let arguments = list.split(',').map(str::trim).filter(|argument| !argument.is_empty());
    let arguments = arguments.map(|argument| resolve_type(argument).map(|oid| oid.0)).collect::<SqlResult<Vec<_>>>()?;
    Ok((name, arguments))
}

fn resolve_schema(state: &CatalogState, text: &str) -> SqlResult<Oid> {
    let parts = parse_name(text)?;
    let found = state.schema_by_name(parts.first().map_or("", String::as_str));
    found
        .map(|schema| schema.oid)
        .ok_or_else(|| SqlError::new(Condition::UndefinedSchema, format!("schema \"{text}\" does not exist")))
}

fn resolve_role(state: &CatalogState, text: &str) -> SqlResult<Oid> {
    let parts = parse_name(text)?;
    let found = state.role_by_name(parts.first().map_or("", String::as_str));
    found
        .map(|role| role.oid)
        .ok_or_else(|| SqlError::new(Condition::UndefinedObject, format!("role \"{text}\" does not exist")))
}
