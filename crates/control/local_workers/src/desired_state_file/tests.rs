use control_plane::StateStore;

use super::DesiredStateFile;

#[test]
fn saving_is_atomic() {
    let folder = tempfile::tempdir().unwrap();
    let file = DesiredStateFile::in_folder(folder.path());
    assert_eq!(file.load().unwrap(), None);
    file.save(b"first and long").unwrap();
    file.save(b"second").unwrap();
    assert_eq!(file.load().unwrap().as_deref(), Some(&b"second"[..]));
    // An interrupted write leaves the old content.
    std::fs::write(folder.path().join("clusters.new"), b"sec").unwrap();
    assert_eq!(file.load().unwrap().as_deref(), Some(&b"second"[..]));
    file.save(b"third").unwrap();
    assert_eq!(file.load().unwrap().as_deref(), Some(&b"third"[..]));
}

#[test]
fn a_folder_that_cannot_be_written_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = DesiredStateFile::in_folder(&folder.path().join("absent"));
    assert_eq!(file.load().unwrap(), None);
    file.save(b"something").unwrap_err();
}
