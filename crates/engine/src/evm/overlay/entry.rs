//! One account in an overlay.
//!
//! `origin` is the account in the underlying state and never changes: slots without an entry here
//! are read from there under its generation, unless they were wiped. `taken` is the account at the
//! last `take`, `now` its current value.

use std::collections::BTreeMap;

use alloy_primitives::{
    U256,
    map::{Entry as MapEntry, HashMap, HashSet},
};
use revm::state::AccountInfo;

use crate::{
    error::Result,
    state::{AccountChange, AccountState},
};

#[derive(Debug, Clone, Default)]
pub(super) struct Entry {
    origin: Option<AccountState>,
    taken: Option<AccountState>,
    now: Option<AccountState>,
    /// The underlying storage is permanently hidden.
    wiped: bool,
    /// The storage was wiped since the last `take`.
    wiped_since: bool,
    /// All slots written since the last wipe.
    slots: HashMap<U256, Written>,
    /// Slots written since the last `take`, without duplicates.
    written: Vec<U256>,
    /// Non-zero slots returned by `take` under a generation that `take` assigned. If the account is
    /// created again under the same number, they must be cleared explicitly, since the generation
    /// does not distinguish them.
    published_slots: Option<(u64, HashSet<U256>)>,
    changed: bool,
}

#[derive(Debug, Clone, Copy)]
struct Written {
    now: U256,
    at_checkpoint: ValueAtCheckpoint,
}

#[derive(Debug, Clone, Copy)]
enum ValueAtCheckpoint {
    /// Not written since the checkpoint.
    Same,
    Known(U256),
    /// Not read yet.
    Unread,
}

/// The location of a slot's value.
pub(super) enum Slot {
    Known(U256),
    /// In the underlying state, in this generation.
    Underneath(u64),
}

/// EIP-161: zero nonce, zero balance, no code. Storage is not considered.
pub(super) fn is_empty(account: &AccountState) -> bool {
    account.nonce == 0 && account.balance.is_zero() && !account.has_code()
}

/// Converts an account loaded or created by revm. The account id is the generation, see `database`;
/// an account created by revm has no id, and its generation is not assigned yet.
pub(super) fn loaded(info: &AccountInfo) -> AccountState {
    AccountState {
        nonce: info.nonce,
        balance: info.balance,
        code_hash: info.code_hash,
        generation: info.account_id.unwrap_or_default() as u64,
    }
}

impl Entry {
    pub(super) fn new(origin: Option<AccountState>) -> Self {
        Self { origin, taken: origin, now: origin, ..Self::default() }
    }

    pub(super) fn account(&self) -> Option<AccountState> {
        self.now
    }

    pub(super) fn slot(&self, slot: &U256) -> Slot {
        match (self.slots.get(slot), self.origin) {
            (Some(slot), _) => Slot::Known(slot.now),
            (None, Some(origin)) if !self.wiped => Slot::Underneath(origin.generation),
            (None, _) => Slot::Known(U256::ZERO),
        }
    }

    /// Returns true if this is the first change since the last `take`.
    pub(super) fn mark_changed(&mut self) -> bool {
        !std::mem::replace(&mut self.changed, true)
    }

    pub(super) fn set_account(&mut self, account: AccountState) {
        // Callers cannot change the generation.
        let generation = self.now.map_or(0, |now| now.generation);
        self.now = Some(AccountState { generation, ..account });
    }

    pub(super) fn destroy(&mut self) {
        self.wipe();
        self.now = None;
    }

    pub(super) fn wipe(&mut self) {
        self.wiped = true;
        self.wiped_since = true;
        self.slots.clear();
        self.written.clear();
    }

    pub(super) fn reserve_slots(&mut self, count: usize) {
        self.slots.reserve(count);
        self.written.reserve(count);
    }

    /// `before` is the slot's previous value, if it was read.
    pub(super) fn set_slot(&mut self, slot: U256, value: U256, before: Option<U256>) {
        match self.slots.entry(slot) {
            MapEntry::Occupied(mut known) => {
                let known = known.get_mut();
                if let ValueAtCheckpoint::Same = known.at_checkpoint {
                    known.at_checkpoint = ValueAtCheckpoint::Known(known.now);
                    self.written.push(slot);
                }
                known.now = value;
            }
            MapEntry::Vacant(new) => {
                let at_checkpoint =
                    before.map_or(ValueAtCheckpoint::Unread, ValueAtCheckpoint::Known);
                new.insert(Written { now: value, at_checkpoint });
                self.written.push(slot);
            }
        }
    }

    /// The difference from the last `take`; `None` if there is none. `underneath` reads a slot in a
    /// generation of the underlying state.
    pub(super) fn change(
        &self,
        number: u64,
        underneath: impl Fn(u64, &U256) -> Result<U256>,
    ) -> Result<Option<AccountChange>> {
        let kept = self.taken.filter(|_| !self.wiped_since);
        let generation = kept.map_or(number, |taken| taken.generation);
        let after = self.now.map(|now| AccountState { generation, ..now });
        let mut change = AccountChange { before: self.taken, after, ..Default::default() };
        if after.is_some() {
            match kept {
                Some(_) => self.slots_of_same_life(&mut change, underneath)?,
                None => self.slots_of_new_life(&mut change, number),
            }
        }
        let same = change.before == change.after && change.slots.is_empty();
        Ok((!same).then_some(change))
    }

    fn slots_of_same_life(
        &self,
        change: &mut AccountChange,
        underneath: impl Fn(u64, &U256) -> Result<U256>,
    ) -> Result<()> {
        for slot in &self.written {
            let Some(Written { now, at_checkpoint }) = self.slots.get(slot) else { continue };
            let before = match (at_checkpoint, self.origin) {
                (ValueAtCheckpoint::Same, _) => *now,
                (ValueAtCheckpoint::Known(before), _) => *before,
                (ValueAtCheckpoint::Unread, Some(origin)) if !self.wiped => {
                    underneath(origin.generation, slot)?
                }
                (ValueAtCheckpoint::Unread, _) => U256::ZERO,
            };
            if *now != before {
                change.slots.insert(*slot, *now);
            }
        }
        Ok(())
    }

    /// Adds all non-zero slots, and explicit zeros for slots published earlier under the same
    /// number. This is correct both for readers that start from empty storage and for readers that
    /// overwrite existing values.
    fn slots_of_new_life(&self, change: &mut AccountChange, number: u64) {
        if let Some((generation, slots)) = &self.published_slots
            && *generation == number
        {
            change.slots.extend(slots.iter().map(|slot| (*slot, U256::ZERO)));
        }
        for (slot, Written { now, .. }) in &self.slots {
            if !now.is_zero() {
                change.slots.insert(*slot, *now);
            }
        }
    }

    /// Makes the returned `change` the new checkpoint.
    pub(super) fn taken(&mut self, change: Option<&AccountChange>, number: u64) {
        if let Some(AccountChange { after: Some(after), slots, .. }) = change {
            self.issue(after.generation, number, slots);
        }
        if let Some(change) = change {
            self.taken = change.after;
        }
        self.now = self.taken;
        self.wiped_since = false;
        for slot in self.written.drain(..) {
            if let Some(known) = self.slots.get_mut(&slot) {
                known.at_checkpoint = ValueAtCheckpoint::Same;
            }
        }
        self.changed = false;
    }

    fn issue(&mut self, generation: u64, number: u64, slots: &BTreeMap<U256, U256>) {
        let same_life = self
            .published_slots
            .as_ref()
            .is_some_and(|(published_slots, _)| *published_slots == generation);
        if !same_life {
            // A generation of the underlying state never equals a number assigned here.
            if generation != number {
                return;
            }
            self.published_slots = Some((generation, HashSet::default()));
        }
        let Some((_, stored)) = &mut self.published_slots else { return };
        for (slot, value) in slots {
            if value.is_zero() {
                stored.remove(slot);
            } else {
                stored.insert(*slot);
            }
        }
    }
}
