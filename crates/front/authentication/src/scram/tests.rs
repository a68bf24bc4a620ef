use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pgwire::api::auth::sasl::scram::gen_salted_password;
use proptest::prelude::*;
use types::random::SeededRandom;

use super::*;
use crate::scram_verifier::{SALT_BYTES, create_verifier, decoy_verifier, parse_verifier};

/// The text is the verifier that PostgreSQL 15 stores for `pencil` with this salt.
#[test]
fn a_verifier_in_postgresql_form_is_taken_over() {
    let text = "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$\
                WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=";
    let taken = create_verifier(text, &SeededRandom::new(1));
    assert_eq!(taken.iterations, 4096);
    // The same salt and RFC 7677's password give the same keys.
    let salted = gen_salted_password("pencil", &taken.salt, 4096);
    let ScramSecret::Verifier { stored_key, server_key, .. } =
        ScramSecret::verifier_from_salted_password(taken.salt.clone(), salted, 4096)
    else {
        panic!("asked for a verifier")
    };
    assert_eq!((taken.stored_key.to_vec(), taken.server_key.to_vec()), (stored_key, server_key));
}

#[test]
fn text_that_only_looks_like_a_verifier_is_a_password() {
    let random = SeededRandom::new(1);
    for password in ["secret", "SCRAM-SHA-256$", "SCRAM-SHA-256$0:AA==$AA==:AA==", "SCRAM-SHA-256$4096:AA==$x:y"] {
        assert!(parse_verifier(password).is_none(), "{password}");
        assert_eq!(create_verifier(password, &random).salt.len(), SALT_BYTES);
    }
}

#[test]
fn the_same_password_twice_has_two_salts() {
    let random = SeededRandom::new(1);
    assert_ne!(create_verifier("x", &random).salt, create_verifier("x", &random).salt);
}

#[test]
fn a_wrong_proof_is_28p01() {
    let mut exchange = ScramExchange::new(None);
    exchange.choose_mechanism(SCRAM).unwrap();
    let answer =
        exchange.handle_client_first(b"n,,n=,r=abc", &create_verifier("right", &SeededRandom::new(1))).unwrap();
    let nonce = answer.split(',').next().unwrap();
    let proof = STANDARD.encode([0; 32]);
    let error = exchange.handle_client_final(format!("c=biws,{nonce},p={proof}").as_bytes()).unwrap_err();
    assert_eq!(error.condition, Condition::InvalidPassword);
}

#[test]
fn a_mechanism_that_was_not_offered_is_refused() {
    let mut exchange = ScramExchange::new(None);
    let error = exchange.choose_mechanism(SCRAM_PLUS).unwrap_err();
    assert_eq!(error.condition, Condition::ProtocolViolation);
}

proptest! {
    #[test]
    fn any_bytes_are_an_error_not_a_panic(first in ".{0,60}", last in ".{0,60}", raw in proptest::collection::vec(any::<u8>(), 0..60)) {
        let decoy = decoy_verifier("x", &[7; 32]);
        let mut exchange = ScramExchange::new(None);
        let _ = exchange.handle_client_first(&raw, &decoy);
        if exchange.handle_client_first(format!("n,,n=a,r={first}").as_bytes(), &decoy).is_ok() {
            prop_assert!(exchange.handle_client_final(last.as_bytes()).is_err());
        }
        prop_assert!(exchange.handle_client_final(b"").is_err());
    }
}
