//! The tree that is shown.

use compile::estimate::Estimate;

use crate::actual::Actual;

/// One operator as it is shown.
#[derive(Debug)]
pub(crate) struct Node {
    /// `Hash Join`
    pub(crate) name: String,
    /// The table it works on.
    pub(crate) relation: Option<String>,
    pub(crate) properties: Vec<Property>,
    pub(crate) estimate: Estimate,
    /// What does its work; `None` for what only reads rows.
    pub(crate) engine: Option<Engine>,
    /// With ANALYZE.
    pub(crate) actual: Option<Actual>,
    /// Plans that run before the others, for one value.
    pub(crate) init_plans: Vec<Node>,
    pub(crate) children: Vec<Node>,
}

/// Whether a program of the engine's does an operator's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Engine {
    On,
    Off,
    /// Workers in other processes do it.
    Workers,
}

impl Engine {
    pub(crate) fn in_words(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Off => "off",
            Self::Workers => "on workers",
        }
    }
}

/// A line below an operator.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Property {
    pub(crate) key: &'static str,
    pub(crate) value: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Text(String),
    List(Vec<String>),
    Count(u64),
    Bytes(u64),
    Milliseconds(f64),
}

impl Property {
    pub(crate) fn new(key: &'static str, value: Value) -> Self {
        Self { key, value }
    }

    pub(crate) fn text(key: &'static str, text: impl Into<String>) -> Self {
        Self::new(key, Value::Text(text.into()))
    }

    pub(crate) fn list(key: &'static str, items: impl IntoIterator<Item = String>) -> Self {
        Self::new(key, Value::List(items.into_iter().collect()))
    }
}
