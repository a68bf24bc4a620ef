//! Opening of storages by URL and environment variables.

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{BackoffConfig, ObjectStore, RetryConfig};
use types::{Clock, DiskReserve};
use url::Url;

use crate::{Error, FolderDisk, LocalStore, Result};

#[cfg(test)]
mod tests;

/// Opens the storage that `url` denotes; returns it with the prefix that the URL's path gives.
///
/// `variables` are environment variables; `AWS_*`, `GOOGLE_*` and `AZURE_*` have the meaning of the clouds' own tools.
pub(crate) fn open_storage(
    url: &str,
    variables: impl IntoIterator<Item = (String, String)>,
    clock: &Arc<dyn Clock>,
    reserve_bytes: u64,
) -> Result<(Arc<dyn ObjectStore>, Path)> {
    let refused = |reason: &str| Error::InvalidUrl { url: url.to_owned(), reason: reason.to_owned() };
    let parsed = Url::parse(url).map_err(|error| refused(&error.to_string()))?;
    let prefix = || Path::from_url_path(parsed.path()).map_err(|error| refused(&error.to_string()));
    let failed = |source| Error::Open { url: url.to_owned(), source };
    if parsed.query().is_some() || parsed.fragment().is_some() {
        return Err(refused("a storage URL must not have a query or a fragment"));
    }
    match parsed.scheme() {
        "file" => {
            let folder =
                parsed.to_file_path().map_err(|()| refused("a file URL needs three slashes and an absolute path"))?;
            let disk = Arc::new(FolderDisk::new(&folder));
            let reserve = (0 < reserve_bytes).then_some(DiskReserve { disk, bytes: reserve_bytes });
            let store = LocalStore::with_reserve(&folder, Arc::clone(clock), reserve).map_err(failed)?;
            Ok((Arc::new(store), Path::default()))
        }
        "memory" => Ok((Arc::new(InMemory::new()), prefix()?)),
        "s3" | "s3a" => {
            bucket(&parsed).ok_or_else(|| refused("the bucket is missing"))?;
            let mut builder = AmazonS3Builder::new().with_url(url).with_retry(retry_config());
            for (key, value) in client_settings(variables, "AWS_") {
                if is_http_endpoint(&key, &value) {
                    builder = builder.with_allow_http(true);
                }
                if let Ok(key) = key.parse() {
                    builder = builder.with_config(key, value);
                }
            }
            Ok((Arc::new(builder.build().map_err(failed)?), prefix()?))
        }
        "gs" => {
            bucket(&parsed).ok_or_else(|| refused("the bucket is missing"))?;
            let mut builder = GoogleCloudStorageBuilder::new().with_url(url).with_retry(retry_config());
            for (key, value) in client_settings(variables, "GOOGLE_") {
                if let Ok(key) = key.parse() {
                    builder = builder.with_config(key, value);
                }
            }
            Ok((Arc::new(builder.build().map_err(failed)?), prefix()?))
        }
        "az" | "abfs" | "abfss" => {
            bucket(&parsed).ok_or_else(|| refused("the container is missing"))?;
            let mut builder = MicrosoftAzureBuilder::new().with_url(url).with_retry(retry_config());
            for (key, value) in client_settings(variables, "AZURE_") {
                if let Ok(key) = key.parse() {
                    builder = builder.with_config(key, value);
                }
            }
            Ok((Arc::new(builder.build().map_err(failed)?), prefix()?))
        }
        _ => Err(refused("the scheme must be one of file, s3, s3a, gs, az, abfs, abfss, memory")),
    }
}

fn bucket(url: &Url) -> Option<&str> {
    url.host_str().filter(|host| !host.is_empty())
}

/// Filters `variables` by the prefix `family` and lower-cases their names, as the client's settings are named.
fn client_settings(
    variables: impl IntoIterator<Item = (String, String)>,
    family: &'static str,
) -> impl Iterator<Item = (String, String)> {
    variables
        .into_iter()
        .filter(move |(key, _)| key.starts_with(family))
        .map(|(key, value)| (key.to_ascii_lowercase(), value))
}

/// Whether the setting is an S3 endpoint with an explicit `http://`, which permits connections without TLS.
fn is_http_endpoint(key: &str, value: &str) -> bool {
    key.starts_with("aws_endpoint") && value.starts_with("http://")
}

/// Returns the client's own retry settings: short, because [`crate::retry::retry_transient`] retries above it. Upload parts have only
/// this.
fn retry_config() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(2),
            base: 2.0,
        },
        max_retries: 5,
        retry_timeout: Duration::from_secs(20),
    }
}
