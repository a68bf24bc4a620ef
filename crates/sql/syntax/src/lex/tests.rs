//! Tests of the scanner.

use super::{Token, lex};

fn tokens(sql: &str) -> Vec<Token> {
    let mut tokens: Vec<Token> = lex(sql).unwrap().into_iter().map(|lexeme| lexeme.token).collect();
    assert_eq!(tokens.pop(), Some(Token::End));
    tokens
}

fn one(sql: &str) -> Token {
    let mut tokens = tokens(sql);
    assert_eq!(tokens.len(), 1, "{sql}");
    tokens.remove(0)
}

fn error(sql: &str) -> (String, Option<u32>) {
    let error = lex(sql).unwrap_err();
    (error.message, error.position)
}

fn text(text: &str) -> Token {
    Token::Text(text.to_owned())
}

fn operators(sql: &str) -> Vec<String> {
    let tokens = tokens(sql);
    tokens.into_iter().filter_map(|token| if let Token::Operator(name) = token { Some(name) } else { None }).collect()
}

#[test]
fn names_fold_and_are_cut_at_63_bytes() {
    assert_eq!(one("FooBÄr"), Token::Word("foobÄr".to_owned()));
    assert_eq!(one("\"Foo\"\"Bar\""), Token::Quoted("Foo\"Bar".to_owned()));
    assert_eq!(one(&"a".repeat(70)), Token::Word("a".repeat(63)));
    assert_eq!(one(&format!("\"{}\"", "ä".repeat(40))), Token::Quoted("ä".repeat(31)));
    assert_eq!(one("U&\"d\\0061t\\+000061\""), Token::Quoted("data".to_owned()));
    assert_eq!(error("select \"\"").0, "zero-length delimited identifier at or near \"\"\"\"");
}

#[test]
fn strings_keep_backslashes_unless_they_are_escaped() {
    assert_eq!(one(r"'a\nb'"), text(r"a\nb"));
    assert_eq!(one("'it''s'"), text("it's"));
    assert_eq!(one(r"E'a\nb\'\\\x41\101\u00e4\U0001F600'"), text("a\nb'\\AAä😀"));
    assert_eq!(one(r"E'\uD83D\uDE00'"), text("😀"));
    assert_eq!(one(r"U&'d\0061t\+000061 \\'"), text("data \\"));
    assert_eq!(one("U&'d!0061ta' UESCAPE '!'"), text("data"));
    assert_eq!(one("N'x'"), text("x"));
    assert_eq!(one("$$it's$$"), text("it's"));
    assert_eq!(one("$a$x $b$ y$a$"), text("x $b$ y"));
    assert_eq!(one("X'1f'"), Token::Bits("x1f".to_owned()));
}

#[test]
fn pieces_of_a_string_join_over_a_line_break_only() {
    assert_eq!(tokens("'a' \n 'b' -- c\n 'd'"), [text("abd")]);
    assert_eq!(tokens("'a' 'b'"), [text("a"), text("b")]);
}

#[test]
fn numbers() {
    assert_eq!(
        tokens("1 1.5 .5 1. 1e3 1.5E-3"),
        [
            Token::Integer("1".to_owned()),
            Token::Decimal("1.5".to_owned()),
            Token::Decimal(".5".to_owned()),
            Token::Decimal("1.".to_owned()),
            Token::Decimal("1e3".to_owned()),
            Token::Decimal("1.5E-3".to_owned()),
        ]
    );
    assert_eq!(tokens("1..3")[1], Token::Operator("..".to_owned()));
    assert_eq!(error("select 12ab"), ("trailing junk after numeric literal at or near \"12ab\"".to_owned(), Some(8)));
    assert_eq!(error("select $1a").0, "trailing junk after parameter at or near \"$1a\"");
    assert_eq!(one("$12"), Token::Parameter("$12".to_owned()));
}

#[test]
fn operators_end_where_postgresql_ends_them() {
    assert_eq!(operators("a=-1"), ["=", "-"]);
    assert_eq!(operators("a @- b"), ["@-"]);
    assert_eq!(operators("a <-- comment"), ["<"]);
    assert_eq!(operators("a*/* comment */b"), ["*"]);
    assert_eq!(operators("a != b"), ["<>"]);
    assert_eq!(operators("a::int"), ["::"]);
    assert_eq!(operators("a->>'b' #>> c"), ["->>", "#>>"]);
}

#[test]
fn comments_nest() {
    assert_eq!(tokens("/* a /* b */ c */ x -- y"), [Token::Word("x".to_owned())]);
    assert_eq!(error("x /* /* */"), ("unterminated /* comment at or near \"/* /* */\"".to_owned(), Some(3)));
}

#[test]
fn what_is_not_closed_is_shown_from_where_it_opens() {
    assert_eq!(error("select 'abc"), ("unterminated quoted string at or near \"'abc\"".to_owned(), Some(8)));
    assert_eq!(error("select \"abc").0, "unterminated quoted identifier at or near \"\"abc\"");
    assert_eq!(error("select $x$abc").0, "unterminated dollar-quoted string at or near \"$x$abc\"");
}

#[test]
fn places_count_characters_of_each_statement() {
    let lexemes = lex("ä;\n  b\n c").unwrap();
    let places: Vec<(u64, u64)> =
        lexemes.iter().map(|lexeme| (lexeme.span.start.line, lexeme.span.start.column)).collect();
    assert_eq!(places[..4], [(1, 1), (1, 2), (1, 1), (2, 2)]);
}
