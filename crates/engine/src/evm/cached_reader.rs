//! A state reader with a cache, for building consecutive blocks.
//!
//! The underlying state is immutable, so entries cannot become stale. Most blocks read the same few
//! accounts and slots, and each uncached read passes through the deltas of all blocks that are not
//! yet folded into the base state. Code is cached separately (`code_cache`).

use std::cell::RefCell;

use alloy_primitives::map::{AddressMap, HashMap};
use alloy_primitives::{Address, B256, Bytes, U256};

use crate::error::Result;
use crate::state::{AccountState, StateReader};

/// Maximum number of cached accounts, and of cached slots. A full cache is cleared.
const MOST: usize = 1 << 15;

/// A slot in one generation of an account.
type Place = (Address, u64, U256);

pub struct CachedReader<R> {
    state: R,
    accounts: RefCell<AddressMap<Option<AccountState>>>,
    slots: RefCell<HashMap<Place, U256>>,
}

impl<R> CachedReader<R> {
    pub fn new(state: R) -> Self {
        Self { state, accounts: RefCell::default(), slots: RefCell::default() }
    }
}

impl<R: StateReader> StateReader for CachedReader<R> {
    fn account(&self, address: &Address) -> Result<Option<AccountState>> {
        if let Some(known) = self.accounts.borrow().get(address) {
            return Ok(*known);
        }
        let found = self.state.account(address)?;
        let mut accounts = self.accounts.borrow_mut();
        if accounts.len() >= MOST {
            accounts.clear();
        }
        accounts.insert(*address, found);
        Ok(found)
    }

    fn storage(&self, address: &Address, generation: u64, slot: &U256) -> Result<U256> {
        let place = (*address, generation, *slot);
        if let Some(known) = self.slots.borrow().get(&place) {
            return Ok(*known);
        }
        let found = self.state.storage(address, generation, slot)?;
        let mut slots = self.slots.borrow_mut();
        if slots.len() >= MOST {
            slots.clear();
        }
        slots.insert(place, found);
        Ok(found)
    }

    fn code(&self, hash: &B256) -> Result<Bytes> {
        self.state.code(hash)
    }

    fn block_hash(&self, number: u64) -> Result<B256> {
        self.state.block_hash(number)
    }

    fn shares_codes(&self) -> bool {
        self.state.shares_codes()
    }

    fn may_miss(&self) -> bool {
        self.state.may_miss()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::error::Error;

    /// Counts reads. A slot's value is the sum of slot, generation and address; a nonce is the
    /// address.
    #[derive(Default)]
    struct Counted {
        reads: Cell<usize>,
        fails: bool,
    }

    impl Counted {
        fn read<T>(&self, found: T) -> Result<T> {
            self.reads.set(self.reads.get() + 1);
            if self.fails { Err(Error::StoreClosed) } else { Ok(found) }
        }
    }

    impl StateReader for Counted {
        fn account(&self, address: &Address) -> Result<Option<AccountState>> {
            let nonce = u64::from(address.0[0]);
            self.read((nonce > 0).then_some(AccountState { nonce, ..AccountState::EMPTY }))
        }

        fn storage(&self, address: &Address, generation: u64, slot: &U256) -> Result<U256> {
            self.read(*slot + U256::from(generation) + U256::from(address.0[0]))
        }

        fn code(&self, _: &B256) -> Result<Bytes> {
            self.read(Bytes::new())
        }

        fn block_hash(&self, _: u64) -> Result<B256> {
            self.read(B256::ZERO)
        }
    }

    #[test]
    fn each_account_and_each_slot_of_a_life_is_read_once() {
        let state = CachedReader::new(Counted::default());
        for round in 0..2 {
            for number in 0..4 {
                let address = Address::repeat_byte(number);
                let plain = Counted::default();
                assert_eq!(state.account(&address), plain.account(&address));
                for (generation, slot) in [(1, 1), (1, 2), (2, 1)] {
                    let slot = U256::from(slot);
                    assert_eq!(
                        state.storage(&address, generation, &slot),
                        plain.storage(&address, generation, &slot),
                    );
                }
            }
            assert_eq!(state.state.reads.get(), 16, "in round {round}");
        }
    }

    #[test]
    fn what_failed_is_read_again() {
        let state = CachedReader::new(Counted { fails: true, ..Counted::default() });
        for _ in 0..2 {
            assert_eq!(state.account(&Address::ZERO), Err(Error::StoreClosed));
            assert_eq!(state.storage(&Address::ZERO, 0, &U256::ZERO), Err(Error::StoreClosed));
        }
        assert_eq!(state.state.reads.get(), 4);
    }

    #[test]
    fn no_more_is_remembered_than_a_bound() {
        let state = CachedReader::new(Counted::default());
        for number in 0..=MOST as u64 {
            let address = Address::left_padding_from(&number.to_be_bytes());
            state.account(&address).unwrap();
            state.storage(&address, 0, &U256::from(number)).unwrap();
        }
        assert_eq!(state.accounts.borrow().len(), 1);
        assert_eq!(state.slots.borrow().len(), 1);
    }
}
