use super::*;

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

#[test]
fn all_of_a_statements_time_is_in_one_state_each() {
    let mut life = StatementTimer::begin(ms(100), ms(7));
    life.add_time(StatementState::Parse, ms(2));
    life.enter(StatementState::AcquireResources, ms(110));
    life.enter(StatementState::Plan, ms(150));
    life.enter(StatementState::Run, ms(155));
    let spent = life.times_until(ms(200), ms(12));
    assert_eq!(spent.map(|time| time.as_millis()), [2, 15, 0, 0, 40, 40, 5]);
    assert_eq!(spent.iter().sum::<Duration>(), ms(102), "since it began, and what it was parsed in before");
}

#[test]
fn what_is_ended_takes_no_more_time() {
    let mut life = StatementTimer::begin(ms(0), ms(0));
    life.enter(StatementState::Run, ms(1));
    life.end(ms(5));
    assert_eq!(life.times_until(ms(50), ms(0)).iter().sum::<Duration>(), ms(5));
    life.end(ms(9));
    assert_eq!(life.times_until(ms(50), ms(100))[StatementState::Client as usize], ms(4), "no more than it ran");
}

#[test]
fn states_have_their_names() {
    for (state, name) in [
        (StatementState::Parse, "parse"),
        (StatementState::AcquireResources, "acquire_resources"),
        (StatementState::Client, "client"),
    ] {
        assert_eq!(STATEMENT_PHASES[state as usize], name);
    }
}
