//! Worker host: starts, watches and stops the worker processes that a control plane wants.
//!
//! A worker is started with a ticket, joins with it, and is then watched through its heartbeats and its process. If a
//! token verifier is configured, workers that others have started, such as pods, can join as well: only their
//! heartbeats are watched, and whoever created them reports their end.
//!
//! - `one.rs`: the state of one worker
//! - `desk.rs`: admission of joining workers, and handling of their messages
//! - `process.rs`: a process identified by pidfd, so that its end is seen even if another process is its parent
//! - `roster.rs`: the file with which the next instance takes over the workers
//! - `means.rs`: resource shares of workers
//! - `hold.rs`: statements that run on workers
//! - `tell.rs`: messages about new shards
//! - `unreached.rs`: workers that the instance can reach but a query could not

mod desk;
mod hold;
mod means;
mod one;
mod process;
mod roster;
mod tell;
mod unreached;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::{Arc, Weak};
use std::time::Duration;

use cluster_model::{ClusterId, StopReason, Worker, WorkerId, WorkerSpec, WorkerState};
use control_plane::{Guests, Revisions, StartWorker, WorkerHost};
use exchange::{AheadUse, Dial};
use hold::Held;
use means::{means, own_means};
use one::One;
use parking_lot::Mutex;
use scheduler::Hold;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use types::{Clock, Random};

use crate::TICKET_VARIABLE;
use crate::authority::Authority;
use crate::dial::{Dialer, task_url};
use crate::fleet::FleetSettings;
use crate::identity::Name;
use crate::join::{Base64, FromInstance, Means, TakeOver};
use crate::slot_folder;
use crate::ticket::{ExpectedSecret, Ticket};
pub use process::can_watch_processes;
use process::{Exit, Process};
use roster::{Roster, RosterFile};

/// Time between a stop message and SIGKILL.
const END_TIME_MAX: Duration = Duration::from_secs(5);

/// Worker host for processes: the child processes of an instance and the workers that joined with a token.
pub struct Processes {
    this: Weak<Self>,
    settings: FleetSettings,
    authority: Arc<Authority>,
    /// Address of the join listener.
    address: SocketAddr,
    dialer: Arc<Dialer>,
    roster: RosterFile,
    /// Lock around writes of the roster, so that an older state never replaces a newer one.
    saving: Mutex<()>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    runtime: Handle,
    hosted: Mutex<Hosted>,
    changes: Revisions,
}

/// Cache statistics of a worker since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheUses {
    /// Block lookups that were served from memory.
    pub hits: u64,
    /// Block lookups that were not served from memory.
    pub misses: u64,
    /// Statistics of the pre-warming with new shards.
    pub ahead: AheadUse,
}

#[derive(Default)]
struct Hosted {
    workers: BTreeMap<WorkerId, One>,
    /// True once the instance shuts down; no worker is started any more.
    is_closing: bool,
    next_hold: u64,
    next_link: u64,
    next_taking: u64,
}

impl Processes {
    /// Opens the host and takes over the workers of an earlier instance that can rejoin; kills the others.
    pub(crate) fn open(
        settings: FleetSettings,
        authority: Arc<Authority>,
        address: SocketAddr,
        dialer: Arc<Dialer>,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
    ) -> Arc<Self> {
        let roster = RosterFile::in_folder(&settings.folder);
        let host = Arc::new_cyclic(|this| Self {
            this: Weak::clone(this),
            settings,
            authority,
            address,
            dialer,
            roster,
            saving: Mutex::default(),
            clock,
            random,
            runtime: Handle::current(),
            hosted: Mutex::default(),
            changes: Revisions::default(),
        });
        host.find();
        host.save();
        host
    }

    /// Returns the join address of the earlier instance with this folder.
    pub(crate) fn earlier_address(settings: &FleetSettings) -> Option<SocketAddr> {
        RosterFile::in_folder(&settings.folder).load().address
    }

    /// Returns a counter that grows when a worker has joined, ended, recovered or finished its last statement, which is
    /// when reconciliation has something to do.
    #[must_use]
    pub fn changes(&self) -> &Revisions {
        &self.changes
    }

    /// Returns the connector to workers by their task URLs ([`crate::task_url`]).
    #[must_use]
    pub fn dial(&self) -> Arc<dyn Dial> {
        Arc::clone(&self.dialer) as Arc<dyn Dial>
    }

    /// Registers one statement on those of `workers` that are ready, until the returned value is dropped; `None` if
    /// none is ready.
    #[must_use]
    pub fn hold(&self, workers: &[Worker]) -> Option<Box<dyn Hold>> {
        let host = self.this.upgrade()?;
        Held::on(&host, workers).map(|held| Box::new(held) as Box<dyn Hold>)
    }

    /// Returns the bytes of memory that a worker's tasks use, as last reported; `None` for a worker of another host.
    #[must_use]
    pub fn memory_used(&self, worker: WorkerId) -> Option<u64> {
        self.hosted.lock().workers.get(&worker).map(One::memory_used)
    }

    /// Returns a worker's cache statistics, as last reported; `None` for a worker of another host.
    #[must_use]
    pub fn cache_uses(&self, worker: WorkerId) -> Option<CacheUses> {
        self.hosted.lock().workers.get(&worker).map(One::cache_uses)
    }

    /// Asks a worker to warm its cache from the workers `from`, with the parts that it will own once parts are placed
    /// among `slots`. Completes when the worker reports the end or its connection is closed.
    pub fn take_over(
        &self,
        worker: WorkerId,
        from: &[Worker],
        slots: Vec<u32>,
    ) -> impl Future<Output = ()> + Send + 'static {
        let from = from.iter().filter_map(task_url).map(String::from).collect();
        let mut hosted = self.hosted.lock();
        hosted.next_taking += 1;
        let number = hosted.next_taking;
        let (done, taken) = oneshot::channel();
        if let Some(one) = hosted.workers.get_mut(&worker)
            && one.tell(FromInstance::TakeOver(TakeOver { number, from, slots }))
        {
            one.taking.insert(number, done);
        }
        async { drop(taken.await) }
    }

    /// Marks exactly these workers as handing over their caches: reconciliation does not stop them meanwhile.
    pub fn hand_over(&self, leaving: &BTreeSet<WorkerId>) {
        for (worker, one) in &mut self.hosted.lock().workers {
            one.seen_mut().hands_over = leaving.contains(worker);
        }
    }

    /// Deletes the folders of slots that are not wanted any more.
    pub fn clean_folders(&self, is_wanted: impl Fn(ClusterId, u32) -> bool) {
        if let Err(error) = slot_folder::clean(&self.settings.folder, is_wanted) {
            tracing::warn!(%error, "could not delete the folders of unused worker slots");
        }
    }

    /// Stops all child processes and waits for their exit. No worker is started from now on.
    pub(crate) async fn close(&self) {
        let living: Vec<WorkerId> = {
            let mut hosted = self.hosted.lock();
            hosted.is_closing = true;
            // Workers that were not started here reconnect to the next instance.
            let own = hosted.workers.values().filter(|one| !one.is_gone() && one.life.is_none());
            own.map(|one| one.seen().id).collect()
        };
        for worker in living {
            self.stop(worker, StopReason::Unwanted);
        }
        loop {
            let seen = self.changes.current();
            if self.hosted.lock().workers.values().all(|one| one.is_gone() || one.life.is_some()) {
                return;
            }
            self.changes.after(seen).await;
        }
    }

    /// Kills all child processes immediately.
    pub(crate) fn kill(&self) {
        let mut hosted = self.hosted.lock();
        hosted.is_closing = true;
        hosted.workers.values().filter_map(|one| one.process.as_ref()).for_each(Process::kill);
    }

    /// Sends new certificates to all connected workers.
    pub(crate) fn renew_certificates(&self) {
        for one in self.hosted.lock().workers.values().filter(|one| one.link.is_some()) {
            match self.authority.sign(Name::Worker(one.seen().id), &one.public_key) {
                Ok(certificate) => drop(one.tell(FromInstance::Certificate(Base64(certificate.to_vec())))),
                Err(error) => tracing::warn!(worker = %one.seen().id, %error, "could not renew its certificate"),
            }
        }
    }

    /// Takes over the workers in the roster of an earlier instance.
    fn find(&self) {
        let kept = self.roster.load();
        let is_same_boot = kept.boot == process::boot();
        let can_come_back = kept.address == Some(self.address);
        let now = self.clock.monotonic();
        for entry in kept.workers {
            if entry.life.is_some() {
                // It knows the join address independently of this instance, and has a certificate.
                if entry.has_joined {
                    self.hosted.lock().workers.insert(entry.id, One::found(entry, None, now));
                }
                continue;
            }
            let process = is_same_boot.then(|| Process::find(entry.pid, entry.began));
            let Some(process) = process.flatten() else { continue };
            if !can_come_back || !entry.has_joined {
                process.kill();
                continue;
            }
            let id = entry.id;
            self.watch(id, process.clone());
            self.hosted.lock().workers.insert(id, One::found(entry, Some(process), now));
        }
    }

    /// Registers a worker that is about to be started and returns its ticket; `None` if the instance shuts down.
    pub(crate) fn invite(&self, worker: &StartWorker) -> Option<Ticket> {
        let now = self.clock.monotonic();
        let mut hosted = self.hosted.lock();
        if hosted.is_closing {
            return None;
        }
        let mut id = WorkerId(self.random.next_u64());
        while hosted.workers.contains_key(&id) {
            id = WorkerId(self.random.next_u64());
        }
        let ticket = Ticket::draw(id, self.authority.certificate().clone(), &*self.random);
        let secret = ExpectedSecret::of(&ticket, &*self.random);
        hosted.workers.insert(id, One::starting(id, worker, Some(secret), now));
        Some(ticket)
    }

    /// Returns the resources of a worker.
    fn means(&self, one: &One) -> Means {
        let own = if one.life.is_some() { own_means } else { means };
        own(&one.seen().spec, &self.settings)
    }

    /// Starts the process of a worker.
    fn spawn(&self, ticket: &Ticket, worker: &StartWorker) -> io::Result<Process> {
        let FleetSettings { program, launcher, .. } = &self.settings;
        let mut command = launcher.command(program, worker.cluster, worker.slot);
        command
            .arg("worker")
            .args(["--join", &format!("kiln://{}", self.address)])
            .args(["--patience", &self.settings.patience.as_secs().to_string()])
            .env(TICKET_VARIABLE, ticket.text())
            .envs(self.settings.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        // A separate process group, so that a terminal's Ctrl-C reaches the instance only; it stops its workers itself.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        Process::spawn(&mut command)
    }

    /// Spawns a task that waits for a worker's process to exit.
    fn watch(&self, worker: WorkerId, process: Process) {
        let host = Weak::clone(&self.this);
        self.runtime.spawn(async move {
            let exit = process.ended().await;
            if let Some(host) = host.upgrade() {
                host.has_ended(worker, exit);
            }
        });
    }

    fn has_ended(&self, worker: WorkerId, exit: Exit) {
        self.note_end(worker, &exit.to_string());
        self.save();
        self.changes.advance();
    }

    /// Marks a worker as gone and logs why.
    fn note_end(&self, worker: WorkerId, how: &str) {
        let now = self.clock.monotonic();
        let mut hosted = self.hosted.lock();
        let Some(one) = hosted.workers.get_mut(&worker) else { return };
        one.gone(how, now);
        let seen = one.seen();
        let (slot, detail) = (seen.slot, seen.detail.as_deref());
        if seen.failed {
            tracing::warn!(%worker, cluster = %seen.cluster, slot, detail, "worker failed");
        } else {
            tracing::info!(%worker, cluster = %seen.cluster, slot, detail, "worker ended");
        }
    }

    /// Writes the roster.
    fn save(&self) {
        let _one = self.saving.lock();
        let workers = self.hosted.lock().workers.values().filter_map(One::entry).collect();
        let roster = Roster { boot: process::boot(), address: Some(self.address), workers };
        if let Err(error) = self.roster.save(&roster) {
            tracing::warn!(%error, "could not write the worker roster; the next instance cannot take over the workers");
        }
    }
}

impl WorkerHost for Processes {
    fn start(&self, worker: &StartWorker) {
        let Some(ticket) = self.invite(worker) else { return };
        match self.spawn(&ticket, worker) {
            Ok(process) => {
                let mut hosted = self.hosted.lock();
                let is_closing = hosted.is_closing;
                if let Some(one) = hosted.workers.get_mut(&ticket.worker) {
                    one.process = Some(process.clone());
                    if is_closing || one.stopping.is_some() {
                        process.kill();
                    }
                }
                drop(hosted);
                self.watch(ticket.worker, process);
                self.save();
            }
            Err(error) => {
                let command = self.settings.launcher.command(&self.settings.program, worker.cluster, worker.slot);
                let program = command.get_program().display();
                self.note_end(ticket.worker, &format!("could not start {program}: {error}"));
            }
        }
    }

    fn configure(&self, worker: WorkerId, spec: &WorkerSpec) {
        {
            let mut hosted = self.hosted.lock();
            let Some(one) = hosted.workers.get_mut(&worker).filter(|one| !one.is_gone()) else { return };
            let is_linked = one.link.is_some();
            let before = std::mem::replace(&mut one.seen_mut().spec, spec.clone());
            // A worker that is not connected gets its resources when it joins.
            if is_linked && !one.tell(FromInstance::Configure(self.means(one))) {
                // Keep the old spec, so that reconciliation sees the difference and repeats the action.
                one.seen_mut().spec = before;
                return;
            }
        }
        self.save();
    }

    fn drain(&self, worker: WorkerId) {
        let now = self.clock.monotonic();
        if let Some(one) = self.hosted.lock().workers.get_mut(&worker) {
            one.drain(now);
        }
    }

    fn mark_hung(&self, worker: WorkerId) {
        if let Some(one) = self.hosted.lock().workers.get_mut(&worker) {
            one.seen_mut().hung = true;
        }
    }

    fn stop(&self, worker: WorkerId, reason: StopReason) {
        let mut hosted = self.hosted.lock();
        let Some(one) = hosted.workers.get_mut(&worker).filter(|one| !one.is_gone()) else { return };
        if one.stopping.is_some() {
            return;
        }
        one.stopping = Some(reason);
        if reason == StopReason::GraceOver {
            one.holds.values().for_each(tokio_util::sync::CancellationToken::cancel);
        }
        if one.life.is_some() && (reason.is_failure() || !one.tell(FromInstance::Stop)) {
            // Its exit cannot be observed here; whoever created it sees to that.
            drop(hosted);
            self.note_end(worker, "stopped by the instance");
            self.save();
            return;
        }
        let Some(process) = one.process.clone() else { return };
        if reason.is_failure() {
            // It did not answer before, so a stop message would not reach it.
            process.kill();
            return;
        }
        if !one.tell(FromInstance::Stop) {
            process.terminate();
        }
        drop(hosted);
        let clock = Arc::clone(&self.clock);
        self.runtime.spawn(async move {
            clock.sleep(END_TIME_MAX).await;
            process.kill();
        });
    }

    fn forget(&self, worker: WorkerId) {
        self.hosted.lock().workers.retain(|id, one| *id != worker || !one.is_gone());
    }

    fn observe(&self) -> Vec<Worker> {
        let now = self.clock.monotonic();
        self.hosted.lock().workers.values().map(|one| one.observed(now)).collect()
    }
}

impl Guests for Processes {
    fn life(&self, worker: WorkerId) -> Option<String> {
        self.hosted.lock().workers.get(&worker)?.life.clone()
    }

    fn lost(&self, worker: WorkerId, how: &str) {
        {
            let mut hosted = self.hosted.lock();
            let Some(one) = hosted.workers.get_mut(&worker) else { return };
            // The end of a draining worker is no failure.
            if one.seen().state == WorkerState::Draining && one.stopping.is_none() {
                one.stopping = Some(StopReason::GraceOver);
            }
        }
        self.note_end(worker, how);
        self.save();
        self.changes.advance();
    }
}

impl std::fmt::Debug for Processes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Processes").field("address", &self.address).finish_non_exhaustive()
    }
}
