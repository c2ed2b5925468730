//! Fuzzes the incremental splitting of long JSON texts.
//!
//! The first byte is the number of bytes per step minus one, the second the number of parts minus
//! one.

use std::fmt;

use foreblock_engine::params::parts::{Fault, Parts};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// The depth limit of the engine's parser.
const DEEPEST: usize = 1000;

pub fn run(input: &[u8]) {
    let Some(([bytes, parts], text)) = input.split_first_chunk::<2>() else { return };
    let (bytes, parts) = (usize::from(*bytes) + 1, usize::from(*parts) + 1);
    let plain = match serde_json::from_slice::<Items>(text) {
        Ok(items) => Plain::Items(items),
        Err(error) if is_beyond(&error) => Plain::Unknown,
        Err(_) => Plain::Nothing,
    };
    let Some(mut reader) = Parts::of(text) else {
        assert!(!matches!(plain, Plain::Items(_)), "an array or object was not begun");
        return;
    };
    let brackets = if reader.is_object() { [b'{', b'}'] } else { [b'[', b']'] };
    let mut taken = Vec::new();
    let ended = loop {
        if reader.is_done(text) {
            break Ok(());
        }
        match reader.take(text, bytes, parts) {
            Ok(portion) if portion.count > 0 && !matches!(plain, Plain::Unknown) => {
                assert!(portion.count <= parts);
                let inside = &text[portion.start..portion.end];
                let whole = [&brackets[..1], inside, &brackets[1..]].concat();
                let Items(items) = super::plain(&whole).expect("a portion stands by itself");
                assert_eq!(items.len(), portion.count);
                let last = &text[portion.value..portion.end];
                assert_eq!(super::plain::<Value>(last).as_ref(), items.last().map(|it| &it.1));
                taken.extend(items);
            }
            Ok(_) => {}
            Err(fault) => break Err(fault),
        }
    };
    match (ended, plain) {
        (Ok(()), Plain::Items(Items(items))) => {
            assert!(taken == items, "other parts than there are")
        }
        (Ok(()), Plain::Nothing) => panic!("no JSON was taken apart"),
        (Err(Fault::Malformed), Plain::Items(_)) => panic!("JSON was refused"),
        (Ok(()), Plain::Unknown) | (Err(Fault::Malformed), _) => {}
        (Err(Fault::TooDeep), _) => {
            let open = text.iter().filter(|byte| matches!(byte, b'[' | b'{')).count();
            assert!(open > DEEPEST);
        }
    }
}

/// The result of serde_json.
enum Plain {
    Items(Items),
    Nothing,
    /// serde_json has a lower depth limit and rejects numbers out of range.
    Unknown,
}

fn is_beyond(error: &serde_json::Error) -> bool {
    let why = error.to_string();
    why.starts_with("recursion limit") || why.starts_with("number out of range")
}

/// All items of an array or members of an object, including duplicates.
struct Items(Vec<(Option<String>, Value)>);

impl<'de> Deserialize<'de> for Items {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(ItemsVisitor)
    }
}

struct ItemsVisitor;

impl<'de> Visitor<'de> for ItemsVisitor {
    type Value = Items;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "an array or an object")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Items, A::Error> {
        let mut found = Vec::new();
        while let Some(item) = items.next_element()? {
            found.push((None, item));
        }
        Ok(Items(found))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Items, A::Error> {
        let mut found = Vec::new();
        while let Some((name, value)) = members.next_entry()? {
            found.push((Some(name), value));
        }
        Ok(Items(found))
    }
}
