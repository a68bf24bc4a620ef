use super::*;

fn of(sql: &str) -> [Vec<String>; 4] {
    let effects = effects(&Statement::new(sql));
    [effects.defines, effects.columns, effects.writes, effects.drops]
}

fn list(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn created_objects_are_defined() {
    for (sql, name) in [
        ("CREATE TABLE IF NOT EXISTS s.T (a int)", "t"),
        ("CREATE OR REPLACE TEMP VIEW \"V\" AS SELECT 1", "V"),
        ("CREATE MATERIALIZED VIEW m AS SELECT 1", "m"),
        ("CREATE UNIQUE INDEX CONCURRENTLY i ON t (a)", "i"),
        ("CREATE FUNCTION f(a int) RETURNS int LANGUAGE sql AS 'SELECT 1'", "f"),
        ("CREATE TYPE e AS ENUM ('a')", "e"),
        ("CREATE OPERATOR === (LEFTARG = int)", "==="),
        ("CREATE TEXT SEARCH CONFIGURATION c (COPY = english)", "c"),
        ("CREATE TABLE data (class int)", "data"),
        ("PREPARE q AS SELECT 1", "q"),
        ("SELECT 1 AS a INTO TEMP TABLE n", "n"),
    ] {
        assert_eq!(of(sql)[0], list(&[name]), "{sql}");
    }
}

#[test]
fn an_index_without_a_name_defines_nothing() {
    assert_eq!(of("CREATE INDEX ON t (a)")[0], list(&[]));
}

#[test]
fn children_and_triggers_change_their_tables() {
    assert_eq!(of("CREATE TABLE c (b int) INHERITS (p, s.q)")[2], list(&["p", "q"]));
    assert_eq!(of("CREATE TABLE c PARTITION OF p FOR VALUES IN (1)")[2], list(&["p"]));
    assert_eq!(of("CREATE TRIGGER x BEFORE INSERT ON t EXECUTE FUNCTION f()")[2], list(&["t"]));
}

#[test]
fn changes_of_rows_write_their_tables() {
    for sql in [
        "INSERT INTO s.t SELECT 1",
        "UPDATE ONLY t SET a = 1",
        "DELETE FROM t",
        "MERGE INTO t USING u ON true WHEN MATCHED THEN DELETE",
        "WITH x AS (UPDATE t SET a = 1 RETURNING a) SELECT * FROM x",
        "COPY t (a) FROM stdin",
        "TRUNCATE TABLE t",
    ] {
        assert_eq!(of(sql), [Vec::new(), Vec::new(), list(&["t"]), Vec::new()], "{sql}");
    }
    assert_eq!(of("SELECT 1 FROM t FOR UPDATE"), [const { Vec::<String>::new() }; 4]);
}

#[test]
fn alterations_define_what_they_rename_and_add() {
    assert_eq!(of("ALTER TABLE IF EXISTS t RENAME TO u"), [list(&["u"]), list(&[]), list(&["t"]), list(&[])]);
    assert_eq!(of("ALTER TABLE t RENAME COLUMN a TO b")[1], list(&["b"]));
    assert_eq!(of("ALTER TABLE t ADD COLUMN a int, ADD b int, ADD CHECK (a > 0)")[1], list(&["a", "b"]));
    assert_eq!(of("DROP TABLE IF EXISTS a, s.b CASCADE")[3], list(&["a", "b"]));
}
