//! The files of external tables: listed for every statement that reads them, and opened if they are new or changed.

use std::sync::Arc;

use catalog::Table;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt, TryStreamExt};
use scan::column_defs;
use session_context::{FileColumn, ListedFiles};
use shards::external::{conversion, table_of_cache_id};
use shards::{ColumnDef, ExternalFile, ExternalFileLocation, ShardReader};
use storage_error::from_shards;
use tokio_util::task::AbortOnDropHandle;
use types::{Clock, Condition, Random, ShardId, SqlError, SqlResult};

use crate::file_cache::FileCache;

/// Number of files that are opened concurrently.
const CONCURRENT_OPENS: usize = 8;

/// Service that lists and opens the files of external tables.
#[derive(Debug)]
pub struct ExternalFiles {
    pub(crate) cache: FileCache,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
}

impl ExternalFiles {
    /// Creates a service with an empty cache.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, random: Arc<dyn Random>) -> Self {
        Self { cache: FileCache::default(), clock, random }
    }

    /// Returns the cache of opened files.
    #[must_use]
    pub fn cache(&self) -> &FileCache {
        &self.cache
    }

    /// Lists the present files of an external table and opens them.
    ///
    /// # Errors
    /// `58P01` if there are none; errors of the storage; `42703` and `42804` for a file without the table's columns,
    /// `XX001` for one that is not a Parquet file.
    pub fn list<'a>(&'a self, table: &'a Arc<Table>) -> BoxFuture<'a, SqlResult<ListedFiles>> {
        Box::pin(self.list_unboxed(table))
    }

    async fn list_unboxed(&self, table: &Arc<Table>) -> SqlResult<ListedFiles> {
        let external = table
            .external
            .as_ref()
            .ok_or_else(|| SqlError::internal("the catalog has no file location for an external table"))?;
        let places = self.resolve_location(&external.location).await?;
        let columns: Arc<[ColumnDef]> = column_defs(table).into();
        let readers =
            stream::iter(places).map(|place| self.open_file(table, &columns, place)).buffered(CONCURRENT_OPENS);
        let readers: Vec<ShardReader> = readers.try_collect().await?;
        let ids = readers.iter().map(|reader| reader.meta().id);
        self.cache.record_listing(table.oid, ids.filter(|id| table_of_cache_id(*id).is_some()).collect());
        Ok(ListedFiles::new(readers))
    }

    /// Returns the columns of the files at a location, in the order of the first file.
    ///
    /// # Errors
    /// As [`ExternalFiles::list`]; `42804` if the files differ, `0A000` for columns of unsupported types.
    pub fn columns_at<'a>(&'a self, location: &'a str) -> BoxFuture<'a, SqlResult<Arc<[FileColumn]>>> {
        Box::pin(self.columns_at_unboxed(location))
    }

    async fn columns_at_unboxed(&self, location: &str) -> SqlResult<Arc<[FileColumn]>> {
        let places = self.resolve_location(location).await?;
        let schemas = stream::iter(places).map(read_columns).buffered(CONCURRENT_OPENS);
        let mut schemas: Vec<(String, Vec<FileColumn>)> = schemas.try_collect().await?;
        let (first_name, first) = schemas
            .drain(..1)
            .next()
            .ok_or_else(|| SqlError::internal("the location of an external table resolved to no file"))?;
        for (name, columns) in schemas {
            let other = |column: &FileColumn| columns.iter().find(|other| other.name == column.name);
            for column in &first {
                let problem = match other(column) {
                    Some(other) if other.sql_type == column.sql_type => continue,
                    Some(other) => format!(
                        "column \"{}\" is of type {} in {first_name} but of type {} in {name}",
                        column.name, column.sql_type, other.sql_type
                    ),
                    None => format!("column \"{}\" is in {first_name} but not in {name}", column.name),
                };
                return Err(differing_columns(problem, &column.name));
            }
            let is_new = |column: &&FileColumn| first.iter().all(|known| known.name != column.name);
            if let Some(column) = columns.iter().find(is_new) {
                let problem = format!("column \"{}\" is in {name} but not in {first_name}", column.name);
                return Err(differing_columns(problem, &column.name));
            }
        }
        Ok(first.into())
    }

    async fn open_file(
        &self,
        table: &Arc<Table>,
        columns: &Arc<[ColumnDef]>,
        place: ExternalFileLocation,
    ) -> SqlResult<ShardReader> {
        if let Some(known) = self.cache.get(table.oid, &place) {
            return Ok(known);
        }
        let is_settled = place.is_change_detectable(self.clock.now_us());
        // A file that may still change unnoticed gets a new id each time, so that nothing of it is reused from caches.
        let id = if is_settled { place.id(table.oid, columns) } else { ShardId(self.random.uuid()) };
        let (opened, columns) = (place.clone(), Arc::clone(columns));
        let reader = run_isolated(async move { ShardReader::open_external_file(opened, id, &columns).await }).await?;
        Ok(if is_settled { self.cache.put(table.oid, place, reader) } else { reader })
    }
}

/// Returns the name of a file, and its columns as those of a table.
async fn read_columns(place: ExternalFileLocation) -> SqlResult<(String, Vec<FileColumn>)> {
    let name = place.name();
    let file = run_isolated(async move { ExternalFile::open_location(&place).await }).await?;
    let column = |field: &arrow::datatypes::FieldRef| match conversion::suggest_sql_type(field) {
        Some(sql_type) => Ok(FileColumn { name: field.name().clone(), sql_type }),
        None => {
            let message = format!(
                "column \"{}\" of {name} is of type {}, which a table cannot have",
                field.name(),
                field.data_type()
            );
            Err(SqlError::new(Condition::FeatureNotSupported, message)
                .with_column(field.name())
                .with_hint("Write the columns that the table shall have, without this one."))
        }
    };
    let columns = file.schema().fields().iter().map(column).collect::<SqlResult<Vec<_>>>()?;
    Ok((name, columns))
}

/// Runs work on untrusted bytes in a task of its own, so that a panic becomes an error.
async fn run_isolated<T: Send + 'static>(
    work: impl Future<Output = shards::Result<T>> + Send + 'static,
) -> SqlResult<T> {
    let done = AbortOnDropHandle::new(tokio::spawn(work)).await;
    match done {
        Ok(result) => result.map_err(from_shards),
        Err(error) => {
            Err(SqlError::internal(format!("the task that reads a file of an external table failed: {error}")))
        }
    }
}

fn differing_columns(problem: String, column: &str) -> SqlError {
    SqlError::new(Condition::DatatypeMismatch, "the files have different columns")
        .with_detail(problem)
        .with_column(column)
        .with_hint("Write the columns that the table shall have.")
}
