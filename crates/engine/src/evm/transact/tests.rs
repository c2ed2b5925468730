//! Transactions and deposits under consensus rules, and the distribution of all fees.

mod probing;
mod supply;

use alloy_consensus::{EthereumTxEnvelope, Signed, TxEip1559, TxEip4844, TxLegacy};
use alloy_eips::eip2718::Encodable2718;
use alloy_primitives::{Address, B256, Bytes, Signature, TxKind, U256, address};
use op_revm::constants::{
    BASE_FEE_RECIPIENT, L1_BLOCK_CONTRACT, L1_FEE_RECIPIENT, OPERATOR_FEE_RECIPIENT,
};
use proptest::prelude::*;
use revm::bytecode::opcode as op;

use super::*;
use crate::{
    codec::transaction::named,
    evm::{
        env::BlockFields,
        execute::{self, Options},
        outcome::Status,
    },
    message::{Fees, Message},
    state::Changes,
    testing::{
        Asm, CHAIN_ID, ETHER, MemoryState, OPTIMISM_FORKS, addr, env_with, ethereum, fields,
        optimism,
    },
};

const SENDER: Address = Address::repeat_byte(0x11);
const CONTRACT: Address = Address::repeat_byte(0xc0);
/// Sequencer fee vault (op-stack: the coinbase of every block).
const SEQUENCER_VAULT: Address = address!("0x4200000000000000000000000000000000000011");
const BASE_FEE: u64 = 51;

fn signed(envelope: impl Into<EthereumTxEnvelope<TxEip4844>>) -> Transaction {
    let envelope = envelope.into();
    let (hash, raw) = (*envelope.hash(), envelope.encoded_2718().into());
    Transaction { envelope: Envelope::Signed(envelope), hash, sender: SENDER, raw }
}

fn sign<T>(tx: T) -> Signed<T>
where
    T: alloy_consensus::transaction::RlpEcdsaEncodableTx
        + alloy_consensus::SignableTransaction<Signature>,
{
    Signed::new_unhashed(tx, Signature::test_signature())
}

fn dynamic(nonce: u64) -> TxEip1559 {
    TxEip1559 {
        chain_id: CHAIN_ID,
        nonce,
        gas_limit: 200_000,
        max_fee_per_gas: 100,
        max_priority_fee_per_gas: 2,
        to: CONTRACT.into(),
        value: U256::from(5),
        ..TxEip1559::default()
    }
}

fn transfer(nonce: u64) -> Transaction {
    signed(sign(dynamic(nonce)))
}

fn deposit(deposit: TxDeposit) -> Transaction {
    let sender = deposit.from;
    Transaction {
        envelope: Envelope::Deposit(deposit),
        hash: B256::ZERO,
        sender,
        raw: Bytes::new(),
    }
}

fn plain_deposit() -> TxDeposit {
    TxDeposit {
        source_hash: B256::repeat_byte(0x50),
        from: SENDER,
        to: TxKind::Call(CONTRACT),
        mint: 1000,
        value: U256::from(700),
        gas_limit: 100_000,
        is_system_transaction: false,
        input: Bytes::new(),
    }
}

fn env(rules: Rules) -> std::sync::Arc<Env> {
    let coinbase = if rules.is_optimism() { SEQUENCER_VAULT } else { addr(0xcb) };
    env_with(rules, &BlockFields { base_fee: BASE_FEE, coinbase, ..fields() })
}

/// The values of the L1Block contract, in the storage layout of the predeploy.
#[derive(Clone, Copy)]
struct L1 {
    base_fee: u64,
    blob_base_fee: u64,
    base_fee_scalar: u32,
    blob_base_fee_scalar: u32,
    operator_scalar: u32,
    operator_constant: u64,
    footprint_scalar: u16,
}

/// Values of a recorded block (Unichain Sepolia 35535698), with operator fees added.
const RECORDED: L1 = L1 {
    base_fee: 9,
    blob_base_fee: 1,
    base_fee_scalar: 2_000,
    blob_base_fee_scalar: 900_000,
    operator_scalar: 3,
    operator_constant: 11,
    footprint_scalar: 400,
};

fn state(l1: L1) -> MemoryState {
    let scalars = U256::from(l1.base_fee_scalar) << 96 | U256::from(l1.blob_base_fee_scalar) << 64;
    let operator = U256::from(l1.footprint_scalar) << 96
        | U256::from(l1.operator_scalar) << 64
        | U256::from(l1.operator_constant);
    let mut state = MemoryState::default()
        .fund(SENDER, ETHER)
        .contract(L1_BLOCK_CONTRACT, Bytes::from_static(&[op::STOP]))
        .slot(L1_BLOCK_CONTRACT, 1, l1.base_fee)
        .slot(L1_BLOCK_CONTRACT, 5, 188)
        .slot(L1_BLOCK_CONTRACT, 6, 684_000)
        .slot(L1_BLOCK_CONTRACT, 7, l1.blob_base_fee);
    for (slot, word) in [(3u64, scalars), (8, operator)] {
        state.slots.insert((L1_BLOCK_CONTRACT, 0, U256::from(slot)), word);
    }
    state
}

fn balance(overlay: &Overlay, address: Address) -> U256 {
    overlay.account(&address).expect("reads").map_or(U256::ZERO, |account| account.balance)
}

fn next(
    overlay: &mut Overlay,
    env: &Env,
    tx: &Transaction,
    progress: &mut Progress,
) -> Result<Executed> {
    transact(overlay, env, tx, progress, &mut Allowance::default())
}

fn one(state: &MemoryState, rules: Rules, tx: &Transaction) -> (Executed, Overlay) {
    let mut overlay = state.overlay();
    let executed = next(&mut overlay, &env(rules), tx, &mut Progress::default()).expect("valid");
    (executed, overlay)
}

#[test]
fn a_transfer_on_optimism_pays_every_vault_its_share() {
    let (executed, overlay) = one(&state(RECORDED), optimism("Jovian"), &transfer(0));
    assert_eq!(executed.outcome.gas_used, 21_000);
    let fees = executed.optimism.expect("fees");
    // The recorded L1 fee of a transaction of minimum size.
    assert_eq!(fees.l1_fee, U256::from(118));
    assert_eq!(fees.operator_fee, U256::from(21_000 * 3 * 100 + 11));
    assert_eq!(fees.da_footprint, 100 * 400);
    assert_eq!(balance(&overlay, L1_FEE_RECIPIENT), fees.l1_fee);
    assert_eq!(balance(&overlay, OPERATOR_FEE_RECIPIENT), fees.operator_fee);
    assert_eq!(balance(&overlay, BASE_FEE_RECIPIENT), U256::from(21_000 * BASE_FEE));
    assert_eq!(balance(&overlay, SEQUENCER_VAULT), U256::from(21_000 * 2));
    assert_eq!(balance(&overlay, CONTRACT), U256::from(5));
}

#[test]
fn a_sender_that_is_named_may_have_code_where_there_are_no_deposits() {
    let message = Message {
        from: CONTRACT,
        to: Some(addr(7)),
        value: U256::from(5),
        gas: 21_000,
        fees: Fees::Dynamic { max_fee_per_gas: 100, max_priority_fee_per_gas: 2 },
        ..Message::default()
    };
    let tx = named(&message, CHAIN_ID, 1).expect("a transaction");
    let state =
        state(RECORDED).contract(CONTRACT, Bytes::from_static(&[op::STOP])).fund(CONTRACT, ETHER);
    let (executed, overlay) = one(&state, ethereum("Prague"), &tx);
    assert_eq!(executed.outcome.gas_used, 21_000);
    assert_eq!(balance(&overlay, addr(7)), U256::from(5));
    let refused = |rules, tx: &Transaction| {
        next(&mut state.overlay(), &env(rules), tx, &mut Progress::default()).is_err()
    };
    assert!(refused(optimism("Jovian"), &tx));
    assert!(refused(ethereum("Prague"), &Transaction { sender: SENDER, ..tx.clone() }));
    let again = named(&message, CHAIN_ID, 2).expect("a transaction");
    assert!(refused(ethereum("Prague"), &again), "its nonce is not the next");
}

#[test]
fn the_operator_fee_is_priced_by_the_fork() {
    let l1 = L1 { operator_scalar: 300, ..RECORDED };
    let fee = |fork| one(&state(l1), optimism(fork), &transfer(0)).0.optimism.expect("fees");
    assert_eq!(fee("Holocene").operator_fee, U256::ZERO);
    assert_eq!(fee("Isthmus").operator_fee, U256::from(21_000 * 300 / 1_000_000 + 11));
    assert_eq!(fee("Isthmus").da_footprint, 0);
    assert_eq!(fee("Karst").operator_fee, fee("Jovian").operator_fee);
}

/// Bedrock to Delta, from the specification's formula.
#[test]
fn the_first_l1_fees_count_bytes() {
    let tx = transfer(0);
    let zeros = tx.raw.iter().filter(|byte| **byte == 0).count() as u64;
    let others = tx.raw.len() as u64 - zeros;
    for (fork, extra) in [("Bedrock", 68), ("Regolith", 0)] {
        let gas = 4 * zeros + 16 * (others + extra) + 188;
        let fee = one(&state(RECORDED), optimism(fork), &tx).0.optimism.expect("fees").l1_fee;
        assert_eq!(fee, U256::from(gas * 9 * 684_000 / 1_000_000), "{fork}");
    }
}

#[test]
fn fee_values_of_another_state_with_the_same_block_number_are_never_used() {
    let rules = optimism("Jovian");
    let dear = L1 { base_fee: 9_000_000, operator_constant: 12, ..RECORDED };
    for _ in 0..2 {
        let fees = |l1| one(&state(l1), rules, &transfer(0)).0.optimism.expect("fees");
        assert_eq!(fees(RECORDED).l1_fee, U256::from(118));
        assert!(fees(dear).l1_fee > U256::from(1_000_000));
        assert_eq!(fees(dear).operator_fee - fees(RECORDED).operator_fee, U256::from(1));
    }
}

#[test]
fn fee_values_are_those_after_the_attributes_deposit_of_the_block() {
    // The contract stores the base fee from its input.
    let code = Asm::default().push(0u64).op(op::CALLDATALOAD).push(1u64).op(op::SSTORE);
    let state = state(RECORDED).contract(L1_BLOCK_CONTRACT, code);
    let attributes = TxDeposit {
        to: TxKind::Call(L1_BLOCK_CONTRACT),
        mint: 0,
        value: U256::ZERO,
        input: U256::from(9_000).to_be_bytes_vec().into(),
        ..plain_deposit()
    };
    let (env, mut overlay) = (env(optimism("Jovian")), state.overlay());
    let mut progress = Progress::default();
    let executed = next(&mut overlay, &env, &deposit(attributes), &mut progress).expect("valid");
    assert!(executed.outcome.is_success());
    assert_eq!(executed.deposit_nonce, Some(0));
    let executed = next(&mut overlay, &env, &transfer(1), &mut progress).expect("valid");
    let fee = 100_000_000_u64 * (16 * 9_000 * 2_000 + 900_000) / 1_000_000_000_000;
    assert_eq!(executed.optimism.expect("fees").l1_fee, U256::from(fee));
    assert_eq!(progress.transactions, 2);
}

#[test]
fn a_deposit_mints_pays_no_fee_and_needs_no_balance_for_gas() {
    let poor = MemoryState::default().nonce(SENDER, 7);
    let (executed, overlay) = one(&poor, optimism("Jovian"), &deposit(plain_deposit()));
    assert!(executed.outcome.is_success());
    assert_eq!(executed.deposit_nonce, Some(7));
    assert_eq!(executed.optimism, None);
    assert_eq!(executed.outcome.gas_used, 21_000);
    assert_eq!(balance(&overlay, SENDER), U256::from(300));
    assert_eq!(balance(&overlay, CONTRACT), U256::from(700));
    assert_eq!(overlay.account(&SENDER).expect("reads").expect("there").nonce, 8);
}

#[test]
fn a_failed_deposit_keeps_mint_and_nonce_and_nothing_else() {
    let logs_and = |end: Asm| Asm::default().store(1, 1).ops(&Bytes::from(end));
    let halts = logs_and(Asm::default().op(op::INVALID));
    let reverts = logs_and(Asm::default().push(0u64).push(0u64).op(op::REVERT));
    let works = Asm::default().store(1, 1);
    let too_much = TxDeposit { value: U256::from(1001), ..plain_deposit() };
    let too_little_gas = TxDeposit { gas_limit: 20_000, ..plain_deposit() };
    let system = TxDeposit { is_system_transaction: true, ..plain_deposit() };
    let unhashed = TxDeposit { source_hash: B256::ZERO, ..plain_deposit() };
    let cases = [
        ("halt", halts.clone(), plain_deposit(), 100_000),
        ("halt, zero source hash", halts, unhashed, 100_000),
        ("revert", reverts, plain_deposit(), 43_112),
        ("value", works.clone(), too_much, 100_000),
        ("gas", works.clone(), too_little_gas, 20_000),
        ("system transaction", works, system, 100_000),
    ];
    for (what, code, tx, gas_used) in cases {
        let state = MemoryState::default().contract(CONTRACT, code);
        let (executed, mut overlay) = one(&state, optimism("Jovian"), &deposit(tx));
        assert!(!executed.outcome.is_success(), "{what}");
        assert_eq!(executed.outcome.gas_used, gas_used, "{what}");
        assert_eq!(executed.deposit_nonce, Some(0), "{what}");
        let changes = overlay.take(1).expect("takes");
        let sender = changes.accounts[&SENDER].after.expect("there");
        assert_eq!((sender.nonce, sender.balance), (1, U256::from(1000)), "{what}");
        assert_eq!(changes.accounts.len(), 1, "{what}: {changes:?}");
    }
}

#[test]
fn a_deposit_with_a_zero_source_hash_is_a_deposit_all_the_same() {
    let unhashed = TxDeposit { source_hash: B256::ZERO, ..plain_deposit() };
    let state = MemoryState::default();
    let (executed, overlay) = one(&state, optimism("Jovian"), &deposit(unhashed));
    assert!(executed.outcome.is_success());
    assert_eq!(balance(&overlay, SENDER), U256::from(300));
}

#[test]
fn a_deposit_creates_from_the_nonce_before_it() {
    let create = TxDeposit { to: TxKind::Create, ..plain_deposit() };
    let state = MemoryState::default().nonce(SENDER, 4);
    let (executed, overlay) = one(&state, optimism("Jovian"), &deposit(create));
    assert_eq!(executed.outcome.created, Some(SENDER.create(4)));
    assert_eq!(overlay.account(&SENDER).expect("reads").expect("there").nonce, 5);
}

#[test]
fn an_invalid_transaction_is_named_and_leaves_everything_as_it_was() {
    let blob = TxEip4844 {
        chain_id: CHAIN_ID,
        gas_limit: 100_000,
        max_fee_per_gas: 100,
        max_fee_per_blob_gas: 100,
        blob_versioned_hashes: vec![B256::with_last_byte(0); 1],
        ..TxEip4844::default()
    };
    let mut versioned = B256::ZERO;
    versioned[0] = 1;
    let blobs = |count| TxEip4844 { blob_versioned_hashes: vec![versioned; count], ..blob.clone() };
    let legacy =
        TxLegacy { gas_price: 50, gas_limit: 21_000, to: CONTRACT.into(), ..TxLegacy::default() };
    let contract_sends = Transaction { sender: CONTRACT, ..transfer(0) };
    let (eth, op) = (ethereum("Osaka"), optimism("Jovian"));
    let cases = [
        ("nonce too high", eth, transfer(1)),
        ("nonce too low", eth, Transaction { sender: addr(0x12), ..transfer(0) }),
        ("base fee", eth, signed(sign(legacy))),
        ("tip", eth, signed(sign(TxEip1559 { max_priority_fee_per_gas: 101, ..dynamic(0) }))),
        ("balance", eth, signed(sign(TxEip1559 { value: U256::from(2 * ETHER), ..dynamic(0) }))),
        ("chain id", eth, signed(sign(TxEip1559 { chain_id: 1, ..dynamic(0) }))),
        ("sender with code", eth, contract_sends),
        ("intrinsic gas", eth, signed(sign(TxEip1559 { gas_limit: 20_999, ..dynamic(0) }))),
        ("gas cap", eth, signed(sign(TxEip1559 { gas_limit: 16_777_217, ..dynamic(0) }))),
        ("block gas", eth, signed(sign(TxEip1559 { gas_limit: 29_990_000, ..dynamic(0) }))),
        ("blob version", eth, signed(sign(blob.clone()))),
        ("no blobs", eth, signed(sign(blobs(0)))),
        ("seven blobs", eth, signed(sign(blobs(7)))),
        ("type before its fork", ethereum("Berlin"), transfer(0)),
        ("deposit", eth, deposit(plain_deposit())),
        ("blobs on the L2", op, signed(sign(blobs(1)))),
        ("no blobs on the L2", op, signed(sign(blobs(0)))),
        ("nonce on the L2", op, transfer(1)),
        (
            "deposit beyond the block",
            op,
            deposit(TxDeposit { gas_limit: 29_990_000, ..plain_deposit() }),
        ),
        (
            "L1 fee",
            op,
            signed(sign(TxEip1559 { value: U256::from(ETHER - 20_000_000), ..dynamic(0) })),
        ),
    ];
    for (what, rules, tx) in cases {
        let state = state(RECORDED)
            .contract(CONTRACT, Asm::default().store(0, 1))
            .fund(CONTRACT, ETHER)
            .fund(addr(0x12), ETHER)
            .nonce(addr(0x12), 3);
        let mut overlay = state.overlay();
        let before = Progress { transactions: 3, gas_used: 20_000, ..Progress::default() };
        let mut progress = before.clone();
        let result = next(&mut overlay, &env(rules), &tx, &mut progress);
        assert!(
            matches!(result, Err(Error::InvalidTransaction { index: 3, .. })),
            "{what}: {result:?}"
        );
        assert_eq!(progress, before, "{what}");
        assert_eq!(overlay.take(1).expect("takes"), Changes::default(), "{what}");
        if rules != ethereum("Berlin") {
            next(&mut overlay, &env(rules), &transfer(0), &mut progress).expect("valid after it");
        }
    }
}

#[test]
fn a_data_footprint_beyond_the_block_is_invalid_from_jovian_on() {
    let mut full = Progress { da_footprint: 30_000_000 - 40_000 + 1, ..Progress::default() };
    let mut overlay = state(RECORDED).overlay();
    let result = next(&mut overlay, &env(optimism("Jovian")), &transfer(0), &mut full);
    assert!(matches!(result, Err(Error::InvalidTransaction { .. })), "{result:?}");
    full.da_footprint -= 1;
    next(&mut overlay, &env(optimism("Jovian")), &transfer(0), &mut full).expect("fits exactly");
    assert_eq!(full.da_footprint, 30_000_000);
    full.state_changed();
    next(&mut overlay, &env(optimism("Isthmus")), &transfer(1), &mut full).expect("no such rule");
}

#[test]
fn l1_fees_follow_every_change_of_the_l1_block() {
    // The code of L1Block adds its call value to the L1 base fee, and CONTRACT forwards ether.
    let adds = Asm::default().push(1u64).op(op::SLOAD).op(op::CALLVALUE).op(op::ADD);
    let state = state(RECORDED)
        .contract(L1_BLOCK_CONTRACT, adds.push(1u64).op(op::SSTORE))
        .contract(CONTRACT, Asm::default().call(L1_BLOCK_CONTRACT, 1).op(op::POP))
        .fund(CONTRACT, ETHER);
    let to = |to: Address, nonce| signed(sign(TxEip1559 { to: to.into(), ..dynamic(nonce) }));
    let update = TxDeposit { to: TxKind::Call(L1_BLOCK_CONTRACT), ..plain_deposit() };
    // A deposit raises the nonce as well.
    let transactions = [
        to(addr(7), 0),
        to(addr(7), 1),
        deposit(update),
        to(addr(7), 3),
        to(CONTRACT, 4),
        to(addr(7), 5),
        to(addr(7), 6),
    ];
    let env = env(optimism("Jovian"));
    let fees = |is_kept: bool| {
        let (mut overlay, mut progress) = (state.overlay(), Progress::default());
        let fee = |tx| {
            if !is_kept {
                progress.state_changed();
            }
            let executed = next(&mut overlay, &env, tx, &mut progress).expect("valid");
            executed.optimism.map(|fees| fees.l1_fee)
        };
        transactions.iter().map(fee).collect::<Vec<_>>()
    };
    let read_each_time = fees(false);
    assert_eq!(fees(true), read_each_time);
    assert_eq!(read_each_time[0], read_each_time[1]);
    assert!(read_each_time[1] < read_each_time[3], "{read_each_time:?}");
    assert!(read_each_time[4] < read_each_time[5], "{read_each_time:?}");
}

#[test]
fn changes_can_be_taken_after_every_transaction() {
    let rules = ethereum("Homestead");
    let env = env_with(rules, &fields());
    let tx = |nonce| {
        let tx = TxLegacy {
            nonce,
            gas_price: 1,
            gas_limit: 21_000,
            to: CONTRACT.into(),
            ..TxLegacy::default()
        };
        signed(sign(TxLegacy { value: U256::from(1), ..tx }))
    };
    let mut stored = MemoryState::default().fund(SENDER, ETHER);
    let mut overlay = stored.overlay();
    let mut progress = Progress::default();
    for nonce in 0..3 {
        next(&mut overlay, &env, &tx(nonce), &mut progress).expect("valid");
        stored = stored.after(&overlay.take(9).expect("takes"));
        assert_eq!(stored.accounts[&CONTRACT].balance, U256::from(nonce + 1));
        assert_eq!(stored.accounts[&SENDER].nonce, nonce + 1);
    }
    assert_eq!(progress.gas_used, 63_000);
    assert_eq!(stored.supply(), U256::from(ETHER));
}
