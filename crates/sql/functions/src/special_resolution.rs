//! Functions and operators whose calls the binder resolves by rules of their own, recognized by their definitions.

use std::collections::HashMap;
use std::sync::LazyLock;

use datafusion::logical_expr::{Operator, ScalarUDF};

use super::SCALAR_DEFINITIONS;
use super::definition::Definition;
use super::scalar_udf::ResolvedFunction;

/// Rule of its own by which a function's calls are resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpecialCall {
    /// Comparison operator: its operands are compared in their common type.
    Comparison(Operator),
    /// `||`.
    Concatenation,
    /// `x = ANY (array)`.
    AnyEqual,
    Coalesce,
    Greatest,
    Least,
    Nullif,
    /// `ARRAY[…]`.
    ArrayLiteral,
    /// List form of `generate_series`.
    SeriesList,
    /// Unary minus.
    Negation,
    /// `age`, which subtracts from the current date if it has one argument.
    Age,
    /// `to_timestamp`.
    ToTimestamp,
}

/// Special calls by the names under which the registry has their definitions.
const NAMES: [(&str, SpecialCall); 17] = [
    ("=", SpecialCall::Comparison(Operator::Eq)),
    ("<>", SpecialCall::Comparison(Operator::NotEq)),
    ("<", SpecialCall::Comparison(Operator::Lt)),
    ("<=", SpecialCall::Comparison(Operator::LtEq)),
    (">", SpecialCall::Comparison(Operator::Gt)),
    (">=", SpecialCall::Comparison(Operator::GtEq)),
    ("||", SpecialCall::Concatenation),
    ("any_equal", SpecialCall::AnyEqual),
    ("coalesce", SpecialCall::Coalesce),
    ("greatest", SpecialCall::Greatest),
    ("least", SpecialCall::Least),
    ("nullif", SpecialCall::Nullif),
    ("array_literal", SpecialCall::ArrayLiteral),
    ("generate_series_list", SpecialCall::SeriesList),
    ("negate", SpecialCall::Negation),
    ("age", SpecialCall::Age),
    ("to_timestamp", SpecialCall::ToTimestamp),
];

/// Special calls by the addresses of their definitions.
static BY_DEFINITION: LazyLock<HashMap<usize, SpecialCall>> = LazyLock::new(|| {
    let found =
        NAMES.iter().filter_map(|(name, call)| Some((definition_address(SCALAR_DEFINITIONS.get(name)?), *call)));
    found.collect()
});

fn definition_address(definition: &Definition) -> usize {
    std::ptr::from_ref(definition).addr()
}

impl Definition {
    /// Returns the rule by which calls are resolved; `None` for the rule of all other functions.
    #[must_use]
    pub fn special_call(&self) -> Option<SpecialCall> {
        BY_DEFINITION.get(&definition_address(self)).copied()
    }
}

/// Returns the rule by which calls of a resolved function were resolved.
#[must_use]
pub fn special_call(function: &ScalarUDF) -> Option<SpecialCall> {
    function.inner().downcast_ref::<ResolvedFunction>()?.parts().0.special_call()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_special_call_has_a_definition() {
        for (name, call) in NAMES {
            let definition = SCALAR_DEFINITIONS.get(name).unwrap_or_else(|| panic!("there is no function {name}"));
            assert_eq!(definition.special_call(), Some(call));
        }
    }
}
