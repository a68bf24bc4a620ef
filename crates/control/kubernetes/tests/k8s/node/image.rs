//! Container image that all pods run, whatever image they name: built by `scripts/image` from the program under test,
//! and unpacked once for all tests.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

use super::project;

/// Unpacked image.
#[derive(Debug, Clone)]
pub(super) struct Image {
    /// Root file system.
    pub(super) root: PathBuf,
    /// Environment variables, as `NAME=value`.
    pub(super) variables: Vec<String>,
}

static IMAGE: OnceLock<Image> = OnceLock::new();

impl Image {
    /// Returns the image of the program, which is built and unpacked on the first call.
    pub(super) fn of(program: &Path) -> Image {
        IMAGE.get_or_init(|| Image::unpack(program)).clone()
    }

    fn unpack(program: &Path) -> Image {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("k8s-image");
        if folder.exists() {
            std::fs::remove_dir_all(&folder).expect("what an earlier run has left can be removed");
        }
        let (archive, layout, root) = (folder.join("image.tar"), folder.join("image"), folder.join("root"));
        std::fs::create_dir_all(&layout).expect("the folder can be written");
        std::fs::create_dir(&root).expect("the folder can be written");
        run(Command::new(project("scripts/image")).arg(program).arg(&archive).args(["--level", "1"]));
        run(Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(&layout));
        let index = read(&layout.join("index.json"));
        let manifest = read(&blob(&layout, &index["manifests"][0]));
        let config = read(&blob(&layout, &manifest["config"]));
        for layer in manifest["layers"].as_array().expect("an image has layers") {
            run(Command::new("tar").args(["-xzf"]).arg(blob(&layout, layer)).arg("-C").arg(&root));
        }
        let variables = config["config"]["Env"].as_array().expect("it says its variables");
        let variables = variables.iter().map(|variable| variable.as_str().expect("text").to_owned()).collect();
        Image { root, variables }
    }
}

/// Returns the path of the blob that a descriptor names, after checking its digest and size.
fn blob(layout: &Path, descriptor: &Value) -> PathBuf {
    let digest = descriptor["digest"].as_str().and_then(|digest| digest.strip_prefix("sha256:")).expect("a digest");
    let path = layout.join("blobs/sha256").join(digest);
    let said = Command::new("sha256sum").arg(&path).output().expect("sha256sum runs");
    assert!(String::from_utf8_lossy(&said.stdout).starts_with(digest), "{} is not what its name says", path.display());
    let size = std::fs::metadata(&path).expect("it is there").len();
    assert_eq!(descriptor["size"], size);
    path
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).expect("it is there")).expect("it is JSON")
}

fn run(command: &mut Command) {
    let done = command.output().expect("the program is there");
    assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
}
