//! Resolves URLs to objects in object storage.

use objects::{ObjectInfo, Objects};
use storage_error::from_objects;
use types::{Condition, SqlError, SqlResult};

use crate::glob::matches;

/// Splits a URL into the URL of its bucket and the object's name.
///
/// # Errors
/// `58P01` if there is no object name.
pub fn split_bucket_url(url: &str) -> SqlResult<(String, &str)> {
    let parts = url.split_once("://").and_then(|(scheme, path)| Some((scheme, path.split_once('/')?)));
    match parts {
        Some((scheme, (bucket, name))) if !name.is_empty() => Ok((format!("{scheme}://{bucket}"), name)),
        _ => Err(no_object(url)),
    }
}

/// Returns the objects that a name denotes, sorted; its components may be patterns, as for files.
///
/// # Errors
/// `58P01` if none matches; errors of the storage.
pub async fn list_matching_objects(objects: &Objects, name: &str) -> SqlResult<Vec<ObjectInfo>> {
    let Some(first_sign) = name.find(['*', '?', '[']) else {
        return Ok(vec![objects.head(name).await.map_err(from_objects)?]);
    };
    let folder = name[..first_sign].rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut found = objects.list(folder).await.map_err(from_objects)?;
    found.retain(|object| is_match(name, &object.name));
    found.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    if found.is_empty() { Err(no_object(&objects.object_url(name))) } else { Ok(found) }
}

fn no_object(url: &str) -> SqlError {
    SqlError::new(Condition::UndefinedFile, format!("no object matches \"{url}\""))
}

/// Returns whether a name matches a pattern, component by component: `*` does not match a slash.
fn is_match(pattern: &str, name: &str) -> bool {
    let (mut patterns, mut names) = (pattern.split('/'), name.split('/'));
    loop {
        match (patterns.next(), names.next()) {
            (None, None) => return true,
            (Some(pattern), Some(name)) if matches(pattern, name) => {}
            _ => return false,
        }
    }
}
