//! Inventory of an instance: hardware for workers, and workload management profiles.

use std::collections::BTreeMap;

use super::{DEFAULT_CLUSTER_NAME, Error, Result};

/// Kind of hardware, which determines the worker host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HardwareKind {
    /// Threads of the instance's process.
    Embedded,
    /// Child processes on the instance's machine.
    Local,
    /// Kubernetes pods.
    Pod,
}

/// Hardware that the option HARDWARE_INSTANCE can name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HardwareInstance {
    pub name: String,
    pub kind: HardwareKind,
    /// Cores and memory of a worker as text.
    pub description: String,
}

impl HardwareInstance {
    /// Name of the hardware of threads in the instance's process, with which the cluster `default` starts.
    pub const EMBEDDED: &'static str = "embedded";
    /// Name of the hardware of processes on the instance's machine, the default of CREATE CLUSTER.
    pub const LOCAL: &'static str = "local";

    /// Returns the hardware of threads in the instance's process.
    #[must_use]
    pub fn embedded() -> HardwareInstance {
        HardwareInstance {
            name: Self::EMBEDDED.to_owned(),
            kind: HardwareKind::Embedded,
            description:
                "threads of the instance's process: the cores by the cluster's workers, the memory by all workers"
                    .to_owned(),
        }
    }

    /// Returns the hardware of processes on the instance's machine.
    #[must_use]
    pub fn local() -> HardwareInstance {
        HardwareInstance {
            name: Self::LOCAL.to_owned(),
            kind: HardwareKind::Local,
            description:
                "a process on the instance's machine: the cores by the cluster's workers, the memory by all workers"
                    .to_owned(),
        }
    }
}

impl HardwareInstance {
    /// Returns a kind of pods as hardware.
    #[must_use]
    pub fn pod(name: &str, description: String) -> HardwareInstance {
        HardwareInstance { name: name.to_owned(), kind: HardwareKind::Pod, description }
    }
}

/// Workload management profile that the option WLM_PROFILE can name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WlmProfile {
    pub name: String,
    /// Number of statements that run at a time; more wait.
    pub max_running: u32,
}

impl WlmProfile {
    /// Number of statements that run at a time under the profile `default`.
    pub const DEFAULT_MAX_RUNNING: u32 = 100;
}

/// All hardware and profiles that an instance offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inventory {
    hardware: BTreeMap<String, HardwareInstance>,
    profiles: BTreeMap<String, WlmProfile>,
    default_hardware: String,
}

impl Inventory {
    /// Returns the inventory of an instance on one machine: hardware `local` and `embedded`, profile `default`.
    #[must_use]
    pub fn single_machine() -> Inventory {
        let profile =
            WlmProfile { name: DEFAULT_CLUSTER_NAME.to_owned(), max_running: WlmProfile::DEFAULT_MAX_RUNNING };
        Inventory::new([HardwareInstance::local(), HardwareInstance::embedded()], [profile])
    }

    /// Creates an inventory, whose first hardware is the default of CREATE CLUSTER.
    ///
    /// # Panics
    /// If there is no hardware or no profile `default`.
    #[must_use]
    pub fn new(
        hardware: impl IntoIterator<Item = HardwareInstance>,
        profiles: impl IntoIterator<Item = WlmProfile>,
    ) -> Inventory {
        let hardware: Vec<HardwareInstance> = hardware.into_iter().collect();
        let usual = hardware.first().expect("an inventory has at least one hardware instance").name.clone();
        let profiles: BTreeMap<_, _> = profiles.into_iter().map(|profile| (profile.name.clone(), profile)).collect();
        assert!(profiles.contains_key(DEFAULT_CLUSTER_NAME), "an inventory has the profile \"{DEFAULT_CLUSTER_NAME}\"");
        Inventory {
            hardware: hardware.into_iter().map(|one| (one.name.clone(), one)).collect(),
            profiles,
            default_hardware: usual,
        }
    }

    /// Returns hardware by its name.
    ///
    /// # Errors
    /// [`Error::UndefinedHardware`].
    pub fn hardware(&self, name: &str) -> Result<&HardwareInstance> {
        self.hardware.get(name).ok_or_else(|| Error::UndefinedHardware {
            name: name.to_owned(),
            available: self.hardware.keys().cloned().collect(),
        })
    }

    /// Returns a profile by its name.
    ///
    /// # Errors
    /// [`Error::UndefinedProfile`].
    pub fn profile(&self, name: &str) -> Result<&WlmProfile> {
        self.profiles.get(name).ok_or_else(|| Error::UndefinedProfile {
            name: name.to_owned(),
            available: self.profiles.keys().cloned().collect(),
        })
    }

    /// Returns the default hardware of CREATE CLUSTER.
    #[must_use]
    pub fn default_hardware(&self) -> &HardwareInstance {
        &self.hardware[&self.default_hardware]
    }

    /// Iterates over all hardware in the order of names.
    pub fn all_hardware(&self) -> impl ExactSizeIterator<Item = &HardwareInstance> {
        self.hardware.values()
    }

    /// Iterates over all profiles in the order of names.
    pub fn all_profiles(&self) -> impl ExactSizeIterator<Item = &WlmProfile> {
        self.profiles.values()
    }
}
