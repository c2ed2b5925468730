//! Ether is neither created nor lost, however a run is paid for.

use super::*;

/// Programs that spend, refund, send, destroy, create and fail.
fn programs() -> Vec<Asm> {
    vec![
        Asm::default(),
        Asm::default().store(0, 0).store(1, 1),
        Asm::default().call(addr(0xaa), 2),
        Asm::default().push_address(addr(0xbb)).op(op::SELFDESTRUCT),
        Asm::default().push(0u64).push(0u64).push(3u64).op(op::CREATE),
        Asm::default().op(op::INVALID),
        Asm::default().store(2, 2).push(0u64).push(0u64).op(op::REVERT),
        Asm::default().call(SEQUENCER_VAULT, 1).call(BASE_FEE_RECIPIENT, 1),
    ]
}

#[derive(Debug, Clone)]
enum Kind {
    Transaction,
    Deposit { mint: u64, gas_limit: u64 },
    Call { priced: bool },
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        Just(Kind::Transaction),
        (0..100u64, prop_oneof![Just(1_000u64), Just(150_000)])
            .prop_map(|(mint, gas_limit)| Kind::Deposit { mint, gas_limit }),
        any::<bool>().prop_map(|priced| Kind::Call { priced }),
    ]
}

fn start(program: usize) -> MemoryState {
    let state = state(L1 { operator_scalar: 1_000_000, ..RECORDED });
    state.contract(CONTRACT, programs()[program].clone()).fund(CONTRACT, 10).slot(CONTRACT, 0, 9)
}

fn message(nonce: u64, value: u64, priced: bool) -> Message {
    let gas_price = if priced { 77 } else { 0 };
    Message {
        from: SENDER,
        to: Some(CONTRACT),
        value: U256::from(value),
        gas: 20_000_000,
        nonce: Some(nonce),
        fees: Fees::Legacy { gas_price },
        ..Message::default()
    }
}

fn options(priced: bool) -> Options {
    Options { check_base_fee: priced, ..Options::default() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn on_optimism_all_ether_stays_and_only_deposits_add(
        fork in 0..OPTIMISM_FORKS.len(),
        program in 0..programs().len(),
        steps in prop::collection::vec((kind(), 0..20u64), 1..6),
    ) {
        let mut stored = start(program);
        let env = env(optimism(OPTIMISM_FORKS[fork]));
        let mut overlay = stored.overlay();
        let mut progress = Progress::default();
        for (kind, value) in steps {
            let before = stored.supply();
            let nonce = stored.accounts[&SENDER].nonce;
            let mut minted = 0;
            match kind {
                Kind::Transaction => {
                    let tx = TxEip1559 { value: U256::from(value), ..dynamic(nonce) };
                    next(&mut overlay, &env, &signed(sign(tx)), &mut progress).expect("valid");
                }
                Kind::Deposit { mint, gas_limit } => {
                    let value = U256::from(value);
                    let tx = TxDeposit { mint: mint.into(), gas_limit, value, ..plain_deposit() };
                    next(&mut overlay, &env, &deposit(tx), &mut progress).expect("valid");
                    minted = mint;
                }
                Kind::Call { priced } => {
                    let message = message(nonce, value, priced);
                    execute::run(&mut overlay, &env, &message, options(priced)).expect("runs");
                }
            }
            stored = stored.after(&overlay.take(5).expect("takes"));
            prop_assert_eq!(stored.supply(), before + U256::from(minted), "{:?}", kind);
        }
    }

    #[test]
    fn on_ethereum_only_the_base_fee_is_burned(
        program in 0..programs().len(),
        priced in any::<bool>(),
        value in 0..20u64,
        fork in prop_oneof![Just("London"), Just("Cancun"), Just("Osaka")],
    ) {
        let stored = start(program);
        let env = env(ethereum(fork));
        let mut overlay = stored.overlay();
        let tx = TxEip1559 { value: U256::from(value), ..dynamic(0) };
        let executed = next(&mut overlay, &env, &signed(sign(tx)), &mut Progress::default());
        let mut burned = executed.expect("valid").outcome.gas_used * BASE_FEE;
        let message = message(1, value, priced);
        let outcome = execute::run(&mut overlay, &env, &message, options(priced)).expect("runs");
        burned += if priced { outcome.gas_used * BASE_FEE } else { 0 };
        let after = stored.after(&overlay.take(5).expect("takes"));
        prop_assert_eq!(after.supply() + U256::from(burned), stored.supply());
    }
}

#[test]
fn a_priced_message_pays_base_fee_and_tip_and_neither_l1_nor_operator() {
    let mut overlay = start(0).overlay();
    let env = env(optimism("Jovian"));
    let outcome = execute::run(&mut overlay, &env, &message(0, 0, true), options(true));
    assert_eq!(outcome.expect("runs").status, Status::Success);
    assert_eq!(balance(&overlay, BASE_FEE_RECIPIENT), U256::from(21_000 * BASE_FEE));
    assert_eq!(balance(&overlay, SEQUENCER_VAULT), U256::from(21_000 * (77 - BASE_FEE)));
    assert_eq!(overlay.account(&L1_FEE_RECIPIENT), Ok(None));
    assert_eq!(overlay.account(&OPERATOR_FEE_RECIPIENT), Ok(None));
}
