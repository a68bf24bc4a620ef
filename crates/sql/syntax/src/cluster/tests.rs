use cluster_model::{ClusterOptions, IfExists, Privilege};

use super::{AlterClusterAction, ClusterStatement, GranteeSpec};
use crate::parse;
use crate::statement::{RoleSpec, Statement};

fn one(sql: &str) -> ClusterStatement {
    let parsed = parse(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}")).remove(0);
    match parsed.statement {
        Statement::Cluster(statement) => *statement,
        other => panic!("{sql} is {other:?}"),
    }
}

/// Returns the error's message and position.
fn error(sql: &str) -> (String, Option<u32>) {
    let error = parse(sql).map(|parsed| panic!("{sql} is {parsed:?}")).unwrap_err();
    (error.message, error.position)
}

fn role(name: &str) -> RoleSpec {
    match one(&format!("ALTER CLUSTER c OWNER TO {name}")) {
        ClusterStatement::Alter { action: AlterClusterAction::OwnerTo(role), .. } => role,
        other => panic!("{other:?}"),
    }
}

fn granted(sql: &str) -> (Vec<Privilege>, Vec<String>, usize, bool) {
    match one(sql) {
        ClusterStatement::Grant { privileges, clusters, to, revoke } => (privileges, clusters, to.len(), revoke),
        other => panic!("{sql} is {other:?}"),
    }
}

#[test]
fn options_need_neither_equals_nor_commas() {
    let options = ClusterOptions {
        node_count: Some(2),
        hardware_instance: Some("embedded".to_owned()),
        wlm_profile: Some("default".to_owned()),
        auto_suspend: Some(Some(60)),
        auto_resume: Some(false),
        max_spill_pct: Some(None),
        max_cache_pct: Some(Some(-5)),
    };
    let expected = |if_exists| ClusterStatement::Create { name: "Etl".to_owned(), options: options.clone(), if_exists };
    let with_signs = "(NODE_COUNT = 2, HARDWARE_INSTANCE = 'embedded', WLM_PROFILE = default, AUTO_SUSPEND = 60, \
                      AUTO_RESUME = FALSE, MAX_SPILL_PCT = NULL, MAX_CACHE_PCT = -5)";
    let without = with_signs.replace(['=', ','], " ");
    assert_eq!(one(&format!("CREATE CLUSTER \"Etl\" WITH {with_signs}")), expected(IfExists::Refuse));
    assert_eq!(one(&format!("CREATE CLUSTER IF NOT EXISTS 'Etl' {without}")), expected(IfExists::Keep));
    assert_eq!(one(&format!("CREATE OR REPLACE CLUSTER \"Etl\" {without}")), expected(IfExists::Replace));
    let plain = ClusterStatement::Create {
        name: "etl".to_owned(),
        options: ClusterOptions::default(),
        if_exists: IfExists::Refuse,
    };
    assert_eq!(one("CREATE CLUSTER Etl"), plain);
}

#[test]
fn clusters_are_altered_dropped_and_used() {
    let alter = |sql: &str| match one(sql) {
        ClusterStatement::Alter { action, name } => (name, action),
        other => panic!("{sql} is {other:?}"),
    };
    let (name, action) = alter("ALTER CLUSTER default SET (NODE_COUNT 4)");
    assert_eq!(name, "default");
    assert_eq!(action, AlterClusterAction::Set(ClusterOptions { node_count: Some(4), ..ClusterOptions::default() }));
    assert_eq!(alter("ALTER CLUSTER a RENAME TO b").1, AlterClusterAction::RenameTo("b".to_owned()));
    assert_eq!(alter("ALTER CLUSTER a SUSPEND").1, AlterClusterAction::Suspend);
    assert_eq!(alter("ALTER CLUSTER a RESUME").1, AlterClusterAction::Resume);
    let names = vec!["a".to_owned(), "B".to_owned()];
    assert_eq!(one("DROP CLUSTER IF EXISTS a, \"B\""), ClusterStatement::Drop { names, if_exists: true });
    assert_eq!(one("USE CLUSTER etl"), ClusterStatement::Use(Some("etl".to_owned())));
    assert_eq!(one("USE CLUSTER DEFAULT"), ClusterStatement::Use(None));
    assert_eq!(one("USE CLUSTER \"default\""), ClusterStatement::Use(Some("default".to_owned())));
}

#[test]
fn privileges_are_of_clusters_alone() {
    let (all, both) = (vec![Privilege::Usage, Privilege::Operate], vec!["a".to_owned(), "b".to_owned()]);
    assert_eq!(granted("GRANT ALL PRIVILEGES ON CLUSTER a, b TO ana"), (all.clone(), both.clone(), 1, false));
    assert_eq!(granted("REVOKE USAGE, OPERATE ON CLUSTER a, b FROM PUBLIC, ana RESTRICT"), (all, both, 2, true));
    let to = vec![GranteeSpec::Public, GranteeSpec::Role(RoleSpec::CurrentUser)];
    let (privileges, clusters) = (vec![Privilege::Usage], vec!["a".to_owned()]);
    let expected = ClusterStatement::Grant { privileges, clusters, to, revoke: false };
    assert_eq!(one("GRANT USAGE ON CLUSTER a TO PUBLIC, CURRENT_USER"), expected);
    for sql in ["GRANT SELECT ON t TO ana", "REVOKE ana FROM bob", "GRANT USAGE ON SCHEMA s TO ana"] {
        let refused = parse(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}")).remove(0);
        assert!(matches!(refused.statement, Statement::Unsupported(_)), "{sql}");
    }
}

#[test]
fn a_role_has_a_list_of_clusters() {
    let set = |clusters: &[&str]| ClusterStatement::SetDefault {
        role: role("ana"),
        clusters: clusters.iter().map(|&name| name.to_owned()).collect(),
    };
    assert_eq!(one("ALTER ROLE ana SET DEFAULT_CLUSTER = 'a, b'"), set(&["a", "b"]));
    assert_eq!(one("ALTER USER ana SET default_cluster TO etl, \"B,b\", default"), set(&["etl", "B,b", "default"]));
    for none in ["SET DEFAULT_CLUSTER TO DEFAULT", "SET DEFAULT_CLUSTER = ''", "RESET DEFAULT_CLUSTER"] {
        assert_eq!(one(&format!("ALTER ROLE ana {none}")), set(&[]), "{none}");
    }
}

#[test]
fn mistakes_are_told_with_their_place() {
    let wrong =
        |sql: &str, message: &str, position| assert_eq!(error(sql), (message.to_owned(), Some(position)), "{sql}");
    wrong("CREATE CLUSTER c (NODES = 1)", "unrecognized cluster option \"nodes\"", 19);
    wrong("CREATE CLUSTER c (NODE_COUNT 1 NODE_COUNT 2)", "conflicting or redundant options", 32);
    wrong("CREATE CLUSTER c (NODE_COUNT = 1.5)", "syntax error at or near \"1.5\"", 32);
    wrong("CREATE CLUSTER c (AUTO_RESUME = 1)", "syntax error at or near \"1\"", 33);
    wrong("CREATE CLUSTER c ()", "syntax error at or near \")\"", 19);
    wrong("ALTER CLUSTER c WAKE", "syntax error at or near \"WAKE\"", 17);
    wrong("USE DATABASE c", "syntax error at or near \"USE\"", 1);
    wrong("EXPLAIN DROP CLUSTER c", "syntax error at or near \"DROP\"", 9);
}
