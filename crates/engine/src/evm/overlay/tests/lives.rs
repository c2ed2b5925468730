//! A contract destroyed and created again at the same address by real transactions.

use super::*;
use crate::evm::{env::Env, outcome::Status};

const SENDER: Address = Address::repeat_byte(0x11);
const FACTORY: Address = address!("0xfac7000000000000000000000000000000000000");

/// With input it destroys itself; without input it stores 7 in the slot of its balance.
fn runtime() -> Bytes {
    let code = Asm::default().op(op::CALLDATASIZE).push(12u64).op(op::JUMPI);
    let code = code.push(7u64).op(op::SELFBALANCE).op(op::SSTORE).op(op::STOP);
    let padding = 12 - code.len();
    let code = code.ops(&vec![op::STOP; padding]).op(op::JUMPDEST);
    code.push_address(addr(0xbe)).op(op::SELFDESTRUCT).into()
}

/// Deploys its input with CREATE2, so the same code always has the same address.
fn factory() -> Asm {
    let copy = Asm::default().op(op::CALLDATASIZE).push(0u64).push(0u64).op(op::CALLDATACOPY);
    let create = copy.push(0u64).op(op::CALLDATASIZE).push(0u64).op(op::CALLVALUE);
    create.op(op::CREATE2).return_top()
}

struct Chain {
    env: std::sync::Arc<Env>,
    overlay: Overlay,
    child: Address,
}

impl Chain {
    fn new(fork: &str) -> Self {
        let state = MemoryState::default().fund(SENDER, ETHER).contract(FACTORY, factory());
        let hash = keccak256(init_code(&runtime()));
        let child = FACTORY.create2(B256::ZERO, hash);
        Self { env: env(ethereum(fork)), overlay: state.overlay(), child }
    }

    fn send(&mut self, to: Address, value: u64, data: Bytes) {
        let value = U256::from(value);
        let message = Message {
            from: SENDER,
            to: Some(to),
            value,
            data,
            gas: 1_000_000,
            ..Message::default()
        };
        let outcome = run(&mut self.overlay, &self.env, &message, Options::default());
        assert_eq!(outcome.expect("runs").status, Status::Success);
    }

    fn deploy(&mut self) {
        self.send(FACTORY, 0, init_code(&runtime()));
    }

    fn store(&mut self, value: u64) {
        self.send(self.child, value, Bytes::new());
    }

    fn destroy(&mut self) {
        self.send(self.child, 0, Bytes::from_static(&[1]));
    }

    fn child(&self) -> Option<AccountState> {
        self.overlay.account(&self.child).expect("reads")
    }
}

#[test]
fn before_cancun_a_destroyed_contract_lives_again_with_empty_storage() {
    let mut chain = Chain::new("London");
    chain.deploy();
    chain.store(3);
    let child = chain.child;
    let first = chain.overlay.take(10).expect("takes").accounts[&child].clone();
    assert_eq!(first.before, None);
    assert_eq!(first.after.map(|account| account.generation), Some(10));
    assert_eq!(first.slots, BTreeMap::from([(U256::from(3), U256::from(7))]));

    chain.destroy();
    let second = chain.overlay.take(11).expect("takes").accounts[&child].clone();
    assert_eq!((second.after, second.retired()), (None, Some(10)));

    chain.deploy();
    assert_eq!(chain.overlay.storage(&child, &U256::from(3)), Ok(U256::ZERO));
    chain.store(2);
    let third = chain.overlay.take(12).expect("takes").accounts[&child].clone();
    assert_eq!(third.after.map(|account| account.generation), Some(12));
    assert_eq!(third.slots, BTreeMap::from([(U256::from(2), U256::from(7))]));
}

#[test]
fn a_life_that_began_and_ended_between_two_takes_is_not_seen() {
    let mut chain = Chain::new("London");
    chain.deploy();
    chain.store(3);
    chain.destroy();
    let changes = chain.overlay.take(10).expect("takes");
    assert!(!changes.accounts.contains_key(&chain.child));
    assert_eq!(changes.accounts[&addr(0xbe)].after.map(|a| a.balance), Some(U256::from(3)));
}

#[test]
fn destroyed_and_made_again_between_two_takes_is_a_new_life() {
    let mut chain = Chain::new("London");
    chain.deploy();
    chain.store(3);
    chain.overlay.take(10).expect("takes");
    chain.destroy();
    chain.deploy();
    let change = chain.overlay.take(11).expect("takes").accounts[&chain.child].clone();
    assert_eq!(change.after.map(|account| account.generation), Some(11));
    assert_eq!(change.retired(), Some(10));
    assert!(change.slots.is_empty());
}

#[test]
fn another_life_under_the_same_number_clears_what_the_first_left() {
    let mut chain = Chain::new("London");
    chain.deploy();
    chain.store(3);
    chain.overlay.take(10).expect("takes");
    chain.destroy();
    chain.overlay.take(10).expect("takes");
    chain.deploy();
    let change = chain.overlay.take(10).expect("takes").accounts[&chain.child].clone();
    assert_eq!(change.slots, BTreeMap::from([(U256::from(3), U256::ZERO)]));
}

#[test]
fn from_cancun_on_only_the_ether_leaves() {
    let mut chain = Chain::new("Cancun");
    chain.deploy();
    chain.store(3);
    chain.destroy();
    let child = chain.child().expect("still there");
    assert!(child.has_code() && child.balance.is_zero());
    assert_eq!(chain.overlay.storage(&chain.child, &U256::from(3)), Ok(U256::from(7)));
    assert_eq!(chain.overlay.code(&chain.child), Ok(runtime()));
}

#[test]
fn ether_that_waits_at_an_address_does_not_keep_its_generation_over_a_creation() {
    let mut chain = Chain::new("Cancun");
    let child = chain.child;
    chain.send(child, 5, Bytes::new());
    let waiting = chain.overlay.take(10).expect("takes").accounts[&child].after;
    assert_eq!(waiting.map(|account| account.generation), Some(10));
    chain.deploy();
    let change = chain.overlay.take(11).expect("takes").accounts[&child].clone();
    assert_eq!(change.after.map(|a| (a.generation, a.balance)), Some((11, U256::from(5))));
}

#[test]
fn touching_an_empty_account_clears_it_from_spurious_dragon_on() {
    for (fork, remains) in [("Tangerine", true), ("SpuriousDragon", false)] {
        let state = MemoryState::default().fund(SENDER, ETHER).fund(addr(2), 0);
        let mut overlay = state.slot(addr(2), 1, 9).overlay();
        let touch = Message { from: SENDER, to: Some(addr(2)), gas: 50_000, ..Message::default() };
        run(&mut overlay, &env(ethereum(fork)), &touch, Options::default()).expect("runs");
        assert_eq!(overlay.account(&addr(2)).expect("reads").is_some(), remains, "{fork}");
        let value = if remains { U256::from(9) } else { U256::ZERO };
        assert_eq!(overlay.storage(&addr(2), &U256::ONE), Ok(value), "{fork}");

        let absent = Message { to: Some(addr(3)), ..touch };
        run(&mut overlay, &env(ethereum(fork)), &absent, Options::default()).expect("runs");
        assert_eq!(overlay.account(&addr(3)).expect("reads").is_some(), remains, "{fork}");
    }
}
