use types::Condition;

use super::*;

fn field(error: &SqlError, code: u8) -> Option<String> {
    error_response(Severity::Error, error, None)
        .fields
        .into_iter()
        .find(|(found, _)| *found == code)
        .map(|(_, text)| text)
}

#[test]
fn an_error_carries_every_field_it_knows() {
    let error = SqlError::new(Condition::NotNullViolation, "null value in column \"a\"")
        .with_detail("Failing row contains (null).")
        .with_hint("give it a value")
        .with_position(7)
        .with_context("COPY t, line 3")
        .with_table("public", "t")
        .with_column("a")
        .with_constraint("t_a");
    for (code, text) in [
        (b'S', "ERROR"),
        (b'V', "ERROR"),
        (b'C', "23502"),
        (b'M', "null value in column \"a\""),
        (b'D', "Failing row contains (null)."),
        (b'H', "give it a value"),
        (b'P', "7"),
        (b'W', "COPY t, line 3"),
        (b's', "public"),
        (b't', "t"),
        (b'c', "a"),
        (b'n', "t_a"),
    ] {
        assert_eq!(field(&error, code).as_deref(), Some(text), "field {}", code as char);
    }
}

#[test]
fn a_zero_byte_in_a_message_does_not_end_it() {
    let error = SqlError::new(Condition::SyntaxError, "at \"a\0b\"");
    assert_eq!(field(&error, b'M').as_deref(), Some("at \"a\u{fffd}b\""));
}
