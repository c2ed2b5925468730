//! A probe stays within the allowance of its block.

use std::time::Duration;

use super::*;
use crate::block_execution::{BlockExecution, BlockRules};

const UNKNOWN: Address = Address::repeat_byte(0x99);
const LATE: Option<Duration> = Some(Duration::ZERO);
const MILLISECOND: Duration = Duration::from_millis(1);

/// Only the accounts in the inner state are known.
struct Partial(MemoryState);

impl StateReader for Partial {
    fn account(&self, address: &Address) -> Result<Option<AccountState>> {
        match self.0.accounts.get(address) {
            Some(account) => Ok(Some(*account)),
            None => Err(MissingKeys::account(*address).into()),
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

    fn may_miss(&self) -> bool {
        true
    }
}

fn running(code: Asm, gas_limit: u64) -> Transaction {
    let input = Bytes::from(code);
    deposit(TxDeposit { to: TxKind::Create, input, gas_limit, ..plain_deposit() })
}

fn endless() -> Asm {
    Asm::default().op(op::JUMPDEST).push(0u64).op(op::JUMP)
}

fn reading(address: Address) -> Asm {
    Asm::default().push_address(address).op(op::BALANCE).op(op::POP)
}

/// Reads an account and then loops forever.
fn reading_for_ever(address: Address) -> Asm {
    let start = reading(address).len() as u64;
    reading(address).op(op::JUMPDEST).push(start).op(op::JUMP)
}

fn missed(allowance: &mut Allowance, transactions: &[Transaction]) -> Result<MissingKeys> {
    let fields = BlockFields { gas_limit: u64::MAX / 2, ..fields() };
    let env = env_with(optimism("Jovian"), &fields);
    let known = state(RECORDED);
    let mut overlay = Overlay::new(Box::new(Partial(known)));
    let missed = probe(&mut overlay, &env, transactions, &Progress::default(), allowance);
    assert!(overlay.take(1).expect("nothing was missed by it").accounts.is_empty());
    missed
}

#[test]
fn the_time_stops_a_probe_whatever_it_has_missed() {
    for code in [endless(), reading_for_ever(UNKNOWN)] {
        let mut late = Allowance::new(LATE, MILLISECOND, None, None);
        let all = [running(code, u64::MAX / 4)];
        let over = Err(Error::OverBudget { index: 0, what: TIME });
        assert_eq!(missed(&mut late, &all), over);
        assert_eq!(missed(&mut late, &[running(Asm::default(), 100_000)]), over, "nothing is left");
    }
}

#[test]
fn the_work_of_all_transactions_counts() {
    let short = running(Asm::default(), 100_000);
    let mut late = Allowance::new(LATE, MILLISECOND, None, None);
    let all = vec![short; 100_000];
    let Err(Error::OverBudget { index, what: TIME }) = missed(&mut late, &all) else {
        panic!("it ran them all");
    };
    assert!(index > 0);
}

#[test]
fn gas_and_entries_end_a_probe_with_what_it_has_missed() {
    let storing = Asm::default().op(op::JUMPDEST).op(op::GAS).op(op::DUP1).op(op::SSTORE);
    let storing = storing.push(0u64).op(op::JUMP);
    let of_gas = Allowance::new(None, Duration::ZERO, Some(1_000_000), None);
    let of_entries = Allowance::new(None, Duration::ZERO, None, Some(1_000));
    for (mut allowance, endless) in [(of_gas, endless()), (of_entries, storing)] {
        let all = [
            running(reading(UNKNOWN), 100_000),
            running(endless, u64::MAX / 4),
            running(reading(addr(0x98)), 100_000),
        ];
        let missed = missed(&mut allowance, &all).expect("that is no error of a probe");
        assert!(missed.accounts.contains(&UNKNOWN));
        assert!(!missed.accounts.contains(&addr(0x98)), "it has ended before");
    }
}

#[test]
fn what_was_spent_is_not_there_for_the_next() {
    let limit = 1_000_000;
    let env = env_with(optimism("Jovian"), &BlockFields { gas_limit: limit, ..fields() });
    let mut overlay = Overlay::new(Box::new(Partial(state(RECORDED))));
    let all = [running(Asm::default().op(op::INVALID), limit), running(reading(UNKNOWN), 100_000)];
    let allowance = &mut Allowance::default();
    let missed = probe(&mut overlay, &env, &all, &Progress::default(), allowance);
    assert!(!missed.expect("it reads").accounts.contains(&UNKNOWN));
}

#[test]
fn a_paused_allowance_keeps_its_time() {
    let mut paused = Allowance::new(Some(Duration::from_secs(3_600)), Duration::ZERO, None, None);
    paused.pause();
    assert!(paused.check_time(0).is_ok());
    paused.resume();
    assert!(missed(&mut paused, &[running(reading(UNKNOWN), 100_000)]).is_ok());
    let mut late = Allowance::new(LATE, Duration::ZERO, None, None);
    late.pause();
    late.resume();
    assert_eq!(missed(&mut late, &[transfer(0)]), Err(Error::OverBudget { index: 0, what: TIME }));
}

#[test]
fn a_message_that_waits_for_state_keeps_what_it_may_touch() {
    let mut overlay = Overlay::new(Box::new(Partial(state(RECORDED))));
    let to = |to: Address| deposit(TxDeposit { to: TxKind::Call(to), ..plain_deposit() });
    let all = [to(SENDER), to(UNKNOWN)];
    let all: Vec<&Transaction> = all.iter().collect();
    let mut allowance = Allowance::new(None, Duration::ZERO, None, Some(20));
    let (mut block, env) = (BlockExecution::new(BlockRules::default()), env(optimism("Jovian")));
    for _ in 0..50 {
        let ran = block.run(&mut overlay, &env, &all, &mut allowance);
        assert!(matches!(ran, Err(Error::StateMissing(_))), "{ran:?}");
        assert_eq!(block.added(), 0);
        assert!(overlay.take(1).expect("nothing was missed by it").accounts.is_empty());
    }
    block.run(&mut overlay, &env, &all[..1], &mut allowance).expect("it is known");
    assert_eq!(block.added(), 1);
}
