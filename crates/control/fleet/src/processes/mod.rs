//! Worker host: starts, watches and stops the worker processes that a control plane wants.
//!
//! A worker is started with a ticket, joins with it, and is then watched through its heartbeats and its process. If a
//! token verifier is configured, workers that others have started, such as pods, can join as well: only their
//! heartbeats are watched, and whoever created them reports their end.
//!
//! - `worker_entry.rs`: the state of one worker
//! - `join_handling.rs`: admission of joining workers, and handling of their messages
//! - `process.rs`: a process identified by pidfd, so that its end is seen even if another process is its parent
//! - `roster_file.rs`: the file with which the next instance takes over the workers
//! - `worker_resources.rs`: resource shares of workers
//! - `statement_registration.rs`: statements that run on workers
//! - `announce_shards.rs`: messages about new shards
//! - `unreachable_workers.rs`: workers that the instance can reach but a query could not

mod announce_shards;
mod join_handling;
mod process;
mod roster_file;
mod statement_registration;
mod unreachable_workers;
mod worker_entry;
mod worker_resources;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::{Arc, Weak};
use std::time::Duration;

use cluster_model::{ClusterId, StopReason, Worker, WorkerId, WorkerSpec, WorkerState};
use control_plane::{Revisions, StartRequest, TokenWorkerHost, WorkerHost};
use exchange::{CacheWarmingStats, Dialer};
use parking_lot::Mutex;
use scheduler::WorkerRegistration;
use statement_registration::StatementRegistration;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use types::{Clock, Random};
use worker_entry::WorkerEntry;
use worker_resources::{dedicated_resources, shared_resources};

use crate::TICKET_VARIABLE;
use crate::certificate_authority::Authority;
use crate::fleet::FleetSettings;
use crate::join::{Base64Bytes, FromInstance, HandoverRequest, WorkerResources};
use crate::join_ticket::{SecretHash, Ticket};
use crate::mutual_tls::CertificateName;
use crate::slot_folder;
use crate::task_dialer::{TlsDialer, task_url};
pub use process::can_watch_processes;
use process::{Exit, Process};
use roster_file::{Roster, RosterFile};

/// Time between a stop message and SIGKILL.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// Worker host for processes: the child processes of an instance and the workers that joined with a token.
pub struct WorkerProcesses {
    weak_self: Weak<Self>,
    settings: FleetSettings,
    authority: Arc<Authority>,
    /// Address of the join listener.
    address: SocketAddr,
    dialer: Arc<TlsDialer>,
    roster: RosterFile,
    /// Lock around writes of the roster, so that an older state never replaces a newer one.
    save_lock: Mutex<()>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    runtime: Handle,
    state: Mutex<HostState>,
    changes: Revisions,
}

/// Cache statistics of a worker since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheStatistics {
    /// Block lookups that were served from memory.
    pub hits: u64,
    /// Block lookups that were not served from memory.
    pub misses: u64,
    /// Statistics of the pre-warming with new shards.
    pub warming: CacheWarmingStats,
}

#[derive(Default)]
struct HostState {
    workers: BTreeMap<WorkerId, WorkerEntry>,
    /// True once the instance shuts down; no worker is started any more.
    is_closing: bool,
    next_statement: u64,
    next_connection: u64,
    next_handover: u64,
}

impl WorkerProcesses {
    /// Opens the host and takes over the workers of an earlier instance that can rejoin; kills the others.
    pub(crate) fn open(
        settings: FleetSettings,
        authority: Arc<Authority>,
        address: SocketAddr,
        dialer: Arc<TlsDialer>,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
    ) -> Arc<Self> {
        let roster = RosterFile::in_folder(&settings.workers_folder);
        let host = Arc::new_cyclic(|this| Self {
            weak_self: Weak::clone(this),
            settings,
            authority,
            address,
            dialer,
            roster,
            save_lock: Mutex::default(),
            clock,
            random,
            runtime: Handle::current(),
            state: Mutex::default(),
            changes: Revisions::default(),
        });
        host.recover_workers();
        host.save_roster();
        host
    }

    /// Returns the join address of the earlier instance with this folder.
    pub(crate) fn previous_address(settings: &FleetSettings) -> Option<SocketAddr> {
        RosterFile::in_folder(&settings.workers_folder).load().address
    }

    /// Returns a counter that grows when a worker has joined, ended, recovered or finished its last statement, which is
    /// when reconciliation has something to do.
    #[must_use]
    pub fn changes(&self) -> &Revisions {
        &self.changes
    }

    /// Returns the connector to workers by their task URLs ([`crate::task_url`]).
    #[must_use]
    pub fn dialer(&self) -> Arc<dyn Dialer> {
        Arc::clone(&self.dialer) as Arc<dyn Dialer>
    }

    /// Registers one statement on those of `workers` that are ready, until the returned value is dropped; `None` if
    /// none is ready.
    #[must_use]
    pub fn register_statement(&self, workers: &[Worker]) -> Option<Box<dyn WorkerRegistration>> {
        let host = self.weak_self.upgrade()?;
        StatementRegistration::try_new(&host, workers).map(|held| Box::new(held) as Box<dyn WorkerRegistration>)
    }

    /// Returns the bytes of memory that a worker's tasks use, as last reported; `None` for a worker of another host.
    #[must_use]
    pub fn memory_used(&self, worker: WorkerId) -> Option<u64> {
        self.state.lock().workers.get(&worker).map(WorkerEntry::memory_used)
    }

    /// Returns a worker's cache statistics, as last reported; `None` for a worker of another host.
    #[must_use]
    pub fn cache_statistics(&self, worker: WorkerId) -> Option<CacheStatistics> {
        self.state.lock().workers.get(&worker).map(WorkerEntry::cache_statistics)
    }

    /// Asks a worker to warm its cache from the workers `from`, with the parts that it will own once parts are placed
    /// among `slots`. Completes when the worker reports the end or its connection is closed.
    pub fn start_handover(
        &self,
        worker: WorkerId,
        from: &[Worker],
        slots: Vec<u32>,
    ) -> impl Future<Output = ()> + Send + 'static {
        let from = from.iter().filter_map(task_url).map(String::from).collect();
        let mut hosted = self.state.lock();
        hosted.next_handover += 1;
        let number = hosted.next_handover;
        let (done, taken) = oneshot::channel();
        if let Some(one) = hosted.workers.get_mut(&worker)
            && one.send(FromInstance::StartHandover(HandoverRequest { number, from, slots }))
        {
            one.handovers.insert(number, done);
        }
        async { drop(taken.await) }
    }

    /// Marks exactly these workers as handing over their caches: reconciliation does not stop them meanwhile.
    pub fn set_handing_over(&self, leaving: &BTreeSet<WorkerId>) {
        for (worker, one) in &mut self.state.lock().workers {
            one.worker_mut().is_handing_over = leaving.contains(worker);
        }
    }

    /// Deletes the folders of slots that are not wanted any more.
    pub fn clean_folders(&self, is_wanted: impl Fn(ClusterId, u32) -> bool) {
        if let Err(error) = slot_folder::remove_unused_folders(&self.settings.workers_folder, is_wanted) {
            tracing::warn!(%error, "could not delete the folders of unused worker slots");
        }
    }

    /// Stops all child processes and waits for their exit. No worker is started from now on.
    pub(crate) async fn close(&self) {
        let living: Vec<WorkerId> = {
            let mut hosted = self.state.lock();
            hosted.is_closing = true;
            // Workers that were not started here reconnect to the next instance.
            let own = hosted.workers.values().filter(|one| !one.is_gone() && one.host_uid.is_none());
            own.map(|one| one.worker().id).collect()
        };
        for worker in living {
            self.stop(worker, StopReason::Unwanted);
        }
        loop {
            let seen = self.changes.current();
            if self.state.lock().workers.values().all(|one| one.is_gone() || one.host_uid.is_some()) {
                return;
            }
            self.changes.wait_for_newer(seen).await;
        }
    }

    /// Kills all child processes immediately.
    pub(crate) fn kill(&self) {
        let mut hosted = self.state.lock();
        hosted.is_closing = true;
        hosted.workers.values().filter_map(|one| one.process.as_ref()).for_each(Process::kill);
    }

    /// Sends new certificates to all connected workers.
    pub(crate) fn renew_certificates(&self) {
        for one in self.state.lock().workers.values().filter(|one| one.connection.is_some()) {
            match self.authority.sign(CertificateName::Worker(one.worker().id), &one.public_key) {
                Ok(certificate) => drop(one.send(FromInstance::Certificate(Base64Bytes(certificate.to_vec())))),
                Err(error) => {
                    tracing::warn!(worker = %one.worker().id, %error, "could not renew the certificate of a worker");
                }
            }
        }
    }

    /// Takes over the workers in the roster of an earlier instance.
    fn recover_workers(&self) {
        let roster = self.roster.load();
        let is_same_boot = roster.boot_id == process::boot_id();
        let can_come_back = roster.address == Some(self.address);
        let now = self.clock.monotonic();
        for entry in roster.workers {
            if entry.host_uid.is_some() {
                // It knows the join address independently of this instance, and has a certificate.
                if entry.has_joined {
                    self.state.lock().workers.insert(entry.id, WorkerEntry::from_roster(entry, None, now));
                }
                continue;
            }
            let process = is_same_boot.then(|| Process::find(entry.pid, entry.start_ticks));
            let Some(process) = process.flatten() else { continue };
            if !can_come_back || !entry.has_joined {
                process.kill();
                continue;
            }
            let id = entry.id;
            self.watch_exit(id, process.clone());
            self.state.lock().workers.insert(id, WorkerEntry::from_roster(entry, Some(process), now));
        }
    }

    /// Registers a worker that is about to be started and returns its ticket; `None` if the instance shuts down.
    pub(crate) fn register_worker(&self, worker: &StartRequest) -> Option<Ticket> {
        let now = self.clock.monotonic();
        let mut hosted = self.state.lock();
        if hosted.is_closing {
            return None;
        }
        let mut id = WorkerId(self.random.next_u64());
        while hosted.workers.contains_key(&id) {
            id = WorkerId(self.random.next_u64());
        }
        let ticket = Ticket::generate(id, self.authority.certificate().clone(), &*self.random);
        let secret = SecretHash::from_ticket(&ticket, &*self.random);
        hosted.workers.insert(id, WorkerEntry::new(id, worker, Some(secret), now));
        Some(ticket)
    }

    /// Returns the resources of a worker.
    fn worker_resources(&self, one: &WorkerEntry) -> WorkerResources {
        let own = if one.host_uid.is_some() { dedicated_resources } else { shared_resources };
        own(&one.worker().spec, &self.settings)
    }

    /// Starts the process of a worker.
    fn spawn(&self, ticket: &Ticket, worker: &StartRequest) -> io::Result<Process> {
        let FleetSettings { program, launcher, .. } = &self.settings;
        let mut command = launcher.command(program, worker.cluster, worker.slot);
        command
            .arg("worker")
            .args(["--join", &format!("kiln://{}", self.address)])
            .args(["--patience", &self.settings.reconnect_timeout.as_secs().to_string()])
            .env(TICKET_VARIABLE, ticket.encode())
            .envs(self.settings.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        // A separate process group, so that a terminal's Ctrl-C reaches the instance only; it stops its workers itself.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        Process::spawn(&mut command)
    }

    /// Spawns a task that waits for a worker's process to exit.
    fn watch_exit(&self, worker: WorkerId, process: Process) {
        let host = Weak::clone(&self.weak_self);
        self.runtime.spawn(async move {
            let exit = process.wait_for_exit().await;
            if let Some(host) = host.upgrade() {
                host.handle_exit(worker, exit);
            }
        });
    }

    fn handle_exit(&self, worker: WorkerId, exit: Exit) {
        self.record_end(worker, &exit.to_string());
        self.save_roster();
        self.changes.advance();
    }

    /// Marks a worker as gone and logs why.
    fn record_end(&self, worker: WorkerId, how: &str) {
        let now = self.clock.monotonic();
        let mut hosted = self.state.lock();
        let Some(one) = hosted.workers.get_mut(&worker) else { return };
        one.mark_gone(how, now);
        let seen = one.worker();
        let (slot, detail) = (seen.slot, seen.detail.as_deref());
        if seen.failed {
            tracing::warn!(%worker, cluster = %seen.cluster, slot, detail, "worker failed");
        } else {
            tracing::info!(%worker, cluster = %seen.cluster, slot, detail, "worker ended");
        }
    }

    /// Writes the roster.
    fn save_roster(&self) {
        let _one = self.save_lock.lock();
        let workers = self.state.lock().workers.values().filter_map(WorkerEntry::roster_entry).collect();
        let roster = Roster { boot_id: process::boot_id(), address: Some(self.address), workers };
        if let Err(error) = self.roster.save(&roster) {
            tracing::warn!(%error, "could not write the worker roster; the next instance cannot take over the workers");
        }
    }
}

impl WorkerHost for WorkerProcesses {
    fn start(&self, worker: &StartRequest) {
        let Some(ticket) = self.register_worker(worker) else { return };
        match self.spawn(&ticket, worker) {
            Ok(process) => {
                let mut hosted = self.state.lock();
                let is_closing = hosted.is_closing;
                if let Some(one) = hosted.workers.get_mut(&ticket.worker) {
                    one.process = Some(process.clone());
                    if is_closing || one.stop_reason.is_some() {
                        process.kill();
                    }
                }
                drop(hosted);
                self.watch_exit(ticket.worker, process);
                self.save_roster();
            }
            Err(error) => {
                let command = self.settings.launcher.command(&self.settings.program, worker.cluster, worker.slot);
                let program = command.get_program().display();
                self.record_end(ticket.worker, &format!("could not start {program}: {error}"));
            }
        }
    }

    fn configure(&self, worker: WorkerId, spec: &WorkerSpec) {
        {
            let mut hosted = self.state.lock();
            let Some(one) = hosted.workers.get_mut(&worker).filter(|one| !one.is_gone()) else { return };
            let is_linked = one.connection.is_some();
            let before = std::mem::replace(&mut one.worker_mut().spec, spec.clone());
            // A worker that is not connected gets its resources when it joins.
            if is_linked && !one.send(FromInstance::Configure(self.worker_resources(one))) {
                // Keep the old spec, so that reconciliation sees the difference and repeats the action.
                one.worker_mut().spec = before;
                return;
            }
        }
        self.save_roster();
    }

    fn drain(&self, worker: WorkerId) {
        let now = self.clock.monotonic();
        if let Some(one) = self.state.lock().workers.get_mut(&worker) {
            one.drain(now);
        }
    }

    fn mark_hung(&self, worker: WorkerId) {
        if let Some(one) = self.state.lock().workers.get_mut(&worker) {
            one.worker_mut().hung = true;
        }
    }

    fn stop(&self, worker: WorkerId, reason: StopReason) {
        let mut hosted = self.state.lock();
        let Some(one) = hosted.workers.get_mut(&worker).filter(|one| !one.is_gone()) else { return };
        if one.stop_reason.is_some() {
            return;
        }
        one.stop_reason = Some(reason);
        if reason == StopReason::GracePeriodExceeded {
            one.statements.values().for_each(tokio_util::sync::CancellationToken::cancel);
        }
        if one.host_uid.is_some() && (reason.is_failure() || !one.send(FromInstance::Stop)) {
            // Its exit cannot be observed here; whoever created it sees to that.
            drop(hosted);
            self.record_end(worker, "stopped by the instance");
            self.save_roster();
            return;
        }
        let Some(process) = one.process.clone() else { return };
        if reason.is_failure() {
            // It did not answer before, so a stop message would not reach it.
            process.kill();
            return;
        }
        if !one.send(FromInstance::Stop) {
            process.terminate();
        }
        drop(hosted);
        let clock = Arc::clone(&self.clock);
        self.runtime.spawn(async move {
            clock.sleep(STOP_TIMEOUT).await;
            process.kill();
        });
    }

    fn forget(&self, worker: WorkerId) {
        self.state.lock().workers.retain(|id, one| *id != worker || !one.is_gone());
    }

    fn observe(&self) -> Vec<Worker> {
        let now = self.clock.monotonic();
        self.state.lock().workers.values().map(|one| one.observed(now)).collect()
    }
}

impl TokenWorkerHost for WorkerProcesses {
    fn host_uid(&self, worker: WorkerId) -> Option<String> {
        self.state.lock().workers.get(&worker)?.host_uid.clone()
    }

    fn mark_lost(&self, worker: WorkerId, how: &str) {
        {
            let mut hosted = self.state.lock();
            let Some(one) = hosted.workers.get_mut(&worker) else { return };
            // The end of a draining worker is no failure.
            if one.worker().state == WorkerState::Draining && one.stop_reason.is_none() {
                one.stop_reason = Some(StopReason::GracePeriodExceeded);
            }
        }
        self.record_end(worker, how);
        self.save_roster();
        self.changes.advance();
    }
}

impl std::fmt::Debug for WorkerProcesses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkerProcesses").field("address", &self.address).finish_non_exhaustive()
    }
}
