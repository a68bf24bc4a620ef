//! Options of clusters: the table in which each is declared, and specifications made of them.

use serde::{Deserialize, Serialize};
use types::Oid;

use super::cluster_option::{ClusterOption, OptionField, OptionForm, OptionValue};
use super::{DEFAULT_CLUSTER_NAME, Error, HardwareInstance, Inventory, NAME_BYTES_MAX, NODES_MAX, Result};
use crate::worker::{Resources, WorkerSpec};

/// Declares the options of clusters: those that the instance obeys, then those that workers obey.
///
/// A line is `NAME field: type of a specification, type of a statement = default, form, description`, with the attributes
/// of the field in the specification. Types of statements are wider, because numbers are not validated yet. `own_process true` makes
/// hardware in the server's process refuse the option.
macro_rules! cluster_options {
    (
        instance { $($(#[$attribute:meta])* $name:ident $field:ident: $type:ty, $wide:ty = $default:expr, $form:expr,
            $description:literal;)* }
        workers {
            $($(#[$worker_attribute:meta])* $worker_name:ident $worker_field:ident: $worker_type:ty, $worker_wide:ty =
                $worker_default:expr, $worker_form:expr, own_process $own_process:literal, $worker_description:literal;)*
        }
    ) => {
        /// Options of a cluster, all within their limits.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        pub struct ClusterSpec {
            pub name: String,
            $($(#[$attribute])* pub $field: $type,)*
            #[serde(flatten)]
            pub worker: WorkerOptions,
            /// Role that may change and drop it.
            pub owner: Oid,
        }

        /// Options of a cluster that its workers obey; they travel to workers as one value.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        pub struct WorkerOptions {
            $($(#[$worker_attribute])* pub $worker_field: $worker_type,)*
        }

        /// Options of a statement, not yet validated: numbers may be out of range. `None` means that the statement does
        /// not name the option, `Some(None)` that it sets the option to NULL.
        #[derive(Debug, Clone, PartialEq, Eq, Default)]
        pub struct ClusterOptions {
            $(pub $field: Option<$wide>,)*
            $(pub $worker_field: Option<$worker_wide>,)*
        }

        /// Options of clusters, in the order of events and `sys.cluster`.
        pub static CLUSTER_OPTIONS: &[ClusterOption] = &[
            $(ClusterOption {
                name: stringify!($field),
                sql_name: stringify!($name),
                form: $form,
                description: $description,
                own_process: false,
                get: |spec| spec.$field.to_value(),
                set: |spec, value| spec.$field = from_value(value),
                assigned: |options| options.$field.as_ref().map(OptionField::to_value),
                assign: |options, value| options.$field.replace(from_value(value)).is_none(),
            },)*
            $(ClusterOption {
                name: stringify!($worker_field),
                sql_name: stringify!($worker_name),
                form: $worker_form,
                description: $worker_description,
                own_process: $own_process,
                get: |spec| spec.worker.$worker_field.to_value(),
                set: |spec, value| spec.worker.$worker_field = from_value(value),
                assigned: |options| options.$worker_field.as_ref().map(OptionField::to_value),
                assign: |options, value| options.$worker_field.replace(from_value(value)).is_none(),
            },)*
        ];

        impl ClusterSpec {
            /// Returns the specification of a cluster for which no option is named.
            pub(super) fn with_defaults(name: &str, owner: Oid) -> ClusterSpec {
                let worker = WorkerOptions::default();
                ClusterSpec { name: name.to_owned(), $($field: $default,)* worker, owner }
            }
        }

        impl Default for WorkerOptions {
            fn default() -> Self {
                Self { $($worker_field: $worker_default,)* }
            }
        }
    };
}

cluster_options! {
    instance {
        /// Number of workers while it is not suspended, 1 to [`NODES_MAX`].
        NODE_COUNT node_count: u32, i64 = 1, OptionForm::Number { min: 1, max: NODES_MAX as i64 },
            "Workers that it should have while it is not suspended.";
        /// Hardware of its workers: a [`HardwareInstance::name`].
        HARDWARE_INSTANCE hardware_instance: String, String =
            HardwareInstance::EMBEDDED.to_owned(), OptionForm::Hardware, "Hardware of its workers.";
        /// Workload management profile: a [`super::WlmProfile::name`].
        WLM_PROFILE wlm_profile: String, String = DEFAULT_CLUSTER_NAME.to_owned(), OptionForm::Profile,
            "Workload management profile.";
        /// Seconds without a statement after which it is suspended; `None` for never.
        AUTO_SUSPEND auto_suspend: Option<u32>, Option<i64> =
            None, OptionForm::NumberOrNull { min: 1, max: i32::MAX as i64 },
            "Seconds without a statement until it is suspended; NULL for never.";
        /// True if a statement resumes it while it is suspended.
        AUTO_RESUME auto_resume: bool, bool = true, OptionForm::Boolean, "True if a statement resumes it.";
    }
    workers {
        /// Percentage of a worker's disk for spill files, 1 to 100; `None` for no limit of its own.
        MAX_SPILL_PCT max_spill_pct: Option<u8>, Option<i64> =
            None, OptionForm::NumberOrNull { min: 1, max: 100 }, own_process true,
            "Percentage of the disk of a worker for spill files; NULL for the default.";
        /// Percentage of a worker's disk for its cache, 1 to 100; `None` for no limit of its own.
        MAX_CACHE_PCT max_cache_pct: Option<u8>, Option<i64> =
            None, OptionForm::NumberOrNull { min: 1, max: 100 }, own_process true,
            "Percentage of the disk of a worker for its cache; NULL for the default.";
    }
}

/// Converts a value to its field's type.
fn from_value<T: OptionField>(value: OptionValue) -> T {
    T::from_value(value).expect("the form of an option fits the types of its fields, and its limits were checked")
}

impl ClusterOption {
    /// Returns the option with this name, which is in lower case.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static ClusterOption> {
        CLUSTER_OPTIONS.iter().find(|option| option.name == name)
    }
}

impl ClusterOptions {
    /// Names an option with a value of its form. Returns false if the option was named before.
    pub fn assign(&mut self, option: &ClusterOption, value: OptionValue) -> bool {
        (option.assign)(self, value)
    }
}

impl ClusterSpec {
    /// Creates the specification of a new cluster, on the inventory's default hardware if `options` does not name any.
    pub(super) fn new(name: &str, owner: Oid, options: &ClusterOptions, inventory: &Inventory) -> Result<ClusterSpec> {
        check_name(name)?;
        let hardware_instance = inventory.default_hardware().name.clone();
        ClusterSpec { hardware_instance, ..Self::with_defaults(name, owner) }.with_options(options, inventory)
    }

    /// Returns a copy with the named options changed.
    pub(super) fn with_options(&self, options: &ClusterOptions, inventory: &Inventory) -> Result<ClusterSpec> {
        let mut spec = self.clone();
        for option in CLUSTER_OPTIONS {
            if let Some(value) = (option.assigned)(options) {
                option.check_assigned(&value, inventory)?;
                (option.set)(&mut spec, value);
            }
        }
        Ok(spec)
    }

    /// Checks that the name and all numbers are within their limits.
    pub(super) fn check(&self) -> Result<()> {
        check_name(&self.name)?;
        self.options().try_for_each(|(option, value)| option.check(&value))
    }

    /// Returns the specification of its workers on such a share of a machine.
    #[must_use]
    pub fn worker_spec(&self, share: Resources) -> WorkerSpec {
        WorkerSpec { hardware_instance: self.hardware_instance.clone(), share, options: self.worker }
    }

    /// Describes the options that differ in `after`: `node_count 2 -> 4, auto_suspend NULL -> 60`.
    pub(super) fn differences(&self, after: &ClusterSpec) -> String {
        let both = self.options().zip(after.options());
        let changed = both.filter(|((_, before), (_, after))| before != after);
        let texts: Vec<String> =
            changed.map(|((option, before), (_, after))| format!("{} {before} -> {after}", option.name)).collect();
        texts.join(", ")
    }

    /// Describes all options: `node_count 2, hardware_instance local, …`.
    pub(super) fn describe(&self) -> String {
        let texts: Vec<String> = self.options().map(|(option, value)| format!("{} {value}", option.name)).collect();
        texts.join(", ")
    }

    /// Iterates over all options and their values.
    pub fn options(&self) -> impl Iterator<Item = (&'static ClusterOption, OptionValue)> {
        CLUSTER_OPTIONS.iter().map(|option| (option, (option.get)(self)))
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
