use std::time::Duration;

use super::*;

fn row(query_id: i64) -> LogRow {
    LogRow {
        started_us: 0,
        query_id,
        pid: 1,
        role: "ana".to_owned(),
        database: "kiln".to_owned(),
        application_name: String::new(),
        cluster: None,
        worker: None,
        query: String::new(),
        phases: Default::default(),
        thread_time: Duration::ZERO,
        memory_bytes_peak: 0,
        outcome: "DONE",
        sqlstate: None,
    }
}

#[test]
fn the_newest_are_kept() {
    let log = QueryLog::new(3);
    (0..10).for_each(|id| log.push(row(id)));
    let ids: Vec<i64> = log.rows().iter().map(|row| row.query_id).collect();
    assert_eq!(ids, [7, 8, 9]);
    let none = QueryLog::new(0);
    none.push(row(1));
    assert!(none.rows().is_empty());
}

#[test]
fn passwords_are_not_kept() {
    let kept = |query| without_password(query);
    assert_eq!(kept("CREATE ROLE ana LOGIN PASSWORD 'secret' CREATEDB"), "CREATE ROLE ana LOGIN PASSWORD …");
    assert_eq!(kept(" alter user ana with encrypted password'x'"), " alter user ana with encrypted password …");
    assert_eq!(kept("-- x\nALTER USER ana PASSWORD 'x'"), "-- x\nALTER USER ana PASSWORD …");
    assert_eq!(kept("SELECT 1; ALTER ROLE ana PASSWORD 'x'"), "SELECT 1; ALTER ROLE ana PASSWORD …");
    // Cut though it is harmless: what is not certain is not kept.
    assert_eq!(kept("CREATE TABLE u (user text, password text)"), "CREATE TABLE u (user text, password …");
    for harmless in ["SELECT password FROM users", "CREATE TABLE u (password_hash text)", "ALTER ROLE ä CREATEDB", ""]
    {
        assert_eq!(kept(harmless), harmless);
    }
}
