//! Runs that are stopped.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::state::{AccountState, StateReader};

fn soon() -> Options {
    let deadline = Some(Instant::now() + Duration::from_millis(20));
    Options { limits: Limits { deadline, ..Limits::default() }, ..Options::default() }
}

/// Programs that would run for minutes.
fn endless() -> Vec<(&'static str, MemoryState)> {
    let endless = Asm::default().op(op::JUMPDEST).push(0u64).op(op::JUMP);
    let endless_if = Asm::default().op(op::JUMPDEST).push(1u64).push(0u64).op(op::JUMPI);
    let nested = Asm::default().call(addr(0xee), 0);
    let by = |code: u8, operands: usize| {
        // Two calls of itself in every frame: the depth limit alone does not end it.
        let mut asm = Asm::default();
        for _ in 0..2 {
            for _ in 0..operands {
                asm = asm.push(0u64);
            }
            asm = asm.push_address(CONTRACT).op(op::GAS).op(code).op(op::POP);
        }
        asm
    };
    // Init code that creates itself twice.
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
            // With a price, so that `run` uses the Optimism handler on Optimism.
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

/// Code without jumps, at most 20 kB, that takes much longer than its length suggests.
fn heavy() -> Vec<(&'static str, Asm)> {
    let times = |count: usize, part: &dyn Fn(Asm) -> Asm| {
        (0..count).fold(Asm::default(), |asm, _| part(asm))
    };
    let ranged = |code: u8| move |asm: Asm| asm.push(1u64 << 20).push(0u64).push(0u64).op(code);
    let hash = |asm: Asm| asm.push(1u64 << 20).push(0u64).op(op::KECCAK256).op(op::POP);
    let power = |asm: Asm| asm.push(U256::MAX).push(3u64).op(op::EXP).op(op::POP);
    let modular =
        |asm: Asm| asm.push(U256::MAX).push(U256::MAX).push(U256::MAX).op(op::MULMOD).op(op::POP);
    let log = |asm: Asm| asm.push(1u64 << 20).push(0u64).op(op::LOG0);
    let growth = |asm: Asm| asm.push(1u64).push(1u64 << 26).op(op::MSTORE);
    vec![
        ("KECCAK256", times(400, &hash)),
        ("CALLDATACOPY", times(1_000, &ranged(op::CALLDATACOPY))),
        ("CODECOPY", times(1_000, &ranged(op::CODECOPY))),
        ("MCOPY", times(1_000, &ranged(op::MCOPY))),
        ("LOG0", times(400, &log)),
        ("EXP", times(500, &power)),
        ("MULMOD", times(200, &modular)),
        ("MSTORE", times(1, &growth)),
        ("BALANCE", accounts(op::BALANCE)),
        ("EXTCODESIZE", accounts(op::EXTCODESIZE)),
        ("EXTCODEHASH", accounts(op::EXTCODEHASH)),
        ("SLOAD", accounts(op::SLOAD)),
    ]
}

/// Accesses a different account or slot each time.
fn accounts(code: u8) -> Asm {
    let cold = |asm: Asm, at: u64| asm.push(0x1000_0000 + at).op(code).op(op::POP);
    (0..2_000).fold(Asm::default(), cold)
}

/// A state that cancels the run when it reads `MARKED`.
struct Cancelling {
    state: MemoryState,
    cancel: Arc<AtomicBool>,
}

const MARKED: u8 = 0xca;

impl StateReader for Cancelling {
    fn account(&self, address: &Address) -> Result<Option<AccountState>> {
        if *address == addr(MARKED) {
            self.cancel.store(true, Ordering::Relaxed);
        }
        self.state.account(address)
    }

    fn storage(&self, address: &Address, generation: u64, slot: &U256) -> Result<U256> {
        self.state.storage(address, generation, slot)
    }

    fn code(&self, hash: &B256) -> Result<Bytes> {
        self.state.code(hash)
    }

    fn block_hash(&self, number: u64) -> Result<B256> {
        self.state.block_hash(number)
    }
}

#[test]
fn code_without_jumps_is_stopped_too() {
    let message = Message { gas: 1 << 50, ..message(CONTRACT) };
    for (what, code) in heavy() {
        let cancel = Arc::new(AtomicBool::new(false));
        let mark = Asm::default().push_address(addr(MARKED)).op(op::BALANCE).op(op::POP);
        let state = Cancelling { state: state(mark.then(&code)), cancel: cancel.clone() };
        let limits = Limits { cancel: Some(cancel), ..Limits::default() };
        let options = Options { limits, ..Options::default() };
        let mut overlay = Overlay::new(Box::new(state));
        let result = call(&mut overlay, &env(ethereum("Cancun")), &message, options);
        assert_eq!(result, Err(Error::DeadlineExceeded), "{what}");
    }
}

#[test]
fn a_run_in_place_ends_before_a_step_that_takes_long() {
    let in_place = || Limits { step: Some(Duration::from_micros(100)), ..Limits::default() };
    let run = |code: Asm, limits: Limits, gas: u64| {
        let options = Options { limits, ..Options::default() };
        let message = Message { gas, ..message(CONTRACT) };
        call(&mut state(code).overlay(), &env(ethereum("Prague")), &message, options)
    };
    let steps: [fn(u64) -> Asm; 3] = [
        |bytes| Asm::default().push(bytes).push(0u64).op(op::KECCAK256),
        |bytes| Asm::default().push(bytes).push(0u64).push(0u64).op(op::CODECOPY),
        |bytes| Asm::default().push(1u64).push(bytes).op(op::MSTORE),
    ];
    for step in steps {
        assert!(run(step(4096), in_place(), GAS).is_ok());
        assert_eq!(run(step(4 << 20), in_place(), 1 << 40), Err(Error::DeadlineExceeded));
        assert!(run(step(4 << 20), Limits::default(), 1 << 40).is_ok());
        // Without enough gas the step would not be executed.
        let poor = run(step(1 << 40), in_place(), 23_000).expect("runs");
        assert_eq!(halt(&poor), "out of gas");
    }
    let long = (0..100_000).fold(Asm::default(), |asm, _| asm.op(op::JUMPDEST));
    assert_eq!(run(long, in_place(), 1 << 40), Err(Error::DeadlineExceeded));
}

#[test]
fn a_run_in_place_does_not_begin_with_a_step_that_takes_long() {
    let in_place = || {
        let limits = Limits { step: Some(Duration::from_micros(100)), ..Limits::default() };
        Options { limits, ..Options::default() }
    };
    let authorization =
        alloy_eips::eip7702::Authorization { chain_id: U256::ZERO, address: CONTRACT, nonce: 0 };
    let signed = authorization.into_signed(alloy_primitives::Signature::test_signature());
    let item = alloy_eips::eip2930::AccessListItem {
        address: CONTRACT,
        storage_keys: vec![B256::ZERO; 1_000],
    };
    let plain = || Message { gas: 1 << 40, ..message(CONTRACT) };
    let long = [
        Message { data: vec![1; 200_000].into(), ..plain() },
        Message { authorization_list: vec![signed; 2], ..plain() },
        Message { access_list: vec![item].into(), ..plain() },
        Message { to: None, data: vec![0; 20_000].into(), ..plain() },
    ];
    let env = env(ethereum("Prague"));
    let mut overlay = state(Asm::default()).overlay();
    assert!(call(&mut overlay, &env, &plain(), in_place()).is_ok());
    for message in long {
        let stopped = call(&mut overlay, &env, &message, in_place());
        assert_eq!(stopped, Err(Error::DeadlineExceeded), "{message:?}");
        assert_eq!(run(&mut overlay, &env, &message, in_place()), Err(Error::DeadlineExceeded));
        assert!(call(&mut overlay, &env, &message, Options::default()).is_ok());
    }
}

#[test]
fn a_precompile_beyond_the_limit_stops_the_run_and_others_cost_what_they_cost() {
    let rules = ethereum("Prague");
    let limited = |nanoseconds| {
        let limits = Limits { step: Some(Duration::from_nanos(nanoseconds)), ..Limits::default() };
        Options { limits, ..Options::default() }
    };
    // SHA-256 of 64 kB costs 24,636 gas, at 15 ns per gas.
    let code = Asm::default().op(op::GAS).return_top();
    let free = call_code(rules, code.clone());
    let mut overlay = state(code).overlay();
    let env = env(rules);
    let same = call(&mut overlay, &env, &message(CONTRACT), limited(100_000)).expect("runs");
    assert_eq!(same, free);
    let data: alloy_primitives::Bytes = vec![1; 1 << 16].into();
    let hashed = Message { data, gas: 10_000_000, ..message(precompile(2)) };
    let cost = 24_636 * 15;
    assert!(call(&mut overlay, &env, &hashed, limited(cost)).is_ok());
    let stopped = call(&mut overlay, &env, &hashed, limited(cost - 1));
    assert_eq!(stopped, Err(Error::DeadlineExceeded));
    // Too little forwarded gas is an ordinary failure.
    let poor = Message { gas: 21_059, ..message(precompile(2)) };
    let outcome = call(&mut overlay, &env, &poor, limited(100_000)).expect("runs");
    assert_eq!(halt(&outcome), "out of gas");
}
