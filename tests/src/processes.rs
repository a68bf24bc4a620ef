//! Processes started by servers of tests, from `/proc`.

use std::path::Path;
use std::process::Command;

/// Process identified by its PID and its start time in clock ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessHandle {
    pid: u32,
    start_time: u64,
}

impl ProcessHandle {
    /// Kills the process unless it has ended.
    pub fn kill(&self) {
        if read_process(self.pid).is_some_and(|seen| seen.start_time == self.start_time) {
            // It may be ending right now.
            let _ = Command::new("kill").args(["-KILL", &self.pid.to_string()]).output();
        }
    }
}

/// Process attributes from `/proc`.
struct ProcessStat {
    parent: u32,
    start_time: u64,
}

/// Reads the attributes; `None` for an ended process.
fn read_process(pid: u32) -> Option<ProcessStat> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // State and parent follow the name, which may contain anything.
    let mut fields = stat.rsplit(") ").next()?.split(' ');
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    let parent = fields.next()?.parse().ok()?;
    Some(ProcessStat { parent, start_time: fields.nth(17)?.parse().ok()? })
}

/// Returns the running children of a process.
pub fn children(parent: u32) -> Vec<u32> {
    let listed = std::fs::read_dir("/proc").expect("the system shows its processes");
    let pids = listed.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| read_process(*pid).is_some_and(|seen| seen.parent == parent)).collect()
}

/// Returns the workers of a server: those persisted in its data folder, and children of the running server `running`.
pub fn workers(running: Option<u32>, data: &Path) -> Vec<ProcessHandle> {
    let kept = std::fs::read(data.join("workers/roster")).unwrap_or_default();
    let kept: serde_json::Value = serde_json::from_slice(&kept).unwrap_or_default();
    let number = |worker: &serde_json::Value, name: &str| worker.get(name)?.as_u64();
    let of_entry = |worker: &serde_json::Value| {
        Some(ProcessHandle { pid: u32::try_from(number(worker, "pid")?).ok()?, start_time: number(worker, "began")? })
    };
    let found = kept["workers"].as_array().into_iter().flatten().filter_map(of_entry);
    let started = running
        .map(children)
        .unwrap_or_default()
        .into_iter()
        .filter_map(|pid| Some(ProcessHandle { pid, start_time: read_process(pid)?.start_time }));
    started.chain(found).collect()
}
