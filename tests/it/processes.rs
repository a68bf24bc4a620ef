//! Processes that servers of tests have started, as the system shows them.

use std::path::Path;
use std::process::Command;

/// A process that was seen: its number, and when it began, in the system's own count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Known {
    pid: u32,
    began: u64,
}

impl Known {
    /// Ends it at once, unless it has ended.
    pub(crate) fn kill(&self) {
        if seen(self.pid).is_some_and(|seen| seen.began == self.began) {
            // It may end by itself just now.
            let _ = Command::new("kill").args(["-KILL", &self.pid.to_string()]).output();
        }
    }
}

/// What the system shows of a process.
struct Seen {
    parent: u32,
    began: u64,
}

/// `None` for one that has ended.
fn seen(pid: u32) -> Option<Seen> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // After the name, which may hold anything: state and parent.
    let mut fields = stat.rsplit(") ").next()?.split(' ');
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    let parent = fields.next()?.parse().ok()?;
    Some(Seen { parent, began: fields.nth(17)?.parse().ok()? })
}

/// The processes that a process has started and that still run.
pub(crate) fn children(parent: u32) -> Vec<u32> {
    let listed = std::fs::read_dir("/proc").expect("the system shows its processes");
    let pids = listed.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| seen(*pid).is_some_and(|seen| seen.parent == parent)).collect()
}

/// The workers of a server on this folder: those that it keeps note of, and those that it has just started if it runs, under this number.
pub(crate) fn workers(running: Option<u32>, data: &Path) -> Vec<Known> {
    let kept = std::fs::read(data.join("workers/roster")).unwrap_or_default();
    let kept: serde_json::Value = serde_json::from_slice(&kept).unwrap_or_default();
    let number = |worker: &serde_json::Value, name: &str| worker.get(name)?.as_u64();
    let of_entry = |worker: &serde_json::Value| {
        Some(Known { pid: u32::try_from(number(worker, "pid")?).ok()?, began: number(worker, "began")? })
    };
    let found = kept["workers"].as_array().into_iter().flatten().filter_map(of_entry);
    let started = running
        .map(children)
        .unwrap_or_default()
        .into_iter()
        .filter_map(|pid| Some(Known { pid, began: seen(pid)?.began }));
    started.chain(found).collect()
}
