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

use super::client::{Client, below, clean, keep_history, look_back, read, settle};
use super::life::{Life, TABLE, World};

const CLIENTS: u64 = 4;
const READERS: u64 = 2;
/// Scheduler turns without any new stop after which all actors are considered blocked.
const CALM_TURNS: usize = 3;

/// Parameters of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) steps: usize,
    /// True if the disk acknowledges writes before they are durable.
    pub(super) disk_lies: bool,
}

/// Statistics of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) steps: usize,
    pub(super) commits: usize,
    pub(super) crashes: usize,
    /// Crashes in which the disk was lost.
    pub(super) losses: usize,
    /// Starts on a disk that lacks commits which are in the bucket.
    pub(super) stale: usize,
    pub(super) faults: u64,
}

/// Runs the plan; panics if an invariant is violated.
pub(super) fn run(plan: Plan, world: &Arc<World>) -> Tally {
    let runtime = Builder::new_current_thread().build().expect("a runtime without threads");
    runtime.block_on(async {
        let random = SeededRandom::new(plan.seed ^ 0x5EED);
        if plan.disk_lies {
            world.disk().acknowledge_early();
        }
        let sorted = below(&random, 2) == 0;
        let mut driver = Driver::start(Arc::clone(world), random, sorted, plan.disk_lies).await;
        for step in 0..plan.steps {
            driver.step(step).await;
        }
        driver.end(plan).await
    })
}

struct Driver {
    world: Arc<World>,
    random: SeededRandom,
    sorted: bool,
    life: Arc<Life>,
    committer: Committer,
    actors: Vec<JoinHandle<()>>,
    checked: CommitTs,
    disk_lies: bool,
    crashes: usize,
    losses: usize,
    stale: usize,
}

impl Driver {
    async fn start(world: Arc<World>, random: SeededRandom, sorted: bool, disk_lies: bool) -> Self {
        let started = Life::start(&world, sorted).await.expect("the bucket is empty");
        let (life, committer) = started.expect("nothing fails yet");
        let (actors, checked) = (Vec::new(), CommitTs(0));
        let mut driver = Self {
            world,
            random,
            sorted,
            life,
            committer,
            actors,
            checked,
            disk_lies,
            crashes: 0,
            losses: 0,
            stale: 0,
        };
        driver.employ().await;
        driver
    }

    /// Starts clients, readers and background services.
    async fn employ(&mut self) {
        self.actors = (0..CLIENTS + READERS).map(|number| self.connect(number)).collect();
        let random = || SeededRandom::new(self.random.next_u64());
        let movers = [
            tokio::spawn(settle(Arc::clone(&self.life), random())),
            tokio::spawn(clean(Arc::clone(&self.life), random())),
            tokio::spawn(keep_history(Arc::clone(&self.life), random())),
            tokio::spawn(look_back(Arc::clone(&self.life), random())),
        ];
        self.actors.extend(movers);
        self.calm().await;
    }

    async fn step(&mut self, step: usize) {
        let waiting = self.world.pace.waiting() as u64;
        match below(&self.random, 600) {
            0..2 => self.crash("dies").await,
            2..8 => self.change_weather(),
            8..12 => self.disconnect().await,
            12..20 if !self.disk_lies => self.world.copy_disk(self.life.newest().ts),
            12..100 => drop(self.committer.serve_queued()),
            _ if waiting == 0 => assert!(self.committer.serve_queued(), "step {step}: nobody can go on"),
            _ => drop(self.world.pace.go(below(&self.random, waiting) as usize)),
        }
        self.calm().await;
        self.look_at_actors().await;
        if self.life.transactions.is_poisoned() {
            self.crash("stops: its disk failed").await;
        }
        if self.life.newest().ts != self.checked {
            self.checked = self.life.check_newest().await.ts;
            self.world.visible.lock().insert(self.checked);
        }
        if step.is_multiple_of(4) {
            self.life.check_objects().await;
        }
    }

    /// Starts client `number`, or a reader for numbers from [`CLIENTS`] on.
    fn connect(&self, number: u64) -> JoinHandle<()> {
        let (life, random) = (Arc::clone(&self.life), SeededRandom::new(self.random.next_u64()));
        if number < CLIENTS {
            tokio::spawn(Client { number, life, random }.work())
        } else {
            tokio::spawn(read(life, random))
        }
    }

    /// Disconnects a random client or reader at any point; a commit it has requested either completes or fails
    /// unnoticed.
    async fn disconnect(&mut self) {
        let number = below(&self.random, CLIENTS + READERS);
        let actor = &mut self.actors[number as usize];
        actor.abort();
        if let Err(error) = actor.await
            && error.is_panic()
        {
            resume_unwind(error.into_panic());
        }
        self.world.note(format!("number {number} is gone"));
        self.actors[number as usize] = self.connect(number);
        let asked = self.world.history.lock().leave(number);
        if let Some(writes) = asked {
            while self.committer.serve_queued() {
                self.calm().await;
            }
            if self.life.transactions.is_poisoned() {
                self.world.history.lock().doubt(writes);
                return;
            }
            let newest = self.life.newest();
            let seen = self.world.look.rows(&self.life.table, newest.state.rows(TABLE)).await;
            let tokens = self.life.tokens();
            self.world.history.lock().find_out(newest.ts, &writes, &seen, &tokens);
        }
    }

    /// Switches failures of storage requests on or off.
    fn change_weather(&self) {
        let is_faulty = !self.world.is_faulty();
        self.world.set_weather(is_faulty.then(|| 2 + below(&self.random, 10)));
        self.world.note(format!("requests fail: {is_faulty}"));
    }

    /// Waits until all actors are blocked.
    async fn calm(&self) {
        let mut stops = self.world.pace.stops();
        let mut turns = 0;
        while turns < CALM_TURNS {
            yield_now().await;
            let now = self.world.pace.stops();
            turns = if now == stops { turns + 1 } else { 0 };
            stops = now;
        }
    }

    /// Propagates a panic of an actor.
    async fn look_at_actors(&mut self) {
        for actor in &mut self.actors {
            if actor.is_finished()
                && let Err(error) = actor.await
            {
                resume_unwind(error.into_panic());
            }
        }
    }

    async fn crash(&mut self, how: &str) {
        self.world.note(format!("the server {how}"));
        self.crashes += 1;
        let last = self.life.newest();
        self.world.disk().crash();
        self.dismiss().await;
        // Nothing can be restored before the first archived commit.
        let has_copy = CommitTs(0) < *self.world.copied.lock();
        let lost = !self.disk_lies && has_copy && below(&self.random, 3) == 0;
        let restored = if lost { Some(self.lose_disk().await) } else { None };
        if restored.is_none() && !self.disk_lies {
            self.start_on_stale_disk(&last).await;
        }
        loop {
            if below(&self.random, 2) == 0 {
                self.world.disk().fail_after(below(&self.random, 60));
            }
            let started = Life::start(&self.world, self.sorted).await.expect("the disk is not behind the bucket");
            if let Some((life, committer)) = started {
                (self.life, self.committer) = (life, committer);
                break;
            }
            self.world.disk().crash();
        }
        match restored {
            Some(commit) => self.compare_restored(commit).await,
            None => self.compare(&last).await,
        }
        self.employ().await;
    }

    /// Sometimes starts on an empty or older copy of the store, which must be refused or lose nothing, then puts the
    /// right one back.
    async fn start_on_stale_disk(&mut self, last: &Snapshot) {
        if below(&self.random, 3) != 0 {
            return;
        }
        let is_empty = below(&self.random, 3) == 0;
        let Some(stale) = self.world.stale_disk(is_empty) else { return };
        let disk = self.world.exchange_disk(stale);
        self.stale += 1;
        match Life::start(&self.world, self.sorted).await {
            Err(error) => self.world.note(format!("no start on a stale disk: {error}")),
            Ok(started) => {
                (self.life, self.committer) = started.expect("the copy does not fail");
                self.compare(last).await;
            }
        }
        self.world.exchange_disk(disk);
    }

    /// Loses the disk and restores from the bucket; returns the newest commit after that.
    async fn lose_disk(&mut self) -> CommitTs {
        let copied = *self.world.copied.lock();
        let earlier = self.earlier(copied).filter(|_| !self.world.forgets() && below(&self.random, 2) == 0);
        let commit = self.world.lose_disk(earlier.map_or(TimeTravelTarget::Newest, TimeTravelTarget::Commit)).await;
        match earlier {
            Some(earlier) => assert_eq!(commit, earlier, "the commit that was asked for"),
            None => assert!(copied <= commit, "commit {} was copied, and restored is {}", copied.0, commit.0),
        }
        self.world.visible.lock().retain(|visible| *visible <= commit);
        *self.world.copied.lock() = commit;
        self.losses += 1;
        self.world.note(format!("the disk is lost, and commit {} restored", commit.0));
        commit
    }

    /// Draws a visible commit older than `than`.
    fn earlier(&self, than: CommitTs) -> Option<CommitTs> {
        let visible = self.world.visible.lock();
        let earlier: Vec<CommitTs> = visible.range(..than).copied().collect();
        let count = earlier.len() as u64;
        (0 < count).then(|| earlier[below(&self.random, count) as usize])
    }

    /// Checks that the new server has the rows of the restored commit.
    async fn compare_restored(&mut self, commit: CommitTs) {
        let now = self.life.newest();
        assert_eq!(now.ts, commit, "the commit that was restored");
        let seen = self.world.look.rows(&self.life.table, now.state.rows(TABLE)).await;
        self.world.history.lock().go_back(now.ts, &seen, &self.life.tokens());
        self.life.note_left_behind().await;
        self.checked = now.ts;
    }

    async fn dismiss(&mut self) {
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
        self.calm().await;
    }

    /// Checks that the new server has the rows of the previous one, with or without the writes in doubt.
    async fn compare(&mut self, last: &Snapshot) {
        let now = self.life.newest();
        let seen = self.world.look.rows(&self.life.table, now.state.rows(TABLE)).await;
        self.world.history.lock().start_again(now.ts, &seen, &self.life.tokens());
        if now.ts == last.ts {
            let (before, after) = (last.state.rows(TABLE), now.state.rows(TABLE));
            assert!(before == after, "commit {}: {before:?} in memory was {after:?} on disk", now.ts.0);
        }
        self.checked = now.ts;
    }

    /// Ends the run without further faults: cleans up everything and checks that another start finds the same rows.
    async fn end(mut self, plan: Plan) -> Tally {
        self.world.set_weather(None);
        self.dismiss().await;
        self.world.disk().crash();
        let last = self.life.newest();
        let started = Life::start(&self.world, self.sorted).await.expect("the disk is not behind the bucket");
        (self.life, self.committer) = started.expect("nothing fails any more");
        self.compare(&last).await;
        drop(last);
        self.world.forget_all();
        let cleaning = tokio::spawn({
            let life = Arc::clone(&self.life);
            async move {
                let cleaned = life.transactions.clean_once().await?;
                life.transactions.delete_orphans(Duration::ZERO).await?;
                Ok::<_, txn::Error>(cleaned)
            }
        });
        while !cleaning.is_finished() {
            if 0 < self.world.pace.waiting() {
                self.world.pace.go(0);
            }
            yield_now().await;
        }
        let cleaned = cleaning.await.expect("it does not panic").expect("nothing fails any more");
        assert_eq!(cleaned.failed, 0, "nothing fails any more");
        self.life.check_newest().await;
        self.life.check_objects().await;
        self.life.check_clean().await;
        if !self.disk_lies {
            self.world.check_that_two_histories_are_noticed().await;
        }
        Tally {
            steps: plan.steps,
            commits: self.world.history.lock().commits(),
            crashes: self.crashes,
            losses: self.losses,
            stale: self.stale,
            faults: self.world.faults.fault_count(),
        }
    }
}
