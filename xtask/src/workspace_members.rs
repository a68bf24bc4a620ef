//! Checks that tidy reads every member of the workspace.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use crate::workspace::Workspace;

#[derive(Deserialize)]
struct CargoMetadata {
    packages: Vec<CargoPackage>,
}

#[derive(Deserialize)]
struct CargoPackage {
    manifest_path: PathBuf,
}

/// Compares the folders that tidy reads with Cargo's workspace members.
pub(crate) fn check_members(workspace: &Workspace) -> Vec<String> {
    match cargo_members(&workspace.root) {
        Ok(members) => {
            compare_members(&members, &workspace.crates.iter().map(|member| canonical_path(&member.folder)).collect())
        }
        Err(problem) => vec![problem],
    }
}

fn compare_members(cargo: &BTreeSet<PathBuf>, read: &BTreeSet<PathBuf>) -> Vec<String> {
    let unread =
        cargo.difference(read).map(|folder| format!("{} is a member that tidy does not read", folder.display()));
    let unknown = read.difference(cargo).map(|folder| format!("{} is no member of the workspace", folder.display()));
    unread.chain(unknown).collect()
}

fn cargo_members(root: &Path) -> Result<BTreeSet<PathBuf>, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("cannot run cargo metadata: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    let metadata: CargoMetadata = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("cannot parse what cargo metadata says: {error}"))?;
    Ok(metadata.packages.iter().filter_map(|package| package.manifest_path.parent()).map(canonical_path).collect())
}

/// Returns the path without symbolic links; unchanged if it does not exist.
fn canonical_path(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_that_are_not_read_and_folders_that_are_no_members_are_reported() {
        let folders = |names: &[&str]| names.iter().map(PathBuf::from).collect::<BTreeSet<_>>();
        let problems = compare_members(&folders(&["crates/sql/plan", "tests"]), &folders(&["crates/plan", "tests"]));
        assert_eq!(
            problems,
            ["crates/sql/plan is a member that tidy does not read", "crates/plan is no member of the workspace"]
        );
    }
}
