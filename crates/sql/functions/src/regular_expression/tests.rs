use super::*;

#[test]
fn similar_patterns_match_the_whole_text() {
    let is_match =
        |text: &str, pattern: &str| compile(&similar_to_regex(pattern, Some('\\')), "").unwrap().is_match(text);
    assert!(is_match("abc", "abc"));
    assert!(!is_match("abc", "a"));
    assert!(is_match("abc", "%(b|d)%"));
    assert!(!is_match("abc", "(b|c)%"));
    assert!(is_match("a.c", "a.c"));
    assert!(!is_match("abc", "a.c"));
    assert!(is_match("50%", "50\\%"));
}

#[test]
fn postgresqls_escapes_are_translated() {
    assert!(compile("\\mfoo\\M", "").unwrap().is_match("a foo b"));
    assert!(!compile("\\mfoo\\M", "").unwrap().is_match("afoo"));
    assert!(compile("a.b", "").unwrap().is_match("a\nb"));
    assert_eq!(compile("(a", "").unwrap_err().condition, Condition::InvalidRegularExpression);
    assert_eq!(compile("(a)\\1", "").unwrap_err().condition, Condition::FeatureNotSupported);
}

#[test]
fn other_escape_characters_become_backslashes() {
    let mut out = String::new();
    translate_escape("10!%\\_!_", "!", &mut out).unwrap();
    assert_eq!(out, "10\\%\\\\_\\_");
}
