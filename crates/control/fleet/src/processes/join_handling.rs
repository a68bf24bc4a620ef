//! Admission of joining workers and handling of their messages.

use cluster_model::{WorkerId, WorkerState};
use control_plane::{VerifiedWorker, VerifyFuture};
use tokio::sync::mpsc;

use super::worker_entry::{Connection, WorkerEntry};
use super::{HostState, WorkerProcesses};
use crate::join::{
    Base64Bytes, ConnectionNumber, FromInstance, FromWorker, Hello, PROTOCOL_VERSION, Welcome, WorkerAssignment,
    WorkerRegistry,
};
use crate::mutual_tls::CertificateName;

/// Longest accepted address or version of a worker.
const WORKER_TEXT_BYTES_MAX: usize = 255;

impl WorkerProcesses {
    /// Checks whether a worker may join: the first time with the secret of its ticket or a verified token, later with
    /// its certificate. Returns the reason for a refusal.
    fn check_join(
        &self,
        hello: &Hello,
        is_certified: bool,
        has_verified_token: bool,
        hosted: &mut HostState,
    ) -> Result<(), String> {
        let Some(one) = hosted.workers.get_mut(&hello.worker).filter(|one| !one.is_gone()) else {
            return Err("this instance has no worker with this id".to_owned());
        };
        let is_expected = match &hello.secret {
            Some(shown) => one.secret_hash.as_ref().is_some_and(|expected| expected.verify(&shown.0)),
            None => has_verified_token || (is_certified && one.has_joined),
        };
        if !is_expected {
            return Err("its ticket is wrong or has been used already".to_owned());
        }
        if WORKER_TEXT_BYTES_MAX < hello.version.len() {
            return Err("its version is too long".to_owned());
        }
        one.worker_mut().version = Some(hello.version.clone());
        if hello.protocol != PROTOCOL_VERSION {
            return Err(format!(
                "it speaks version {} of the protocol, and this instance version {PROTOCOL_VERSION}",
                hello.protocol
            ));
        }
        match one.stop_reason {
            Some(reason) => Err(reason.to_string()),
            None => Ok(()),
        }
    }
}

impl WorkerProcesses {
    /// Registers a worker with a verified token. An earlier worker with the same life (such as a pod) is marked as
    /// gone, because its process was restarted.
    fn register_token_worker(
        &self,
        worker: WorkerId,
        verified: VerifiedWorker,
        hosted: &mut HostState,
    ) -> Result<(), String> {
        if hosted.is_closing {
            return Err("the instance is shutting down".to_owned());
        }
        if let Some(known) = hosted.workers.get(&worker) {
            // The same worker repeats a join whose answer got lost. Ids are random, so with another life somebody
            // reuses an id that it has seen.
            let is_same = known.host_uid.as_ref() == Some(&verified.host_uid) && !known.is_gone();
            return if is_same { Ok(()) } else { Err("its id belongs to another worker".to_owned()) };
        }
        let now = self.clock.monotonic();
        for one in hosted.workers.values_mut().filter(|one| one.host_uid.as_ref() == Some(&verified.host_uid)) {
            one.mark_gone("its process was restarted", now);
        }
        hosted.workers.insert(worker, WorkerEntry::from_token(worker, verified, now));
        Ok(())
    }
}

impl WorkerRegistry for WorkerProcesses {
    fn verify_token<'a>(&'a self, token: &'a str) -> VerifyFuture<'a> {
        match &self.settings.token_verifier {
            Some(verifier) => verifier.verify(token),
            None => Box::pin(std::future::ready(Err("this instance accepts no tokens".to_owned()))),
        }
    }

    fn try_join(
        &self,
        hello: &Hello,
        is_certified: bool,
        verified: Option<VerifiedWorker>,
        sender: mpsc::Sender<FromInstance>,
    ) -> Result<(Box<Welcome>, ConnectionNumber), String> {
        let now = self.clock.monotonic();
        let mut hosted = self.state.lock();
        let has_verified_token = verified.is_some();
        let admitted =
            verified.map_or(Ok(()), |verified| self.register_token_worker(hello.worker, verified, &mut hosted));
        let checked = admitted.and_then(|()| self.check_join(hello, is_certified, has_verified_token, &mut hosted));
        let signed = checked.and_then(|()| {
            let signed = self.authority.sign(CertificateName::Worker(hello.worker), &hello.public_key.0);
            signed.map_err(|error| error.to_string())
        });
        let certificate = match signed {
            Ok(certificate) => certificate,
            Err(reason) => {
                // A refused worker leaves no entry, so that it can join under another token later.
                hosted.workers.retain(|id, one| *id != hello.worker || one.host_uid.is_none() || one.has_joined);
                drop(hosted);
                self.changes.advance();
                return Err(reason);
            }
        };
        hosted.next_connection += 1;
        let number = hosted.next_connection;
        let one = hosted.workers.get_mut(&hello.worker).ok_or("the worker is gone")?;
        // Tickets are single-use.
        (one.secret_hash, one.has_joined) = (None, true);
        one.public_key.clone_from(&hello.public_key.0);
        one.connection = Some(Connection { number, sender });
        one.record_contact(now);
        let seen = one.worker();
        let assignment = WorkerAssignment {
            cluster: seen.cluster,
            slot: seen.slot,
            storage: self.settings.storage.clone(),
            folder: self.settings.workers_folder.clone(),
            reserve_bytes: self.settings.reserve_bytes,
        };
        let resources = self.worker_resources(one);
        drop(hosted);
        self.save_roster();
        Ok((Box::new(Welcome { certificate: Base64Bytes(certificate.to_vec()), assignment, resources }), number))
    }

    fn handle_message(&self, worker: WorkerId, message: FromWorker) {
        let now = self.clock.monotonic();
        let mut hosted = self.state.lock();
        let Some(one) = hosted.workers.get_mut(&worker).filter(|one| !one.is_gone()) else { return };
        let (was_hung, state, since) = (one.worker().hung, one.worker().state, one.worker().state_since);
        match message {
            FromWorker::Joined(joined) if joined.address.len() <= WORKER_TEXT_BYTES_MAX => {
                one.mark_joined(joined.address, now)
            }
            FromWorker::Joined(_) => tracing::warn!(%worker, "ignored a worker's task address: too long"),
            FromWorker::Heartbeat(beat) => one.record_heartbeat(beat, now),
            FromWorker::HandoverDone(took) => one.complete_handover(took.number),
            FromWorker::DrainRequest => one.drain(now),
        }
        let is_news = was_hung || one.worker().state != state;
        if is_news && state == WorkerState::Starting {
            let (cluster, slot) = (one.worker().cluster, one.worker().slot);
            let took_ms = now.saturating_sub(since).as_millis();
            tracing::info!(%worker, %cluster, slot, took_ms, "worker joined");
        }
        drop(hosted);
        if is_news {
            self.changes.advance();
        }
    }

    fn handle_disconnect(&self, worker: WorkerId, connection: ConnectionNumber) {
        let mut hosted = self.state.lock();
        if let Some(one) = hosted.workers.get_mut(&worker)
            && one.connection.as_ref().is_some_and(|current| current.number == connection)
        {
            one.connection = None;
            // Its cache hand-overs end with the connection.
            one.handovers.clear();
            // A worker whose process is not visible here counts as ended once it disconnects after a stop message.
            let has_ended = one.host_uid.is_some() && one.stop_reason.is_some();
            drop(hosted);
            if has_ended {
                self.record_end(worker, "stopped by the instance");
                self.save_roster();
                self.changes.advance();
            }
        }
    }
}
