use std::path::PathBuf;

use super::modules::Modules;
use super::{CrateSummary, summarize_crates};
use crate::workspace::{Crate, Workspace};

/// Returns a workspace of two crates, of which `above` depends on `below`.
fn workspace(sources: &[(&str, &str)]) -> Workspace {
    let crate_of = |name: &str, dependencies: &[&str]| Crate {
        name: name.to_owned(),
        folder: PathBuf::from(name),
        dependencies: dependencies.iter().map(|name| (*name).to_owned()).collect(),
        dev_dependencies: Vec::new(),
    };
    Workspace {
        root: PathBuf::new(),
        crates: vec![crate_of("below", &[]), crate_of("above", &["below", "serde"])],
        locked_packages: Vec::new(),
        architecture_text: String::new(),
        sources: sources.iter().map(|(path, text)| (PathBuf::from(path), (*text).to_owned())).collect(),
    }
}

fn mapped(sources: &[(&str, &str)]) -> Vec<CrateSummary> {
    let workspace = workspace(sources);
    let modules = Modules::read(&workspace).expect("the sources parse");
    summarize_crates(&workspace, &modules)
}

/// Returns the size of the largest import cycle in `below`.
fn largest_circle(sources: &[(&str, &str)]) -> usize {
    mapped(sources)[0].cycles.first().map_or(0, Vec::len)
}

#[test]
fn files_that_import_each_other_are_a_circle() {
    let root = ("below/src/lib.rs", "mod a; mod b;");
    let there = ("below/src/a.rs", "use crate::b::B; pub struct A(B);");
    assert_eq!(largest_circle(&[root, there, ("below/src/b.rs", "pub struct B; fn f(a: crate::a::A) {}")]), 2);
    assert_eq!(largest_circle(&[root, there, ("below/src/b.rs", "pub struct B;")]), 0);
}

#[test]
fn re_exports_are_followed_to_the_definition_and_are_no_need_themselves() {
    let root = ("below/src/lib.rs", "mod a; mod deep; pub use deep::Inner;");
    let deep = ("below/src/deep/mod.rs", "mod inner; pub use self::inner::Inner;");
    let inner = ("below/src/deep/inner.rs", "use crate::a::A; pub struct Inner(A);");
    // `a` depends on `inner` through two re-exports; neither `lib` nor `deep` is part of the cycle.
    assert_eq!(largest_circle(&[root, deep, inner, ("below/src/a.rs", "pub struct A; fn f(i: crate::Inner) {}")]), 2);
}

#[test]
fn a_function_of_its_module_s_name_is_found_behind_its_re_export() {
    let root = ("below/src/lib.rs", "mod write; pub fn base() {}");
    let write = ("below/src/write/mod.rs", "mod insert; pub(crate) use self::insert::insert; pub struct Rows;");
    let insert = ("below/src/write/insert.rs", "use super::Rows; pub fn insert(rows: Rows) { crate::planner() }");
    let planner = "mod write; pub fn planner() { write::insert(todo()) }";
    assert_eq!(largest_circle(&[("below/src/lib.rs", planner), write, insert]), 2);
    assert_eq!(largest_circle(&[root, write, insert]), 0);
}

#[test]
fn a_leading_colon_names_a_crate() {
    let below = [
        ("below/src/lib.rs", "mod a; mod b; pub struct N;"),
        ("below/src/a.rs", "pub fn above() { crate::b::f() }"),
        ("above/src/lib.rs", "pub struct X;"),
    ];
    let local = [&below[..], &[("below/src/b.rs", "use crate::a::above; pub fn f() { above() }")]].concat();
    let foreign = [&below[..], &[("below/src/b.rs", "pub fn f() { let x: ::above::X; }")]].concat();
    assert_eq!((largest_circle(&local), largest_circle(&foreign)), (2, 0));
}

#[test]
fn super_and_globs_count() {
    let root = ("below/src/lib.rs", "mod a; pub fn base() { a::derived() }");
    assert_eq!(largest_circle(&[root, ("below/src/a.rs", "pub fn derived() { super::base() }")]), 2);
    assert_eq!(largest_circle(&[root, ("below/src/a.rs", "use super::*; pub fn derived() { base() }")]), 2);
    assert_eq!(largest_circle(&[root, ("below/src/a.rs", "use super::*; pub fn derived() { other() }")]), 0);
}

#[test]
fn names_in_macros_count_and_names_in_tests_do_not() {
    let root = ("below/src/lib.rs", "mod a; pub const N: usize = a::M;");
    let file = |text| [root, ("below/src/a.rs", text)];
    assert_eq!(largest_circle(&file("pub const M: usize = 1; fn f() { println!(\"{}\", crate::N) }")), 2);
    assert_eq!(largest_circle(&file("pub const M: usize = 1; #[cfg(test)] mod tests { use crate::N; }")), 0);
}

#[test]
fn traits_of_earlier_crates_are_listed_by_their_definition() {
    let crates = mapped(&[
        ("below/src/lib.rs", "mod plane; pub use plane::Plane;"),
        ("below/src/plane.rs", "pub trait Plane {}"),
        ("above/src/lib.rs", "use below::Plane; struct Own; impl Plane for Own {} impl Clone for Own {}"),
    ]);
    assert_eq!(crates[1].upward_traits.iter().collect::<Vec<_>>(), ["below::Plane"]);
    assert_eq!(crates[1].workspace_dependencies, ["below"]);
    assert!(crates[0].upward_traits.is_empty());
}
