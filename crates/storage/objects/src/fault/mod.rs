//! A store that fails on purpose, from a seed.

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

/// The store that faults name as their origin.
const STORE: &str = "FaultStore";

/// What goes wrong with one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// An error, and the request took no effect.
    ErrorBefore,
    /// An error, and the request took effect.
    ErrorAfter,
    /// No answer in time, and the request took effect.
    TimeoutAfter,
    /// A conditional put took effect, its answer was lost, and the client, asking again, was told "exists already".
    /// Other requests took effect and fail.
    Conflict,
    /// The body of the answer ends early; requests without one fail before.
    Truncate,
    /// One bit of the body of the answer is wrong; requests without one fail before.
    BitFlip,
}

impl Fault {
    /// The faults a caller must survive without a wrong result. A flipped bit is none of them: only checksums tell.
    pub const DETECTABLE: [Self; 5] =
        [Self::ErrorBefore, Self::ErrorAfter, Self::TimeoutAfter, Self::Conflict, Self::Truncate];

    fn takes_effect(self) -> bool {
        matches!(self, Self::ErrorAfter | Self::TimeoutAfter | Self::Conflict)
    }

    fn error(self, location: &Path) -> Error {
        match self {
            Self::TimeoutAfter => Error::Generic { store: STORE, source: "injected: the request timed out".into() },
            Self::Conflict => {
                Error::AlreadyExists { path: location.to_string(), source: "injected: an answer was lost".into() }
            }
            _ => Error::Generic { store: STORE, source: "injected: internal server error".into() },
        }
    }
}

/// Decides how long requests take.
pub trait Pace: fmt::Debug + Send + Sync {
    /// Waits until a request may be made, and once more until its answer may arrive.
    fn wait(&self, what: &'static str) -> BoxFuture<'static, ()>;
}

/// Passes every request on to another store, but for those that it lets fail.
#[derive(Debug)]
pub struct FaultStore {
    inner: Arc<dyn ObjectStore>,
    plan: Arc<Mutex<Plan>>,
    pace: Option<Arc<dyn Pace>>,
}

#[derive(Debug)]
struct Plan {
    random: SeededRandom,
    request_count: u64,
    fault_count: u64,
    /// By number of the request.
    planned: BTreeMap<u64, Fault>,
    /// One of so many requests fails with one of these.
    one_in: Option<(u64, Vec<Fault>)>,
}

impl FaultStore {
    /// A store over `inner` that does not fail yet.
    #[must_use]
    pub fn new(inner: Arc<dyn ObjectStore>, seed: u64) -> Self {
        let plan = Plan {
            random: SeededRandom::new(seed),
            request_count: 0,
            fault_count: 0,
            planned: BTreeMap::new(),
            one_in: None,
        };
        Self { inner, plan: Arc::new(Mutex::new(plan)), pace: None }
    }

    /// Lets whole requests (no parts, no lists) take as long as `pace` says.
    #[must_use]
    pub fn paced(self, pace: Arc<dyn Pace>) -> Self {
        Self { pace: Some(pace), ..self }
    }

    /// Lets the request that comes after `count` others fail.
    pub fn fail_after(&self, count: u64, fault: Fault) {
        let plan = &mut *self.plan.lock();
        plan.planned.insert(plan.request_count + count, fault);
    }

    /// Lets one of `requests` requests fail, at random, with one of `faults`.
    pub fn fail_one_in(&self, requests: u64, faults: &[Fault]) {
        self.plan.lock().one_in = Some((requests, faults.to_vec()));
    }

    /// Lets nothing fail any more.
    pub fn heal(&self) {
        let plan = &mut *self.plan.lock();
        plan.planned.clear();
        plan.one_in = None;
    }

    /// Requests so far.
    #[must_use]
    pub fn request_count(&self) -> u64 {
        self.plan.lock().request_count
    }

    /// Requests so far that failed on purpose.
    #[must_use]
    pub fn fault_count(&self) -> u64 {
        self.plan.lock().fault_count
    }

    async fn pass<T>(&self, location: &Path, request: impl Future<Output = Result<T>>) -> Result<T> {
        let fault = self.plan.lock().next_unconditional();
        pass(fault, location, request).await
    }

    async fn wait(&self, what: &'static str) {
        if let Some(pace) = &self.pace {
            pace.wait(what).await;
        }
    }
}

impl Plan {
    /// What happens to the next request.
    fn next(&mut self) -> Option<Fault> {
        let request = self.request_count;
        self.request_count += 1;
        let mut fault = self.planned.remove(&request);
        if let (None, Some((requests, faults))) = (fault, &self.one_in)
            && self.random.next_u64().is_multiple_of(*requests)
        {
            let index = self.random.next_u64() % faults.len() as u64;
            fault = Some(faults[usize::try_from(index).expect("an index of a list")]);
        }
        self.fault_count += u64::from(fault.is_some());
        fault
    }

    /// [`Self::next`] for a request that no condition can turn down.
    fn next_unconditional(&mut self) -> Option<Fault> {
        self.next().map(|fault| if fault == Fault::Conflict { Fault::ErrorAfter } else { fault })
    }
}

async fn pass<T>(fault: Option<Fault>, location: &Path, request: impl Future<Output = Result<T>>) -> Result<T> {
    let Some(fault) = fault else { return request.await };
    if fault.takes_effect() {
        request.await?;
    }
    Err(fault.error(location))
}

/// The body with `fault` done to it.
fn damage(fault: Fault, body: Bytes, chance: u64) -> Bytes {
    if body.is_empty() {
        return body;
    }
    let index = usize::try_from(chance % body.len() as u64).expect("an index of the body");
    match fault {
        Fault::Truncate => body.slice(..index),
        _ => {
            let mut damaged = body.to_vec();
            damaged[index] ^= 1 << (chance % 8);
            Bytes::from(damaged)
        }
    }
}

#[async_trait]
impl ObjectStore for FaultStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        let fault = match self.plan.lock().next() {
            Some(Fault::Conflict) if options.mode == PutMode::Overwrite => Some(Fault::ErrorAfter),
            fault => fault,
        };
        self.wait("put").await;
        let outcome = pass(fault, location, self.inner.put_opts(location, payload, options)).await;
        self.wait("put done").await;
        outcome
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let inner = self.pass(location, self.inner.put_multipart_opts(location, options)).await?;
        Ok(Box::new(FaultUpload { inner, location: location.clone(), plan: Arc::clone(&self.plan) }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        // Said after the wait: who lets nothing fail any more is not told of a failure later.
        self.wait("get").await;
        let (fault, chance) = {
            let mut plan = self.plan.lock();
            (plan.next_unconditional(), plan.random.next_u64())
        };
        match fault {
            Some(fault @ (Fault::Truncate | Fault::BitFlip)) => {
                let found = self.inner.get_opts(location, options).await?;
                let (meta, range, attributes) = (found.meta.clone(), found.range.clone(), found.attributes.clone());
                let body = damage(fault, found.bytes().await?, chance);
                let payload = GetResultPayload::Stream(futures::stream::iter([Ok(body)]).boxed());
                Ok(GetResult { payload, meta, range, attributes })
            }
            fault => pass(fault, location, self.inner.get_opts(location, options)).await,
        }
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        // Said after the wait: who lets nothing fail any more is not told of a failure later.
        self.wait("get").await;
        let (fault, chance) = {
            let mut plan = self.plan.lock();
            (plan.next_unconditional(), plan.random.next_u64())
        };
        match fault {
            Some(fault @ (Fault::Truncate | Fault::BitFlip)) if !ranges.is_empty() => {
                let mut bodies = self.inner.get_ranges(location, ranges).await?;
                let last = bodies.pop().unwrap_or_default();
                bodies.push(damage(fault, last, chance));
                Ok(bodies)
            }
            fault => pass(fault, location, self.inner.get_ranges(location, ranges)).await,
        }
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let (inner, plan, pace) = (Arc::clone(&self.inner), Arc::clone(&self.plan), self.pace.clone());
        let deleted = locations.then(move |location| {
            let (inner, plan, pace) = (Arc::clone(&inner), Arc::clone(&plan), pace.clone());
            async move {
                let location = location?;
                let fault = plan.lock().next_unconditional();
                if let Some(pace) = pace {
                    pace.wait("delete").await;
                }
                let one = futures::stream::iter([Ok(location.clone())]).boxed();
                let request = async { inner.delete_stream(one).next().await.unwrap_or(Ok(location.clone())) };
                pass(fault, &location, request).await
            }
        });
        deleted.boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let fault = self.plan.lock().next();
        let found = self.inner.list(prefix);
        match fault {
            None => found,
            // A list breaks off after its first entries.
            Some(_) => {
                let broken = Fault::ErrorAfter.error(&prefix.cloned().unwrap_or_default());
                found.take(2).chain(futures::stream::iter([Err(broken)])).boxed()
            }
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let location = prefix.cloned().unwrap_or_default();
        self.pass(&location, self.inner.list_with_delimiter(prefix)).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.pass(to, self.inner.copy_opts(from, to, options)).await
    }
}

impl fmt::Display for FaultStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{STORE}({})", self.inner)
    }
}

#[derive(Debug)]
struct FaultUpload {
    inner: Box<dyn MultipartUpload>,
    location: Path,
    plan: Arc<Mutex<Plan>>,
}

#[async_trait]
impl MultipartUpload for FaultUpload {
    fn put_part(&mut self, part: PutPayload) -> UploadPart {
        let fault = self.plan.lock().next_unconditional();
        let (sent, location) = (self.inner.put_part(part), self.location.clone());
        async move { pass(fault, &location, sent).await }.boxed()
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let fault = self.plan.lock().next_unconditional();
        pass(fault, &self.location, self.inner.complete()).await
    }

    async fn abort(&mut self) -> Result<()> {
        let fault = self.plan.lock().next_unconditional();
        pass(fault, &self.location, self.inner.abort()).await
    }
}
