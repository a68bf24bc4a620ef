use super::*;

#[test]
fn only_an_order_outside_of_parentheses_orders_rows() {
    assert!(Statement::new("SELECT a FROM (SELECT 1 AS a) t ORDER BY a").has_order());
    assert!(!Statement::new("SELECT sum(a) OVER (ORDER BY a) FROM (SELECT 1 AS a ORDER BY 1) t").has_order());
    assert!(!Statement::new("SELECT 'ORDER BY 1' -- ORDER BY 1").has_order());
}

#[test]
fn copies_through_the_client_are_told_from_those_of_files() {
    let direction = |sql| Statement::new(sql).copy_direction();
    assert_eq!(direction("COPY t (a, b) FROM stdin WITH CSV"), Some(CopyDirection::FromClient));
    assert_eq!(direction("copy (SELECT 1) TO STDOUT"), Some(CopyDirection::ToClient));
    assert_eq!(direction("COPY t FROM '/stdin'"), None);
    assert_eq!(direction("SELECT 1 FROM stdin"), None);
}

#[test]
fn transaction_commands_are_found() {
    let command = |sql| Statement::new(sql).transaction_command();
    assert_eq!(command("START TRANSACTION READ ONLY"), Some(TransactionCommand::Begin));
    assert_eq!(command("end"), Some(TransactionCommand::Commit));
    assert_eq!(command("ROLLBACK WORK TO SAVEPOINT s"), Some(TransactionCommand::RollbackToSavepoint));
    assert_eq!(command("ROLLBACK AND CHAIN"), Some(TransactionCommand::Begin));
    assert_eq!(command("ROLLBACK AND NO CHAIN"), Some(TransactionCommand::Rollback));
    assert_eq!(command("ROLLBACK PREPARED 'x'"), None);
    assert_eq!(command("SELECT 1"), None);
}

#[test]
fn statements_that_change_something_are_no_reads() {
    assert!(Statement::new("WITH a AS (SELECT 1) SELECT * FROM a").is_read());
    assert!(!Statement::new("WITH a AS (DELETE FROM t RETURNING 1) SELECT * FROM a").is_read());
    assert!(!Statement::new("SELECT nextval('s')").is_read());
    assert!(!Statement::new("CREATE TABLE t ()").is_read());
}
