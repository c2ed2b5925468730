//! Compares call frames that are recorded in a short way with frames of a run in which every
//! instruction is observed.

use alloy_primitives::Bytes;
use proptest::prelude::*;
use revm::bytecode::opcode as op;

use super::*;
use crate::{
    codec::transaction::named,
    deadline::Limits,
    error::Error,
    evm::{
        execute::{Options, setup},
        machine::{Ethereum, EthereumInput},
    },
    message::Message,
    testing::{Asm, CHAIN_ID, ETHER, MemoryState, addr, env, ethereum, precompile},
    tracing::{
        run::{PrestateOptions, Request, Selection, TraceScope, Tracer, call, transactions},
        text::{CHUNK, MOST_HELD},
    },
};

const FORKS: [&str; 4] = ["Frontier", "Berlin", "Prague", "Osaka"];

/// The frames, how often the run was executed, and the result of the run.
fn frames_of(code: &Bytes, fork: &str, gas: u64, observed: bool) -> (String, bool, String) {
    let state = MemoryState::default()
        .fund(addr(0x11), ETHER)
        .contract(addr(0xc0), code.clone())
        .contract(addr(0xc1), Asm::default().push(1u64).push(0u64).op(op::REVERT))
        .contract(addr(0xc2), Asm::default().op(op::ADD))
        .slot(addr(0xc0), 1, 7);
    let env = env(ethereum(fork));
    let message = Message { from: addr(0x11), to: Some(addr(0xc0)), gas, ..Message::default() };
    let input = EthereumInput::Transaction(env.transaction(&message).expect("a transaction"));
    let setup = || setup(&env, &message, Options::default());
    let frames = Frames::new(true, 3, env.rules);
    let frames = if observed { frames.explaining() } else { frames };
    let recorder = Recorder::new(Kind::Frames(frames), usize::MAX);
    let (ran, recorder) =
        record::<Ethereum<Recorder>>(&mut state.overlay(), setup, input, recorder);
    let ran = ran.map(|ran| (ran.result, ran.undefined_opcode));
    let Kind::Frames(frames) = recorder.kind else { panic!("other recordings") };
    (format!("{:?}", frames.all), frames.is_explaining(), format!("{ran:?}"))
}

fn compare(code: impl Into<Bytes>, fork: &str, gas: u64) -> bool {
    let code = code.into();
    let (frames, was_repeated, ran) = frames_of(&code, fork, gas, false);
    let observed = frames_of(&code, fork, gas, true);
    assert_eq!((frames, true, ran), observed, "{code} at {fork} with {gas} gas");
    was_repeated
}

#[test]
fn a_run_is_repeated_only_if_an_instruction_failed() {
    let asm = Asm::default;
    let init = asm().push(0u64).push(0u64).push(0u64).op(op::CREATE);
    for program in [
        asm().store(1, 2).push(7u64).return_top(),
        asm().call(addr(0xc1), 0).push(0u64).push(0u64).op(op::LOG0),
        asm().call(precompile(2), 0).call(precompile(8), 0).call(addr(0x99), u64::MAX),
        asm().push_address(addr(0x99)).op(op::SELFDESTRUCT),
        init,
    ] {
        let code = Bytes::from(program);
        assert!(!compare(code.clone(), "Prague", 500_000), "{code}");
    }
    for program in [
        asm().op(op::ADD),
        asm().op(0x0c),
        asm().op(op::INVALID),
        asm().push(0u64).op(op::JUMP),
        asm().op(op::JUMPDEST).push(0u64).op(op::JUMP),
        asm().push(1u64).push(u64::MAX).op(op::MSTORE),
        asm().call(addr(0xc2), 0),
    ] {
        assert!(compare(program, "Prague", 500_000));
    }
}

#[test]
fn written_frames_count_towards_the_bound_of_all_traces() {
    let mut others = Held::default();
    let size = 2 * CHUNK as u64;
    let program = Asm::default().push(size).push(0u64).op(op::RETURN);
    let mut overlay =
        MemoryState::default().fund(addr(0x11), ETHER).contract(addr(0xc0), program).overlay();
    let message =
        Message { from: addr(0x11), to: Some(addr(0xc0)), gas: 1_000_000, ..Message::default() };
    let mut trace = || {
        let request = Request {
            tracer: Tracer::Calls { only_top: true, with_logs: false },
            scope: TraceScope::All,
            block_hash: None,
            selection: Selection::default(),
            limit: usize::MAX,
            limits: Limits::default(),
            cheats: Vec::new(),
            refunds: [].into(),
        };
        call(&mut overlay, &env(ethereum("Prague")), &message, Options::default(), request)
    };
    assert!(trace().is_ok());
    others.grow_to(MOST_HELD - 3 * CHUNK);
    assert_eq!(trace().map(|_| ()), Err(Error::PoolFull(0)));
}

#[test]
fn a_transaction_whose_prestate_exceeds_the_limit_is_refused_although_its_text_is_short() {
    let state = MemoryState::default().fund(addr(0x11), ETHER);
    let message =
        Message { from: addr(0x11), to: Some(addr(0xc0)), gas: 21_000, ..Message::default() };
    let env = env(ethereum("Prague"));
    let transaction = named(&message, CHAIN_ID, 0).expect("a transaction");
    let trace = |limit| {
        let request = Request {
            tracer: Tracer::Prestate(PrestateOptions::default()),
            scope: TraceScope::Only(0),
            block_hash: None,
            selection: Selection::default(),
            limit,
            limits: Limits::default(),
            cheats: Vec::new(),
            refunds: [].into(),
        };
        transactions(&mut state.overlay(), &env, [&transaction], request)
    };
    let length = trace(1000).expect("a trace").0.len();
    assert_eq!(trace(length).map(|(text, _)| text.len()), Err(Error::TraceTooLong(length)));
}

proptest! {
    #[test]
    fn failures_have_the_texts_of_a_run_that_is_observed_throughout(
        code in prop::collection::vec(
            prop_oneof![
                4 => 0x5f..0x64_u8,
                2 => Just(op::DUP1),
                2 => 0xf0..=0xff_u8,
                4 => any::<u8>(),
            ],
            0..60,
        ),
        fork in prop::sample::select(&FORKS[..]),
        gas in prop_oneof![21_000..25_000_u64, 50_000..300_000_u64],
    ) {
        compare(code, fork, gas);
    }
}
