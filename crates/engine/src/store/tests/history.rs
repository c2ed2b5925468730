//! A store under test and a model: random actions, and a comparison of everything retained.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use alloy_primitives::{B256, U256};
use tempfile::TempDir;

use super::actions::Action;
use super::model::{Everything, Touch, What, check_branch, compare, row_of, storage_root};
use super::proofs;
use super::{folder, options};
use crate::error::{Error, Result};
use crate::store::*;

#[derive(Clone)]
struct ModelPartial {
    block: u64,
    index: u64,
    start: Start,
    parent_hash: B256,
    state: Everything,
    status: Status,
}

/// An action that a follower must repeat to equal the store under test.
pub enum Event {
    Commit { before: u64, after: u64, body: Vec<u8>, latest: Everything },
    Hold(Option<u64>),
}

/// The store under test, and copies of everything that it should contain.
pub struct History {
    pub folder: TempDir,
    retention: Retention,
    pub store: Option<Arc<Store>>,
    pub sealed: Vec<(B256, Everything, u64)>,
    partials: BTreeMap<u64, ModelPartial>,
    pending: Option<u64>,
    /// The lowest block that may be a rewind target.
    floor: u64,
    /// Partials of blocks below this one are forgotten, in addition to those in `forgotten`.
    partials_floor: u64,
    forgotten: BTreeSet<u64>,
    /// The block that the store holds.
    kept: Option<u64>,
    pub log: Vec<Event>,
    /// A view opened earlier, with the state of its latest block.
    held: Option<(View, u64, Everything)>,
    hashes: u64,
}

impl History {
    pub fn new(retention: Retention) -> Self {
        let folder = folder();
        let store = Store::open(folder.path(), &options(retention)).unwrap();
        let mut history = Self {
            folder,
            retention,
            store: Some(Arc::new(store)),
            sealed: Vec::new(),
            partials: BTreeMap::new(),
            pending: None,
            floor: 0,
            partials_floor: 0,
            forgotten: BTreeSet::new(),
            kept: None,
            log: Vec::new(),
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

    pub fn store(&self) -> &Arc<Store> {
        self.store.as_ref().unwrap()
    }

    /// Commits with an additional row, and records the commit for followers.
    fn commit(&mut self, mut batch: Batch) -> Result<Heads> {
        let count = self.log.len();
        let key = vec![b'k', count as u8 % 5];
        match count % 4 {
            0 => batch.delete(key)?,
            _ => batch.put(key, vec![count as u8; count % 40])?,
        }
        batch.put_local(
            b"local".to_vec(),
            self.folder.path().as_os_str().as_encoded_bytes().to_vec(),
        )?;
        if count.is_multiple_of(3) {
            batch.note(vec![count as u8; [24, 48, 0][count % 9 / 3]]);
        }
        let (before, after, body) = (batch.before(), batch.after(), batch.encode()?);
        let heads = self.store().commit(batch)?;
        assert_eq!(heads.commit, after);
        let latest = self.sealed.last().map(|it| it.1.clone()).unwrap_or_default();
        self.log.push(Event::Commit { before, after, body, latest });
        Ok(heads)
    }

    /// Called after a block has become the latest, and before every other commit.
    fn raise_floors(&mut self) {
        (self.floor, self.partials_floor) = self.raised_floors();
    }

    fn raised_floors(&self) -> (u64, u64) {
        let (mut floor, mut partials) = (self.floor, self.partials_floor);
        let (latest, kept) = (self.latest(), self.kept.unwrap_or(u64::MAX - 1));
        if let Some(states) = self.retention.states {
            floor = floor.max(latest.saturating_sub(states).min(kept));
            partials = partials.max(floor + 1);
        }
        let window = latest.saturating_sub(self.retention.partials + 1).min(kept + 1);
        (floor, partials.max(window))
    }

    fn is_forgotten(&self, number: u64) -> bool {
        self.forgotten.contains(&number) || self.partials[&number].block < self.partials_floor
    }

    fn fresh_hash(&mut self) -> B256 {
        self.hashes += 1;
        B256::from(U256::from(self.hashes))
    }

    pub fn latest(&self) -> u64 {
        self.sealed.len() as u64 - 1
    }

    pub fn append(&mut self, touches: &[Touch], folds: bool) {
        let block = self.sealed.len() as u64;
        let mut state = self.sealed.last().map(|it| it.1.clone()).unwrap_or_default();
        let mut batch = self.store().batch().unwrap();
        let changes = state.change(touches, || batch.draw());
        let hash = self.fresh_hash();
        let index = row_of(hash);
        state.index.extend(index.clone());
        // The nodes of every other block have to be recomputed.
        let nodes = block.is_multiple_of(2).then(|| {
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
        if folds {
            batch.fold_all();
        }
        self.sealed.push((hash, state, number));
        self.raise_floors();
        self.commit(batch).unwrap();
    }

    pub fn extend(
        &mut self,
        parent: Parent,
        start: Start,
        parent_hash: B256,
        touches: &[Touch],
    ) -> u64 {
        let mut batch = self.store().batch().unwrap();
        let number = self.extend_in(&mut batch, parent, start, parent_hash, touches);
        batch.pending(Some(number));
        self.commit(batch).unwrap();
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

    /// True if all ancestors of a partial still exist.
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

    pub fn run(&mut self, action: &Action) {
        match action {
            Action::Extend { stack, touches } => self.extend_tip(*stack, touches),
            Action::Compete { touches } => {
                let (block, hash) = (self.latest(), self.sealed[self.sealed.len() - 1].0);
                self.extend(Parent::Sealed(block), Start::Sealed(block), hash, touches);
            }
            Action::Seal { pick, and_extend } => self.seal(*pick, *and_extend),
            Action::Append { touches, folds } => self.append(touches, *folds),
            Action::Drop { pick } => self.drop_one(*pick),
            Action::Revive { pick } => self.revive_one(*pick),
            Action::Forget { pick } => self.forget_one(*pick),
            Action::Rewind { depth } => self.rewind(*depth),
            Action::Hold { release } => self.keep((!release).then_some(self.latest())),
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
        self.raise_floors();
        let fitting: Vec<u64> = self
            .partials
            .iter()
            .filter(|(_, it)| it.block == next && it.status == Status::Live)
            .filter(|(number, _)| !self.is_forgotten(**number))
            .filter(|(_, it)| it.parent_hash == latest_hash)
            .filter(|(_, it)| match it.start {
                Start::Sealed(_) => true,
                Start::Partial(below) => below == latest_number,
            })
            .map(|(number, _)| *number)
            .collect();
        let Some(&number) = fitting.get(usize::from(pick) % fitting.len().max(1)) else { return };
        let hash = self.announced(number).unwrap_or_else(|| self.fresh_hash());
        let mut batch = self.store().batch().unwrap();
        batch.seal(number, hash);
        let state = self.partials[&number].state.clone();
        self.partials.get_mut(&number).unwrap().status = Status::Sealed;
        self.sealed.push((hash, state, number));
        self.raise_floors();
        let tip_still_ahead =
            self.live_tip().filter(|tip| self.partials[tip].block > self.latest());
        self.pending = tip_still_ahead;
        if and_extend {
            let parent = Parent::Sealed(next);
            let first = self.extend_in(&mut batch, parent, Start::Sealed(next), hash, &[]);
            self.pending = Some(first);
        }
        batch.pending(self.pending);
        self.commit(batch).unwrap();
    }

    /// The parent hash that a block on top of this partial names.
    fn announced(&self, number: u64) -> Option<B256> {
        let on_it = |it: &&ModelPartial| it.start == Start::Partial(number);
        self.partials.values().find(on_it).map(|it| it.parent_hash)
    }

    fn pick(&self, pick: u8, wanted: impl Fn(&ModelPartial) -> bool) -> Option<u64> {
        let all: Vec<_> = self.partials.iter().filter(|(_, it)| wanted(it)).collect();
        all.get(usize::from(pick) % all.len().max(1)).map(|(number, _)| **number)
    }

    fn drop_one(&mut self, pick: u8) {
        self.raise_floors();
        let Some(number) = self.pick(pick, |it| it.status == Status::Live) else { return };
        let mut batch = self.store().batch().unwrap();
        batch.drop_partials(vec![number], "test".into());
        match self.commit(batch) {
            Ok(_) if self.is_forgotten(number) => return, // nothing to drop
            Ok(_) => {}
            Err(other) => panic!("{other}"),
        }
        let status = Status::Dropped { reason: "test".into() };
        self.partials.get_mut(&number).unwrap().status = status;
        self.pending = self.pending.filter(|pending| *pending != number);
    }

    fn revive_one(&mut self, pick: u8) {
        self.raise_floors();
        let is_dropped = |it: &ModelPartial| matches!(it.status, Status::Dropped { .. });
        let Some(number) = self.pick(pick, is_dropped) else { return };
        let mut batch = self.store().batch().unwrap();
        batch.revive(vec![number]);
        match self.commit(batch) {
            Ok(_) => assert!(!self.is_forgotten(number)),
            Err(Error::UnknownPartial(_)) => return assert!(self.is_forgotten(number)),
            Err(other) => panic!("{other}"),
        }
        self.partials.get_mut(&number).unwrap().status = Status::Live;
    }

    /// Forgets a dropped partial if nothing builds on it. Callers of `forget` also include
    /// everything on top.
    fn forget_one(&mut self, pick: u8) {
        let is_dropped = |it: &ModelPartial| matches!(it.status, Status::Dropped { .. });
        let Some(number) = self.pick(pick, is_dropped) else { return };
        let stands_on_it = |(other, it): (&u64, &ModelPartial)| {
            it.start == Start::Partial(number) && !self.forgotten.contains(other)
        };
        if self.partials.iter().any(stands_on_it) {
            return;
        }
        let mut batch = self.store().batch().unwrap();
        batch.forget(vec![number]);
        self.commit(batch).unwrap();
        self.forgotten.insert(number);
    }

    fn keep(&mut self, block: Option<u64>) {
        self.store().hold(block).unwrap();
        self.kept = block;
        self.log.push(Event::Hold(block));
    }

    pub fn maintain(&mut self, entries: usize) -> usize {
        self.store().maintain(entries).unwrap()
    }

    /// A partial that is no longer held may be pruned before the next commit.
    fn assert_pruned(&self, number: u64) {
        let may_go = self.partials[&number].block < self.raised_floors().1;
        assert!(may_go || self.forgotten.contains(&number), "{number} is gone");
    }

    fn rewind(&mut self, depth: u8) {
        let target = self.latest().saturating_sub(u64::from(depth));
        let mut batch = self.store().batch().unwrap();
        batch.rewind(target);
        self.raise_floors();
        assert!(self.store().view().unwrap().heads().earliest <= self.floor);
        match self.commit(batch) {
            Ok(_) => assert!(target >= self.floor),
            Err(Error::RefusedCommit(_)) => return assert!(target < self.floor),
            Err(other) => panic!("{other}"),
        }
        if target + 1 < self.partials_floor {
            let old = self.partials.iter().filter(|it| it.1.block < self.partials_floor);
            self.forgotten.extend(old.map(|it| *it.0));
            self.partials_floor = target + 1;
        }
        for (_, _, number) in self.sealed.drain(target as usize + 1..) {
            if let Some(partial) = self.partials.get_mut(&number) {
                partial.status = Status::Dropped { reason: "rewound".into() };
            }
        }
        self.pending = None;
        let rewound = self.sealed.last().map(|it| it.1.clone()).unwrap_or_default();
        if let Some(Event::Commit { latest, .. }) = self.log.last_mut() {
            *latest = rewound;
        }
    }

    fn reopen(&mut self) {
        self.held = None;
        self.store = None;
        let opened = Store::open(self.folder.path(), &options(self.retention));
        self.store = Some(Arc::new(opened.unwrap()));
        self.store().hold(self.kept).unwrap();
    }

    pub fn hold(&mut self) {
        let view = self.store().view().unwrap();
        let latest = self.latest();
        self.held = Some((view, latest, self.sealed[latest as usize].1.clone()));
    }

    /// The trie at the latest block has the root of the plain state.
    pub fn check_root(&self) {
        let state = &self.sealed[self.sealed.len() - 1].1;
        let mut trie = HeadTrie::open(self.store().clone()).unwrap();
        assert_eq!(trie.root().unwrap(), state.root());
        for (address, (_, slots)) in &state.accounts {
            assert_eq!(trie.storage_root(address).unwrap(), storage_root(slots));
        }
    }

    /// A check of the store finds no damage, even in the middle of maintenance.
    pub fn check_store(&self) {
        assert_eq!(self.damages(), []);
    }

    /// The result of a check with the roots of the model.
    pub fn damages(&self) -> Vec<check::Damage> {
        let roots = self.sealed.iter().map(|(_, state, _)| state.root()).collect();
        let check = check::Check::new(self.store().view().unwrap(), 0, roots);
        for part in check::Check::PARTS {
            check.run(part).unwrap();
        }
        check.progress.take()
    }

    /// Closes everything and opens it again.
    pub fn reopened(&mut self) -> &Arc<Store> {
        self.reopen();
        self.store()
    }

    /// Proves everything retained and compares it with the model.
    pub fn check_proofs(&self) {
        let view = self.store().view().unwrap();
        for (block, (_, state, _)) in self.sealed.iter().enumerate() {
            if let Ok(found) = view.state(block as u64) {
                proofs::check(&found, state);
            }
        }
        for (number, partial) in &self.partials {
            if let Ok(found) = view.state_of_partial(*number) {
                proofs::check(&found, &partial.state);
            }
        }
    }

    /// Reads everything retained and compares it with the model; everything else must fail.
    pub fn check(&self) {
        let view = self.store().view().unwrap();
        let heads = view.heads();
        assert_eq!(heads.latest.unwrap().number, self.latest());
        assert_eq!(heads.pending, self.pending);
        for (block, (hash, state, _)) in self.sealed.iter().enumerate() {
            let block = block as u64;
            assert_eq!(view.sealed(block).unwrap().unwrap().hash, *hash);
            match view.state(block) {
                Ok(found) => {
                    compare(&found, state);
                    check_branch(&found, state, block < heads.nodes_earliest);
                }
                Err(Error::PrunedState { .. }) => assert!(block < heads.earliest),
                Err(other) => panic!("block {block}: {other}"),
            }
        }
        for (number, partial) in &self.partials {
            match view.state_of_partial(*number) {
                Ok(found) => {
                    assert!(self.reachable(*number), "partial {number} should be out of reach");
                    compare(&found, &partial.state);
                    check_branch(&found, &partial.state, true);
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
