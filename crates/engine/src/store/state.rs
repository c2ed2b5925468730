//! State as of one block or partial block of a view.
//!
//! A state is a short chain of deltas above the flat table at one block. A lookup checks each
//! delta, newest first, and then seeks once in the flat table. A sealed block is read from its
//! delta until it is folded, so reads before, during and after folding agree. Entries that folding
//! has already written are above the flat block and are not visible.
//!
//! A key in none of them does not exist, unless the base is partial (`Heads::anchor`). Then its
//! value is what was fetched outside the store, or it is unknown, which is `StateMissing` with that
//! key.

use std::collections::BTreeSet;
use std::sync::Arc;

use alloy_primitives::{Address, B256, Bytes, U256};
use heed::{AnyTls, RoTxn};

use super::lmdb;
use super::record::{Start, Status};
use super::snapshot::{Lease, Sources, StateOf};
use super::tables;

use crate::error::{Error, Result};
use crate::fetched_state::FetchedState;
use crate::missing_keys::MissingKeys;
use crate::state::{AccountState, StateReader};
use crate::store::delta;
use crate::store::entry::{self, ACCOUNT};

#[derive(Clone)]
pub struct State {
    lease: Arc<Lease>,
    sources: Arc<Sources>,
    /// The fallback for keys that the store does not know.
    learned: Option<Arc<FetchedState>>,
}

impl State {
    pub(super) fn of_block(lease: &Arc<Lease>, block: u64) -> Result<Self> {
        let find = |txn: &RoTxn<'_, AnyTls>| {
            let mut sources = Sources { top: block, ..Sources::default() };
            sources.descend_sealed(lease, txn, block)?;
            Ok(sources)
        };
        Self::of(lease, StateOf::Block(block), find)
    }

    pub(super) fn of_partial(lease: &Arc<Lease>, number: u64) -> Result<Self> {
        let find = |txn: &RoTxn<'_, AnyTls>| {
            let mut sources = Sources::default();
            sources.descend_partial(lease, txn, number)?;
            Ok(sources)
        };
        Self::of(lease, StateOf::Partial(number), find)
    }

    fn of(
        lease: &Arc<Lease>,
        of: StateOf,
        find: impl FnOnce(&RoTxn<'_, AnyTls>) -> Result<Sources>,
    ) -> Result<Self> {
        lease.check_open()?;
        let sources = lease.sources(of, || lease.read(find))?;
        Ok(Self { lease: lease.clone(), sources, learned: lease.learned.clone() })
    }

    /// Returns this state with other learned values, or with none if they are not of its base.
    #[must_use]
    pub fn with_learned(&self, learned: Option<&Arc<FetchedState>>) -> Self {
        let epoch = self.lease.heads.anchor.map(|anchor| anchor.epoch);
        let learned = learned.filter(|learned| Some(learned.epoch) == epoch).cloned();
        Self { learned, ..self.clone() }
    }

    /// Fails on a partial base, where a key that is not in the store may still exist.
    pub(super) fn check_whole(&self, what: &'static str) -> Result<()> {
        match self.lease.heads.anchor {
            None => Ok(()),
            Some(_) => Err(Error::IncompleteState(what)),
        }
    }

    /// Returns which of these keys are unknown, and which codes of the known accounts.
    ///
    /// # Errors
    ///
    /// `StoreClosed`, `StoreDamaged`, `Store`.
    pub fn missing<'a>(
        &self,
        accounts: impl IntoIterator<Item = &'a Address>,
        slots: impl IntoIterator<Item = (&'a Address, &'a U256)>,
    ) -> Result<MissingKeys> {
        let mut all = MissingKeys::default();
        for address in accounts {
            let Some(account) = all.note(self.account(address))?.flatten() else { continue };
            if account.has_code() && all.note(self.code(&account.code_hash))?.is_none() {
                all.codes.insert(account.code_hash, Some(*address));
            }
        }
        for (address, slot) in slots {
            match all.note(self.account(address))? {
                None => all.insert_slot(*address, *slot),
                Some(None) => {}
                Some(Some(account)) => {
                    all.note(self.storage(address, account.generation, slot))?;
                }
            }
        }
        Ok(all)
    }

    pub(super) fn lease(&self) -> &Arc<Lease> {
        &self.lease
    }

    /// The sealed block of the state, or the one that its partial blocks build on.
    pub fn sealed_block(&self) -> u64 {
        self.sources.base
    }

    pub(super) fn base(&self) -> u64 {
        self.sources.base
    }

    /// The deltas of blocks above `base`, oldest first, each with the state below it.
    pub(super) fn unsealed(&self) -> Vec<(Self, u64)> {
        let Sources { deltas, base, flat, .. } = &*self.sources;
        let count = deltas.len().saturating_sub(base.saturating_sub(*flat) as usize);
        let below = |at: usize| {
            let sources = Sources { deltas: deltas[at + 1..].to_vec(), ..(*self.sources).clone() };
            Self { sources: Arc::new(sources), ..self.clone() }
        };
        (0..count).rev().map(|at| (below(at), deltas[at].number)).collect()
    }

    /// The entry as seen from this state, borrowed from the map.
    fn entry<'t>(&self, txn: &'t RoTxn<AnyTls>, key: &[u8]) -> Result<Option<&'t [u8]>> {
        let (tables, deltas) = (&self.lease.tables, &self.sources.deltas);
        let changed = self.lease.delta_keys.find(deltas, tables.deltas, txn, key)?;
        if changed.is_some() {
            return Ok(changed);
        }
        let wanted = entry::versioned(key, self.sources.flat);
        let found = tables.flat.get_greater_than_or_equal_to(txn, &wanted).map_err(lmdb)?;
        Ok(found.filter(|(found, _)| is_version_of(found, key)).map(|(_, value)| value))
    }

    /// A Python-owned row that was committed with a block of this state's chain.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the key is empty or too long, `StoreClosed`, `StoreDamaged`, `Store`.
    pub fn index(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let key = entry::index_key(key)?;
        self.lease.read(|txn| Ok(self.entry(txn, &key)?.map(<[u8]>::to_vec)))
    }

    /// Up to `limit` existing accounts with addresses above `after`, in order. Fewer than `limit`
    /// means that there are no more.
    ///
    /// # Errors
    ///
    /// `IncompleteState` on a partial base, `StoreClosed`, `StoreDamaged`, `Store`.
    pub fn accounts(
        &self,
        after: Option<&Address>,
        limit: usize,
    ) -> Result<Vec<(Address, AccountState)>> {
        self.check_whole("a list of accounts")?;
        let from =
            after.map_or_else(|| vec![ACCOUNT], |after| just_above(&entry::account_key(after)));
        self.collect(from, &[ACCOUNT], limit, |key, value| {
            Ok(entry::decode_account(value)?
                .map(|account| (Address::from_slice(&key[1..]), account)))
        })
    }

    /// Up to `limit` non-zero slots above `after` of one generation of an account, in order.
    ///
    /// # Errors
    ///
    /// `IncompleteState` on a partial base if the generation is not a later one, `StoreClosed`,
    /// `StoreDamaged`, `Store`.
    pub fn slots(
        &self,
        address: &Address,
        generation: u64,
        after: Option<&U256>,
        limit: usize,
    ) -> Result<Vec<(U256, U256)>> {
        self.check_slots(generation)?;
        let prefix = entry::slots_prefix(address, generation);
        let from = match after {
            Some(slot) => just_above(&entry::slot_key(address, generation, slot)),
            None => prefix.to_vec(),
        };
        self.collect(from, &prefix, limit, |key, value| {
            let value = entry::decode_slot(value)?;
            let slot = U256::from_be_slice(&key[prefix.len()..]);
            Ok((!value.is_zero()).then_some((slot, value)))
        })
    }

    /// All slots are known only for generations that began after the anchor.
    fn check_slots(&self, generation: u64) -> Result<()> {
        match self.lease.heads.anchor {
            Some(anchor) if generation <= anchor.generation => {
                Err(Error::IncompleteState("a list of slots"))
            }
            _ => Ok(()),
        }
    }

    /// Returns an account that has no entry in the store.
    fn learned_account(&self, address: &Address) -> Result<Option<AccountState>> {
        let Some(anchor) = &self.lease.heads.anchor else { return Ok(None) };
        match self.learned.as_ref().and_then(|learned| learned.account(address)) {
            Some(known) => {
                Ok(known.map(|known| AccountState { generation: anchor.generation, ..known }))
            }
            None => Err(MissingKeys::account(*address).into()),
        }
    }

    /// Returns a slot that has no entry in the store.
    fn learned_slot(&self, address: &Address, generation: u64, slot: &U256) -> Result<U256> {
        match self.lease.heads.anchor {
            Some(anchor) if generation <= anchor.generation => {}
            _ => return Ok(U256::ZERO),
        }
        let known = self.learned.as_ref().and_then(|learned| learned.slot(address, slot));
        match known {
            Some(value) => Ok(value),
            None => Err(self.missed_slot(address, slot)?.into()),
        }
    }

    /// Returns the missing key for an unknown slot. If a later block ended the account's
    /// generation, proofs at that block and above do not contain the slot.
    fn missed_slot(&self, address: &Address, slot: &U256) -> Result<MissingKeys> {
        let mut missed = MissingKeys::slot(*address, *slot);
        if let Some(latest) = self.lease.heads.latest
            && !Self::of_block(&self.lease, latest.number)?.is_same_life_as_anchor(address)?
        {
            missed.destroyed_after.insert(*address, self.sources.base);
        }
        Ok(missed)
    }

    /// True if the account still has the generation that it had at the anchor, as far as is known.
    /// Only then does a proof at this state show the slots of that generation.
    ///
    /// # Errors
    ///
    /// `StoreClosed`, `StoreDamaged`, `Store`.
    pub fn is_same_life_as_anchor(&self, address: &Address) -> Result<bool> {
        let Some(anchor) = self.lease.heads.anchor else { return Ok(true) };
        match self.account(address) {
            Ok(account) => Ok(account.is_some_and(|it| it.generation <= anchor.generation)),
            Err(Error::StateMissing(_)) => Ok(true), // no block has touched it
            Err(other) => Err(other),
        }
    }

    /// The hash of a block below the anchor.
    fn learned_block(&self, number: u64) -> Result<B256> {
        let key = tables::block_key(number);
        let stored = self.lease.read(|txn| {
            let row = self.lease.tables.codes.get(txn, &key).map_err(lmdb)?;
            Ok(row.and_then(|row| B256::try_from(row).ok()))
        })?;
        let known = || self.learned.as_ref().and_then(|learned| learned.block(number));
        stored.or_else(known).ok_or_else(|| MissingKeys::block(number).into())
    }

    /// Walks the keys with `prefix` from `from` on, in portions, and collects what `keep` returns
    /// for each entry as seen from this state.
    fn collect<T>(
        &self,
        mut from: Vec<u8>,
        prefix: &[u8],
        limit: usize,
        keep: impl Fn(&[u8], &[u8]) -> Result<Option<T>>,
    ) -> Result<Vec<T>> {
        const PORTION: usize = 1024;
        let mut kept = Vec::new();
        self.lease.read(|txn| {
            while kept.len() < limit {
                let keys = self.keys(txn, &from, prefix, PORTION)?;
                for key in &keys {
                    let kept_one = keep(key, self.entry(txn, key)?.unwrap_or_default())?;
                    kept.extend(kept_one);
                    if kept.len() == limit {
                        return Ok(());
                    }
                }
                match keys.last() {
                    Some(last) if keys.len() == PORTION => from = just_above(last),
                    _ => return Ok(()),
                }
            }
            Ok(())
        })?;
        Ok(kept)
    }

    /// The first `limit` keys with `prefix` at or above `from` that the flat table or a delta
    /// contains, regardless of their values.
    fn keys(
        &self,
        txn: &RoTxn<AnyTls>,
        from: &[u8],
        prefix: &[u8],
        limit: usize,
    ) -> Result<BTreeSet<Vec<u8>>> {
        let tables = &self.lease.tables;
        let mut keys = BTreeSet::new();
        let mut seek = from.to_vec();
        for _ in 0..limit {
            let found = tables.flat.get_greater_than_or_equal_to(txn, &seek).map_err(lmdb)?;
            let Some((found, _)) = found.filter(|(found, _)| found.starts_with(prefix)) else {
                break;
            };
            let key = entry::unversioned(found)?.to_vec();
            seek = just_above(&key);
            keys.insert(key);
        }
        for delta in &self.sources.deltas {
            let number = delta.number;
            let entries = delta::scan(tables.deltas, txn, number, prefix, from, limit)?;
            keys.extend(entries.into_iter().map(|(key, _)| key));
        }
        while keys.len() > limit {
            keys.pop_last();
        }
        Ok(keys)
    }
}

impl Sources {
    fn descend_sealed(&mut self, lease: &Lease, txn: &RoTxn<AnyTls>, block: u64) -> Result<()> {
        let heads = &lease.heads;
        if heads.latest.is_none_or(|latest| block > latest.number) {
            return Err(Error::UnknownBlock(block));
        }
        if block < heads.earliest {
            return Err(Error::PrunedState { block, earliest: heads.earliest });
        }
        for unfolded in (heads.folded + 1..=block).rev() {
            let sealed = lease.tables.sealed_block(txn, unfolded)?;
            let sealed = sealed.ok_or(Error::UnknownBlock(unfolded))?;
            self.deltas.push(lease.delta_keys.delta(sealed.delta));
        }
        self.flat = block.min(heads.folded);
        self.base = block;
        Ok(())
    }

    fn descend_partial(
        &mut self,
        lease: &Lease,
        txn: &RoTxn<AnyTls>,
        mut number: u64,
    ) -> Result<()> {
        loop {
            let partial = lease.tables.partial(txn, number)?;
            let partial = partial.ok_or(Error::UnknownPartial(number))?;
            match partial.status {
                Status::Dropped { .. } | Status::Rewound => {
                    return Err(Error::DroppedPartial(number));
                }
                // Below the requested partial, a sealed partial is read as its sealed block.
                Status::Sealed if !self.deltas.is_empty() => {
                    return self.descend_sealed(lease, txn, partial.block);
                }
                _ => self.deltas.push(lease.delta_keys.delta(number)),
            }
            let below = partial.block.saturating_sub(1);
            self.top = self.top.max(below);
            self.announced.push((below, partial.parent_hash));
            match partial.start {
                Start::Sealed(block) => {
                    let below = lease.tables.sealed_block(txn, block)?;
                    if below.is_none_or(|below| below.hash != partial.parent_hash) {
                        return Err(Error::DroppedPartial(number));
                    }
                    return self.descend_sealed(lease, txn, block);
                }
                Start::Partial(below) if below < number => number = below,
                Start::Partial(below) => {
                    let why = format!("partial block {number} stands on {below}, a later one");
                    return Err(Error::StoreDamaged(why));
                }
            }
        }
    }
}

impl StateReader for State {
    fn account(&self, address: &Address) -> Result<Option<AccountState>> {
        let key = entry::account_key(address);
        self.lease.read(|txn| match self.entry(txn, &key)? {
            Some(value) => entry::decode_account(value),
            None => self.learned_account(address),
        })
    }

    fn storage(&self, address: &Address, generation: u64, slot: &U256) -> Result<U256> {
        let key = entry::slot_key(address, generation, slot);
        let decode =
            |txn: &RoTxn<'_, AnyTls>| self.entry(txn, &key)?.map(entry::decode_slot).transpose();
        match self.lease.read(decode)? {
            Some(value) => Ok(value),
            None => self.learned_slot(address, generation, slot),
        }
    }

    fn code(&self, hash: &B256) -> Result<Bytes> {
        let found = self.lease.read(|txn| {
            let code = self.lease.tables.codes.get(txn, hash.as_slice()).map_err(lmdb)?;
            Ok(code.map(Bytes::copy_from_slice))
        })?;
        let known = || self.learned.as_ref().and_then(|learned| learned.code(hash));
        found.or_else(known).ok_or_else(|| match self.lease.heads.anchor {
            None => Error::MissingCode(*hash),
            Some(_) => MissingKeys::code(*hash).into(),
        })
    }

    fn block_hash(&self, number: u64) -> Result<B256> {
        if let Some((_, hash)) = self.sources.announced.iter().find(|(block, _)| *block == number) {
            return Ok(*hash);
        }
        if number > self.sources.top {
            return Ok(B256::ZERO);
        }
        if self.lease.heads.anchor.is_some_and(|anchor| number < anchor.number) {
            return self.learned_block(number);
        }
        let known = self.lease.read(|txn| {
            let tables = &self.lease.tables;
            match tables.sealed_block(txn, number)? {
                Some(sealed) => Ok(Some(sealed.hash)),
                None => tables.hash_below(txn, number),
            }
        })?;
        Ok(known.unwrap_or_default())
    }

    fn may_miss(&self) -> bool {
        self.lease.heads.anchor.is_some()
    }
}

/// A version is the key followed by eight bytes; keys are prefix-free.
fn is_version_of(found: &[u8], key: &[u8]) -> bool {
    found.len() == key.len() + 8 && found.starts_with(key)
}

/// The smallest byte string above all versions of `key`.
fn just_above(key: &[u8]) -> Vec<u8> {
    let mut above = key.to_vec();
    above.extend_from_slice(&entry::JUST_ABOVE);
    above
}
