use types::SystemClock;

use super::*;

#[test]
fn urls_name_a_storage_and_a_prefix_inside_it() {
    let folder = tempfile::tempdir().unwrap();
    for (url, prefix) in [
        (format!("file://{}", folder.path().display()), ""),
        ("memory:///some/prefix".to_owned(), "some/prefix"),
        ("s3://bucket".to_owned(), ""),
        ("s3://bucket/a/b%20c/".to_owned(), "a/b c"),
        ("gs://bucket/warehouse".to_owned(), "warehouse"),
        ("az://container/warehouse".to_owned(), "warehouse"),
    ] {
        let (_, found) = check(&url).unwrap_or_else(|error| panic!("{url}: {error:?}"));
        assert_eq!(found.as_ref(), prefix, "{url}");
    }
}

#[test]
fn what_is_no_storage_is_refused_by_name() {
    for url in [
        "",
        "bucket/prefix",
        "ftp://host/a",
        "s3:///a",
        "file://host/a",
        "s3://bucket/a?versionId=1",
        "s3://bucket/a//b",
    ] {
        let error = check(url).expect_err(url);
        assert!(matches!(&error, Error::InvalidUrl { url: named, .. } if named == url), "{error:?}");
    }
}

fn check(url: &str) -> Result<(Arc<dyn ObjectStore>, Path)> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let variables = [
        ("AWS_ACCESS_KEY_ID", "key"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:1"),
        ("AZURE_STORAGE_ACCOUNT_NAME", "account"),
        ("GOOGLE_SKIP_SIGNATURE", "true"),
        ("UNRELATED", "value"),
    ];
    open_storage(url, variables.map(|(key, value)| (key.to_owned(), value.to_owned())), &clock, 0)
}
