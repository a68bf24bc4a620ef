//! `kiln restore`: a data folder rebuilt from a storage alone, as of the newest moment or an earlier one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use history::{Progress, RESTORING};
use objects::Objects;
use types::text::{format_timestamptz, parse_timestamptz};
use types::{Clock, CommitTs, Failpoint, Moment, SessionZone, SystemClock, SystemRandom, failpoint};

use crate::serve::{CATALOG, instance};

/// The options of `kiln restore`.
#[derive(Debug, Args)]
pub(crate) struct RestoreArguments {
    /// Folder to make; it must be empty or not there
    #[arg(long, env = "KILN_DATA", value_name = "DIR")]
    data: PathBuf,

    /// The warehouse's storage, as given to `kiln serve`
    #[arg(long, env = "KILN_STORAGE", value_name = "URL")]
    storage: String,

    /// A time (2026-01-31 12:00:00+00; UTC unless said otherwise) or the number of a snapshot [default: the newest moment]
    #[arg(long, value_name = "MOMENT", value_parser = parse_moment)]
    to: Option<Moment>,

    /// Take what there is where the log has a gap or objects are missing
    #[arg(long)]
    incomplete: bool,

    /// Do nothing where the folder has a warehouse already, whole as it is
    #[arg(long)]
    if_missing: bool,

    /// Likewise, before each start of this Instance in Kubernetes, and never twice: one that was restored and has lost its volume again is not set back to that moment
    #[arg(long, value_name = "NAME")]
    kubernetes: Option<String>,
}

#[expect(clippy::print_stdout, reason = "a command tells its user what it does")]
pub(crate) async fn run(arguments: RestoreArguments) -> anyhow::Result<ExitCode> {
    if (arguments.if_missing || arguments.kubernetes.is_some()) && is_there(&arguments.data) {
        println!("{} has a warehouse already: nothing is restored", arguments.data.display());
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(name) = &arguments.kubernetes
        && kubernetes::was_restored(name).await.context("cannot tell whether this was done before")?
    {
        anyhow::bail!(
            "the instance {name} was restored before, and its volume is empty again: what it did since then would be left behind. \
             Delete it, and make it again with what it is to be restored to now"
        );
    }
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let objects = Objects::open(&arguments.storage, clock, Arc::new(SystemRandom))
        .with_context(|| format!("cannot open the storage {}", arguments.storage))?;
    failpoint::set_from_environment()?;
    forget_interrupted(&arguments.data)
        .with_context(|| format!("cannot remove what an earlier restore has left in {}", arguments.data.display()))?;
    let moment = arguments.to.unwrap_or(Moment::Newest);
    let tell = |progress: Progress<'_>| match progress {
        Progress::Checkpoint { object, bytes } => println!("fetching the checkpoint {object}, {bytes} bytes"),
        Progress::DamagedCheckpoint { object } => println!("{object} is damaged or missing; trying without it"),
        Progress::Log { objects } => println!("reading the log: {objects} objects"),
        Progress::Records { until } => println!("read the log up to record {until}"),
    };
    let restored = history::restore(&objects, &arguments.data, moment, arguments.incomplete, &tell)
        .await
        .context("cannot restore the warehouse")?;
    if let Some(gap) = restored.gap {
        println!("records {} to {} of the log are missing: what followed them is not restored", gap.from, gap.to);
    }
    if let Some(first) = restored.missing.first() {
        println!("{} objects of tables are missing, the first is {first}: reading them fails", restored.missing.len());
    }
    let mut reached = String::new();
    format_timestamptz(restored.reached_us, &SessionZone::UTC, &mut reached);
    println!("restored snapshot {} of {reached} to {}", restored.commit, arguments.data.display());
    println!("record {} of the log is the last", restored.record);
    instance::write(&arguments.data, restored.instance).context("cannot write the instance's id")?;
    Failpoint::RestoreNamed.pass();
    restored.finish(&arguments.data.join(CATALOG)).context("cannot put the catalog in its place")?;
    Ok(ExitCode::SUCCESS)
}

/// Whether a server would start on the folder, or has begun to.
fn is_there(data: &Path) -> bool {
    data.join(CATALOG).exists() && !data.join(RESTORING).exists()
}

/// Removes what a restore has left that was cut off: no server starts on that.
fn forget_interrupted(data: &Path) -> io::Result<()> {
    let restoring = data.join(RESTORING);
    if !restoring.exists() {
        return Ok(());
    }
    for entry in fs::read_dir(data)? {
        let file = entry?.path();
        let is_of_catalog = file.file_name().is_some_and(|name| name.to_string_lossy().starts_with(CATALOG));
        if is_of_catalog || file == instance::file(data) || file == instance::draft(data) {
            fs::remove_file(file)?;
        }
    }
    fs::remove_dir_all(restoring)
}

fn parse_moment(text: &str) -> Result<Moment, String> {
    if let Ok(commit) = text.parse() {
        return Ok(Moment::Commit(CommitTs(commit)));
    }
    parse_timestamptz(text, &SessionZone::UTC).map(Moment::Time).map_err(|error| error.to_string())
}
