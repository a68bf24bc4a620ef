use super::*;

#[test]
fn unambiguous_beginnings_are_read() {
    for text in ["t", "TRUE", " tru ", "y", "yes", "on", "1"] {
        assert_eq!(parse_bool(text), Ok(true), "{text}");
    }
    for text in ["f", "False", "n", "no", "of", "OFF", "0"] {
        assert_eq!(parse_bool(text), Ok(false), "{text}");
    }
}

#[test]
fn anything_else_is_refused() {
    for text in ["", "o", "2", "truee", "nein"] {
        let error = parse_bool(text).unwrap_err();
        assert_eq!(error.message, format!("invalid input syntax for type boolean: \"{text}\""));
    }
}
