//! An object as it should be in Kubernetes, whatever its kind: what reconcilers make, what is compared, applied and printed.

use std::fmt::Debug;

use kube::Resource;
use kube::core::ApiResource;
use serde::Serialize;
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

#[cfg(test)]
mod tests;

/// Where an object says what was applied of it.
const CONTENT: &str = "kiln.dev/content";

/// An object as it should be.
#[derive(Debug, Clone, PartialEq)]
pub struct Object {
    pub resource: ApiResource,
    pub name: String,
    /// What is applied: only what should be, and nothing of what others may say.
    pub value: Value,
}

impl Object {
    /// Of a typed object, with a mark of its content.
    ///
    /// # Panics
    /// Where the object has no name.
    #[must_use]
    pub fn new<K>(object: &K) -> Object
    where
        K: Resource<DynamicType = ()> + Serialize + Debug,
    {
        let name = object.meta().name.clone().expect("what is to be applied has a name");
        let mut value = serde_json::to_value(object).expect("objects are text, numbers and lists");
        let mut marked = value.clone();
        if K::kind(&()) == "Secret" {
            // Those that see annotations and not what is in secrets could find out by it. Values are compared anyway.
            marked.as_object_mut().map(|fields| fields.remove("data"));
        }
        let content = format!("{:016x}", xxh3_64(marked.to_string().as_bytes()));
        value["metadata"]["annotations"][CONTENT] = Value::String(content);
        Object { resource: ApiResource::erase::<K>(&()), name, value }
    }

    /// Whether the API server's object is this one already: it was applied from the same content, and nobody has changed what that says. So
    /// nothing need be written for it.
    #[must_use]
    pub fn is_applied(&self, observed: &Value) -> bool {
        holds(&self.value, observed)
    }
}

/// Whether everything that `wanted` says is so in `observed`, which may say more.
fn holds(wanted: &Value, observed: &Value) -> bool {
    match (wanted, observed) {
        (Value::Object(wanted), Value::Object(observed)) => wanted.iter().all(|(name, value)| {
            let is_nothing = value.as_object().is_some_and(serde_json::Map::is_empty);
            observed.get(name).map_or(is_nothing, |observed| holds(value, observed))
        }),
        (Value::Array(wanted), Value::Array(observed)) => {
            wanted.len() == observed.len()
                && wanted.iter().zip(observed).all(|(wanted, observed)| holds(wanted, observed))
        }
        _ => wanted == observed,
    }
}

/// Objects as YAML, as `kubectl apply` takes them.
#[must_use]
pub fn yaml(objects: &[Value]) -> String {
    let documents = objects.iter().map(|object| serde_saphyr::to_string(object).expect("JSON is YAML"));
    documents.map(|document| format!("---\n{}\n", document.trim_end())).collect()
}

/// Compares with a file of `tests/golden`; with `KILN_WRITE_GOLDEN=1` it writes the one that is missing.
#[cfg(test)]
pub(crate) fn golden(name: &str, text: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("KILN_WRITE_GOLDEN").is_some() && !path.exists() {
        std::fs::write(&path, text).expect("the folder can be written");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(kept == text, "{} is not what is made now:\n{text}", path.display());
}
