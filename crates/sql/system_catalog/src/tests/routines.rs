//! `pg_proc` lists what the definitions of the functions have.

use crate::pg_catalog::{description_by_oid, listed_routines};

/// Returns the argument types of the listed functions of a name.
fn listed(name: &str) -> Vec<Vec<u32>> {
    listed_routines().filter(|routine| routine.name == name).map(|routine| routine.arguments.clone()).collect()
}

#[test]
fn only_overloads_that_exist_are_listed() {
    // PostgreSQL also has gcd of numeric, and to_char of integer, which Kiln reads as numeric.
    assert_eq!(listed("gcd"), [[23, 23], [20, 20]]);
    assert_eq!(listed("chr"), [[23]]);
    assert!(!listed("to_char").contains(&vec![23, 25]));
    assert!(listed("substring").contains(&vec![25, 23, 23]));
    assert!(listed("concat").contains(&vec![2276]));
    assert!(listed("json_build_object").contains(&Vec::new()));
    assert!(!listed("sum").is_empty() && !listed("row_number").is_empty() && !listed("format_type").is_empty());
}

#[test]
fn every_listed_function_is_described() {
    for routine in listed_routines() {
        assert!(description_by_oid(routine.oid).is_some(), "{}", routine.name);
    }
}
