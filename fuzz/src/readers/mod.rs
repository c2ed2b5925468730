//! Readers of requests against a plain reader of JSON: what one takes means what the other says.
//!
//! The first byte of an input names the reader.

mod express;
mod hex;
mod params;
mod parts;

use serde::de::DeserializeOwned;

pub fn run(data: &[u8]) {
    let Some((kind, text)) = data.split_first() else { return };
    // The plain reader has a name of its own for numbers.
    if text.windows(12).any(|part| part == b"$serde_json:") {
        return;
    }
    match kind {
        b'e' => express::run(text),
        b'p' => parts::run(text),
        b'c' => params::calls(text),
        b's' => params::slots(text),
        b'o' => params::overrides(text),
        b'h' => hex::run(text),
        _ => {}
    }
}

/// The text as the plain reader has it, however deep; `None` when it is no JSON.
fn plain<T: DeserializeOwned>(text: &[u8]) -> Option<T> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    reader.disable_recursion_limit();
    let value = T::deserialize(&mut reader).ok()?;
    reader.end().ok()?;
    Some(value)
}
