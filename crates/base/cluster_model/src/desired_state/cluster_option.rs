//! Options of clusters as data: the name, form and limits of each, and access to its value.
//!
//! The table is in `cluster_spec.rs`, where an option is declared. The parser of statements, the checks, events and
//! `sys.cluster` derive from it.

use std::fmt;

use super::{ClusterOptions, ClusterSpec, Error, Inventory, Result};

#[cfg(test)]
mod tests;

/// Option of CREATE CLUSTER and ALTER CLUSTER.
#[derive(Debug)]
pub struct ClusterOption {
    /// Name as the parser gets it, in lower case; also the name in events and the column of `sys.cluster`.
    pub name: &'static str,
    /// Name in messages.
    pub sql_name: &'static str,
    pub form: OptionForm,
    /// One sentence that says what the option is.
    pub description: &'static str,
    /// True if only workers in processes of their own obey it; hardware in the server's process refuses it.
    pub own_process: bool,
    /// Returns the value in a specification.
    pub(super) get: fn(&ClusterSpec) -> OptionValue,
    /// Replaces the value in a specification.
    pub(super) set: fn(&mut ClusterSpec, OptionValue),
    /// Returns the value in a statement; `None` if the statement does not name the option.
    pub(super) assigned: fn(&ClusterOptions) -> Option<OptionValue>,
    /// Replaces the value in a statement; returns whether it had none.
    pub(super) assign: fn(&mut ClusterOptions, OptionValue) -> bool,
}

/// Form of an option's value, with its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionForm {
    Number {
        min: i64,
        max: i64,
    },
    NumberOrNull {
        min: i64,
        max: i64,
    },
    Boolean,
    /// Name of a hardware instance.
    Hardware,
    /// Name of a workload management profile.
    Profile,
}

/// Value of an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OptionValue {
    Null,
    Boolean(bool),
    Number(i64),
    Name(String),
}

impl ClusterOption {
    /// Checks the value's limits.
    pub(super) fn check(&self, value: &OptionValue) -> Result<()> {
        let (OptionForm::Number { min, max } | OptionForm::NumberOrNull { min, max }) = self.form else {
            return Ok(());
        };
        match value {
            OptionValue::Number(number) if !(min..=max).contains(number) => {
                Err(Error::OutOfRange { option: self.sql_name, value: *number, min, max })
            }
            OptionValue::Number(_) | OptionValue::Null | OptionValue::Boolean(_) | OptionValue::Name(_) => Ok(()),
        }
    }

    /// Checks the value's limits, and that the inventory has what it names.
    pub(super) fn check_assigned(&self, value: &OptionValue, inventory: &Inventory) -> Result<()> {
        if let OptionValue::Name(name) = value {
            match self.form {
                OptionForm::Hardware => inventory.hardware(name).map(drop)?,
                OptionForm::Profile => inventory.profile(name).map(drop)?,
                OptionForm::Number { .. } | OptionForm::NumberOrNull { .. } | OptionForm::Boolean => {}
            }
        }
        self.check(value)
    }
}

impl fmt::Display for OptionValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("NULL"),
            Self::Boolean(value) => value.fmt(f),
            Self::Number(value) => value.fmt(f),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// Rust type of an option's field.
pub(super) trait OptionField: Sized {
    fn to_value(&self) -> OptionValue;
    /// Converts a value; `None` if it is of another form or out of the type's range.
    fn from_value(value: OptionValue) -> Option<Self>;
}

macro_rules! number_fields {
    ($($number:ty),*) => {
        $(impl OptionField for $number {
            fn to_value(&self) -> OptionValue {
                OptionValue::Number(i64::from(*self))
            }

            fn from_value(value: OptionValue) -> Option<Self> {
                if let OptionValue::Number(number) = value { Self::try_from(number).ok() } else { None }
            }
        })*
    };
}
number_fields!(u8, u32, i64);

impl OptionField for bool {
    fn to_value(&self) -> OptionValue {
        OptionValue::Boolean(*self)
    }

    fn from_value(value: OptionValue) -> Option<Self> {
        if let OptionValue::Boolean(value) = value { Some(value) } else { None }
    }
}

impl OptionField for String {
    fn to_value(&self) -> OptionValue {
        OptionValue::Name(self.clone())
    }

    fn from_value(value: OptionValue) -> Option<Self> {
        if let OptionValue::Name(name) = value { Some(name) } else { None }
    }
}

impl<T: OptionField> OptionField for Option<T> {
    fn to_value(&self) -> OptionValue {
        self.as_ref().map_or(OptionValue::Null, T::to_value)
    }

    fn from_value(value: OptionValue) -> Option<Self> {
        if value == OptionValue::Null { Some(None) } else { T::from_value(value).map(Some) }
    }
}
