//! State reads for recorders inside a run, which do not change the journal or warm anything.

use alloy_primitives::{Address, Bytes, U256};
use revm::{
    Context, Database as _,
    context::{Block, Cfg, ContextTr, Journal, LocalContextTr, Transaction},
    inspector::JournalExt,
};

use crate::evm::{database::Database, instructions::Watched};

/// The prefix of delegating code (EIP-7702), and its total length.
const DELEGATION: [u8; 3] = [0xef, 0x01, 0x00];
const DELEGATION_BYTES: usize = 23;

/// The target of delegating code; `None` for other code.
pub(crate) fn delegation_of(code: &[u8]) -> Option<Address> {
    let points = code.len() == DELEGATION_BYTES && code.starts_with(&DELEGATION);
    points.then(|| Address::from_slice(&code[DELEGATION.len()..]))
}

/// A context that recorders can read: both context types.
pub(crate) trait Traced: Watched + ContextTr<Journal: JournalExt> {
    /// The current value of a slot; `None` if it cannot be read.
    fn slot(&mut self, address: Address, slot: U256) -> Option<U256>;
    fn nonce(&mut self, address: Address) -> u64;
    /// The delegation target of an account.
    fn delegation(&mut self, address: Address) -> Option<Address>;
    fn is_warm_account(&mut self, address: Address) -> bool;
    fn is_warm_slot(&mut self, address: Address, slot: U256) -> bool;
    /// True if nonce, balance and code are empty.
    fn is_empty_account(&mut self, address: Address) -> bool;
    fn balance_of(&mut self, address: Address) -> U256;
    /// The value of a slot before the transaction.
    fn original_slot(&mut self, address: Address, slot: U256) -> Option<U256>;
}

impl<BLOCK, TX, CFG, CHAIN, LOCAL> Traced
    for Context<BLOCK, TX, CFG, Database, Journal<Database>, CHAIN, LOCAL>
where
    BLOCK: Block,
    TX: Transaction,
    CFG: Cfg,
    LOCAL: LocalContextTr,
{
    fn slot(&mut self, address: Address, slot: U256) -> Option<U256> {
        let journal = &mut self.journaled_state;
        if let Some(account) = journal.inner.state.get(&address) {
            if let Some(value) = account.storage.get(&slot) {
                return Some(value.present_value);
            }
            if account.is_created() {
                return Some(U256::ZERO);
            }
        }
        journal.database.storage(address, slot).ok()
    }

    fn nonce(&mut self, address: Address) -> u64 {
        let journal = &mut self.journaled_state;
        match journal.inner.state.get(&address) {
            Some(account) => account.info.nonce,
            None => match journal.database.basic(address) {
                Ok(Some(info)) => info.nonce,
                _ => 0,
            },
        }
    }

    fn delegation(&mut self, address: Address) -> Option<Address> {
        let journal = &mut self.journaled_state;
        let known = journal.inner.state.get(&address).map(|account| account.info.clone());
        let info = match known {
            Some(info) => info,
            None => journal.database.basic(address).ok().flatten()?,
        };
        let code: Bytes = match info.code {
            Some(code) => code.original_bytes(),
            None => journal.database.code_by_hash(info.code_hash).ok()?.original_bytes(),
        };
        delegation_of(&code)
    }

    fn is_warm_account(&mut self, address: Address) -> bool {
        let inner = &self.journaled_state.inner;
        if !inner.warm_addresses.is_cold(&address) {
            return true;
        }
        let transaction = inner.transaction_id;
        inner
            .state
            .get(&address)
            .is_some_and(|account| !account.is_cold_transaction_id(transaction))
    }

    fn is_warm_slot(&mut self, address: Address, slot: U256) -> bool {
        let inner = &self.journaled_state.inner;
        if inner.warm_addresses.is_storage_warm(&address, &slot) {
            return true;
        }
        let transaction = inner.transaction_id;
        inner.state.get(&address).is_some_and(|account| {
            account
                .storage
                .get(&slot)
                .is_some_and(|value| !value.is_cold_transaction_id(transaction))
        })
    }

    fn is_empty_account(&mut self, address: Address) -> bool {
        let journal = &mut self.journaled_state;
        match journal.inner.state.get(&address) {
            Some(account) => account.is_empty(),
            None => match journal.database.basic(address) {
                Ok(Some(info)) => info.is_empty(),
                _ => true,
            },
        }
    }

    fn balance_of(&mut self, address: Address) -> U256 {
        let journal = &mut self.journaled_state;
        match journal.inner.state.get(&address) {
            Some(account) => account.info.balance,
            None => match journal.database.basic(address) {
                Ok(Some(info)) => info.balance,
                _ => U256::ZERO,
            },
        }
    }

    fn original_slot(&mut self, address: Address, slot: U256) -> Option<U256> {
        let account = self.journaled_state.inner.state.get(&address);
        match account.and_then(|account| account.storage.get(&slot)) {
            Some(value) => Some(value.original_value),
            None => self.slot(address, slot),
        }
    }
}
