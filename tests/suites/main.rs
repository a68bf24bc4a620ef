//! Runs other projects' SQL tests, from a folder that the user has, on Kiln and on PostgreSQL, and reports differences
//! and refusals by reason.
//!
//! PostgreSQL is the oracle: records that it refuses do not count, and expected results of the files are not read.
//!
//! - `arguments.rs`, `suite.rs`: the command line; the files of a suite
//! - `parse/`, `script.rs`: test files become records; `sql/`: what the text of a statement tells
//! - `servers.rs`, `home.rs`, `session.rs`, `answer.rs`: the servers, the database and schema of one file, and answers
//! - `run_suite.rs`, `run_file.rs`: the loops over files and records; `session_pair.rs`, `block.rs`: the state of the
//!   sessions that run them
//! - `compare.rs`, `reason.rs`, `out_of_step.rs`: the judgement of one record: equal, refused for a reason, or a
//!   consequence of an earlier refusal
//! - `file_report.rs`, `report/`: counts and lists

mod answer;
mod arguments;
mod block;
mod compare;
mod file_report;
mod home;
mod out_of_step;
mod parse;
mod reason;
mod report;
mod run_file;
mod run_suite;
mod script;
mod servers;
mod session;
mod session_pair;
mod sql;
mod suite;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;

use crate::arguments::Arguments;
use crate::run_suite::SuiteReport;

/// Exit code after the end of a Kiln server.
const KILN_ENDED: u8 = 2;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match Box::pin(run(&arguments)).await {
        Ok(exit_code) => exit_code,
        Err(error) => {
            print_progress(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let report = run_suite::run_suite(arguments).await?;
    let title = format!("{:?} {}", arguments.suite, arguments.folder.display());
    let summary = report::summary(&title, &report);
    print_summary(&summary);
    if let Some(folder) = &arguments.report {
        write_lists(folder, &summary, &report)?;
    }
    let has_ended = report.files.iter().any(|file| !file.server_ends.is_empty());
    Ok(match (has_ended, report.errors.is_empty()) {
        (true, _) => ExitCode::from(KILN_ENDED),
        (false, true) => ExitCode::SUCCESS,
        (false, false) => ExitCode::FAILURE,
    })
}

fn write_lists(folder: &Path, summary: &str, report: &SuiteReport) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let lists = report::lists(report);
    let texts = lists.iter().map(|(name, text)| (*name, text.as_str())).chain([("summary.txt", summary)]);
    for (name, text) in texts {
        let path = folder.join(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the summary is the program's output")]
fn print_summary(text: &str) {
    print!("{text}");
}

/// Prints a line of progress or an error.
#[expect(clippy::print_stderr, reason = "a command-line program speaks to its user")]
pub(crate) fn print_progress(text: &str) {
    eprintln!("{text}");
}
