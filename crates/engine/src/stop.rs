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

/// Computes a part of what cannot pause, and lets others have the thread meanwhile if the whole takes long.
pub type GivingWay = fn(&mut dyn FnMut());

static GIVING_WAY: OnceLock<GivingWay> = OnceLock::new();

/// Says how threads are given away. The first who says it is heeded: all threads of a process are of one kind.
pub fn give_way_by(giving_way: GivingWay) {
    GIVING_WAY.get_or_init(|| giving_way);
}

/// Computes a part of what one batch becomes, which may be millions.
pub(crate) fn giving_way<T>(part: impl FnOnce() -> T) -> T {
    let Some(giving_way) = GIVING_WAY.get() else { return part() };
    let (mut part, mut computed) = (Some(part), None);
    giving_way(&mut || computed = part.take().map(|part| part()));
    computed.expect("a part is computed once")
}
