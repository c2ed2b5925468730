//! Random histories against a plain model: every retained state, whatever the store
//! has folded, pruned or cleared in between, reads as a copy of all state would.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use alloy_primitives::{Address, B256, U256, keccak256};
use alloy_trie::TrieAccount;
use alloy_trie::root::{state_root_unhashed, storage_root_unhashed};
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::error::Error;
use crate::state::{AccountChange, AccountState, Changes, StateReader};

const ADDRESSES: u8 = 5;
const SLOTS: u64 = 3;

/// In memory where the system has such a folder: these tests are about order, and
/// the ones that kill a process are about the disk.
pub fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() }.unwrap()
}

fn options(retention: Retention) -> Options {
    Options { map_size: 1 << 28, retention, ..Options::new(Mode::Write) }
}

fn address(which: u8) -> Address {
    Address::from_slice(&keccak256([which % ADDRESSES])[..20])
}

/// All of a state, copied whole for every block and partial.
#[derive(Clone, Default, PartialEq, Debug)]
struct Everything {
    accounts: BTreeMap<Address, (AccountState, BTreeMap<U256, U256>)>,
    index: BTreeMap<Vec<u8>, Vec<u8>>,
}

#[derive(Clone, Debug)]
struct Touch {
    who: u8,
    what: What,
    slot: u64,
    value: u8,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Balance,
    Slot,
    Clear,
    Destroy,
    Recreate,
    Empty,
}

impl Everything {
    fn root(&self) -> B256 {
        state_root_unhashed(self.accounts.iter().map(|(address, (account, slots))| {
            let AccountState { nonce, balance, code_hash, .. } = *account;
            (*address, TrieAccount::new(nonce, balance, storage_root(slots), code_hash))
        }))
    }

    /// Apply touches one after the other, each a transaction of its own with a number
    /// of its own, and give the merged changes.
    fn change(&mut self, touches: &[Touch], mut draw: impl FnMut() -> u64) -> Changes {
        let mut all = Changes::default();
        for touch in touches {
            let number = draw();
            let address = address(touch.who);
            let before = self.accounts.get(&address).cloned();
            let after = touch.apply(before.clone(), number);
            let slots = changed_slots(before.as_ref(), after.as_ref());
            match &after {
                Some(account) => self.accounts.insert(address, account.clone()),
                None => self.accounts.remove(&address),
            };
            let change =
                AccountChange { before: before.map(|it| it.0), after: after.map(|it| it.0), slots };
            if change.before != change.after || !change.slots.is_empty() {
                let one = Changes { accounts: [(address, change)].into(), ..Changes::default() };
                all.merge(one);
            }
        }
        all
    }
}

fn storage_root(slots: &BTreeMap<U256, U256>) -> B256 {
    storage_root_unhashed(slots.iter().map(|(slot, value)| (B256::from(*slot), *value)))
}

type Whole = (AccountState, BTreeMap<U256, U256>);

impl Touch {
    fn apply(&self, before: Option<Whole>, number: u64) -> Option<Whole> {
        let fresh =
            || (AccountState { generation: number, ..AccountState::EMPTY }, BTreeMap::new());
        let (slot, value) = (U256::from(self.slot), U256::from(self.value) + U256::from(1));
        match self.what {
            What::Destroy => None,
            What::Empty => {
                let (account, slots) = before.unwrap_or_else(fresh);
                let generation = account.generation;
                Some((AccountState { generation, ..AccountState::EMPTY }, slots))
            }
            What::Recreate => {
                let (mut account, mut slots) = fresh();
                account.nonce = 1;
                slots.insert(slot, value);
                Some((account, slots))
            }
            What::Balance => {
                let (mut account, slots) = before.unwrap_or_else(fresh);
                account.balance += value;
                account.nonce += 1;
                Some((account, slots))
            }
            What::Slot | What::Clear => {
                let (mut account, mut slots) = before.unwrap_or_else(fresh);
                account.nonce += 1;
                match self.what {
                    What::Slot => slots.insert(slot, value),
                    _ => slots.remove(&slot),
                };
                Some((account, slots))
            }
        }
    }
}

fn changed_slots(before: Option<&Whole>, after: Option<&Whole>) -> BTreeMap<U256, U256> {
    let Some((account, slots)) = after else { return BTreeMap::new() };
    let old = before.filter(|it| it.0.generation == account.generation);
    let old = old.map(|it| it.1.clone()).unwrap_or_default();
    let keys = slots.keys().chain(old.keys());
    let value = |of: &BTreeMap<U256, U256>, key: &U256| of.get(key).copied().unwrap_or_default();
    keys.filter(|key| value(slots, key) != value(&old, key))
        .map(|key| (*key, value(slots, key)))
        .collect()
}

#[derive(Clone, Debug)]
enum Action {
    /// The next index on the tip, or the first of the next block.
    Extend {
        stack: bool,
        touches: Vec<Touch>,
    },
    /// A second candidate beside the tip, on the latest block.
    Compete {
        touches: Vec<Touch>,
    },
    Seal {
        pick: u8,
        and_extend: bool,
    },
    Append {
        touches: Vec<Touch>,
        settle: bool,
    },
    Drop {
        pick: u8,
    },
    Revive {
        pick: u8,
    },
    Rewind {
        depth: u8,
    },
    Maintain {
        entries: u8,
    },
    Reopen,
}

fn touches() -> impl Strategy<Value = Vec<Touch>> {
    use What::*;
    let what = prop_oneof![
        3 => Just(Balance), 4 => Just(Slot), 2 => Just(Clear),
        2 => Just(Destroy), 2 => Just(Recreate), 1 => Just(Empty),
    ];
    let touch = (0..ADDRESSES, what, 0..SLOTS, any::<u8>())
        .prop_map(|(who, what, slot, value)| Touch { who, what, slot, value });
    proptest::collection::vec(touch, 0..6)
}

fn action() -> impl Strategy<Value = Action> {
    use Action::*;
    prop_oneof![
        6 => (prop::bool::weighted(0.3), touches())
            .prop_map(|(stack, touches)| Extend { stack, touches }),
        1 => touches().prop_map(|touches| Compete { touches }),
        3 => (any::<u8>(), any::<bool>()).prop_map(|(pick, and_extend)| Seal { pick, and_extend }),
        3 => (touches(), prop::bool::weighted(0.2))
            .prop_map(|(touches, settle)| Append { touches, settle }),
        1 => any::<u8>().prop_map(|pick| Drop { pick }),
        1 => any::<u8>().prop_map(|pick| Revive { pick }),
        1 => (0..6u8).prop_map(|depth| Rewind { depth }),
        6 => (1..20u8).prop_map(|entries| Maintain { entries }),
        1 => Just(Reopen),
    ]
}

#[derive(Clone)]
struct ModelPartial {
    block: u64,
    index: u64,
    start: Start,
    parent_hash: B256,
    state: Everything,
    status: Status,
}

/// The store under test beside copies of everything it should hold.
struct History {
    folder: TempDir,
    retention: Retention,
    store: Option<Arc<Store>>,
    sealed: Vec<(B256, Everything, u64)>,
    partials: BTreeMap<u64, ModelPartial>,
    pending: Option<u64>,
    /// Partials of blocks below this one may have been forgotten.
    forgotten_below: u64,
    /// A view opened earlier, with what its latest state was.
    held: Option<(View, u64, Everything)>,
    hashes: u64,
}

impl History {
    fn new(retention: Retention) -> Self {
        let folder = folder();
        let store = Store::open(folder.path(), &options(retention)).unwrap();
        let mut history = Self {
            folder,
            retention,
            store: Some(Arc::new(store)),
            sealed: Vec::new(),
            partials: BTreeMap::new(),
            pending: None,
            forgotten_below: 0,
            held: None,
            hashes: 0,
        };
        let genesis = [What::Balance, What::Recreate, What::Slot, What::Empty];
        let touches: Vec<_> = (0..4)
            .map(|who| Touch { who, what: genesis[usize::from(who)], slot: 1, value: who })
            .collect();
        history.append(&touches, false);
        history
    }

    fn store(&self) -> &Arc<Store> {
        self.store.as_ref().unwrap()
    }

    fn fresh_hash(&mut self) -> B256 {
        self.hashes += 1;
        B256::from(U256::from(self.hashes))
    }

    fn latest(&self) -> u64 {
        self.sealed.len() as u64 - 1
    }

    fn append(&mut self, touches: &[Touch], settle: bool) {
        let block = self.sealed.len() as u64;
        let mut state = self.sealed.last().map(|it| it.1.clone()).unwrap_or_default();
        let mut batch = self.store().batch().unwrap();
        let changes = state.change(touches, || batch.draw());
        let hash = self.fresh_hash();
        let index = row_of(hash);
        state.index.extend(index.clone());
        // Every other block leaves its nodes to be computed again.
        let nodes = (block % 2 == 0).then(|| {
            let mut trie = HeadTrie::open(self.store().clone()).unwrap();
            trie.apply(&changes).unwrap();
            trie.take().unwrap()
        });
        let number = batch.append(block, hash, changes, index);
        if let Some(nodes) = nodes {
            batch.nodes(block, Arc::new(nodes));
        }
        if self.pending.is_some() {
            batch.pending(None);
            self.pending = None;
        }
        if settle {
            batch.settle();
        }
        self.store().commit(batch).unwrap();
        self.sealed.push((hash, state, number));
    }

    fn extend(
        &mut self,
        parent: Parent,
        start: Start,
        parent_hash: B256,
        touches: &[Touch],
    ) -> u64 {
        let mut batch = self.store().batch().unwrap();
        let number = self.extend_in(&mut batch, parent, start, parent_hash, touches);
        batch.pending(Some(number));
        self.store().commit(batch).unwrap();
        self.pending = Some(number);
        number
    }

    fn extend_in(
        &mut self,
        batch: &mut Batch,
        parent: Parent,
        start: Start,
        parent_hash: B256,
        touches: &[Touch],
    ) -> u64 {
        let (block, index, mut state) = match parent {
            Parent::Sealed(block) => (block + 1, 0, self.sealed[block as usize].1.clone()),
            Parent::Partial(number) => {
                let before = &self.partials[&number];
                (before.block, before.index + 1, before.state.clone())
            }
            Parent::Stacked(number, _) => {
                let below = &self.partials[&number];
                (below.block + 1, 0, below.state.clone())
            }
        };
        let changes = state.change(touches, || batch.draw());
        let hash = self.fresh_hash();
        state.index.extend(row_of(hash));
        let number = batch.extend(block, index, hash, parent, changes, row_of(hash));
        let status = Status::Live;
        let partial = ModelPartial { block, index, start, parent_hash, state, status };
        self.partials.insert(number, partial);
        number
    }

    fn live_tip(&self) -> Option<u64> {
        self.pending.filter(|number| self.reachable(*number))
    }

    /// Whether the chain below a partial is still whole.
    fn reachable(&self, number: u64) -> bool {
        let Some(partial) = self.partials.get(&number) else { return false };
        if matches!(partial.status, Status::Dropped { .. }) {
            return false;
        }
        match partial.start {
            Start::Sealed(block) => {
                self.sealed.get(block as usize).is_some_and(|it| it.0 == partial.parent_hash)
            }
            Start::Partial(below) => self.reachable(below),
        }
    }

    fn run(&mut self, action: &Action) {
        match action {
            Action::Extend { stack, touches } => self.extend_tip(*stack, touches),
            Action::Compete { touches } => {
                let (block, hash) = (self.latest(), self.sealed[self.sealed.len() - 1].0);
                self.extend(Parent::Sealed(block), Start::Sealed(block), hash, touches);
            }
            Action::Seal { pick, and_extend } => self.seal(*pick, *and_extend),
            Action::Append { touches, settle } => self.append(touches, *settle),
            Action::Drop { pick } => self.drop_one(*pick),
            Action::Revive { pick } => self.revive_one(*pick),
            Action::Rewind { depth } => self.rewind(*depth),
            Action::Maintain { entries } => {
                self.maintain(usize::from(*entries));
            }
            Action::Reopen => self.reopen(),
        }
    }

    fn extend_tip(&mut self, stack: bool, touches: &[Touch]) {
        let Some(tip) = self.live_tip() else {
            let (block, hash) = (self.latest(), self.sealed[self.sealed.len() - 1].0);
            self.extend(Parent::Sealed(block), Start::Sealed(block), hash, touches);
            return;
        };
        let partial = self.partials[&tip].clone();
        if stack {
            let announced = self.fresh_hash();
            self.extend(Parent::Stacked(tip, announced), Start::Partial(tip), announced, touches);
        } else {
            self.extend(Parent::Partial(tip), partial.start, partial.parent_hash, touches);
        }
    }

    fn seal(&mut self, pick: u8, and_extend: bool) {
        let (latest_hash, _, latest_number) = self.sealed[self.sealed.len() - 1].clone();
        let next = self.latest() + 1;
        let fitting: Vec<u64> = self
            .partials
            .iter()
            .filter(|(_, it)| it.block == next && it.status == Status::Live)
            .filter(|(_, it)| it.block >= self.forgotten_below)
            .filter(|(_, it)| match it.start {
                Start::Sealed(_) => it.parent_hash == latest_hash,
                Start::Partial(below) => below == latest_number,
            })
            .map(|(number, _)| *number)
            .collect();
        let Some(&number) = fitting.get(usize::from(pick) % fitting.len().max(1)) else { return };
        let hash = self.fresh_hash();
        let mut batch = self.store().batch().unwrap();
        batch.seal(number, hash);
        let state = self.partials[&number].state.clone();
        self.partials.get_mut(&number).unwrap().status = Status::Sealed;
        self.sealed.push((hash, state, number));
        let tip_still_ahead =
            self.live_tip().filter(|tip| self.partials[tip].block > self.latest());
        self.pending = tip_still_ahead;
        if and_extend {
            let parent = Parent::Sealed(next);
            let first = self.extend_in(&mut batch, parent, Start::Sealed(next), hash, &[]);
            self.pending = Some(first);
        }
        batch.pending(self.pending);
        self.store().commit(batch).unwrap();
    }

    fn pick(&self, pick: u8, wanted: impl Fn(&ModelPartial) -> bool) -> Option<u64> {
        let all: Vec<_> = self.partials.iter().filter(|(_, it)| wanted(it)).collect();
        all.get(usize::from(pick) % all.len().max(1)).map(|(number, _)| **number)
    }

    fn drop_one(&mut self, pick: u8) {
        let Some(number) = self.pick(pick, |it| it.status == Status::Live) else { return };
        let mut batch = self.store().batch().unwrap();
        batch.drop_partials(vec![number], "test".into());
        match self.store().commit(batch) {
            Ok(_) => {}
            Err(Error::UnknownPartial(_)) => return self.assert_pruned(number),
            Err(other) => panic!("{other}"),
        }
        let status = Status::Dropped { reason: "test".into() };
        self.partials.get_mut(&number).unwrap().status = status;
        self.pending = self.pending.filter(|pending| *pending != number);
    }

    fn revive_one(&mut self, pick: u8) {
        let by_test = Status::Dropped { reason: "test".into() };
        let Some(number) = self.pick(pick, |it| it.status == by_test) else { return };
        let mut batch = self.store().batch().unwrap();
        batch.revive(vec![number]);
        match self.store().commit(batch) {
            Ok(_) => self.partials.get_mut(&number).unwrap().status = Status::Live,
            Err(Error::UnknownPartial(_)) => self.assert_pruned(number),
            Err(other) => panic!("{other}"),
        }
    }

    fn maintain(&mut self, entries: usize) -> usize {
        let window = self.latest().saturating_sub(self.retention.partials);
        self.forgotten_below = self.forgotten_below.max(window);
        self.store().maintain(entries).unwrap()
    }

    fn assert_pruned(&self, number: u64) {
        assert!(self.partials[&number].block < self.forgotten_below, "{number} is gone");
    }

    fn rewind(&mut self, depth: u8) {
        let target = self.latest().saturating_sub(u64::from(depth));
        let mut batch = self.store().batch().unwrap();
        batch.rewind(target);
        let earliest = self.store().view().unwrap().heads().earliest;
        match self.store().commit(batch) {
            Ok(_) => assert!(target >= earliest),
            Err(Error::RefusedCommit(_)) => return assert!(target < earliest),
            Err(other) => panic!("{other}"),
        }
        for (_, _, number) in self.sealed.drain(target as usize + 1..) {
            if let Some(partial) = self.partials.get_mut(&number) {
                partial.status = Status::Dropped { reason: "rewound".into() };
            }
        }
        self.pending = None;
    }

    fn reopen(&mut self) {
        self.held = None;
        self.store = None;
        let opened = Store::open(self.folder.path(), &options(self.retention));
        self.store = Some(Arc::new(opened.unwrap()));
    }

    fn hold(&mut self) {
        let view = self.store().view().unwrap();
        let latest = self.latest();
        self.held = Some((view, latest, self.sealed[latest as usize].1.clone()));
    }

    /// The trie at the latest block has the root of the plain state.
    fn check_root(&self) {
        let state = &self.sealed[self.sealed.len() - 1].1;
        let mut trie = HeadTrie::open(self.store().clone()).unwrap();
        assert_eq!(trie.root().unwrap(), state.root());
        for (address, (_, slots)) in &state.accounts {
            assert_eq!(trie.storage_root(address).unwrap(), storage_root(slots));
        }
    }

    /// Everything retained reads as the model says; what is not retained is refused.
    fn check(&self) {
        let view = self.store().view().unwrap();
        let heads = view.heads();
        assert_eq!(heads.latest.unwrap().number, self.latest());
        assert_eq!(heads.pending, self.pending);
        for (block, (hash, state, _)) in self.sealed.iter().enumerate() {
            let block = block as u64;
            assert_eq!(view.sealed(block).unwrap().unwrap().hash, *hash);
            match view.state(block) {
                Ok(found) => compare(&found, state),
                Err(Error::PrunedState { .. }) => assert!(block < heads.earliest),
                Err(other) => panic!("block {block}: {other}"),
            }
        }
        for (number, partial) in &self.partials {
            match view.state_of_partial(*number) {
                Ok(found) => {
                    assert!(self.reachable(*number), "partial {number} should be out of reach");
                    compare(&found, &partial.state);
                }
                Err(Error::DroppedPartial(_)) => assert!(!self.reachable(*number)),
                Err(Error::UnknownPartial(gone)) => self.assert_pruned(gone),
                Err(Error::PrunedState { block, earliest }) => assert!(block < earliest),
                Err(other) => panic!("partial {number}: {other}"),
            }
        }
        if let Some((view, block, state)) = &self.held {
            compare(&view.state(*block).unwrap(), state);
        }
    }
}

fn row_of(hash: B256) -> BTreeMap<Vec<u8>, Vec<u8>> {
    BTreeMap::from([(hash.to_vec(), vec![hash[31]])])
}

fn compare(found: &State, expected: &Everything) {
    for which in 0..ADDRESSES {
        let address = address(which);
        let account = found.account(&address).unwrap();
        let whole = expected.accounts.get(&address);
        assert_eq!(account, whole.map(|it| it.0), "{address}");
        let Some((account, slots)) = whole else { continue };
        for slot in (0..SLOTS).map(U256::from) {
            let value = found.storage(&address, account.generation, &slot).unwrap();
            assert_eq!(value, slots.get(&slot).copied().unwrap_or_default());
        }
        let listed = found.slots(&address, account.generation, None, 100).unwrap();
        assert_eq!(listed, slots.clone().into_iter().collect::<Vec<_>>());
    }
    let listed = found.accounts(None, 100).unwrap();
    let all = expected.accounts.iter().map(|(address, whole)| (*address, whole.0));
    assert_eq!(listed, all.collect::<Vec<_>>());
    for (key, value) in &expected.index {
        assert_eq!(found.index(key).unwrap().as_ref(), Some(value));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn every_retained_state_reads_as_a_full_copy_would(
        states in prop_oneof![Just(None), (4..8u64).prop_map(Some)],
        actions in proptest::collection::vec(action(), 1..50),
        hold_at in 0..50usize,
        check_roots in prop::bool::weighted(0.3),
    ) {
        let retention = Retention { states, partials: 3, nodes: 2 };
        let mut history = History::new(retention);
        for (step, action) in actions.iter().enumerate() {
            if step == hold_at {
                history.hold();
            }
            history.run(action);
            history.check();
            if check_roots {
                history.check_root();
            }
        }
        while history.maintain(7) > 0 {}
        history.check();
        history.check_root();
    }
}

#[test]
fn pruning_leaves_nothing_behind_that_no_state_needs() {
    let mut history = History::new(Retention { states: Some(2), partials: 1, nodes: 1 });
    for value in 0..40 {
        let what = [What::Recreate, What::Slot, What::Destroy, What::Balance][value as usize % 4];
        history.append(&[Touch { who: 0, what, slot: 1, value }], false);
        history.check_root();
        while history.maintain(3) > 0 {}
    }
    let store = history.store();
    let view = store.view().unwrap();
    assert_eq!(view.heads().earliest, 38);
    let flat = view.snapshot.read(|txn| store.tables.flat.len(txn).map_err(lmdb)).unwrap();
    // Four accounts and a slot or two, with the versions of three blocks; forty index
    // rows stay, as documented.
    assert!(flat < 60, "{flat} flat entries");
    let deltas = view.snapshot.read(|txn| store.tables.deltas.len(txn).map_err(lmdb)).unwrap();
    assert!(deltas <= 3, "{deltas} rows of deltas");
    let nodes = view.snapshot.read(|txn| store.tables.nodes.len(txn).map_err(lmdb)).unwrap();
    assert!(nodes < 30, "{nodes} versions of nodes");
}

#[test]
fn a_second_writer_is_refused_and_the_first_goes_on() {
    let history = History::new(Retention::default());
    let second = Store::open(history.folder.path(), &options(Retention::default()));
    assert!(matches!(second, Err(Error::StoreLocked(_))));
    history.check();
}

#[test]
fn a_batch_made_before_another_commit_is_refused() {
    let history = History::new(Retention::default());
    let (mut first, mut second) =
        (history.store().batch().unwrap(), history.store().batch().unwrap());
    first.put(b"k".to_vec(), b"first".to_vec());
    second.put(b"k".to_vec(), b"second".to_vec());
    history.store().commit(first).unwrap();
    let refused = history.store().commit(second);
    assert!(matches!(refused, Err(Error::StaleBatch { .. })));
    assert_eq!(history.store().view().unwrap().row(b"k").unwrap(), Some(b"first".to_vec()));
}

#[test]
fn a_refused_step_leaves_nothing_of_its_batch() {
    let history = History::new(Retention::default());
    let mut batch = history.store().batch().unwrap();
    batch.put(b"k".to_vec(), b"v".to_vec());
    batch.append(7, B256::ZERO, Changes::default(), BTreeMap::new());
    assert!(matches!(history.store().commit(batch), Err(Error::RefusedCommit(_))));
    assert_eq!(history.store().view().unwrap().row(b"k").unwrap(), None);
    history.check();
}

#[test]
fn a_full_map_is_an_error_and_the_store_goes_on() {
    let folder = folder();
    let small = Options { map_size: 1 << 20, ..options(Retention::default()) };
    let store = Store::open(folder.path(), &small).unwrap();
    let mut batch = store.batch().unwrap();
    batch.put(b"small".to_vec(), b"row".to_vec());
    store.commit(batch).unwrap();
    let mut batch = store.batch().unwrap();
    batch.put(b"large".to_vec(), vec![1; 2 << 20]);
    assert_eq!(store.commit(batch), Err(Error::StoreFull(1 << 20)));
    assert_eq!(store.view().unwrap().row(b"small").unwrap(), Some(b"row".to_vec()));
    drop(store);
    let store = Store::open(folder.path(), &options(Retention::default())).unwrap();
    let mut batch = store.batch().unwrap();
    batch.put(b"large".to_vec(), vec![1; 2 << 20]);
    store.commit(batch).unwrap();
}

#[test]
fn a_closed_view_answers_with_an_error() {
    let history = History::new(Retention::default());
    let view = history.store().view().unwrap();
    let state = view.state(0).unwrap();
    view.close();
    assert_eq!(state.account(&address(0)), Err(Error::StoreClosed));
    assert_eq!(view.row(b"k"), Err(Error::StoreClosed));
}

#[test]
fn block_hashes_end_at_the_state_they_are_asked_from() {
    let mut history = History::new(Retention::default());
    history.append(&[], false);
    history.append(&[], false);
    let (latest, hash) = (history.latest(), history.sealed[2].0);
    let announced = B256::repeat_byte(9);
    let tip = history.extend(Parent::Sealed(latest), Start::Sealed(latest), hash, &[]);
    let stacked =
        history.extend(Parent::Stacked(tip, announced), Start::Partial(tip), announced, &[]);
    let view = history.store().view().unwrap();
    let at_one = view.state(1).unwrap();
    assert_eq!(at_one.block_hash(1).unwrap(), history.sealed[1].0);
    assert_eq!(at_one.block_hash(2).unwrap(), B256::ZERO);
    let at_stacked = view.state_of_partial(stacked).unwrap();
    assert_eq!(at_stacked.block_hash(2).unwrap(), hash);
    assert_eq!(at_stacked.block_hash(3).unwrap(), announced);
    assert_eq!(at_stacked.block_hash(4).unwrap(), B256::ZERO);
}
