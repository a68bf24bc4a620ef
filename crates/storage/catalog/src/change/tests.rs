use types::{ColumnId, SqlType};

use super::*;
use crate::Relation;
use crate::fixtures::*;
use crate::{Constraint, ConstraintKind, Distribution, TableOrder};

/// Returns the error text of `change` after `changes`.
#[track_caller]
fn refused(changes: Vec<Change>, change: Change) -> String {
    state(changes).apply(&change).expect_err("the change must be refused").to_string()
}

#[test]
fn a_fresh_catalog_has_the_schemas_the_role_and_the_database() {
    let state = CatalogState::new_warehouse();
    let schemas: Vec<&str> = state.schemas().map(|schema| schema.name.as_str()).collect();
    assert_eq!(schemas, ["pg_catalog", "public", "information_schema", "sys"]);
    assert!(state.role_by_name("kiln").is_some_and(|role| role.superuser && role.login));
    assert_eq!(state.database().name, "kiln");
}

#[test]
fn a_table_is_found_by_name_and_by_id_until_it_is_dropped() {
    let state = state([put_table(table(100, "t"))]);
    assert!(matches!(state.relation(Schema::PUBLIC, "t"), Some(Relation::Table(found)) if found.oid == Oid(100)));
    let without = state.apply(&Change::DropTable(Oid(100))).unwrap();
    assert_eq!(without.relation(Schema::PUBLIC, "t"), None);
    assert_eq!(without, CatalogState::new_warehouse());
    // The earlier state is unchanged.
    assert!(state.table(Oid(100)).is_some());
}

#[test]
fn a_renamed_table_gives_its_old_name_free() {
    let state = state([put_table(table(100, "t")), put_table(table(100, "u")), put_table(table(101, "t"))]);
    let names: Vec<String> = state.relations(Schema::PUBLIC).map(|relation| relation.name().to_owned()).collect();
    assert_eq!(names, ["t", "u"]);
}

#[test]
fn tables_and_views_of_a_schema_share_their_names() {
    let message = refused(vec![put_table(table(100, "t"))], put_view(view(101, "t", &[])));
    assert_eq!(message, "table \"t\" already exists");
    let message = refused(vec![put_view(view(101, "t", &[]))], put_table(table(100, "t")));
    assert_eq!(message, "view \"t\" already exists");
}

#[test]
fn the_same_name_in_two_schemas_is_fine() {
    let other = Table { schema: Oid(50), ..table(101, "t") };
    state([put_schema(schema(50, "s")), put_table(table(100, "t")), put_table(other)]);
}

#[test]
fn names_of_schemas_and_roles_are_unique() {
    assert_eq!(refused(vec![], put_schema(schema(50, "public"))), "schema \"public\" already exists");
    assert_eq!(refused(vec![], put_role(role(50, "kiln"))), "role \"kiln\" already exists");
}

#[test]
fn what_an_object_refers_to_must_exist() {
    let check = |change, message: &str| assert_eq!(refused(vec![], change), message);
    check(put_table(Table { schema: Oid(9), ..table(100, "t") }), "schema with id 9 does not exist");
    check(put_table(Table { owner: Oid(9), ..table(100, "t") }), "role with id 9 does not exist");
    check(
        put_table(Table { constraints: vec![foreign_key(7, "f", 9)], ..table(100, "t") }),
        "table with id 9 does not exist",
    );
    check(put_view(view(101, "v", &[9])), "relation with id 9 does not exist");
    check(add_shards(9, vec![]), "table with id 9 does not exist");
    check(Change::DropView(Oid(9)), "view with id 9 does not exist");
    let order = TableOrder::Cluster(vec![ColumnId(3)]);
    check(put_table(Table { order, ..table(100, "t") }), "relation \"t\" has no column with id 3");
    let distribution = Distribution::On(vec![ColumnId(4)]);
    check(put_table(Table { distribution, ..table(100, "t") }), "relation \"t\" has no column with id 4");
}

#[test]
fn columns_have_one_name_and_one_id_below_the_next() {
    let with = |columns| put_table(Table { columns, ..table(100, "t") });
    let twice = "column \"a\" of table \"t\" occurs more than once";
    assert_eq!(refused(vec![], with(vec![column(1, "a"), column(2, "a")])), twice);
    assert_eq!(refused(vec![], with(vec![column(1, "b"), column(1, "a")])), twice);
    let outside = "column \"a\" of table \"t\" has id 3, which is not below the next id 3";
    assert_eq!(refused(vec![], with(vec![column(3, "a")])), outside);
}

#[test]
fn a_primary_key_is_single_and_not_null() {
    let key = |oid, name: &str| Constraint {
        oid: Oid(oid),
        name: name.to_owned(),
        kind: ConstraintKind::PrimaryKey { columns: vec![ColumnId(1)] },
        enforced: false,
        comment: None,
    };
    let nullable = Table { constraints: vec![key(7, "k")], ..table(100, "t") };
    let message = "column \"a\" of table \"t\" is in the primary key and must be NOT NULL";
    assert_eq!(refused(vec![], put_table(nullable.clone())), message);
    let mut keyed = nullable;
    keyed.columns[0].not_null = true;
    state([put_table(keyed.clone())]);
    keyed.constraints.push(key(8, "l"));
    let message = "multiple primary keys for table \"t\" are not allowed";
    assert_eq!(refused(vec![], put_table(keyed)), message);
}

#[test]
fn nothing_goes_while_others_need_it() {
    let referring = Table { constraints: vec![foreign_key(7, "f", 100)], ..table(101, "u") };
    let objects = vec![put_table(table(100, "t")), put_table(referring), put_view(view(102, "v", &[100]))];
    let error = state(objects).apply(&Change::DropTable(Oid(100))).unwrap_err();
    let Error::Dependants { name, dependants, .. } = error else { panic!("{error}") };
    assert_eq!(name, "t");
    let names: Vec<String> = dependants.iter().map(Dependant::to_string).collect();
    assert_eq!(names, ["view v", "constraint f on table u"]);
}

#[test]
fn a_schema_or_role_goes_only_when_nothing_is_in_it_or_owned_by_it() {
    let objects = || {
        let owned = Table { schema: Oid(50), owner: Oid(60), ..table(100, "t") };
        vec![put_schema(schema(50, "s")), put_role(role(60, "r")), put_table(owned)]
    };
    assert!(refused(objects(), Change::DropSchema(Oid(50))).starts_with("cannot drop schema \"s\""));
    assert!(refused(objects(), Change::DropRole(Oid(60))).starts_with("cannot drop role \"r\""));
    let mut emptied = objects();
    emptied.extend([Change::DropTable(Oid(100)), Change::DropSchema(Oid(50)), Change::DropRole(Oid(60))]);
    assert_eq!(state(emptied), CatalogState::new_warehouse());
}

#[test]
fn a_column_stays_as_it_is_while_a_view_uses_it() {
    let objects = || vec![put_table(table(100, "t")), put_view(view(102, "v", &[100]))];
    let mut without = table(100, "t");
    without.columns.remove(0);
    assert!(refused(objects(), put_table(without)).contains("column \"a\""));
    let mut retyped = table(100, "t");
    retyped.columns[0].sql_type = SqlType::Text;
    assert!(refused(objects(), put_table(retyped)).contains("column \"a\""));
    let mut unused = table(100, "t");
    unused.columns.remove(1);
    state(objects()).apply(&put_table(unused)).expect("nobody uses column b");
}

#[test]
fn a_view_cannot_come_to_need_itself() {
    let views = vec![put_view(view(100, "v", &[])), put_view(view(101, "w", &[100]))];
    assert_eq!(refused(views, put_view(view(100, "v", &[101]))), "view \"v\" would depend on itself");
}

#[test]
fn system_schemas_stay_and_public_may_go() {
    let message = "cannot drop schema \"sys\" because it is required by the database system";
    assert_eq!(refused(vec![], Change::DropSchema(Schema::SYS)), message);
    state([Change::DropSchema(Schema::PUBLIC)]);
}

#[test]
fn the_last_superuser_who_can_log_in_stays() {
    let kiln = CatalogState::new_warehouse().role(Role::BOOTSTRAP).cloned().unwrap();
    let message = "role \"kiln\" is the last superuser that can log in";
    for role in [Role { superuser: false, ..Role::clone(&kiln) }, Role { login: false, ..Role::clone(&kiln) }] {
        assert_eq!(refused(vec![], put_role(role)), message);
    }
    let second = Role { superuser: true, ..role(60, "r") };
    state([put_role(second), put_role(Role { login: false, ..Role::clone(&kiln) })]);
}

#[test]
fn rows_are_counted_and_taken_away() {
    let loaded =
        state([put_table(table(100, "t")), add_shards(100, vec![shard(100, 1, 0..10), shard(100, 2, 10..30)])]);
    assert_eq!((loaded.shards(Oid(100)).rows, loaded.shards(Oid(100)).bytes), (30, 300));
    let emptied = loaded.apply(&Change::RemoveAllRows { table: Oid(100) }).unwrap();
    assert_eq!(emptied.shards(Oid(100)).rows, 0);
    assert_ne!(emptied.rows(Oid(100)).counters.truncations, loaded.rows(Oid(100)).counters.truncations);
}

#[test]
fn a_shard_with_a_column_that_the_table_never_had_is_refused() {
    let narrow = Table { columns: vec![], next_column: 1, ..table(100, "t") };
    let message = refused(vec![put_table(narrow)], add_shards(100, vec![shard(100, 1, 0..10)]));
    assert_eq!(message, "relation \"t\" has no column with id 1");
}
