//! Simulation of reconciliation: random changes, crashes, hangs, partitions and slow starts from a seed. Invariants are
//! checked after every pass, and convergence once the faults stop.

use std::time::Duration;

use cluster_model::desired_state::{Change, ClusterId, ClusterOptions, ClusterState, IfExists, Inventory};
use cluster_model::serving_workers::{ClusterPhase, cluster_phase, serving_workers};
use cluster_model::worker::{Worker, WorkerId, WorkerState};
use types::random::SeededRandom;
use types::{Clock, Random};

use super::TestInstance;
use crate::WorkerHost;
use crate::fixtures::{StartBehavior, superuser};

const NAMES: [&str; 4] = ["a", "b", "c", "default"];

struct Simulation {
    seed: u64,
    random: SeededRandom,
    world: TestInstance,
    /// Workers that are cut off from the network.
    cut_off: Vec<WorkerId>,
    changes: usize,
    faults: usize,
}

#[test]
fn random_faults_converge() {
    let (mut changes, mut faults, mut starts) = (0, 0, 0);
    for seed in 0..150 {
        let mut simulation = Simulation::new(seed);
        simulation.run();
        simulation.converge();
        changes += simulation.changes;
        faults += simulation.faults;
        starts += simulation.world.host.starts();
    }
    // Otherwise the runs would prove little.
    assert!(2_000 < changes && 5_000 < faults && 10_000 < starts, "{changes} {faults} {starts}");
}

impl Simulation {
    fn new(seed: u64) -> Simulation {
        let random = SeededRandom::new(seed);
        let mut world = TestInstance::new(&[]);
        world.settings.surge_slots_max = 1 + random.next_u64() as usize % 3;
        Simulation { seed, random, world, cut_off: Vec::new(), changes: 0, faults: 0 }
    }

    fn below(&self, limit: u64) -> u64 {
        self.random.next_u64() % limit
    }

    fn run(&mut self) {
        for _ in 0..200 {
            match self.below(8) {
                0 | 1 => self.change(),
                2..6 => self.fault(),
                _ => {}
            }
            let time = Duration::from_millis(self.below(4_000));
            self.world.pass(time);
            self.check();
        }
    }

    /// Ends all faults and changes, and checks that all clusters converge and that no action follows.
    fn converge(&mut self) {
        self.world.host.heal();
        self.cut_off.clear();
        // The start timeout of a stalled worker, the longest backoff, then a change of hardware slot by slot.
        let settings = &self.world.settings;
        let enough = (settings.start_timeout + settings.backoff_max).as_secs() + 60;
        let passes = (0..enough).find(|_| {
            self.world.pass(Duration::from_secs(1));
            self.check();
            self.has_converged()
        });
        assert!(passes.is_some(), "seed {}: {:?}", self.seed, self.world.host.observe());
        // Until all ended workers are forgotten.
        for _ in 0..130 {
            self.world.pass(Duration::from_secs(1));
            assert!(self.has_converged(), "seed {}: a converged cluster stays so", self.seed);
        }
        assert_eq!(self.world.plan_actions(), [], "seed {}", self.seed);
        let workers = self.world.host.observe();
        assert!(workers.iter().all(|worker| worker.state == WorkerState::Ready), "seed {}", self.seed);
        assert_eq!(workers.len(), self.world.desired.awake_workers() as usize, "seed {}", self.seed);
    }

    fn has_converged(&self) -> bool {
        let (workers, now) = (self.world.host.observe(), self.world.clock.monotonic());
        let known: std::collections::BTreeSet<ClusterId> =
            self.world.desired.clusters().map(|cluster| cluster.id).chain(workers.iter().map(|w| w.cluster)).collect();
        known.into_iter().all(|id| {
            let phase = cluster_phase(&self.world.desired, id, &workers, now, &self.world.settings);
            matches!(phase, Some(ClusterPhase::Running | ClusterPhase::Suspended) | None)
        })
    }

    fn change(&mut self) {
        let name = NAMES[self.below(4) as usize].to_owned();
        let hardware = ["local", "embedded"][self.below(2) as usize].to_owned();
        let percent = Some((self.below(2) == 0).then(|| 1 + self.below(100) as i64));
        let options = ClusterOptions {
            node_count: Some(1 + self.below(6) as i64),
            hardware_instance: (self.below(3) == 0).then_some(hardware),
            max_cache_pct: percent.filter(|_| self.below(3) == 0),
            ..ClusterOptions::default()
        };
        let change = match self.below(8) {
            0 | 1 => {
                let if_exists = [IfExists::Keep, IfExists::Replace][self.below(2) as usize];
                Change::Create { name, options, if_exists }
            }
            2..5 => Change::Alter { name, options },
            5 => Change::Suspend { name },
            6 => Change::Resume { name },
            _ => Change::Drop { name, if_exists: true },
        };
        // Changes of clusters that do not exist are refused.
        let changed = self.world.desired.change(&Inventory::single_machine(), &change, &superuser(), 0);
        if let Ok((state, events)) = changed {
            self.changes += events.len();
            self.world.desired = state;
        }
    }

    fn fault(&mut self) {
        let workers = self.world.host.observe();
        let (host, time) = (&self.world.host, Duration::from_millis(self.below(70_000)));
        self.faults += 1;
        if self.below(3) == 0 {
            host.set_fate(match self.below(6) {
                0 => StartBehavior::Dies(time),
                1 => StartBehavior::JoinsOld(time / 20),
                2 => StartBehavior::Stalls,
                3 => StartBehavior::Joins(time),
                _ => StartBehavior::Joins(time / 40),
            });
            return;
        }
        let living: Vec<WorkerId> =
            workers.iter().filter(|worker| worker.state != WorkerState::Gone).map(|worker| worker.id).collect();
        if living.is_empty() {
            return;
        }
        let worker = living[self.below(living.len() as u64) as usize];
        match self.below(8) {
            0 | 1 => host.kill(worker),
            2 => host.set_hanging(worker, true),
            3 => host.set_hanging(worker, false),
            4 => {
                host.set_cut_off(worker, true);
                self.cut_off.push(worker);
            }
            5 => {
                for worker in self.cut_off.drain(..) {
                    host.set_cut_off(worker, false);
                }
            }
            6 => host.set_running(worker, 1 + self.below(3) as u32),
            _ => living.iter().for_each(|worker| host.set_running(*worker, 0)),
        }
    }

    fn check(&self) {
        let (workers, now) = (self.world.host.observe(), self.world.clock.monotonic());
        for cluster in self.world.desired.clusters() {
            self.check_serving(cluster, &workers, now);
            self.check_slots(cluster, &workers);
        }
    }

    fn check_serving(&self, cluster: &ClusterState, workers: &[Worker], now: Duration) {
        let serving = serving_workers(cluster, workers, now, &self.world.settings);
        assert!(serving.len() <= cluster.wanted_workers() as usize, "seed {}", self.seed);
        assert!(serving.is_sorted_by(|one, other| one.slot < other.slot), "seed {}: one worker per slot", self.seed);
        for worker in serving {
            assert_eq!((worker.state, worker.hung), (WorkerState::Ready, false), "seed {}", self.seed);
            assert_eq!(worker.version.as_deref(), Some(crate::fixtures::VERSION), "seed {}", self.seed);
        }
    }

    /// Checks that no slot has two workers that start or serve, apart from unreachable ones and changes of hardware, of
    /// which there are at most `surge`.
    fn check_slots(&self, cluster: &ClusterState, workers: &[Worker]) {
        let mut doubled = 0;
        for slot in 0..cluster.wanted_workers() {
            let own = |is_new: bool| {
                let active = workers.iter().filter(|worker| {
                    worker.cluster == cluster.id
                        && worker.slot == slot
                        && matches!(worker.state, WorkerState::Starting | WorkerState::Ready)
                        && !worker.hung
                        && !self.cut_off.contains(&worker.id)
                });
                active
                    .filter(|worker| (worker.spec.hardware_instance == cluster.spec.hardware_instance) == is_new)
                    .count()
            };
            assert!(own(true) <= 1, "seed {}: slot {slot} of {}", self.seed, cluster.spec.name);
            doubled += usize::from(own(true) == 1 && own(false) == 1);
        }
        assert!(doubled <= self.world.settings.surge_slots_max, "seed {}: {doubled} slots have two workers", self.seed);
    }
}
