use super::*;
use crate::fixtures::*;

/// Builds t (100) ← view v (102) ← view w (103); t ← foreign key f of u (101); u ← foreign key g of t.
fn woven() -> CatalogState {
    let referring = Table { constraints: vec![foreign_key(7, "f", 100)], ..table(101, "u") };
    let back = Table { constraints: vec![foreign_key(8, "g", 101)], ..table(100, "t") };
    state([
        put_table(table(100, "t")),
        put_table(referring),
        put_table(back),
        put_view(view(102, "v", &[100])),
        put_view(view(103, "w", &[102, 100])),
    ])
}

#[track_caller]
fn after(state: &CatalogState, plan: &DropPlan) -> CatalogState {
    plan.changes.iter().fold(state.clone(), |state, change| state.apply(change).unwrap())
}

#[test]
fn cascade_takes_views_along_and_of_tables_only_the_foreign_key() {
    let state = woven();
    let plan = state.drop_plan(&[Oid(100)], true).unwrap();
    let also: Vec<String> = plan.cascaded.iter().map(Dependant::to_string).collect();
    assert_eq!(also, ["view w", "view v", "constraint f on table u"]);
    let left = after(&state, &plan);
    let names: Vec<String> = left.tables().map(|table| table.name.clone()).collect();
    assert_eq!(names, ["u"]);
    assert_eq!(left.views().count(), 0);
    assert!(left.table(Oid(101)).unwrap().constraints.is_empty());
}

#[test]
fn without_cascade_dependants_that_are_not_named_refuse_the_drop() {
    let error = woven().drop_plan(&[Oid(100), Oid(101)], false).unwrap_err();
    let Error::Dependants { dependants, .. } = error else { panic!("{error}") };
    let names: Vec<String> = dependants.iter().map(Dependant::to_string).collect();
    assert_eq!(names, ["view v", "view w"]);
}

#[test]
fn objects_that_need_each_other_go_together_when_all_are_named() {
    let state = woven();
    let plan = state.drop_plan(&[Oid(100), Oid(103), Oid(101), Oid(102)], false).unwrap();
    assert!(plan.cascaded.is_empty());
    assert_eq!(after(&state, &plan), CatalogState::new_warehouse());
}

#[test]
fn a_schema_takes_what_is_in_it_and_what_reads_that_from_outside() {
    let inside = Table { schema: Oid(50), ..table(100, "t") };
    let state = state([put_schema(schema(50, "s")), put_table(inside), put_view(view(102, "v", &[100]))]);
    assert!(state.drop_plan(&[Oid(50)], false).is_err());
    let plan = state.drop_plan(&[Oid(50)], true).unwrap();
    assert_eq!(after(&state, &plan), CatalogState::new_warehouse());
    assert_eq!(plan.cascaded.len(), 2);
}
