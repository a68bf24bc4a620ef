//! A crate depends only on lower floors, each big dependency has its owners, and no big dependency is there twice.

use std::collections::BTreeMap;

use crate::workspace::Workspace;

/// Big dependencies and the crates that may name them.
const OWNERS: &[(&str, &[&str])] = &[
    ("redb", &["kv"]),
    ("object_store", &["objects"]),
    ("parquet", &["shards"]),
    ("datafusion", &["planner", "execution", "gateway"]),
    ("datafusion-distributed", &["execution"]),
    ("datafusion-proto", &["execution"]),
    ("tonic", &["execution"]),
    ("pgwire", &["gateway"]),
    ("axum", &["gateway"]),
    ("rcgen", &["fleet", "gateway", "kubernetes", "tests"]),
    ("kube", &["kubernetes"]),
    ("k8s-openapi", &["kubernetes"]),
    ("schemars", &["kubernetes"]),
    ("serde-saphyr", &["kubernetes"]),
];

/// Dependencies of which a second version in the tree would split types or double the build.
const SINGLE: &[&str] = &[
    "arrow",
    "arrow-schema",
    "arrow-array",
    "datafusion",
    "datafusion-common",
    "datafusion-proto",
    "tonic",
    "object_store",
    "parquet",
    "pgwire",
    "sqlparser",
    "rustls",
    "k8s-openapi",
];

/// TLS providers that must not come in beside ring.
const FORBIDDEN: &[&str] = &["aws-lc-rs", "aws-lc-sys", "openssl", "native-tls"];

/// A dependency must stand on a lower floor of ARCHITECTURE.md's table.
pub(crate) fn check_floors(workspace: &Workspace) -> Vec<String> {
    let floors = floors(&workspace.architecture);
    let mut problems = Vec::new();
    for member in &workspace.crates {
        if ["bench", "tests", "xtask"].contains(&member.name.as_str()) {
            continue;
        }
        let Some(floor) = floors.get(&member.name) else {
            problems.push(format!("crate {} has no floor in ARCHITECTURE.md's table", member.name));
            continue;
        };
        for dependency in &member.dependencies {
            if floors.get(dependency).is_some_and(|below| floor < below) {
                problems.push(format!("{} (floor {floor}) depends on {dependency}, which stands higher", member.name));
            }
        }
    }
    problems
}

/// Only its owners name a big dependency.
pub(crate) fn check_owners(workspace: &Workspace) -> Vec<String> {
    let mut problems = Vec::new();
    for member in &workspace.crates {
        for dependency in &member.dependencies {
            if let Some((_, owners)) = OWNERS.iter().find(|(name, _)| name == dependency)
                && !owners.contains(&member.name.as_str())
            {
                problems.push(format!("{} names {dependency}, which belongs to {}", member.name, owners.join(", ")));
            }
        }
    }
    problems
}

/// One version of what must be one, and one TLS provider.
pub(crate) fn check_versions(workspace: &Workspace) -> Vec<String> {
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in &workspace.locked {
        versions.entry(&package.name).or_default().push(&package.version);
    }
    let twice = SINGLE.iter().filter_map(|name| {
        let found = versions.get(name)?;
        (1 < found.len()).then(|| format!("Cargo.lock has {name} in versions {}", found.join(", ")))
    });
    let forbidden = FORBIDDEN
        .iter()
        .filter(|name| versions.contains_key(**name))
        .map(|name| format!("Cargo.lock has {name}; TLS here is rustls with ring"));
    twice.chain(forbidden).collect()
}

/// Floors by crate, from the rows `| floor | `crate` | …` of ARCHITECTURE.md.
fn floors(architecture: &str) -> BTreeMap<String, u32> {
    let mut floors = BTreeMap::new();
    for line in architecture.lines() {
        let mut cells = line.split('|').map(str::trim).skip(1);
        let (Some(floor), Some(name)) = (cells.next(), cells.next()) else { continue };
        if let Ok(floor) = floor.parse() {
            floors.insert(name.trim_matches('`').to_owned(), floor);
        }
    }
    floors
}
