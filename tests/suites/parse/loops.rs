//! Loops of sqllogictest files: the values of their variables, and their substitution.

use std::collections::BTreeMap;

#[cfg(test)]
mod tests;

/// Most repetitions of a loop; further ones show nothing new.
const REPETITIONS_MAX: usize = 100;

const SIGNED: [&str; 5] = ["tinyint", "smallint", "integer", "bigint", "hugeint"];
const UNSIGNED: [&str; 5] = ["utinyint", "usmallint", "uinteger", "ubigint", "uhugeint"];
const FLOATS: [&str; 2] = ["float", "double"];
const OTHER_TYPES: [&str; 8] = ["bool", "interval", "varchar", "date", "time", "timestamp", "blob", "uuid"];

/// Values of variables, by name.
pub(crate) type Bindings = BTreeMap<String, String>;

/// Returns the bindings of each repetition of a loop, outer ones included; empty for a malformed loop.
pub(super) fn repetitions(words: &[&str], outer: &Bindings) -> Vec<Bindings> {
    let bind = |names: &str, values: &str| {
        let mut bindings = outer.clone();
        let values = if names.contains(',') { values.split(',').collect() } else { vec![values] };
        bindings.extend(names.split(',').zip(values).map(|(name, value)| (name.to_owned(), value.to_owned())));
        bindings
    };
    match words {
        ["loop" | "concurrentloop", name, from, to, ..] => match (from.parse::<i64>(), to.parse::<i64>()) {
            (Ok(from), Ok(to)) => {
                (from..to).take(REPETITIONS_MAX).map(|value| bind(name, &value.to_string())).collect()
            }
            _ => Vec::new(),
        },
        ["foreach" | "concurrentforeach", names, values @ ..] => {
            listed_values(values).into_iter().take(REPETITIONS_MAX).map(|value| bind(names, value)).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the values of a list: `<numeric>` and its like are DuckDB's lists of types, and `!value` removes a value.
fn listed_values<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let mut values: Vec<&str> = Vec::new();
    for word in words {
        match *word {
            "<signed>" => values.extend(SIGNED),
            "<unsigned>" => values.extend(UNSIGNED),
            "<integral>" => values.extend(SIGNED.iter().chain(&UNSIGNED)),
            "<numeric>" => values.extend(SIGNED.iter().chain(&UNSIGNED).chain(&FLOATS)),
            "<alltypes>" => values.extend(SIGNED.iter().chain(&UNSIGNED).chain(&FLOATS).chain(&OTHER_TYPES)),
            value => match value.strip_prefix('!') {
                Some(removed) => values.retain(|value| *value != removed),
                None => values.push(value),
            },
        }
    }
    values
}

/// Replaces `{name}` and `${name}` by the values of variables.
pub(super) fn substitute(text: &str, bindings: &Bindings) -> String {
    let mut substituted = text.to_owned();
    if text.contains('{') {
        for (name, value) in bindings {
            let braced = format!("{{{name}}}");
            substituted = substituted.replace(&format!("${braced}"), value).replace(&braced, value);
        }
    }
    substituted
}
