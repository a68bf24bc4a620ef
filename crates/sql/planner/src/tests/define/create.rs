//! CREATE SCHEMA and CREATE TABLE.

use catalog::{ConstraintKind, Distribution, TableOrder};
use types::{ColumnId, Condition, SqlType};

use super::database::{Database, check_text};

#[test]
fn columns_have_their_types_defaults_and_nullability() {
    let mut database = Database::new();
    database.run(
        "CREATE TABLE t (a int PRIMARY KEY, b varchar(20) DEFAULT 'x' NOT NULL, c numeric(12,2) DEFAULT -1, \
         d timestamptz DEFAULT now(), e text[] DEFAULT NULL, f char(3), g jsonb)",
    );
    let table = database.table("t");
    let columns: Vec<_> = table
        .columns
        .iter()
        .map(|column| (column.id.0, column.name.as_str(), column.sql_type.to_string(), column.not_null))
        .collect();
    assert_eq!(
        columns,
        [
            (1, "a", "integer".to_owned(), true),
            (2, "b", "character varying(20)".to_owned(), true),
            (3, "c", "numeric(12,2)".to_owned(), false),
            (4, "d", "timestamp with time zone".to_owned(), false),
            (5, "e", "text[]".to_owned(), false),
            (6, "f", "character(3)".to_owned(), false),
            (7, "g", "jsonb".to_owned(), false),
        ]
    );
    let defaults: Vec<_> = table.columns.iter().map(|column| column.default.as_deref()).collect();
    let expected = [None, Some("'x'::character varying"), Some("'-1'::integer"), Some("now()"), None, None, None];
    assert_eq!(defaults, expected);
    assert_eq!(table.next_column, 8);
}

#[test]
fn constraints_get_postgres_names() {
    let mut database = Database::new();
    database.run("CREATE TABLE p (id int PRIMARY KEY, x int, y int, UNIQUE (x, y))");
    database.run(
        "CREATE TABLE t (a int CHECK (a > 0) CHECK (a < 9), b int UNIQUE, c int REFERENCES p, \
         CHECK (a < b), CONSTRAINT mine CHECK (b > 1), FOREIGN KEY (a, b) REFERENCES p (x, y), PRIMARY KEY (a, c))",
    );
    assert_eq!(database.constraints("p"), ["p_pkey", "p_x_y_key"]);
    assert_eq!(
        database.constraints("t"),
        ["t_a_check", "t_a_check1", "t_check", "mine", "t_pkey", "t_b_key", "t_c_fkey", "t_a_b_fkey"]
    );
    let table = database.table("t");
    assert_eq!(check_text(&table.constraints[2]), "a < b");
    assert_eq!(table.constraints[2].kind.columns(), [ColumnId(1), ColumnId(2)]);
    assert!(table.columns[0].not_null && table.columns[2].not_null && !table.columns[1].not_null);
}

#[test]
fn long_names_are_cut_so_that_the_label_stays() {
    let mut database = Database::new();
    let table = "t".repeat(50);
    let column = "c".repeat(40);
    database.run(&format!("CREATE TABLE {table} ({column} int UNIQUE)"));
    let name = &database.constraints(&table)[0];
    assert_eq!(name.len(), 63);
    assert!(name.ends_with("_key"), "{name}");
}

#[test]
fn a_foreign_key_needs_a_key_of_matching_columns_and_types() {
    let mut database = Database::with(&["CREATE TABLE p (id int PRIMARY KEY, x text, y int, UNIQUE (x, y))"]);
    let mut refused = |columns: &str| {
        let error = database.refusal(&format!("CREATE TABLE t ({columns})"));
        (error.condition, error.message)
    };
    assert_eq!(
        refused("a int REFERENCES p (y)"),
        (
            Condition::InvalidForeignKey,
            "there is no unique constraint matching given keys for referenced table \"p\"".to_owned()
        )
    );
    assert_eq!(
        refused("a int REFERENCES p (z)"),
        (Condition::UndefinedColumn, "column \"z\" referenced in foreign key constraint does not exist".to_owned())
    );
    assert_eq!(
        refused("a text REFERENCES p"),
        (Condition::DatatypeMismatch, "foreign key constraint \"t_a_fkey\" cannot be implemented".to_owned())
    );
    assert_eq!(
        refused("a text, b int, c int, FOREIGN KEY (a, b, c) REFERENCES p (x, y)").1,
        "number of referencing and referenced columns for foreign key disagree"
    );
    assert_eq!(
        refused("a int REFERENCES nowhere"),
        (Condition::UndefinedTable, "relation \"nowhere\" does not exist".to_owned())
    );
    assert_eq!(refused("a int REFERENCES t").1, "there is no primary key for referenced table \"t\"");
}

#[test]
fn a_table_may_refer_to_itself() {
    let mut database = Database::new();
    database.run("CREATE TABLE t (id int PRIMARY KEY, parent bigint REFERENCES t)");
    let table = database.table("t");
    let ConstraintKind::ForeignKey { references, referenced, .. } = &table.constraints[1].kind else {
        panic!("a foreign key")
    };
    assert_eq!((*references, referenced.as_slice()), (table.oid, [ColumnId(1)].as_slice()));
}

#[test]
fn what_contradicts_itself_is_refused() {
    let mut database = Database::with(&["CREATE TABLE old (a int)", "CREATE VIEW v AS SELECT 1 AS one"]);
    let cases = [
        ("CREATE TABLE t (a int, a text)", "column \"a\" specified more than once"),
        ("CREATE TABLE t (ctid int)", "column name \"ctid\" conflicts with a system column name"),
        ("CREATE TABLE old (b int)", "relation \"old\" already exists"),
        ("CREATE TABLE v (b int)", "relation \"v\" already exists"),
        (
            "CREATE TABLE t (a int PRIMARY KEY, b int PRIMARY KEY)",
            "multiple primary keys for table \"t\" are not allowed",
        ),
        ("CREATE TABLE t (a int, UNIQUE (b))", "column \"b\" named in key does not exist"),
        ("CREATE TABLE t (a int, UNIQUE (a, a))", "column \"a\" appears twice in unique constraint"),
        (
            "CREATE TABLE t (a int NULL NOT NULL)",
            "conflicting NULL/NOT NULL declarations for column \"a\" of table \"t\"",
        ),
        (
            "CREATE TABLE t (a int DEFAULT 1 DEFAULT 2)",
            "multiple default values specified for column \"a\" of table \"t\"",
        ),
        ("CREATE TABLE pg_catalog.t (a int)", "permission denied to create \"pg_catalog.t\""),
        ("CREATE TABLE nowhere.t (a int)", "schema \"nowhere\" does not exist"),
        ("CREATE TABLE t (a text COLLATE \"de_DE\")", "the collation \"de_DE\" is not supported"),
        ("CREATE TABLE t (a int COLLATE \"C\")", "collations are not supported by type integer"),
        ("CREATE TABLE t (a int) SORT ON (b)", "column \"b\" named in SORT does not exist"),
        (
            "CREATE TABLE t (a int, CONSTRAINT c CHECK (a > 0), CONSTRAINT c CHECK (a < 9))",
            "check constraint \"c\" already exists",
        ),
    ];
    for (sql, message) in cases {
        assert_eq!(database.refusal(sql).message, message, "{sql}");
    }
}

#[test]
fn a_table_has_at_most_1600_columns() {
    let mut database = Database::new();
    let columns: Vec<String> = (0..1_601).map(|number| format!("c{number} int")).collect();
    let error = database.refusal(&format!("CREATE TABLE t ({})", columns.join(", ")));
    assert_eq!(error.condition, Condition::TooManyColumns);
    assert_eq!(error.message, "tables can have at most 1600 columns");
}

#[test]
fn rows_are_placed_as_declared() {
    let mut database = Database::new();
    database.run("CREATE TABLE t (a int, b int) DISTRIBUTE ON (b) SORT ON (a DESC, b)");
    let table = database.table("t");
    assert_eq!(table.distribution, Distribution::On(vec![ColumnId(2)]));
    let TableOrder::Sort(keys) = &table.order else { panic!("sorted") };
    let keys: Vec<_> = keys.iter().map(|key| (key.column.0, key.descending, key.nulls_first)).collect();
    assert_eq!(keys, [(1, true, true), (2, false, false)]);
    database.run("CREATE TABLE u (a int, b int) DISTRIBUTE REPLICATE CLUSTER ON (b, a)");
    let table = database.table("u");
    assert_eq!(table.distribution, Distribution::Replicate);
    assert_eq!(table.order, TableOrder::Cluster(vec![ColumnId(2), ColumnId(1)]));
    let error = database.refusal("CREATE TABLE v (a int, b json) DISTRIBUTE ON (a, b)");
    assert_eq!(error.condition, Condition::UndefinedFunction);
    assert_eq!(error.message, "could not identify a hash function for type json");
}

#[test]
fn like_copies_what_including_asks_for() {
    let mut database = Database::with(&[
        "CREATE TABLE a (x int PRIMARY KEY, y text DEFAULT 'q' CHECK (y <> ''))",
        "COMMENT ON COLUMN a.y IS 'why'",
    ]);
    database.run("CREATE TABLE plain (z int, LIKE a)");
    let plain = database.table("plain");
    assert_eq!(plain.columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>(), ["z", "x", "y"]);
    assert!(plain.columns[1].not_null && plain.columns[2].default.is_none() && plain.constraints.is_empty());
    database.run("CREATE TABLE whole (z int, LIKE a INCLUDING ALL)");
    let whole = database.table("whole");
    assert_eq!(whole.columns[2].default.as_deref(), Some("'q'::text"));
    assert_eq!(whole.columns[2].comment.as_deref(), Some("why"));
    assert_eq!(database.constraints("whole"), ["a_y_check", "whole_pkey"]);
    assert_eq!(whole.constraints[0].kind.columns(), [ColumnId(3)]);
    assert_eq!(whole.constraints[1].kind.columns(), [ColumnId(2)]);
}

#[test]
fn if_not_exists_says_so() {
    let mut database = Database::with(&["CREATE TABLE t (a int)", "CREATE SCHEMA s"]);
    assert_eq!(database.notices("CREATE TABLE IF NOT EXISTS t (b text)"), ["relation \"t\" already exists, skipping"]);
    assert_eq!(database.notices("CREATE SCHEMA IF NOT EXISTS s"), ["schema \"s\" already exists, skipping"]);
    assert_eq!(database.table("t").columns[0].sql_type, SqlType::Int4);
}

#[test]
fn schemas_are_made_for_roles() {
    let mut database = Database::with(&["CREATE ROLE anna"]);
    database.run("CREATE SCHEMA AUTHORIZATION anna");
    let schema = std::sync::Arc::clone(database.state.schema_by_name("anna").expect("named after its owner"));
    assert_eq!(schema.owner, database.role("anna").oid);
    let cases = [
        ("CREATE SCHEMA anna", Condition::DuplicateSchema, "schema \"anna\" already exists"),
        ("CREATE SCHEMA pg_mine", Condition::ReservedName, "unacceptable schema name \"pg_mine\""),
        ("CREATE SCHEMA s AUTHORIZATION nobody", Condition::UndefinedObject, "role \"nobody\" does not exist"),
    ];
    for (sql, condition, message) in cases {
        let error = database.refusal(sql);
        assert_eq!((error.condition, error.message.as_str()), (condition, message), "{sql}");
    }
    database.set_role("anna");
    assert_eq!(database.refusal("CREATE SCHEMA other").message, "permission denied for database kiln");
    assert_eq!(database.refusal("CREATE TABLE public.t (a int)").message, "permission denied for schema public");
    database.run("CREATE TABLE t (a int)");
    assert_eq!(database.table("t").schema, schema.oid, "$user comes first in the search path");
}
