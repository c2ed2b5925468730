//! Messages on both rule sets: every fork, the checks, the deadline, precompiles,
//! transfers.

use std::time::{Duration, Instant};

use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use revm::bytecode::opcode as op;

use super::*;
use crate::{
    message::Fees,
    outcome::Status,
    rules::Rules,
    testing::{
        Asm, ETHER, ETHEREUM_FORKS, MemoryState, OPTIMISM_FORKS, addr, env, env_with, ethereum,
        fields, init_code, optimism, precompile,
    },
    transfers::{TRANSFER_ADDRESS, TRANSFER_TOPIC},
};

const SENDER: Address = Address::repeat_byte(0x11);
const CONTRACT: Address = Address::repeat_byte(0xc0);
const GAS: u64 = 5_000_000;

fn message(to: Address) -> Message {
    Message { from: SENDER, to: Some(to), gas: GAS, ..Message::default() }
}

fn state(code: impl Into<Bytes>) -> MemoryState {
    MemoryState::default().fund(SENDER, 100 * ETHER).contract(CONTRACT, code)
}

fn call_code(rules: Rules, code: impl Into<Bytes>) -> Outcome {
    let mut overlay = state(code).overlay();
    call(&mut overlay, &env(rules), &message(CONTRACT), Options::default()).expect("runs")
}

fn halt(outcome: &Outcome) -> &str {
    match &outcome.status {
        Status::Halt(text) => text,
        other => panic!("expected a halt, found {other:?}"),
    }
}

fn word(outcome: &Outcome) -> U256 {
    assert_eq!(outcome.status, Status::Success);
    U256::from_be_slice(&outcome.output)
}

fn all_rules() -> Vec<(&'static str, Rules)> {
    let ethereum = ETHEREUM_FORKS.map(|fork| (fork, ethereum(fork)));
    let optimism = OPTIMISM_FORKS.map(|fork| (fork, optimism(fork)));
    ethereum.into_iter().chain(optimism).collect()
}

/// The forks of both ladders at which each marker begins to run, from the forks'
/// specifications.
#[test]
fn every_fork_of_both_ladders_has_its_own_opcodes() {
    let one = || Asm::default().push(1u64);
    let markers: [(&str, Asm, &str, &str); 9] = [
        (
            "DELEGATECALL",
            one().push(1u64).push(1u64).push(1u64).push(1u64).push(1u64).op(op::DELEGATECALL),
            "Homestead",
            "Bedrock",
        ),
        ("RETURNDATASIZE", Asm::default().op(op::RETURNDATASIZE), "Byzantium", "Bedrock"),
        ("SHL", one().push(1u64).op(op::SHL), "Constantinople", "Bedrock"),
        ("CHAINID", Asm::default().op(op::CHAINID), "Istanbul", "Bedrock"),
        ("BASEFEE", Asm::default().op(op::BASEFEE), "London", "Bedrock"),
        ("PUSH0", Asm::default().op(op::PUSH0), "Shanghai", "Canyon"),
        ("MCOPY", one().push(1u64).push(1u64).op(op::MCOPY), "Cancun", "Ecotone"),
        ("CLZ", one().op(op::CLZ), "Osaka", "Karst"),
        ("SLOTNUM", Asm::default().op(op::SLOTNUM), "Amsterdam", ""),
    ];
    for (name, code, from_ethereum, from_optimism) in markers {
        for (ladder, forks, from) in [
            ("ethereum", &ETHEREUM_FORKS[..], from_ethereum),
            ("optimism", &OPTIMISM_FORKS[..], from_optimism),
        ] {
            let begins = forks.iter().position(|fork| *fork == from).unwrap_or(usize::MAX);
            for (position, fork) in forks.iter().enumerate() {
                let rules = if ladder == "ethereum" { ethereum(fork) } else { optimism(fork) };
                let outcome = call_code(rules, code.clone());
                if position >= begins {
                    assert_eq!(outcome.status, Status::Success, "{name} in {fork}");
                } else {
                    assert_eq!(halt(&outcome), format!("invalid opcode: {name}"), "{fork}");
                    assert_eq!(outcome.gas_used, GAS, "{name} in {fork}");
                }
            }
        }
    }
}

/// Gas of one SLOAD and one BALANCE in every fork: EIP-150, EIP-1884, EIP-2929.
#[test]
fn every_fork_has_its_own_gas_costs() {
    for (fork, rules) in all_rules() {
        let expected = match (rules, fork) {
            (Rules::Optimism(_), _) => (2100, 2600),
            (_, "Frontier" | "Homestead") => (50, 20),
            (_, "Tangerine" | "SpuriousDragon" | "Byzantium" | "Constantinople" | "Petersburg") => {
                (200, 400)
            }
            (_, "Istanbul") => (800, 700),
            _ => (2100, 2600),
        };
        let sload = gas_of(rules, Asm::default().push(0u64).op(op::SLOAD));
        let balance = gas_of(rules, Asm::default().push_address(addr(0x99)).op(op::BALANCE));
        assert_eq!((sload, balance), expected, "{fork}");
    }
}

/// Gas of the code without the 21,000 and the push of its one operand.
fn gas_of(rules: Rules, code: Asm) -> u64 {
    let outcome = call_code(rules, code);
    assert_eq!(outcome.status, Status::Success);
    outcome.gas_used - 21_000 - 3
}

#[test]
fn precompiles_follow_the_fork() {
    let gas_of_p256 = |rules: Rules| {
        let mut overlay = state(Bytes::new()).overlay();
        let message = Message { data: vec![0; 160].into(), ..message(precompile(0x100)) };
        let outcome = call(&mut overlay, &env(rules), &message, Options::default()).expect("runs");
        assert_eq!(outcome.status, Status::Success);
        outcome.max_gas_used
    };
    let data_gas = 21_000 + 160 * 4;
    let floor = 21_000 + 160 * 10;
    assert_eq!(gas_of_p256(optimism("Ecotone")), data_gas);
    assert_eq!(gas_of_p256(optimism("Fjord")), data_gas + 3450);
    assert_eq!(gas_of_p256(optimism("Jovian")), data_gas + 3450);
    assert_eq!(gas_of_p256(optimism("Karst")), data_gas + 6900);
    assert_eq!(gas_of_p256(ethereum("Prague")), floor);
    assert_eq!(gas_of_p256(ethereum("Osaka")), data_gas + 6900);
}

#[test]
fn code_sees_the_block_it_runs_in() {
    for rules in [ethereum("Osaka"), optimism("Jovian")] {
        let values = [
            (op::NUMBER, U256::from(1000)),
            (op::TIMESTAMP, U256::from(2_000_000)),
            (op::COINBASE, U256::from_be_slice(addr(0xcb).as_slice())),
            (op::GASLIMIT, U256::from(30_000_000)),
            (op::CHAINID, U256::from(crate::testing::CHAIN_ID)),
            (op::DIFFICULTY, U256::from_be_bytes([0x77; 32])),
            (op::BASEFEE, U256::from(7)),
            (op::BLOBBASEFEE, U256::from(1)),
            (op::GASPRICE, U256::ZERO),
        ];
        let env = env_with(rules, &crate::env::BlockFields { base_fee: 7, ..fields() });
        for (code, value) in values {
            let mut overlay = state(Asm::default().op(code).return_top()).overlay();
            let options = Options { check_base_fee: false, ..Options::default() };
            let outcome = call(&mut overlay, &env, &message(CONTRACT), options).expect("runs");
            assert_eq!(word(&outcome), value, "{code:#x} under {rules:?}");
        }
    }
}

#[test]
fn blockhash_asks_the_overlay_then_the_state() {
    let hash_of = |number: u64| Asm::default().push(number).op(op::BLOCKHASH).return_top();
    let ask = |number: u64| {
        let mut state = state(hash_of(number));
        state.block_hashes.insert(998, B256::repeat_byte(0x98));
        state.block_hashes.insert(999, B256::repeat_byte(0x99));
        let mut overlay = state.overlay();
        overlay.set_block_hash(999, B256::repeat_byte(0xaa));
        let env = env(ethereum("Osaka"));
        word(&call(&mut overlay, &env, &message(CONTRACT), Options::default()).expect("runs"))
    };
    assert_eq!(ask(998), U256::from_be_bytes([0x98; 32]));
    assert_eq!(ask(999), U256::from_be_bytes([0xaa; 32]));
    assert_eq!(ask(1000), U256::ZERO);
    assert_eq!(ask(1000 - 257), U256::ZERO);
}

#[test]
fn failures_carry_the_texts_clients_know() {
    let rules = ethereum("Osaka");
    let loops = Asm::default().op(op::JUMPDEST).push(0u64).op(op::JUMP);
    let full = Asm::default().ops(&[op::PUSH0; 1025]);
    let texts: [(Asm, &str); 8] = [
        (loops, "out of gas"),
        (Asm::default().push(3u64).op(op::JUMP), "invalid jump destination"),
        (Asm::default().op(op::ADD), "stack underflow"),
        (full, "stack limit reached 1024 (1023)"),
        (Asm::default().op(op::INVALID), "invalid opcode: INVALID"),
        (Asm::default().op(0x0c), "invalid opcode: opcode 0xc not defined"),
        (
            Asm::default().push(1u64).push(0u64).push(0u64).op(op::RETURNDATACOPY),
            "return data out of bounds",
        ),
        (Asm::default().push(1u64).push(U256::MAX).op(op::MSTORE), "gas uint64 overflow"),
    ];
    for (code, text) in texts {
        let outcome = call_code(rules, code);
        assert_eq!(halt(&outcome), text);
        assert_eq!(outcome.gas_used, GAS);
        assert!(outcome.output.is_empty());
    }
}

#[test]
fn a_revert_keeps_its_data_and_gives_gas_back() {
    let code = Asm::default().push(0xabcdu64).push(0u64).op(op::MSTORE);
    let code = code.push(2u64).push(30u64).op(op::REVERT);
    let outcome = call_code(ethereum("Osaka"), code);
    assert_eq!(outcome.status, Status::Revert);
    assert_eq!(&outcome.output[..], [0xab, 0xcd]);
    assert!(outcome.gas_used < 21_100);
}

#[test]
fn refunds_lower_the_gas_used_and_not_the_peak() {
    let mut overlay = state(Asm::default().store(0, 0)).slot(CONTRACT, 0, 1).overlay();
    let env = env(ethereum("Osaka"));
    let outcome = call(&mut overlay, &env, &message(CONTRACT), Options::default()).expect("runs");
    assert_eq!(outcome.max_gas_used, 21_000 + 6 + 5000);
    assert_eq!(outcome.gas_used, outcome.max_gas_used - 4800);
}

#[test]
fn a_call_leaves_no_trace_and_a_run_does() {
    let code = Asm::default().store(0, 7);
    let mut overlay = state(code).overlay();
    let env = env(optimism("Jovian"));
    let message = Message { value: U256::from(5), ..message(CONTRACT) };
    call(&mut overlay, &env, &message, Options::default()).expect("runs");
    assert_eq!(overlay.take(1).expect("takes"), Default::default());

    run(&mut overlay, &env, &message, Options::default()).expect("runs");
    let changes = overlay.take(1).expect("takes");
    assert_eq!(changes.accounts[&CONTRACT].slots[&U256::ZERO], U256::from(7));
    assert_eq!(changes.accounts[&SENDER].after.expect("there").nonce, 1);
    assert_eq!(overlay.storage(&CONTRACT, &U256::ZERO), Ok(U256::from(7)));
}

#[test]
fn what_revm_refuses_is_an_invalid_message_and_changes_nothing() {
    let rules = ethereum("Osaka");
    let env = env_with(rules, &crate::env::BlockFields { base_fee: 10, ..fields() });
    let fees = |max_fee_per_gas| Fees::Dynamic { max_fee_per_gas, max_priority_fee_per_gas: 0 };
    let priced = Message { fees: fees(10), ..message(CONTRACT) };
    let refused: [(&str, Message); 9] = [
        ("value", Message { value: U256::from(200 * ETHER), ..priced.clone() }),
        ("value and gas", Message { value: U256::from(100 * ETHER), ..priced.clone() }),
        ("fee cap", Message { fees: fees(9), ..priced.clone() }),
        ("intrinsic gas", Message { gas: 20_999, ..priced.clone() }),
        ("nonce", Message { nonce: Some(1), ..priced.clone() }),
        ("price", Message { fees: fees(u128::MAX), ..priced.clone() }),
        ("init code", Message { to: None, data: vec![0; 49_153].into(), ..priced.clone() }),
        (
            "blob version",
            Message { blob_hashes: vec![B256::ZERO], max_fee_per_blob_gas: 9, ..priced.clone() },
        ),
        (
            "creating with blobs",
            Message { to: None, blob_hashes: vec![B256::ZERO], ..priced.clone() },
        ),
    ];
    for (what, message) in refused {
        let mut overlay = state(Asm::default().store(0, 1)).overlay();
        let result = run(&mut overlay, &env, &message, Options::default());
        assert!(matches!(result, Err(Error::InvalidMessage(_))), "{what}: {result:?}");
        assert_eq!(overlay.take(1).expect("takes"), Default::default(), "{what}");
        assert!(run(&mut overlay, &env, &priced, Options::default()).is_ok(), "after {what}");
    }
}

#[test]
fn a_message_without_price_needs_the_base_fee_check_off_and_pays_nothing() {
    for rules in [ethereum("Osaka"), optimism("Jovian")] {
        let env = env_with(rules, &crate::env::BlockFields { base_fee: 10, ..fields() });
        let mut overlay = state(Asm::default()).overlay();
        let checked = run(&mut overlay, &env, &message(CONTRACT), Options::default());
        assert!(matches!(checked, Err(Error::InvalidMessage(_))), "{checked:?}");

        let options = Options { check_base_fee: false, ..Options::default() };
        run(&mut overlay, &env, &message(CONTRACT), options).expect("runs");
        let changes = overlay.take(1).expect("takes");
        assert_eq!(changes.accounts.keys().copied().collect::<Vec<_>>(), [SENDER]);
        let sender = changes.accounts[&SENDER].after.expect("there");
        assert_eq!(sender.balance, U256::from(100 * ETHER));
    }
}

#[test]
fn gas_may_exceed_the_caps_of_transactions_and_blocks_unless_asked_otherwise() {
    let env = env(ethereum("Osaka"));
    for gas in [16_777_217, 50_000_000, u64::MAX] {
        let mut overlay = state(Asm::default().op(op::GAS).return_top()).overlay();
        let message = Message { gas, ..message(CONTRACT) };
        let outcome = call(&mut overlay, &env, &message, Options::default()).expect("runs");
        assert_eq!(word(&outcome), U256::from(gas - 21_002), "{gas}");
    }
    let options = Options { check_block_gas_limit: true, ..Options::default() };
    let mut overlay = state(Asm::default()).overlay();
    let message = Message { gas: 30_000_001, ..message(CONTRACT) };
    let result = call(&mut overlay, &env, &message, options);
    assert!(matches!(result, Err(Error::InvalidMessage(_))), "{result:?}");
}

#[test]
fn absurd_gas_does_not_buy_absurd_memory() {
    let env = env(ethereum("Osaka"));
    for offset in [1u64 << 31, 1 << 40, 1 << 62, u64::MAX] {
        let mut overlay = state(Asm::default().push(1u64).push(offset).op(op::MSTORE)).overlay();
        let message = Message { gas: u64::MAX, ..message(CONTRACT) };
        let outcome = call(&mut overlay, &env, &message, Options::default()).expect("runs");
        assert!(matches!(outcome.status, Status::Halt(_)), "{offset}");
    }
}

#[test]
fn a_contract_may_send_and_a_delegation_runs() {
    let env = env(ethereum("Osaka"));
    let mut overlay = state(Asm::default().push(9u64).return_top()).overlay();
    let from_contract = Message { from: CONTRACT, ..message(SENDER) };
    call(&mut overlay, &env, &from_contract, Options::default()).expect("a contract may send");

    let designator = [&[0xef, 0x01, 0x00][..], CONTRACT.as_slice()].concat();
    let delegate = Override { code: Some(designator.into()), ..Override::default() };
    overlay.apply(addr(0x55), &delegate).expect("applies");
    let outcome = call(&mut overlay, &env, &message(addr(0x55)), Options::default());
    assert_eq!(word(&outcome.expect("runs")), U256::from(9));
}

#[test]
fn the_last_nonce_wraps_after_a_call_and_stops_a_creation() {
    for rules in [ethereum("Osaka"), optimism("Jovian")] {
        let env = env(rules);
        let mut overlay = state(Asm::default()).nonce(SENDER, u64::MAX).overlay();
        let outcome =
            run(&mut overlay, &env, &message(CONTRACT), Options::default()).expect("runs");
        assert_eq!(outcome.status, Status::Success);
        assert_eq!(overlay.account(&SENDER).expect("reads").expect("there").nonce, 0);

        let mut overlay = state(Asm::default()).nonce(SENDER, u64::MAX).overlay();
        let create = Message { to: None, ..message(CONTRACT) };
        let outcome = run(&mut overlay, &env, &create, Options::default()).expect("runs");
        assert_eq!(halt(&outcome), "nonce uint64 overflow");
        assert_eq!(outcome.gas_used, 53_000);
        assert_eq!(outcome.created, None);

        let mut overlay = state(Asm::default()).nonce(SENDER, u64::MAX - 1).overlay();
        run(&mut overlay, &env, &message(CONTRACT), Options::default()).expect("runs");
        assert_eq!(overlay.account(&SENDER).expect("reads").expect("there").nonce, u64::MAX);
    }
}

#[test]
fn a_created_contract_has_its_code_from_then_on() {
    let env = env(ethereum("Osaka"));
    let mut largest = vec![op::JUMPDEST; 24_576 - 8];
    largest.extend(Bytes::from(Asm::default().push(42u64).return_top()));
    let largest = largest[largest.len() - 24_576.min(largest.len())..].to_vec();
    assert_eq!(largest.len(), 24_576);
    let mut overlay = state(Asm::default()).overlay();
    let create =
        Message { to: None, gas: 50_000_000, data: init_code(&largest), ..message(CONTRACT) };
    let outcome = run(&mut overlay, &env, &create, Options::default()).expect("runs");
    assert_eq!(outcome.created, Some(SENDER.create(0)));
    assert_eq!(outcome.output, largest);
    let created = outcome.created.expect("created");
    assert_eq!(overlay.code(&created).expect("reads"), largest);
    let outcome = run(&mut overlay, &env, &message(created), Options::default()).expect("runs");
    assert_eq!(word(&outcome), U256::from(42));
    let changes = overlay.take(5).expect("takes");
    assert_eq!(changes.codes[&keccak256(&largest)], largest);

    let too_large = vec![0; 24_577];
    let create = Message { data: init_code(&too_large), ..create };
    let outcome = run(&mut overlay, &env, &create, Options::default()).expect("runs");
    assert_eq!(halt(&outcome), "max code size exceeded");
}

#[test]
fn megabytes_of_data_arrive_whole() {
    let code = Asm::default().op(op::CALLDATASIZE).push(0u64).push(0u64).op(op::CALLDATACOPY);
    let code = code.op(op::CALLDATASIZE).push(0u64).op(op::KECCAK256).return_top();
    let data: Bytes = (0..4_000_000u32).map(|i| (i % 251) as u8).collect();
    let mut overlay = state(code).overlay();
    let message = Message { gas: 500_000_000, data: data.clone(), ..message(CONTRACT) };
    let env = env(optimism("Jovian"));
    let outcome = call(&mut overlay, &env, &message, Options::default()).expect("runs");
    assert_eq!(outcome.output, keccak256(&data).to_vec());
}

#[test]
fn a_system_call_runs_as_the_system_and_only_where_there_is_code() {
    let code = Asm::default().op(op::CALLER).push(0u64).op(op::SSTORE);
    let code = code.op(op::GAS).push(1u64).op(op::SSTORE);
    for rules in [ethereum("Osaka"), optimism("Jovian")] {
        let env = env_with(rules, &crate::env::BlockFields { base_fee: 10, ..fields() });
        let mut overlay = state(code.clone()).overlay();
        let none = system_call(&mut overlay, &env, addr(0x44), Bytes::new(), Limits::default());
        assert_eq!(none, Ok(None));
        let outcome = system_call(&mut overlay, &env, CONTRACT, Bytes::new(), Limits::default())
            .expect("runs")
            .expect("there is code");
        assert_eq!(outcome.status, Status::Success);
        let changes = overlay.take(1).expect("takes");
        assert_eq!(changes.accounts.keys().copied().collect::<Vec<_>>(), [CONTRACT]);
        let slots = &changes.accounts[&CONTRACT].slots;
        let system = "0xfffffffffffffffffffffffffffffffffffffffe".parse::<Address>().expect("hex");
        assert_eq!(slots[&U256::ZERO], U256::from_be_slice(system.as_slice()));
        assert!(slots[&U256::ONE] > U256::from(29_900_000), "no intrinsic gas is taken");
    }
}

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

/// The gas of BALANCE at a precompile and at the address it is moved to, warm and
/// cold as EIP-2929 has it for the fork's own precompiles only.
#[test]
fn moved_precompiles_answer_elsewhere_and_warm_addresses_stay() {
    let (identity, elsewhere) = (precompile(4), addr(0x99));
    for rules in [ethereum("Osaka"), optimism("Jovian")] {
        let env = env(rules);
        let moved = PrecompileOverrides::new(rules, [], [(identity, elsewhere)]).expect("moves");
        let moved = Options { precompiles: Some(Arc::new(moved)), ..Options::default() };
        for (options, answering) in [
            (Options::default(), identity),
            (moved.clone(), elsewhere),
            (Options::default(), identity),
        ] {
            for (address, gas) in [(identity, 100), (elsewhere, 2600)] {
                let code = Asm::default().push_address(address).op(op::BALANCE);
                let mut overlay = state(code).overlay();
                let outcome = call(&mut overlay, &env, &message(CONTRACT), options.clone());
                assert_eq!(outcome.expect("runs").gas_used - 21_003, gas, "{address}");

                let echo = Message { data: Bytes::from_static(b"echo"), ..message(address) };
                let outcome = call(&mut overlay, &env, &echo, options.clone()).expect("runs");
                let answer = if address == answering { &b"echo"[..] } else { b"" };
                assert_eq!(&outcome.output[..], answer, "{address}");
            }
        }
        // Through an EVM that has never run before, too.
        std::thread::scope(|scope| {
            let fresh = scope.spawn(|| {
                let code = Asm::default().push_address(identity).op(op::BALANCE);
                call(&mut state(code).overlay(), &env, &message(CONTRACT), moved.clone())
            });
            let outcome = fresh.join().expect("no panic").expect("runs");
            assert_eq!(outcome.gas_used - 21_003, 100);
        });
    }
}

#[test]
fn precompile_overrides_are_decided_as_other_clients_decide_them() {
    let rules = ethereum("Osaka");
    let new = |overridden: &[Address], moves: &[(Address, Address)]| {
        PrecompileOverrides::new(rules, overridden.iter().copied(), moves.iter().copied())
    };
    let (two, four, there) = (precompile(2), precompile(4), addr(0x99));
    assert_eq!(
        new(&[], &[(addr(9), there), (addr(8), there)]),
        Err(Error::NotAPrecompile(addr(8)))
    );
    assert!(new(&[addr(7)], &[]).expect("valid").is_empty());

    let echo = |overrides: PrecompileOverrides, to: Address| {
        let options = Options { precompiles: Some(Arc::new(overrides)), ..Options::default() };
        let message = Message { data: Bytes::from_static(b"echo"), ..message(to) };
        call(&mut state(Bytes::new()).overlay(), &env(rules), &message, options)
            .expect("runs")
            .output
    };
    // The higher source wins, in whatever order they come.
    assert_eq!(&echo(new(&[], &[(four, there), (two, there)]).expect("valid"), there)[..], b"echo");
    assert_eq!(&echo(new(&[four], &[]).expect("valid"), four)[..], b"");
    // The place of another precompile can be taken.
    assert_eq!(&echo(new(&[], &[(four, two)]).expect("valid"), two)[..], b"echo");
}

#[test]
fn code_put_in_place_of_a_precompile_runs() {
    let rules = ethereum("Osaka");
    let mut overlay = state(Bytes::new()).overlay();
    let code = Some(Asm::default().push(42u64).return_top().into());
    overlay.apply(precompile(4), &Override { code, ..Override::default() }).expect("applies");
    let off = PrecompileOverrides::new(rules, [precompile(4)], []).expect("valid");
    let options = Options { precompiles: Some(Arc::new(off)), ..Options::default() };
    let outcome = call(&mut overlay, &env(rules), &message(precompile(4)), options);
    assert_eq!(word(&outcome.expect("runs")), U256::from(42));
}

mod transfers {
    use super::*;

    fn trace(state: &MemoryState, fork: &str, message: &Message, next_index: u64) -> Outcome {
        let collect = Some(Collect { transfers: true, next_index });
        let options = Options { collect, ..Options::default() };
        run(&mut state.overlay(), &env(ethereum(fork)), message, options).expect("runs")
    }

    /// Index, and (from, to, value) of a transfer or `None` for an ordinary log.
    type Seen = (u64, Option<(Address, Address, u64)>);

    fn seen(outcome: &Outcome) -> Vec<Seen> {
        let collected = outcome.collected.as_ref().expect("collected");
        let seen = collected.logs.iter().map(|(index, log)| {
            let topics = log.topics();
            let transfer = (log.address == TRANSFER_ADDRESS).then(|| {
                assert_eq!(topics[0], TRANSFER_TOPIC);
                let value = U256::from_be_slice(&log.data.data).to::<u64>();
                (Address::from_word(topics[1]), Address::from_word(topics[2]), value)
            });
            (*index, transfer)
        });
        seen.collect()
    }

    fn log() -> Asm {
        Asm::default().push(0u64).push(0u64).op(op::LOG0)
    }

    fn log_in(asm: Asm) -> Asm {
        asm.push(0u64).push(0u64).op(op::LOG0)
    }

    #[test]
    fn indices_count_lost_logs_and_never_go_back() {
        // Transfer 0, log 1, a call with value 2 and its log 3, a call that logs 4 and 5
        // and reverts, log 6.
        let reverts = log_in(log()).push(0u64).push(0u64).op(op::REVERT);
        let code = log().call(addr(0xaa), 3).op(op::POP).call(addr(0xbb), 0).op(op::POP);
        let state = state(log_in(code)).contract(addr(0xaa), log()).contract(addr(0xbb), reverts);
        let message = Message { value: U256::from(9), ..message(CONTRACT) };
        let outcome = trace(&state, "Cancun", &message, 0);
        let expected = [
            (0, Some((SENDER, CONTRACT, 9))),
            (1, None),
            (2, Some((CONTRACT, addr(0xaa), 3))),
            (3, None),
            (6, None),
        ];
        assert_eq!(seen(&outcome), expected);
        assert_eq!(outcome.collected.expect("collected").next_index, 7);
        assert_eq!(outcome.logs.len(), 3, "receipts have no transfers");
    }

    #[test]
    fn a_failed_run_loses_its_logs_and_keeps_their_numbers() {
        for end in
            [Asm::default().op(op::INVALID), Asm::default().push(0u64).push(0u64).op(op::REVERT)]
        {
            let code = log_in(log()).ops(&Bytes::from(end));
            let message = Message { value: U256::from(9), ..message(CONTRACT) };
            let outcome = trace(&state(code), "Cancun", &message, 10);
            assert_eq!(seen(&outcome), []);
            assert_eq!(outcome.collected.expect("collected").next_index, 13);
        }
    }

    #[test]
    fn without_transfers_the_same_indices_go_to_ordinary_logs() {
        let reverts = log().push(0u64).push(0u64).op(op::REVERT);
        let code = log().call(addr(0xbb), 0).op(op::POP);
        let state = state(log_in(code)).contract(addr(0xbb), reverts);
        let message = Message { value: U256::from(9), ..message(CONTRACT) };
        let collect = Some(Collect { transfers: false, next_index: 0 });
        let options = Options { collect, ..Options::default() };
        let outcome = run(&mut state.overlay(), &env(ethereum("Cancun")), &message, options);
        assert_eq!(seen(&outcome.expect("runs")), [(0, None), (2, None)]);
    }

    #[test]
    fn selfdestruct_to_self_and_others_is_the_contracts_own_transfer() {
        for fork in ["London", "Cancun"] {
            for beneficiary in [CONTRACT, addr(0xbe), Address::ZERO] {
                let code = Asm::default().push_address(beneficiary).op(op::SELFDESTRUCT);
                let state = state(code).fund(CONTRACT, 3);
                let message = Message { value: U256::from(5), ..message(CONTRACT) };
                let outcome = trace(&state, fork, &message, 0);
                let expected =
                    [(0, Some((SENDER, CONTRACT, 5))), (1, Some((CONTRACT, beneficiary, 8)))];
                assert_eq!(seen(&outcome), expected, "{fork} to {beneficiary}");
            }
        }
    }

    #[test]
    fn creations_move_their_value_and_other_calls_none() {
        let code = Asm::default().push(0u64).push(0u64).push(4u64).op(op::CREATE).op(op::POP);
        let mut asm = code;
        for (code, operands) in [(op::CALLCODE, 5), (op::DELEGATECALL, 4), (op::STATICCALL, 4)] {
            for operand in 0..operands {
                // The last operand of CALLCODE is the value.
                asm = asm.push(if operand == 4 { 2u64 } else { 0 });
            }
            asm = asm.push_address(addr(0xaa)).op(op::GAS).op(code).op(op::POP);
        }
        // To a precompile, and more than there is.
        let asm = asm.call(precompile(4), 1).op(op::POP).call(addr(0xaa), 1000).op(op::POP);
        let state = state(asm).fund(CONTRACT, 10);
        let outcome = trace(&state, "Cancun", &message(CONTRACT), 0);
        let created = CONTRACT.create(1);
        let expected = [(0, Some((CONTRACT, created, 4))), (1, Some((CONTRACT, precompile(4), 1)))];
        assert_eq!(seen(&outcome), expected);
        assert_eq!(outcome.collected.expect("collected").next_index, 3, "the last was dropped");

        let create = Message { to: None, value: U256::from(7), ..message(CONTRACT) };
        let outcome = trace(&state, "Cancun", &create, 0);
        assert_eq!(seen(&outcome), [(0, Some((SENDER, SENDER.create(0), 7)))]);
    }
}
