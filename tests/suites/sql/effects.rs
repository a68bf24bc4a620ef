//! Objects that a statement defines, writes and drops, by name and without schemas.

use super::lexer::TokenKind;
use super::statement::Statement;

#[cfg(test)]
mod tests;

/// Words between CREATE and the kind of the object.
const MODIFIERS: [&str; 16] = [
    "or",
    "replace",
    "temp",
    "temporary",
    "local",
    "global",
    "unlogged",
    "unique",
    "materialized",
    "foreign",
    "recursive",
    "constraint",
    "event",
    "trusted",
    "procedural",
    "default",
];
/// Words between the kind of an object and its name.
const BEFORE_NAME: [&str; 5] = ["if", "not", "exists", "concurrently", "only"];
/// First words of kinds that have several.
const LONG_KINDS: [&str; 5] = ["access", "data", "operator", "text", "user"];
/// Further words of such kinds.
const KIND_WORDS: [&str; 11] = [
    "class",
    "family",
    "search",
    "configuration",
    "dictionary",
    "parser",
    "template",
    "wrapper",
    "method",
    "mapping",
    "for",
];
/// Words after ADD in ALTER TABLE that do not name a column.
const ADDED_CONSTRAINTS: [&str; 6] = ["constraint", "primary", "unique", "foreign", "check", "exclude"];

/// Objects that a statement changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Effects {
    pub(crate) defines: Vec<String>,
    /// Columns that ALTER TABLE adds or renames.
    pub(crate) columns: Vec<String>,
    pub(crate) writes: Vec<String>,
    pub(crate) drops: Vec<String>,
}

/// Returns the effects of a statement, as far as its text shows them: those of functions are not known.
pub(crate) fn effects(statement: &Statement<'_>) -> Effects {
    let mut effects = Effects::default();
    if statement.is_one_of(0, &["create"]) {
        add_created(statement, &mut effects);
    } else if statement.is_one_of(0, &["alter"]) {
        add_altered(statement, &mut effects);
    } else if statement.is_one_of(0, &["drop"]) {
        effects.drops.extend(names(statement, object(statement).1));
    } else if statement.is_one_of(0, &["truncate", "refresh"]) {
        let at = skip_words(statement, 1, &["materialized", "view", "concurrently", "table", "only"]);
        effects.writes.extend(names(statement, at));
    } else if statement.is_one_of(0, &["prepare", "declare", "savepoint"]) {
        effects.defines.extend(name(statement, 1).map(|(name, _)| name));
    } else if statement.is_one_of(0, &["copy"]) && statement.has_words(&["from"]) {
        effects.writes.extend(name(statement, 1).map(|(name, _)| name));
    } else {
        add_written(statement, &mut effects);
    }
    effects
}

fn add_created(statement: &Statement<'_>, effects: &mut Effects) {
    let (kind, at) = object(statement);
    match name(statement, at) {
        // An index without a name.
        Some((name, _)) if name == "on" => {}
        Some((name, _)) => effects.defines.push(name),
        None => effects.defines.extend(operator(statement, at)),
    }
    // Their tables behave differently from now on.
    let changes_table = statement.is_one_of(kind, &["trigger", "rule", "policy"]);
    for at in 0..statement.len() {
        if statement.has_words_at(at, &["partition", "of"]) {
            effects.writes.extend(name(statement, at + 2).map(|(name, _)| name));
        } else if statement.is_one_of(at, &["inherits"]) {
            effects.writes.extend(names(statement, at + 2));
        } else if changes_table && statement.is_one_of(at, &["on", "to"]) {
            effects.writes.extend(name(statement, at + 1).map(|(name, _)| name));
        }
    }
}

fn add_altered(statement: &Statement<'_>, effects: &mut Effects) {
    let Some((altered, after)) = name(statement, object(statement).1) else { return };
    effects.writes.push(altered);
    for at in after..statement.len() {
        if statement.has_words_at(at, &["rename", "to"]) {
            effects.defines.extend(name(statement, at + 2).map(|(name, _)| name));
        } else if at != after + 1 && statement.is_one_of(at, &["to"]) && statement.has_words_at(after, &["rename"]) {
            effects.columns.extend(name(statement, at + 1).map(|(name, _)| name));
        } else if statement.is_one_of(at, &["add"]) && !statement.is_one_of(at + 1, &ADDED_CONSTRAINTS) {
            let column = skip_words(statement, at + 1, &["column", "if", "not", "exists"]);
            effects.columns.extend(name(statement, column).map(|(name, _)| name));
        }
    }
}

/// Adds the tables of INSERT, UPDATE, DELETE and MERGE, also in WITH, and the table of SELECT INTO.
fn add_written(statement: &Statement<'_>, effects: &mut Effects) {
    for at in 0..statement.len() {
        let begins = at == 0 || statement.kind(at - 1) == Some(TokenKind::Symbol('('));
        let is_write = statement.has_words_at(at, &["insert", "into"])
            || statement.has_words_at(at, &["delete", "from"])
            || statement.has_words_at(at, &["merge", "into"]);
        let target = |from: usize| name(statement, skip_words(statement, from, &["only"])).map(|(name, _)| name);
        if is_write {
            effects.writes.extend(target(at + 2));
        } else if begins && statement.is_one_of(at, &["update"]) {
            effects.writes.extend(target(at + 1));
        } else if statement.is_one_of(at, &["into"]) && !statement.is_one_of(at.wrapping_sub(1), &["insert", "merge"]) {
            let created = skip_words(statement, at + 1, &["temp", "temporary", "unlogged", "table"]);
            effects.defines.extend(target(created));
        }
    }
}

/// Returns the positions of an object's kind and of its name in CREATE, ALTER and DROP.
fn object(statement: &Statement<'_>) -> (usize, usize) {
    let kind = skip_words(statement, 1, &MODIFIERS);
    let end =
        if statement.is_one_of(kind, &LONG_KINDS) { skip_words(statement, kind + 1, &KIND_WORDS) } else { kind + 1 };
    (kind, skip_words(statement, end, &BEFORE_NAME))
}

fn skip_words(statement: &Statement<'_>, from: usize, words: &[&str]) -> usize {
    (from..).find(|at| !statement.is_one_of(*at, words)).unwrap_or(from)
}

/// Returns the last part of a dotted name, and the position after it.
fn name(statement: &Statement<'_>, from: usize) -> Option<(String, usize)> {
    let mut parsed = (statement.name(from)?, from + 1);
    while statement.kind(parsed.1) == Some(TokenKind::Symbol('.')) {
        match statement.name(parsed.1 + 1) {
            Some(part) => parsed = (part, parsed.1 + 2),
            None => break,
        }
    }
    Some(parsed)
}

/// Returns names that are separated by commas.
fn names(statement: &Statement<'_>, from: usize) -> Vec<String> {
    let mut at = from;
    let mut parsed = Vec::new();
    while let Some((part, after)) = name(statement, at) {
        parsed.push(part);
        if statement.kind(after) != Some(TokenKind::Symbol(',')) {
            break;
        }
        at = after + 1;
    }
    parsed
}

/// Returns the operator that CREATE OPERATOR names.
fn operator(statement: &Statement<'_>, from: usize) -> Option<String> {
    let symbols = (from..statement.len()).map_while(|at| match statement.kind(at) {
        Some(TokenKind::Symbol(symbol)) if symbol != '(' => Some(symbol),
        _ => None,
    });
    Some(symbols.collect::<String>()).filter(|operator| !operator.is_empty())
}
