//! State overrides, read from JSON at once.

use std::collections::BTreeMap;

use alloy_primitives::Address;

use super::{hex, slots};
use crate::evm::overlay::Override;
use crate::json_text::Text;

/// The overrides of an object of accounts, in the order of their addresses.
///
/// `None` for everything that is not this alone: an account that is there twice, in either
/// letter case, one with both `state` and `stateDiff`, one that says anything else.
pub fn parse(text: &[u8]) -> Option<Vec<(Address, Override)>> {
    let mut text = Text::new(text);
    if text.word(b"null").is_some() {
        text.end()?;
        return Some(Vec::new());
    }
    let mut accounts = BTreeMap::new();
    text.list(*b"{}", |text| {
        let address = Address::new(hex::fixed(text.string()?)?);
        text.sign(b':')?;
        let account =
            if text.word(b"null").is_some() { Override::default() } else { account(text)? };
        accounts.insert(address, account).is_none().then_some(())
    })?;
    text.end()?;
    Some(accounts.into_iter().collect())
}

fn account(text: &mut Text<'_>) -> Option<Override> {
    let mut account = Override::default();
    text.list(*b"{}", |text| {
        let name = text.string()?;
        text.sign(b':')?;
        let is_first = match name {
            b"balance" => account.balance.replace(hex::quantity(text.string()?, 256)?).is_none(),
            b"nonce" => {
                let nonce = hex::quantity(text.string()?, 64)?;
                account.nonce.replace(nonce.saturating_to()).is_none()
            }
            b"code" => account.code.replace(hex::data(text.string()?)?.into()).is_none(),
            b"state" => account.state.replace(slots::object(text)?).is_none(),
            b"stateDiff" => account.state_diff.replace(slots::object(text)?).is_none(),
            _ => return None,
        };
        is_first.then_some(())
    })?;
    let both = account.state.is_some() && account.state_diff.is_some();
    (!both).then_some(account)
}
