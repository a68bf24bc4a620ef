//! Nodes of the displayed tree.

use compile::estimate::Estimate;

use crate::measurements::ActualRun;

/// Operator as displayed.
#[derive(Debug)]
pub(crate) struct Node {
    /// Name of the operator, such as `Hash Join`.
    pub(crate) name: String,
    pub(crate) kind: NodeKind,
    /// Table that it reads or writes.
    pub(crate) relation: Option<String>,
    pub(crate) properties: Vec<Property>,
    pub(crate) estimate: Estimate,
    /// Engine state of the operator; `None` for those that only read rows.
    pub(crate) engine: Option<EngineUse>,
    /// Measurements, with ANALYZE.
    pub(crate) actual: Option<ActualRun>,
    /// Plans that run first and give one value.
    pub(crate) init_plans: Vec<Node>,
    pub(crate) children: Vec<Node>,
}

/// Kind of an operator, where the tree of a key lookup depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NodeKind {
    /// Moves rows between threads.
    Exchange,
    Projection,
    Sort,
    /// Sorts and returns the first rows only.
    TopNSort,
    Other,
}

/// Whether the engine runs an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EngineUse {
    On,
    Off,
    /// Workers in other processes run it.
    Workers,
}

impl EngineUse {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Off => "off",
            Self::Workers => "on workers",
        }
    }
}

/// Property, shown as a line below its operator.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Property {
    pub(crate) key: &'static str,
    pub(crate) value: Value,
}

/// Value of a property.
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
