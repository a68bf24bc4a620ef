//! Checks that `cargo build -p kiln` and `cargo build --workspace --all-targets` share their compiled dependencies.
//!
//! Cargo unites the features of the selected crates. A feature that only a test library enables, deep in the tree,
//! would compile DataFusion a second time.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::workspace::Workspace;

/// Checks that the program alone, as `make demo` builds it, uses no package with other features than the whole
/// workspace.
pub(crate) fn check_features(workspace: &Workspace) -> Vec<String> {
    let program = packages_with_features(&workspace.root, &["--package", "kiln", "--edges", "normal,build"]);
    let all = packages_with_features(&workspace.root, &["--workspace", "--edges", "normal,build,dev"]);
    match (program, all) {
        (Ok(program), Ok(all)) => compare_features(&program, &all),
        (Err(problem), _) | (_, Err(problem)) => vec![problem],
    }
}

fn compare_features(program: &BTreeSet<String>, all: &BTreeSet<String>) -> Vec<String> {
    program
        .difference(all)
        .map(|package| {
            format!("-p kiln builds {package}, which the workspace builds with other features: name the difference in Cargo.toml")
        })
        .collect()
}

/// Returns the packages of a selection with their features, as `name version [features]`.
fn packages_with_features(root: &Path, selection: &[&str]) -> Result<BTreeSet<String>, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["tree", "--locked", "--color", "never", "--prefix", "none", "--format", "{p} [{f}]"])
        .args(selection)
        .current_dir(root)
        .output()
        .map_err(|error| format!("cannot run cargo tree: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo tree failed: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(|line| line.trim_end_matches(" (*)").to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_with_other_features_is_reported() {
        let packages = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<BTreeSet<_>>();
        let all = packages(&["getrandom v0.2.17 [std]", "rand v0.8.8 [alloc,std]", "ring v0.17.14 [alloc]"]);
        assert!(compare_features(&packages(&["getrandom v0.2.17 [std]", "ring v0.17.14 [alloc]"]), &all).is_empty());
        let problems = compare_features(&packages(&["getrandom v0.2.17 []"]), &all);
        assert_eq!(problems.len(), 1);
        assert!(problems[0].contains("getrandom v0.2.17 []"), "{problems:?}");
    }
}
