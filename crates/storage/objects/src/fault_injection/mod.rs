//! Fault injection: an object store that fails requests as planned or at random from a seed.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, UploadPart,
};
use parking_lot::Mutex;
use types::Random;
use types::random::SeededRandom;

#[cfg(test)]
mod tests;

/// Name of this store in errors.
const STORE_NAME: &str = "FaultStore";

/// A failure of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The request fails and has no effect.
    ErrorBeforeEffect,
    /// The request takes effect but reports an error.
    ErrorAfterEffect,
    /// The request takes effect but times out.
    TimeoutAfterEffect,
    /// A conditional put takes effect but reports that the object already exists, as after a lost response and a retry
    /// inside the client. Other requests behave as [`Self::ErrorAfterEffect`].
    FalseConflict,
    /// The response body is truncated; requests without a body behave as [`Self::ErrorBeforeEffect`].
    TruncatedBody,
    /// One bit of the response body is flipped; requests without a body behave as [`Self::ErrorBeforeEffect`].
    FlippedBit,
}

impl Fault {
    /// Faults that callers must survive without wrong results. A flipped bit is not among them: only checksums detect
    /// it.
    pub const DETECTABLE: [Self; 5] = [
        Self::ErrorBeforeEffect,
        Self::ErrorAfterEffect,
        Self::TimeoutAfterEffect,
        Self::FalseConflict,
        Self::TruncatedBody,
    ];

    fn takes_effect(self) -> bool {
        matches!(self, Self::ErrorAfterEffect | Self::TimeoutAfterEffect | Self::FalseConflict)
    }

    fn error(self, location: &Path) -> Error {
        match self {
            Self::TimeoutAfterEffect => {
                Error::Generic { store: STORE_NAME, source: "injected: the request timed out".into() }
            }
            Self::FalseConflict => {
                Error::AlreadyExists { path: location.to_string(), source: "injected: an answer was lost".into() }
            }
            _ => Error::Generic { store: STORE_NAME, source: "injected: internal server error".into() },
        }
    }
}

/// Simulated latency of requests.
pub trait RequestLatency: fmt::Debug + Send + Sync {
    /// Waits for the simulated latency. Called before a request and, for puts, once more before its response.
    fn wait(&self, operation: &'static str) -> BoxFuture<'static, ()>;
}

/// Object store that forwards requests to another store and injects faults.
#[derive(Debug)]
pub struct FaultStore {
    inner: Arc<dyn ObjectStore>,
    plan: Arc<Mutex<FaultPlan>>,
    latency: Option<Arc<dyn RequestLatency>>,
}

/// Faults to inject, and counts of requests and faults so far.
#[derive(Debug)]
struct FaultPlan {
    random: SeededRandom,
    request_count: u64,
    fault_count: u64,
    /// Planned faults by the number of their request.
    planned_faults: BTreeMap<u64, Fault>,
    /// Random faults: one in this many requests fails with one of these.
    random_faults: Option<(u64, Vec<Fault>)>,
}

impl FaultStore {
    /// Wraps `inner`; no faults are injected yet.
    #[must_use]
    pub fn new(inner: Arc<dyn ObjectStore>, seed: u64) -> Self {
        let plan = FaultPlan {
            random: SeededRandom::new(seed),
            request_count: 0,
            fault_count: 0,
            planned_faults: BTreeMap::new(),
            random_faults: None,
        };
        Self { inner, plan: Arc::new(Mutex::new(plan)), latency: None }
    }

    /// Sets the simulated latency of puts, gets and deletes (not of upload parts and lists).
    #[must_use]
    pub fn with_latency(self, pace: Arc<dyn RequestLatency>) -> Self {
        Self { latency: Some(pace), ..self }
    }

    /// Injects `fault` into the request after the next `count`.
    pub fn fail_after(&self, count: u64, fault: Fault) {
        let plan = &mut *self.plan.lock();
        plan.planned_faults.insert(plan.request_count + count, fault);
    }

    /// Injects a random one of `faults` into one in `requests` requests, at random.
    pub fn fail_one_in(&self, requests: u64, faults: &[Fault]) {
        self.plan.lock().random_faults = Some((requests, faults.to_vec()));
    }

    /// Removes all planned and random faults.
    pub fn clear_faults(&self) {
        let plan = &mut *self.plan.lock();
        plan.planned_faults.clear();
        plan.random_faults = None;
    }

    /// Returns the number of requests so far.
    #[must_use]
    pub fn request_count(&self) -> u64 {
        self.plan.lock().request_count
    }

    /// Returns the number of faults injected so far.
    #[must_use]
    pub fn fault_count(&self) -> u64 {
        self.plan.lock().fault_count
    }

    async fn run_with_faults<T>(&self, location: &Path, request: impl Future<Output = Result<T>>) -> Result<T> {
        let fault = self.plan.lock().next_unconditional_fault();
        apply_fault(fault, location, request).await
    }

    async fn wait_for_latency(&self, operation: &'static str) {
        if let Some(pace) = &self.latency {
            pace.wait(operation).await;
        }
    }
}

impl FaultPlan {
    /// Counts the next request and returns its fault, if any.
    fn next_fault(&mut self) -> Option<Fault> {
        let request = self.request_count;
        self.request_count += 1;
        let mut fault = self.planned_faults.remove(&request);
        if let (None, Some((requests, faults))) = (fault, &self.random_faults)
            && self.random.next_u64().is_multiple_of(*requests)
        {
            let index = self.random.next_u64() % faults.len() as u64;
            fault = Some(faults[usize::try_from(index).expect("an index into a list fits usize")]);
        }
        self.fault_count += u64::from(fault.is_some());
        fault
    }

    /// Returns the fault of the next request, which has no condition: a conflict becomes [`Fault::ErrorAfterEffect`].
    fn next_unconditional_fault(&mut self) -> Option<Fault> {
        self.next_fault().map(|fault| if fault == Fault::FalseConflict { Fault::ErrorAfterEffect } else { fault })
    }
}

async fn apply_fault<T>(fault: Option<Fault>, location: &Path, request: impl Future<Output = Result<T>>) -> Result<T> {
    let Some(fault) = fault else { return request.await };
    if fault.takes_effect() {
        request.await?;
    }
    Err(fault.error(location))
}

/// Truncates `body` or flips one of its bits at a random position.
fn damage_body(fault: Fault, body: Bytes, random: u64) -> Bytes {
    if body.is_empty() {
        return body;
    }
    let index = usize::try_from(random % body.len() as u64).expect("an index into the body fits usize");
    match fault {
        Fault::TruncatedBody => body.slice(..index),
        _ => {
            let mut damaged = body.to_vec();
            damaged[index] ^= 1 << (random % 8);
            Bytes::from(damaged)
        }
    }
}

#[async_trait]
impl ObjectStore for FaultStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        let fault = match self.plan.lock().next_fault() {
            Some(Fault::FalseConflict) if options.mode == PutMode::Overwrite => Some(Fault::ErrorAfterEffect),
            fault => fault,
        };
        self.wait_for_latency("put").await;
        let outcome = apply_fault(fault, location, self.inner.put_opts(location, payload, options)).await;
        self.wait_for_latency("put done").await;
        outcome
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let inner = self.run_with_faults(location, self.inner.put_multipart_opts(location, options)).await?;
        Ok(Box::new(FaultUpload { inner, location: location.clone(), plan: Arc::clone(&self.plan) }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        // The fault is drawn after the wait, so that none is injected after `heal`.
        self.wait_for_latency("get").await;
        let (fault, chance) = {
            let mut plan = self.plan.lock();
            (plan.next_unconditional_fault(), plan.random.next_u64())
        };
        match fault {
            Some(fault @ (Fault::TruncatedBody | Fault::FlippedBit)) => {
                let found = self.inner.get_opts(location, options).await?;
                let (meta, range, attributes) = (found.meta.clone(), found.range.clone(), found.attributes.clone());
                let body = damage_body(fault, found.bytes().await?, chance);
                let payload = GetResultPayload::Stream(futures::stream::iter([Ok(body)]).boxed());
                Ok(GetResult { payload, meta, range, attributes })
            }
            fault => apply_fault(fault, location, self.inner.get_opts(location, options)).await,
        }
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        // The fault is drawn after the wait, so that none is injected after `heal`.
        self.wait_for_latency("get").await;
        let (fault, chance) = {
            let mut plan = self.plan.lock();
            (plan.next_unconditional_fault(), plan.random.next_u64())
        };
        match fault {
            Some(fault @ (Fault::TruncatedBody | Fault::FlippedBit)) if !ranges.is_empty() => {
                let mut bodies = self.inner.get_ranges(location, ranges).await?;
                let last = bodies.pop().unwrap_or_default();
                bodies.push(damage_body(fault, last, chance));
                Ok(bodies)
            }
            fault => apply_fault(fault, location, self.inner.get_ranges(location, ranges)).await,
        }
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let (inner, plan, pace) = (Arc::clone(&self.inner), Arc::clone(&self.plan), self.latency.clone());
        let deleted = locations.then(move |location| {
            let (inner, plan, pace) = (Arc::clone(&inner), Arc::clone(&plan), pace.clone());
            async move {
                let location = location?;
                let fault = plan.lock().next_unconditional_fault();
                if let Some(pace) = pace {
                    pace.wait("delete").await;
                }
                let one = futures::stream::iter([Ok(location.clone())]).boxed();
                let request = async { inner.delete_stream(one).next().await.unwrap_or(Ok(location.clone())) };
                apply_fault(fault, &location, request).await
            }
        });
        deleted.boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let fault = self.plan.lock().next_fault();
        let found = self.inner.list(prefix);
        match fault {
            None => found,
            // The list fails after its first two entries.
            Some(_) => {
                let broken = Fault::ErrorAfterEffect.error(&prefix.cloned().unwrap_or_default());
                found.take(2).chain(futures::stream::iter([Err(broken)])).boxed()
            }
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let location = prefix.cloned().unwrap_or_default();
        self.run_with_faults(&location, self.inner.list_with_delimiter(prefix)).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.run_with_faults(to, self.inner.copy_opts(from, to, options)).await
    }
}

impl fmt::Display for FaultStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{STORE_NAME}({})", self.inner)
    }
}

#[derive(Debug)]
struct FaultUpload {
    inner: Box<dyn MultipartUpload>,
    location: Path,
    plan: Arc<Mutex<FaultPlan>>,
}

#[async_trait]
impl MultipartUpload for FaultUpload {
    fn put_part(&mut self, part: PutPayload) -> UploadPart {
        let fault = self.plan.lock().next_unconditional_fault();
        let (sent, location) = (self.inner.put_part(part), self.location.clone());
        async move { apply_fault(fault, &location, sent).await }.boxed()
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let fault = self.plan.lock().next_unconditional_fault();
        apply_fault(fault, &self.location, self.inner.complete()).await
    }

    async fn abort(&mut self) -> Result<()> {
        let fault = self.plan.lock().next_unconditional_fault();
        apply_fault(fault, &self.location, self.inner.abort()).await
    }
}
