use std::{sync::mpsc, time::Duration};

use revm::bytecode::opcode;

use super::*;
use crate::{
    evm::{
        execute::{Options, call},
        outcome::{Outcome, Status},
    },
    message::Message,
    testing::{Asm, MemoryState, addr, env, ethereum},
};

fn outcome(gas_used: u64) -> Outcome {
    Outcome {
        status: Status::Success,
        gas_used,
        max_gas_used: gas_used,
        output: Default::default(),
        logs: Vec::new(),
        created: None,
        collected: None,
    }
}

/// A pool whose threads all run at once, with capacity for `waiting` jobs.
fn pool(threads: usize, waiting: usize, nice: u8) -> Pool<Outcome> {
    Pool::new(Size { running: threads, begun: threads, waiting, nice }, output_bytes)
        .expect("starts")
}

fn output_bytes(outcome: &Outcome) -> usize {
    outcome.output.len()
}

const ASKER: Asker = Asker { address: 1, deadline: None };

/// Waits for results like an event loop.
fn wait(pool: &Pool<Outcome>) -> Vec<(u64, Result<Outcome>)> {
    assert!(readable(pool, 10_000), "no result in ten seconds");
    pool.take()
}

fn readable(pool: &Pool<Outcome>, milliseconds: i32) -> bool {
    let mut poll = libc::pollfd { fd: pool.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one pollfd, which outlives the call.
    unsafe { libc::poll(&mut poll, 1, milliseconds) == 1 }
}

fn wait_for(pool: &Pool<Outcome>, count: usize) -> Vec<(u64, Result<Outcome>)> {
    let mut results = Vec::new();
    while results.len() < count {
        results.extend(wait(pool));
    }
    results
}

#[test]
fn every_job_is_answered_once_under_its_id() {
    let pool = pool(3, 1000, 10);
    for id in 0..500 {
        pool.submit(id, ASKER, move |_| Ok(outcome(id))).expect("room");
    }
    let mut results = wait_for(&pool, 500);
    results.sort_by_key(|(id, _)| *id);
    for (expected, (id, result)) in results.into_iter().enumerate() {
        assert_eq!(id, expected as u64);
        assert_eq!(result, Ok(outcome(id)));
    }
    assert!(pool.take().is_empty());
    assert!(!readable(&pool, 0), "readable with nothing to take");
}

#[test]
fn a_full_queue_refuses_and_has_room_again_later() {
    let pool = pool(1, 2, 0);
    let (release, gate) = mpsc::channel::<()>();
    let (started, begun) = mpsc::channel();
    let blocked = move |_: Limits| {
        started.send(()).expect("the test waits");
        gate.recv().expect("the test releases");
        Ok(outcome(0))
    };
    pool.submit(0, ASKER, blocked).expect("room");
    begun.recv_timeout(Duration::from_secs(10)).expect("the thread has taken it");
    pool.submit(1, ASKER, |_| Ok(outcome(1))).expect("room");
    pool.submit(2, ASKER, |_| Ok(outcome(2))).expect("room");
    assert_eq!(pool.submit(3, ASKER, |_| Ok(outcome(3))), Err(Error::PoolFull(2)));
    assert_eq!(pool.waiting(), 2);
    release.send(()).expect("the job waits");
    assert_eq!(wait_for(&pool, 3).len(), 3);
    pool.submit(3, ASKER, |_| Ok(outcome(3))).expect("room again");
    assert_eq!(wait_for(&pool, 1), [(3, Ok(outcome(3)))]);
}

#[test]
fn a_panic_is_an_error_and_the_thread_lives_on() {
    let pool = pool(1, 10, 0);
    pool.submit(1, ASKER, |_| panic!("on purpose")).expect("room");
    pool.submit(2, ASKER, |_| Ok(outcome(2))).expect("room");
    let results = wait_for(&pool, 2);
    let panicked = &results[0].1;
    assert!(matches!(panicked, Err(Error::Execution(why)) if why.contains("on purpose")));
    assert_eq!(results[1], (2, Ok(outcome(2))));
}

#[test]
fn dropping_the_pool_stops_what_runs_and_forgets_what_waits() {
    let pool = pool(2, 10, 0);
    let (started, begun) = mpsc::channel();
    for id in 0..2 {
        let started = started.clone();
        let until_cancelled = move |limits: Limits| {
            let cancel = limits.cancel.expect("it can be cancelled");
            started.send(()).expect("the test waits");
            while !cancel.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            Err(Error::DeadlineExceeded)
        };
        pool.submit(id, ASKER, until_cancelled).expect("room");
    }
    for _ in 0..2 {
        begun.recv_timeout(Duration::from_secs(10)).expect("both run");
    }
    pool.submit(2, ASKER, |_| panic!("must never run")).expect("room");
    drop(pool);
}

#[test]
fn a_call_that_would_run_for_hours_ends_with_the_pool() {
    let code = Asm::default().op(opcode::JUMPDEST).push(0u64).op(opcode::JUMP);
    let mut overlay = MemoryState::default().contract(addr(1), code).overlay();
    let env = env(ethereum("Osaka"));
    let message = Message { to: Some(addr(1)), gas: u64::MAX, ..Message::default() };
    let (started, begun) = mpsc::channel();
    let (ended, end) = mpsc::channel();
    let pool = pool(1, 1, 0);
    let long = move |limits: Limits| {
        started.send(()).expect("the test waits");
        let result = call(&mut overlay, &env, &message, Options { limits, ..Options::default() });
        ended.send(result.clone()).expect("the test waits");
        result
    };
    pool.submit(1, ASKER, long).expect("room");
    begun.recv_timeout(Duration::from_secs(10)).expect("it runs");
    drop(pool);
    assert_eq!(end.try_recv(), Ok(Err(Error::DeadlineExceeded)));
}

#[cfg(target_os = "linux")]
#[test]
fn the_threads_are_nice_and_this_one_is_not() {
    let niceness = || {
        // SAFETY: getpriority takes plain integers.
        unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }
    };
    let before = niceness();
    let pool = pool(1, 10, 15);
    pool.submit(1, ASKER, move |_| Ok(outcome(niceness() as u64))).expect("room");
    let results = wait_for(&pool, 1);
    assert_eq!(results, [(1, Ok(outcome(15)))]);
    assert_eq!(niceness(), before);
}

/// A job that reports its start and runs until it is cancelled.
fn held(begun: mpsc::Sender<u64>, number: u64) -> impl FnOnce(Limits) -> Result<Outcome> + Send {
    move |limits| {
        begun.send(number).expect("the test waits");
        let cancel = limits.cancel.expect("it can be cancelled");
        while !cancel.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        Err(Error::DeadlineExceeded)
    }
}

#[test]
fn what_nobody_wants_any_more_is_stopped_or_never_begun() {
    let pool = pool(1, 10, 0);
    let (begun, begins) = mpsc::channel();
    pool.submit(1, ASKER, held(begun.clone(), 1)).expect("room");
    assert_eq!(begins.recv(), Ok(1));
    pool.submit(2, ASKER, |_| panic!("must never run")).expect("room");
    pool.submit(3, ASKER, |_| Ok(outcome(3))).expect("room");
    pool.cancel(2);
    assert_eq!(pool.waiting(), 1);
    pool.cancel(1);
    pool.cancel(99);
    let results = wait_for(&pool, 2);
    assert_eq!(results, [(1, Err(Error::DeadlineExceeded)), (3, Ok(outcome(3)))]);
}

#[test]
fn addresses_are_begun_in_turn() {
    let pool = pool(1, 10, 0);
    let (begun, begins) = mpsc::channel();
    pool.submit(0, ASKER, held(begun, 0)).expect("room");
    assert_eq!(begins.recv(), Ok(0));
    for (address, number) in [(1, 10), (1, 11), (1, 12), (2, 20)] {
        let asker = Asker { address, ..ASKER };
        pool.submit(number, asker, move |_| Ok(outcome(number))).expect("room");
    }
    pool.cancel(0);
    let order: Vec<_> = wait_for(&pool, 5).into_iter().map(|(number, _)| number).collect();
    assert_eq!(order, [0, 10, 20, 11, 12]);
}

#[test]
fn who_has_most_waiting_gives_way_and_is_told() {
    let pool = pool(1, 2, 0);
    let (begun, begins) = mpsc::channel();
    pool.submit(0, ASKER, held(begun, 0)).expect("room");
    assert_eq!(begins.recv(), Ok(0));
    for number in [1, 2] {
        pool.submit(number, ASKER, move |_| Ok(outcome(number))).expect("room");
    }
    let other = Asker { address: 2, ..ASKER };
    pool.submit(3, other, |_| Ok(outcome(3))).expect("room, for it has nothing waiting");
    assert_eq!(wait_for(&pool, 1), [(2, Err(Error::PoolFull(2)))]);
    pool.cancel(0);
    assert_eq!(wait_for(&pool, 3).len(), 3);
}

#[test]
fn what_could_not_begin_in_time_is_refused_at_once() {
    let pool = pool(1, 1000, 0);
    let (begun, begins) = mpsc::channel();
    pool.submit(0, ASKER, held(begun, 0)).expect("room");
    assert_eq!(begins.recv(), Ok(0));
    pool.shared.state().mean = 3600.0;
    let in_time = |seconds| Some(Instant::now() + Duration::from_secs(seconds));
    let hurried = Asker { deadline: in_time(3600), ..ASKER };
    pool.submit(1, hurried, |_| Ok(outcome(1))).expect("nothing is before it");
    assert_eq!(pool.submit(2, hurried, |_| Ok(outcome(2))), Err(Error::PoolFull(1)));
    pool.submit(3, Asker { deadline: in_time(7300), ..ASKER }, |_| Ok(outcome(3))).expect("room");
    pool.submit(4, ASKER, |_| Ok(outcome(4))).expect("it waits for ever");
    pool.cancel(0);
    assert_eq!(wait_for(&pool, 4).len(), 4);
}

#[test]
fn a_short_call_does_not_wait_for_the_end_of_long_ones() {
    let pool = Pool::new(Size { running: 1, begun: 8, waiting: 8, nice: 0 }, output_bytes)
        .expect("starts");
    let code = Asm::default().op(opcode::JUMPDEST).push(0u64).op(opcode::JUMP);
    let endless = MemoryState::default().contract(addr(1), code);
    for number in 0..4 {
        let (mut overlay, env) = (endless.clone().overlay(), env(ethereum("Osaka")));
        let message = Message { to: Some(addr(1)), gas: u64::MAX, ..Message::default() };
        let long = move |limits| {
            call(&mut overlay, &env, &message, Options { limits, ..Options::default() })
        };
        pool.submit(number, ASKER, long).expect("room");
    }
    for number in 4..20 {
        pool.submit(number, ASKER, move |_| Ok(outcome(number))).expect("room");
        assert_eq!(wait_for(&pool, 1), [(number, Ok(outcome(number)))]);
    }
}

#[test]
fn no_more_is_begun_while_results_that_nobody_takes_hold_much() {
    let pool = pool(1, 10, 0);
    let large = |_: Limits| Ok(Outcome { output: vec![0; MOST_HELD + 1].into(), ..outcome(1) });
    pool.submit(1, ASKER, large).expect("room");
    assert!(readable(&pool, 10_000));
    pool.submit(2, ASKER, |_| Ok(outcome(2))).expect("room");
    assert_eq!(pool.waiting(), 1);
    assert_eq!(
        wait_for(&pool, 2).into_iter().map(|(number, _)| number).collect::<Vec<_>>(),
        [1, 2]
    );
}
