//! What a server can do of what the tests here need. What it refuses as not supported is left out, and said.

use tokio_postgres::Client;

/// Abilities.
#[derive(Debug, Clone, Copy)]
pub(super) struct Can {
    pub(super) update: bool,
    /// A serializable transaction may write.
    pub(super) write_serializably: bool,
}

/// Asks for each.
pub(super) async fn probe(client: &Client) -> Can {
    let tables = "CREATE TABLE probe (a int); INSERT INTO probe VALUES (1)";
    client.batch_execute(tables).await.expect("tables can be made and filled");
    let can = Can {
        update: is_supported(client, "UPDATE probe SET a = 2").await,
        write_serializably: is_supported(
            client,
            "BEGIN ISOLATION LEVEL SERIALIZABLE; INSERT INTO probe VALUES (1); COMMIT",
        )
        .await,
    };
    client.batch_execute("DROP TABLE probe").await.expect("tables can be dropped");
    can
}

/// Any other failure than `0A000` is one.
async fn is_supported(client: &Client, sql: &str) -> bool {
    let asked = client.batch_execute(sql).await;
    client.batch_execute("ROLLBACK").await.expect("ROLLBACK always works");
    match asked {
        Ok(()) => true,
        Err(error) if error.code().is_some_and(|code| code.code() == "0A000") => false,
        Err(error) => panic!("{sql}: {error:?}"),
    }
}
