use std::collections::BTreeMap;

use types::Oid;
use types::random::SeededRandom;

use super::*;

fn role(name: &str, superuser: bool, connection_limit: i32) -> Arc<catalog::Role> {
    Arc::new(catalog::Role {
        oid: Oid(if superuser { 10 } else { 16_384 }),
        name: name.to_owned(),
        superuser,
        login: true,
        create_role: false,
        create_db: false,
        inherit: true,
        connection_limit,
        valid_until: None,
        scram: None,
        settings: BTreeMap::new(),
        comment: None,
    })
}

fn enter(backends: &Arc<Backends>, role: Arc<catalog::Role>) -> SqlResult<BackendGuard> {
    let peer = "127.0.0.1:1".parse().unwrap();
    let newcomer = NewSession {
        role,
        database: "kiln".to_owned(),
        peer,
        secret_bytes: 32,
        now_us: 0,
        clock: Arc::new(types::SystemClock::new()),
    };
    backends.add(newcomer, &SeededRandom::new(7))
}

#[test]
fn the_last_places_are_for_superusers_and_leaving_frees_one() {
    let backends = Arc::new(Backends::new(3, 1, 0));
    let first = enter(&backends, role("ada", false, -1)).unwrap();
    let _second = enter(&backends, role("ada", false, -1)).unwrap();
    assert_eq!(enter(&backends, role("ada", false, -1)).unwrap_err().condition, Condition::TooManyConnections);
    let _third = enter(&backends, role("root", true, -1)).unwrap();
    assert_eq!(enter(&backends, role("root", true, -1)).unwrap_err().condition, Condition::TooManyConnections);
    drop(first);
    assert!(enter(&backends, role("root", true, -1)).is_ok());
}

#[test]
fn a_role_has_its_own_limit() {
    let backends = Arc::new(Backends::new(10, 0, 0));
    let _first = enter(&backends, role("ada", false, 1)).unwrap();
    let error = enter(&backends, role("ada", false, 1)).unwrap_err();
    assert_eq!(error.message, "too many connections for role \"ada\"");
}

#[test]
fn only_the_right_secret_cancels() {
    let backends = Arc::new(Backends::new(10, 0, 0));
    let seat = enter(&backends, role("ada", false, -1)).unwrap();
    let running = seat.backend.interrupt.begin();
    backends.cancel_request(seat.backend.pid, &[0; 32]);
    backends.cancel_request(seat.backend.pid, &seat.backend.secret[..31]);
    assert_eq!(running.reason(), None);
    backends.cancel_request(seat.backend.pid, &seat.backend.secret);
    assert_eq!(running.reason(), Some(InterruptReason::CancelRequest));
}

#[test]
fn a_cancel_between_statements_hits_none() {
    let backends = Arc::new(Backends::new(10, 0, 0));
    let seat = enter(&backends, role("ada", false, -1)).unwrap();
    backends.cancel_request(seat.backend.pid, &seat.backend.secret);
    assert_eq!(seat.backend.interrupt.begin().reason(), None);
    seat.backend.interrupt.terminate();
    assert_eq!(seat.backend.interrupt.begin().reason(), Some(InterruptReason::Terminated));
}

#[test]
fn a_long_statement_is_shown_cut_at_a_character() {
    let sql = "é".repeat(QUERY_BYTES_SHOWN);
    assert_eq!(truncate_query(&sql).len(), QUERY_BYTES_SHOWN);
    assert_eq!(truncate_query(&format!("x{sql}")).len(), QUERY_BYTES_SHOWN - 1);
}
