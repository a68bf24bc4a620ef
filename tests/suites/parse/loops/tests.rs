use super::*;

fn values(words: &str, name: &str) -> Vec<String> {
    let words: Vec<&str> = words.split(' ').collect();
    repetitions(&words, &Bindings::new()).iter().map(|bindings| bindings[name].clone()).collect()
}

#[test]
fn loops_count_and_lists_repeat() {
    assert_eq!(values("loop i 2 5", "i"), ["2", "3", "4"]);
    assert_eq!(values("foreach t a b", "t"), ["a", "b"]);
    assert_eq!(values("foreach a,b 1,2 3,4", "b"), ["2", "4"]);
    assert_eq!(values("foreach t decimal(4,1) x", "t"), ["decimal(4,1)", "x"]);
    assert_eq!(values("foreach t <signed> !hugeint text", "t"), ["tinyint", "smallint", "integer", "bigint", "text"]);
    assert_eq!(values("loop i 0 1000000", "i").len(), REPETITIONS_MAX);
}

#[test]
fn variables_are_replaced_in_braces() {
    let bindings = Bindings::from([("i".to_owned(), "7".to_owned())]);
    assert_eq!(substitute("SELECT ${i}, {i}, i, {j}", &bindings), "SELECT 7, 7, i, {j}");
}
