//! Roster file: the workers of an instance, so that the next instance can take them over after a crash.
//!
//! The file is replaced atomically but not synced, because processes do not survive a crash of the machine. If it is
//! missing or damaged, workers that try to rejoin are refused and exit.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use cluster_model::{ClusterId, WorkerId, WorkerSpec};
use serde::{Deserialize, Serialize};

const ROSTER_FILE: &str = "roster";

/// Content of the roster file.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct Roster {
    /// Id of the boot in which it was written.
    #[serde(rename = "boot")]
    pub(super) boot_id: String,
    /// Address of the join listener.
    pub(super) address: Option<SocketAddr>,
    pub(super) workers: Vec<RosterEntry>,
}

/// Worker that ran when the roster was written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct RosterEntry {
    pub(super) id: WorkerId,
    pub(super) cluster: ClusterId,
    pub(super) slot: u32,
    pub(super) spec: WorkerSpec,
    /// PID; 0 for a worker that was not started here.
    pub(super) pid: u32,
    /// Start time of the process in clock ticks since boot.
    #[serde(rename = "began")]
    pub(super) start_ticks: u64,
    /// Unique name of what a worker that was not started here runs in, such as the uid of a pod.
    #[serde(default, rename = "life")]
    pub(super) host_uid: Option<String>,
    /// True if the worker has a certificate and can rejoin.
    pub(super) has_joined: bool,
}

/// Roster file in the workers' folder.
#[derive(Debug)]
pub(super) struct RosterFile(PathBuf);

impl RosterFile {
    pub(super) fn in_folder(folder: &Path) -> Self {
        Self(folder.join(ROSTER_FILE))
    }

    /// Reads the roster; an empty one if the file is missing or cannot be read.
    pub(super) fn load(&self) -> Roster {
        let read = match fs::read(&self.0) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(io::Error::from),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Roster::default(),
            Err(error) => Err(error),
        };
        read.unwrap_or_else(|error| {
            let path = self.0.display();
            tracing::warn!(%path, %error, "could not read the worker roster; workers that rejoin are refused and exit");
            Roster::default()
        })
    }

    /// Replaces the roster.
    pub(super) fn save(&self, roster: &Roster) -> io::Result<()> {
        let draft = self.0.with_extension("new");
        fs::write(&draft, serde_json::to_vec(roster)?)?;
        fs::rename(&draft, &self.0)
    }
}

#[cfg(test)]
mod tests {
    use cluster_model::{Resources, WorkerOptions};

    use super::*;

    /// Workers survive an upgrade of their instance, so every version must read the format of earlier ones.
    #[test]
    fn the_roster_format_is_stable() {
        let stored = concat!(
            r#"{"boot":"b","address":"127.0.0.1:4711","workers":[{"id":5,"cluster":2,"slot":1,"spec":{"hardware_instance":"local","#,
            r#""share":{"millicores":500,"memory_bytes":1073741824},"max_spill_pct":3,"max_cache_pct":4},"pid":7,"began":8,"#,
            r#""life":"pod","has_joined":true}]}"#
        );
        let share = Resources { millicores: 500, memory_bytes: 1 << 30 };
        let spec = WorkerSpec {
            hardware_instance: "local".to_owned(),
            share,
            options: WorkerOptions { max_spill_pct: Some(3), max_cache_pct: Some(4) },
        };
        let (id, cluster) = (WorkerId(5), ClusterId(2));
        let entry = RosterEntry {
            id,
            cluster,
            slot: 1,
            spec,
            pid: 7,
            start_ticks: 8,
            host_uid: Some("pod".to_owned()),
            has_joined: true,
        };
        let address = Some(SocketAddr::from(([127, 0, 0, 1], 4_711)));
        let roster = Roster { boot_id: "b".to_owned(), address, workers: vec![entry] };
        assert_eq!(serde_json::from_str::<Roster>(stored).expect("deserialize the roster"), roster);
        assert_eq!(serde_json::to_string(&roster).expect("serialize the roster"), stored);
    }

    #[test]
    fn a_roster_round_trips_and_a_damaged_one_is_empty() {
        let folder = tempfile::tempdir().expect("create a temporary folder");
        let file = RosterFile::in_folder(folder.path());
        assert_eq!(file.load(), Roster::default());
        let spec = WorkerSpec {
            hardware_instance: "local".to_owned(),
            share: Resources { millicores: 500, memory_bytes: 1 << 30 },
            options: WorkerOptions { max_spill_pct: Some(3), ..WorkerOptions::default() },
        };
        let entry = RosterEntry {
            id: WorkerId(u64::MAX),
            cluster: ClusterId(2),
            slot: 1,
            spec,
            pid: 7,
            start_ticks: 8,
            host_uid: None,
            has_joined: true,
        };
        let address = Some(SocketAddr::from(([127, 0, 0, 1], 4_711)));
        let roster = Roster { boot_id: "b".to_owned(), address, workers: vec![entry] };
        file.save(&roster).expect("save the roster");
        assert_eq!(file.load(), roster);
        let mut bytes = fs::read(&file.0).expect("read the file");
        bytes.truncate(20);
        fs::write(&file.0, bytes).expect("overwrite the file");
        assert_eq!(file.load(), Roster::default());
    }
}
