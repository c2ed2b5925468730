//! Plain calls, slots and overrides.
//!
//! Names that come twice are counted here, because the plain reader keeps the last one only.

use std::collections::BTreeMap;

use alloy_primitives::{Address, U256};
use foreblock_engine::evm::overlay::Override;
use foreblock_engine::params;
use serde_json::Value;

use super::{hex, plain};

pub fn calls(text: &[u8]) {
    let Some(calls) = params::plain_calls::parse(text) else { return };
    let plain: Vec<Value> = plain(text).expect("what is read is a list");
    assert_eq!(calls.len(), plain.len());
    for (call, plain) in calls.iter().zip(&plain) {
        let members = plain.as_object().expect("a call is an object");
        let known = ["from", "to", "value", "data", "input", "gas"];
        assert!(members.keys().all(|name| known.contains(&name.as_str())));
        let member = |name| members.get(name).filter(|value| !value.is_null());
        let from = member("from").map_or(Some(Address::ZERO), as_address);
        assert_eq!(from, Some(call.message.from));
        assert_eq!(member("to").and_then(as_address), call.message.to);
        assert_eq!(member("to").is_some(), call.message.to.is_some());
        let value = member("value").map_or(Some(U256::ZERO), |value| as_quantity(value, 256));
        assert_eq!(value, Some(call.message.value));
        let data = member("data").or(member("input")).map_or(Some(Vec::new()), as_bytes);
        assert_eq!(data, Some(call.message.data.to_vec()));
        assert!(member("data").is_none() || member("input").is_none());
        assert_eq!(member("gas").and_then(|gas| as_quantity(gas, 64)), call.gas.map(U256::from));
        assert_eq!(member("gas").is_some(), call.gas.is_some());
    }
}

pub fn slots(text: &[u8]) {
    let Some(slots) = params::slots::parse(text) else { return };
    let plain: Value = plain(text).expect("what is read is JSON");
    compare_slots(&plain, &slots);
}

fn compare_slots(plain: &Value, slots: &[(U256, U256)]) {
    let members = plain.as_object().expect("slots are an object");
    let found: BTreeMap<U256, U256> = slots.iter().copied().collect();
    // Two spellings of one slot are two names, and which comes last only the text knows.
    let names: BTreeMap<U256, Vec<U256>> =
        members.iter().fold(BTreeMap::new(), |mut names, (name, value)| {
            let slot = word(name).expect("a slot is a word");
            let value = value.as_str().and_then(word).expect("a value is a word");
            names.entry(slot).or_insert_with(Vec::new).push(value);
            names
        });
    assert_eq!(found.len(), names.len());
    for (slot, value) in found {
        assert!(names[&slot].contains(&value));
    }
}

pub fn overrides(text: &[u8]) {
    let Some(overrides) = params::overrides::parse(text) else { return };
    let plain: Value = plain(text).expect("what is read is JSON");
    if plain.is_null() {
        return assert!(overrides.is_empty());
    }
    let members = plain.as_object().expect("overrides are an object");
    assert_eq!(members.len(), overrides.len());
    let plain: BTreeMap<Address, &Value> = members
        .iter()
        .map(|(name, account)| (address(name).expect("an address"), account))
        .collect();
    for (address, account) in &overrides {
        compare_override(plain[address], account);
    }
}

fn compare_override(plain: &Value, account: &Override) {
    let Some(members) = plain.as_object() else {
        assert!(plain.is_null());
        return assert_eq!(format!("{account:?}"), format!("{:?}", Override::default()));
    };
    let known = ["balance", "nonce", "code", "state", "stateDiff"];
    assert!(members.keys().all(|name| known.contains(&name.as_str())));
    let balance = members.get("balance").map(|value| as_quantity(value, 256).expect("a number"));
    assert_eq!(account.balance, balance);
    let nonce = members.get("nonce").map(|value| as_quantity(value, 64).expect("a number"));
    assert_eq!(account.nonce.map(U256::from), nonce);
    let code = members.get("code").map(|value| as_bytes(value).expect("data"));
    assert_eq!(account.code.as_ref().map(|code| code.to_vec()), code);
    for (name, slots) in [("state", &account.state), ("stateDiff", &account.state_diff)] {
        assert_eq!(members.contains_key(name), slots.is_some());
        if let Some(slots) = slots {
            compare_slots(&members[name], slots);
        }
    }
}

fn digits(text: &str) -> Option<&str> {
    text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))
}

fn as_bytes(value: &Value) -> Option<Vec<u8>> {
    hex::bytes(digits(value.as_str()?)?)
}

fn as_address(value: &Value) -> Option<Address> {
    address(value.as_str()?)
}

fn as_quantity(value: &Value, bits: usize) -> Option<U256> {
    hex::quantity(digits(value.as_str()?)?, bits)
}

fn address(text: &str) -> Option<Address> {
    Address::try_from(hex::bytes(digits(text)?)?.as_slice()).ok()
}

fn word(text: &str) -> Option<U256> {
    let bytes = hex::bytes(digits(text)?)?;
    (bytes.len() == 32).then(|| U256::from_be_slice(&bytes))
}
