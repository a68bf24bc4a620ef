//! Driver of one run: the seed decides which actor continues, when the committer runs, what fails, and when the
//! server dies.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::task::{JoinHandle, yield_now};
use txn::{Committer, Snapshot};
use types::random::SeededRandom;
use types::{CommitTs, Random, TimeTravelTarget};

use super::actors::{
    Client, archive_log, collect_garbage, draw_below, flush_and_compact, read_history, read_snapshots,
};
use super::simulated_world::{SimulatedServer, SimulatedWorld, TABLE_ID};

const CLIENT_COUNT: u64 = 4;
const READER_COUNT: u64 = 2;
/// Scheduler turns without any new stop after which all actors are considered blocked.
const IDLE_TURNS: usize = 3;

/// Parameters of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunParameters {
    pub(super) seed: u64,
    pub(super) steps: usize,
    /// True if the disk acknowledges writes before they are durable.
    pub(super) disk_acknowledges_early: bool,
}

/// Statistics of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RunStatistics {
    pub(super) steps: usize,
    pub(super) commits: usize,
    pub(super) crashes: usize,
    /// Crashes in which the disk was lost.
    pub(super) lost_disks: usize,
    /// Starts on a disk that lacks commits which are in the bucket.
    pub(super) stale_starts: usize,
    pub(super) faults: u64,
}

/// Runs the plan; panics if an invariant is violated.
pub(super) fn run(plan: RunParameters, world: &Arc<SimulatedWorld>) -> RunStatistics {
    let runtime = Builder::new_current_thread().build().expect("a runtime without threads");
    runtime.block_on(async {
        let random = SeededRandom::new(plan.seed ^ 0x5EED);
        if plan.disk_acknowledges_early {
            world.disk().acknowledge_early();
        }
        let is_table_sorted = draw_below(&random, 2) == 0;
        let mut driver = Driver::start(Arc::clone(world), random, is_table_sorted, plan.disk_acknowledges_early).await;
        for step in 0..plan.steps {
            driver.step(step).await;
        }
        driver.finish(plan).await
    })
}

struct Driver {
    world: Arc<SimulatedWorld>,
    random: SeededRandom,
    is_table_sorted: bool,
    server: Arc<SimulatedServer>,
    committer: Committer,
    actors: Vec<JoinHandle<()>>,
    last_checked_commit: CommitTs,
    disk_acknowledges_early: bool,
    crashes: usize,
    lost_disks: usize,
    stale_starts: usize,
}

impl Driver {
    async fn start(
        world: Arc<SimulatedWorld>,
        random: SeededRandom,
        is_table_sorted: bool,
        disk_acknowledges_early: bool,
    ) -> Self {
        let started = SimulatedServer::start(&world, is_table_sorted).await.expect("the bucket is empty");
        let (server, committer) = started.expect("nothing fails yet");
        let (actors, last_checked_commit) = (Vec::new(), CommitTs(0));
        let mut driver = Self {
            world,
            random,
            is_table_sorted,
            server,
            committer,
            actors,
            last_checked_commit,
            disk_acknowledges_early,
            crashes: 0,
            lost_disks: 0,
            stale_starts: 0,
        };
        driver.spawn_actors().await;
        driver
    }

    /// Starts clients, readers and background services.
    async fn spawn_actors(&mut self) {
        self.actors = (0..CLIENT_COUNT + READER_COUNT).map(|number| self.connect(number)).collect();
        let random = || SeededRandom::new(self.random.next_u64());
        let movers = [
            tokio::spawn(flush_and_compact(Arc::clone(&self.server), random())),
            tokio::spawn(collect_garbage(Arc::clone(&self.server), random())),
            tokio::spawn(archive_log(Arc::clone(&self.server), random())),
            tokio::spawn(read_history(Arc::clone(&self.server), random())),
        ];
        self.actors.extend(movers);
        self.wait_until_blocked().await;
    }

    async fn step(&mut self, step: usize) {
        let waiting = self.world.scheduler.blocked_count() as u64;
        match draw_below(&self.random, 600) {
            0..2 => self.crash("dies").await,
            2..8 => self.toggle_faults(),
            8..12 => self.disconnect().await,
            12..20 if !self.disk_acknowledges_early => self.world.copy_disk(self.server.current_snapshot().ts),
            12..100 => drop(self.committer.serve_queued()),
            _ if waiting == 0 => assert!(self.committer.serve_queued(), "step {step}: nobody can go on"),
            _ => drop(self.world.scheduler.resume(draw_below(&self.random, waiting) as usize)),
        }
        self.wait_until_blocked().await;
        self.propagate_panics().await;
        if self.server.transactions.is_poisoned() {
            self.crash("stops: its disk failed").await;
        }
        if self.server.current_snapshot().ts != self.last_checked_commit {
            self.last_checked_commit = self.server.check_newest_snapshot().await.ts;
            self.world.visible_commits.lock().insert(self.last_checked_commit);
        }
        if step.is_multiple_of(4) {
            self.server.check_objects().await;
        }
    }

    /// Starts client `number`, or a reader for numbers from [`CLIENT_COUNT`] on.
    fn connect(&self, number: u64) -> JoinHandle<()> {
        let (server, random) = (Arc::clone(&self.server), SeededRandom::new(self.random.next_u64()));
        if number < CLIENT_COUNT {
            tokio::spawn(Client { number, server, random }.run_transactions())
        } else {
            tokio::spawn(read_snapshots(server, random))
        }
    }

    /// Disconnects a random client or reader at any point; a commit it has requested either completes or fails
    /// unnoticed.
    async fn disconnect(&mut self) {
        let number = draw_below(&self.random, CLIENT_COUNT + READER_COUNT);
        let actor = &mut self.actors[number as usize];
        actor.abort();
        if let Err(error) = actor.await
            && error.is_panic()
        {
            resume_unwind(error.into_panic());
        }
        self.world.log_event(format!("number {number} is gone"));
        self.actors[number as usize] = self.connect(number);
        let asked = self.world.reference_model.lock().disconnect(number);
        if let Some(writes) = asked {
            while self.committer.serve_queued() {
                self.wait_until_blocked().await;
            }
            if self.server.transactions.is_poisoned() {
                self.world.reference_model.lock().record_in_doubt(writes);
                return;
            }
            let newest = self.server.current_snapshot();
            let seen = self.world.state_reader.rows(&self.server.table, newest.state.rows(TABLE_ID)).await;
            let tokens = self.server.tokens();
            self.world.reference_model.lock().resolve_unanswered(newest.ts, &writes, &seen, &tokens);
        }
    }

    /// Switches failures of storage requests on or off.
    fn toggle_faults(&self) {
        let is_faulty = !self.world.is_faulty();
        self.world.set_fault_rate(is_faulty.then(|| 2 + draw_below(&self.random, 10)));
        self.world.log_event(format!("requests fail: {is_faulty}"));
    }

    /// Waits until all actors are blocked.
    async fn wait_until_blocked(&self) {
        let mut stops = self.world.scheduler.block_count();
        let mut turns = 0;
        while turns < IDLE_TURNS {
            yield_now().await;
            let now = self.world.scheduler.block_count();
            turns = if now == stops { turns + 1 } else { 0 };
            stops = now;
        }
    }

    /// Propagates a panic of an actor.
    async fn propagate_panics(&mut self) {
        for actor in &mut self.actors {
            if actor.is_finished()
                && let Err(error) = actor.await
            {
                resume_unwind(error.into_panic());
            }
        }
    }

    async fn crash(&mut self, how: &str) {
        self.world.log_event(format!("the server {how}"));
        self.crashes += 1;
        let last = self.server.current_snapshot();
        self.world.disk().crash();
        self.abort_actors().await;
        // Nothing can be restored before the first archived commit.
        let has_copy = CommitTs(0) < *self.world.archived_commit.lock();
        let lost = !self.disk_acknowledges_early && has_copy && draw_below(&self.random, 3) == 0;
        let restored = if lost { Some(self.lose_disk().await) } else { None };
        if restored.is_none() && !self.disk_acknowledges_early {
            self.start_on_stale_disk(&last).await;
        }
        loop {
            if draw_below(&self.random, 2) == 0 {
                self.world.disk().fail_after(draw_below(&self.random, 60));
            }
            let started = SimulatedServer::start(&self.world, self.is_table_sorted)
                .await
                .expect("the disk is not behind the bucket");
            if let Some((server, committer)) = started {
                (self.server, self.committer) = (server, committer);
                break;
            }
            self.world.disk().crash();
        }
        match restored {
            Some(commit) => self.check_restored(commit).await,
            None => self.check_restarted(&last).await,
        }
        self.spawn_actors().await;
    }

    /// Sometimes starts on an empty or older copy of the store, which must be refused or lose nothing, then puts the
    /// right one back.
    async fn start_on_stale_disk(&mut self, last: &Snapshot) {
        if draw_below(&self.random, 3) != 0 {
            return;
        }
        let is_empty = draw_below(&self.random, 3) == 0;
        let Some(stale) = self.world.stale_disk(is_empty) else { return };
        let disk = self.world.replace_disk(stale);
        self.stale_starts += 1;
        match SimulatedServer::start(&self.world, self.is_table_sorted).await {
            Err(error) => self.world.log_event(format!("no start on a stale disk: {error}")),
            Ok(started) => {
                (self.server, self.committer) = started.expect("the copy does not fail");
                self.check_restarted(last).await;
            }
        }
        self.world.replace_disk(disk);
    }

    /// Loses the disk and restores from the bucket; returns the newest commit after that.
    async fn lose_disk(&mut self) -> CommitTs {
        let copied = *self.world.archived_commit.lock();
        let earlier = self
            .draw_earlier_commit(copied)
            .filter(|_| !self.world.expires_snapshots() && draw_below(&self.random, 2) == 0);
        let commit = self.world.restore_disk(earlier.map_or(TimeTravelTarget::Newest, TimeTravelTarget::Commit)).await;
        match earlier {
            Some(earlier) => assert_eq!(commit, earlier, "the commit that was asked for"),
            None => assert!(copied <= commit, "commit {} was copied, and restored is {}", copied.0, commit.0),
        }
        self.world.visible_commits.lock().retain(|visible| *visible <= commit);
        *self.world.archived_commit.lock() = commit;
        self.lost_disks += 1;
        self.world.log_event(format!("the disk is lost, and commit {} restored", commit.0));
        commit
    }

    /// Draws a visible commit older than `than`.
    fn draw_earlier_commit(&self, than: CommitTs) -> Option<CommitTs> {
        let visible = self.world.visible_commits.lock();
        let earlier: Vec<CommitTs> = visible.range(..than).copied().collect();
        let count = earlier.len() as u64;
        (0 < count).then(|| earlier[draw_below(&self.random, count) as usize])
    }

    /// Checks that the new server has the rows of the restored commit.
    async fn check_restored(&mut self, commit: CommitTs) {
        let now = self.server.current_snapshot();
        assert_eq!(now.ts, commit, "the commit that was restored");
        let seen = self.world.state_reader.rows(&self.server.table, now.state.rows(TABLE_ID)).await;
        self.world.reference_model.lock().check_restore(now.ts, &seen, &self.server.tokens());
        self.server.record_orphaned_objects().await;
        self.last_checked_commit = now.ts;
    }

    async fn abort_actors(&mut self) {
        for actor in &self.actors {
            actor.abort();
        }
        for actor in std::mem::take(&mut self.actors) {
            if let Err(error) = actor.await
                && error.is_panic()
            {
                resume_unwind(error.into_panic());
            }
        }
        self.wait_until_blocked().await;
    }

    /// Checks that the new server has the rows of the previous one, with or without the writes in doubt.
    async fn check_restarted(&mut self, last: &Snapshot) {
        let now = self.server.current_snapshot();
        let seen = self.world.state_reader.rows(&self.server.table, now.state.rows(TABLE_ID)).await;
        self.world.reference_model.lock().check_restart(now.ts, &seen, &self.server.tokens());
        if now.ts == last.ts {
            let (before, after) = (last.state.rows(TABLE_ID), now.state.rows(TABLE_ID));
            assert!(before == after, "commit {}: {before:?} in memory was {after:?} on disk", now.ts.0);
        }
        self.last_checked_commit = now.ts;
    }

    /// Ends the run without further faults: cleans up everything and checks that another start finds the same rows.
    async fn finish(mut self, plan: RunParameters) -> RunStatistics {
        self.world.set_fault_rate(None);
        self.abort_actors().await;
        self.world.disk().crash();
        let last = self.server.current_snapshot();
        let started =
            SimulatedServer::start(&self.world, self.is_table_sorted).await.expect("the disk is not behind the bucket");
        (self.server, self.committer) = started.expect("nothing fails any more");
        self.check_restarted(&last).await;
        drop(last);
        self.world.expire_all_snapshots();
        let cleaning = tokio::spawn({
            let server = Arc::clone(&self.server);
            async move {
                let cleaned = server.transactions.clean_once().await?;
                server.transactions.delete_orphans(Duration::ZERO).await?;
                Ok::<_, txn::Error>(cleaned)
            }
        });
        while !cleaning.is_finished() {
            if 0 < self.world.scheduler.blocked_count() {
                self.world.scheduler.resume(0);
            }
            yield_now().await;
        }
        let cleaned = cleaning.await.expect("it does not panic").expect("nothing fails any more");
        assert_eq!(cleaned.failed, 0, "nothing fails any more");
        self.server.check_newest_snapshot().await;
        self.server.check_objects().await;
        self.server.check_no_garbage_remains().await;
        if !self.disk_acknowledges_early {
            self.world.check_divergence_detection().await;
        }
        RunStatistics {
            steps: plan.steps,
            commits: self.world.reference_model.lock().commits(),
            crashes: self.crashes,
            lost_disks: self.lost_disks,
            stale_starts: self.stale_starts,
            faults: self.world.faults.fault_count(),
        }
    }
}
