use super::*;

fn awake(cluster: u32, serving: u32, running: u32, queued: u32) -> Candidate {
    Candidate { cluster: ClusterId(cluster), suspended: false, auto_resume: true, serving, running, queued }
}

fn asleep(cluster: u32, auto_resume: bool) -> Candidate {
    Candidate { suspended: true, auto_resume, ..awake(cluster, 0, 0, 0) }
}

const fn run(cluster: u32) -> Result<Choice, NoClusterAvailable> {
    Ok(Choice::Run(ClusterId(cluster)))
}

#[test]
fn the_least_busy_cluster_is_chosen() {
    assert_eq!(choose_cluster(&[awake(1, 2, 5, 0), awake(2, 2, 3, 1), awake(3, 2, 2, 3)], None), run(2));
    assert_eq!(choose_cluster(&[awake(3, 2, 2, 2), awake(2, 2, 4, 0), awake(1, 2, 0, 4)], None), run(3));
    assert_eq!(choose_cluster(&[awake(1, 2, u32::MAX, u32::MAX), awake(2, 2, u32::MAX, 9)], None), run(2));
}

#[test]
fn suspended_clusters_are_chosen_last() {
    assert_eq!(choose_cluster(&[asleep(1, true), awake(2, 1, 99, 99)], None), run(2));
    assert_eq!(
        choose_cluster(&[asleep(1, false), asleep(2, true), asleep(3, true)], None),
        Ok(Choice::Resume(ClusterId(2)))
    );
    let first = ClusterId(1);
    assert_eq!(
        choose_cluster(&[asleep(1, false), asleep(2, false)], None),
        Err(NoClusterAvailable::Suspended { preferred: first })
    );
    assert_eq!(choose_cluster(&[], None), Err(NoClusterAvailable::NoCandidates));
}

#[test]
fn clusters_without_workers_come_second() {
    assert_eq!(choose_cluster(&[awake(1, 0, 0, 0), awake(2, 1, 50, 50)], None), run(2));
    assert_eq!(choose_cluster(&[awake(1, 0, 0, 7), awake(2, 0, 0, 3), asleep(3, true)], None), run(2));
}

#[test]
fn a_transaction_stays_on_its_written_cluster() {
    let candidates = [awake(1, 2, 0, 0), awake(2, 2, 90, 90), asleep(3, true), asleep(4, false)];
    assert_eq!(choose_cluster(&candidates, Some(ClusterId(2))), run(2));
    assert_eq!(choose_cluster(&candidates, Some(ClusterId(3))), Ok(Choice::Resume(ClusterId(3))));
    let first = ClusterId(4);
    assert_eq!(choose_cluster(&candidates, Some(first)), Err(NoClusterAvailable::Suspended { preferred: first }));
    let cluster = ClusterId(5);
    assert_eq!(choose_cluster(&candidates, Some(cluster)), Err(NoClusterAvailable::WrittenClusterGone { cluster }));
}
