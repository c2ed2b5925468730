//! Logs with their indices, and ether transfers as logs.

use super::*;

fn trace(state: &MemoryState, fork: &str, message: &Message, next_index: u64) -> Outcome {
    let collect = Some(Collect { transfers: true, next_index });
    let options = Options { collect, ..Options::default() };
    run(&mut state.overlay(), &env(ethereum(fork)), message, options).expect("runs")
}

/// The index, and (from, to, value) of a transfer or `None` for an ordinary log.
type Seen = (u64, Option<(Address, Address, u64)>);

fn seen(outcome: &Outcome) -> Vec<Seen> {
    let collected = outcome.collected_logs().expect("collected");
    let seen = collected.map(|(index, log)| {
        let topics = log.topics();
        let transfer = (log.address == TRANSFER_ADDRESS).then(|| {
            assert_eq!(topics[0], TRANSFER_TOPIC);
            let value = U256::from_be_slice(&log.data.data).to::<u64>();
            (Address::from_word(topics[1]), Address::from_word(topics[2]), value)
        });
        (index, transfer)
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
    // Transfer 0, log 1, a call with transfer 2 and log 3, a call that emits logs 4 and 5 and
    // reverts, log 6.
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
    for end in [Asm::default().op(op::INVALID), Asm::default().push(0u64).push(0u64).op(op::REVERT)]
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
fn counted_logs_have_the_indices_of_inspected_logs() {
    let revert = |asm: Asm| asm.push(0u64).push(0u64).op(op::REVERT);
    let (logs, fails) = (addr(0xaa), addr(0xbb));
    let nested = |reverts: bool| {
        let code = log().call(fails, 0).op(op::POP).call(logs, 0).op(op::POP);
        if reverts { revert(log_in(code)) } else { log_in(code) }
    };
    for pattern in 0..1_u32 << 10 {
        let mut code = Asm::default();
        for step in 0..5 {
            code = match pattern >> (2 * step) & 3 {
                0 => log_in(code),
                1 => code.call(fails, 0).op(op::POP),
                2 => code.call(addr(0xcc), 0).op(op::POP),
                _ => code.call(addr(0xdd), 0).op(op::POP),
            };
        }
        let state = state(code)
            .contract(logs, log())
            .contract(fails, revert(log_in(log())))
            .contract(addr(0xcc), nested(false))
            .contract(addr(0xdd), nested(true));
        let collect = |transfers| {
            let collect = Some(Collect { transfers, next_index: 4 });
            let options = Options { collect, ..Options::default() };
            let outcome =
                run(&mut state.overlay(), &env(ethereum("Cancun")), &message(CONTRACT), options);
            let outcome = outcome.expect("runs");
            let logs = outcome.collected_logs().expect("collected");
            let logs: Vec<_> = logs.map(|(index, log)| (index, log.clone())).collect();
            (logs, outcome.collected.map(|collected| collected.next_index))
        };
        assert_eq!(collect(false), collect(true), "{pattern:#b}");
    }
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
            // The fifth operand pushed is the value of CALLCODE.
            asm = asm.push(if operand == 4 { 2u64 } else { 0 });
        }
        asm = asm.push_address(addr(0xaa)).op(op::GAS).op(code).op(op::POP);
    }
    // To a precompile, and more than the balance.
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
