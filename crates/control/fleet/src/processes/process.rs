//! A process identified by pidfd, so that a reused PID is never watched or signalled by mistake.

use std::fmt;
use std::io;
use std::process::Command;
#[cfg(target_os = "linux")]
use std::sync::Arc;

#[cfg(target_os = "linux")]
use rustix::process::{Pid, Signal};

/// Process that was started by this or by an earlier instance.
#[derive(Debug, Clone)]
pub(super) struct Process {
    pub(super) pid: u32,
    /// Start time in clock ticks since boot; identifies the process together with its PID.
    pub(super) start_ticks: u64,
    #[cfg(target_os = "linux")]
    pidfd: Arc<std::os::fd::OwnedFd>,
}

/// Exit of a process. Only the parent learns the status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
    Status(i32),
    Signal(i32),
    Unknown,
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "ended with exit status {status}"),
            Self::Signal(signal) => write!(f, "killed by signal {signal}"),
            Self::Unknown => f.write_str("ended"),
        }
    }
}

#[cfg(target_os = "linux")]
impl Process {
    /// Starts a process.
    pub(super) fn spawn(command: &mut Command) -> io::Result<Self> {
        // The PID cannot be reused before `waitid`, so opening the pidfd after the start is safe.
        let mut child = command.spawn()?;
        let pid = child.id();
        match open_pidfd(pid) {
            Ok(handle) => Ok(Self { pid, start_ticks: start_ticks(pid).unwrap_or(0), pidfd: Arc::new(handle) }),
            Err(error) => {
                // Without a pidfd its exit cannot be watched.
                child.kill()?;
                child.wait()?;
                Err(error)
            }
        }
    }

    /// Returns the process with this PID and start time, if it still runs.
    pub(super) fn find(pid: u32, began_then: u64) -> Option<Self> {
        let handle = Arc::new(open_pidfd(pid).ok()?);
        // Read the start time after opening the pidfd: then both belong to the same process.
        (start_ticks(pid)? == began_then).then_some(Self { pid, start_ticks: began_then, pidfd: handle })
    }

    /// Sends SIGTERM.
    pub(super) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Sends SIGKILL.
    pub(super) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        match rustix::process::pidfd_send_signal(&*self.pidfd, signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => {}
            Err(error) => tracing::warn!(pid = self.pid, %error, "could not signal a worker's process"),
        }
    }

    /// Waits for the process to exit.
    pub(super) async fn wait_for_exit(&self) -> Exit {
        use rustix::process::{WaitId, WaitIdOptions, waitid};
        use std::os::fd::AsFd;
        use tokio::io::Interest;
        use tokio::io::unix::AsyncFd;

        #[expect(deprecated, reason = "the watcher owns the pidfd, so that it stays open; the other form is unsafe")]
        let watched = AsyncFd::with_interest(Arc::clone(&self.pidfd), Interest::READABLE);
        let readable = async { watched?.readable().await.map(drop) };
        if let Err(error) = readable.await {
            tracing::warn!(pid = self.pid, %error, "could not wait for a worker's process");
        }
        match waitid(WaitId::PidFd(self.pidfd.as_fd()), WaitIdOptions::EXITED | WaitIdOptions::NOHANG) {
            Ok(Some(how)) => {
                let status = how.exit_status().map(Exit::Status);
                status.or_else(|| how.terminating_signal().map(Exit::Signal)).unwrap_or(Exit::Unknown)
            }
            // It is a child of another process.
            _ => Exit::Unknown,
        }
    }
}

#[cfg(target_os = "linux")]
fn open_pidfd(pid: u32) -> io::Result<std::os::fd::OwnedFd> {
    let raw = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::NotFound)?;
    Ok(rustix::process::pidfd_open(raw, rustix::process::PidfdFlags::empty())?)
}

/// Returns the start time of a running process in clock ticks since boot (field 22 of `/proc/PID/stat`).
#[cfg(target_os = "linux")]
fn start_ticks(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command name in parentheses may contain spaces and parentheses.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let state = fields.next()?;
    let is_over = matches!(state, "Z" | "X");
    fields.nth(18).filter(|_| !is_over)?.parse().ok()
}

/// Whether this system supports pidfds: Linux 5.4 or later, unless a sandbox forbids them.
#[must_use]
pub fn can_watch_processes() -> bool {
    #[cfg(target_os = "linux")]
    let can = open_pidfd(std::process::id()).is_ok();
    #[cfg(not(target_os = "linux"))]
    let can = false;
    can
}

/// Returns the id of the current boot; PIDs and start times are meaningful within one boot only.
pub(super) fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// Without pidfds a process has only its PID, which may be reused, so nothing is started.
#[cfg(not(target_os = "linux"))]
impl Process {
    pub(super) fn spawn(_: &mut Command) -> io::Result<Self> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "worker processes require Linux"))
    }

    pub(super) fn find(_: u32, _: u64) -> Option<Self> {
        None
    }

    pub(super) fn terminate(&self) {}

    pub(super) fn kill(&self) {}

    pub(super) async fn wait_for_exit(&self) -> Exit {
        Exit::Unknown
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_exit_of_a_child_is_reported() {
        let status = Process::spawn(Command::new("sh").args(["-c", "exit 7"])).expect("start a shell");
        assert_eq!(status.wait_for_exit().await, Exit::Status(7));
        let killed = Process::spawn(Command::new("sleep").arg("600")).expect("start sleep");
        killed.terminate();
        assert_eq!(killed.wait_for_exit().await.to_string(), "killed by signal 15");
        killed.kill();
        assert_eq!(killed.wait_for_exit().await, Exit::Unknown, "the exit status is reported once");
    }

    #[tokio::test]
    async fn a_process_is_identified_by_its_start_time() {
        assert!(can_watch_processes());
        let child = Process::spawn(Command::new("sleep").arg("600")).expect("start sleep");
        let found = Process::find(child.pid, child.start_ticks).expect("the process runs");
        assert!(Process::find(child.pid, child.start_ticks + 1).is_none(), "another start time means another process");
        found.kill();
        assert_eq!(child.wait_for_exit().await, Exit::Signal(9));
        assert!(Process::find(child.pid, child.start_ticks).is_none(), "the process has exited");
    }
}
