//! Slots and their values, read from JSON at once: an override may bring a hundred thousand.

use alloy_primitives::U256;

use super::hex;
use crate::json_text::Text;

/// Quote, prefix, digits and quote of a word.
const WORD_TEXT: usize = 68;

/// An object of words and nothing else.
pub fn parse(text: &[u8]) -> Option<Vec<(U256, U256)>> {
    let mut text = Text::new(text);
    let slots = object(&mut text)?;
    text.end()?;
    Some(slots)
}

/// An object of words; `None` for everything else.
pub fn object(text: &mut Text<'_>) -> Option<Vec<(U256, U256)>> {
    let mut slots = Vec::with_capacity(text.left() / (2 * WORD_TEXT));
    text.list(*b"{}", |text| {
        let slot = word(text)?;
        text.sign(b':')?;
        slots.push((slot, word(text)?));
        Some(())
    })?;
    Some(slots)
}

fn word(text: &mut Text<'_>) -> Option<U256> {
    text.string().and_then(hex::fixed::<32>).map(U256::from_be_bytes)
}
