//! Whether anybody still waits for the rows, and others for the thread: what takes long asks now and then.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{Error, Result};

/// Rows between two questions: some milliseconds, whatever is done with them.
pub(crate) const STRETCH_ROWS: usize = 1 << 16;

/// Never set: for what is over soon.
pub(crate) static GOES_ON: AtomicBool = AtomicBool::new(false);

/// [`Error::Stopped`] once it is set.
#[inline]
pub(crate) fn unless_stopped(stop: &AtomicBool) -> Result<()> {
    if stop.load(Ordering::Relaxed) { Err(Error::Stopped) } else { Ok(()) }
}

/// Runs a part of a computation that cannot pause, and lets others have the thread meanwhile if the computation takes long.
pub type PartRunner = fn(&mut dyn FnMut());

static PART_RUNNER: OnceLock<PartRunner> = OnceLock::new();

/// Sets how parts are run in this process. Only the first call has an effect.
pub fn run_parts_by(runner: PartRunner) {
    PART_RUNNER.get_or_init(|| runner);
}

/// Runs a part of what is made of one batch, of which there may be millions.
pub(crate) fn run_part<T>(part: impl FnOnce() -> T) -> T {
    let Some(runner) = PART_RUNNER.get() else { return part() };
    let (mut part, mut outcome) = (Some(part), None);
    runner(&mut || outcome = part.take().map(|part| part()));
    outcome.expect("a part is run once")
}
