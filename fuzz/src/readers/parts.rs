//! Long texts taken apart a stretch at a time.
//!
//! The first byte says how long a stretch is, the second how many parts are taken at a time.

use std::fmt;

use foreblock_engine::json_parts::{Fault, Parts};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::plain;

/// How deep the reader goes.
const DEEPEST: usize = 1000;

pub fn run(input: &[u8]) {
    let Some(([bytes, parts], text)) = input.split_first_chunk::<2>() else { return };
    let (bytes, parts) = (usize::from(*bytes) + 1, usize::from(*parts) + 1);
    let plain = plain::<Items>(text);
    let Some(mut reader) = Parts::of(text) else {
        assert!(plain.is_none(), "an array or object was not begun");
        return;
    };
    let brackets = if reader.is_object() { [b'{', b'}'] } else { [b'[', b']'] };
    let mut taken = Vec::new();
    let ended = loop {
        if reader.is_done(text) {
            break Ok(());
        }
        match reader.take(text, bytes, parts) {
            Ok(portion) if portion.count > 0 => {
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
        (Ok(()), Some(Items(items))) => assert!(taken == items, "other parts than there are"),
        (Ok(()), None) => panic!("no JSON was taken apart"),
        (Err(Fault::Malformed), plain) => assert!(plain.is_none(), "JSON was refused"),
        (Err(Fault::TooDeep), _) => {
            let open = text.iter().filter(|byte| matches!(byte, b'[' | b'{')).count();
            assert!(open > DEEPEST);
        }
    }
}

/// The items of an array or the members of an object, none left out.
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
