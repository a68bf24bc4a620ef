//! CREATE VIEW.

use types::{ColumnId, Condition};

use super::database::Database;

#[test]
fn a_view_keeps_what_it_reads() {
    let mut database = Database::with(&["CREATE TABLE t (a int, b text, c int)", "CREATE TABLE u (a int, d int)"]);
    database.run("CREATE VIEW v (x) AS SELECT t.a, b FROM t JOIN u USING (a) WHERE d > 1");
    let view = database.view("v");
    let (t, u) = (database.table("t").oid, database.table("u").oid);
    assert_eq!(view.columns.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["x", "b"]);
    assert_eq!(view.depends_on, [t, u]);
    assert_eq!(view.columns_used, [(t, ColumnId(1)), (t, ColumnId(2)), (u, ColumnId(1)), (u, ColumnId(2))]);
}

#[test]
fn a_star_is_written_out_and_the_search_path_forgotten() {
    let mut database = Database::with(&["CREATE TABLE t (a int)", "CREATE VIEW v AS SELECT * FROM t"]);
    database.run("ALTER TABLE t ADD COLUMN b int");
    database.settings.set("search_path", "nowhere").expect("a setting");
    database.run("CREATE VIEW public.w AS SELECT * FROM public.v");
    assert_eq!(database.view("w").columns.len(), 1);
}

#[test]
fn a_replacement_only_adds_columns() {
    let mut database = Database::with(&["CREATE TABLE t (a int, b text)", "CREATE VIEW v AS SELECT a, b FROM t"]);
    let cases = [
        ("SELECT a FROM t", "cannot drop columns from view"),
        ("SELECT a AS x, b FROM t", "cannot change name of view column \"a\" to \"x\""),
        ("SELECT b AS a, b FROM t", "cannot change data type of view column \"a\" from integer to text"),
    ];
    for (query, message) in cases {
        let error = database.refusal(&format!("CREATE OR REPLACE VIEW v AS {query}"));
        assert_eq!((error.condition, error.message.as_str()), (Condition::InvalidTableDefinition, message), "{query}");
    }
    let oid = database.view("v").oid;
    database.run("COMMENT ON VIEW v IS 'kept'");
    database.run("CREATE OR REPLACE VIEW v AS SELECT a, b, a + 1 AS c FROM t");
    let view = database.view("v");
    assert_eq!((view.oid, view.columns.len(), view.comment.as_deref()), (oid, 3, Some("kept")));
    assert_eq!(database.refusal("CREATE VIEW v AS SELECT 1 AS a").message, "relation \"v\" already exists");
    assert_eq!(database.refusal("CREATE OR REPLACE VIEW t AS SELECT 1 AS a").message, "\"t\" is not a view");
    let error = database.refusal("CREATE OR REPLACE VIEW v AS SELECT a, b, c FROM v");
    assert_eq!(error.message, "infinite recursion detected in rules for relation \"v\"");
}

#[test]
fn columns_have_one_name_each() {
    let mut database = Database::new();
    assert_eq!(
        database.refusal("CREATE VIEW v AS SELECT 1 AS a, 2 AS a").message,
        "column \"a\" specified more than once"
    );
    assert_eq!(
        database.refusal("CREATE VIEW v (a, b) AS SELECT 1").message,
        "CREATE VIEW specifies more column names than columns"
    );
    assert_eq!(database.refusal("CREATE VIEW v AS SELECT $1::int AS a").message, "there is no parameter $1");
}
