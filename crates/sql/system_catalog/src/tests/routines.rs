//! `pg_proc` lists the functions that the declarations have.

use std::collections::HashSet;

use crate::pg_catalog::ROUTINES;

/// Returns the argument types of the listed functions of a name.
fn listed(name: &str) -> Vec<Vec<u32>> {
    ROUTINES.iter().filter(|routine| routine.name == name).map(|routine| routine.arguments.clone()).collect()
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
fn every_function_is_listed_once() {
    let mut seen = HashSet::new();
    for routine in ROUTINES.iter() {
        assert!(seen.insert(routine.oid), "{} has the OID of another function", routine.name);
        assert!(!routine.description.is_empty(), "{}", routine.name);
    }
}

#[test]
fn no_function_is_declared_twice() {
    let scalar: HashSet<&str> = functions::scalar_names().collect();
    for system in crate::system_functions::documentation() {
        assert!(!scalar.contains(system.name), "{}", system.name);
    }
}
