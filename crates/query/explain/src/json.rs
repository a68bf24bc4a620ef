//! JSON output, with PostgreSQL's keys.

use binder::{ExplainPlan, PlanningPhase};
use serde_json::{Map, Value as Json, json};

use crate::explainer::Explanation;
use crate::plan_node::{Node, Value};
use crate::text::milliseconds;

pub(crate) fn to_document(explained: &Explanation, plan: &ExplainPlan) -> String {
    let mut statement = Map::new();
    statement.insert("Plan".to_owned(), node_to_json(&explained.root, plan, None));
    if plan.summary {
        statement.insert("Planning Time".to_owned(), rounded(milliseconds(explained.planning_time)));
        if let Some(phases) = plan.phases().filter(|_| plan.verbose) {
            let spent = |phase: PlanningPhase| (phase.name().to_owned(), rounded(milliseconds(phases.spent(phase))));
            statement.insert(
                "Planning Phases".to_owned(),
                Json::Object(PlanningPhase::ALL.into_iter().map(spent).collect()),
            );
        }
        if let Some(place) = &explained.location {
            statement.insert("Runs".to_owned(), json!(place.to_string()));
        }
        if let Some(bytes) = explained.peak_memory_bytes {
            statement.insert("Memory Bytes".to_owned(), json!(bytes));
        }
        if let Some(execution) = explained.execution_time {
            statement.insert("Execution Time".to_owned(), rounded(milliseconds(execution)));
        }
    }
    serde_json::to_string_pretty(&json!([statement])).expect("JSON of plain values can be serialized")
}

fn node_to_json(node: &Node, plan: &ExplainPlan, relationship: Option<&str>) -> Json {
    let mut object = Map::new();
    let mut put = |key: &str, value: Json| {
        object.insert(key.to_owned(), value);
    };
    put("Node Type", json!(node.name));
    if let Some(relationship) = relationship {
        put("Parent Relationship", json!(relationship));
    }
    if let Some(relation) = &node.relation {
        put("Relation Name", json!(relation));
    }
    if plan.costs {
        put("Startup Cost", rounded(node.estimate.startup));
        put("Total Cost", rounded(node.estimate.total));
        put("Plan Rows", json!(node.estimate.rows));
        put("Plan Width", json!(node.estimate.width));
    }
    if let Some(actual) = &node.actual {
        if let Some((start, end)) = actual.time_ms.filter(|_| plan.timing) {
            put("Actual Startup Time", rounded(start));
            put("Actual Total Time", rounded(end));
        }
        put("Actual Rows", json!(actual.rows));
        put("Actual Loops", json!(1));
    }
    for property in &node.properties {
        match &property.value {
            Value::Text(text) => put(property.key, json!(text)),
            Value::List(items) => put(property.key, json!(items)),
            Value::Count(count) => put(property.key, json!(count)),
            Value::Bytes(bytes) => put(&format!("{} Bytes", property.key), json!(bytes)),
            Value::Milliseconds(time) => put(&format!("{} Time", property.key), rounded(*time)),
        }
    }
    if let Some(engine) = node.engine {
        put("Engine", json!(engine.as_str()));
    }
    let relationships = ["Outer", "Inner"].into_iter().chain(std::iter::repeat("Member"));
    let init_plans = node.init_plans.iter().map(|plan| (plan, "InitPlan"));
    let below: Vec<Json> = init_plans
        .chain(node.children.iter().zip(relationships))
        .map(|(child, relationship)| node_to_json(child, plan, Some(relationship)))
        .collect();
    if !below.is_empty() {
        put("Plans", Json::Array(below));
    }
    Json::Object(object)
}

/// Rounds to three decimals.
fn rounded(number: f64) -> Json {
    json!((number * 1000.0).round() / 1000.0)
}
