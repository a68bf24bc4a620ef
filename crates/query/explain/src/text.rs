//! Text output, in PostgreSQL's layout.

use std::time::Duration;

use binder::{ExplainPlan, PlanningPhase};

use crate::explainer::Explanation;
use crate::plan_node::{EngineUse, Node, Property, Value};

pub(crate) fn to_lines(explained: &Explanation, plan: &ExplainPlan) -> Vec<String> {
    let mut lines = Vec::new();
    Writer { plan, lines: &mut lines }.write_node(&explained.root, (0, ""), EngineUse::Off);
    if plan.summary {
        lines.push(format!("Planning Time: {:.3} ms", milliseconds(explained.planning_time)));
        if let Some(phases) = plan.phases().filter(|_| plan.verbose) {
            let line =
                |phase: PlanningPhase| format!("  {}: {:.3} ms", phase.name(), milliseconds(phases.spent(phase)));
            lines.extend(PlanningPhase::ALL.map(line));
        }
        if let Some(place) = &explained.location {
            lines.push(format!("Runs: {place}"));
        }
        if let Some(bytes) = explained.peak_memory_bytes {
            lines.push(format_property(&Property::new("Memory", Value::Bytes(bytes))));
        }
        if let Some(execution) = explained.execution_time {
            lines.push(format!("Execution Time: {:.3} ms", milliseconds(execution)));
        }
    }
    lines
}

pub(crate) fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// Writer of the lines of the tree.
struct Writer<'a> {
    plan: &'a ExplainPlan,
    lines: &'a mut Vec<String>,
}

impl Writer<'_> {
    /// Writes a node and those below it. `indent` is the number of columns before the node's name, `arrow` the text
    /// there. The engine is mentioned where it differs from `above`, that of the parent.
    fn write_node(&mut self, node: &Node, (indent, arrow): (usize, &str), above: EngineUse) {
        let arrow_start = indent - arrow.len();
        let mut line = format!("{:arrow_start$}{arrow}{}", "", node.name);
        if let Some(relation) = &node.relation {
            line.push_str(" on ");
            line.push_str(relation);
        }
        if self.plan.costs {
            let estimate = &node.estimate;
            let (startup, total) = (estimate.startup, estimate.total);
            line.push_str(&format!(
                "  (cost={startup:.2}..{total:.2} rows={} width={})",
                estimate.rows, estimate.width
            ));
        }
        if let Some(actual) = &node.actual {
            let time = match actual.time_ms.filter(|_| self.plan.timing) {
                Some((start, end)) => format!("time={start:.3}..{end:.3} "),
                None => String::new(),
            };
            line.push_str(&format!(" (actual {time}rows={} loops=1)", actual.rows));
        }
        self.lines.push(line);
        // Below an arrow PostgreSQL indents by two more than the arrow's own six.
        let inner = indent + 2;
        for property in &node.properties {
            self.lines.push(format!("{:inner$}{}", "", format_property(property)));
        }
        // Like PostgreSQL's JIT summary, it is omitted if only the shape of a plan is asked for.
        let shows_engine = self.plan.costs || self.plan.analyze;
        if let Some(engine) = node.engine.filter(|engine| shows_engine && *engine != above) {
            self.lines.push(format!("{:inner$}Engine: {}", "", engine.as_str()));
        }
        let engine = node.engine.unwrap_or(EngineUse::Off);
        for (number, init_plan) in node.init_plans.iter().enumerate() {
            self.lines.push(format!("{:inner$}InitPlan {}", "", number + 1));
            self.write_node(init_plan, (inner + 6, "->  "), EngineUse::Off);
        }
        for child in &node.children {
            self.write_node(child, (indent + 6, "->  "), engine);
        }
    }
}

fn format_property(property: &Property) -> String {
    let key = property.key;
    match &property.value {
        Value::Text(text) => format!("{key}: {text}"),
        Value::List(items) => format!("{key}: {}", items.join(", ")),
        Value::Count(count) => format!("{key}: {count}"),
        Value::Bytes(bytes) => format!("{key}: {}kB", bytes.div_ceil(1024)),
        Value::Milliseconds(time) => format!("{key}: {time:.3} ms"),
    }
}
