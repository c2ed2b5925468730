//! Parity's stateDiff: the changes of a run by account.

use alloy_primitives::{Address, B256, Bytes, U256};
use revm::state::{Account, AccountInfo, EvmState};

use super::text::Text;
use crate::{
    codec::json::{data, member, quantity, wide_quantity},
    error::Result,
    evm::overlay::Overlay,
};

/// `overlay` must not contain the effects of the run.
pub(crate) fn write(text: &mut Text, state: &EvmState, overlay: &Overlay) -> Result<()> {
    let mut accounts: Vec<_> = state.iter().filter(|(_, account)| account.is_touched()).collect();
    accounts.sort_unstable_by_key(|(address, _)| **address);
    let mut first = true;
    text.push(b"{");
    for (address, account) in accounts {
        let change = Change::of(account);
        if !change.differs() {
            continue;
        }
        if !std::mem::take(&mut first) {
            text.push(b",");
        }
        change.write(text, address, overlay)?;
    }
    text.push(b"}");
    Ok(())
}

struct Change<'a> {
    account: &'a Account,
    existed: bool,
    exists: bool,
    slots: Vec<(U256, U256, U256)>,
}

impl<'a> Change<'a> {
    fn of(account: &'a Account) -> Self {
        let existed = !account.is_loaded_as_not_existing();
        let exists = !account.is_selfdestructed() && (!account.is_empty() || account.is_created());
        let mut slots: Vec<_> = account
            .changed_storage_slots()
            .map(|(slot, value)| (*slot, value.original_value, value.present_value))
            .collect();
        slots.sort_unstable();
        Self { account, existed, exists, slots }
    }

    fn differs(&self) -> bool {
        let (was, is) = (&self.account.original_info, &self.account.info);
        self.existed != self.exists
            || self.exists
                && (was.balance != is.balance
                    || was.nonce != is.nonce
                    || was.code_hash != is.code_hash
                    || !self.slots.is_empty())
    }

    fn write(&self, text: &mut Text, address: &Address, overlay: &Overlay) -> Result<()> {
        let (was, is) = (&self.account.original_info, &self.account.info);
        let out = text.out();
        data(out, address);
        out.extend_from_slice(b":{\"balance\":");
        self.field(out, was.balance, is.balance, wide_quantity);
        out.extend_from_slice(b",\"code\":");
        let code = |info: &AccountInfo| match &info.code {
            Some(code) => Ok(code.original_bytes()),
            None => overlay.code_by_hash(info.code_hash).map(|code| code.original_bytes()),
        };
        self.field(out, code(was)?, code(is)?, |out, code: Bytes| data(out, code));
        out.extend_from_slice(b",\"nonce\":");
        self.field(out, was.nonce, is.nonce, quantity);
        out.extend_from_slice(b",\"storage\":{");
        let slots: &[_] = if self.exists { &self.slots } else { &[] };
        for (place, (slot, before, after)) in slots.iter().enumerate() {
            let out = text.out();
            if place > 0 {
                out.push(b',');
            }
            data(out, B256::from(*slot));
            out.push(b':');
            let word = |out: &mut Vec<u8>, word: U256| data(out, B256::from(word));
            self.field(out, *before, *after, word);
        }
        text.push(b"}}");
        Ok(())
    }

    fn field<T: PartialEq>(
        &self,
        out: &mut Vec<u8>,
        was: T,
        is: T,
        write: impl Fn(&mut Vec<u8>, T),
    ) {
        match (self.existed, self.exists) {
            (true, true) if was == is => return out.extend_from_slice(b"\"=\""),
            (true, true) => {
                member(out, b"{\"*\":{\"from\":", |out| write(out, was));
                member(out, b",\"to\":", |out| write(out, is));
                out.push(b'}');
            }
            (true, false) => member(out, b"{\"-\":", |out| write(out, was)),
            (false, _) => member(out, b"{\"+\":", |out| write(out, is)),
        }
        out.push(b'}');
    }
}
