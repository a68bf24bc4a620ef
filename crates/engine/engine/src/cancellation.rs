//! Cancellation checks in long loops, and cooperative yielding of the thread within one batch.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{Error, Result};

/// Rows processed between two cancellation checks: a few milliseconds of work for any operator.
pub(crate) const STOP_CHECK_ROWS: usize = 1 << 16;

/// Stop flag that is never set, for operations too short to need cancellation.
pub(crate) static NEVER_STOPPED: AtomicBool = AtomicBool::new(false);

/// Returns [`Error::Stopped`] if the stop flag is set.
#[inline]
pub(crate) fn check_stopped(stop: &AtomicBool) -> Result<()> {
    if stop.load(Ordering::Relaxed) { Err(Error::Stopped) } else { Ok(()) }
}

/// Function that runs a closure which cannot pause, and gives the thread's turn to other queries if the closure takes
/// long.
pub type YieldingRunner = fn(&mut dyn FnMut());

/// The process's runner; closures run directly while it is not set.
static YIELDING_RUNNER: OnceLock<YieldingRunner> = OnceLock::new();

/// Sets the runner of this process. Only the first call has an effect.
pub fn set_yielding_runner(runner: YieldingRunner) {
    YIELDING_RUNNER.get_or_init(|| runner);
}

/// Runs one step of the work on a single batch through the process's runner. A batch may expand to millions of rows
/// (joins), so that its steps must be able to yield.
pub(crate) fn run_yielding<T>(part: impl FnOnce() -> T) -> T {
    let Some(runner) = YIELDING_RUNNER.get() else { return part() };
    let (mut part, mut outcome) = (Some(part), None);
    runner(&mut || outcome = part.take().map(|part| part()));
    outcome.expect("a PartRunner must call its closure")
}
