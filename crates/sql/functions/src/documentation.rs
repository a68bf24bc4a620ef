//! Documentation of functions, derived from their definitions: signatures and one line for each function.

use std::sync::Arc;

use datafusion::logical_expr::{ScalarUDF, Volatility};
use session_context::EvaluationContext;
use types::text::DateOrder;
use types::{SessionZone, SqlType};

use super::catalog_entry::CatalogEntry;
use super::definition::{Body, Definition, ParameterType};
use super::scalar_udf::ResolvedFunction;
use super::{SCALAR_DEFINITIONS, SCALAR_TOPICS, WINDOW_DEFINITIONS, aggregate};
use crate::type_rules::plain_type_name;

/// Documentation of one function, operator, aggregate or window function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionDocumentation {
    /// Heading under which it is listed.
    pub topic: &'static str,
    pub name: &'static str,
    /// Overloads; empty for a function of Kiln's own that takes arguments of any type.
    pub signatures: Vec<DocumentedSignature>,
    /// `immutable`, `stable` or `volatile`.
    pub volatility: &'static str,
    pub description: &'static str,
}

/// Overload as it is written in a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentedSignature {
    /// `name(argument types)`, or the operator between its argument types.
    pub call: String,
    pub result: String,
}

/// Returns the documentation of all functions that a statement can call, by topic.
#[must_use]
pub fn documentation() -> Vec<FunctionDocumentation> {
    let mut all = Vec::new();
    for (topic, definitions) in SCALAR_TOPICS {
        all.extend(definitions.iter().map(|definition| FunctionDocumentation {
            topic,
            name: definition.name,
            signatures: signatures(definition),
            volatility: volatility_name(definition.volatility),
            description: definition.description,
        }));
    }
    all.extend(aggregate::definitions().map(|it| {
        let takes_order = aggregate::by_name(it.name).is_some_and(|it| it.inner().supports_within_group_clause());
        let signature = if takes_order { ordered_set_signature } else { catalog_signature };
        documented_by_catalog("Aggregates", it.name, it.description, it.catalog, signature)
    }));
    all.extend(
        WINDOW_DEFINITIONS.iter().map(|it| {
            documented_by_catalog("Window functions", it.name, it.description, it.catalog, catalog_signature)
        }),
    );
    all
}

/// Documents a function whose overloads are those of PostgreSQL's catalog.
fn documented_by_catalog(
    topic: &'static str,
    name: &'static str,
    description: &'static str,
    catalog: &'static [CatalogEntry],
    signature: fn(&str, &CatalogEntry) -> DocumentedSignature,
) -> FunctionDocumentation {
    let volatility = catalog.first().map_or(Volatility::Immutable, |entry| entry.volatility);
    let signatures = catalog.iter().map(|entry| signature(name, entry)).collect();
    let volatility = volatility_name(volatility);
    FunctionDocumentation { topic, name, signatures, volatility, description }
}

/// Writes the signature of a catalog entry.
#[must_use]
pub fn catalog_signature(name: &str, entry: &CatalogEntry) -> DocumentedSignature {
    let call = format!("{name}({})", catalog_types(entry).join(", "));
    DocumentedSignature { call, result: catalog_type(entry.result) }
}

/// Writes the signature of an aggregate whose last argument is the order of its rows.
fn ordered_set_signature(name: &str, entry: &CatalogEntry) -> DocumentedSignature {
    let mut types = catalog_types(entry);
    let Some(order) = types.pop() else { return catalog_signature(name, entry) };
    let call = format!("{name}({}) WITHIN GROUP (ORDER BY {order})", types.join(", "));
    DocumentedSignature { call, result: catalog_type(entry.result) }
}

/// Returns the argument types of a catalog entry as statements write them.
fn catalog_types(entry: &CatalogEntry) -> Vec<String> {
    entry.arguments.split(',').filter(|name| !name.is_empty()).map(catalog_type).collect()
}

/// Returns the type of a name in `pg_type` as statements write it.
fn catalog_type(name: &str) -> String {
    if let Some(element) = name.strip_prefix('_') {
        return format!("{}[]", catalog_type(element));
    }
    let scalar = SqlType::scalars().find(|sql_type| sql_type.typname() == name);
    scalar.map_or_else(|| name.to_owned(), |sql_type| plain_type_name(&sql_type))
}

/// Returns each overload with an array body as a function of sample types, for tests that go over all of them: the
/// signature, the function and its argument types.
#[must_use]
pub fn sample_functions() -> Vec<(String, Arc<ScalarUDF>, Vec<SqlType>)> {
    let zone = SessionZone::Fixed(0);
    let session = Arc::new(EvaluationContext::without_context(zone, DateOrder::MonthDayYear, 0, 0));
    let definitions = SCALAR_TOPICS.iter().flat_map(|(_, definitions)| *definitions);
    let overloads = definitions.flat_map(|definition| {
        let signatures = signatures(definition).into_iter().enumerate();
        signatures.filter_map(|(index, signature)| {
            let takes = definition.sample_types(index)?;
            if !matches!(definition.overloads[index].body, Body::Rows(_)) {
                return None;
            }
            let function = ResolvedFunction::udf(definition, index, takes.clone(), &session).ok()?;
            Some((signature.call, function, takes))
        })
    });
    overloads.collect()
}

/// Returns the description of the function, aggregate or window function of a name; `None` for another name.
#[must_use]
pub fn description(name: &str) -> Option<&'static str> {
    let scalar = SCALAR_DEFINITIONS.get(name).map(|definition| definition.description);
    let aggregate = || aggregate::definitions().find(|it| it.name == name).map(|it| it.description);
    let window = || WINDOW_DEFINITIONS.iter().find(|it| it.name == name).map(|it| it.description);
    scalar.or_else(aggregate).or_else(window)
}

fn volatility_name(volatility: Volatility) -> &'static str {
    match volatility {
        Volatility::Immutable => "immutable",
        Volatility::Stable => "stable",
        Volatility::Volatile => "volatile",
    }
}

/// Writes the signature of each overload. The result of a numeric overload has no digits: these depend on the call.
fn signatures(definition: &Definition) -> Vec<DocumentedSignature> {
    let signature = |index: usize| {
        let overload = &definition.overloads[index];
        let mut parameters: Vec<String> = overload.parameters.iter().map(|it| parameter_name(*it)).collect();
        if overload.is_variadic
            && let Some(last) = parameters.last_mut()
        {
            *last = format!("VARIADIC {last}");
        }
        let result = definition.result_name(index).unwrap_or_else(|| "any".to_owned());
        let call = match parameters.as_slice() {
            [left, right] if definition.is_operator() => format!("{left} {} {right}", definition.name),
            parameters => format!("{}({})", definition.name, parameters.join(", ")),
        };
        DocumentedSignature { call, result }
    };
    (0..definition.overloads.len()).map(signature).collect()
}

/// Returns PostgreSQL's name of a parameter type.
fn parameter_name(parameter: ParameterType) -> String {
    match parameter {
        ParameterType::Any => "any".to_owned(),
        ParameterType::AnyArray => "anyarray".to_owned(),
        ParameterType::Numeric => "numeric".to_owned(),
        other => other.sample().map_or_else(|| "any".to_owned(), |sql_type| plain_type_name(&sql_type)),
    }
}

impl Definition {
    /// Returns the name of the type that an overload returns.
    fn result_name(&self, index: usize) -> Option<String> {
        let overload = &self.overloads[index];
        if overload.returns_element() {
            return Some("type of the elements".to_owned());
        }
        if let Some(parameter) = overload.result_parameter() {
            return Some(match parameter {
                ParameterType::Any => "same type".to_owned(),
                other => parameter_name(other),
            });
        }
        let types: Vec<SqlType> = self.sample_types(index)?;
        let result = overload.compute_result_type(&types).ok()?;
        let is_of_any = overload.parameters.contains(&ParameterType::Any) && types.contains(&result);
        let is_fixed = overload.has_fixed_result();
        Some(if is_of_any && !is_fixed { "same type".to_owned() } else { plain_type_name(&result) })
    }
}
