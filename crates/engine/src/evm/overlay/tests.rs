//! Compares the overlay with a plain model, and tests account generations with real runs.

mod lives;

use std::collections::BTreeMap;

use alloy_primitives::{Address, U256, address};
use proptest::prelude::*;
use revm::{
    Database as _,
    bytecode::opcode as op,
    state::{Account, AccountInfo, AccountStatus, EvmStorageSlot},
};

use super::*;
use crate::{
    deadline::Watch,
    evm::{
        database::Database,
        execute::{Options, run},
    },
    message::Message,
    testing::{Asm, ETHER, MemoryState, addr, env, ethereum, init_code},
};

const ADDRESSES: u8 = 4;
const SLOTS: u64 = 4;

/// An account of the model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Plain {
    nonce: u64,
    balance: u64,
    code: Bytes,
    slots: BTreeMap<u64, u64>,
}

impl Plain {
    fn is_empty(&self) -> bool {
        self.nonce == 0 && self.balance == 0 && self.code.is_empty()
    }

    fn write(&mut self, slots: &[(u64, u64)]) {
        self.slots.extend(slots.iter().copied());
        self.slots.retain(|_, value| *value != 0);
    }
}

type Model = BTreeMap<Address, Plain>;

#[derive(Debug, Clone)]
enum Step {
    /// A transaction that leaves the account in this state.
    Modify {
        balance: u64,
        nonce: u64,
        slots: Vec<(u64, u64)>,
    },
    Create {
        balance: u64,
        code: u8,
        slots: Vec<(u64, u64)>,
    },
    SelfDestruct,
    /// Loaded by a transaction but not touched: its values must be ignored.
    Loaded,
    Override {
        balance: Option<u64>,
        nonce: Option<u64>,
        code: Option<u8>,
    },
    State(Vec<(u64, u64)>),
    StateDiff(Vec<(u64, u64)>),
    Credit(u64),
    Take {
        next: bool,
    },
}

fn code_of(seed: u8) -> Bytes {
    // Zero means no code, which an override may set.
    vec![seed; usize::from(seed)].into()
}

fn slots() -> impl Strategy<Value = Vec<(u64, u64)>> {
    prop::collection::vec((0..SLOTS, 0..3u64), 0..4)
}

fn step() -> impl Strategy<Value = (u8, Step)> {
    let step = prop_oneof![
        4 => (0..3u64, 0..2u64, slots())
            .prop_map(|(balance, nonce, slots)| Step::Modify { balance, nonce, slots }),
        3 => (0..3u64, 0..3u8, slots())
            .prop_map(|(balance, code, slots)| Step::Create { balance, code, slots }),
        3 => Just(Step::SelfDestruct),
        1 => Just(Step::Loaded),
        1 => (prop::option::of(0..3u64), prop::option::of(0..2u64), prop::option::of(0..3u8))
            .prop_map(|(balance, nonce, code)| Step::Override { balance, nonce, code }),
        1 => slots().prop_map(Step::State),
        2 => slots().prop_map(Step::StateDiff),
        1 => (0..2u64).prop_map(Step::Credit),
        4 => any::<bool>().prop_map(|next| Step::Take { next }),
    ];
    (1..=ADDRESSES, step)
}

/// Initial accounts: absent, empty, empty with storage, and complete.
fn beginning() -> (MemoryState, Model) {
    let state = MemoryState::default()
        .fund(addr(2), 0)
        .slot(addr(2), 1, 2)
        .fund(addr(3), 1)
        .slot(addr(3), 0, 1)
        .fund(addr(4), 2)
        .contract(addr(4), code_of(2))
        .slot(addr(4), 0, 1)
        .slot(addr(4), 3, 2);
    let mut model = Model::new();
    for (address, account) in &state.accounts {
        let code = state.codes.get(&account.code_hash).cloned().unwrap_or_default();
        let balance = account.balance.to();
        let slots = state.slots.iter().filter(|((owner, ..), _)| owner == address);
        let slots = slots.map(|((_, _, slot), value)| (slot.to(), value.to())).collect();
        model.insert(*address, Plain { nonce: account.nonce, balance, code, slots });
    }
    (state, model)
}

/// The account as revm loads it from the overlay.
fn load(overlay: &mut Overlay, address: Address) -> Account {
    let mut database = Database::new(mem::take(overlay), Watch::default());
    let info = database.basic(address).expect("reads");
    let mut account = match info {
        Some(info) => Account::from(info),
        None => Account::new_not_existing(0),
    };
    for slot in 0..SLOTS {
        let value = database.storage(address, U256::from(slot)).expect("reads");
        account.storage.insert(U256::from(slot), EvmStorageSlot::new(value, 0));
    }
    *overlay = database.overlay;
    account
}

fn write(account: &mut Account, slots: &[(u64, u64)]) {
    for (slot, value) in slots {
        let slot = account.storage.entry(U256::from(*slot)).or_default();
        slot.present_value = U256::from(*value);
    }
}

fn apply(overlay: &mut Overlay, model: &mut Model, address: Address, step: &Step) {
    let commit = |overlay: &mut Overlay, account: Account| {
        overlay.commit([(address, account)].into_iter().collect());
    };
    let words = |slots: &[(u64, u64)]| {
        Some(slots.iter().map(|(slot, value)| (U256::from(*slot), U256::from(*value))).collect())
    };
    match step {
        Step::Modify { balance, nonce, slots } => {
            let mut account = load(overlay, address);
            account.info.balance = U256::from(*balance);
            account.info.nonce += nonce;
            write(&mut account, slots);
            account.mark_touch();
            commit(overlay, account);
            let plain = model.entry(address).or_default();
            plain.balance = *balance;
            plain.nonce += nonce;
            plain.write(slots);
            if plain.is_empty() {
                model.remove(&address);
            }
        }
        Step::Create { balance, code, slots } => {
            let occupied = |plain: &Plain| plain.nonce > 0 || !plain.code.is_empty();
            if model.get(&address).is_some_and(occupied) {
                return;
            }
            let mut account = load(overlay, address);
            account.storage.clear();
            let code = code_of(*code);
            let bytecode = code_cache::analyse(code.clone());
            let generation = account.info.account_id;
            account.info = AccountInfo::new(U256::from(*balance), 1, keccak256(&code), bytecode);
            account.info.account_id = generation;
            write(&mut account, slots);
            account.status |= AccountStatus::Touched | AccountStatus::Created;
            commit(overlay, account);
            let mut plain = Plain { nonce: 1, balance: *balance, code, ..Plain::default() };
            plain.write(slots);
            model.insert(address, plain);
        }
        Step::SelfDestruct => {
            let mut account = load(overlay, address);
            account.status |= AccountStatus::Touched | AccountStatus::SelfDestructed;
            write(&mut account, &[(0, 9)]);
            commit(overlay, account);
            model.remove(&address);
        }
        Step::Loaded => {
            let mut account = load(overlay, address);
            account.info.balance = U256::from(99);
            commit(overlay, account);
        }
        Step::Override { balance, nonce, code } => {
            let code = code.map(code_of);
            let new = Override {
                balance: balance.map(U256::from),
                nonce: *nonce,
                code: code.clone(),
                ..Override::default()
            };
            overlay.apply(address, &new).expect("applies");
            if new == Override::default() {
                return;
            }
            let plain = model.entry(address).or_default();
            plain.balance = balance.unwrap_or(plain.balance);
            plain.nonce = nonce.unwrap_or(plain.nonce);
            plain.code = code.unwrap_or(plain.code.clone());
        }
        Step::State(slots) => {
            let new = Override { state: words(slots), ..Override::default() };
            overlay.apply(address, &new).expect("applies");
            let plain = model.entry(address).or_default();
            plain.slots.clear();
            plain.write(slots);
        }
        Step::StateDiff(slots) => {
            let new = Override { state_diff: words(slots), ..Override::default() };
            overlay.apply(address, &new).expect("applies");
            model.entry(address).or_default().write(slots);
        }
        Step::Credit(amount) => {
            overlay.credit(address, U256::from(*amount)).expect("credits");
            if *amount > 0 {
                model.entry(address).or_default().balance += amount;
            } else if model.get(&address).is_some_and(Plain::is_empty) {
                model.remove(&address);
            }
        }
        Step::Take { .. } => {}
    }
}

/// All values of a state, without generations and code hashes.
fn read(state: &dyn StateReader) -> Model {
    let mut model = Model::new();
    for address in (1..=ADDRESSES).map(addr) {
        let Some(account) = state.account(&address).expect("reads") else { continue };
        let code = match account.has_code() {
            true => state.code(&account.code_hash).expect("reads"),
            false => Bytes::new(),
        };
        let mut plain = Plain {
            nonce: account.nonce,
            balance: account.balance.to(),
            code,
            slots: BTreeMap::new(),
        };
        let value = |slot: &U256| state.storage(&address, account.generation, slot);
        let slots = (0..SLOTS).map(|slot| (slot, value(&U256::from(slot)).expect("reads").to()));
        plain.write(&slots.collect::<Vec<_>>());
        model.insert(address, plain);
    }
    model
}

/// Checks that changes contain no unchanged values, and that generations are as documented.
fn check_minimal(before: &MemoryState, changes: &Changes, number: u64) {
    for (address, change) in &changes.accounts {
        assert!(change.before != change.after || !change.slots.is_empty(), "{address}");
        let Some(after) = change.after else {
            assert!(change.slots.is_empty(), "{address} is gone and has slots");
            continue;
        };
        let generation_before = change.before.map(|account| account.generation);
        assert!(after.generation == number || Some(after.generation) == generation_before);
        if change.before.is_none() {
            assert_eq!(after.generation, number);
        }
        // A second generation under the same number is returned completely.
        let whole = after.generation == number;
        for (slot, value) in &change.slots {
            let stored = before.storage(address, after.generation, slot).expect("reads");
            assert!(whole || stored != *value, "{address} slot {slot}");
        }
    }
    let used = |hash: &B256| {
        let after = changes.accounts.values().filter_map(|change| change.after);
        after.into_iter().any(|account| account.code_hash == *hash)
    };
    assert!(changes.codes.keys().all(used));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_overlay_reads_like_a_dictionary_and_takes_rebuild_it(
        steps in prop::collection::vec(step(), 1..25)
    ) {
        let (mut stored, mut model) = beginning();
        let mut overlay = stored.overlay();
        let mut number = 100;
        for (address, step) in &steps {
            apply(&mut overlay, &mut model, addr(*address), step);
            prop_assert_eq!(&read(&overlay), &model, "after {:?}", step);
            if let Step::Take { next } = step {
                number += u64::from(*next);
                let changes = overlay.take(number).expect("takes");
                check_minimal(&stored, &changes, number);
                stored = stored.after(&changes);
                prop_assert_eq!(&read(&stored), &model, "the store after {:?}", step);
                prop_assert_eq!(&read(&overlay), &model);
                for address in (1..=ADDRESSES).map(addr) {
                    let account = overlay.account(&address).expect("reads");
                    prop_assert_eq!(account, stored.accounts.get(&address).copied());
                }
                let again = overlay.take(number).expect("takes");
                prop_assert_eq!(again, Changes::default());
            }
        }
    }
}

#[test]
fn a_wiped_storage_stays_wiped_over_later_commits() {
    let mut overlay = MemoryState::default()
        .fund(addr(1), ETHER)
        .contract(addr(2), Asm::default().store(1, 5))
        .slot(addr(2), 0, 7)
        .overlay();
    let wipe = Override { state: Some(vec![]), ..Override::default() };
    overlay.apply(addr(2), &wipe).expect("applies");
    let message = Message { from: addr(1), to: Some(addr(2)), gas: 100_000, ..Message::default() };
    run(&mut overlay, &env(ethereum("Cancun")), &message, Options::default()).expect("runs");
    assert_eq!(overlay.storage(&addr(2), &U256::ZERO), Ok(U256::ZERO));
    assert_eq!(overlay.storage(&addr(2), &U256::ONE), Ok(U256::from(5)));
}

#[test]
fn a_slot_overridden_on_an_account_that_is_not_there_is_kept() {
    let mut overlay = MemoryState::default().overlay();
    let slots = Some(vec![(U256::ONE, U256::from(5))]);
    let diff = Override { state_diff: slots, ..Override::default() };
    overlay.apply(addr(1), &diff).expect("applies");
    assert_eq!(overlay.storage(&addr(1), &U256::ONE), Ok(U256::from(5)));
    let code = Some(Asm::default().push(1u64).op(op::SLOAD).return_top().into());
    overlay.apply(addr(1), &Override { code, ..Override::default() }).expect("applies");
    let message = Message { to: Some(addr(1)), gas: 100_000, ..Message::default() };
    let outcome = run(&mut overlay, &env(ethereum("Cancun")), &message, Options::default());
    assert_eq!(outcome.expect("runs").output, U256::from(5).to_be_bytes_vec());
}

#[test]
fn state_and_state_diff_exclude_each_other() {
    let both = Override { state: Some(vec![]), state_diff: Some(vec![]), ..Override::default() };
    let result = MemoryState::default().overlay().apply(addr(1), &both);
    assert!(matches!(result, Err(Error::InvalidArgument(_))));
}

#[test]
fn an_overlay_without_a_state_says_so() {
    let mut overlay = Overlay::default();
    assert!(matches!(overlay.account(&addr(1)), Err(Error::Execution(_))));
    assert!(matches!(overlay.credit(addr(1), U256::ONE), Err(Error::Execution(_))));
}
