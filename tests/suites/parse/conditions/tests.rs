use super::*;

fn allowed(line: &str) -> bool {
    let words: Vec<&str> = line.split(' ').collect();
    allows(&words, &Bindings::from([("i".to_owned(), "10".to_owned())]))
}

#[test]
fn records_of_postgresql_run() {
    assert!(allowed("onlyif postgresql"));
    assert!(!allowed("skipif postgresql"));
    assert!(!allowed("onlyif mysql # comment"));
    assert!(allowed("skipif config local"));
}

#[test]
fn conditions_compare_variables_of_loops() {
    assert!(allowed("onlyif i=10"));
    assert!(allowed("onlyif i>9"));
    assert!(!allowed("skipif i!=9"));
    assert!(!allowed("onlyif unknown=1"));
}
