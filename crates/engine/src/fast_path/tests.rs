use std::{cell::Cell, collections::BTreeMap};

use alloy_primitives::B256;
use tempfile::TempDir;

use super::*;
use crate::{
    codec::header::Fields,
    state::Changes,
    store::{Mode, Options as StoreOptions, Store},
    testing::{env, ethereum},
};

const BODY: &str =
    r#"{"jsonrpc":"2.0","id":7,"method":"eth_getBlockByNumber","params":["latest",false]}"#;
const BOUNDS: Bounds = Bounds {
    batch_items: 2,
    batch_bytes: 10_000,
    batch_time: Duration::from_secs(1),
    call_gas: 100_000,
    call_time: Duration::from_secs(1),
    step_time: Duration::from_secs(1),
    simulated_calls: 2,
    simulated_output: 1000,
    simulation_time: Duration::from_secs(1),
};

struct Served {
    _folder: TempDir,
    store: Store,
    path: FastPath,
}

impl Served {
    /// A store and the cached data of its last commit: a head, and the JSON of the latest block.
    fn new(until: Option<Instant>) -> Self {
        let folder = TempDir::new().expect("a folder");
        let options = StoreOptions { map_size: 1 << 24, ..StoreOptions::new(Mode::Write) };
        let store = Store::open(folder.path(), &options).expect("a store");
        let mut batch = store.batch().expect("a batch");
        batch.append(0, B256::ZERO, Changes::default(), BTreeMap::new());
        store.commit(batch).expect("a commit");
        let path = FastPath::new(BOUNDS);
        let heads = store.view().expect("a view").heads().clone();
        path.set_snapshot(Snapshot::new(heads.clone(), b"S: 1\r\n", 0, None, until));
        path.cache_block(&heads, None, Tag::Latest, false, Bytes::from_static(b"{}"));
        let (status, headers) =
            (b"HTTP/1.1 200\r\n".as_slice().into(), b"H: 2\r\n".as_slice().into());
        path.cache_head(b"POST", Head { length: BODY.len(), status, headers, is_at_root: true });
        Self { _folder: folder, store, path }
    }

    fn answer(&self, request: &str) -> Option<String> {
        self.answer_timed(request).map(|(answer, _)| answer)
    }

    fn answer_timed(&self, request: &str) -> Option<(String, Vec<Method>)> {
        let limits = |_, _| Limits::default();
        let join = |parts: &[&[u8]], timed: &[Timed]| {
            let answer = String::from_utf8(parts.concat()).expect("text");
            (answer, timed.iter().map(|(method, _)| *method).collect())
        };
        let open = || self.store.view().ok();
        self.path.answer(request.as_bytes(), b"Date: 3\r\n", open, limits, join)
    }
}

fn request(body: &str) -> String {
    format!("POST\r\n\r\n{body}")
}

#[test]
fn an_answer_is_framed_with_the_lines_that_were_handed_in() {
    let expected = "HTTP/1.1 200\r\nDate: 3\r\nS: 1\r\nH: 2\r\nContent-Length: 36\r\n\r\n\
                    {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}";
    assert_eq!(Served::new(None).answer(&request(BODY)).as_deref(), Some(expected));
}

#[test]
fn the_requests_of_an_answer_are_handed_over_once_each() {
    let served = Served::new(None);
    let methods = |body: &str| {
        let (status, headers) = (b"".as_slice().into(), b"".as_slice().into());
        served
            .path
            .cache_head(b"POST", Head { length: body.len(), status, headers, is_at_root: true });
        served.answer_timed(&request(body)).map(|(_, methods)| methods)
    };
    let balance = BODY
        .replace("eth_getBlockByNumber", "eth_getBalance")
        .replace("\"latest\",false", "\"0x0000000000000000000000000000000000000001\",\"latest\"");
    assert_eq!(methods(BODY), Some(vec![Method::Block]));
    assert_eq!(methods(&format!("[{balance},{BODY}]")), None);
    assert_eq!(methods(&format!("[{balance},{balance}]")), Some(vec![Method::Balance; 2]));
    assert_eq!(methods(&balance), Some(vec![Method::Balance]));
}

#[test]
fn there_is_no_answer_to_what_was_not_handed_in() {
    let served = Served::new(None);
    let full = BODY.replace("false]", "true] ");
    let pending = BODY.replace(r#""latest""#, r#""pending""#);
    for other in [
        request(&full),
        request(&pending[..BODY.len()]),
        request(&BODY[1..]),
        format!("GET\r\n\r\n{BODY}"),
        "POST".to_owned(),
    ] {
        assert_eq!(served.answer(&other), None, "{other}");
    }
    served.path.clear_heads();
    assert_eq!(served.answer(&request(BODY)), None);
}

#[test]
fn there_is_no_answer_after_another_commit_or_when_time_is_over() {
    let served = Served::new(Some(Instant::now() + Duration::from_secs(3600)));
    assert!(served.answer(&request(BODY)).is_some());
    served.store.commit(served.store.batch().expect("a batch")).expect("a commit");
    assert_eq!(served.answer(&request(BODY)), None);
    assert_eq!(Served::new(Some(Instant::now())).answer(&request(BODY)), None);
}

#[test]
fn kinds_are_told_apart_by_contract_and_four_bytes() {
    let [one, two] = [1, 2].map(Address::with_last_byte);
    assert_eq!(kind(one, b"abcd1"), kind(one, b"abcd2"));
    assert_ne!(kind(one, b"abcd"), kind(two, b"abcd"));
    assert_ne!(kind(one, b"abc"), kind(one, b"abc\0"));
}

#[test]
fn lengths_are_written_in_decimal() {
    for number in [0, 9, 10, 4096, usize::MAX] {
        assert_eq!(decimal(number, &mut [0; 20]), number.to_string().as_bytes());
    }
}

#[test]
fn simulations_are_skipped_after_one_that_took_too_long() {
    let served = Served::new(None);
    let template = BlockTemplate {
        env: (*env(ethereum("Shanghai"))).clone(),
        header: Fields::default(),
        tx_type: 2,
        block_time: 1,
        system_calls: Vec::new(),
        footprint: None,
        has_withdrawals: false,
    };
    let heads = served.store.view().expect("a view").heads().clone();
    served.path.allow_simulations(&heads, None, Tag::Latest, &Arc::new(template));
    let body = BODY
        .replace("eth_getBlockByNumber", "eth_simulateV1")
        .replace("\"latest\",false", r#"{"blockStateCalls":[{},{}]},"latest""#);
    let (status, headers) = (b"".as_slice().into(), b"".as_slice().into());
    let head = Head { length: body.len(), status, headers, is_at_root: true };
    served.path.cache_head(b"POST", head);
    let begun = Cell::new(0);
    let is_answered = |deadline: Option<Instant>| {
        let limits = |_, _| {
            begun.set(begun.get() + 1);
            Limits { deadline, ..Limits::default() }
        };
        let open = || served.store.view().ok();
        let request = request(&body);
        served.path.answer(request.as_bytes(), b"", open, limits, |_, _| ()).is_some()
    };
    assert!(is_answered(None));
    assert!(!is_answered(Some(Instant::now())));
    for _ in 0..simulations::SKIPPED {
        assert!(!is_answered(None));
    }
    assert_eq!(begun.get(), 2);
    assert!(is_answered(None));
}
