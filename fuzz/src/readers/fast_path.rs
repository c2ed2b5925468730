//! Fuzzes the request parser of the fast path.

use alloy_primitives::Address;
use foreblock_engine::{
    fast_path::{self, Asked, Blocks, End, LogQuery, Question, Tag},
    params::{Call, Calls, Limits, SimulateParams, read_plain},
};
use serde_json::Value;

use super::{hex, plain};

const MOST: usize = 16;

pub fn run(body: &[u8]) {
    let Some((asked, batch)) = fast_path::read(body, MOST) else { return };
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
    let method = item["method"].as_str();
    let count = match &asked.question {
        Question::Receipt { .. } | Question::Logs { .. } => 1,
        Question::Balance { .. }
        | Question::Block { .. }
        | Question::Call { .. }
        | Question::Simulation { .. } => 2,
    };
    assert_eq!(params.len(), count);
    match &asked.question {
        Question::Balance { address, at } => {
            assert_eq!(method, Some("eth_getBalance"));
            assert_eq!(Some(*address), as_address(&params[0]));
            assert_eq!(params[1], tag(*at));
        }
        Question::Block { at, full } => {
            assert_eq!(method, Some("eth_getBlockByNumber"));
            assert_eq!(params[0], tag(*at));
            assert_eq!(params[1], *full);
        }
        Question::Call { call, at } => {
            assert_eq!(method, Some("eth_call"));
            compare_call(&params[0], call);
            assert_eq!(params[1], tag(*at));
        }
        Question::Simulation { payload, at } => {
            assert_eq!(method, Some("eth_simulateV1"));
            assert_eq!(plain::<Value>(payload).as_ref(), Some(&params[0]));
            compare_simulation(payload);
            assert_eq!(params[1], tag(*at));
        }
        Question::Receipt { transaction } => {
            assert_eq!(method, Some("eth_getTransactionReceipt"));
            assert_eq!(as_bytes(&params[0]).as_deref(), Some(transaction.as_slice()));
        }
        Question::Logs { query } => {
            assert_eq!(method, Some("eth_getLogs"));
            compare_query(&params[0], query);
        }
    }
}

/// A payload that is read here is read by the general path, with the same contents.
fn compare_simulation(payload: &[u8]) {
    let limits = Limits { blocks: MOST, block_calls: MOST, calls: MOST };
    let Some(blocks) = read_plain(payload, limits) else { return };
    let params = [b"[", payload, b"]"].concat();
    let read = SimulateParams::read(&params, 1, limits).expect("valid params");
    assert!(!read.validation && !read.trace_transfers && !read.full_transactions);
    assert_eq!(blocks.len(), read.blocks.len());
    for (plain, block) in blocks.iter().zip(read.blocks) {
        let Calls::Plain(calls) = block.calls else { panic!("a call that is not plain") };
        assert_eq!(plain.calls.len(), calls.len());
        assert!(block.changes.is_none());
        assert_eq!(plain.overrides.is_none(), block.overrides.is_empty());
    }
}

fn compare_query(plain: &Value, query: &LogQuery) {
    let values = |value: &Value| match value {
        Value::Null => Vec::new(),
        Value::Array(items) => items.iter().map(as_bytes).collect(),
        one => vec![as_bytes(one)],
    };
    let found: Vec<_> = query.addresses.iter().map(|each| Some(each.to_vec())).collect();
    assert_eq!(values(&plain["address"]), found);
    let topics = plain["topics"].as_array().cloned().unwrap_or_default();
    assert_eq!(topics.len(), query.topics.len());
    for (topic, read) in topics.iter().zip(&query.topics) {
        assert_eq!(values(topic), read.iter().map(|it| Some(it.to_vec())).collect::<Vec<_>>());
    }
    let end = |value: &Value| match value.as_str() {
        None | Some("latest") => End::Latest,
        Some(text) => {
            let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
            End::Number(u64::from_str_radix(digits.expect("a number"), 16).expect("64 bits"))
        }
    };
    match query.blocks {
        Blocks::Hash(hash) => {
            assert_eq!(as_bytes(&plain["blockHash"]).as_deref(), Some(hash.as_slice()));
            assert!(plain["fromBlock"].is_null() && plain["toBlock"].is_null());
        }
        Blocks::Range(first, last) => {
            assert_eq!((first, last), (end(&plain["fromBlock"]), end(&plain["toBlock"])));
        }
    }
}

fn compare_call(plain: &Value, call: &Call) {
    let text = |name| plain[name].as_str();
    assert_eq!(as_address(&plain["to"]), call.to);
    assert!(call.to.is_some() && call.rest.is_none() && call.gas.is_none());
    assert_eq!(
        text("from").map_or(Some(Address::ZERO), |_| as_address(&plain["from"])),
        Some(call.from)
    );
    let data = text("input").or(text("data")).filter(|text| !text.is_empty());
    let data = data.map_or(Some(Vec::new()), bytes_of);
    assert_eq!(data.as_deref(), Some(&call.data[..]));
}

fn tag(at: Tag) -> &'static str {
    match at {
        Tag::Latest => "latest",
        Tag::Pending => "pending",
    }
}

fn as_bytes(value: &Value) -> Option<Vec<u8>> {
    bytes_of(value.as_str()?)
}

fn bytes_of(text: &str) -> Option<Vec<u8>> {
    hex::bytes(text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?)
}

fn as_address(value: &Value) -> Option<Address> {
    Address::try_from(as_bytes(value)?.as_slice()).ok()
}
