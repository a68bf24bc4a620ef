//! A crate depends only on earlier ones, each big dependency has its owners, and no big dependency is there twice.

use std::collections::BTreeMap;

use crate::workspace::Workspace;

/// The order of the crates: each depends only on those before it, in its tests too.
pub(crate) const ORDER: &[&str] = &[
    "types",
    "bench",
    "blocks",
    "kv",
    "objects",
    "cluster",
    "rowstore",
    "shards",
    "catalog",
    "history",
    "txn",
    "engine",
    "syntax",
    "settings",
    "session_context",
    "functions",
    "system_catalog",
    "plan",
    "optimizer",
    "binder",
    "ddl",
    "planner",
    "scheduler",
    "value_codec",
    "storage_error",
    "scan",
    "compile",
    "exchange",
    "executor",
    "row_locks",
    "key_lookup",
    "bulk_load",
    "dml",
    "external_files",
    "copy",
    "maintenance",
    "explain",
    "execution",
    "local_workers",
    "fleet",
    "kubernetes",
    "cluster_service",
    "authentication",
    "session",
    "pg",
    "http_server",
    "simulation",
    "kiln",
    "tests",
    "xtask",
];

/// Big dependencies and the crates that may name them.
const OWNERS: &[(&str, &[&str])] = &[
    ("redb", &["kv"]),
    ("object_store", &["objects"]),
    ("parquet", &["shards"]),
    (
        "datafusion",
        &[
            "session_context",
            "functions",
            "system_catalog",
            "plan",
            "optimizer",
            "binder",
            "ddl",
            "planner",
            "scheduler",
            "value_codec",
            "scan",
            "compile",
            "exchange",
            "executor",
            "key_lookup",
            "bulk_load",
            "dml",
            "copy",
            "maintenance",
            "explain",
            "execution",
            "local_workers",
            "session",
            "simulation",
        ],
    ),
    ("datafusion-distributed", &["compile", "exchange", "execution"]),
    ("datafusion-proto", &["exchange", "execution"]),
    ("tonic", &["exchange"]),
    ("pgwire", &["authentication", "pg"]),
    ("sqlparser", &["syntax"]),
    ("axum", &["http_server"]),
    ("rcgen", &["fleet", "pg", "kubernetes", "tests"]),
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

/// A crate depends on none that stands after it, and every member stands in the order.
pub(crate) fn check_order(workspace: &Workspace) -> Vec<String> {
    let place = |name: &str| ORDER.iter().position(|other| *other == name);
    let mut problems = Vec::new();
    for member in &workspace.crates {
        let Some(own) = place(&member.name) else {
            problems
                .push(format!("crate {} has no place in the order of crates (xtask/src/dependencies.rs)", member.name));
            continue;
        };
        for dependency in member.dependencies.iter().chain(&member.dev_dependencies) {
            if place(dependency).is_some_and(|other| own <= other) {
                problems.push(format!("{} depends on {dependency}, which stands after it", member.name));
            }
        }
    }
    problems
}

/// Only its owners name a big dependency.
pub(crate) fn check_owners(workspace: &Workspace) -> Vec<String> {
    let mut problems = Vec::new();
    for member in &workspace.crates {
        for dependency in member.dependencies.iter().chain(&member.dev_dependencies) {
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
