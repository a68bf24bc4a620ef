use super::*;

fn event(at: i64, what: EventKind) -> ClusterEvent {
    ClusterEvent { at, cluster: None, author: None, kind: what, detail: String::new() }
}

fn times(events: &[ClusterEvent]) -> Vec<i64> {
    events.iter().map(|event| event.at).collect()
}

#[test]
fn the_oldest_is_forgotten_first() {
    let mut history = EventHistory::default();
    for at in 0..5 {
        history.push(event(at, EventKind::Created), 3);
    }
    assert_eq!(times(&history.merged(&EventHistory::default())), [2, 3, 4]);
    assert_eq!(history.iter().len(), 3);
}

#[test]
fn histories_are_merged_by_time() {
    let (mut changes, mut workers) = (EventHistory::default(), EventHistory::default());
    for at in [1, 4, 6] {
        changes.push(event(at, EventKind::Altered), 10);
    }
    for at in [2, 4, 9] {
        workers.push(event(at, EventKind::WorkerReady), 10);
    }
    let merged = changes.merged(&workers);
    assert_eq!(times(&merged), [1, 2, 4, 4, 6, 9]);
    assert_eq!(merged[2].kind, EventKind::Altered, "at equal times, changes come first");
}

#[test]
fn a_kind_is_shown_as_it_is_stored() {
    for kind in [EventKind::Created, EventKind::OwnerChanged, EventKind::DefaultClustersSet, EventKind::WorkerFailed] {
        assert_eq!(serde_json::to_string(&kind).unwrap(), format!("\"{kind}\""));
    }
}
