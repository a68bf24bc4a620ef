//! CREATE, ALTER and DROP of roles.

use types::Condition;

use super::database::Database;

#[test]
fn options_are_kept() {
    let mut database = Database::new();
    let plan = database.run(
        "CREATE USER anna WITH CREATEDB CONNECTION LIMIT 3 PASSWORD 'secret' VALID UNTIL '2030-01-01 00:00:00+00'",
    );
    assert_eq!(plan.command_tag, "CREATE ROLE");
    let anna = database.role("anna");
    assert!(anna.login && anna.create_db && anna.inherit && !anna.superuser && !anna.create_role);
    assert_eq!((anna.connection_limit, anna.valid_until), (3, Some(1_893_456_000_000_000)));
    assert_eq!(plan.passwords[0].role, anna.oid);
    assert_eq!(plan.passwords[0].text.as_deref(), Some("secret"));
    database.run("CREATE ROLE staff NOLOGIN");
    assert!(!database.role("staff").login);
    database.run("ALTER ROLE staff LOGIN SUPERUSER");
    assert!(database.role("staff").superuser);
    database.run("ALTER ROLE staff SET search_path TO a, b");
    assert!(database.role("staff").settings.contains_key("search_path"));
    database.run("ALTER ROLE staff RESET ALL");
    assert!(database.role("staff").settings.is_empty());
    database.run("ALTER ROLE staff RENAME TO crew");
    assert!(database.state.role_by_name("staff").is_none());
}

#[test]
fn roles_that_own_or_are_in_use_stay() {
    let mut database = Database::with(&["CREATE ROLE anna", "CREATE SCHEMA s AUTHORIZATION anna"]);
    let error = database.refusal("DROP ROLE anna");
    assert_eq!(error.condition, Condition::DependentObjectsStillExist);
    assert_eq!(error.message, "role \"anna\" cannot be dropped because some objects depend on it");
    assert_eq!(error.detail.as_deref(), Some("owner of schema s"));
    assert_eq!(database.refusal("DROP ROLE kiln").message, "current user cannot be dropped");
    assert_eq!(database.refusal("DROP ROLE nobody").message, "role \"nobody\" does not exist");
    assert_eq!(database.notices("DROP ROLE IF EXISTS nobody"), ["role \"nobody\" does not exist, skipping"]);
    database.run("ALTER SCHEMA s OWNER TO kiln");
    database.run("DROP USER anna");
    assert!(database.state.role_by_name("anna").is_none());
}

#[test]
fn names_are_free_and_not_postgres_own() {
    let mut database = Database::with(&["CREATE ROLE anna"]);
    assert_eq!(database.refusal("CREATE ROLE anna").message, "role \"anna\" already exists");
    assert_eq!(database.refusal("CREATE ROLE pg_anna").message, "role name \"pg_anna\" is reserved");
    assert_eq!(database.refusal("ALTER ROLE kiln RENAME TO x").message, "session user cannot be renamed");
}

#[test]
fn only_superusers_make_superusers() {
    let mut database = Database::with(&["CREATE ROLE anna CREATEROLE", "CREATE ROLE bob"]);
    database.set_role("anna");
    database.run("CREATE ROLE helper");
    database.run("ALTER ROLE helper LOGIN");
    assert_eq!(database.refusal("CREATE ROLE boss SUPERUSER").message, "must be superuser to create superusers");
    assert_eq!(
        database.refusal("ALTER ROLE kiln NOLOGIN").message,
        "must be superuser to alter superuser roles or change superuser attribute"
    );
    database.set_role("bob");
    assert_eq!(database.refusal("CREATE ROLE x").message, "permission denied to create role");
    assert_eq!(database.refusal("DROP ROLE helper").message, "permission denied to drop role");
    database.run("ALTER ROLE bob PASSWORD 'new'");
}

#[test]
fn the_database_has_settings() {
    let mut database = Database::with(&["ALTER DATABASE kiln SET statement_timeout = '5s'"]);
    assert_eq!(database.state.database().settings.len(), 1);
    assert_eq!(
        database.refusal("ALTER DATABASE other SET TimeZone = 'UTC'").message,
        "database \"other\" does not exist"
    );
    assert_eq!(
        database.refusal("ALTER DATABASE kiln SET nonsense = 1").message,
        "unrecognized configuration parameter \"nonsense\""
    );
    database.run("ALTER DATABASE kiln RESET ALL");
    assert!(database.state.database().settings.is_empty());
}
