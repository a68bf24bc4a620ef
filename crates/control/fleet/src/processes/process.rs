//! One process, whether this one has started it or an earlier one has: watched and signalled without ever meaning another that got its number.

use std::fmt;
use std::io;
use std::process::Command;
#[cfg(target_os = "linux")]
use std::sync::Arc;

#[cfg(target_os = "linux")]
use rustix::process::{Pid, Signal};

/// A process that runs, or has.
#[derive(Debug, Clone)]
pub(super) struct Process {
    pub(super) pid: u32,
    /// When it began, in the system's own count.
    pub(super) began: u64,
    #[cfg(target_os = "linux")]
    handle: Arc<std::os::fd::OwnedFd>,
}

/// How a process ended, as far as that can be known: only its parent is told.
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
    /// Starts one.
    pub(super) fn spawn(command: &mut Command) -> io::Result<Self> {
        // It is not forgotten by the system before its exit is asked for, so its number is its own until then.
        let mut child = command.spawn()?;
        let pid = child.id();
        match open(pid) {
            Ok(handle) => Ok(Self { pid, began: began(pid).unwrap_or(0), handle: Arc::new(handle) }),
            Err(error) => {
                // Nobody would know when it ends.
                child.kill()?;
                child.wait()?;
                Err(error)
            }
        }
    }

    /// The process of this number that began then, if it still runs.
    pub(super) fn find(pid: u32, began_then: u64) -> Option<Self> {
        let handle = Arc::new(open(pid).ok()?);
        // Asked after the handle is there: so both are of the same process.
        (began(pid)? == began_then).then_some(Self { pid, began: began_then, handle })
    }

    /// Asks it to end.
    pub(super) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Ends it.
    pub(super) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        match rustix::process::pidfd_send_signal(&*self.handle, signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => {}
            Err(error) => tracing::warn!(pid = self.pid, %error, "a worker's process cannot be signalled"),
        }
    }

    /// Completes when it has ended.
    pub(super) async fn ended(&self) -> Exit {
        use rustix::process::{WaitId, WaitIdOptions, waitid};
        use std::os::fd::AsFd;
        use tokio::io::Interest;
        use tokio::io::unix::AsyncFd;

        #[expect(
            deprecated,
            reason = "what is watched owns its handle, so that it stays open as long; the other form is unsafe"
        )]
        let watched = AsyncFd::with_interest(Arc::clone(&self.handle), Interest::READABLE);
        let readable = async { watched?.readable().await.map(drop) };
        if let Err(error) = readable.await {
            tracing::warn!(pid = self.pid, %error, "a worker's process cannot be watched");
        }
        match waitid(WaitId::PidFd(self.handle.as_fd()), WaitIdOptions::EXITED | WaitIdOptions::NOHANG) {
            Ok(Some(how)) => {
                let status = how.exit_status().map(Exit::Status);
                status.or_else(|| how.terminating_signal().map(Exit::Signal)).unwrap_or(Exit::Unknown)
            }
            // It was another one's child.
            _ => Exit::Unknown,
        }
    }
}

#[cfg(target_os = "linux")]
fn open(pid: u32) -> io::Result<std::os::fd::OwnedFd> {
    let raw = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::NotFound)?;
    Ok(rustix::process::pidfd_open(raw, rustix::process::PidfdFlags::empty())?)
}

/// When a process that runs began, in ticks since the machine did.
#[cfg(target_os = "linux")]
fn began(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may hold anything.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let state = fields.next()?;
    let is_over = matches!(state, "Z" | "X");
    fields.nth(18).filter(|_| !is_over)?.parse().ok()
}

/// Whether this system can tell of processes what is asked here: Linux from 5.4 on, unless a sandbox keeps it from that.
#[must_use]
pub fn can_watch_processes() -> bool {
    #[cfg(target_os = "linux")]
    let can = open(std::process::id()).is_ok();
    #[cfg(not(target_os = "linux"))]
    let can = false;
    can
}

/// Which life of the machine this is: numbers of processes begin anew with the next.
pub(super) fn boot() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// Elsewhere a process cannot be meant without its number, which may be another's by then.
#[cfg(not(target_os = "linux"))]
impl Process {
    pub(super) fn spawn(_: &mut Command) -> io::Result<Self> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "workers in processes of their own need Linux"))
    }

    pub(super) fn find(_: u32, _: u64) -> Option<Self> {
        None
    }

    pub(super) fn terminate(&self) {}

    pub(super) fn kill(&self) {}

    pub(super) async fn ended(&self) -> Exit {
        Exit::Unknown
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn how_a_child_ends_is_known() {
        let status = Process::spawn(Command::new("sh").args(["-c", "exit 7"])).expect("there is a shell");
        assert_eq!(status.ended().await, Exit::Status(7));
        let killed = Process::spawn(Command::new("sleep").arg("600")).expect("there is sleep");
        killed.terminate();
        assert_eq!(killed.ended().await.to_string(), "killed by signal 15");
        killed.kill();
        assert_eq!(killed.ended().await, Exit::Unknown, "it is told once");
    }

    #[tokio::test]
    async fn a_process_is_found_again_and_no_other_is_taken_for_it() {
        assert!(can_watch_processes());
        let child = Process::spawn(Command::new("sleep").arg("600")).expect("there is sleep");
        let found = Process::find(child.pid, child.began).expect("it runs");
        assert!(Process::find(child.pid, child.began + 1).is_none(), "that would be another one");
        found.kill();
        assert_eq!(child.ended().await, Exit::Signal(9));
        assert!(Process::find(child.pid, child.began).is_none(), "it is over");
    }
}
