//! Transactions, settling, compaction, cleaning, history, failing storage, crashes and lost disks on one thread, in an order that follows from a seed,
//! checked against what was acknowledged.
//!
//! Everything below a statement's plan is the real code; disk, clock and failures of the bucket are simulated. Whoever has to wait for time or for the storage waits in [`pace::Pace`] until
//! the driver lets it go on; commits wait until the driver gives the committer a turn. So a seed determines all that happens: a run that failed
//! says with which `KILN_SEED` it happens again.
//!
//! Start at `driver.rs`; `history.rs` is what must be true.

#[cfg(test)]
mod check;
#[cfg(test)]
mod client;
#[cfg(test)]
mod driver;
#[cfg(test)]
mod history;
#[cfg(test)]
mod life;
#[cfg(test)]
mod look;
#[cfg(test)]
mod pace;
#[cfg(test)]
mod statement;
#[cfg(test)]
mod tests;
