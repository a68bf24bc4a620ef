//! Checks dependencies: crates depend on earlier crates only, big dependencies have owners, and none exists in two
//! versions.

use std::collections::BTreeMap;

use crate::workspace::Workspace;

/// Order of the crates: each depends only on earlier ones, also in its tests.
pub(crate) const CRATE_ORDER: &[&str] = &[
    "generated_docs",
    "types",
    "cluster_model",
    "bench",
    "blocks",
    "kv",
    "objects",
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
    "operators",
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
    "supervisor",
    "workload",
    "control_plane",
    "local_workers",
    "fleet",
    "kubernetes",
    "cluster_service",
    "authentication",
    "session",
    "pg",
    "http_server",
    "simulation",
    "sql_client",
    "server_config",
    "kiln",
    "tests",
    "xtask",
];

/// Big dependencies and the crates that may use them.
const DEPENDENCY_OWNERS: &[(&str, &[&str])] = &[
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
            "operators",
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

/// Dependencies that crates below a folder must not use, with exceptions; their tests may.
const BANNED_DEPENDENCIES: &[(&str, &str, &[&str])] = &[
    ("objects", "crates/sql", &[]),
    ("tokio", "crates/sql", &[]),
    ("syntax", "crates/query", &[]),
    ("datafusion", "crates/front", &[]),
    ("pgwire", "crates/front/session", &[]),
];

/// Dependencies that must have one version: a second one would split types or double the build.
const SINGLE_VERSION_DEPENDENCIES: &[&str] = &[
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

/// TLS providers that are not allowed besides ring.
const FORBIDDEN_TLS_PROVIDERS: &[&str] = &["aws-lc-rs", "aws-lc-sys", "openssl", "native-tls"];

/// Checks that each crate is in the order and depends on no later one.
pub(crate) fn check_order(workspace: &Workspace) -> Vec<String> {
    let place = |name: &str| CRATE_ORDER.iter().position(|other| *other == name);
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

/// Checks that only its owners use a big dependency.
pub(crate) fn check_owners(workspace: &Workspace) -> Vec<String> {
    let mut problems = Vec::new();
    for member in &workspace.crates {
        for dependency in member.dependencies.iter().chain(&member.dev_dependencies) {
            if let Some((_, owners)) = DEPENDENCY_OWNERS.iter().find(|(name, _)| name == dependency)
                && !owners.contains(&member.name.as_str())
            {
                problems.push(format!("{} names {dependency}, which belongs to {}", member.name, owners.join(", ")));
            }
        }
    }
    problems
}

/// Checks that no crate uses a dependency banned in its folder.
pub(crate) fn check_bans(workspace: &Workspace) -> Vec<String> {
    let mut problems = Vec::new();
    for member in &workspace.crates {
        let folder = member.folder.strip_prefix(&workspace.root).unwrap_or(&member.folder);
        for (banned, below, but_for) in BANNED_DEPENDENCIES {
            let is_there = folder.starts_with(below) && !but_for.contains(&member.name.as_str());
            if is_there && member.dependencies.iter().any(|name| name == banned) {
                problems.push(format!("{} names {banned}, which no crate of {below} may", member.name));
            }
        }
    }
    problems
}

/// Checks that single-version dependencies have one version, and that there is one TLS provider.
pub(crate) fn check_versions(workspace: &Workspace) -> Vec<String> {
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in &workspace.locked_packages {
        versions.entry(&package.name).or_default().push(&package.version);
    }
    let twice = SINGLE_VERSION_DEPENDENCIES.iter().filter_map(|name| {
        let found = versions.get(name)?;
        (1 < found.len()).then(|| format!("Cargo.lock has {name} in versions {}", found.join(", ")))
    });
    let forbidden = FORBIDDEN_TLS_PROVIDERS
        .iter()
        .filter(|name| versions.contains_key(**name))
        .map(|name| format!("Cargo.lock has {name}; TLS here is rustls with ring"));
    twice.chain(forbidden).collect()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::workspace::Crate;

    fn workspace_with(name: &str, folder: &str, dependency: &str) -> Workspace {
        let root = PathBuf::from("/root");
        let member = Crate {
            name: name.to_owned(),
            folder: root.join(folder),
            dependencies: vec![dependency.to_owned()],
            dev_dependencies: Vec::new(),
        };
        let (locked, architecture_text, sources) = (Vec::new(), String::new(), Vec::new());
        Workspace { root, crates: vec![member], locked_packages: locked, architecture_text, sources }
    }

    #[test]
    fn what_is_banned_in_a_folder_is_reported_there_alone() {
        assert_eq!(
            check_bans(&workspace_with("binder", "crates/sql/binder", "tokio")),
            ["binder names tokio, which no crate of crates/sql may"]
        );
        assert!(check_bans(&workspace_with("executor", "crates/query/executor", "tokio")).is_empty());
    }
}
