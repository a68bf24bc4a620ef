//! The objects that a URL names.

use objects::{Object, Objects};
use storage_error::from_objects;
use types::{Condition, SqlError, SqlResult};

use crate::glob::matches;

/// The URL of the bucket that a URL is of, and the rest of it.
///
/// # Errors
/// `58P01` where there is no rest.
pub fn bucket_of(url: &str) -> SqlResult<(String, &str)> {
    let parts = url.split_once("://").and_then(|(scheme, path)| Some((scheme, path.split_once('/')?)));
    match parts {
        Some((scheme, (bucket, name))) if !name.is_empty() => Ok((format!("{scheme}://{bucket}"), name)),
        _ => Err(no_object(url)),
    }
}

/// The objects that a name means, in their order; its parts may be patterns as for files.
///
/// # Errors
/// `58P01` where there are none, and what the storage reports.
pub async fn objects_in(objects: &Objects, name: &str) -> SqlResult<Vec<Object>> {
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

/// Whether a name matches a pattern, part by part: a `*` does not reach over a slash.
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
