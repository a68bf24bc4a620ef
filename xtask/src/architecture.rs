//! ARCHITECTURE.md shows the crates in their order and names no path that is not there, or the page has grown stale.

use crate::dependencies::ORDER;
use crate::workspace::Workspace;

/// Members that are no part of the program, and not in the table.
const BESIDE: &[&str] = &["bench", "simulation", "tests", "xtask"];

/// The rows `| \`crate\` | owns | never |` are the order of the crates, from the last to the first.
pub(crate) fn check_table(workspace: &Workspace) -> Vec<String> {
    let rows = workspace.architecture.lines().filter_map(|line| line.strip_prefix("| `"));
    let shown: Vec<&str> = rows.filter_map(|row| row.split('`').next()).collect();
    let ordered: Vec<&str> = ORDER.iter().rev().copied().filter(|name| !BESIDE.contains(name)).collect();
    if shown == ordered {
        return Vec::new();
    }
    vec![format!("ARCHITECTURE.md's table has the crates {}; their order is {}", shown.join(" "), ordered.join(" "))]
}

/// Everything in backquotes that looks like a path from the root (`crates/…`, `tests/…`, `docs/…`, …) is looked up.
pub(crate) fn check_paths(workspace: &Workspace) -> Vec<String> {
    let quoted = workspace.architecture.split('`').skip(1).step_by(2);
    quoted
        .filter(|text| {
            ["crates/", "tests/", "docs/", "bench/", "xtask/", ".ci/"].iter().any(|top| text.starts_with(top))
        })
        .filter(|path| !workspace.root.join(path).exists())
        .map(|path| format!("ARCHITECTURE.md names `{path}`, which does not exist"))
        .collect()
}
