use proptest::prelude::*;
use types::random::SeededRandom;

use super::*;

fn ticket() -> Ticket {
    let authority = CertificateDer::from(vec![48, 130, 1, 2]);
    Ticket::generate(WorkerId(7), authority, &SeededRandom::new(1))
}

#[test]
fn a_ticket_round_trips_as_text() {
    let ticket = ticket();
    assert_eq!(Ticket::parse(&ticket.encode()), Ok(ticket.clone()));
    assert_eq!(Ticket::parse(&format!("{}\n", ticket.encode())), Ok(ticket.clone()), "white space is trimmed");
    assert!(!format!("{ticket:?}").contains("secret"), "Debug must not print the secret");
}

#[test]
fn only_the_right_secret_is_verified() {
    let (random, ticket) = (SeededRandom::new(2), ticket());
    let expected = SecretHash::from_ticket(&ticket, &random);
    assert!(expected.verify(&ticket.secret));
    let mut other = ticket.secret;
    other[31] ^= 1;
    assert!(!expected.verify(&other) && !expected.verify(&ticket.secret[..31]) && !expected.verify(b""));
}

#[test]
fn a_truncated_ticket_is_an_error() {
    let text = ticket().encode();
    for length in [0, 1, 10, 53] {
        assert_eq!(Ticket::parse(&text[..length]), Err(TicketError), "{length}");
    }
}

proptest! {
    #[test]
    fn parsing_never_panics(text in "\\PC{0,200}") {
        let _ = Ticket::parse(&text);
    }
}
