//! Serializable forms of functions, which another process of the same version turns into functions that compute the
//! same.
//!
//! A function is identified by its name, overload, argument types and session facts. A function that needs more (the
//! catalog, the session's own state, randomness) has no such form and must run in the process of the statement.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use datafusion::logical_expr::{AggregateUDF, ScalarUDF, Volatility, WindowUDF};
use serde::{Deserialize, Serialize};
use session_context::EvaluationContext;
use types::text::DateOrder;
use types::{SessionZone, SqlType};

use super::aggregate::Filtered;
use super::cast::{CastFunction, CastKind};
use super::datafusion_function::DataFusionFunction;
use super::definition::{Body, Definition};
use super::hide_grouping_key::hiding_functions;
use super::key_set_membership::HasKey;
use super::lazy_case::{LazyFunction, LazyRole};
use super::scalar_udf::ResolvedFunction;
use super::semi_join_key_set::KeySet;
use super::{
    SCALAR_DEFINITIONS, ValueLifetime, aggregate, array, comparison, conditional, is_reversed, lag_lead_nth_value,
    string_agg_varying, value_lifetime, window, with_filter_argument,
};

#[cfg(test)]
mod tests;

/// Serializable form of a scalar function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum SerializedScalar {
    /// Overload of one of Kiln's functions, with the types of its arguments.
    Resolved {
        definition: SerializedDefinition,
        overload: usize,
        takes: Vec<SqlType>,
        facts: SessionFacts,
    },
    Cast {
        from: SqlType,
        to: SqlType,
        kind: SerializedCast,
        facts: SessionFacts,
    },
    /// Name of a function that hides keys of grouping sets from the optimizer.
    Veil(String),
    /// Membership test of a set of keys.
    HasKey(KeySet),
    /// Function of a lazy CASE of conditions.
    Lazy(SerializedLazy),
    /// Name of one of DataFusion's functions.
    BuiltIn(String),
}

/// Role of a function of a lazy CASE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SerializedLazy(LazyRole);

/// Identity of a [`Definition`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SerializedDefinition {
    Named(String),
    /// Index into the list of definitions that cannot be found by a SQL name.
    Unnamed(usize),
}

/// Origin of a cast.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SerializedCast(CastKind);

/// Serializable form of an aggregate function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum SerializedAggregate {
    Named(String),
    /// `string_agg` whose separator is not a constant.
    StringAggVarying,
    BuiltIn(String),
    /// FILTER form of another aggregate: the last argument is the filter condition.
    Filtered(Box<SerializedAggregate>),
}

/// Serializable form of a window function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SerializedWindow {
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
static INTERNAL_DEFINITIONS: LazyLock<Vec<&'static Definition>> = LazyLock::new(|| {
    vec![
        &comparison::INTERVAL_SPAN,
        &comparison::JSONB_KEY,
        &comparison::GREATEST_INTERVAL,
        &comparison::LEAST_INTERVAL,
        &comparison::ANY_EQUAL_INTERVAL,
        &array::ANY_EQUAL,
        &conditional::FIRST_NOT_NULL,
        &conditional::FIRST_TRUE,
    ]
});

static BUILT_IN_SCALARS: LazyLock<HashMap<String, Arc<ScalarUDF>>> = LazyLock::new(|| {
    let own = datafusion::functions::all_default_functions();
    let nested = datafusion::functions_nested::all_default_nested_functions();
    own.into_iter().chain(nested).map(|function| (function.name().to_owned(), function)).collect()
});

static BUILT_IN_AGGREGATES: LazyLock<HashMap<String, Arc<AggregateUDF>>> = LazyLock::new(|| {
    let all = datafusion::functions_aggregate::all_default_aggregate_functions();
    all.into_iter().map(|function| (function.name().to_owned(), function)).collect()
});

impl SerializedScalar {
    /// Returns the serializable form of a function; `None` if it must run in the process of the statement.
    #[must_use]
    pub fn encode(function: &ScalarUDF) -> Option<Self> {
        if hiding_functions().iter().any(|veil| ***veil == *function) {
            return Some(Self::Veil(function.name().to_owned()));
        }
        if function.signature().volatility == Volatility::Volatile {
            return None;
        }
        let inner = function.inner();
        if let Some(builtin) = inner.downcast_ref::<DataFusionFunction>() {
            return Self::encode(builtin.wrapped());
        }
        let form = if let Some(resolved) = inner.downcast_ref::<ResolvedFunction>() {
            let (definition, overload, session) = resolved.parts();
            let takes = resolved.argument_types().to_vec();
            let names = takes.iter().chain([resolved.result_type()]).any(SqlType::needs_catalog);
            let has_body = matches!(definition.overloads[overload].body, Body::Rows(_));
            let (definition, facts) = (SerializedDefinition::encode(definition)?, SessionFacts::from_session(session));
            (!names && has_body).then_some(Self::Resolved { definition, overload, takes, facts })?
        } else if let Some(cast) = inner.downcast_ref::<CastFunction>() {
            let (from, to) = (cast.from().clone(), cast.to().clone());
            let names = from.needs_catalog() || to.needs_catalog();
            let (kind, facts) = (SerializedCast(cast.kind()), SessionFacts::from_session(cast.session()));
            (!names).then_some(Self::Cast { from, to, kind, facts })?
        } else if let Some(has_key) = inner.downcast_ref::<HasKey>() {
            Self::HasKey(has_key.keys().clone())
        } else if let Some(lazy) = inner.downcast_ref::<LazyFunction>() {
            Self::Lazy(SerializedLazy(lazy.role()))
        } else {
            Self::BuiltIn(function.name().to_owned())
        };
        // The form is valid only if it restores a function that computes the same.
        form.decode().filter(|again| computes_same(again, function)).map(|_| form)
    }

    /// Returns the form of a function whose value does not change between statements while the session's settings
    /// stay the same. `None` if the value depends on the time or on randomness, or the function has no form.
    #[must_use]
    pub fn encode_if_cacheable(function: &ScalarUDF) -> Option<Self> {
        if value_lifetime(function) != Some(ValueLifetime::Plan) {
            return None;
        }
        let mut form = Self::encode(function)?;
        if let Self::Resolved { facts, .. } | Self::Cast { facts, .. } = &mut form {
            (facts.transaction_us, facts.statement_us) = (0, 0);
        }
        Some(form)
    }

    /// Restores the function; `None` for an invalid form.
    #[must_use]
    pub fn decode(&self) -> Option<Arc<ScalarUDF>> {
        match self {
            Self::Resolved { definition, overload, takes, facts } => {
                let definition = definition.decode().filter(|it| it.takes_exactly(*overload, takes))?;
                ResolvedFunction::udf(definition, *overload, takes.clone(), &facts.evaluation_context()).ok()
            }
            Self::Cast { from, to, kind, facts } => {
                Some(CastFunction::udf(from, to, kind.0, &facts.evaluation_context()))
            }
            Self::Veil(name) => {
                let veil = hiding_functions().into_iter().find(|veil| veil.name() == name)?;
                Some(Arc::new(ScalarUDF::clone(veil)))
            }
            Self::Lazy(lazy) => Some(Arc::new(LazyFunction::udf(lazy.0))),
            Self::HasKey(keys) => Some(Arc::new(HasKey::udf(keys.clone()))),
            Self::BuiltIn(name) => BUILT_IN_SCALARS.get(name).cloned(),
        }
    }
}

impl SerializedDefinition {
    fn encode(definition: &'static Definition) -> Option<Self> {
        if let Some(place) = INTERNAL_DEFINITIONS.iter().position(|unnamed| std::ptr::eq(*unnamed, definition)) {
            return Some(Self::Unnamed(place));
        }
        let named = Self::Named(definition.name.to_owned());
        named.decode().is_some_and(|it| std::ptr::eq(it, definition)).then_some(named)
    }

    fn decode(&self) -> Option<&'static Definition> {
        match self {
            Self::Named(name) => SCALAR_DEFINITIONS.get(name.as_str()).copied(),
            Self::Unnamed(place) => INTERNAL_DEFINITIONS.get(*place).copied(),
        }
    }
}

impl SerializedAggregate {
    /// Returns the serializable form of an aggregate; `None` if it has none.
    #[must_use]
    pub fn encode(function: &AggregateUDF) -> Option<Self> {
        if let Some(filtered) = function.inner().downcast_ref::<Filtered>() {
            return Self::encode(filtered.unfiltered()).map(|plain| Self::Filtered(Box::new(plain)));
        }
        let name = function.name().to_owned();
        [Self::Named(name.clone()), Self::StringAggVarying, Self::BuiltIn(name)]
            .into_iter()
            .find(|form| form.decode().is_some_and(|again| *again == *function))
    }

    /// Restores the aggregate; `None` for an invalid form.
    #[must_use]
    pub fn decode(&self) -> Option<Arc<AggregateUDF>> {
        match self {
            Self::Named(name) => aggregate::by_name(name),
            Self::StringAggVarying => Some(string_agg_varying()),
            Self::BuiltIn(name) => BUILT_IN_AGGREGATES.get(name).cloned(),
            Self::Filtered(plain) => plain.decode().map(with_filter_argument),
        }
    }
}

impl SerializedWindow {
    /// Returns the serializable form of a window function; `None` if it has none.
    #[must_use]
    pub fn encode(function: &WindowUDF) -> Option<Self> {
        let form = Self { name: function.name().to_owned(), is_reversed: is_reversed(function) };
        form.decode().filter(|again| **again == *function).map(|_| form)
    }

    /// Restores the window function; `None` for an invalid form.
    #[must_use]
    pub fn decode(&self) -> Option<Arc<WindowUDF>> {
        let function = window(&self.name)?;
        if self.is_reversed { lag_lead_nth_value::reverse(&function) } else { Some(function) }
    }
}

impl SessionFacts {
    fn from_session(session: &EvaluationContext) -> Self {
        let EvaluationContext { zone, date_order, transaction_us, statement_us, .. } = *session;
        Self { zone, date_order, transaction_us, statement_us }
    }

    /// Builds a session with these facts and no context.
    fn evaluation_context(&self) -> Arc<EvaluationContext> {
        let Self { zone, date_order, transaction_us, statement_us } = *self;
        Arc::new(EvaluationContext::without_context(zone, date_order, transaction_us, statement_us))
    }
}

/// Returns whether two functions compute the same given equal session facts. Functions that need more than the facts
/// have no form.
fn computes_same(function: &ScalarUDF, other: &ScalarUDF) -> bool {
    let (own, others) = (function.inner(), other.inner());
    if let (Some(own), Some(others)) = (own.downcast_ref::<ResolvedFunction>(), others.downcast_ref()) {
        return own.is_equivalent_to(others);
    }
    if let (Some(own), Some(others)) = (own.downcast_ref::<CastFunction>(), others.downcast_ref()) {
        return own.is_equivalent_to(others);
    }
    function == other
}
