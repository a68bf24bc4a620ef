//! The tree that is shown.

use compile::estimate::Estimate;

use super::actual::Actual;

/// One operator as it is shown.
#[derive(Debug)]
pub(super) struct Node {
    /// `Hash Join`
    pub(super) name: String,
    /// The table it works on.
    pub(super) relation: Option<String>,
    pub(super) properties: Vec<Property>,
    pub(super) estimate: Estimate,
    /// What does its work; `None` for what only reads rows.
    pub(super) engine: Option<Engine>,
    /// With ANALYZE.
    pub(super) actual: Option<Actual>,
    /// Plans that run before the others, for one value.
    pub(super) init_plans: Vec<Node>,
    pub(super) children: Vec<Node>,
}

/// Whether a program of the engine's does an operator's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Engine {
    On,
    Off,
    /// A program gave up.
    Left,
    /// Workers in other processes do it.
    Workers,
}

impl Engine {
    pub(super) fn in_words(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Off => "off",
            Self::Left => "left to operators",
            Self::Workers => "on workers",
        }
    }
}

/// A line below an operator.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Property {
    pub(super) key: &'static str,
    pub(super) value: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Text(String),
    List(Vec<String>),
    Count(u64),
    Bytes(u64),
    Milliseconds(f64),
}

impl Property {
    pub(super) fn new(key: &'static str, value: Value) -> Self {
        Self { key, value }
    }

    pub(super) fn text(key: &'static str, text: impl Into<String>) -> Self {
        Self::new(key, Value::Text(text.into()))
    }

    pub(super) fn list(key: &'static str, items: impl IntoIterator<Item = String>) -> Self {
        Self::new(key, Value::List(items.into_iter().collect()))
    }
}
