//! Each catalog entry has an overload that takes its arguments, gives its result and has its strictness.

use std::sync::Arc;

use arrow::array::{Array, new_null_array};
use arrow::datatypes::FieldRef;
use datafusion::common::ScalarValue;
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs};
use session_context::EvaluationContext;
use types::text::DateOrder;
use types::{SessionZone, SqlType};

use crate::SCALAR_TOPICS;
use crate::cast::is_text;
use crate::catalog_entry::CatalogEntry;
use crate::definition::{Body, Definition, Overload, ParameterType};
use crate::scalar_udf::ResolvedFunction;

/// Type of an argument in the catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ArgumentType {
    Type(SqlType),
    /// A pseudo-type of any value, such as `anyelement`.
    Any,
    /// A pseudo-type of any array.
    AnyArray,
}

impl ArgumentType {
    fn from_name(name: &str) -> Self {
        let scalar = |name: &str| SqlType::scalars().find(|sql_type| sql_type.typname() == name);
        match name {
            "anyarray" | "anycompatiblearray" => ArgumentType::AnyArray,
            "any" | "anyelement" | "anynonarray" | "anycompatible" => ArgumentType::Any,
            _ => {
                let element = name.strip_prefix('_').and_then(scalar).map(|element| SqlType::Array(Box::new(element)));
                ArgumentType::Type(element.or_else(|| scalar(name)).unwrap_or_else(|| panic!("no type {name}")))
            }
        }
    }

    /// Returns whether a parameter takes arguments of this type. One text type stands for all.
    fn reaches(&self, parameter: ParameterType) -> bool {
        match (parameter, self) {
            (ParameterType::Any, ArgumentType::Type(_) | ArgumentType::Any)
            | (ParameterType::AnyArray, ArgumentType::AnyArray) => true,
            (ParameterType::Numeric, ArgumentType::Type(sql_type)) => matches!(sql_type, SqlType::Numeric { .. }),
            (ParameterType::Text, ArgumentType::Type(sql_type)) => is_text(sql_type),
            (declared, ArgumentType::Type(sql_type)) => declared.sample().as_ref() == Some(sql_type),
            (_, ArgumentType::Any | ArgumentType::AnyArray) => false,
        }
    }

    /// Returns whether a parameter takes the elements of arrays of this type.
    fn elements_reach(&self, parameter: ParameterType) -> bool {
        let ArgumentType::Type(sql_type) = self else { return false };
        sql_type.element().is_some_and(|element| ArgumentType::Type(element).reaches(parameter))
    }
}

fn arguments(entry: &CatalogEntry) -> Vec<ArgumentType> {
    entry.arguments.split(',').filter(|name| !name.is_empty()).map(ArgumentType::from_name).collect()
}

/// Returns whether an overload takes exactly these arguments. The last parameter of a variadic one may be an array, or be
/// absent.
fn takes(overload: &Overload, arguments: &[ArgumentType]) -> bool {
    let parameters = overload.parameters;
    let is_count_right =
        arguments.len() == parameters.len() || (overload.is_variadic && arguments.len() + 1 == parameters.len());
    is_count_right
        && parameters.iter().zip(arguments).enumerate().all(|(at, (parameter, argument))| {
            let repeats = overload.is_variadic && at + 1 == parameters.len();
            argument.reaches(*parameter) || (repeats && argument.elements_reach(*parameter))
        })
}

fn entries() -> impl Iterator<Item = (&'static Definition, &'static CatalogEntry)> {
    let definitions = SCALAR_TOPICS.iter().flat_map(|(_, definitions)| *definitions);
    definitions.flat_map(|definition| definition.catalog.iter().map(move |entry| (definition, entry)))
}

#[test]
fn every_entry_has_an_overload() {
    let missing: Vec<String> = entries()
        .filter(|(definition, entry)| {
            let arguments = arguments(entry);
            !definition.overloads.iter().any(|overload| takes(overload, &arguments))
        })
        .map(|(definition, entry)| format!("{} {}({})", entry.oid, definition.name, entry.arguments))
        .collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

/// Calls an overload with one row of arguments, of which the one at `null_at` is NULL and the others are empty or zero.
/// Returns whether the result is NULL; `None` if the call fails.
fn is_null_for(definition: &'static Definition, overload: usize, types: &[SqlType], null_at: usize) -> Option<bool> {
    let zone = SessionZone::Fixed(0);
    let session = Arc::new(EvaluationContext::without_context(zone, DateOrder::MonthDayYear, 0, 0));
    let function = ResolvedFunction::udf(definition, overload, types.to_vec(), &session).expect("it takes these types");
    let function = function.inner();
    let field = |sql_type: &SqlType| Arc::new(sql_type.arrow_field("argument", true));
    let arg_fields: Vec<FieldRef> = types.iter().map(field).collect();
    let scalars: Vec<Option<&ScalarValue>> = types.iter().map(|_| None).collect();
    let return_field = function
        .return_field_from_args(ReturnFieldArgs { arg_fields: &arg_fields, scalar_arguments: &scalars })
        .expect("the call has a type");
    let value = |(at, field): (usize, &FieldRef)| match at == null_at {
        true => new_null_array(field.data_type(), 1),
        false => ScalarValue::new_default(field.data_type()).and_then(|it| it.to_array()).expect("it has a default"),
    };
    let args = arg_fields.iter().enumerate().map(value).map(ColumnarValue::Array).collect();
    let config_options = Arc::new(ConfigOptions::default());
    let call = ScalarFunctionArgs { args, arg_fields, number_rows: 1, return_field, config_options };
    Some(function.invoke_with_args(call).ok()?.to_array(1).expect("it is an array").is_null(0))
}

#[test]
fn strict_functions_give_null_for_each_null() {
    let mut wrong = Vec::new();
    for (definition, entry) in entries() {
        let arguments = arguments(entry);
        let matches = |overload: &Overload| takes(overload, &arguments);
        let overload = definition.overloads.iter().position(matches).expect("another test finds it");
        let Some(types) = definition.sample_types(overload) else { continue };
        if types.is_empty() || !matches!(definition.overloads[overload].body, Body::Rows(_)) {
            continue;
        }
        let nulls: Vec<Option<bool>> =
            (0..types.len()).map(|at| is_null_for(definition, overload, &types, at)).collect();
        let is_strict = nulls.iter().all(|is_null| *is_null == Some(true));
        if is_strict != entry.is_strict {
            wrong.push(format!("{}({}): {nulls:?}", definition.name, entry.arguments));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_name_is_defined_once() {
    let mut names: Vec<&str> =
        SCALAR_TOPICS.iter().flat_map(|(_, definitions)| *definitions).map(|definition| definition.name).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "the names are keys of a map");
}
