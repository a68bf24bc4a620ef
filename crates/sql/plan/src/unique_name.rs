//! Names that no relation or column of a plan has yet.

use std::collections::HashSet;

/// Returns `name`, or the first of `name_1`, `name_2`, … that is not taken.
#[must_use]
pub fn unique_name(name: &str, is_taken: impl Fn(&str) -> bool) -> String {
    std::iter::once(name.to_owned())
        .chain((1_u64..).map(|number| format!("{name}_{number}")))
        .find(|candidate| !is_taken(candidate))
        .expect("names do not run out")
}

/// Returns a name like [`unique_name`] and adds it to those that are taken.
pub fn take_unique_name(taken: &mut HashSet<String>, name: &str) -> String {
    let found = unique_name(name, |candidate| taken.contains(candidate));
    taken.insert(found.clone());
    found
}
