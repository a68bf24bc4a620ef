//! Lines `skipif` and `onlyif`, which choose the engines and the repetitions that run a record.

use super::loops::Bindings;

#[cfg(test)]
mod tests;

/// Labels under which records are run: PostgreSQL decides which records count.
const LABELS: [&str; 2] = ["postgresql", "postgres"];
/// Comparisons in conditions, longer ones first.
const COMPARISONS: [&str; 6] = ["!=", "<=", ">=", "=", "<", ">"];

/// Returns whether a line `skipif …` or `onlyif …` lets the next record run.
pub(super) fn allows(words: &[&str], bindings: &Bindings) -> bool {
    let condition = words.get(1).copied().unwrap_or_default();
    let holds = holds(condition, bindings);
    if words.first() == Some(&"onlyif") { holds } else { !holds }
}

fn holds(condition: &str, bindings: &Bindings) -> bool {
    let parts = COMPARISONS.iter().find_map(|sign| Some((*sign, condition.split_once(sign)?)));
    match parts {
        Some((sign, (name, value))) => bindings.get(name).is_some_and(|bound| compare(bound, sign, value)),
        None => LABELS.contains(&condition),
    }
}

fn compare(left: &str, sign: &str, right: &str) -> bool {
    let order = match (left.parse::<i64>(), right.parse::<i64>()) {
        (Ok(left), Ok(right)) => left.cmp(&right),
        _ => left.cmp(right),
    };
    match sign {
        "=" => order.is_eq(),
        "!=" => order.is_ne(),
        "<" => order.is_lt(),
        "<=" => order.is_le(),
        ">" => order.is_gt(),
        _ => order.is_ge(),
    }
}
