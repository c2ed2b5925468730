//! Calls that say no more than who calls whom with what.

use alloy_primitives::Address;

use super::hex;
use crate::evm::message::Message;
use crate::json_text::Text;
use crate::simulate::body::PlainCall;

/// An array of call objects; `None` for everything else.
pub fn parse(text: &[u8]) -> Option<Vec<PlainCall>> {
    let mut text = Text::new(text);
    let mut calls = Vec::new();
    text.list(*b"[]", |text| {
        calls.push(Texts::parse(text)?.read()?);
        Some(())
    })?;
    text.end()?;
    Some(calls)
}

/// What JSON says of a call.
#[derive(Default)]
struct Texts<'a> {
    sender: Option<&'a [u8]>,
    to: Option<&'a [u8]>,
    value: Option<&'a [u8]>,
    data: Option<&'a [u8]>,
    gas: Option<&'a [u8]>,
}

impl<'a> Texts<'a> {
    /// The texts of an object that says nothing twice and nothing else; null says nothing.
    fn parse(text: &mut Text<'a>) -> Option<Self> {
        let mut texts = Self::default();
        text.list(*b"{}", |text| {
            let field = match text.string()? {
                b"from" => &mut texts.sender,
                b"to" => &mut texts.to,
                b"value" => &mut texts.value,
                b"data" | b"input" => &mut texts.data,
                b"gas" => &mut texts.gas,
                _ => return None,
            };
            text.sign(b':')?;
            match text.word(b"null") {
                None => field.replace(text.string()?).is_none().then_some(()),
                Some(()) => field.is_none().then_some(()),
            }
        })?;
        Some(texts)
    }

    fn read(&self) -> Option<PlainCall> {
        let message = Message {
            from: optional(self.sender, hex::fixed)?.map(Address::new).unwrap_or_default(),
            to: optional(self.to, hex::fixed)?.map(Address::new),
            value: optional(self.value, |text| hex::quantity(text, 256))?.unwrap_or_default(),
            data: optional(self.data, hex::data)?.unwrap_or_default().into(),
            ..Message::default()
        };
        let gas = optional(self.gas, |text| hex::quantity(text, 64))?;
        Some(PlainCall { message, gas: gas.map(|gas| gas.saturating_to()) })
    }
}

/// What is read of a text that is there; `None` when it cannot be read.
fn optional<T>(text: Option<&[u8]>, read: impl FnOnce(&[u8]) -> Option<T>) -> Option<Option<T>> {
    match text {
        None => Some(None),
        Some(text) => read(text).map(Some),
    }
}
