//! Acquisition, renewal and release of the lease, as `lease_decision.rs` decides.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client, ResourceExt};
use parking_lot::Mutex;
use types::Clock;

use super::lease_decision::{LeaseAction, LeaseObserver, ObservedLease};
use super::{FIELD_MANAGER, LEASE_NAME, OperatorSettings};

/// Renewals within the duration of a lease.
const RENEWALS_PER_LEASE: u32 = 6;
/// Fraction of the lease's duration, as numerator and denominator, after which a leader that could not renew steps
/// down. The remainder is a margin for clock drift and for requests in flight.
const STEP_DOWN_AFTER: (u32, u32) = (2, 3);

/// Participation of one operator in the leader election.
pub(super) struct Leadership {
    leases: Api<Lease>,
    identity: String,
    duration: Duration,
    clock: Arc<dyn Clock>,
    observer: Mutex<LeaseObserver>,
}

impl Leadership {
    pub(super) fn new(client: Client, namespace: &str, settings: &OperatorSettings, clock: Arc<dyn Clock>) -> Self {
        Self {
            leases: Api::namespaced(client, namespace),
            identity: settings.identity.clone(),
            duration: settings.lease,
            clock,
            observer: Mutex::default(),
        }
    }

    /// Waits until this operator leads. It polls the lease, because a leader that dies does not write it.
    pub(super) async fn acquire(&self) {
        loop {
            match self.try_lead().await {
                Ok(true) => return,
                Ok(false) => {}
                Err(error) => tracing::warn!(%error, "could not read or write the operators' lease; trying again"),
            }
            self.clock.sleep(self.duration / RENEWALS_PER_LEASE).await;
        }
    }

    /// Renews the lease until this operator no longer leads, and returns the reason.
    pub(super) async fn renew_until_lost(&self) -> String {
        let mut renewed = self.clock.monotonic();
        loop {
            self.clock.sleep(self.duration / RENEWALS_PER_LEASE).await;
            let (part, of) = STEP_DOWN_AFTER;
            let left = (renewed + self.duration * part / of).saturating_sub(self.clock.monotonic());
            let begun = self.clock.monotonic();
            let turn = tokio::select! {
                biased;
                turn = self.try_lead() => turn,
                () = self.clock.sleep(left) => return "the lease could not be renewed in time".to_owned(),
            };
            match turn {
                // The lease is valid from the request on, not from the response on.
                Ok(true) => renewed = begun,
                Ok(false) => return "another operator leads".to_owned(),
                Err(error) => tracing::warn!(%error, "could not renew the operators' lease; trying again"),
            }
        }
    }

    /// Releases the lease, so that another operator can lead at once.
    pub(super) async fn release(&self) {
        let released = async {
            let Some(lease) = self.leases.get_opt(LEASE_NAME).await? else { return Ok(()) };
            if holder(&lease) == self.identity {
                self.write(Some(lease), "").await?;
            }
            Ok::<(), kube::Error>(())
        };
        tokio::select! {
            given = released => if let Err(error) = given {
                tracing::warn!(%error, "could not release the lease; the next operator waits until it expires");
            },
            () = self.clock.sleep(self.duration / RENEWALS_PER_LEASE) => {}
        }
    }

    /// Reads the lease, creates, takes or renews it if due, and returns whether this operator leads now.
    async fn try_lead(&self) -> Result<bool, kube::Error> {
        let lease = self.leases.get_opt(LEASE_NAME).await?;
        let reading = lease.as_ref().map(|lease| ObservedLease {
            holder: holder(lease).to_owned(),
            version: lease.resource_version().unwrap_or_default(),
        });
        let now = self.clock.monotonic();
        let next = self.observer.lock().decide(reading.as_ref(), &self.identity, self.duration, now);
        match next {
            LeaseAction::Wait(left) => {
                tracing::debug!(holder = reading.map(|lease| lease.holder), ?left, "another operator holds the lease");
                Ok(false)
            }
            LeaseAction::Create | LeaseAction::TakeOver | LeaseAction::Renew => {
                match self.write(lease, &self.identity).await {
                    // Another operator was faster.
                    Err(kube::Error::Api(error)) if error.is_conflict() || error.is_already_exists() => Ok(false),
                    written => written.map(|()| true),
                }
            }
        }
    }

    /// Writes `whose` as the holder of the lease, or fails with a conflict if the lease has changed since it was read.
    async fn write(&self, read: Option<Lease>, new_holder: &str) -> Result<(), kube::Error> {
        let now = Timestamp::from_microsecond(self.clock.now_us()).unwrap_or(Timestamp::UNIX_EPOCH);
        let parameters = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let before = read.as_ref().and_then(|lease| lease.spec.clone()).unwrap_or_default();
        let is_new = before.holder_identity.as_deref() != Some(new_holder);
        let transitions = before.lease_transitions.unwrap_or(0);
        let spec = LeaseSpec {
            holder_identity: Some(new_holder.to_owned()),
            lease_duration_seconds: Some(i32::try_from(self.duration.as_secs().max(1)).unwrap_or(i32::MAX)),
            acquire_time: if is_new { Some(MicroTime(now)) } else { before.acquire_time },
            renew_time: Some(MicroTime(now)),
            lease_transitions: Some(if is_new { transitions.saturating_add(1) } else { transitions }),
            ..LeaseSpec::default()
        };
        match read {
            Some(lease) => {
                // `lease` carries the version that was read, so a write in between makes this one fail.
                let lease = Lease { spec: Some(spec), ..lease };
                self.leases.replace(LEASE_NAME, &parameters, &lease).await?;
            }
            None => {
                let metadata = ObjectMeta { name: Some(LEASE_NAME.to_owned()), ..ObjectMeta::default() };
                self.leases.create(&parameters, &Lease { metadata, spec: Some(spec) }).await?;
            }
        }
        Ok(())
    }
}

fn holder(lease: &Lease) -> &str {
    lease.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref()).unwrap_or_default()
}
