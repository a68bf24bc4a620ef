use proptest::prelude::*;
use types::random::SeededRandom;

use super::*;

fn ticket() -> Ticket {
    let authority = CertificateDer::from(vec![48, 130, 1, 2]);
    Ticket::draw(WorkerId(7), authority, &SeededRandom::new(1))
}

#[test]
fn a_ticket_is_its_text() {
    let ticket = ticket();
    assert_eq!(Ticket::parse(&ticket.text()), Ok(ticket.clone()));
    assert_eq!(Ticket::parse(&format!("{}\n", ticket.text())), Ok(ticket.clone()), "white space is trimmed");
    assert!(!format!("{ticket:?}").contains("secret"), "Debug must not print the secret");
}

#[test]
fn a_secret_is_known_again_and_no_other() {
    let (random, ticket) = (SeededRandom::new(2), ticket());
    let expected = ExpectedSecret::of(&ticket, &random);
    assert!(expected.is(&ticket.secret));
    let mut other = ticket.secret;
    other[31] ^= 1;
    assert!(!expected.is(&other) && !expected.is(&ticket.secret[..31]) && !expected.is(b""));
}

#[test]
fn what_is_cut_off_is_no_ticket() {
    let text = ticket().text();
    for length in [0, 1, 10, 53] {
        assert_eq!(Ticket::parse(&text[..length]), Err(TicketError), "{length}");
    }
}

proptest! {
    #[test]
    fn any_text_is_a_ticket_or_none(text in "\\PC{0,200}") {
        let _ = Ticket::parse(&text);
    }
}
