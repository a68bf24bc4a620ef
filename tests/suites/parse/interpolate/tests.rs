use super::*;

fn variables() -> Variables {
    [("a", "1"), ("name", "it's"), ("dir", "/data")].map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

#[test]
fn variables_are_replaced_outside_of_quotes_and_casts() {
    let replaced = interpolate("SELECT :a, :'name', :\"a\", x::a, ':a', y[1:a], :b", &variables());
    assert_eq!(replaced, "SELECT 1, 'it''s', \"1\", x::a, ':a', y[11], :b");
}

#[test]
fn arguments_are_joined_from_texts_and_variables() {
    assert_eq!(arguments(" file :dir '/a b.data' x", &variables()), ["file", "/data", "/a b.data", "x"]);
    assert_eq!(arguments("f :dir'/a'", &variables()), ["f", "/data/a"]);
    assert_eq!(arguments(":unknown 'open", &variables()), [":unknown", "'open"]);
}
