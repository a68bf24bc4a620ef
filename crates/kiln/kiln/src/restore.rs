//! `kiln restore`: rebuilds a data folder from a storage alone, as of the newest or an earlier point in time.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use history::{RESTORING, RebuildProgress};
use objects::Objects;
use types::text::{format_timestamptz, parse_timestamptz};
use types::{Clock, CommitTs, Failpoint, SessionZone, SystemClock, SystemRandom, TimeTravelTarget, failpoint};

use crate::serve::{CATALOG_FILE, instance_id};

/// Options of `kiln restore`.
#[derive(Debug, Args)]
pub(crate) struct RestoreArguments {
    /// Folder to create; it must be empty or not exist
    #[arg(long, env = "KILN_DATA", value_name = "DIR")]
    data: PathBuf,

    /// The warehouse's storage, as given to `kiln serve`
    #[arg(long, env = "KILN_STORAGE", value_name = "URL")]
    storage: String,

    /// Time (2026-01-31 12:00:00+00; UTC without an offset) or snapshot number to restore [default: the newest
    /// snapshot]
    #[arg(long, value_name = "MOMENT", value_parser = parse_restore_target)]
    to: Option<TimeTravelTarget>,

    /// Restore what is available even if records of the log or objects of tables are missing
    #[arg(long)]
    incomplete: bool,

    /// Do nothing if the folder already has a complete warehouse
    #[arg(long)]
    if_missing: bool,

    /// Like --if-missing, for use before each start of this Instance in Kubernetes; refuses to restore the Instance a
    /// second time, because that would undo what it has done since
    #[arg(long, value_name = "NAME")]
    kubernetes: Option<String>,
}

#[expect(clippy::print_stdout, reason = "a command tells its user what it does")]
pub(crate) async fn run(arguments: RestoreArguments) -> anyhow::Result<ExitCode> {
    if (arguments.if_missing || arguments.kubernetes.is_some()) && has_warehouse(&arguments.data) {
        println!("{} has a warehouse already: nothing is restored", arguments.data.display());
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(name) = &arguments.kubernetes
        && kubernetes::was_restored(name).await.context("cannot check whether the instance was restored before")?
    {
        anyhow::bail!(
            "the instance {name} was restored before, and its volume is empty again: restoring it again would lose its \
             later commits. Delete it, and create it again with the point in time to restore"
        );
    }
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let objects = Objects::open(&arguments.storage, clock, Arc::new(SystemRandom))
        .with_context(|| format!("cannot open the storage {}", arguments.storage))?;
    failpoint::set_from_environment()?;
    remove_interrupted(&arguments.data).with_context(|| {
        format!("cannot remove the files of an interrupted restore in {}", arguments.data.display())
    })?;
    let moment = arguments.to.unwrap_or(TimeTravelTarget::Newest);
    let print_progress = |progress: RebuildProgress<'_>| match progress {
        RebuildProgress::Checkpoint { object, bytes } => println!("fetching the checkpoint {object}, {bytes} bytes"),
        RebuildProgress::DamagedCheckpoint { object } => println!("{object} is damaged or missing; trying without it"),
        RebuildProgress::Log { objects } => println!("reading the log: {objects} objects"),
        RebuildProgress::Records { until } => println!("read the log up to record {until}"),
    };
    let restored = history::restore(&objects, &arguments.data, moment, arguments.incomplete, &print_progress)
        .await
        .context("cannot restore the warehouse")?;
    if let Some(gap) = restored.gap {
        println!("records {} to {} of the log are missing: later commits are not restored", gap.from, gap.to);
    }
    if let Some(first) = restored.missing_objects.first() {
        println!(
            "{} objects of tables are missing, first {first}: reading their rows fails",
            restored.missing_objects.len()
        );
    }
    let mut reached = String::new();
    format_timestamptz(restored.newest_record_us, &SessionZone::UTC, &mut reached);
    println!("restored snapshot {} of {reached} to {}", restored.commit, arguments.data.display());
    println!("the last restored record of the log is {}", restored.record);
    instance_id::write_id(&arguments.data, restored.instance).context("cannot write the instance's id")?;
    Failpoint::RestoreNamed.pass();
    restored.install(&arguments.data.join(CATALOG_FILE)).context("cannot move the restored catalog into place")?;
    Ok(ExitCode::SUCCESS)
}

/// Returns whether the folder has a complete warehouse, on which a server could start.
fn has_warehouse(data: &Path) -> bool {
    data.join(CATALOG_FILE).exists() && !data.join(RESTORING).exists()
}

/// Removes the files of an interrupted restore, on which no server starts.
fn remove_interrupted(data: &Path) -> io::Result<()> {
    let restoring = data.join(RESTORING);
    if !restoring.exists() {
        return Ok(());
    }
    for entry in fs::read_dir(data)? {
        let file = entry?.path();
        let is_of_catalog = file.file_name().is_some_and(|name| name.to_string_lossy().starts_with(CATALOG_FILE));
        if is_of_catalog || file == instance_id::id_file(data) || file == instance_id::temporary_file(data) {
            fs::remove_file(file)?;
        }
    }
    fs::remove_dir_all(restoring)
}

fn parse_restore_target(text: &str) -> Result<TimeTravelTarget, String> {
    if let Ok(commit) = text.parse() {
        return Ok(TimeTravelTarget::Commit(CommitTs(commit)));
    }
    parse_timestamptz(text, &SessionZone::UTC).map(TimeTravelTarget::Time).map_err(|error| error.to_string())
}
