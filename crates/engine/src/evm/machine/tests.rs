//! Compares a reused EVM with a new one: earlier runs must not affect the result.
//!
//! A new thread has no EVMs, so the reference results are computed on one.

use alloy_eips::eip2718::Encodable2718;
use alloy_primitives::{Address, B256, Bytes, U256};
use proptest::prelude::*;
use revm::bytecode::opcode as op;

use super::*;
use crate::{
    codec::transaction::{Envelope, Transaction},
    evm::{
        env::BlockFields,
        execute::{Options, call, run, system_call},
        outcome::Outcome,
        overlay::Override,
        transact::{Progress, transact},
    },
    message::{Fees, Message},
    state::{AccountState, Changes, StateReader},
    testing::{Asm, ETHER, MemoryState, addr, env_with, ethereum, fields, optimism, precompile},
    tracing::run::{Request, Selection, TraceScope, Tracer, call as trace_call},
};

const SENDER: Address = Address::repeat_byte(0x11);
/// Reading the first account fails; reading the second panics.
const BROKEN: Address = Address::repeat_byte(0xf1);
const PANICKING: Address = Address::repeat_byte(0xf2);

/// A state with two accounts that cannot be read.
struct Faulty(MemoryState);

impl StateReader for Faulty {
    fn account(&self, address: &Address) -> Result<Option<AccountState>> {
        match *address {
            BROKEN => Err(Error::Store("broken".into())),
            PANICKING => panic!("this account panics on purpose"),
            _ => self.0.account(address),
        }
    }

    fn storage(&self, address: &Address, generation: u64, slot: &U256) -> Result<U256> {
        self.0.storage(address, generation, slot)
    }

    fn code(&self, hash: &B256) -> Result<Bytes> {
        self.0.code(hash)
    }

    fn block_hash(&self, number: u64) -> Result<B256> {
        self.0.block_hash(number)
    }
}

/// Programs for everything an EVM could carry over: warm slots and addresses, transient storage,
/// logs, memory, return data, balances, code, refunds, precompiles, the block.
fn programs() -> Vec<Asm> {
    let gas_of = |asm: Asm| Asm::default().op(op::GAS).ops(&Bytes::from(asm)).op(op::GAS);
    let sload = Asm::default().push(1u64).op(op::SLOAD).op(op::POP);
    let balance = Asm::default().push_address(precompile(4)).op(op::BALANCE).op(op::POP);
    let cold = Asm::default().push_address(addr(0x99)).op(op::BALANCE).op(op::POP);
    let log = Asm::default().op(op::TIMESTAMP).push(32u64).push(0u64).op(op::LOG1);
    vec![
        gas_of(sload).op(op::SUB).return_top(),
        gas_of(balance).op(op::SUB).return_top(),
        gas_of(cold).op(op::SUB).return_top(),
        Asm::default().push(1u64).op(op::TLOAD).push(5u64).push(1u64).op(op::TSTORE).return_top(),
        Asm::default()
            .push(1000u64)
            .op(op::MLOAD)
            .push(1u64)
            .push(1000u64)
            .op(op::MSTORE)
            .return_top(),
        Asm::default().op(op::MSIZE).op(op::RETURNDATASIZE).op(op::ADD).return_top(),
        Asm::default().store(1, 0).store(2, 8).push(1u64).op(op::SLOAD).return_top(),
        log.clone(),
        log.clone().op(op::INVALID),
        log.push(0u64).push(0u64).op(op::REVERT),
        Asm::default().push_address(addr(0xbe)).op(op::SELFDESTRUCT),
        Asm::default().push(0u64).push(0u64).push(1u64).op(op::CREATE).return_top(),
        Asm::default().call(precompile(4), 0).op(op::RETURNDATASIZE).return_top(),
        Asm::default().call(precompile(0x100), 1).op(op::GAS).return_top(),
        Asm::default().call(addr(0x99), 1).op(op::SELFBALANCE).return_top(),
        Asm::default().op(op::BASEFEE).op(op::NUMBER).op(op::ADD).return_top(),
        Asm::default().op(op::CHAINID).op(op::GASLIMIT).op(op::ADD).return_top(),
        Asm::default().push(990u64).op(op::BLOCKHASH).return_top(),
        Asm::default().op(op::GASPRICE).op(op::ORIGIN).op(op::ADD).return_top(),
        Asm::default().op(op::JUMPDEST).push(0u64).op(op::JUMP),
        Asm::default().call(addr(0xc0), 0),
        Asm::default().push_address(BROKEN).op(op::BALANCE),
        Asm::default().call(PANICKING, 0),
        Asm::default().op(op::PUSH0).op(op::CLZ),
        Asm::default().op(op::CALLDATASIZE).push(0u64).push(0u64).op(op::CALLDATACOPY).op(op::STOP),
    ]
}

fn rules() -> Vec<Rules> {
    let ethereum = ["Frontier", "Byzantium", "London", "Cancun", "Prague", "Osaka"].map(ethereum);
    let optimism = ["Bedrock", "Fjord", "Jovian", "Karst"].map(optimism);
    ethereum.into_iter().chain(optimism).collect()
}

#[derive(Debug, Clone)]
enum Work {
    Call,
    Run,
    Trace,
    System,
    Transact,
    Deposit { mint: u128, gas_limit: u64 },
}

#[derive(Debug, Clone)]
struct Job {
    work: Work,
    rules: usize,
    /// Selects one of two states that differ in every value.
    state: bool,
    program: usize,
    /// Use the second block environment.
    other_block: bool,
    priced: bool,
    value: u8,
    wrong_nonce: bool,
    moved: bool,
    overridden: bool,
    collect: bool,
    cancelled: bool,
}

fn job() -> impl Strategy<Value = Job> {
    let work = prop_oneof![
        3 => Just(Work::Call),
        3 => Just(Work::Run),
        2 => Just(Work::Trace),
        1 => Just(Work::System),
        2 => Just(Work::Transact),
        1 => (0..3u128, prop_oneof![Just(1_000u64), Just(200_000)])
            .prop_map(|(mint, gas_limit)| Work::Deposit { mint, gas_limit }),
    ];
    let flags = prop::array::uniform6(any::<bool>());
    (work, 0..rules().len(), 0..programs().len(), 0..6u8, flags, 0..8u8).prop_map(
        |(work, rules, program, value, flags, rare)| {
            let [state, other_block, priced, moved, overridden, collect] = flags;
            let (wrong_nonce, cancelled) = (rare == 0, rare == 1);
            Job {
                work,
                rules,
                state,
                program,
                other_block,
                priced,
                value,
                wrong_nonce,
                moved,
                overridden,
                collect,
                cancelled,
            }
        },
    )
}

impl Job {
    fn overlay(&self) -> Overlay {
        let seed = if self.state { 3 } else { 5 };
        let contract = addr(0xc0);
        let mut state = MemoryState::default()
            .fund(SENDER, ETHER + u128::from(seed))
            .nonce(SENDER, seed)
            .contract(contract, programs()[self.program].clone())
            .fund(contract, u128::from(seed))
            .slot(contract, 1, seed)
            .fund(addr(0x99), u128::from(seed));
        state.block_hashes.insert(990, B256::repeat_byte(seed as u8));
        // L1 fee values, different in the two states.
        let l1 = op_revm::constants::L1_BLOCK_CONTRACT;
        for slot in [1, 5, 6, 7] {
            state = state.slot(l1, slot, 1_000 * seed);
        }
        let scalars = U256::from(seed) << 96 | U256::from(seed) << 64;
        state.slots.insert((l1, 0, U256::from(3)), scalars);
        state.slots.insert((l1, 0, U256::from(8)), scalars);
        let mut overlay = Overlay::new(Box::new(Faulty(state)));
        if self.overridden {
            let slots = Some(vec![(U256::ONE, U256::from(77))]);
            let new =
                Override { state: slots, balance: Some(U256::from(9)), ..Override::default() };
            overlay.apply(contract, &new).expect("applies");
        }
        overlay
    }

    fn env(&self) -> Arc<Env> {
        let fields = match self.other_block {
            false => BlockFields { base_fee: 10, ..fields() },
            true => BlockFields {
                number: 1001,
                base_fee: 3,
                coinbase: addr(0x99),
                gas_limit: 40_000_000,
                prevrandao: Some(B256::ZERO),
                ..fields()
            },
        };
        env_with(rules()[self.rules], &fields)
    }

    fn options(&self, env: &Env) -> Options {
        let moved = PrecompileOverrides::new(env.rules, [], [(precompile(4), addr(0x99))]);
        Options {
            limits: self.limits(),
            precompiles: self.moved.then(|| Arc::new(moved.expect("a precompile"))),
            collect: self.collect.then_some(Collect { transfers: self.priced, next_index: 2 }),
            check_base_fee: self.priced,
            check_block_gas_limit: true,
        }
    }

    fn limits(&self) -> Limits {
        let cancel = self.cancelled.then(|| Arc::new(true.into()));
        Limits { cancel, ..Limits::default() }
    }

    fn message(&self) -> Message {
        let gas_price = if self.priced { 12 } else { 0 };
        Message {
            from: SENDER,
            to: Some(addr(0xc0)),
            gas: 200_000,
            data: vec![1; usize::from(self.value)].into(),
            // The largest value exceeds the sender's balance.
            value: if self.value == 5 { U256::MAX } else { U256::from(self.value) },
            nonce: self.wrong_nonce.then_some(99),
            fees: Fees::Legacy { gas_price },
            ..Message::default()
        }
    }

    fn transaction(&self) -> Transaction {
        let nonce = match (self.wrong_nonce, self.state) {
            (true, _) => 99,
            (false, true) => 3,
            (false, false) => 5,
        };
        let message = self.message();
        let tx = alloy_consensus::TxLegacy {
            chain_id: None,
            nonce,
            gas_price: message.fees.cap(),
            gas_limit: message.gas,
            to: addr(0xc0).into(),
            value: message.value,
            input: message.data,
        };
        let signature = alloy_primitives::Signature::test_signature();
        let signed = alloy_consensus::Signed::new_unhashed(tx, signature);
        let raw = signed.encoded_2718().into();
        let hash = *signed.hash();
        let envelope = Envelope::Signed(signed.into());
        Transaction { envelope, hash, sender: SENDER, raw }
    }

    fn deposit(&self, mint: u128, gas_limit: u64) -> Transaction {
        let deposit = op_alloy_consensus::TxDeposit {
            source_hash: B256::repeat_byte(1),
            from: SENDER,
            to: addr(0xc0).into(),
            mint,
            value: U256::from(self.value),
            gas_limit,
            is_system_transaction: false,
            input: Bytes::new(),
        };
        let envelope = Envelope::Deposit(deposit);
        Transaction { envelope, hash: B256::ZERO, sender: SENDER, raw: Bytes::new() }
    }

    fn work(&self) -> (Result<Option<Outcome>>, Vec<u8>, Changes) {
        let mut text = Vec::new();
        let mut overlay = self.overlay();
        let env = self.env();
        let options = self.options(&env);
        let mut progress = Progress::default();
        let mut execute = |transaction: &Transaction| {
            let mut allowance = self.limits().into();
            transact(&mut overlay, &env, transaction, &mut progress, &mut allowance)
                .map(|executed| Some(executed.outcome))
        };
        let outcome = match self.work {
            Work::Transact => execute(&self.transaction()),
            Work::Deposit { mint, gas_limit } => execute(&self.deposit(mint, gas_limit)),
            Work::Call => call(&mut overlay, &env, &self.message(), options).map(Some),
            Work::Run => run(&mut overlay, &env, &self.message(), options).map(Some),
            Work::Trace => {
                let traced =
                    trace_call(&mut overlay, &env, &self.message(), options, self.request());
                traced.map(|(written, _)| {
                    text = written.into_chunks().flatten().collect();
                    None
                })
            }
            Work::System => {
                system_call(&mut overlay, &env, addr(0xc0), Bytes::new(), self.limits(), None)
            }
        };
        (outcome, text, overlay.take(7).expect("takes"))
    }

    fn request(&self) -> Request {
        Request {
            tracer: Tracer::Calls { only_top: false, with_logs: true },
            scope: TraceScope::All,
            block_hash: None,
            selection: Selection::default(),
            limit: usize::MAX,
            limits: self.limits(),
            cheats: Vec::new(),
            refunds: [].into(),
        }
    }
}

proptest! {
    #[test]
    fn a_reused_evm_carries_nothing_from_one_run_to_the_next(
        jobs in prop::collection::vec(job(), 1..20)
    ) {
        for job in &jobs {
            let reused = job.work();
            let fresh = std::thread::scope(|scope| scope.spawn(|| job.work()).join());
            prop_assert_eq!(reused, fresh.expect("panics inside are caught"), "{:?}", job);
        }
    }
}

fn stocked() -> (usize, usize) {
    (Ethereum::stock().with_borrow(Vec::len), Optimism::stock().with_borrow(Vec::len))
}

/// Runs `program` on a new thread and returns how many EVMs the thread keeps.
fn stock_after(program: Asm, fork: &str, gas: u64, limits: Limits) -> (usize, usize) {
    let mut overlay = Overlay::new(Box::new(Faulty(
        MemoryState::default().fund(SENDER, ETHER).contract(addr(0xc0), program),
    )));
    let env = env_with(ethereum(fork), &fields());
    let message = Message { from: SENDER, to: Some(addr(0xc0)), gas, ..Message::default() };
    std::thread::spawn(move || {
        let options = Options { limits, ..Options::default() };
        let _ = call(&mut overlay, &env, &message, options);
        assert!(overlay.account(&SENDER).expect("the overlay is back").is_some());
        stocked()
    })
    .join()
    .expect("no panic")
}

#[test]
fn an_evm_is_kept_after_ordinary_ends_and_dropped_after_others() {
    let kept = |program| stock_after(program, "Cancun", 100_000, Limits::default()) == (1, 0);
    assert!(kept(Asm::default()));
    assert!(kept(Asm::default().op(op::INVALID)));
    assert!(kept(Asm::default().push(0u64).push(0u64).op(op::REVERT)));
    assert!(!kept(Asm::default().push_address(BROKEN).op(op::BALANCE)));
    assert!(!kept(Asm::default().push_address(PANICKING).op(op::BALANCE)));

    let refused = stock_after(Asm::default(), "Cancun", 20_000, Limits::default());
    assert_eq!(refused, (1, 0));
    let cancelled = Limits { cancel: Some(Arc::new(true.into())), ..Limits::default() };
    let endless = Asm::default().op(op::JUMPDEST).push(0u64).op(op::JUMP);
    assert_eq!(stock_after(endless, "Cancun", 100_000, cancelled), (0, 0));
}

#[test]
fn an_evm_that_has_grown_is_not_kept() {
    let deep = Asm::default().call(addr(0xc0), 0);
    assert_eq!(stock_after(deep.clone(), "Cancun", 25_000, Limits::default()), (1, 0));
    assert_eq!(stock_after(deep, "Cancun", 1 << 40, Limits::default()), (0, 0));
    let wide = Asm::default().push(1u64).push(KEPT_MEMORY as u64).op(op::MSTORE);
    assert_eq!(stock_after(wide, "Cancun", 10_000_000, Limits::default()), (0, 0));
    let long = Asm::default().op(op::JUMPDEST).op(op::GAS).push(0u64).op(op::SSTORE);
    let long = long.push(0u64).op(op::JUMP);
    assert_eq!(stock_after(long, "Cancun", 10_000_000, Limits::default()), (0, 0));
}

#[test]
fn a_thread_keeps_a_few_evms_and_those_used_last() {
    let used = std::thread::spawn(|| {
        for rules in rules() {
            let mut overlay = MemoryState::default().fund(SENDER, ETHER).overlay();
            let env = env_with(rules, &fields());
            let message =
                Message { from: SENDER, to: Some(addr(1)), gas: 50_000, ..Message::default() };
            call(&mut overlay, &env, &message, Options::default()).expect("runs");
        }
        Ethereum::stock().with_borrow(|stock| stock.iter().map(|(rules, _)| *rules).collect())
    });
    let used: Vec<Rules> = used.join().expect("no panic");
    assert_eq!(used, rules()[rules().len() - STOCK..]);
}
