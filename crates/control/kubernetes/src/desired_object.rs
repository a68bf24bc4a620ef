//! Desired Kubernetes objects of any kind, as reconcilers build, compare, apply and print them.

use std::fmt::Debug;

use kube::Resource;
use kube::core::ApiResource;
use serde::Serialize;
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

#[cfg(test)]
mod tests;

/// Annotation with the hash of the content that was last applied to an object.
const CONTENT_HASH_ANNOTATION: &str = "kiln.dev/content";

/// Desired state of a Kubernetes object.
#[derive(Debug, Clone, PartialEq)]
pub struct DesiredObject {
    pub resource: ApiResource,
    pub name: String,
    /// The object as JSON, with only the fields that are applied and not those that others may set.
    pub value: Value,
}

impl DesiredObject {
    /// Builds the desired state from a typed object and annotates it with a hash of its content.
    ///
    /// # Panics
    /// Panics if the object has no name.
    #[must_use]
    pub fn new<K>(object: &K) -> DesiredObject
    where
        K: Resource<DynamicType = ()> + Serialize + Debug,
    {
        let name = object.meta().name.clone().expect("a desired object has a name");
        let mut value = serde_json::to_value(object).expect("a Kubernetes object serializes to JSON");
        let mut marked = value.clone();
        if K::kind(&()) == "Secret" {
            // The hash would disclose secret data to those who may read annotations only. `is_applied` compares the
            // values anyway.
            marked.as_object_mut().map(|fields| fields.remove("data"));
        }
        let content = format!("{:016x}", xxh3_64(marked.to_string().as_bytes()));
        value["metadata"]["annotations"][CONTENT_HASH_ANNOTATION] = Value::String(content);
        DesiredObject { resource: ApiResource::erase::<K>(&()), name, value }
    }

    /// Returns whether `observed`, the object of the API server, was applied from the same content and none of its
    /// applied fields has been changed since, so that nothing has to be written.
    #[must_use]
    pub fn is_applied(&self, observed: &Value) -> bool {
        contains_fields(&self.value, observed)
    }
}

/// Returns whether every field of `wanted` has the same value in `observed`, which may have further fields.
fn contains_fields(wanted: &Value, observed: &Value) -> bool {
    match (wanted, observed) {
        (Value::Object(wanted), Value::Object(observed)) => wanted.iter().all(|(name, value)| {
            let is_nothing = value.as_object().is_some_and(serde_json::Map::is_empty);
            observed.get(name).map_or(is_nothing, |observed| contains_fields(value, observed))
        }),
        (Value::Array(wanted), Value::Array(observed)) => {
            wanted.len() == observed.len()
                && wanted.iter().zip(observed).all(|(wanted, observed)| contains_fields(wanted, observed))
        }
        _ => wanted == observed,
    }
}

/// Renders objects as a YAML stream for `kubectl apply`.
#[must_use]
pub fn to_yaml(objects: &[Value]) -> String {
    let documents = objects.iter().map(|object| serde_saphyr::to_string(object).expect("JSON is valid YAML"));
    documents.map(|document| format!("---\n{}\n", document.trim_end())).collect()
}

/// Asserts that `text` equals a file of `tests/golden`. With `KILN_WRITE_GOLDEN=1` it writes the file if it is missing.
#[cfg(test)]
pub(crate) fn assert_golden(name: &str, text: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("KILN_WRITE_GOLDEN").is_some() && !path.exists() {
        std::fs::write(&path, text).expect("the folder can be written");
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(expected == text, "{} differs from the generated text:\n{text}", path.display());
}
