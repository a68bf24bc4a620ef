//! Home of one test file: a database of PostgreSQL, a schema of both servers and a folder, all removed after the file.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;

use anyhow::Context;
use tempfile::TempDir;
use tokio_postgres::Config;

use crate::servers::Servers;
use crate::session::{STATEMENT_TIMEOUT_MS, Session};

const SCHEMAS: &str = "SELECT nspname FROM pg_namespace WHERE nspname NOT LIKE 'pg\\_%'";
const ROLES: &str = "SELECT rolname FROM pg_roles WHERE rolname NOT LIKE 'pg\\_%'";

/// Home of a test file.
pub(crate) struct Home {
    database: String,
    schema: String,
    folder: TempDir,
    kiln_schemas: BTreeSet<String>,
    kiln_roles: BTreeSet<String>,
    postgres_roles: BTreeSet<String>,
}

impl Home {
    /// Makes the home of a file with a number of its own.
    pub(crate) async fn create(servers: &Servers, number: usize) -> anyhow::Result<Self> {
        let folder = TempDir::with_prefix("kiln-suite-").context("cannot make a temporary folder")?;
        // Both servers write there, PostgreSQL perhaps as another user.
        let everybody = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(folder.path(), everybody).context("cannot open the temporary folder to everybody")?;
        let database = format!("suite_{number}");
        let schema = if servers.kiln.is_local() { "public".to_owned() } else { database.clone() };
        let kiln = Session::open(&servers.kiln.config, "").await.context("Kiln")?;
        let postgres = Session::open(&servers.postgres.config, "").await.context("PostgreSQL")?;
        let kiln_schemas = names(&kiln, SCHEMAS).await?;
        let kiln_roles = names(&kiln, ROLES).await?;
        let postgres_roles = names(&postgres, ROLES).await?;
        postgres.execute(&format!("DROP DATABASE IF EXISTS {database} WITH (FORCE)")).await?;
        let options = "TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C'";
        postgres.execute(&format!("CREATE DATABASE {database} {options}")).await?;
        let home = Self { database, schema, folder, kiln_schemas, kiln_roles, postgres_roles };
        if home.schema != "public" {
            kiln.execute(&format!("DROP SCHEMA IF EXISTS {} CASCADE", home.schema)).await?;
            kiln.execute(&format!("CREATE SCHEMA {}", home.schema)).await?;
            let inside = Session::open(&home.postgres(servers), "").await.context("PostgreSQL")?;
            inside.execute(&format!("CREATE SCHEMA {}", home.schema)).await?;
        }
        Ok(home)
    }

    /// Returns the folder that both servers can write.
    pub(crate) fn folder(&self) -> String {
        self.folder.path().display().to_string()
    }

    /// Returns the address of the file's database of PostgreSQL.
    pub(crate) fn postgres(&self, servers: &Servers) -> Config {
        let mut config = servers.postgres.config.clone();
        config.dbname(&self.database);
        config
    }

    /// Returns the statements with which each session begins.
    pub(crate) fn setup(&self) -> String {
        let path = if self.schema == "public" {
            String::new()
        } else {
            format!("; SET search_path = {}, public", self.schema)
        };
        format!(
            "SET statement_timeout = {STATEMENT_TIMEOUT_MS}; SET TimeZone = 'UTC'; SET DateStyle = 'ISO, MDY'{path}"
        )
    }

    /// Removes the file's database, schemas and roles. A Kiln that cannot be cleaned is replaced.
    pub(crate) async fn remove(self, servers: &mut Servers) -> anyhow::Result<()> {
        let postgres = Session::open(&servers.postgres.config, "").await.context("PostgreSQL")?;
        // A database or a role that stays disturbs few other files: databases have other names there.
        let _ = postgres.execute(&format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.database)).await;
        for role in names(&postgres, ROLES).await?.difference(&self.postgres_roles) {
            let _ = postgres.execute(&format!("DROP ROLE {}", quoted(role))).await;
        }
        match self.clean_kiln(servers).await {
            Ok(()) => Ok(()),
            Err(error) => servers.kiln.replace().with_context(|| format!("{error:#}")),
        }
    }

    async fn clean_kiln(&self, servers: &Servers) -> anyhow::Result<()> {
        let kiln = Session::open(&servers.kiln.config, "").await?;
        for schema in names(&kiln, SCHEMAS).await?.difference(&self.kiln_schemas) {
            kiln.execute(&format!("DROP SCHEMA {} CASCADE", quoted(schema))).await?;
        }
        kiln.execute(&format!("DROP SCHEMA IF EXISTS {} CASCADE", self.schema)).await?;
        if self.schema == "public" {
            kiln.execute("CREATE SCHEMA public").await?;
        }
        for role in names(&kiln, ROLES).await?.difference(&self.kiln_roles) {
            kiln.execute(&format!("DROP ROLE {}", quoted(role))).await?;
        }
        Ok(())
    }
}

async fn names(session: &Session, sql: &str) -> anyhow::Result<BTreeSet<String>> {
    Ok(session.execute(sql).await?.rows.into_iter().flatten().flatten().collect())
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
