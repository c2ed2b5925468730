use std::{sync::mpsc, time::Duration};

use revm::bytecode::opcode;

use super::*;
use crate::{
    deadline::Limits,
    execute::{Options, call},
    message::Message,
    outcome::Status,
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

/// Waits until the pool has results, as an event loop does.
fn wait(pool: &Pool) -> Vec<(u64, Result<Outcome>)> {
    assert!(readable(pool, 10_000), "no result in ten seconds");
    pool.take()
}

fn readable(pool: &Pool, milliseconds: i32) -> bool {
    let mut poll = libc::pollfd { fd: pool.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one pollfd, which outlives the call.
    unsafe { libc::poll(&mut poll, 1, milliseconds) == 1 }
}

fn wait_for(pool: &Pool, count: usize) -> Vec<(u64, Result<Outcome>)> {
    let mut results = Vec::new();
    while results.len() < count {
        results.extend(wait(pool));
    }
    results
}

#[test]
fn every_job_is_answered_once_under_its_id() {
    let pool = Pool::new(3, 1000, 10).expect("starts");
    for id in 0..500 {
        pool.submit(id, move |_| Ok(outcome(id))).expect("room");
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
    let pool = Pool::new(1, 2, 0).expect("starts");
    let (release, gate) = mpsc::channel::<()>();
    let (started, begun) = mpsc::channel();
    let blocked = move |_: &Arc<AtomicBool>| {
        started.send(()).expect("the test waits");
        gate.recv().expect("the test releases");
        Ok(outcome(0))
    };
    pool.submit(0, blocked).expect("room");
    begun.recv_timeout(Duration::from_secs(10)).expect("the thread has taken it");
    pool.submit(1, |_| Ok(outcome(1))).expect("room");
    pool.submit(2, |_| Ok(outcome(2))).expect("room");
    assert_eq!(pool.submit(3, |_| Ok(outcome(3))), Err(Error::PoolFull(2)));
    assert_eq!(pool.waiting(), 2);
    release.send(()).expect("the job waits");
    assert_eq!(wait_for(&pool, 3).len(), 3);
    pool.submit(3, |_| Ok(outcome(3))).expect("room again");
    assert_eq!(wait_for(&pool, 1), [(3, Ok(outcome(3)))]);
}

#[test]
fn a_panic_is_an_error_and_the_thread_lives_on() {
    let pool = Pool::new(1, 10, 0).expect("starts");
    pool.submit(1, |_| panic!("on purpose")).expect("room");
    pool.submit(2, |_| Ok(outcome(2))).expect("room");
    let results = wait_for(&pool, 2);
    let panicked = &results[0].1;
    assert!(matches!(panicked, Err(Error::Execution(why)) if why.contains("on purpose")));
    assert_eq!(results[1], (2, Ok(outcome(2))));
}

#[test]
fn dropping_the_pool_stops_what_runs_and_forgets_what_waits() {
    let pool = Pool::new(2, 10, 0).expect("starts");
    let (started, begun) = mpsc::channel();
    for id in 0..2 {
        let started = started.clone();
        let until_cancelled = move |cancel: &Arc<AtomicBool>| {
            started.send(()).expect("the test waits");
            while !cancel.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            Err(Error::DeadlineExceeded)
        };
        pool.submit(id, until_cancelled).expect("room");
    }
    for _ in 0..2 {
        begun.recv_timeout(Duration::from_secs(10)).expect("both run");
    }
    pool.submit(2, |_| panic!("must never run")).expect("room");
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
    let pool = Pool::new(1, 1, 0).expect("starts");
    let long = move |cancel: &Arc<AtomicBool>| {
        let limits = Limits { cancel: Some(Arc::clone(cancel)), ..Limits::default() };
        started.send(()).expect("the test waits");
        let result = call(&mut overlay, &env, &message, Options { limits, ..Options::default() });
        ended.send(result.clone()).expect("the test waits");
        result
    };
    pool.submit(1, long).expect("room");
    begun.recv_timeout(Duration::from_secs(10)).expect("it runs");
    drop(pool);
    assert_eq!(end.try_recv(), Ok(Err(Error::DeadlineExceeded)));
}

#[cfg(target_os = "linux")]
#[test]
fn the_threads_are_nice_and_this_one_is_not() {
    let niceness = || {
        // SAFETY: getpriority takes plain numbers.
        unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }
    };
    let before = niceness();
    let pool = Pool::new(1, 10, 15).expect("starts");
    pool.submit(1, move |_| Ok(outcome(niceness() as u64))).expect("room");
    let results = wait_for(&pool, 1);
    assert_eq!(results, [(1, Ok(outcome(15)))]);
    assert_eq!(niceness(), before);
}
