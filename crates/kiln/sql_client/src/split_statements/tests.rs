use super::{InputItem, split_input};

#[track_caller]
fn check(text: &str, statements: &[&str], rest: &str) {
    let (pieces, left) = split_input(text);
    let expected: Vec<InputItem> = statements.iter().map(|text| InputItem::Statement((*text).to_owned())).collect();
    assert_eq!((pieces, left.as_str()), (expected, rest));
}

#[test]
fn semicolons_in_quotes_and_comments_do_not_end_a_statement() {
    check("select ';'; select \"a;b\";", &["select ';';", "select \"a;b\";"], "");
    check("select 1 -- ;\n; x", &["select 1 -- ;\n;"], "x");
    check("select /* ; /* ; */ */ 1;", &["select /* ; /* ; */ */ 1;"], "");
    check("select $a$ ; $b$ ; $a$;", &["select $a$ ; $b$ ; $a$;"], "");
    check("select E'\\';';", &["select E'\\';';"], "");
    check("select 'it''s;';", &["select 'it''s;';"], "");
}

#[test]
fn an_open_quote_waits_for_more() {
    check("select 'a;", &[], "select 'a;");
    check("select $1; select $$;", &["select $1;"], "select $$;");
}

#[test]
fn backslash_commands_end_with_their_line() {
    let (pieces, rest) = split_input("\\d t\nselect 1");
    assert_eq!(pieces, vec![InputItem::Command("d t".to_owned())]);
    assert_eq!(rest, "select 1");
}

#[test]
fn empty_statements_vanish() {
    check(";; ;select 1;", &["select 1;"], "");
}
