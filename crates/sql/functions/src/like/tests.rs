use super::*;

#[track_caller]
fn check(text: &str, pattern: &str, expected: bool) {
    assert_eq!(matches(text.as_bytes(), pattern.as_bytes()), Ok(expected), "{text} LIKE {pattern}");
}

#[test]
fn wildcards_match_characters() {
    check("abc", "abc", true);
    check("abc", "a_c", true);
    check("aéc", "a_c", true);
    check("éé", "_", false);
    check("", "%", true);
    check("", "_", false);
    check("", "", true);
    check("a", "", false);
    check("aXbXc", "a%b%c", true);
    check("aab", "%ab", true);
    check("ababac", "%ab_c", true);
    check("abcd", "%_%_%_%_%_", false);
    check("日本語", "%本%", true);
    check("日本語", "日_", false);
}

#[test]
fn an_escape_takes_the_next_character_as_it_is() {
    check("a%c", r"a\%c", true);
    check("abc", r"a\%c", false);
    check(r"a\c", r"a\\c", true);
    check("xa%", r"%\%", true);
}

#[test]
fn an_escape_at_the_end_is_an_error_once_it_is_reached() {
    for (text, pattern) in [("abcd", r"abc\"), ("a", r"\"), ("abc", r"%\"), ("abc", r"a%_\")] {
        let error = matches(text.as_bytes(), pattern.as_bytes()).unwrap_err();
        assert_eq!(error.condition, Condition::InvalidEscapeSequence, "{text} LIKE {pattern}");
    }
    check("abc", r"abc\", false);
    check("xyz", r"abc\", false);
    check("", r"\", false);
}

#[test]
fn many_wildcards_take_no_longer_than_text_times_pattern() {
    let (text, pattern) = ("a".repeat(5_000), "%a".repeat(2_000) + "b");
    check(&text, &pattern, false);
}
