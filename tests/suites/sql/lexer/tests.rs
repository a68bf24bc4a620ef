use super::*;

fn texts(sql: &str) -> Vec<&str> {
    let mut at = 0;
    let next = || {
        let token = next_token(sql, at)?;
        at = token.end;
        Some(token.text(sql))
    };
    std::iter::from_fn(next).collect()
}

#[test]
fn quotes_end_where_postgresql_ends_them() {
    assert_eq!(texts("'a''b;' x"), ["'a''b;'", "x"]);
    assert_eq!(texts(r"'a\' x"), [r"'a\'", "x"]);
    assert_eq!(texts(r"E'a\';' x"), [r"E'a\';'", "x"]);
    assert_eq!(texts("\"a\"\"b\" x"), ["\"a\"\"b\"", "x"]);
    assert_eq!(texts("$$a;'$$ $f$ $$ $f$ $1"), ["$$a;'$$", "$f$ $$ $f$", "$1"]);
}

#[test]
fn comments_are_no_tokens() {
    assert_eq!(texts("a -- b'\n c /* d /* e */ f */ g"), ["a", "c", "g"]);
}

#[test]
fn unfinished_texts_end_with_the_input() {
    for sql in ["'a", "\"a", "$$a", "/* a", "e'a\\"] {
        assert!(texts(sql).len() <= 1, "{sql}");
    }
}

#[test]
fn names_are_folded_unless_quoted() {
    let name = |sql: &str| next_token(sql, 0).and_then(|token| token.name(sql));
    assert_eq!(name("Abc").as_deref(), Some("abc"));
    assert_eq!(name("\"A\"\"b\"").as_deref(), Some("A\"b"));
    assert_eq!(name("'a'"), None);
}
