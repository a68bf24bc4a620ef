//! CREATE INDEX, DROP INDEX, enforced constraints, and storage parameters of tables.

use catalog::Storage;
use types::Condition;

use super::database::Database;

fn enforced(database: &Database, table: &str) -> Vec<String> {
    let table = database.table(table);
    table.constraints.iter().filter(|it| it.enforced).map(|it| it.name.clone()).collect()
}

#[test]
fn constraints_are_enforced_where_it_is_said_and_in_tables_of_rows() {
    let mut database = Database::with(&[
        "CREATE TABLE p (id int PRIMARY KEY ENFORCED, u int UNIQUE, c int CHECK (c > 0))",
        "CREATE TABLE r (id int PRIMARY KEY, u int UNIQUE NOT ENFORCED, p int REFERENCES p) WITH (storage = row)",
        "CREATE TABLE h (a int, CONSTRAINT k UNIQUE (a) ENFORCED, FOREIGN KEY (a) REFERENCES r ENFORCED) \
         WITH (storage='hybrid')",
    ]);
    assert_eq!(enforced(&database, "p"), ["p_c_check", "p_pkey"]);
    assert_eq!(enforced(&database, "r"), ["r_pkey", "r_p_fkey"]);
    assert_eq!(enforced(&database, "h"), ["k", "h_a_fkey"]);
    assert_eq!([database.table("p"), database.table("r")].map(|it| it.storage), [Storage::Hybrid, Storage::Row]);
    let error = database.refusal("CREATE TABLE f (u int REFERENCES p (u) ENFORCED)");
    assert_eq!(error.condition, Condition::InvalidForeignKey);
    assert!(error.detail.unwrap().contains("declared but not enforced"));
    assert_eq!(
        database.refusal("CREATE TABLE x (a int) WITH (storage = heap)").condition,
        Condition::InvalidParameterValue
    );
    assert_eq!(database.refusal("CREATE TABLE x (a int NOT NULL ENFORCED)").condition, Condition::SyntaxError);
}

#[test]
fn what_is_enforced_later_is_asked_of_the_rows() {
    let mut database =
        Database::with(&["CREATE TABLE p (id int PRIMARY KEY ENFORCED)", "CREATE TABLE f (a int, b int)"]);
    let plan = database.run("ALTER TABLE f ADD UNIQUE (a, b) ENFORCED, ADD FOREIGN KEY (a) REFERENCES p ENFORCED");
    let found: Vec<Condition> = plan.checks.iter().map(|check| check.violation.condition).collect();
    assert_eq!(found, [Condition::UniqueViolation, Condition::ForeignKeyViolation]);
    assert!(database.run("ALTER TABLE f ADD UNIQUE (b, a)").checks.is_empty());
    assert_eq!(database.run("CREATE UNIQUE INDEX ON f (b)").checks.len(), 1);
}

#[test]
fn constraints_are_enforced_later_and_no_longer() {
    let mut database = Database::with(&[
        "CREATE TABLE p (id int PRIMARY KEY, c int CHECK (c > 0))",
        "CREATE TABLE f (a int REFERENCES p)",
    ]);
    let refused = database.refusal("ALTER TABLE f ALTER CONSTRAINT f_a_fkey ENFORCED");
    assert_eq!(refused.condition, Condition::InvalidForeignKey);
    assert_eq!(database.run("ALTER TABLE p ALTER CONSTRAINT p_pkey ENFORCED").checks.len(), 1);
    assert_eq!(database.run("ALTER TABLE f ALTER CONSTRAINT f_a_fkey ENFORCED").checks.len(), 1);
    assert!(database.run("ALTER TABLE f ALTER CONSTRAINT f_a_fkey ENFORCED").checks.is_empty());
    let refused = database.refusal("ALTER TABLE p ALTER CONSTRAINT p_pkey NOT ENFORCED");
    assert_eq!(refused.condition, Condition::DependentObjectsStillExist);
    assert!(database.run("ALTER TABLE f ALTER CONSTRAINT f_a_fkey NOT ENFORCED").checks.is_empty());
    database.run("ALTER TABLE p ALTER CONSTRAINT p_pkey NOT ENFORCED");
    assert_eq!(enforced(&database, "p"), ["p_c_check"]);
    let refused = database.refusal("ALTER TABLE p ALTER CONSTRAINT p_c_check NOT ENFORCED");
    assert_eq!(refused.condition, Condition::FeatureNotSupported);
    assert_eq!(database.refusal("ALTER TABLE p ALTER CONSTRAINT x ENFORCED").condition, Condition::UndefinedObject);
}

#[test]
fn indexes_come_and_go() {
    let mut database = Database::with(&[
        "CREATE TABLE t (a int, b text, c json)",
        "CREATE INDEX ON t (a, b)",
        "CREATE UNIQUE INDEX IF NOT EXISTS named ON t USING btree (b ASC)",
    ]);
    let shown = |database: &Database| {
        let table = database.table("t");
        table.indexes.iter().map(|it| (it.name.clone(), it.columns.len(), it.unique)).collect::<Vec<_>>()
    };
    assert_eq!(shown(&database), [("t_a_b_idx".to_owned(), 2, false), ("named".to_owned(), 1, true)]);
    assert!(database.run("CREATE INDEX IF NOT EXISTS named ON t (a)").changes.is_empty());
    for (sql, condition) in [
        ("CREATE INDEX named ON t (a)", Condition::DuplicateTable),
        ("CREATE TABLE named (a int)", Condition::DuplicateTable),
        ("CREATE INDEX ON t (nosuch)", Condition::UndefinedColumn),
        ("CREATE INDEX ON t (c)", Condition::UndefinedObject),
        ("CREATE INDEX ON nosuch (c)", Condition::UndefinedTable),
        ("DROP INDEX nosuch", Condition::UndefinedObject),
        ("DROP INDEX t", Condition::WrongObjectType),
        ("DROP TABLE named", Condition::WrongObjectType),
    ] {
        assert_eq!(database.refusal(sql).condition, condition, "{sql}");
    }
    database.run("CREATE TABLE copied (LIKE t INCLUDING INDEXES)");
    let copied = database.table("copied").indexes.iter().map(|it| it.name.clone()).collect::<Vec<_>>();
    assert_eq!(copied, ["copied_a_b_idx", "copied_b_idx"]);
    database.run("DROP INDEX t_a_b_idx");
    database.run("DROP INDEX IF EXISTS t_a_b_idx");
    assert_eq!(shown(&database).len(), 1);
    database.run("CREATE TABLE f (b text REFERENCES t (b) ENFORCED)");
    assert_eq!(database.refusal("DROP INDEX named").condition, Condition::DependentObjectsStillExist);
    database.run("DROP TABLE f");
    database.run("ALTER TABLE t DROP COLUMN b");
    assert!(shown(&database).is_empty());
}
