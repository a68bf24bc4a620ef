//! Creates and loads the tables: `usertable`, and for workload E `userposts`, whose rows are scanned within one user.

use super::YcsbOptions;
use crate::Error;
use crate::measure::server_connection::{CopyIn, Server, run_statements};
use crate::random::{RandomGenerator, hash_fnv};

/// Fields per row.
pub(super) const FIELD_COUNT: usize = 10;
/// Characters per field.
pub(super) const FIELD_LENGTH: usize = 100;
/// Rows per user in `userposts`.
pub(super) const POSTS_PER_USER: u64 = 1_000;

/// Returns the key of a row.
pub(super) fn user_key(number: u64) -> String {
    format!("user{:020}", hash_fnv(number))
}

/// Returns the field names, each followed by `sql_type`, separated by commas.
pub(super) fn draw_fields(sql_type: &str) -> String {
    let names = (0..FIELD_COUNT).map(|field| format!("field{field}{sql_type}"));
    names.collect::<Vec<_>>().join(", ")
}

pub(super) async fn load(server: &Server, options: &YcsbOptions) -> Result<(), Error> {
    let client = server.connect().await?;
    let storage = server.storage_clause(options.storage);
    let placed = if server.is_kiln() { " DISTRIBUTE ON (k1)" } else { "" };
    let text = draw_fields(" varchar(100)");
    run_statements(
        &client,
        "creating the tables",
        &format!(
            "DROP TABLE IF EXISTS usertable; DROP TABLE IF EXISTS userposts; \
         CREATE TABLE usertable (ycsb_key varchar(255) PRIMARY KEY, {text}){storage}; \
         CREATE TABLE userposts (k1 bigint, k2 bigint, {text}, PRIMARY KEY (k1, k2)){storage}{placed}"
        ),
    )
    .await?;
    let random = RandomGenerator::new(0x9C5B);
    let row = || (0..FIELD_COUNT).map(|_| random.next_text(FIELD_LENGTH)).collect::<Vec<_>>().join("\t");
    let mut copy = CopyIn::begin(&client, "usertable").await?;
    for number in 0..options.rows {
        copy.write_row(&format!("{}\t{}", user_key(number), row())).await?;
    }
    copy.finish().await?;
    let mut copy = CopyIn::begin(&client, "userposts").await?;
    for number in 0..options.rows {
        copy.write_row(&format!("{}\t{}\t{}", number / POSTS_PER_USER, number % POSTS_PER_USER, row())).await?;
    }
    copy.finish().await?;
    // PostgreSQL needs statistics of a table that was just loaded; Kiln has them.
    if !server.is_kiln() {
        run_statements(&client, "VACUUM ANALYZE", "VACUUM ANALYZE usertable").await?;
        run_statements(&client, "VACUUM ANALYZE", "VACUUM ANALYZE userposts").await?;
    }
    Ok(())
}
