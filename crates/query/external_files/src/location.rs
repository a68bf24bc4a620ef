//! Resolves a location to files: one file, the Parquet files of a folder, or those that match a pattern, on the local
//! disk or in object storage.

use std::path::Path;
use std::sync::Arc;

use objects::Objects;
use shards::ExternalFileLocation;
use storage_error::{from_objects, from_shards};
use types::{SqlError, SqlResult};

use crate::external_files::ExternalFiles;
use crate::glob::expand_pattern;
use crate::object_listing::{list_matching_objects, split_bucket_url};

/// Pattern of the files that are read of a folder.
const FILES_OF_FOLDER: &str = "*.parquet";

impl ExternalFiles {
    /// Lists the files at a location, sorted by name.
    pub(crate) async fn resolve_location(&self, location: &str) -> SqlResult<Vec<ExternalFileLocation>> {
        if location.starts_with('/') {
            return list_local_files(location.to_owned()).await;
        }
        if let Some(path) = location.strip_prefix("file://") {
            return list_local_files(path.to_owned()).await;
        }
        let (bucket, name) = split_bucket_url(location)?;
        let objects = self.cache.bucket_or_open(&bucket, || {
            let (clock, random) = (Arc::clone(&self.clock), Arc::clone(&self.random));
            Objects::open(&bucket, clock, random).map_err(from_objects)
        })?;
        let name = if name.ends_with('/') { format!("{name}{FILES_OF_FOLDER}") } else { name.to_owned() };
        let found = list_matching_objects(&objects, &name).await?;
        let place = |object| ExternalFileLocation::Object { objects: objects.clone(), object: Arc::new(object) };
        Ok(found.into_iter().map(place).collect())
    }
}

/// Lists the files at a location on the local disk.
async fn list_local_files(location: String) -> SqlResult<Vec<ExternalFileLocation>> {
    let found = tokio::task::spawn_blocking(move || {
        let is_folder = Path::new(&location).is_dir();
        let pattern =
            if is_folder { format!("{}/{FILES_OF_FOLDER}", location.trim_end_matches('/')) } else { location };
        // The hint is about COPY.
        let paths = expand_pattern(&pattern).map_err(|error| SqlError { hint: None, ..error })?;
        paths.into_iter().map(|path| ExternalFileLocation::from_path(path).map_err(from_shards)).collect()
    });
    found.await.unwrap_or_else(|error| {
        Err(SqlError::internal(format!("the task that lists files of an external table failed: {error}")))
    })
}
