//! The accounts of an overlay by address.
//!
//! Each lies in a place of its own: a map that grows moves everything in it, which for tens
//! of thousands of overridden accounts would take milliseconds for the next one.

use std::{
    mem,
    ops::{Deref, DerefMut},
    thread,
};

use alloy_primitives::map::AddressMap;

use super::entry::Entry;

/// More accounts than this are freed by another thread, because it takes milliseconds.
const MANY: usize = 4096;

#[derive(Debug, Default)]
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
            // Where no thread can be had, what it was given is dropped here.
            let _ = thread::Builder::new().spawn(move || drop(accounts));
        }
    }
}
