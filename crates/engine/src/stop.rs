//! Whether anybody still waits for the rows: what takes long asks now and then.

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
