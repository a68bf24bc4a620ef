//! What a cluster's workers can run on and under which workload management, as this instance offers it.

use std::collections::BTreeMap;

use super::{DEFAULT, Error, Result};

/// How workers of a kind of hardware come to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HardwareKind {
    /// In the instance's own process.
    Embedded,
    /// Child processes on the instance's machine.
    Local,
    /// Pods, which Kubernetes keeps.
    Pod,
}

/// What HARDWARE_INSTANCE can name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HardwareInstance {
    pub name: String,
    pub kind: HardwareKind,
    /// Which cores and how much memory a worker has, in words.
    pub description: String,
}

impl HardwareInstance {
    /// The name of what the cluster `default` starts with.
    pub const EMBEDDED: &'static str = "embedded";
    /// The name of what CREATE CLUSTER takes where nothing is named.
    pub const LOCAL: &'static str = "local";

    /// Workers that are threads of the instance's process.
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

    /// Workers that are processes on the instance's machine.
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
    /// Workers that are pods of a kind.
    #[must_use]
    pub fn pod(name: &str, description: String) -> HardwareInstance {
        HardwareInstance { name: name.to_owned(), kind: HardwareKind::Pod, description }
    }
}

/// What WLM_PROFILE can name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WlmProfile {
    pub name: String,
    /// Statements that run at a time; more wait.
    pub max_running: u32,
}

impl WlmProfile {
    /// Statements that run at a time under the profile `default`.
    pub const RUNNING: u32 = 100;
}

/// All hardware and profiles that an instance offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inventory {
    hardware: BTreeMap<String, HardwareInstance>,
    profiles: BTreeMap<String, WlmProfile>,
    usual: String,
}

impl Inventory {
    /// What an instance on one machine offers: hardware `embedded` and `local`, the profile `default`.
    #[must_use]
    pub fn built_in() -> Inventory {
        let profile = WlmProfile { name: DEFAULT.to_owned(), max_running: WlmProfile::RUNNING };
        Inventory::new([HardwareInstance::local(), HardwareInstance::embedded()], [profile])
    }

    /// An inventory whose first hardware is what CREATE CLUSTER takes where nothing is named.
    ///
    /// # Panics
    /// Where there is no hardware, or no profile `default`.
    #[must_use]
    pub fn new(
        hardware: impl IntoIterator<Item = HardwareInstance>,
        profiles: impl IntoIterator<Item = WlmProfile>,
    ) -> Inventory {
        let hardware: Vec<HardwareInstance> = hardware.into_iter().collect();
        let usual = hardware.first().expect("an instance offers some hardware").name.clone();
        let profiles: BTreeMap<_, _> = profiles.into_iter().map(|profile| (profile.name.clone(), profile)).collect();
        assert!(profiles.contains_key(DEFAULT), "an instance offers the profile \"{DEFAULT}\"");
        Inventory { hardware: hardware.into_iter().map(|one| (one.name.clone(), one)).collect(), profiles, usual }
    }

    /// Hardware by its name.
    ///
    /// # Errors
    /// [`Error::UndefinedHardware`].
    pub fn hardware(&self, name: &str) -> Result<&HardwareInstance> {
        self.hardware.get(name).ok_or_else(|| Error::UndefinedHardware {
            name: name.to_owned(),
            known: self.hardware.keys().cloned().collect(),
        })
    }

    /// A profile by its name.
    ///
    /// # Errors
    /// [`Error::UndefinedProfile`].
    pub fn profile(&self, name: &str) -> Result<&WlmProfile> {
        self.profiles.get(name).ok_or_else(|| Error::UndefinedProfile {
            name: name.to_owned(),
            known: self.profiles.keys().cloned().collect(),
        })
    }

    /// What CREATE CLUSTER takes where nothing is named.
    #[must_use]
    pub fn usual_hardware(&self) -> &HardwareInstance {
        &self.hardware[&self.usual]
    }

    /// All hardware, by name.
    pub fn all_hardware(&self) -> impl ExactSizeIterator<Item = &HardwareInstance> {
        self.hardware.values()
    }

    /// All profiles, by name.
    pub fn all_profiles(&self) -> impl ExactSizeIterator<Item = &WlmProfile> {
        self.profiles.values()
    }
}
