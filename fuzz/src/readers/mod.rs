//! Fuzzes the request parsers against serde_json: an accepted text must have the same meaning.
//!
//! The first byte of an input selects the parser.

mod fast_path;
mod hex;
mod params;
mod parts;

use serde::de::DeserializeOwned;

pub fn run(data: &[u8]) {
    let Some((kind, text)) = data.split_first() else { return };
    match kind {
        b'e' => fast_path::run(text),
        b'p' => parts::run(text),
        b'c' => params::call(text),
        b'b' => params::simulation(text),
        b's' => params::slots(text),
        b'o' => params::overrides(text),
        b'h' => hex::run(text),
        _ => {}
    }
}

/// Parses the text with serde_json; `None` if it fails.
fn plain<T: DeserializeOwned>(text: &[u8]) -> Option<T> {
    serde_json::from_slice(text).ok()
}
