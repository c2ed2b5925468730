//! One account in an overlay.
//!
//! `origin` is what the state underneath says and never changes: storage that is not
//! known here is read there under its generation, unless it was wiped. `taken` is
//! the account as of the last `take`, `now` as of this moment.

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

#[derive(Debug, Default)]
pub(super) struct Entry {
    origin: Option<AccountState>,
    taken: Option<AccountState>,
    now: Option<AccountState>,
    /// The storage underneath is gone for good.
    wiped: bool,
    /// The storage was wiped since the last `take`.
    wiped_since: bool,
    /// Every slot written and not wiped since.
    slots: HashMap<U256, Written>,
    /// Those of them written since the last `take`, each once.
    written: Vec<U256>,
    /// The slots handed out, and not zero, under a generation that a `take` here has
    /// given. Another life under the same number has to clear them, since nothing
    /// else tells them from its own.
    published_slots: Option<(u64, HashSet<U256>)>,
    changed: bool,
}

/// A slot that was written here.
#[derive(Debug, Clone, Copy)]
struct Written {
    now: U256,
    at_checkpoint: ValueAtCheckpoint,
}

#[derive(Debug, Clone, Copy)]
enum ValueAtCheckpoint {
    /// The same as now: it was not written since.
    Same,
    Known(U256),
    /// Nobody has had to read it.
    Unread,
}

/// Where a slot's value is to be found.
pub(super) enum Slot {
    Known(U256),
    /// In the state underneath, in this life.
    Underneath(u64),
}

/// EIP-161: no nonce, no balance, no code. Storage does not count.
pub(super) fn is_empty(account: &AccountState) -> bool {
    account.nonce == 0 && account.balance.is_zero() && !account.has_code()
}

/// The account revm was given or has made. The id it carries is the generation, see
/// `database`; an account made by revm has none, and none is known yet.
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

    /// True when this is the first change since the last `take`.
    pub(super) fn mark_changed(&mut self) -> bool {
        !std::mem::replace(&mut self.changed, true)
    }

    pub(super) fn set_account(&mut self, account: AccountState) {
        // The generation is not the caller's to change.
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

    /// Makes room for `count` more slots.
    pub(super) fn reserve_slots(&mut self, count: usize) {
        self.slots.reserve(count);
        self.written.reserve(count);
    }

    /// `before` is the slot's value until now, if it was read.
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

    /// What is different from the last `take`; `None` when nothing is. `underneath`
    /// reads a slot of a life in the state underneath.
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

    /// The whole storage, and explicit zeros for what an earlier life has left under
    /// the same number: right for a reader that starts from nothing and for one that
    /// writes over what it has.
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

    /// `change` has been handed out: from here on it is what was.
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
            // A life from underneath never shares a number with a life begun here.
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
