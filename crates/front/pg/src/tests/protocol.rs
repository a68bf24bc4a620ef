//! Tests of the order of messages in both protocols, as PostgreSQL 15 responds to the same bytes.

use super::TestServer;
use super::wire::{RawClient, ServerMessage, bind, close, describe, execute, flush, kinds, parse, sync};

/// Sends a batch and returns the messages up to ReadyForQuery.
async fn batch(wire: &mut RawClient, messages: &[bytes::BytesMut]) -> Vec<ServerMessage> {
    wire.send_raw(&messages.concat()).await;
    wire.until_ready().await
}

fn code(said: &[ServerMessage]) -> String {
    let error = said.iter().find(|said| said.kind == 'E').expect("an error");
    error.field('C').unwrap()
}

fn status(said: &[ServerMessage]) -> char {
    char::from(said.last().unwrap().body[0])
}

fn tags(said: &[ServerMessage]) -> Vec<String> {
    said.iter().filter(|said| said.kind == 'C').map(ServerMessage::text).collect()
}

fn rows(said: &[ServerMessage]) -> Vec<Vec<Option<String>>> {
    let text = |value: Option<bytes::Bytes>| value.map(|value| String::from_utf8(value.to_vec()).unwrap());
    let rows = said.iter().filter(|said| said.kind == 'D');
    rows.map(|row| row.values().into_iter().map(text).collect()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_of_one_string_are_answered_one_by_one() {
    let door = TestServer::start().await;
    let mut wire = door.client().await;
    let said = wire.query("select 1; select 'a', null; ").await;
    assert_eq!(kinds(&said), "TDCTDCZ");
    assert_eq!(tags(&said), ["SELECT 1", "SELECT 1"]);
    assert_eq!(rows(&said)[1], [Some("a".to_owned()), None]);
    // Statements before the failure have sent their results.
    let said = wire.query("select 1; select 1/0; select 3").await;
    assert_eq!(kinds(&said).replace("TE", "E"), "TDCEZ");
    assert_eq!((code(&said).as_str(), status(&said)), ("22012", 'I'));
    assert_eq!(kinds(&wire.query(" -- nothing").await), "IZ");
    let said = wire.query("selec 1").await;
    assert_eq!((kinds(&said).as_str(), code(&said).as_str()), ("EZ", "42601"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_batch_is_passed_over_up_to_sync() {
    let door = TestServer::start().await;
    let mut wire = door.client().await;
    let said = batch(
        &mut wire,
        &[parse("", "select 1/0", &[]), bind("", "", &[], &[]), execute("", 0), parse("x", "select 1", &[]), sync()],
    )
    .await;
    assert_eq!((code(&said).as_str(), status(&said)), ("22012", 'I'));
    assert!(kinds(&said).ends_with("EZ"), "{}", kinds(&said));
    let said = batch(&mut wire, &[describe('S', "x"), sync()]).await;
    assert_eq!(code(&said), "26000");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_is_told_before_sync() {
    let door = TestServer::start().await;
    let mut wire = door.client().await;
    wire.send_raw(&[parse("", "selec 1", &[]), flush()].concat()).await;
    assert_eq!(wire.next().await.map(|said| said.kind), Some('E'));
    wire.send_raw(&sync()).await;
    assert_eq!(kinds(&wire.until_ready().await), "Z");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_that_are_taken_or_unknown() {
    let door = TestServer::start().await;
    let mut wire = door.client().await;
    let one = "select 1";
    let said = batch(&mut wire, &[parse("s", one, &[]), parse("s", one, &[]), sync()]).await;
    assert_eq!(code(&said), "42P05");
    for (messages, expected) in [
        (vec![bind("", "no", &[], &[])], "26000"),
        (vec![execute("no", 0)], "34000"),
        (vec![describe('P', "no")], "34000"),
        (vec![parse("", one, &[]), bind("p", "", &[], &[]), bind("p", "", &[], &[])], "42P03"),
        (vec![parse("", one, &[]), bind("", "", &[Some("1")], &[])], "08P01"),
        (vec![parse("", "select 1, 2, 3", &[]), bind("", "", &[], &[0, 1])], "08P01"),
        (vec![parse("", "select 1; select 2", &[])], "42601"),
        (vec![parse("", "select $1", &[4_000_000])], "42704"),
    ] {
        let said = batch(&mut wire, &[messages, vec![sync()]].concat()).await;
        assert_eq!((code(&said).as_str(), status(&said)), (expected, 'I'), "{said:?}");
    }
    // Closing an unknown name is no error; a statement that was prepared before a failure stays.
    let said = batch(&mut wire, &[close('S', "no"), close('P', "no"), describe('S', "s"), sync()]).await;
    assert_eq!(kinds(&said), "33tTZ");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_portal_gives_its_rows_in_parts() {
    let door = TestServer::start().await;
    let mut wire = door.client().await;
    let sql = "select * from (values (1), (2), (3)) as v (n) order by n";
    let said = batch(
        &mut wire,
        &[
            parse("", sql, &[]),
            bind("a", "", &[], &[]),
            bind("b", "", &[], &[]),
            describe('P', "a"),
            execute("a", 2),
            execute("b", 0),
            execute("a", 2),
            execute("a", 1),
            sync(),
        ],
    )
    .await;
    assert_eq!(kinds(&said), "122TDDsDDDCDCCZ");
    assert_eq!(tags(&said), ["SELECT 3", "SELECT 1", "SELECT 0"]);
    // The implicit transaction has ended, and its portals with it.
    assert_eq!(code(&batch(&mut wire, &[execute("a", 0), sync()]).await), "34000");
    // A negative limit means all rows, and a large limit costs nothing.
    for rows_max in [-1, i32::MAX] {
        let said =
            batch(&mut wire, &[parse("", sql, &[]), bind("", "", &[], &[]), execute("", rows_max), sync()]).await;
        assert_eq!(kinds(&said), "12DDDCZ");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_portal_of_a_block_goes_on_after_sync() {
    let door = TestServer::start().await;
    let mut wire = door.client().await;
    assert_eq!(status(&wire.query("begin").await), 'T');
    let sql = "select * from (values (1), (2), (3)) as v (n) order by n";
    let said = batch(&mut wire, &[parse("", sql, &[]), bind("a", "", &[], &[]), execute("a", 1), sync()]).await;
    assert_eq!((kinds(&said).as_str(), status(&said)), ("12DsZ", 'T'));
    let said = batch(&mut wire, &[execute("a", 0), close('P', "a"), sync()]).await;
    assert_eq!(kinds(&said), "DDC3Z");
    let said = wire.query("commit").await;
    assert_eq!((tags(&said), status(&said)), (vec!["COMMIT".to_owned()], 'I'));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_block_takes_nothing_but_its_end() {
    let door = TestServer::start().await;
    let mut wire = door.client().await;
    wire.query("begin").await;
    assert_eq!(status(&wire.query("select 1/0").await), 'E');
    let said = wire.query("select 1").await;
    assert_eq!((code(&said).as_str(), status(&said)), ("25P02", 'E'));
    let said = batch(&mut wire, &[parse("", "select 1", &[]), sync()]).await;
    assert_eq!((code(&said).as_str(), status(&said)), ("25P02", 'E'));
    let said = wire.query("commit").await;
    assert_eq!((tags(&said), status(&said)), (vec!["ROLLBACK".to_owned()], 'I'));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_statement_is_answered_as_such() {
    let door = TestServer::start().await;
    let mut wire = door.client().await;
    let messages =
        [parse("", "", &[]), describe('S', ""), bind("", "", &[], &[]), describe('P', ""), execute("", 0), sync()];
    assert_eq!(kinds(&batch(&mut wire, &messages).await), "1tn2nIZ");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_follow_the_transaction_and_are_reported() {
    let door = TestServer::start().await;
    let mut wire = door.client().await;
    let shown = async |wire: &mut RawClient| rows(&wire.query("show timezone").await)[0][0].clone().unwrap();
    assert_eq!(kinds(&wire.query("set timezone = 'Europe/Rome'").await), "CSZ");
    wire.query("begin; set timezone = 'Asia/Tokyo'").await;
    assert_eq!(shown(&mut wire).await, "Asia/Tokyo");
    assert_eq!(kinds(&wire.query("rollback").await), "CSZ");
    assert_eq!(shown(&mut wire).await, "Europe/Rome");
    wire.query("begin; set local timezone = 'Asia/Tokyo'; commit").await;
    assert_eq!(shown(&mut wire).await, "Europe/Rome");
    let said = wire.query("select set_config('timezone', 'UTC', false)").await;
    assert_eq!(kinds(&said), "TDCSZ");
    assert_eq!(shown(&mut wire).await, "UTC");
    // A warning, and no effect.
    assert_eq!(kinds(&wire.query("set local timezone = 'Asia/Tokyo'").await), "NCZ");
    assert_eq!(kinds(&wire.query("reset timezone").await), "CZ");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cursors() {
    let door = TestServer::start().await;
    let mut wire = door.client().await;
    assert_eq!(code(&wire.query("declare c cursor for select 1").await), "25P01");
    wire.query("begin; declare c cursor for values (1), (2), (3), (4), (5)").await;
    assert_eq!(tags(&wire.query("fetch 2 from c").await), ["FETCH 2"]);
    assert_eq!(tags(&wire.query("move c").await), ["MOVE 1"]);
    assert_eq!(rows(&wire.query("fetch c").await), [[Some("4".to_owned())]]);
    assert_eq!(tags(&wire.query("fetch all in c").await), ["FETCH 1"]);
    assert_eq!(tags(&wire.query("fetch c").await), ["FETCH 0"]);
    assert_eq!(code(&wire.query("fetch backward 1 from c").await), "55000");
    assert_eq!(kinds(&wire.query("rollback").await), "CZ");
    wire.query("begin; declare h cursor with hold for values (1), (2); commit").await;
    assert_eq!(tags(&wire.query("fetch all from h").await), ["FETCH 2"]);
    assert_eq!(tags(&wire.query("close h").await), ["CLOSE CURSOR"]);
    assert_eq!(code(&wire.query("fetch h").await), "34000");
    wire.query("begin; declare h cursor with hold for values (1), (2); rollback").await;
    assert_eq!(code(&wire.query("fetch h").await), "34000");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_prepared_by_sql() {
    let door = TestServer::start().await;
    let mut wire = door.client().await;
    assert_eq!(tags(&wire.query("prepare p (int) as select $1 + 1").await), ["PREPARE"]);
    assert_eq!(rows(&wire.query("execute p (41)").await), [[Some("42".to_owned())]]);
    assert_eq!(code(&wire.query("execute p").await), "42601");
    assert_eq!(code(&wire.query("prepare p as select 1").await), "42P05");
    assert_eq!(tags(&wire.query("deallocate p; deallocate all").await), ["DEALLOCATE", "DEALLOCATE ALL"]);
    assert_eq!(code(&wire.query("execute p (1)").await), "26000");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_of_time_stops_a_statement() {
    let door = TestServer::start().await;
    let mut wire = door.client().await;
    wire.query("set statement_timeout = 200").await;
    let said = wire.query("select count(*) from generate_series(1, 10000000000) as g").await;
    assert_eq!(code(&said), "57014");
    wire.query("set statement_timeout = 0; set idle_session_timeout = 100").await;
    let said = wire.next().await.unwrap();
    assert_eq!((said.field('S').unwrap(), said.field('C').unwrap()), ("FATAL".into(), "57P05".into()));
}

/// Numeric parameters arrive with the digits they were sent with; all kinds of storage round them to the type of the
/// column alike.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numeric_parameters_are_rounded_to_their_column() {
    let door = TestServer::start().await;
    let mut wire = door.client().await;
    for storage in ["row", "hybrid", "column"] {
        let table = format!("n_{storage}");
        wire.query(&format!("create table {table} (id int, n numeric(6,2), w numeric) with (storage = {storage})"))
            .await;
        let one = format!("insert into {table} values ($1, $2, $2)");
        let two = format!("insert into {table} values ($1, $2, 7), ($3, $4, $5)");
        let back = format!("insert into {table} values ($1, $2, $3) returning id");
        let steps: [(&str, &str, Vec<&str>); 6] = [
            ("one", &one, vec!["1", "1.5"]),
            ("one", "", vec!["2", "2.125"]),
            ("one", "", vec!["3", "-7"]),
            ("two", &two, vec!["4", "1.5", "5", "2.25", "0.125"]),
            ("two", "", vec!["6", "100", "7", "0.5", "3"]),
            ("back", &back, vec!["8", "9.995", "1.25"]),
        ];
        for (name, sql, values) in steps {
            let values: Vec<Option<&str>> = values.into_iter().map(Some).collect();
            let mut messages = Vec::new();
            messages.extend((!sql.is_empty()).then(|| parse(&format!("{name}{storage}"), sql, &[])));
            messages.extend([bind("", &format!("{name}{storage}"), &values, &[]), execute("", 0), sync()]);
            let said = batch(&mut wire, &messages).await;
            assert!(!kinds(&said).contains('E'), "{storage}: {name} {values:?}: {}", kinds(&said));
        }
        let update = format!("update {table} set n = $2 where id = $1");
        let name = format!("update{storage}");
        let said = batch(
            &mut wire,
            &[parse(&name, &update, &[]), bind("", &name, &[Some("3"), Some("4.444")], &[]), execute("", 0), sync()],
        )
        .await;
        assert_eq!(tags(&said), ["UPDATE 1"], "{storage}");
        let found = wire.query(&format!("select id, n, w = n, w from {table} order by id")).await;
        let found: Vec<String> = rows(&found)
            .into_iter()
            .map(|row| row.into_iter().flatten().take(2).collect::<Vec<_>>().join(" "))
            .collect();
        let expected = ["1 1.50", "2 2.13", "3 4.44", "4 1.50", "5 2.25", "6 100.00", "7 0.50", "8 10.00"];
        assert_eq!(found, expected, "{storage}");
        let wide = wire.query(&format!("select w::float8 from {table} order by id")).await;
        let wide: Vec<String> = rows(&wide).into_iter().flatten().flatten().collect();
        assert_eq!(wide, ["1.5", "2.125", "-7", "7", "0.125", "7", "3", "1.25"], "{storage}");
        for name in ["one", "back"] {
            let values = [Some("9"), Some("10000"), Some("1")];
            let values = &values[..if name == "one" { 2 } else { 3 }];
            let said =
                batch(&mut wire, &[bind("", &format!("{name}{storage}"), values, &[]), execute("", 0), sync()]).await;
            assert_eq!(code(&said), "22003", "{storage}: {name}");
        }
        let table = format!("c_{storage}");
        wire.query(&format!(
            "create table {table} (id int, n numeric(6,2) check (n <> 0 and n <= 1.5)) with (storage = {storage})"
        ))
        .await;
        let (name, insert) = (format!("check{storage}"), format!("insert into {table} values ($1, $2) returning n"));
        let said = batch(&mut wire, &[parse(&name, &insert, &[]), sync()]).await;
        assert_eq!(kinds(&said), "1Z", "{storage}");
        for (value, expected) in [("1.504", Ok("1.50")), ("0.001", Err("23514")), ("1", Ok("1.00"))] {
            let said =
                batch(&mut wire, &[bind("", &name, &[Some("1"), Some(value)], &[]), execute("", 0), sync()]).await;
            match expected {
                Ok(expected) => assert_eq!(rows(&said), [[Some(expected.to_owned())]], "{storage}: {value}"),
                Err(expected) => assert_eq!(code(&said), expected, "{storage}: {value}"),
            }
        }
    }
}
