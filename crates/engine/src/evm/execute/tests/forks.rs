//! The rules of every fork, and the block environment visible to code.

use super::*;

/// The fork of each rule set that introduces each opcode, from the specifications.
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
        ("SLOTNUM", Asm::default().op(op::SLOTNUM), "", ""),
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

/// Gas of the code, excluding the intrinsic 21,000 and the push of its operand.
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
        let env = env_with(rules, &crate::evm::env::BlockFields { base_fee: 7, ..fields() });
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
