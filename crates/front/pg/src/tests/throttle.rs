use catalog::CatalogState;
use maintenance::FreshLimits;

use super::TestServer;

/// Number of unflushed rows of a table at which writers wait.
const ROWS: usize = 20;
/// Upper bound of the rows inserted between two checks of the limit.
const ROWS_BETWEEN: usize = 200;

fn fresh(state: &CatalogState) -> usize {
    state.tables().map(|table| state.rows(table.oid).fresh.len()).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn writers_wait_for_settling_and_readers_do_not() {
    let door = TestServer::start().await;
    door.instance.execution.throttle().set_limits(FreshLimits { rows: ROWS as u64, bytes: u64::MAX });
    let transactions = &door.instance.transactions;
    let mut writer = door.client().await;
    writer.query("create table t (n int)").await;
    writer.query("set statement_timeout = '1s'").await;
    // Nothing is flushed in the background here.
    let mut stopped = None;
    for _ in 0..ROWS + ROWS_BETWEEN {
        let said = writer.query("insert into t values (1)").await;
        stopped = said.into_iter().find(|said| said.kind == 'E');
        if stopped.is_some() {
            break;
        }
    }
    assert_eq!(stopped.and_then(|said| said.field('C')).as_deref(), Some("57014"));
    let there = fresh(&transactions.current().state);
    assert!((ROWS..ROWS + ROWS_BETWEEN).contains(&there), "{there} rows for a limit of {ROWS}");

    writer.query("set statement_timeout = 0").await;
    let waiting = tokio::spawn(async move { writer.query("insert into t values (2)").await });
    door.sleep(300).await;
    let mut reader = door.client().await;
    let counted = reader.query("select count(*) from t").await;
    let counted = counted.iter().find(|said| said.kind == 'D').and_then(|said| said.values()[0].clone());
    assert_eq!(counted.as_deref(), Some(there.to_string().as_bytes()));
    let shown = reader
        .query("select wait_event_type || ' ' || wait_event from pg_stat_activity where pid <> pg_backend_pid()")
        .await;
    let shown = shown.iter().find(|said| said.kind == 'D').and_then(|said| said.values()[0].clone());
    assert_eq!(shown.as_deref(), Some(&b"IPC SettleFreshRows"[..]));
    let deleted = reader.query("delete from t where n = 0").await;
    assert!(deleted.iter().any(|said| said.text() == "DELETE 0"), "what adds nothing is not slowed");
    assert!(!waiting.is_finished());

    let table = transactions.current().state.tables().next().map(|table| table.oid).unwrap();
    door.instance.execution.maintenance().flush(table).await.unwrap();
    assert!(waiting.await.unwrap().iter().any(|said| said.text() == "INSERT 0 1"));
    assert_eq!(fresh(&transactions.current().state), 1);
}
