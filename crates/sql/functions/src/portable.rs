//! Serializable forms of functions, which another process of the same version turns into functions that compute the
//! same.
//!
//! A function is identified by its name, overload, argument types and session facts. A function that needs more (the
//! catalog, the session's own state, randomness) has no such form and must run in the process of the statement.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use datafusion::logical_expr::{AggregateUDF, ScalarUDF, Volatility, WindowUDF};
use serde::{Deserialize, Serialize};
use session_context::Session;
use types::text::DateOrder;
use types::{SessionZone, SqlType};

use super::aggregate::Filtered;
use super::builtin::Builtin;
use super::cast::{CastFunction, CastKind};
use super::definition::{Body, Definition};
use super::function::ResolvedFunction;
use super::grouping_key::hiding_functions;
use super::has_key::HasKey;
use super::key_set::KeySet;
use super::{
    BY_NAME, Settled, aggregate, array, comparison, conditional, directed, filtered, is_reversed, settled_by,
    string_agg_varying, window,
};

#[cfg(test)]
mod tests;

/// Serializable form of a scalar function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum PortableScalar {
    /// Overload of one of Kiln's functions, with the types of its arguments.
    Resolved {
        definition: PortableDefinition,
        overload: usize,
        takes: Vec<SqlType>,
        facts: SessionFacts,
    },
    Cast {
        from: SqlType,
        to: SqlType,
        kind: PortableCast,
        facts: SessionFacts,
    },
    /// Name of a function that hides keys of grouping sets from the optimizer.
    Veil(String),
    /// Membership test of a set of keys.
    HasKey(KeySet),
    /// Name of one of DataFusion's functions.
    BuiltIn(String),
}

/// Identity of a [`Definition`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PortableDefinition {
    Named(String),
    /// Index into the list of definitions that cannot be found by a SQL name.
    Unnamed(usize),
}

/// Origin of a cast.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortableCast(CastKind);

/// Serializable form of an aggregate function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum PortableAggregate {
    Named(String),
    /// `string_agg` whose separator is not a constant.
    StringAggVarying,
    BuiltIn(String),
    /// FILTER form of another aggregate: the last argument is the filter condition.
    Filtered(Box<PortableAggregate>),
}

/// Serializable form of a window function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PortableWindow {
    name: String,
    /// True if it counts rows from the opposite end of its partition.
    is_reversed: bool,
}

/// Settings and times of a session and statement that functions read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionFacts {
    pub zone: SessionZone,
    pub date_order: DateOrder,
    pub transaction_us: i64,
    pub statement_us: i64,
}

/// Definitions without a SQL name, or with a name that another definition has. All processes of a version have them
/// in this order, because they are sent by index.
static UNNAMED: LazyLock<Vec<&'static Definition>> = LazyLock::new(|| {
    vec![
        &comparison::INTERVAL_SPAN,
        &comparison::JSONB_KEY,
        &comparison::LONGEST,
        &comparison::SHORTEST,
        &comparison::ANY_OF_LENGTH,
        &array::ANY_EQUAL,
        &conditional::FIRST_NOT_NULL,
        &conditional::FIRST_TRUE,
    ]
});

static BUILT_IN: LazyLock<HashMap<String, Arc<ScalarUDF>>> = LazyLock::new(|| {
    let own = datafusion::functions::all_default_functions();
    let nested = datafusion::functions_nested::all_default_nested_functions();
    own.into_iter().chain(nested).map(|function| (function.name().to_owned(), function)).collect()
});

static BUILT_IN_AGGREGATES: LazyLock<HashMap<String, Arc<AggregateUDF>>> = LazyLock::new(|| {
    let all = datafusion::functions_aggregate::all_default_aggregate_functions();
    all.into_iter().map(|function| (function.name().to_owned(), function)).collect()
});

impl PortableScalar {
    /// Returns the serializable form of a function; `None` if it must run in the process of the statement.
    #[must_use]
    pub fn of(function: &ScalarUDF) -> Option<Self> {
        if hiding_functions().iter().any(|veil| ***veil == *function) {
            return Some(Self::Veil(function.name().to_owned()));
        }
        if function.signature().volatility == Volatility::Volatile {
            return None;
        }
        let inner = function.inner();
        if let Some(builtin) = inner.downcast_ref::<Builtin>() {
            return Self::of(builtin.function());
        }
        let form = if let Some(resolved) = inner.downcast_ref::<ResolvedFunction>() {
            let (definition, overload, session) = resolved.parts();
            let takes = resolved.takes().to_vec();
            let names = takes.iter().chain([resolved.gives()]).any(SqlType::has_names);
            let has_body = matches!(definition.overloads[overload].body, Body::Rows(_));
            let (definition, facts) = (PortableDefinition::of(definition)?, SessionFacts::of(session));
            (!names && has_body).then_some(Self::Resolved { definition, overload, takes, facts })?
        } else if let Some(cast) = inner.downcast_ref::<CastFunction>() {
            let (from, to) = (cast.from().clone(), cast.to().clone());
            let names = from.has_names() || to.has_names();
            let (kind, facts) = (PortableCast(cast.kind()), SessionFacts::of(cast.session()));
            (!names).then_some(Self::Cast { from, to, kind, facts })?
        } else if let Some(has_key) = inner.downcast_ref::<HasKey>() {
            Self::HasKey(has_key.keys().clone())
        } else {
            Self::BuiltIn(function.name().to_owned())
        };
        // The form is valid only if it restores a function that computes the same.
        form.function().filter(|again| computes_same(again, function)).map(|_| form)
    }

    /// Returns the form of a function whose value does not change between statements while the session's settings
    /// stay the same. `None` if the value depends on the time or on randomness, or the function has no form.
    #[must_use]
    pub fn lasting(function: &ScalarUDF) -> Option<Self> {
        if settled_by(function) != Some(Settled::WhenPlanned) {
            return None;
        }
        let mut form = Self::of(function)?;
        if let Self::Resolved { facts, .. } | Self::Cast { facts, .. } = &mut form {
            (facts.transaction_us, facts.statement_us) = (0, 0);
        }
        Some(form)
    }

    /// Restores the function; `None` for an invalid form.
    #[must_use]
    pub fn function(&self) -> Option<Arc<ScalarUDF>> {
        match self {
            Self::Resolved { definition, overload, takes, facts } => {
                let definition = definition.definition().filter(|it| it.takes_exactly(*overload, takes))?;
                ResolvedFunction::udf(definition, *overload, takes.clone(), &facts.session()).ok()
            }
            Self::Cast { from, to, kind, facts } => Some(CastFunction::udf(from, to, kind.0, &facts.session())),
            Self::Veil(name) => {
                let veil = hiding_functions().into_iter().find(|veil| veil.name() == name)?;
                Some(Arc::new(ScalarUDF::clone(veil)))
            }
            Self::HasKey(keys) => Some(Arc::new(HasKey::of(keys.clone()))),
            Self::BuiltIn(name) => BUILT_IN.get(name).cloned(),
        }
    }
}

impl PortableDefinition {
    fn of(definition: &'static Definition) -> Option<Self> {
        if let Some(place) = UNNAMED.iter().position(|unnamed| std::ptr::eq(*unnamed, definition)) {
            return Some(Self::Unnamed(place));
        }
        let named = Self::Named(definition.name.to_owned());
        named.definition().is_some_and(|it| std::ptr::eq(it, definition)).then_some(named)
    }

    fn definition(&self) -> Option<&'static Definition> {
        match self {
            Self::Named(name) => BY_NAME.get(name.as_str()).copied(),
            Self::Unnamed(place) => UNNAMED.get(*place).copied(),
        }
    }
}

impl PortableAggregate {
    /// Returns the serializable form of an aggregate; `None` if it has none.
    #[must_use]
    pub fn of(function: &AggregateUDF) -> Option<Self> {
        if let Some(filtered) = function.inner().downcast_ref::<Filtered>() {
            return Self::of(filtered.plain()).map(|plain| Self::Filtered(Box::new(plain)));
        }
        let name = function.name().to_owned();
        [Self::Named(name.clone()), Self::StringAggVarying, Self::BuiltIn(name)]
            .into_iter()
            .find(|form| form.function().is_some_and(|again| *again == *function))
    }

    /// Restores the aggregate; `None` for an invalid form.
    #[must_use]
    pub fn function(&self) -> Option<Arc<AggregateUDF>> {
        match self {
            Self::Named(name) => aggregate::by_name(name),
            Self::StringAggVarying => Some(string_agg_varying()),
            Self::BuiltIn(name) => BUILT_IN_AGGREGATES.get(name).cloned(),
            Self::Filtered(plain) => plain.function().map(filtered),
        }
    }
}

impl PortableWindow {
    /// Returns the serializable form of a window function; `None` if it has none.
    #[must_use]
    pub fn of(function: &WindowUDF) -> Option<Self> {
        let form = Self { name: function.name().to_owned(), is_reversed: is_reversed(function) };
        form.function().filter(|again| **again == *function).map(|_| form)
    }

    /// Restores the window function; `None` for an invalid form.
    #[must_use]
    pub fn function(&self) -> Option<Arc<WindowUDF>> {
        let function = window(&self.name)?;
        if self.is_reversed { directed::reversed(&function) } else { Some(function) }
    }
}

impl SessionFacts {
    fn of(session: &Session) -> Self {
        let Session { zone, date_order, transaction_us, statement_us, .. } = *session;
        Self { zone, date_order, transaction_us, statement_us }
    }

    /// Builds a session with these facts and no context.
    fn session(&self) -> Arc<Session> {
        let Self { zone, date_order, transaction_us, statement_us } = *self;
        Arc::new(Session::without_context(zone, date_order, transaction_us, statement_us))
    }
}

/// Returns whether two functions compute the same given equal session facts. Functions that need more than the facts
/// have no form.
fn computes_same(function: &ScalarUDF, other: &ScalarUDF) -> bool {
    let (own, others) = (function.inner(), other.inner());
    if let (Some(own), Some(others)) = (own.downcast_ref::<ResolvedFunction>(), others.downcast_ref()) {
        return own.computes_same(others);
    }
    if let (Some(own), Some(others)) = (own.downcast_ref::<CastFunction>(), others.downcast_ref()) {
        return own.computes_same(others);
    }
    function == other
}
