//! Names and texts drawn at random: a reader who has never seen the project explains each, or it is renamed.

use std::fmt::Write as _;

use super::declarations;
use crate::workspace::Workspace;

const SAMPLE_SIZE: usize = 20;

/// Draws twenty files, twenty names, and twenty texts of logs and errors; the same for the same seed and tree.
///
/// # Errors
/// A file that does not parse.
pub(crate) fn draw_sample(workspace: &Workspace, seed: u64) -> Result<String, String> {
    let declared = declarations::read(workspace)?;
    let mut random = SplitMix(seed);
    let files: Vec<String> = workspace
        .sources
        .iter()
        .filter(|(path, _)| !crate::source_file_checks::is_test_source(path))
        .map(|(path, _)| workspace.display_path(path).to_string())
        .collect();
    let line = |each: &declarations::LocatedText| format!("{}  ({})", each.text, each.location);
    let names: Vec<String> = declared.values().flat_map(|each| &each.names).map(line).collect();
    let texts: Vec<String> =
        declared.values().flat_map(|each| each.logs.iter().chain(&each.errors)).map(line).collect();
    let mut shown = String::new();
    for (title, all) in [("files", files), ("names", names), ("texts", texts)] {
        let _ = writeln!(shown, "{title}:");
        for each in random.draw(all) {
            let _ = writeln!(shown, "  {each}");
        }
    }
    Ok(shown)
}

/// Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (2014).
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn draw(&mut self, mut all: Vec<String>) -> Vec<String> {
        let count = all.len().min(SAMPLE_SIZE);
        let mut drawn = Vec::with_capacity(count);
        while drawn.len() < count {
            let at = usize::try_from(self.next() % all.len() as u64).expect("less than a length");
            drawn.push(all.swap_remove(at));
        }
        drawn
    }
}
