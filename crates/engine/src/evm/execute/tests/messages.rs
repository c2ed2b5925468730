//! Outcomes, rejections and effects of messages.

use super::*;

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
    let env = env_with(rules, &crate::evm::env::BlockFields { base_fee: 10, ..fields() });
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
        let env = env_with(rules, &crate::evm::env::BlockFields { base_fee: 10, ..fields() });
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
    let answer = Bytes::from(Asm::default().push(42u64).return_top());
    let mut largest = vec![op::JUMPDEST; 24_576 - answer.len()];
    largest.extend(&answer);
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
        let env = env_with(rules, &crate::evm::env::BlockFields { base_fee: 10, ..fields() });
        let mut overlay = state(code.clone()).overlay();
        let none =
            system_call(&mut overlay, &env, addr(0x44), Bytes::new(), Limits::default(), None);
        assert_eq!(none, Ok(None));
        let outcome =
            system_call(&mut overlay, &env, CONTRACT, Bytes::new(), Limits::default(), None)
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

/// Calls on Optimism use the Ethereum handler, because the difference is not observable.
#[test]
fn a_call_and_a_paid_run_on_optimism_end_alike() {
    let programs = [
        Asm::default().store(0, 0).store(1, 1).op(op::GAS).return_top(),
        Asm::default().push_address(SENDER).op(op::BALANCE).return_top(),
        Asm::default().op(op::GASPRICE).op(op::BASEFEE).op(op::SUB).return_top(),
        Asm::default().op(op::COINBASE).op(op::BALANCE).op(op::GAS).return_top(),
        Asm::default().call(precompile(0x100), 0).op(op::GAS).return_top(),
        Asm::default().op(op::BLOBBASEFEE).return_top(),
        Asm::default().push(0u64).push(0u64).op(op::LOG0).op(op::INVALID),
        Asm::default().push(3u64).push(0u64).op(op::REVERT),
    ];
    for fork in OPTIMISM_FORKS {
        let block = crate::evm::env::BlockFields { base_fee: 7, ..fields() };
        let env = env_with(optimism(fork), &block);
        let paid = Message { fees: Fees::Legacy { gas_price: 9 }, ..message(CONTRACT) };
        for program in &programs {
            let state = state(program.clone()).slot(CONTRACT, 0, 1);
            let called = call(&mut state.overlay(), &env, &paid, Options::default());
            let run = run(&mut state.overlay(), &env, &paid, Options::default());
            assert_eq!(called.expect("runs"), run.expect("runs"), "{fork}");
        }
    }
}
