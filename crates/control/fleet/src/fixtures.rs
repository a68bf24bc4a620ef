//! Test fixtures shared by several modules.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use types::{Clock, SystemClock};

use crate::fleet::FleetSettings;
use crate::launcher_command::Launcher;

pub(crate) fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock::new())
}

/// Settings with an empty in-memory storage.
pub(crate) fn settings(folder: &Path) -> FleetSettings {
    FleetSettings {
        data_folder: folder.to_owned(),
        workers_folder: folder.join("workers"),
        join_address: SocketAddr::from(([127, 0, 0, 1], 0)),
        program: "/nowhere/kiln".into(),
        launcher: Launcher::default(),
        environment: Vec::new(),
        storage: "memory:///".to_owned(),
        memory_bytes: 64 << 20,
        cache_bytes: 16 << 20,
        cache_disk_bytes: 1 << 20,
        cache_disk_divisor: 4,
        reserve_bytes: 0,
        reconnect_timeout: Duration::from_secs(30),
        token_verifier: None,
    }
}
