//! From a URL and the usual environment variables to a storage.

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{BackoffConfig, ObjectStore, RetryConfig};
use types::{Clock, Reserve};
use url::Url;

use crate::{Error, FolderDisk, LocalStore, Result};

#[cfg(test)]
mod tests;

/// Opens the storage that `url` names; the path is the prefix inside it.
///
/// `variables` are those of the process, or a test's: `AWS_*`, `GOOGLE_*` and `AZURE_*` as the clouds' own tools read them.
pub(crate) fn open(
    url: &str,
    variables: impl IntoIterator<Item = (String, String)>,
    clock: &Arc<dyn Clock>,
    reserve_bytes: u64,
) -> Result<(Arc<dyn ObjectStore>, Path)> {
    let refused = |reason: &str| Error::Url { url: url.to_owned(), reason: reason.to_owned() };
    let parsed = Url::parse(url).map_err(|error| refused(&error.to_string()))?;
    let prefix = || Path::from_url_path(parsed.path()).map_err(|error| refused(&error.to_string()));
    let failed = |source| Error::Open { url: url.to_owned(), source };
    if parsed.query().is_some() || parsed.fragment().is_some() {
        return Err(refused("it has a query or a fragment"));
    }
    match parsed.scheme() {
        "file" => {
            let folder =
                parsed.to_file_path().map_err(|()| refused("file URLs have three slashes and an absolute path"))?;
            let disk = Arc::new(FolderDisk::of(&folder));
            let reserve = (0 < reserve_bytes).then_some(Reserve { disk, bytes: reserve_bytes });
            let store = LocalStore::keeping(&folder, Arc::clone(clock), reserve).map_err(failed)?;
            Ok((Arc::new(store), Path::default()))
        }
        "memory" => Ok((Arc::new(InMemory::new()), prefix()?)),
        "s3" | "s3a" => {
            bucket(&parsed).ok_or_else(|| refused("the bucket is missing"))?;
            let mut builder = AmazonS3Builder::new().with_url(url).with_retry(retry_config());
            for (key, value) in settings(variables, "AWS_") {
                if is_plain_endpoint(&key, &value) {
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
            for (key, value) in settings(variables, "GOOGLE_") {
                if let Ok(key) = key.parse() {
                    builder = builder.with_config(key, value);
                }
            }
            Ok((Arc::new(builder.build().map_err(failed)?), prefix()?))
        }
        "az" | "abfs" | "abfss" => {
            bucket(&parsed).ok_or_else(|| refused("the container is missing"))?;
            let mut builder = MicrosoftAzureBuilder::new().with_url(url).with_retry(retry_config());
            for (key, value) in settings(variables, "AZURE_") {
                if let Ok(key) = key.parse() {
                    builder = builder.with_config(key, value);
                }
            }
            Ok((Arc::new(builder.build().map_err(failed)?), prefix()?))
        }
        _ => Err(refused("the scheme is none of file, s3, gs, az, abfss, memory")),
    }
}

fn bucket(url: &Url) -> Option<&str> {
    url.host_str().filter(|host| !host.is_empty())
}

/// The variables a cloud's tools read, with the names its client takes.
fn settings(
    variables: impl IntoIterator<Item = (String, String)>,
    family: &'static str,
) -> impl Iterator<Item = (String, String)> {
    variables
        .into_iter()
        .filter(move |(key, _)| key.starts_with(family))
        .map(|(key, value)| (key.to_ascii_lowercase(), value))
}

/// Whether the setting names a server without TLS: who writes `http://` there means it.
fn is_plain_endpoint(key: &str, value: &str) -> bool {
    key.starts_with("aws_endpoint") && value.starts_with("http://")
}

/// The client's own patience with one request: short, since [`crate::retry`] stands above it. Parts of an upload have only this.
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
