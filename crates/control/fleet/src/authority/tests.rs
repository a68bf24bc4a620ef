use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::fixtures::clock;

#[test]
fn an_authority_is_made_once_and_kept_from_others() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let first = Authority::open(folder.path(), clock()).expect("the folder is empty");
    let again = Authority::open(folder.path(), clock()).expect("it was kept");
    assert_eq!(first.certificate(), again.certificate());
    let mode = fs::metadata(folder.path().join(FILE)).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let other = tempfile::tempdir().expect("a temporary folder can be made");
    let other = Authority::open(other.path(), clock()).expect("the folder is empty");
    assert_ne!(first.certificate(), other.certificate());
}

#[test]
fn what_is_damaged_is_told_and_not_made_anew() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    drop(Authority::open(folder.path(), clock()).expect("the folder is empty"));
    let path = folder.path().join(FILE);
    let text = fs::read_to_string(&path).expect("it is there");
    let (_, certificate) = text.split_once("-----END PRIVATE KEY-----\n").expect("the key comes first");
    for damaged in [certificate, &text[..text.len() / 2], ""] {
        fs::write(&path, damaged).expect("it is ours");
        let told = Authority::open(folder.path(), clock()).expect_err("something is missing");
        assert!(matches!(told, AuthorityError::Damaged { .. }), "{told}");
    }
}

#[test]
fn only_points_are_signed() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let authority = Authority::open(folder.path(), clock()).expect("the folder is empty");
    let key = KeyPair::generate().expect("there is chance");
    authority.sign(Name::Instance, key.public_key_raw()).expect("it is a point");
    for key in [&[][..], &[4; 64], &[3; 65]] {
        let told = authority.sign(Name::Instance, key).expect_err("it is no point");
        assert!(matches!(told, AuthorityError::PublicKey { .. }), "{told}");
    }
}
