use super::*;

fn statements(sql: &str) -> Vec<&str> {
    split(sql).into_iter().map(|(_, statement)| statement).collect()
}

#[test]
fn semicolons_end_statements() {
    assert_eq!(statements("SELECT 1;; SELECT ';' ; -- SELECT 2;\n"), ["SELECT 1", "SELECT ';'"]);
    assert_eq!(split(" a; b"), [(1, "a"), (4, "b")]);
}

#[test]
fn semicolons_in_parentheses_and_bodies_end_nothing() {
    let rule = "CREATE RULE r AS ON INSERT TO t DO ALSO (SELECT 1; SELECT 2)";
    let function =
        "CREATE OR REPLACE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT CASE WHEN true THEN 1 END; SELECT 2; END";
    assert_eq!(statements(&format!("{rule}; {function}; SELECT 3")), [rule, function, "SELECT 3"]);
}

#[test]
fn transaction_blocks_are_statements_of_their_own() {
    assert_eq!(statements("BEGIN; SELECT 1; END; SELECT 2"), ["BEGIN", "SELECT 1", "END", "SELECT 2"]);
}
