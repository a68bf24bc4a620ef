//! Windows that inherit from named ones: `OVER (w ORDER BY x)` has w's PARTITION BY.

use std::collections::HashMap;

use datafusion::sql::sqlparser::ast::{Function, NamedWindowExpr, Select, WindowSpec, WindowType};
use types::{Condition, SqlError, SqlResult};

/// Named windows of one SELECT.
pub(super) struct NamedWindows {
    by_name: HashMap<String, WindowSpec>,
}

impl NamedWindows {
    /// Resolves the WINDOW clause of `select`: each window inherits from the one it names. The clause itself is
    /// updated too.
    pub(super) fn resolve(select: &mut Select) -> SqlResult<Self> {
        let mut windows = Self { by_name: HashMap::new() };
        for definition in &mut select.named_window {
            let spec = match &definition.1 {
                NamedWindowExpr::NamedWindow(name) => windows.get(&name.value)?.clone(),
                NamedWindowExpr::WindowSpec(spec) => windows.resolve_spec(spec)?,
            };
            windows.by_name.insert(definition.0.value.to_lowercase(), spec.clone());
            definition.1 = NamedWindowExpr::WindowSpec(spec);
        }
        Ok(windows)
    }

    /// Resolves the window of a call.
    pub(super) fn resolve_call(&self, function: &mut Function) -> SqlResult<()> {
        if let Some(WindowType::WindowSpec(spec)) = &mut function.over
            && spec.window_name.is_some()
        {
            *spec = self.resolve_spec(spec)?;
        }
        Ok(())
    }

    fn get(&self, name: &str) -> SqlResult<&WindowSpec> {
        self.by_name
            .get(&name.to_lowercase())
            .ok_or_else(|| SqlError::new(Condition::UndefinedObject, format!("window \"{name}\" does not exist")))
    }

    fn resolve_spec(&self, spec: &WindowSpec) -> SqlResult<WindowSpec> {
        let mut spec = spec.clone();
        let Some(name) = spec.window_name.take() else { return Ok(spec) };
        let base = self.get(&name.value)?;
        let refused = |what: &str| {
            Err(SqlError::new(Condition::WindowingError, format!("cannot {what} of window \"{}\"", name.value)))
        };
        if !spec.partition_by.is_empty() {
            return refused("override PARTITION BY clause");
        }
        if !spec.order_by.is_empty() && !base.order_by.is_empty() {
            return refused("override ORDER BY clause");
        }
        if base.window_frame.is_some() {
            return Err(SqlError::new(
                Condition::WindowingError,
                format!("cannot copy window \"{}\" because it has a frame clause", name.value),
            ));
        }
        spec.partition_by.clone_from(&base.partition_by);
        if spec.order_by.is_empty() {
            spec.order_by.clone_from(&base.order_by);
        }
        Ok(spec)
    }
}
