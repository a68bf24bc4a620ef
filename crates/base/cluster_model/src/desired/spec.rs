//! Options of a cluster and their limits.

use serde::{Deserialize, Serialize};
use types::Oid;

use super::{DEFAULT_NAME, Error, Inventory, NAME_BYTES_MAX, NODES_MAX, Result};

/// Options of a cluster, all within their limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterSpec {
    pub name: String,
    /// Number of workers while it is not suspended, 1 to [`NODES_MAX`].
    pub node_count: u32,
    /// Hardware of its workers: a [`super::HardwareInstance::name`].
    pub hardware_instance: String,
    /// Workload management profile: a [`super::WlmProfile::name`].
    pub wlm_profile: String,
    /// Seconds without a statement after which it is suspended; `None` for never.
    pub auto_suspend: Option<u32>,
    /// True if a statement resumes it while it is suspended.
    pub auto_resume: bool,
    /// Percentage of a worker's disk for spill files, 1 to 100.
    pub max_spill_pct: Option<u8>,
    /// Percentage of a worker's disk for its cache, 1 to 100.
    pub max_cache_pct: Option<u8>,
    /// Role that may change and drop it.
    pub owner: Oid,
}

/// Options of a statement, not yet validated: numbers may be out of range. `None` means that the statement does not
/// name the option, `Some(None)` that it sets the option to NULL.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClusterOptions {
    pub node_count: Option<i64>,
    pub hardware_instance: Option<String>,
    pub wlm_profile: Option<String>,
    pub auto_suspend: Option<Option<i64>>,
    pub auto_resume: Option<bool>,
    pub max_spill_pct: Option<Option<i64>>,
    pub max_cache_pct: Option<Option<i64>>,
}

impl ClusterSpec {
    /// Creates the specification of a new cluster. The defaults are one worker of the inventory's default hardware, the
    /// profile `default`, no AUTO_SUSPEND, and AUTO_RESUME.
    pub(super) fn new(name: &str, owner: Oid, options: &ClusterOptions, inventory: &Inventory) -> Result<ClusterSpec> {
        check_name(name)?;
        let usual = ClusterSpec {
            name: name.to_owned(),
            node_count: 1,
            hardware_instance: inventory.default_hardware().name.clone(),
            wlm_profile: DEFAULT_NAME.to_owned(),
            auto_suspend: None,
            auto_resume: true,
            max_spill_pct: None,
            max_cache_pct: None,
            owner,
        };
        usual.with_options(options, inventory)
    }

    /// Returns a copy with the named options changed.
    pub(super) fn with_options(&self, options: &ClusterOptions, inventory: &Inventory) -> Result<ClusterSpec> {
        let mut spec = self.clone();
        if let Some(count) = options.node_count {
            spec.node_count = check_range("NODE_COUNT", count, 1, i64::from(NODES_MAX))?;
        }
        if let Some(name) = &options.hardware_instance {
            spec.hardware_instance.clone_from(&inventory.hardware(name)?.name);
        }
        if let Some(name) = &options.wlm_profile {
            spec.wlm_profile.clone_from(&inventory.profile(name)?.name);
        }
        if let Some(seconds) = options.auto_suspend {
            let longest = i64::from(i32::MAX);
            spec.auto_suspend = seconds.map(|seconds| check_range("AUTO_SUSPEND", seconds, 1, longest)).transpose()?;
        }
        if let Some(auto_resume) = options.auto_resume {
            spec.auto_resume = auto_resume;
        }
        if let Some(percent) = options.max_spill_pct {
            spec.max_spill_pct = percent.map(|percent| check_range("MAX_SPILL_PCT", percent, 1, 100)).transpose()?;
        }
        if let Some(percent) = options.max_cache_pct {
            spec.max_cache_pct = percent.map(|percent| check_range("MAX_CACHE_PCT", percent, 1, 100)).transpose()?;
        }
        Ok(spec)
    }

    /// Checks that the name and all numbers are within their limits.
    pub(super) fn check(&self) -> Result<()> {
        check_name(&self.name)?;
        check_range::<u32>("NODE_COUNT", i64::from(self.node_count), 1, i64::from(NODES_MAX))?;
        if let Some(seconds) = self.auto_suspend {
            check_range::<u32>("AUTO_SUSPEND", i64::from(seconds), 1, i64::from(i32::MAX))?;
        }
        for (option, percent) in [("MAX_SPILL_PCT", self.max_spill_pct), ("MAX_CACHE_PCT", self.max_cache_pct)] {
            if let Some(percent) = percent {
                check_range::<u8>(option, i64::from(percent), 1, 100)?;
            }
        }
        Ok(())
    }

    /// Describes the options that differ in `after`: `node_count 2 -> 4, auto_suspend NULL -> 60`.
    pub(super) fn differences(&self, after: &ClusterSpec) -> String {
        let both = self.options().into_iter().zip(after.options());
        let changed = both.filter(|(before, after)| before != after);
        let said: Vec<String> =
            changed.map(|((name, before), (_, after))| format!("{name} {before} -> {after}")).collect();
        said.join(", ")
    }

    /// Describes all options: `node_count 2, hardware_instance local, …`.
    pub(super) fn describe(&self) -> String {
        let said: Vec<String> = self.options().into_iter().map(|(name, value)| format!("{name} {value}")).collect();
        said.join(", ")
    }

    /// Returns names and values of all options.
    fn options(&self) -> [(&'static str, String); 7] {
        fn or_null<T: ToString>(value: Option<T>) -> String {
            value.map_or_else(|| "NULL".to_owned(), |value| value.to_string())
        }
        [
            ("node_count", self.node_count.to_string()),
            ("hardware_instance", self.hardware_instance.clone()),
            ("wlm_profile", self.wlm_profile.clone()),
            ("auto_suspend", or_null(self.auto_suspend)),
            ("auto_resume", self.auto_resume.to_string()),
            ("max_spill_pct", or_null(self.max_spill_pct)),
            ("max_cache_pct", or_null(self.max_cache_pct)),
        ]
    }
}

/// Checks that a name is valid for a cluster.
pub(super) fn check_name(name: &str) -> Result<()> {
    if name.is_empty() || name.contains('\0') {
        return Err(Error::InvalidName { name: name.to_owned() });
    }
    if NAME_BYTES_MAX < name.len() {
        return Err(Error::NameTooLong { name: name.to_owned(), max: NAME_BYTES_MAX });
    }
    Ok(())
}

/// Converts an option's value to a narrower type, or fails with [`Error::OutOfRange`] if it is not in `min..=max`.
fn check_range<T: TryFrom<i64>>(option: &'static str, value: i64, min: i64, max: i64) -> Result<T> {
    let narrow = T::try_from(value).ok().filter(|_| (min..=max).contains(&value));
    narrow.ok_or(Error::OutOfRange { option, value, min, max })
}
