//! Refuses decisions by the name of a plan, field, function, rule or operator, or by an error's text.
//!
//! A user may give any name to a table, a column or a function, and a library may change its own. What decides is
//! therefore a type, an identity or a field of its own.
//!
//! - `decision_finder.rs`: finds decisions in the syntax tree of a file
//! - `value_origin.rs`: tells whether an expression's value is a name or a constant
//! - `patterns.rs`: variables and constants in patterns
//! - `exceptions.rs`: the places where names may decide, with reasons

mod decision_finder;
mod exceptions;
mod patterns;
#[cfg(test)]
mod tests;
mod value_origin;

use std::path::Path;

use self::decision_finder::Finding;
use self::exceptions::Exceptions;
use crate::workspace::Workspace;

/// Folders of the crates that handle plans.
const CHECKED_FOLDERS: &[&str] =
    &["crates/control", "crates/engine", "crates/front", "crates/kiln", "crates/query", "crates/sql"];

/// Checks that nothing decides by a name but the exceptions, and that each exception is needed.
pub(crate) fn check_name_decisions(workspace: &Workspace) -> Vec<String> {
    let exceptions = match Exceptions::read(&workspace.root) {
        Ok(exceptions) => exceptions,
        Err(problem) => return vec![problem],
    };
    match find_in_workspace(workspace) {
        Ok(findings) => exceptions.find_violations(&findings),
        Err(problem) => vec![problem],
    }
}

fn find_in_workspace(workspace: &Workspace) -> Result<Vec<(String, Finding)>, String> {
    let mut findings = Vec::new();
    for (path, text) in workspace.sources.iter().filter(|(path, _)| !is_test_path(path)) {
        let shown = workspace.display_path(path).to_string();
        if CHECKED_FOLDERS.iter().any(|folder| Path::new(&shown).starts_with(folder)) {
            let file = syn::parse_file(text).map_err(|error| format!("cannot parse {shown}: {error}"))?;
            let lines: Vec<&str> = text.lines().collect();
            findings.extend(decision_finder::find_decisions(&file).into_iter().map(|mut finding| {
                let line = lines.get(finding.line - 1).map_or("", |line| line.trim());
                finding.text = format!("{} in `{line}`", finding.text);
                (shown.clone(), finding)
            }));
        }
    }
    Ok(findings)
}

/// Returns whether a file or a folder of its path has tests only.
fn is_test_path(path: &Path) -> bool {
    let is_test = |part: &str| part.ends_with("tests") || part.ends_with("tests.rs") || part == "benches";
    path.components().any(|part| part.as_os_str().to_str().is_some_and(is_test))
}
