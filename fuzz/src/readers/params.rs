//! Fuzzes the params of eth_call and eth_simulateV1.

use std::borrow::Cow;

use alloy_primitives::{Address, U256};
use foreblock_engine::params::{Call, CallParams, Calls, Limits, SimulateParams};
use serde_json::Value;

use super::{hex, plain};

const LIMITS: Limits = Limits { blocks: 4, block_calls: 8, calls: 16 };

/// The input is the params of a call.
pub fn call(text: &[u8]) {
    let Ok(read) = CallParams::read(text, 1, true) else { return };
    let Some(params) = plain::<Value>(text) else { return };
    compare(&params[0], &read.call);
    assert_eq!(read.block.is_some(), params.get(1).is_some_and(|block| !block.is_null()));
}

/// The input is the state overrides of a call.
pub fn overrides(text: &[u8]) {
    call(&[b"[{},null,", text, b"]"].concat());
}

/// The input is the slots of an account.
pub fn slots(text: &[u8]) {
    let account = br#"{"0x00000000000000000000000000000000000000aa":{"stateDiff":"#;
    overrides(&[account, text, b"}}"].concat());
}

/// The input is the params of a simulation.
pub fn simulation(text: &[u8]) {
    let Ok(read) = SimulateParams::read(text, 1, LIMITS) else { return };
    let Some(params) = plain::<Value>(text) else { return };
    let blocks = params[0]["blockStateCalls"].as_array().expect("blocks are a list");
    assert_eq!(blocks.len(), read.blocks.len());
    for (block, read) in blocks.iter().zip(&read.blocks) {
        let calls = block["calls"].as_array().map(Cow::Borrowed).unwrap_or_default();
        match &read.calls {
            Calls::Plain(found) => assert_eq!(calls.len(), found.len()),
            Calls::Any(found) => {
                assert_eq!(calls.len(), found.len());
                calls.iter().zip(found).for_each(|(call, found)| compare(call, found));
            }
        }
    }
}

/// Of duplicate names, both serde_json and the engine use the last.
fn compare(plain: &Value, call: &Call) {
    let text = |name| plain[name].as_str();
    assert_eq!(text("from").map_or(Some(Address::ZERO), address), Some(call.from));
    assert_eq!(text("to").map(|text| address(text).expect("an address")), call.to);
    let value = text("value").map_or(Some(U256::ZERO), |text| quantity(text, 256));
    assert_eq!(value, Some(call.value));
    let data = text("input").or(text("data")).filter(|text| !text.is_empty());
    let data = data.map_or(Some(Vec::new()), |text| hex::bytes(digits(text)?));
    assert_eq!(data.as_deref(), Some(&call.data[..]));
    let gas = text("gas").map(|text| quantity(text, 64).expect("a number"));
    assert_eq!(gas, call.gas.map(U256::from));
}

fn digits(text: &str) -> Option<&str> {
    text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))
}

fn quantity(text: &str, bits: usize) -> Option<U256> {
    hex::quantity(digits(text)?, bits)
}

fn address(text: &str) -> Option<Address> {
    Address::try_from(hex::bytes(digits(text)?)?.as_slice()).ok()
}
