//! The requests that are asked most.

use alloy_primitives::Address;
use foreblock_engine::express::{self, Asked, Call, Question, Tag};
use serde_json::Value;

use super::{hex, plain};

const MOST: usize = 16;

pub fn run(body: &[u8]) {
    let Some((asked, batch)) = express::read(body, MOST) else { return };
    assert!(!asked.is_empty() && asked.len() <= MOST + 1);
    let body: Value = plain(body).expect("what is recognised is JSON");
    match &body {
        Value::Array(items) => {
            assert!(batch);
            assert_eq!(items.len(), asked.len());
            items.iter().zip(&asked).for_each(|(item, asked)| compare(item, asked));
        }
        item => {
            assert!(!batch);
            compare(item, &asked[0]);
        }
    }
}

fn compare(item: &Value, asked: &Asked<'_>) {
    let members = item.as_object().expect("a request is an object");
    assert_eq!(members.len(), 4);
    assert_eq!(item["jsonrpc"], "2.0");
    assert_eq!(plain::<Value>(asked.id).as_ref(), Some(&item["id"]));
    assert!(item["id"].is_string() || item["id"].is_number());
    let params = item["params"].as_array().expect("parameters in a list");
    assert_eq!(params.len(), 2);
    let method = item["method"].as_str();
    match asked.question {
        Question::Balance { address, at } => {
            assert_eq!(method, Some("eth_getBalance"));
            assert_eq!(Some(address), as_address(&params[0]));
            assert_eq!(params[1], tag(at));
        }
        Question::Block { at, full } => {
            assert_eq!(method, Some("eth_getBlockByNumber"));
            assert_eq!(params[0], tag(at));
            assert_eq!(params[1], full);
        }
        Question::Call { call, at } => {
            assert_eq!(method, Some("eth_call"));
            compare_call(&params[0], &call);
            assert_eq!(params[1], tag(at));
        }
    }
}

fn compare_call(plain: &Value, call: &Call<'_>) {
    let members = plain.as_object().expect("a call is an object");
    assert!(members.keys().all(|name| ["from", "to", "data", "input"].contains(&name.as_str())));
    assert_eq!(as_address(&plain["to"]), Some(call.to));
    let from = members.get("from").map_or(Some(Address::ZERO), as_address);
    assert_eq!(from, Some(call.from));
    let data = members.get("data").or(members.get("input"));
    assert!(!(members.contains_key("data") && members.contains_key("input")));
    let data = data.map_or(Some(Vec::new()), as_bytes);
    assert_eq!(call.data().map(|data| data.to_vec()), data);
}

fn tag(at: Tag) -> &'static str {
    match at {
        Tag::Latest => "latest",
        Tag::Pending => "pending",
    }
}

fn as_bytes(value: &Value) -> Option<Vec<u8>> {
    hex::bytes(value.as_str()?.strip_prefix("0x")?)
}

fn as_address(value: &Value) -> Option<Address> {
    Address::try_from(as_bytes(value)?.as_slice()).ok()
}
