use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::fixtures::clock;

#[test]
fn an_authority_is_created_once_and_private() {
    let folder = tempfile::tempdir().expect("create a temporary folder");
    let first = Authority::open(folder.path(), clock()).expect("create an authority");
    let again = Authority::open(folder.path(), clock()).expect("load the stored authority");
    assert_eq!(first.certificate(), again.certificate());
    let mode =
        fs::metadata(folder.path().join(AUTHORITY_FILE)).expect("read the authority's file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let other = tempfile::tempdir().expect("create a temporary folder");
    let other = Authority::open(other.path(), clock()).expect("create an authority");
    assert_ne!(first.certificate(), other.certificate());
}

#[test]
fn a_damaged_authority_is_an_error() {
    let folder = tempfile::tempdir().expect("create a temporary folder");
    drop(Authority::open(folder.path(), clock()).expect("create an authority"));
    let path = folder.path().join(AUTHORITY_FILE);
    let text = fs::read_to_string(&path).expect("read the authority's file");
    let (_, certificate) = text.split_once("-----END PRIVATE KEY-----\n").expect("the file has a private key");
    for damaged in [certificate, &text[..text.len() / 2], ""] {
        fs::write(&path, damaged).expect("overwrite the file");
        let told = Authority::open(folder.path(), clock()).expect_err("a damaged file is an error");
        assert!(matches!(told, AuthorityError::Damaged { .. }), "{told}");
    }
}

#[test]
fn invalid_public_keys_are_refused() {
    let folder = tempfile::tempdir().expect("create a temporary folder");
    let authority = Authority::open(folder.path(), clock()).expect("create an authority");
    let key = KeyPair::generate().expect("generate a key");
    authority.sign(CertificateName::Instance, key.public_key_raw()).expect("sign a valid public key");
    for key in [&[][..], &[4; 64], &[3; 65]] {
        let told = authority.sign(CertificateName::Instance, key).expect_err("an invalid public key is an error");
        assert!(matches!(told, AuthorityError::InvalidPublicKey { .. }), "{told}");
    }
}
