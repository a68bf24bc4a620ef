//! Child processes as the workers that a control plane wants.
//!
//! Where somebody vouches for them, workers come too that were not started here, as pods: they are watched by what they say, and by who made them.
//!
//! A worker is started as a process with a ticket, comes in by it (`desk.rs`) and is watched from then on: by what it says, and by its process
//! (`process.rs`), which is seen to end whoever its parent is. `one.rs` is what is known of a worker, `roster.rs` what of that outlives the instance,
//! `means.rs` what a worker has, `hold.rs` who runs there, `tell.rs` how a worker learns of new shards, `unreached.rs` who answers here and yet not everywhere.

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

/// A process that was told to end and has not after so long is killed.
const END_TIME_MAX: Duration = Duration::from_secs(5);

/// The workers of an instance that are processes of their own on its machine.
pub struct Processes {
    this: Weak<Self>,
    settings: FleetSettings,
    authority: Arc<Authority>,
    /// Where workers find the instance.
    address: SocketAddr,
    dialer: Arc<Dialer>,
    roster: RosterFile,
    /// Held while the roster is written: the newest is written last.
    saving: Mutex<()>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    runtime: Handle,
    hosted: Mutex<Hosted>,
    changes: Revisions,
}

/// How the cache of a worker was used since it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheUses {
    /// How often its tasks found a block in memory, and how often they did not.
    pub hits: u64,
    pub misses: u64,
    /// What became of the shards that it was told of before anybody asked for them.
    pub ahead: AheadUse,
}

#[derive(Default)]
struct Hosted {
    workers: BTreeMap<WorkerId, One>,
    /// The instance ends: nobody is started any more.
    is_closing: bool,
    next_hold: u64,
    next_link: u64,
    next_taking: u64,
}

impl Processes {
    /// The workers that an earlier instance has left, where they can find this one; they are back when they have said so. Others are ended.
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

    /// Where an earlier instance of the folder was found by its workers.
    pub(crate) fn earlier_address(settings: &FleetSettings) -> Option<SocketAddr> {
        RosterFile::in_folder(&settings.folder).load().address
    }

    /// Grows when a worker has come, gone, answered again or ended its last statement: then a look at them is worth it.
    #[must_use]
    pub fn changes(&self) -> &Revisions {
        &self.changes
    }

    /// What opens connections for tasks to workers, by their addresses for that ([`crate::task_url`]).
    #[must_use]
    pub fn dial(&self) -> Arc<dyn Dial> {
        Arc::clone(&self.dialer) as Arc<dyn Dial>
    }

    /// A hold on those of these workers that take statements, for one statement; `None` where none of them does.
    #[must_use]
    pub fn hold(&self, workers: &[Worker]) -> Option<Box<dyn Hold>> {
        let host = self.this.upgrade()?;
        Held::on(&host, workers).map(|held| Box::new(held) as Box<dyn Hold>)
    }

    /// Bytes of memory that a worker's tasks have, as it last said; `None` where it is none of these.
    #[must_use]
    pub fn memory_used(&self, worker: WorkerId) -> Option<u64> {
        self.hosted.lock().workers.get(&worker).map(One::memory_used)
    }

    /// How a worker's cache was used, as it last said; `None` where it is none of these.
    #[must_use]
    pub fn cache_uses(&self, worker: WorkerId) -> Option<CacheUses> {
        self.hosted.lock().workers.get(&worker).map(One::cache_uses)
    }

    /// Has a worker take over from others what is hot in their caches and its own once parts are placed among `slots`; completes when it has, or
    /// when that cannot be.
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

    /// These workers, and no others, stay where they are to go: others take over from them what is hot in their caches.
    pub fn hand_over(&self, leaving: &BTreeSet<WorkerId>) {
        for (worker, one) in &mut self.hosted.lock().workers {
            one.seen_mut().hands_over = leaving.contains(worker);
        }
    }

    /// Takes away what workers have left on the disk in slots that are not wanted any more.
    pub fn clean_folders(&self, is_wanted: impl Fn(ClusterId, u32) -> bool) {
        if let Err(error) = slot_folder::clean(&self.settings.folder, is_wanted) {
            tracing::warn!(%error, "what workers have left on the disk cannot be removed");
        }
    }

    /// Ends all workers, and completes when they have. None is started from now on.
    pub(crate) async fn close(&self) {
        let living: Vec<WorkerId> = {
            let mut hosted = self.hosted.lock();
            hosted.is_closing = true;
            // Who was not started here looks for the next instance.
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

    /// Ends all workers at once.
    pub(crate) fn kill(&self) {
        let mut hosted = self.hosted.lock();
        hosted.is_closing = true;
        hosted.workers.values().filter_map(|one| one.process.as_ref()).for_each(Process::kill);
    }

    /// Gives all workers that can be reached new certificates.
    pub(crate) fn renew_certificates(&self) {
        for one in self.hosted.lock().workers.values().filter(|one| one.link.is_some()) {
            match self.authority.sign(Name::Worker(one.seen().id), &one.public_key) {
                Ok(certificate) => drop(one.tell(FromInstance::Certificate(Base64(certificate.to_vec())))),
                Err(error) => tracing::warn!(worker = %one.seen().id, %error, "a certificate cannot be renewed"),
            }
        }
    }

    /// Takes over the workers of an earlier instance.
    fn find(&self) {
        let kept = self.roster.load();
        let is_same_boot = kept.boot == process::boot();
        let can_come_back = kept.address == Some(self.address);
        let now = self.clock.monotonic();
        for entry in kept.workers {
            if entry.life.is_some() {
                // It knows where the door is, and has a certificate.
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

    /// Makes a worker that is to come, and its ticket; none where the instance ends.
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

    /// What a worker has.
    fn means(&self, one: &One) -> Means {
        let own = if one.life.is_some() { own_means } else { means };
        own(&one.seen().spec, &self.settings)
    }

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
        // What a terminal tells the instance is not for its workers: it tells them itself.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        Process::spawn(&mut command)
    }

    /// Notes when a worker's process has ended.
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

    fn note_end(&self, worker: WorkerId, how: &str) {
        let now = self.clock.monotonic();
        let mut hosted = self.hosted.lock();
        let Some(one) = hosted.workers.get_mut(&worker) else { return };
        one.gone(how, now);
        let seen = one.seen();
        let (slot, detail) = (seen.slot, seen.detail.as_deref());
        if seen.failed {
            tracing::warn!(%worker, cluster = %seen.cluster, slot, detail, "a worker has failed");
        } else {
            tracing::info!(%worker, cluster = %seen.cluster, slot, detail, "a worker has ended");
        }
    }

    /// Keeps who is there.
    fn save(&self) {
        let _one = self.saving.lock();
        let workers = self.hosted.lock().workers.values().filter_map(One::entry).collect();
        let roster = Roster { boot: process::boot(), address: Some(self.address), workers };
        if let Err(error) = self.roster.save(&roster) {
            tracing::warn!(%error, "a restart would not find the workers");
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
            // Who is not there yet is told when it comes.
            if is_linked && !one.tell(FromInstance::Configure(self.means(one))) {
                // It is told again.
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
            // Nobody hears whether it ends: whoever made it sees to that.
            drop(hosted);
            self.note_end(worker, "told to end");
            self.save();
            return;
        }
        let Some(process) = one.process.clone() else { return };
        if reason.is_failure() {
            // It did not listen before.
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
            // One that was to go has gone.
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
