//! Compares sealed blocks with roots and hashes computed one by one.

use alloy_primitives::{Address, U256, keccak256};
use alloy_trie::{EMPTY_ROOT_HASH, root::ordered_trie_root_encoded};
use revm::bytecode::opcode as op;

use super::*;
use crate::{
    codec::receipt::{Receipt, logs_bloom, receipts_root},
    deadline::Limits,
    evm::overlay::Override,
    testing::{Asm, ETHER, MemoryState, env, ethereum},
};

const SENDER: Address = Address::repeat_byte(0x11);
const LOGGER: Address = Address::repeat_byte(0xc0);
const REVERTER: Address = Address::repeat_byte(0xc1);
const DYNAMIC_FEE: CallView = CallView { tx_type: 2, nonce: None, lowered: false };

fn state() -> MemoryState {
    let log = Asm::default().push(0xaa_u64).push(0xbb_u64).push(32_u64).push(0_u64).op(op::LOG2);
    let revert = Asm::default().push(0_u64).push(0_u64).op(op::REVERT);
    let people = MemoryState::default().fund(SENDER, 100 * ETHER).nonce(SENDER, 7);
    people.contract(LOGGER, log).contract(REVERTER, revert)
}

/// The receipts as in a block of transactions.
fn receipts(body: &Body) -> Vec<Receipt> {
    let mut cumulative_gas_used = 0;
    let receipt = |call: &Call| {
        cumulative_gas_used += call.outcome.gas_used;
        Receipt {
            tx_type: call.tx_type,
            outcome: ReceiptOutcome::Status(call.outcome.is_success()),
            cumulative_gas_used,
            logs: call.outcome.logs.clone(),
            deposit_nonce: None,
            deposit_receipt_version: None,
        }
    };
    body.calls.iter().map(receipt).collect()
}

fn message(to: Address, value: u64) -> Arc<Message> {
    let value = U256::from(value);
    Arc::new(Message { from: SENDER, to: Some(to), value, gas: 100_000, ..Message::default() })
}

/// A block of `times` calls to each of three kinds of accounts.
fn filled(times: usize) -> Body {
    let (mut overlay, env, mut body) =
        (state().overlay(), env(ethereum("Prague")), Body::default());
    for _ in 0..times {
        for to in [LOGGER, REVERTER, Address::ZERO] {
            let call = message(to, 1);
            body.run(&mut overlay, &env, &call, DYNAMIC_FEE, true, Options::default())
                .expect("runs");
        }
    }
    body
}

#[test]
fn a_sealed_block_commits_to_its_calls() {
    for times in [1, 5, 60] {
        let body = filled(times);
        let (receipts, gas_used) = (receipts(&body), body.gas_used());
        let sealed = body.seal(Fields::default(), None).expect("a block");
        let raws: Vec<_> = sealed.block.transactions.clone();
        let header = &sealed.block.header;
        assert_eq!(header.transactions_root, ordered_trie_root_encoded(&raws));
        assert_eq!(header.receipts_root, receipts_root(&receipts));
        assert_eq!(header.logs_bloom, logs_bloom(&receipts));
        assert_eq!(header.gas_used, gas_used);
        assert_eq!(sealed.hashes, raws.iter().map(keccak256).collect::<Vec<_>>());
        assert_eq!(sealed.block.size, sealed.block.encode().len());
    }
}

#[test]
fn transactions_are_those_that_were_encoded() {
    let sealed = filled(2).seal(Fields::default(), None).expect("a block");
    let transactions = sealed.transactions().expect("transactions");
    let raws: Vec<_> = transactions.iter().map(|each| each.raw.clone()).collect();
    assert_eq!(raws, sealed.block.transactions);
    assert_eq!(transactions.iter().map(|each| each.hash).collect::<Vec<_>>(), sealed.hashes);
    // A missing nonce is taken from the state, where it increases.
    let nonces: Vec<_> = transactions.iter().map(|each| each.fields().nonce()).collect();
    assert_eq!(nonces, [7, 8, 9, 10, 11, 12]);
}

#[test]
fn logs_are_counted_through_the_block_those_included_that_were_dropped() {
    let sealed = filled(2).seal(Fields::default(), None).expect("a block");
    let indices = |outcome: &Arc<Outcome>| {
        let collected = outcome.collected_logs().expect("collected");
        collected.map(|(index, _)| index).collect::<Vec<_>>()
    };
    let found: Vec<_> = sealed.outcomes().map(indices).collect();
    // A transfer and a log, a reverted transfer, a transfer.
    assert_eq!(found, [vec![0, 1], vec![], vec![3], vec![4, 5], vec![], vec![7]]);
}

#[test]
fn a_call_that_cannot_begin_leaves_the_block_as_it_was() {
    let (mut overlay, env, mut body) =
        (state().overlay(), env(ethereum("Prague")), Body::default());
    let poor = Arc::new(Message { from: Address::ZERO, ..(*message(LOGGER, 1)).clone() });
    let run = body.run(&mut overlay, &env, &poor, DYNAMIC_FEE, false, Options::default());
    assert!(run.is_err());
    assert_eq!((body.len(), body.gas_used()), (0, 0));
}

#[test]
fn before_byzantium_receipts_hold_roots() {
    let mut body = filled(1);
    body.set_post_state(B256::repeat_byte(9));
    let mut receipts = receipts(&body);
    let with_status = receipts_root(&receipts);
    receipts[2].outcome = ReceiptOutcome::PostState(B256::repeat_byte(9));
    let with_root = receipts_root(&receipts);
    assert_ne!(with_root, with_status);
    let sealed = body.seal(Fields::default(), None).expect("a block");
    assert_eq!(sealed.block.header.receipts_root, with_root);
}

#[test]
fn an_empty_body_has_empty_roots() {
    let block = Body::default().seal(Fields::default(), None).expect("a block").block;
    assert_eq!(block.header.transactions_root, EMPTY_ROOT_HASH);
    assert_eq!(block.header.receipts_root, EMPTY_ROOT_HASH);
    assert_eq!(block.header.logs_bloom, Bloom::ZERO);
}

fn run_plainly(calls: &[PlainCall], block: u64, request: u64) -> (CallsRun, Body) {
    let (mut overlay, env, mut body) =
        (state().overlay(), env(ethereum("Prague")), Body::default());
    let budget = CallsBudget { block, request, until: None };
    let ran = body
        .run_plain(&mut overlay, &env, calls, 2, budget, false, Options::default)
        .expect("an end");
    (ran, body)
}

fn plain(to: Address, gas: Option<u64>) -> PlainCall {
    PlainCall { message: (*message(to, 1)).clone(), gas }
}

#[test]
fn plain_calls_get_what_they_ask_for_or_all_that_is_left() {
    let calls = [plain(Address::ZERO, None), plain(LOGGER, Some(70_000)), plain(LOGGER, None)];
    let (ran, body) = run_plainly(&calls, 200_000, 150_000);
    let used: Vec<_> = body.calls.iter().map(|call| call.outcome.gas_used).collect();
    assert_eq!(ran, CallsRun { calls: 3, gas_used: used.iter().sum() });
    let given: Vec<_> = body.calls.iter().map(|call| (call.message.gas, call.lowered)).collect();
    let last = 150_000 - used[0] - used[1];
    assert_eq!(given, [(150_000, true), (70_000, false), (last, true)]);
}

#[test]
fn plain_calls_end_where_something_has_to_be_decided() {
    let good = plain(LOGGER, Some(50_000));
    let mut poor = good.clone();
    poor.message.from = Address::ZERO;
    for bad in [poor, plain(LOGGER, Some(20_999)), plain(LOGGER, Some(200_000))] {
        let (ran, body) = run_plainly(&[good.clone(), bad, good.clone()], 200_000, 200_000);
        assert_eq!((ran.calls, ran.gas_used, body.len()), (1, body.gas_used(), 1));
    }
}

#[test]
fn a_plain_call_that_takes_long_is_stopped_and_leaves_nothing() {
    let (mut overlay, env) = (state().overlay(), env(ethereum("Prague")));
    let budget = CallsBudget { block: 1_000_000, request: 1_000_000, until: None };
    let looping = Asm::default().op(op::JUMPDEST).push(0_u64).op(op::JUMP);
    overlay
        .apply(LOGGER, &Override { code: Some(looping.into()), ..Override::default() })
        .expect("an override");
    let late = || Options {
        limits: Limits { deadline: Some(Instant::now()), ..Limits::default() },
        ..Options::default()
    };
    let calls = [plain(Address::ZERO, Some(21_000)), plain(LOGGER, None)];
    let mut body = Body::default();
    let ran = body.run_plain(&mut overlay, &env, &calls, 2, budget, false, late).expect("an end");
    assert_eq!((ran, body.len()), (CallsRun { calls: 1, gas_used: 21_000 }, 1));
}

#[test]
fn plain_calls_end_when_their_time_is_over_but_never_before_the_first() {
    let (mut overlay, env, mut body) =
        (state().overlay(), env(ethereum("Prague")), Body::default());
    let budget = CallsBudget { block: 1 << 20, request: 1 << 20, until: Some(Instant::now()) };
    let calls = vec![plain(Address::ZERO, Some(21_000)); 3];
    let ran = body.run_plain(&mut overlay, &env, &calls, 2, budget, false, Options::default);
    assert_eq!(ran, Ok(CallsRun { calls: 1, gas_used: 21_000 }));
}
