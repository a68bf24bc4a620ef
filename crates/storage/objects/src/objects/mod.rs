//! Handle on a storage prefix: reads, writes, lists and deletes objects below it.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use object_store::{GetOptions, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutPayload, UpdateVersion};
use types::{Clock, Random};

use crate::fault_injection::{FaultStore, RequestLatency};
use crate::retry::retry_transient;
use crate::{Error, ObjectWriter, Result, open_by_url};

#[cfg(test)]
pub(crate) mod tests;

/// Maximum number of concurrent range requests for one object.
const CONCURRENT_RANGES_MAX: usize = 8;

/// Handle on a storage prefix such as `file:///folder` or `s3://bucket/prefix`. Cheap to clone; clones share the
/// handle.
///
/// Object names are relative to the prefix, with `/` between their parts: `tables/16384/0a1b.parquet`. Transient
/// failures are retried, so an error that a caller sees is final.
#[derive(Clone)]
pub struct Objects {
    inner: Arc<Inner>,
}

struct Inner {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    /// URL of the prefix, without a trailing slash; contains no credentials.
    url: String,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
}

/// Metadata of an object in a storage.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ObjectInfo {
    /// Name relative to the prefix of the handle.
    pub name: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Time of the last modification.
    pub modified: DateTime<Utc>,
    /// Version of the content.
    pub version: Version,
}

/// Version of an object's content: its ETag and, where the storage has it, version id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version(UpdateVersion);

impl Objects {
    /// Opens the storage at `url` with settings from the process's environment (`AWS_*`, `GOOGLE_*`, `AZURE_*`).
    pub fn open(url: &str, clock: Arc<dyn Clock>, random: Arc<dyn Random>) -> Result<Self> {
        Self::open_with_reserve(url, 0, clock, random)
    }

    /// Opens the storage like [`Self::open_storage`]; in a local folder, writes leave `reserve_bytes` of the disk free.
    pub fn open_with_reserve(
        url: &str,
        reserve_bytes: u64,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
    ) -> Result<Self> {
        let variables =
            std::env::vars_os().filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)));
        let (store, prefix) = open_by_url::open_storage(url, variables, &clock, reserve_bytes)?;
        Ok(Self::new(store, prefix, url, clock, random))
    }

    /// Opens the storage at `url` with `variables` instead of the process's environment.
    pub fn open_with(
        url: &str,
        variables: impl IntoIterator<Item = (String, String)>,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
    ) -> Result<Self> {
        let (store, prefix) = open_by_url::open_storage(url, variables, &clock, 0)?;
        Ok(Self::new(store, prefix, url, clock, random))
    }

    /// Creates a handle on `prefix` of `store`; `url` is the name of the prefix in errors.
    #[must_use]
    pub fn new(
        store: Arc<dyn ObjectStore>,
        prefix: Path,
        url: &str,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
    ) -> Self {
        let url = url.trim_end_matches('/').to_owned();
        Self { inner: Arc::new(Inner { store, prefix, url, clock, random }) }
    }

    /// Returns a handle on the subfolder `name` of this prefix.
    pub fn subfolder(&self, name: &str) -> Result<Self> {
        let prefix = self.path_of(name)?;
        let inner = Inner {
            store: Arc::clone(&self.inner.store),
            prefix,
            url: self.object_url(name),
            clock: Arc::clone(&self.inner.clock),
            random: Arc::clone(&self.inner.random),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Returns a handle on the same prefix through a fault-injecting store, and that store. For simulations.
    ///
    /// `seed` determines the faults, `pace` delays requests, and waits between retries use `clock`.
    #[must_use]
    pub fn with_faults(
        &self,
        seed: u64,
        pace: Arc<dyn RequestLatency>,
        clock: Arc<dyn Clock>,
    ) -> (Self, Arc<FaultStore>) {
        let faults = Arc::new(FaultStore::new(Arc::clone(&self.inner.store), seed).with_latency(pace));
        let store: Arc<dyn ObjectStore> = Arc::clone(&faults) as _;
        let random = Arc::clone(&self.inner.random);
        (Self::new(store, self.inner.prefix.clone(), &self.inner.url, clock, random), faults)
    }

    /// Returns the URL of the prefix.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.inner.url
    }

    /// Whether the objects are in a folder of this machine, so that repeated reads cost no requests.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.url().starts_with("file:")
    }

    /// Returns the URL of the object `name`, for messages.
    #[must_use]
    pub fn object_url(&self, name: &str) -> String {
        format!("{}/{name}", self.inner.url)
    }

    /// Writes an object in one request, replacing any existing one.
    pub async fn put(&self, name: &str, bytes: Bytes) -> Result<Version> {
        let location = self.path_of(name)?;
        self.retry(|| async {
            let payload = PutPayload::from_bytes(bytes.clone());
            let stored = self.inner.store.put(&location, payload).await;
            stored.map(|stored| Version(stored.into())).map_err(|source| self.to_error("write", name, source))
        })
        .await
    }

    /// Writes an object if none of this name exists; returns `false` if another writer's object exists.
    ///
    /// `bytes` must be unique to this write: after a lost response, an existing object that equals `bytes` counts as
    /// written by this call.
    pub async fn put_if_absent(&self, name: &str, bytes: Bytes) -> Result<bool> {
        Ok(self.put_conditionally(name, bytes, &PutMode::Create).await?.is_some())
    }

    /// Replaces an object if its current version is `version`, and returns the new version; `None` if it is another
    /// one. `bytes` must be unique to this write as for [`Self::put_if_absent`].
    pub async fn put_if_matches(&self, name: &str, bytes: Bytes, version: &Version) -> Result<Option<Version>> {
        self.put_conditionally(name, bytes, &PutMode::Update(version.0.clone())).await
    }

    async fn put_conditionally(&self, name: &str, bytes: Bytes, mode: &PutMode) -> Result<Option<Version>> {
        let location = self.path_of(name)?;
        self.retry(|| async {
            let payload = PutPayload::from_bytes(bytes.clone());
            match self.inner.store.put_opts(&location, payload, mode.clone().into()).await {
                Ok(stored) => Ok(Some(Version(stored.into()))),
                // This may be our own write: if the response to an earlier attempt was lost, a retry, here or inside
                // the client, meets the object that the attempt created. Comparing the content decides.
                Err(
                    source @ (object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. }),
                ) => {
                    match self.get_without_retry(name, &location).await {
                        Ok((found, version)) => Ok((found == bytes).then_some(version)),
                        // S3 also answers "conflict" while the race is undecided; a retry sees the outcome.
                        Err(Error::NotFound { .. }) if *mode == PutMode::Create => Err(Error::Request {
                            operation: "write",
                            object: self.object_url(name),
                            source: object_store::Error::Generic { store: "conflict", source: source.into() },
                        }),
                        Err(Error::NotFound { .. }) => Ok(None),
                        Err(error) => Err(error),
                    }
                }
                Err(source) => Err(self.to_error("write", name, source)),
            }
        })
        .await
    }

    /// Starts writing an object of unknown size. The object appears when [`ObjectWriter::finish`] returns.
    pub fn writer(&self, name: &str) -> Result<ObjectWriter> {
        Ok(ObjectWriter::new(self.clone(), name, self.path_of(name)?))
    }

    /// Reads an object.
    pub async fn get(&self, name: &str) -> Result<Bytes> {
        Ok(self.get_versioned(name).await?.0)
    }

    /// Reads an object and its version, for [`Self::put_if_matches`].
    pub async fn get_versioned(&self, name: &str) -> Result<(Bytes, Version)> {
        let location = self.path_of(name)?;
        self.retry(|| self.get_without_retry(name, &location)).await
    }

    async fn get_without_retry(&self, name: &str, location: &Path) -> Result<(Bytes, Version)> {
        let failed = |source| self.to_error("read", name, source);
        let found = self.inner.store.get_opts(location, GetOptions::default()).await.map_err(failed)?;
        let expected = found.meta.size;
        let version = Version::from_meta(&found.meta);
        let bytes = found.bytes().await.map_err(failed)?;
        self.check_length(name, expected, &bytes)?;
        Ok((bytes, version))
    }

    /// Reads the bytes of `range`; fails with [`Error::RangeBeyondEnd`] if the range extends beyond the object's end.
    pub async fn get_range(&self, name: &str, range: Range<u64>) -> Result<Bytes> {
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        let location = self.path_of(name)?;
        self.retry(|| async {
            let failed = |source| self.to_error("read", name, source);
            let options = GetOptions::new().with_range(Some(range.clone()));
            let found = self.inner.store.get_opts(&location, options).await.map_err(failed)?;
            if found.meta.size < range.end {
                let object = self.object_url(name);
                return Err(Error::RangeBeyondEnd { object, bytes: found.meta.size, end: range.end });
            }
            let bytes = found.bytes().await.map_err(failed)?;
            self.check_length(name, range.end - range.start, &bytes)?;
            Ok(bytes)
        })
        .await
    }

    /// Reads the bytes of each of `ranges`; ranges close to each other are fetched by one request.
    pub async fn get_ranges(&self, name: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let location = self.path_of(name)?;
        self.retry(|| async {
            let fetched = self.inner.store.get_ranges(&location, ranges).await;
            let fetched = fetched.map_err(|source| self.to_error("read", name, source))?;
            for (range, bytes) in ranges.iter().zip(&fetched) {
                self.check_length(name, range.end.saturating_sub(range.start), bytes)?;
            }
            Ok(fetched)
        })
        .await
    }

    /// Reads the bytes of each of `ranges` of an object and checks that the object is still the version in `object`.
    ///
    /// # Errors
    /// [`Error::Changed`] if the object has been replaced; else as [`Self::get_range`].
    pub async fn get_ranges_if_unchanged(&self, object: &ObjectInfo, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        // Boxed, because the compiler cannot prove that a stream of closures is `Send`.
        let requests: Vec<BoxFuture<'_, Result<Bytes>>> =
            ranges.iter().map(|range| self.get_range_if_unchanged(object, range.clone()).boxed()).collect();
        stream::iter(requests).buffered(CONCURRENT_RANGES_MAX).try_collect().await
    }

    async fn get_range_if_unchanged(&self, object: &ObjectInfo, range: Range<u64>) -> Result<Bytes> {
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        let location = self.path_of(&object.name)?;
        self.retry(|| async {
            let failed = |source| self.to_error("read", &object.name, source);
            let options = GetOptions::new().with_range(Some(range.clone()));
            let found = self.inner.store.get_opts(&location, options).await.map_err(failed)?;
            if !object.is_same_version(&found.meta) {
                return Err(Error::Changed { object: self.object_url(&object.name) });
            }
            let bytes = found.bytes().await.map_err(failed)?;
            self.check_length(&object.name, range.end - range.start, &bytes)?;
            Ok(bytes)
        })
        .await
    }

    /// Streams an object from start to end. Only opening is retried: a later failure ends the stream.
    pub async fn stream(&self, name: &str) -> Result<BoxStream<'static, Result<Bytes>>> {
        let location = self.path_of(name)?;
        let found = self
            .retry(|| async {
                let found = self.inner.store.get_opts(&location, GetOptions::default()).await;
                found.map_err(|source| self.to_error("read", name, source))
            })
            .await?;
        let (objects, name) = (self.clone(), name.to_owned());
        Ok(found.into_stream().map_err(move |source| objects.to_error("read", &name, source)).boxed())
    }

    /// Returns the metadata of an object.
    pub async fn head(&self, name: &str) -> Result<ObjectInfo> {
        let location = self.path_of(name)?;
        self.retry(|| async {
            let meta =
                self.inner.store.head(&location).await.map_err(|source| self.to_error("look up", name, source))?;
            Ok(ObjectInfo::from_meta(&meta, name.to_owned()))
        })
        .await
    }

    /// Lists all objects below the folder `prefix` (without trailing slash; empty for all objects), in no particular
    /// order.
    pub async fn list(&self, prefix: &str) -> Result<Vec<ObjectInfo>> {
        self.retry(|| async { self.list_stream(prefix)?.try_collect().await }).await
    }

    /// Streams the result of [`Self::list`], for listings too long to hold in memory. A failure ends the stream.
    pub fn list_stream(&self, prefix: &str) -> Result<BoxStream<'static, Result<ObjectInfo>>> {
        let location = if prefix.is_empty() { self.inner.prefix.clone() } else { self.path_of(prefix)? };
        let below = if location.is_root() { None } else { Some(&location) };
        let (objects, prefix) = (self.clone(), prefix.to_owned());
        let found = self.inner.store.list(below).map(move |meta| {
            let meta = meta.map_err(|source| objects.to_error("list", &prefix, source))?;
            let name = objects.name_of(&meta.location);
            Ok(ObjectInfo::from_meta(&meta, name))
        });
        Ok(found.boxed())
    }

    /// Deletes an object; it need not exist.
    pub async fn delete(&self, name: &str) -> Result<()> {
        let location = self.path_of(name)?;
        self.retry(|| async {
            match self.inner.store.delete(&location).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
                Err(source) => Err(self.to_error("delete", name, source)),
            }
        })
        .await
    }

    /// Returns the underlying store, without retries, for readers that use the `object_store` API.
    #[must_use]
    pub fn store(&self) -> Arc<dyn ObjectStore> {
        Arc::clone(&self.inner.store)
    }

    /// Returns the path of object `name` in [`Self::store`].
    pub fn path_of(&self, name: &str) -> Result<Path> {
        let refused = |reason: &str| Error::InvalidName { name: name.to_owned(), reason: reason.to_owned() };
        if name.is_empty() || name.starts_with('/') || name.ends_with('/') {
            return Err(refused("it is empty or has a slash at an end"));
        }
        let relative = Path::parse(name).map_err(|error| refused(&error.to_string()))?;
        Ok(self.inner.prefix.parts().chain(relative.parts()).collect())
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.inner.clock
    }

    pub(crate) fn random(&self) -> &dyn Random {
        &*self.inner.random
    }

    pub(crate) fn to_error(&self, operation: &'static str, name: &str, source: object_store::Error) -> Error {
        let object = self.object_url(name);
        match source {
            object_store::Error::NotFound { .. } => Error::NotFound { object, source },
            object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. } => {
                Error::AccessDenied { operation, object, source }
            }
            source => Error::Request { operation, object, source },
        }
    }

    async fn retry<T, F: Future<Output = Result<T>>>(&self, request: impl FnMut() -> F) -> Result<T> {
        retry_transient(self.clock(), self.random(), request).await
    }

    fn check_length(&self, name: &str, expected: u64, bytes: &Bytes) -> Result<()> {
        let found = bytes.len() as u64;
        if found == expected {
            Ok(())
        } else {
            Err(Error::Truncated { object: self.object_url(name), expected, found })
        }
    }

    /// Returns the object's name relative to the prefix.
    fn name_of(&self, location: &Path) -> String {
        let prefix = self.inner.prefix.as_ref();
        let location = location.as_ref();
        let name = location.strip_prefix(prefix).unwrap_or(location);
        name.trim_start_matches('/').to_owned()
    }
}

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Objects").field(&self.inner.url).finish()
    }
}

impl fmt::Display for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.inner.url)
    }
}

impl ObjectInfo {
    fn from_meta(meta: &ObjectMeta, name: String) -> Self {
        Self { name, bytes: meta.size, modified: meta.last_modified, version: Version::from_meta(meta) }
    }

    /// Whether `found` describes the same content. Without ETags times are compared by the second, because some
    /// storages report finer times in listings than in other responses.
    fn is_same_version(&self, found: &ObjectMeta) -> bool {
        let is_same = match (&self.version.0.e_tag, &found.e_tag) {
            (Some(known), Some(found)) => known == found,
            _ => self.modified.timestamp() == found.last_modified.timestamp(),
        };
        is_same && self.bytes == found.size
    }
}

impl Hash for Version {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.0.e_tag, &self.0.version).hash(state);
    }
}

impl Version {
    fn from_meta(meta: &ObjectMeta) -> Self {
        Self(UpdateVersion { e_tag: meta.e_tag.clone(), version: meta.version.clone() })
    }
}
