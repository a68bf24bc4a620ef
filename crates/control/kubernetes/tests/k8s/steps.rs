//! Durations of the steps of a long test, as lines on standard error and as a table in the target folder.

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use types::{Clock, SystemClock};

/// Recorder of steps.
pub(crate) struct Steps {
    of: &'static str,
    clock: SystemClock,
    begun: Duration,
    table: String,
}

impl Steps {
    /// Starts recording the steps of the test `of`, after which the table is named.
    pub(crate) fn begin(of: &'static str) -> Steps {
        let clock = SystemClock::new();
        let begun = clock.monotonic();
        Steps { of, clock, begun, table: "| step | seconds | |\n|---|---|---|\n".to_owned() }
    }

    /// Records the end of a step, which began at the end of the previous one.
    pub(crate) fn done(&mut self, step: &str, more: &str) {
        let now = self.clock.monotonic();
        let seconds = (now - std::mem::replace(&mut self.begun, now)).as_secs_f64();
        eprintln!("{seconds:>6.1} s  {step}{}{more}", if more.is_empty() { "" } else { ": " });
        writeln!(self.table, "| {step} | {seconds:.1} | {more} |").expect("text can be written");
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("k8s-steps-{}.md", self.of));
        std::fs::write(path, &self.table).expect("the target folder can be written");
    }
}
