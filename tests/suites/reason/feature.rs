//! The closed list of features that Kiln leaves out, and the errors that name them.

mod names;
#[cfg(test)]
mod tests;

use std::fmt;

use self::names::{KINDS, SPECIAL_FUNCTIONS, SPECIAL_OPERATORS, SPECIAL_TYPES, SUBJECTS, SUBJECTS_BY_STATEMENT};
use crate::answer::Failure;
use crate::sql::Statement;

/// Feature of PostgreSQL that Kiln leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Feature {
    UserDefined,
    Privileges,
    TriggersAndRules,
    UpdatableViews,
    InheritanceAndPartitions,
    SpecialTypes,
    LargeObjects,
    ForeignData,
    Listen,
    WideNumeric,
    Publications,
}

impl Feature {
    /// Returns the feature that the error of a refused statement names.
    pub(crate) fn named_by(failure: &Failure, sql: &str) -> Option<Self> {
        let message = failure.message.to_lowercase();
        match failure.sqlstate.as_str() {
            "0A000" => named_as_unsupported(message.strip_suffix(" is not supported")?, &Statement::new(sql)),
            "42704" | "42804" | "42846" | "42883" => named_as_undefined(&message),
            "55000" => (message.starts_with("cannot ") && message.contains(" view ")).then_some(Self::UpdatableViews),
            "22003" => message.contains("more than 38 digits").then_some(Self::WideNumeric),
            _ => None,
        }
    }
}

fn named_as_unsupported(subject: &str, statement: &Statement<'_>) -> Option<Feature> {
    let kind = ["create ", "alter ", "drop ", "comment on "].iter().find_map(|verb| subject.strip_prefix(verb));
    let by_kind = KINDS.iter().find(|(name, _)| kind == Some(*name)).map(|(_, feature)| *feature);
    let by_subject = || SUBJECTS.iter().find(|(name, _)| subject == *name).map(|(_, feature)| *feature);
    let by_statement = || {
        let mut entries = SUBJECTS_BY_STATEMENT.iter();
        entries.find(|(name, words, _)| subject == *name && statement.has_words(words)).map(|(_, _, feature)| *feature)
    };
    let by_digits = || (subject.starts_with("numeric of more than")).then_some(Feature::WideNumeric);
    by_kind.or_else(by_subject).or_else(by_statement).or_else(by_digits).or_else(|| named_as_undefined(subject))
}

/// Returns the feature of a type, function or operator that a message names.
fn named_as_undefined(message: &str) -> Option<Feature> {
    let function = message.strip_prefix("function ").map(|call| call.split('(').next().unwrap_or_default());
    let function = function.map(|name| name.rsplit('.').next().unwrap_or_default());
    if function.is_some_and(|name| name.starts_with("lo_")) {
        return Some(Feature::LargeObjects);
    }
    if function.is_some_and(|name| matches!(name, "pg_notify" | "pg_listening_channels")) {
        return Some(Feature::Listen);
    }
    let is_special_function =
        function.is_some_and(|name| SPECIAL_FUNCTIONS.iter().any(|begin| name.starts_with(begin)));
    let is_operator = message.contains("operator ");
    let names_operator = is_operator && message.split_whitespace().any(|word| SPECIAL_OPERATORS.contains(&word));
    let has_operand_types = function.is_some() || is_operator || message.contains("cannot cast type");
    let is_special = is_special_function || names_operator || names_special_type(message, has_operand_types);
    is_special.then_some(Feature::SpecialTypes)
}

/// Returns whether a message names such a type, after the word `type` or, in messages with operands, anywhere.
fn names_special_type(message: &str, has_operand_types: bool) -> bool {
    let words = message.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    let words: Vec<&str> = words.collect();
    let is_type = |at: usize| SPECIAL_TYPES.contains(&words[at]);
    (0..words.len()).any(|at| is_type(at) && (has_operand_types || (0 < at && words[at - 1] == "type")))
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UserDefined => "user-defined types, functions, operators, aggregates",
            Self::Privileges => "grants and policies",
            Self::TriggersAndRules => "triggers and rules",
            Self::UpdatableViews => "updatable views",
            Self::InheritanceAndPartitions => "inheritance and partitions",
            Self::SpecialTypes => "range, geometric, network, bit, money, xml and text-search types",
            Self::LargeObjects => "large objects",
            Self::ForeignData => "foreign data wrappers",
            Self::Listen => "LISTEN",
            Self::WideNumeric => "numeric beyond 38 digits or with a scale per value",
            Self::Publications => "publications",
        })
    }
}
