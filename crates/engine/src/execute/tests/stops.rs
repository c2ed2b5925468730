//! Runs that are stopped.

use super::*;

fn soon() -> Options {
    let deadline = Some(Instant::now() + Duration::from_millis(20));
    Options { limits: Limits { deadline, ..Limits::default() }, ..Options::default() }
}

/// Each of these would run for minutes.
fn endless() -> Vec<(&'static str, MemoryState)> {
    let endless = Asm::default().op(op::JUMPDEST).push(0u64).op(op::JUMP);
    let endless_if = Asm::default().op(op::JUMPDEST).push(1u64).push(0u64).op(op::JUMPI);
    let nested = Asm::default().call(addr(0xee), 0);
    let by = |code: u8, operands: usize| {
        // Two calls of itself in every frame: depth alone does not end it.
        let mut asm = Asm::default();
        for _ in 0..2 {
            for _ in 0..operands {
                asm = asm.push(0u64);
            }
            asm = asm.push_address(CONTRACT).op(op::GAS).op(code).op(op::POP);
        }
        asm
    };
    // Init code that creates itself, twice.
    let create = |code: u8| {
        let mut asm = Asm::default().op(op::CODESIZE).push(0u64).push(0u64).op(op::CODECOPY);
        for salt in 0..2u64 {
            if code == op::CREATE2 {
                asm = asm.push(salt);
            }
            asm = asm.op(op::CODESIZE).push(0u64).push(0u64).op(code).op(op::POP);
        }
        asm
    };
    vec![
        ("a loop", state(endless.clone())),
        ("a conditional loop", state(endless_if)),
        ("a loop in a call", state(nested).contract(addr(0xee), endless)),
        ("CALL", state(by(op::CALL, 5))),
        ("CALLCODE", state(by(op::CALLCODE, 5))),
        ("DELEGATECALL", state(by(op::DELEGATECALL, 4))),
        ("STATICCALL", state(by(op::STATICCALL, 4))),
        ("CREATE", state(create(op::CREATE))),
        ("CREATE2", state(create(op::CREATE2))),
    ]
}

#[test]
fn the_deadline_stops_loops_and_recursion_and_the_next_run_is_right() {
    for rules in [ethereum("Cancun"), optimism("Jovian")] {
        let env = env(rules);
        for (what, state) in endless() {
            let mut overlay = state.overlay();
            // Priced, so that the run with effects uses the handler of Optimism there.
            let fees = Fees::Legacy { gas_price: 1 };
            let message = Message { gas: 1 << 56, fees, ..message(CONTRACT) };
            let started = Instant::now();
            let stopped = call(&mut overlay, &env, &message, soon());
            assert_eq!(stopped, Err(Error::DeadlineExceeded), "{what}");
            let kept = run(&mut overlay, &env, &message, soon());
            assert_eq!(kept, Err(Error::DeadlineExceeded), "{what}");
            assert!(started.elapsed() < Duration::from_secs(5), "{what}");
            assert_eq!(overlay.take(1).expect("takes"), Default::default(), "{what}");

            let code = Asm::default().op(op::GAS).return_top();
            let outcome = call_code(rules, code.clone());
            assert_eq!(word(&outcome), U256::from(GAS - 21_002), "after {what}");
        }
    }
}

#[test]
fn another_thread_can_cancel_a_run() {
    let cancel = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let limits = Limits { cancel: Some(cancel), ..Limits::default() };
    for (what, state) in endless() {
        let options = Options { limits: limits.clone(), ..Options::default() };
        let message = Message { gas: u64::MAX, ..message(CONTRACT) };
        let result = call(&mut state.overlay(), &env(ethereum("Cancun")), &message, options);
        assert_eq!(result, Err(Error::DeadlineExceeded), "{what}");
    }
}

#[test]
fn a_precompile_beyond_the_limit_stops_the_run_and_others_cost_what_they_cost() {
    let rules = ethereum("Prague");
    let limited = |gas| {
        let limits = Limits { precompile_gas: Some(gas), ..Limits::default() };
        Options { limits, ..Options::default() }
    };
    // SHA-256 of nothing takes 60 gas of all that is forwarded.
    let code = Asm::default().call(precompile(2), 0).op(op::GAS).return_top();
    let free = call_code(rules, code.clone());
    let mut overlay = state(code).overlay();
    let env = env(rules);
    let same = call(&mut overlay, &env, &message(CONTRACT), limited(60)).expect("runs");
    assert_eq!(same, free);
    let stopped = call(&mut overlay, &env, &message(CONTRACT), limited(59));
    assert_eq!(stopped, Err(Error::DeadlineExceeded));
    // Too little gas forwarded is the caller's own doing and an ordinary failure.
    let poor = Message { gas: 21_059, ..message(precompile(2)) };
    let outcome = call(&mut overlay, &env, &poor, limited(60)).expect("runs");
    assert_eq!(halt(&outcome), "out of gas");
}
