//! ALTER TABLE.

use catalog::{Change, TableOrder};
use types::{ColumnId, Condition, SqlType};

use super::database::{Database, check_text};

#[test]
fn added_columns_get_new_ids_and_answer_for_old_rows() {
    let mut database = Database::with(&["CREATE TABLE t (a int, b int)", "ALTER TABLE t DROP COLUMN b"]);
    database.load("t", 0);
    database.run("ALTER TABLE t ADD COLUMN c text DEFAULT 'x', ADD d date NOT NULL DEFAULT '2020-01-02'");
    let table = database.table("t");
    assert_eq!(table.columns.iter().map(|column| column.id.0).collect::<Vec<_>>(), [1, 3, 4]);
    assert_eq!(table.columns[1].missing.as_deref(), Some("x"));
    assert_eq!(table.columns[2].missing.as_deref(), Some("2020-01-02"));
    let error = database.refusal("ALTER TABLE t ADD COLUMN e int NOT NULL");
    assert_eq!(error.condition, Condition::NotNullViolation);
    assert_eq!(error.message, "column \"e\" of relation \"t\" contains null values");
    assert!(database.run("ALTER TABLE t ADD COLUMN e uuid DEFAULT gen_random_uuid()").backfill.is_some());
    assert_eq!(database.refusal("ALTER TABLE t ADD a int").message, "column \"a\" of relation \"t\" already exists");
    assert_eq!(
        database.notices("ALTER TABLE t ADD COLUMN IF NOT EXISTS a int"),
        ["column \"a\" of relation \"t\" already exists, skipping"]
    );
}

#[test]
fn new_constraints_are_asked_of_the_rows() {
    let mut database = Database::with(&["CREATE TABLE t (a int, b int)"]);
    assert!(database.run("ALTER TABLE t ADD CHECK (a > 0), ALTER b SET NOT NULL").checks.is_empty(), "no rows");
    database.load("t", 1);
    let plan = database.run("ALTER TABLE t ADD CHECK (a < b), ALTER COLUMN a SET NOT NULL");
    let violations: Vec<_> = plan.checks.iter().map(|check| check.violation.message.as_str()).collect();
    assert_eq!(
        violations,
        [
            "column \"a\" of relation \"t\" contains null values",
            "check constraint \"t_check\" of relation \"t\" is violated by some row"
        ]
    );
    assert_eq!(plan.checks[1].violation.constraint.as_deref(), Some("t_check"));
    assert_eq!(database.constraints("t"), ["t_a_check", "t_check"]);
}

#[test]
fn shards_without_null_need_not_be_read() {
    let mut database = Database::with(&["CREATE TABLE t (a int)"]);
    database.load("t", 0);
    assert!(database.run("ALTER TABLE t ADD PRIMARY KEY (a)").checks.is_empty());
    assert!(database.table("t").columns[0].not_null);
    assert_eq!(database.refusal("ALTER TABLE t ALTER a DROP NOT NULL").message, "column \"a\" is in a primary key");
}

#[test]
fn a_column_goes_with_what_depends_on_it_alone() {
    let mut database = Database::with(&[
        "CREATE TABLE p (id int PRIMARY KEY, x int UNIQUE, y int CHECK (y > x))",
        "CREATE TABLE r (a int REFERENCES p (x))",
        "CREATE VIEW v AS SELECT x FROM p",
        "CREATE VIEW w AS SELECT x + 1 AS more FROM v",
    ]);
    let error = database.refusal("ALTER TABLE p DROP COLUMN x");
    assert_eq!(error.condition, Condition::DependentObjectsStillExist);
    assert_eq!(error.message, "cannot drop column x of table p because other objects depend on it");
    assert_eq!(
        error.detail.as_deref(),
        Some(
            "constraint r_a_fkey on table r depends on column x of table p\n\
             view v depends on column x of table p\nview w depends on view v"
        )
    );
    assert_eq!(error.hint.as_deref(), Some("Use DROP ... CASCADE to drop the dependent objects too."));
    let plan = database.run("ALTER TABLE p DROP COLUMN x CASCADE");
    assert_eq!(plan.notices[0].message, "drop cascades to 3 other objects");
    assert_eq!(database.constraints("p"), ["p_pkey"]);
    assert_eq!(database.constraints("r"), Vec::<String>::new());
    assert_eq!(database.state.views().count(), 0);
    assert_eq!(
        database.notices("ALTER TABLE p DROP COLUMN IF EXISTS x"),
        ["column \"x\" of relation \"p\" does not exist, skipping"]
    );
}

#[test]
fn a_key_goes_with_the_references_to_it() {
    let mut database = Database::with(&["CREATE TABLE p (id int PRIMARY KEY)", "CREATE TABLE r (a int REFERENCES p)"]);
    let error = database.refusal("ALTER TABLE p DROP CONSTRAINT p_pkey");
    assert_eq!(error.message, "cannot drop constraint p_pkey on table p because other objects depend on it");
    assert_eq!(error.detail.as_deref(), Some("constraint r_a_fkey on table r depends on index p_pkey"));
    assert_eq!(
        database.notices("ALTER TABLE p DROP CONSTRAINT p_pkey CASCADE"),
        ["drop cascades to constraint r_a_fkey on table r"]
    );
    assert!(database.constraints("r").is_empty());
}

#[test]
fn renamed_columns_are_renamed_in_checks_and_views() {
    let mut database = Database::with(&[
        "CREATE TABLE t (a int CHECK (a > 0 AND a < 100), b int)",
        "CREATE VIEW v AS SELECT a, b AS c FROM t AS other WHERE a > 1 ORDER BY a",
    ]);
    database.run("ALTER TABLE t RENAME COLUMN a TO \"Number\"");
    assert_eq!(check_text(&database.table("t").constraints[0]), "\"Number\" > 0 AND \"Number\" < 100");
    let view = database.view("v");
    assert_eq!(view.columns[0].0, "a", "the view's own names stay");
    assert!(view.definition.contains("\"Number\" > 1"), "{}", view.definition);
    database.run("CREATE VIEW w AS SELECT * FROM v");
    database.run("ALTER VIEW v RENAME COLUMN c TO d");
    database.run("CREATE OR REPLACE VIEW x AS SELECT c FROM w");
    let error = database.refusal("ALTER TABLE t RENAME b TO \"Number\"");
    assert_eq!(error.message, "column \"Number\" of relation \"t\" already exists");
}

#[test]
fn renamed_tables_are_renamed_in_views() {
    let mut database = Database::with(&[
        "CREATE SCHEMA s",
        "CREATE TABLE t (a int)",
        "CREATE VIEW v AS SELECT t.a FROM t",
        "CREATE VIEW w AS SELECT a FROM v",
        "ALTER TABLE t RENAME TO u",
        "ALTER TABLE u SET SCHEMA s",
        "ALTER VIEW v RENAME TO v2",
        "ALTER SCHEMA s RENAME TO \"S 2\"",
    ]);
    assert!(database.view("v2").definition.contains("\"S 2\".u"), "{}", database.view("v2").definition);
    // The views keep their meaning.
    database.run("CREATE VIEW x AS SELECT a FROM w");
    database.run("CREATE TABLE t (b int)");
    assert_eq!(database.refusal("ALTER TABLE t RENAME TO w").message, "relation \"w\" already exists");
}

#[test]
fn types_change_where_shards_stay_readable() {
    let mut database = Database::with(&["CREATE TABLE t (a varchar(5) DEFAULT 'x', b int)"]);
    database.load("t", 0);
    database.run("ALTER TABLE t ALTER a TYPE varchar(10)");
    database.run("ALTER TABLE t ALTER COLUMN a SET DATA TYPE text");
    let error = database.refusal("ALTER TABLE t ALTER b TYPE text");
    assert_eq!(error.condition, Condition::FeatureNotSupported);
    database.run("TRUNCATE t");
    let error = database.refusal("ALTER TABLE t ALTER a TYPE int");
    assert_eq!(error.message, "column \"a\" cannot be cast automatically to type integer");
    assert_eq!(error.hint.as_deref(), Some("You might need to specify \"USING a::integer\"."));
    database.run("ALTER TABLE t ALTER a DROP DEFAULT, ALTER a TYPE int USING a::int");
    assert_eq!(database.table("t").columns[0].sql_type, SqlType::Int4);
    database.run("CREATE VIEW v AS SELECT a FROM t");
    let error = database.refusal("ALTER TABLE t ALTER a TYPE bigint");
    assert_eq!(error.message, "cannot alter type of a column used by a view or rule");
    assert_eq!(error.detail.as_deref(), Some("rule _RETURN on view v depends on column \"a\""));
}

#[test]
fn what_is_not_there_cannot_be_altered() {
    let mut database = Database::with(&["CREATE TABLE t (a int)", "CREATE VIEW v AS SELECT a FROM t"]);
    let cases = [
        ("ALTER TABLE nowhere ADD b int", "relation \"nowhere\" does not exist"),
        ("ALTER TABLE t DROP COLUMN b", "column \"b\" of relation \"t\" does not exist"),
        ("ALTER TABLE t ALTER b SET DEFAULT 1", "column \"b\" of relation \"t\" does not exist"),
        ("ALTER TABLE t RENAME b TO c", "column \"b\" does not exist"),
        ("ALTER TABLE t DROP CONSTRAINT c", "constraint \"c\" of relation \"t\" does not exist"),
        ("ALTER TABLE t RENAME CONSTRAINT c TO d", "constraint \"c\" for table \"t\" does not exist"),
        ("ALTER TABLE t OWNER TO nobody", "role \"nobody\" does not exist"),
        ("ALTER TABLE t SET SCHEMA nowhere", "schema \"nowhere\" does not exist"),
        ("ALTER TABLE pg_class ADD b int", "permission denied: \"pg_class\" is a system catalog"),
        ("ALTER TABLE v ADD b int", "ALTER action ADD COLUMN cannot be performed on relation \"v\""),
        ("ALTER VIEW t RENAME TO u", "\"t\" is not a view"),
    ];
    for (sql, message) in cases {
        assert_eq!(database.refusal(sql).message, message, "{sql}");
    }
    assert_eq!(
        database.notices("ALTER TABLE IF EXISTS nowhere ADD b int"),
        ["relation \"nowhere\" does not exist, skipping"]
    );
}

#[test]
fn rows_are_placed_anew() {
    let mut database = Database::with(&["CREATE TABLE t (a int, b int)", "ALTER TABLE t SET SORT ON (b)"]);
    assert_eq!(database.table("t").order_columns(), [ColumnId(2)]);
    let error = database.refusal("ALTER TABLE t DROP COLUMN b");
    assert_eq!(error.message, "cannot drop column \"b\" named in SORT or CLUSTER of table \"t\"");
    database.run("ALTER TABLE t SET WITHOUT SORT");
    assert_eq!(database.table("t").order, TableOrder::None);
}

#[test]
fn an_alteration_is_one_change() {
    let mut database = Database::with(&["CREATE TABLE t (a int, b int)"]);
    let plan = database.run("ALTER TABLE t ADD c int, DROP a, ALTER b SET DEFAULT 7, ADD CHECK (b < c)");
    assert_eq!(plan.command_tag, "ALTER TABLE");
    assert!(matches!(plan.changes.as_slice(), [Change::PutTable(_)]));
}
