//! The accounts of an overlay by address.
//!
//! Entries are boxed: a growing map moves its values, which takes milliseconds for tens of
//! thousands of overridden accounts.

use std::{
    mem,
    ops::{Deref, DerefMut},
    thread,
};

use alloy_primitives::map::AddressMap;

use super::entry::Entry;

/// More accounts than this are freed on another thread, because that takes milliseconds.
const MANY: usize = 4096;

#[derive(Debug, Clone, Default)]
pub(super) struct Accounts(AddressMap<Box<Entry>>);

impl Deref for Accounts {
    type Target = AddressMap<Box<Entry>>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Accounts {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl Drop for Accounts {
    fn drop(&mut self) {
        if self.0.len() > MANY {
            let accounts = mem::take(&mut self.0);
            // If no thread can be started, the closure and its accounts are dropped here.
            let _ = thread::Builder::new().spawn(move || drop(accounts));
        }
    }
}
