//! A store with a partial base, compared with a model of the whole state.
//!
//! Unknown keys have the anchor's values. Once these are learned, every state equals the model:
//! after folding, pruning, rewinds, reopening and new anchors, for accounts that were destroyed and
//! created again, and for cleared slots.

use std::collections::BTreeMap;
use std::sync::Arc;

use alloy_primitives::{Address, B256, U256};
use proptest::prelude::*;
use tempfile::TempDir;

use super::actions::touches;
use super::history::History;
use super::model::{ADDRESSES, Everything, SLOTS, Touch, address, row_of};
use super::{folder, options};
use crate::error::{Error, Result};
use crate::fetched_state::FetchedState;
use crate::missing_keys::MissingKeys;
use crate::state::{AccountState, StateReader};
use crate::store::*;

#[derive(Clone, Debug)]
enum Action {
    Append(Vec<Touch>),
    /// Several partials of a block; the last one is sealed.
    Flash(Vec<Vec<Touch>>),
    Rewind(u8),
    /// Reads a key and stores what was learned.
    Learn {
        who: u8,
        slot: Option<u64>,
    },
    Maintain(u8),
    Reopen,
    Rebase {
        back: u8,
    },
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        6 => touches().prop_map(Action::Append),
        4 => proptest::collection::vec(touches(), 1..4).prop_map(Action::Flash),
        1 => (0..4u8).prop_map(Action::Rewind),
        3 => (0..ADDRESSES, proptest::option::of(0..SLOTS))
            .prop_map(|(who, slot)| Action::Learn { who, slot }),
        5 => (1..30u8).prop_map(Action::Maintain),
        1 => Just(Action::Reopen),
        1 => (0..3u8).prop_map(|back| Action::Rebase { back }),
    ]
}

const ANCHOR: u64 = 10;

struct Follower {
    folder: TempDir,
    retention: Retention,
    store: Option<Store>,
    /// The whole state of each block from the anchor on.
    blocks: BTreeMap<u64, Everything>,
    learned: Arc<FetchedState>,
    hashes: u64,
}

fn hash(number: u64) -> B256 {
    B256::left_padding_from(&number.to_be_bytes())
}

impl Follower {
    fn new(retention: Retention, anchor: &[Touch]) -> Self {
        let folder = folder();
        let store = Store::open(folder.path(), &options(retention)).unwrap();
        let mut batch = store.batch().unwrap();
        let number = batch.begin_at(ANCHOR, hash(ANCHOR), hash(1), 1, row_of(hash(ANCHOR)));
        let heads = store.commit(batch).unwrap();
        assert_eq!(heads.anchor.map(|anchor| (anchor.epoch, anchor.generation)), Some((1, number)));
        let mut state = Everything::default();
        state.change(anchor, || number);
        let (blocks, learned) =
            (BTreeMap::from([(ANCHOR, state)]), Arc::new(FetchedState::new(1, 1 << 20)));
        let mut follower =
            Self { folder, retention, store: Some(store), blocks, learned, hashes: ANCHOR };
        follower.set_fallback_state();
        follower
    }

    fn set_fallback_state(&mut self) {
        self.store().set_fallback_state(Some(self.learned.clone()));
    }

    fn store(&self) -> &Store {
        self.store.as_ref().unwrap()
    }

    fn anchor(&self) -> &Everything {
        self.blocks.first_key_value().unwrap().1
    }

    fn latest(&self) -> u64 {
        *self.blocks.last_key_value().unwrap().0
    }

    fn hash(&mut self) -> B256 {
        self.hashes += 1;
        hash(self.hashes)
    }

    /// Answers like an upstream: with the anchor's values.
    fn teach(&self, learned: &FetchedState, misses: &MissingKeys) {
        for address in &misses.accounts {
            let whole = self.anchor().accounts.get(address);
            // An upstream does not know generations.
            let account = whole.map(|whole| AccountState { generation: 77, ..whole.0 });
            learned.put_account(*address, account, None);
        }
        for (address, slots) in &misses.slots {
            let whole = self.anchor().accounts.get(address);
            for slot in slots {
                let value = whole.and_then(|whole| whole.1.get(slot)).copied().unwrap_or_default();
                learned.put_slots(*address, [(*slot, value)]);
            }
        }
    }

    /// Reads the keys like a block that touches them, so that all keys it changes are known.
    fn learn_touched(&self, state: &State, touches: &[Touch]) {
        for touch in touches {
            let (address, slot) = (address(touch.who), U256::from(touch.slot));
            let account = self.read(&self.learned, || state.account(&address));
            if let Some(account) = account {
                self.read(&self.learned, || state.storage(&address, account.generation, &slot));
            }
        }
    }

    fn read<T>(&self, learned: &FetchedState, read: impl Fn() -> Result<T>) -> T {
        for _ in 0..2 {
            match read() {
                Err(Error::StateMissing(misses)) => {
                    assert_eq!(misses.len(), 1);
                    self.teach(learned, &misses);
                }
                read => return read.unwrap(),
            }
        }
        panic!("what was learned is missing again");
    }

    fn run(&mut self, action: &Action) {
        match action {
            Action::Append(touches) => self.append(touches),
            Action::Flash(parts) => self.flash(parts),
            Action::Rewind(depth) => self.rewind(u64::from(*depth)),
            Action::Learn { who, slot } => {
                let view = self.store().view().unwrap();
                let slot = slot.unwrap_or_default();
                let what = super::model::What::Slot;
                let touch = Touch { who: *who, what, slot, value: 0 };
                self.learn_touched(&view.state(self.latest()).unwrap(), &[touch]);
                self.store().learn(&self.learned).unwrap();
                assert_eq!(self.store().learn(&self.learned), Ok(0));
            }
            Action::Maintain(entries) => {
                self.store().maintain(usize::from(*entries)).unwrap();
            }
            Action::Reopen => {
                self.store = None;
                // Learned values that no commit stored are lost.
                let epoch = self.learned.epoch;
                self.learned = Arc::new(FetchedState::new(epoch, 1 << 20));
                let store = Store::open(self.folder.path(), &options(self.retention)).unwrap();
                self.store = Some(store);
                self.set_fallback_state();
            }
            Action::Rebase { back } => self.rebase(u64::from(*back)),
        }
    }

    fn append(&mut self, touches: &[Touch]) {
        let (latest, hash) = (self.latest(), self.hash());
        let view = self.store().view().unwrap();
        self.learn_touched(&view.state(latest).unwrap(), touches);
        view.close();
        let mut batch = self.store().batch().unwrap();
        batch.learn(self.learned.clone());
        let mut state = self.blocks[&latest].clone();
        let changes = state.change(touches, || batch.draw());
        state.index.extend(row_of(hash));
        batch.append(latest + 1, hash, changes, row_of(hash));
        self.store().commit(batch).unwrap();
        self.blocks.insert(latest + 1, state);
    }

    fn flash(&mut self, parts: &[Vec<Touch>]) {
        let latest = self.latest();
        let mut state = self.blocks[&latest].clone();
        let mut parent = Parent::Sealed(latest);
        let mut last = None;
        for (index, touches) in parts.iter().enumerate() {
            let hash = self.hash();
            let view = self.store().view().unwrap();
            let below = match parent {
                Parent::Partial(number) => view.state_of_partial(number).unwrap(),
                _ => view.state(latest).unwrap(),
            };
            self.learn_touched(&below, touches);
            view.close();
            let mut batch = self.store().batch().unwrap();
            batch.learn(self.learned.clone());
            let changes = state.change(touches, || batch.draw());
            state.index.extend(row_of(hash));
            let number =
                batch.extend(latest + 1, index as u64, hash, parent, changes, row_of(hash));
            self.store().commit(batch).unwrap();
            self.check_state(
                &self.store().view().unwrap().state_of_partial(number).unwrap(),
                &state,
            );
            parent = Parent::Partial(number);
            last = Some((number, hash));
        }
        let Some((partial, hash)) = last else { return };
        let mut batch = self.store().batch().unwrap();
        batch.seal(partial, hash);
        self.store().commit(batch).unwrap();
        self.blocks.insert(latest + 1, state);
    }

    fn rewind(&mut self, depth: u64) {
        let first = *self.blocks.first_key_value().unwrap().0;
        let to = self.latest() - depth.min(self.latest() - first);
        let mut batch = self.store().batch().unwrap();
        batch.rewind(to);
        match self.store().commit(batch) {
            Err(Error::RefusedCommit(_)) => {}
            done => {
                done.unwrap();
                self.blocks.retain(|block, _| *block <= to);
            }
        }
    }

    /// Sets an anchor on another chain, at a height that may have been used before. Its state is
    /// unrelated to what was known.
    fn rebase(&mut self, back: u64) {
        let at = self.latest().saturating_sub(back).max(1);
        let hash = self.hash();
        let epoch = self.learned.epoch + 1;
        let mut batch = self.store().batch().unwrap();
        let generation = batch.rebase(at, hash, hash, epoch, row_of(hash));
        let heads = self.store().commit(batch).unwrap();
        assert_eq!((heads.earliest, heads.folded), (at, at));
        let mut state = self.anchor().clone();
        state.index = row_of(hash);
        for (account, slots) in state.accounts.values_mut() {
            account.generation = generation;
            account.balance += U256::from(1);
            slots.values_mut().for_each(|value| *value += U256::from(1));
        }
        self.blocks = BTreeMap::from([(at, state)]);
        // Values of the former epoch are ignored wherever they are stored.
        let former = self.learned.clone();
        assert_eq!(self.store().learn(&former), Ok(0));
        self.check();
        self.learned = Arc::new(FetchedState::new(epoch, 1 << 20));
        self.set_fallback_state();
    }

    /// Compares every retained state with the model and learns unknown keys on the way, whose
    /// values must not have changed.
    fn check(&self) {
        let view = self.store().view().unwrap();
        let heads = view.heads().clone();
        assert_eq!(heads.latest.map(|latest| latest.number), Some(self.latest()));
        for block in heads.earliest..=self.latest() {
            self.check_state(&view.state(block).unwrap(), &self.blocks[&block]);
        }
    }

    fn check_state(&self, state: &State, expected: &Everything) {
        let learned =
            Arc::new(FetchedState::new(state.lease().heads.anchor.unwrap().epoch, 1 << 20));
        let state = state.with_learned(Some(&learned));
        for which in 0..ADDRESSES {
            let address = address(which);
            let whole = expected.accounts.get(&address);
            let account = self.read(&learned, || state.account(&address));
            assert_eq!(account, whole.map(|whole| whole.0), "{address}");
            let Some((account, slots)) = whole else { continue };
            for slot in (0..SLOTS).map(U256::from) {
                let value =
                    self.read(&learned, || state.storage(&address, account.generation, &slot));
                assert_eq!(value, slots.get(&slot).copied().unwrap_or_default());
            }
        }
        for (key, value) in &expected.index {
            assert_eq!(state.index(key).unwrap().as_ref(), Some(value));
        }
        assert!(matches!(state.accounts(None, 1), Err(Error::IncompleteState(_))));
    }

    fn check_store(&self) {
        let view = self.store().view().unwrap();
        let check = check::Check::new(view, 0, Vec::new());
        for part in check::Check::PARTS {
            check.run(part).unwrap();
        }
        assert_eq!(check.progress.take(), []);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(super::cases() / 3))]

    #[test]
    fn a_partial_store_reads_as_the_whole_one(
        states in prop_oneof![Just(None), (4..8u64).prop_map(Some)],
        anchor in proptest::collection::vec(touches(), 0..4),
        actions in proptest::collection::vec(action(), 1..40),
    ) {
        let retention = Retention { states, partials: 3, nodes: 2 };
        let mut follower = Follower::new(retention, &anchor.concat());
        follower.check();
        for action in &actions {
            follower.run(action);
            follower.check();
        }
        while follower.store().maintain(50).unwrap() > 0 {}
        follower.check();
        follower.check_store();
    }
}

fn started() -> (Follower, Address) {
    let touch = Touch { who: 0, what: super::model::What::Slot, slot: 1, value: 5 };
    let follower = Follower::new(Retention { states: Some(4), partials: 1, nodes: 1 }, &[touch]);
    (follower, address(0))
}

#[test]
fn nothing_is_absent_that_was_not_learned() {
    let (follower, address) = started();
    let view = follower.store().view().unwrap();
    let state = view.state(ANCHOR).unwrap();
    assert_eq!(state.account(&address), Err(MissingKeys::account(address).into()));
    let generation = view.heads().anchor.unwrap().generation;
    let slot = U256::from(1);
    let unknown = Err(MissingKeys::slot(address, slot).into());
    assert_eq!(state.storage(&address, generation, &slot), unknown);
    assert_eq!(state.storage(&address, generation + 1, &slot), Ok(U256::ZERO), "a later life");
    let code = B256::repeat_byte(3);
    assert_eq!(state.code(&code), Err(MissingKeys::code(code).into()));
    assert_eq!(state.block_hash(ANCHOR), Ok(hash(ANCHOR)));
    assert_eq!(state.block_hash(ANCHOR - 1), Err(MissingKeys::block(ANCHOR - 1).into()));
    follower.learned.put_block(ANCHOR - 1, hash(9));
    assert_eq!(state.block_hash(ANCHOR - 1), Ok(hash(9)), "at once");
    follower.store().learn(&follower.learned).unwrap();
    let view = follower.store().view().unwrap();
    let alone = view.state(ANCHOR).unwrap().with_learned(None);
    assert_eq!(alone.block_hash(ANCHOR - 1), Ok(hash(9)), "stored");
}

#[test]
fn what_is_missing_is_told_at_once() {
    let (follower, address) = started();
    let (other, code) = (Address::repeat_byte(9), B256::repeat_byte(3));
    let account = AccountState { code_hash: code, ..AccountState::EMPTY };
    follower.learned.put_account(other, Some(account), None);
    let view = follower.store().view().unwrap();
    let state = view.state(ANCHOR).unwrap();
    let slot = U256::from(1);
    let missing = state.missing([&address, &other], [(&address, &slot), (&other, &slot)]).unwrap();
    let mut expected = MissingKeys::account(address);
    expected.merge(MissingKeys::slot(address, slot));
    expected.merge(MissingKeys::slot(other, slot));
    expected.codes.insert(code, Some(other));
    assert_eq!(missing, expected);
}

#[test]
fn values_of_another_epoch_are_not_looked_at() {
    let (follower, address) = started();
    let other = Arc::new(FetchedState::new(2, 1 << 20));
    other.put_account(address, None, None);
    follower.store().set_fallback_state(Some(other.clone()));
    let view = follower.store().view().unwrap();
    let state = view.state(ANCHOR).unwrap();
    for state in [&state, &state.with_learned(Some(&other))] {
        assert_eq!(state.account(&address), Err(MissingKeys::account(address).into()));
    }
    assert_eq!(follower.store().learn(&other), Ok(0));
    let mut batch = follower.store().batch().unwrap();
    batch.learn(other.clone());
    assert!(matches!(follower.store().commit(batch), Err(Error::RefusedCommit(_))));
    assert_eq!(other.unstored(), 1);
    let mut batch = follower.store().batch().unwrap();
    batch.rebase(ANCHOR, hash(2), hash(2), 2, BTreeMap::new());
    batch.learn(other.clone());
    follower.store().commit(batch).unwrap();
    assert_eq!(other.unstored(), 0, "steps are taken in their order");
    let state = follower.store().view().unwrap().state(ANCHOR).unwrap();
    assert_eq!(state.with_learned(None).account(&address), Ok(None));
}

#[test]
fn a_commit_that_fails_stores_nothing_of_what_was_learned() {
    let (follower, address) = started();
    follower.learned.put_account(address, None, None);
    let mut batch = follower.store().batch().unwrap();
    batch.learn(follower.learned.clone());
    batch.rewind(1_000);
    assert!(matches!(follower.store().commit(batch), Err(Error::RefusedCommit(_))));
    assert_eq!(follower.learned.unstored(), 1);
    let commit = follower.store().view().unwrap().heads().commit;
    assert_eq!(follower.store().learn(&follower.learned), Ok(1));
    assert_eq!(follower.store().view().unwrap().heads().commit, commit, "no number is drawn");
}

#[test]
fn what_is_stored_stays_whatever_is_learned_later() {
    let (follower, address) = started();
    follower.learned.put_account(address, None, None);
    assert_eq!(follower.store().learn(&follower.learned), Ok(1));
    let later = FetchedState::new(1, 1 << 20);
    later.put_account(address, Some(AccountState::EMPTY), None);
    assert_eq!(follower.store().learn(&later), Ok(0));
    assert_eq!(later.unstored(), 0, "it is known");
    let state = follower.store().view().unwrap().state(ANCHOR).unwrap();
    assert_eq!(state.with_learned(None).account(&address), Ok(None));
}

#[test]
fn an_anchor_begins_an_empty_store_and_follows_a_lower_epoch() {
    let (follower, _) = started();
    let refused = |anew: bool, epoch: u64| {
        let mut batch = follower.store().batch().unwrap();
        match anew {
            true => batch.rebase(20, hash(20), hash(20), epoch, BTreeMap::new()),
            false => batch.begin_at(20, hash(20), hash(20), epoch, BTreeMap::new()),
        };
        matches!(follower.store().commit(batch), Err(Error::RefusedCommit(_)))
    };
    assert!(refused(false, 2) && refused(true, 1) && !refused(true, 2));
    let whole = History::new(Retention::default());
    let store = whole.store();
    let mut batch = store.batch().unwrap();
    batch.rebase(20, hash(20), hash(20), 1, BTreeMap::new());
    assert!(matches!(store.commit(batch), Err(Error::RefusedCommit(_))), "its base is complete");
    assert_eq!(store.view().unwrap().heads().format(), 1);
}

#[test]
fn a_slot_of_an_empty_storage_stays_known_when_it_has_changed() {
    let (mut follower, _) = started();
    let (address, slot) = (address(1), U256::from(1));
    let root = Some(alloy_trie::EMPTY_ROOT_HASH);
    follower.learned.put_account(address, Some(AccountState::EMPTY), root);
    let generation = follower.store().view().unwrap().heads().anchor.unwrap().generation;
    let account = (AccountState { generation, ..AccountState::EMPTY }, BTreeMap::new());
    follower.blocks.get_mut(&ANCHOR).unwrap().accounts.insert(address, account);
    follower.append(&[Touch { who: 1, what: super::model::What::Slot, slot: 1, value: 7 }]);
    let later = FetchedState::new(1, 1 << 20);
    later.put_slots(address, [(slot, U256::from(8))]); // from a proof of the next block
    assert_eq!(follower.store().learn(&later), Ok(0));
    follower.store().set_fallback_state(None);
    let view = follower.store().view().unwrap();
    let at = |block| view.state(block).unwrap().storage(&address, generation, &slot);
    assert_eq!((at(ANCHOR), at(ANCHOR + 1)), (Ok(U256::ZERO), Ok(U256::from(8))));
}

#[test]
fn nodes_of_proofs_are_found_by_their_hashes() {
    let (follower, address) = started();
    let root = alloy_trie::EMPTY_ROOT_HASH;
    follower.learned.prove(root, address, &[], &[]).unwrap();
    let leaf = crate::trie::leaf::encode_account(&AccountState::EMPTY, root);
    let node = alloy_rlp::encode(alloy_trie::nodes::TrieNode::Leaf(
        alloy_trie::nodes::LeafNode::new(crate::trie::leaf::account_key(&address), leaf),
    ));
    let hash = alloy_primitives::keccak256(&node);
    follower.learned.prove(hash, address, &[node.clone().into()], &[]).unwrap();
    let view = follower.store().view().unwrap();
    assert_eq!(view.lease.learned_node(&hash), Ok(Some(node.clone())));
    follower.store().learn(&follower.learned).unwrap();
    follower.store().set_fallback_state(None);
    let view = follower.store().view().unwrap();
    assert_eq!(view.lease.learned_node(&hash), Ok(Some(node)));
    assert_eq!(view.lease.learned_node(&B256::ZERO), Ok(None));
}
