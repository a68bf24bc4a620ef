//! DROP, TRUNCATE and COMMENT.

use catalog::Change;
use types::Condition;

use super::database::Database;

fn shop() -> Database {
    Database::with(&[
        "CREATE SCHEMA s",
        "CREATE TABLE p (id int PRIMARY KEY)",
        "CREATE TABLE r (a int REFERENCES p)",
        "CREATE VIEW v AS SELECT id FROM p",
        "CREATE VIEW s.w AS SELECT id FROM v",
    ])
}

#[test]
fn what_others_need_stays() {
    let mut database = shop();
    let error = database.refusal("DROP TABLE p");
    assert_eq!(error.condition, Condition::DependentObjectsStillExist);
    assert_eq!(error.message, "cannot drop table p because other objects depend on it");
    assert_eq!(
        error.detail.as_deref(),
        Some(
            "constraint r_a_fkey on table r depends on table p\nview v depends on table p\nview s.w depends on view v"
        )
    );
    let error = database.refusal("DROP TABLE p, r");
    assert_eq!(error.message, "cannot drop desired object(s) because other objects depend on them");
    let error = database.refusal("DROP SCHEMA s");
    assert_eq!(error.detail.as_deref(), Some("view s.w depends on schema s"));
}

#[test]
fn cascade_takes_it_along_and_says_so() {
    let mut database = shop();
    let plan = database.run("DROP TABLE p CASCADE");
    assert_eq!(plan.notices[0].message, "drop cascades to 3 other objects");
    assert_eq!(
        plan.notices[0].detail.as_deref(),
        Some("drop cascades to constraint r_a_fkey on table r\ndrop cascades to view v\ndrop cascades to view s.w")
    );
    assert!(database.constraints("r").is_empty() && database.state.views().count() == 0);
    let mut database = shop();
    assert_eq!(database.notices("DROP VIEW v CASCADE"), ["drop cascades to view s.w"]);
    assert_eq!(database.notices("DROP TABLE p, r"), Vec::<String>::new());
}

#[test]
fn a_missing_or_different_thing_is_named() {
    let mut database = shop();
    let cases = [
        ("DROP TABLE nothing", Condition::UndefinedTable, "table \"nothing\" does not exist"),
        ("DROP TABLE nowhere.t", Condition::UndefinedSchema, "schema \"nowhere\" does not exist"),
        ("DROP VIEW nothing", Condition::UndefinedTable, "view \"nothing\" does not exist"),
        ("DROP TABLE v", Condition::WrongObjectType, "\"v\" is not a table"),
        ("DROP VIEW p", Condition::WrongObjectType, "\"p\" is not a view"),
        ("DROP TABLE p_pkey", Condition::WrongObjectType, "\"p_pkey\" is not a table"),
        ("DROP SCHEMA nowhere", Condition::UndefinedSchema, "schema \"nowhere\" does not exist"),
        (
            "DROP SCHEMA pg_catalog",
            Condition::DependentObjectsStillExist,
            "cannot drop schema pg_catalog because it is required by the database system",
        ),
        (
            "DROP TABLE pg_class",
            Condition::InsufficientPrivilege,
            "permission denied: \"pg_class\" is a system catalog",
        ),
    ];
    for (sql, condition, message) in cases {
        let error = database.refusal(sql);
        assert_eq!((error.condition, error.message.as_str()), (condition, message), "{sql}");
    }
    assert_eq!(database.refusal("DROP TABLE v").hint.as_deref(), Some("Use DROP VIEW to remove a view."));
    assert_eq!(
        database.notices("DROP TABLE IF EXISTS nothing, nowhere.t"),
        ["table \"nothing\" does not exist, skipping", "schema \"nowhere\" does not exist, skipping"]
    );
}

#[test]
fn truncate_minds_references() {
    let mut database = shop();
    let error = database.refusal("TRUNCATE p");
    assert_eq!(error.message, "cannot truncate a table referenced in a foreign key constraint");
    assert_eq!(error.detail.as_deref(), Some("Table \"r\" references \"p\"."));
    let plan = database.run("TRUNCATE p, r, p");
    let (p, r) = (database.table("p").oid, database.table("r").oid);
    assert_eq!(plan.changes, [Change::RemoveAllRows { table: p }, Change::RemoveAllRows { table: r }]);
    assert_eq!(database.notices("TRUNCATE TABLE p CASCADE"), ["truncate cascades to table \"r\""]);
    assert_eq!(database.refusal("TRUNCATE v").message, "\"v\" is not a table");
}

#[test]
fn comments_come_and_go() {
    let mut database = shop();
    for on in [
        "TABLE p",
        "COLUMN p.id",
        "VIEW v",
        "COLUMN v.id",
        "SCHEMA s",
        "ROLE kiln",
        "DATABASE kiln",
        "CONSTRAINT p_pkey ON p",
    ] {
        database.run(&format!("COMMENT ON {on} IS 'about it'"));
    }
    assert_eq!(database.table("p").comment.as_deref(), Some("about it"));
    assert_eq!(database.table("p").columns[0].comment.as_deref(), Some("about it"));
    assert_eq!(database.table("p").constraints[0].comment.as_deref(), Some("about it"));
    assert_eq!(database.view("v").column_comments.len(), 1);
    database.run("COMMENT ON TABLE p IS NULL");
    database.run("COMMENT ON COLUMN v.id IS ''");
    assert!(database.table("p").comment.is_none() && database.view("v").column_comments.is_empty());
    assert_eq!(database.refusal("COMMENT ON TABLE v IS 'x'").message, "\"v\" is not a table");
    assert_eq!(
        database.refusal("COMMENT ON COLUMN p.x IS 'x'").message,
        "column \"x\" of relation \"p\" does not exist"
    );
}

#[test]
fn others_things_are_not_touched() {
    let mut database = shop();
    database.run("CREATE ROLE anna");
    database.set_role("anna");
    let cases = [
        ("DROP TABLE p", "must be owner of table p"),
        ("DROP VIEW v", "must be owner of view v"),
        ("DROP SCHEMA s", "must be owner of schema s"),
        ("ALTER TABLE p ADD x int", "must be owner of table p"),
        ("TRUNCATE p", "permission denied for table p"),
        ("COMMENT ON TABLE p IS 'mine'", "must be owner of table p"),
        ("ALTER SCHEMA s RENAME TO t", "must be owner of schema s"),
    ];
    for (sql, message) in cases {
        let error = database.refusal(sql);
        assert_eq!((error.condition, error.message.as_str()), (Condition::InsufficientPrivilege, message), "{sql}");
    }
}
