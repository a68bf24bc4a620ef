//! Deterministic simulation of the storage engine: transactions, flushes, compaction, cleaning, log archiving,
//! storage failures, crashes and lost disks run on one thread in an order that follows from a seed, and are checked
//! against a model.
//!
//! All code below a statement's plan is the real one; the disk, the clock and failures of the bucket are simulated.
//! Actors that wait for time or storage block in [`actor_scheduler::ActorScheduler`] until the driver resumes them, and
//! commits wait until the driver runs the committer. So the seed determines everything that happens: a failed run prints the `KILN_SEED`
//! that reproduces it.
//!
//! - `simulation_driver.rs`: the scheduler of a run; start here.
//! - `reference_model.rs`: the reference model.
//! - `simulated_world.rs`: the simulated world and a server in it.
//! - `actors.rs` and `random_statement.rs`: actors and their statements; `actor_scheduler.rs`: how they block.
//! - `state_reader.rs` and `invariants.rs`: reading and checking states.
//! - `tests.rs`: the seeds, and proof that each injected bug is detected.

#[cfg(test)]
mod actor_scheduler;
#[cfg(test)]
mod actors;
#[cfg(test)]
mod invariants;
#[cfg(test)]
mod random_statement;
#[cfg(test)]
mod reference_model;
#[cfg(test)]
mod simulated_world;
#[cfg(test)]
mod simulation_driver;
#[cfg(test)]
mod state_reader;
#[cfg(test)]
mod tests;
