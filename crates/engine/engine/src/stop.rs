//! Cancellation checks in long loops, and cooperative yielding of the thread within one batch.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{Error, Result};

/// Rows processed between two cancellation checks: a few milliseconds of work for any operator.
pub(crate) const STRETCH_ROWS: usize = 1 << 16;

/// Stop flag that is never set, for operations too short to need cancellation.
pub(crate) static GOES_ON: AtomicBool = AtomicBool::new(false);

/// Returns [`Error::Stopped`] if the stop flag is set.
#[inline]
pub(crate) fn unless_stopped(stop: &AtomicBool) -> Result<()> {
    if stop.load(Ordering::Relaxed) { Err(Error::Stopped) } else { Ok(()) }
}

/// Function that runs a closure which cannot pause, and gives the thread's turn to other queries if the closure takes
/// long.
pub type PartRunner = fn(&mut dyn FnMut());

/// The process's runner; closures run directly while it is not set.
static PART_RUNNER: OnceLock<PartRunner> = OnceLock::new();

/// Sets the runner of this process. Only the first call has an effect.
pub fn run_parts_by(runner: PartRunner) {
    PART_RUNNER.get_or_init(|| runner);
}

/// Runs one step of the work on a single batch through the process's runner. A batch may expand to millions of rows
/// (joins), so that its steps must be able to yield.
pub(crate) fn run_part<T>(part: impl FnOnce() -> T) -> T {
    let Some(runner) = PART_RUNNER.get() else { return part() };
    let (mut part, mut outcome) = (Some(part), None);
    runner(&mut || outcome = part.take().map(|part| part()));
    outcome.expect("a PartRunner must call its closure")
}
