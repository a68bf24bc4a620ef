//! Checks ARCHITECTURE.md: its table lists the crates in their order, and the paths that it names exist.

use crate::dependencies::CRATE_ORDER;
use crate::workspace::Workspace;

/// Workspace members that are not part of the program and not in the table.
const UNLISTED_MEMBERS: &[&str] = &["bench", "simulation", "tests", "xtask"];

/// Checks that the rows `| \`crate\` | owns | never |` list the crates from the last to the first.
pub(crate) fn check_table(workspace: &Workspace) -> Vec<String> {
    let rows = workspace.architecture_text.lines().filter_map(|line| line.strip_prefix("| `"));
    let shown: Vec<&str> = rows.filter_map(|row| row.split('`').next()).collect();
    let ordered: Vec<&str> =
        CRATE_ORDER.iter().rev().copied().filter(|name| !UNLISTED_MEMBERS.contains(name)).collect();
    if shown == ordered {
        return Vec::new();
    }
    vec![format!("ARCHITECTURE.md's table has the crates {}; their order is {}", shown.join(" "), ordered.join(" "))]
}

/// Checks that everything in backquotes that looks like a path (`crates/…`, `tests/…`, `docs/…`, …) exists.
pub(crate) fn check_paths(workspace: &Workspace) -> Vec<String> {
    let quoted = workspace.architecture_text.split('`').skip(1).step_by(2);
    quoted
        .filter(|text| {
            ["crates/", "tests/", "docs/", "bench/", "xtask/", ".ci/"].iter().any(|top| text.starts_with(top))
        })
        .filter(|path| !workspace.root.join(path).exists())
        .map(|path| format!("ARCHITECTURE.md names `{path}`, which does not exist"))
        .collect()
}
