//! A path that ARCHITECTURE.md names must exist, or the page has grown stale.

use crate::workspace::Workspace;

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
