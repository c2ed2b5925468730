use alloy_primitives::hex;

use super::*;

const WHO: Address = Address::repeat_byte(0xab);

fn one(body: &str) -> Option<Question<'_>> {
    read(body.as_bytes(), 10).map(|(asked, _)| asked[0].question.clone())
}

fn with_params(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#)
}

fn balance(params: &str) -> String {
    with_params("eth_getBalance", params)
}

#[test]
fn balances_and_blocks_are_recognised_at_both_tags() {
    let who = "0x".to_owned() + &"aB".repeat(20);
    for (text, at) in [("latest", Tag::Latest), ("pending", Tag::Pending)] {
        let body = balance(&format!(r#"["{who}","{text}"]"#));
        assert_eq!(one(&body), Some(Question::Balance { address: WHO, at }));
        for full in [true, false] {
            let body = with_params("eth_getBlockByNumber", &format!(r#"["{text}",{full}]"#));
            assert_eq!(one(&body), Some(Question::Block { at, full }));
        }
    }
}

#[test]
fn order_and_space_make_no_difference() {
    let body = " { \"params\" :\t[ \"latest\" ,\r\n false ] , \"id\" : 7 , \
                \"method\":\"eth_getBlockByNumber\" , \"jsonrpc\" : \"2.0\" } ";
    assert_eq!(one(body), Some(Question::Block { at: Tag::Latest, full: false }));
}

#[test]
fn ids_are_kept_as_they_stand() {
    for id in ["0", "-1.5e3", "12345678901234567890123", r#""a b""#, r#""\n""#, r#""é""#, r#""""#]
    {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"eth_getBlockByNumber","params":["latest",true]}}"#
        );
        let (asked, batch) = read(body.as_bytes(), 10).expect("recognised");
        assert_eq!((asked[0].id, batch), (id.as_bytes(), false));
    }
}

#[test]
fn a_batch_is_recognised_up_to_its_bound() {
    let item =
        r#"{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["latest",true]}"#;
    let batch = |count| format!("[{}]", vec![item; count].join(" , "));
    let (asked, is_batch) = read(batch(3).as_bytes(), 3).map(|(a, b)| (a.len(), b)).expect("read");
    assert_eq!((asked, is_batch), (3, true));
    assert!(read(batch(4).as_bytes(), 3).is_none());
    assert!(read(b"[]", 3).is_none());
}

#[test]
fn long_requests_are_recognised_in_batches_only() {
    let read_of = |body: String| read(body.as_bytes(), 1).map(|(asked, _)| asked.len());
    for (length, is_read) in [(LONGEST, Some(1)), (LONGEST + 1, None)] {
        let body = with_params("eth_getBlockByNumber", r#"["latest",true]"#);
        let body = " ".repeat(length - body.len()) + &body;
        assert_eq!(read_of(body.clone()), is_read);
        assert_eq!(read_of(format!("[{body}]")), Some(1));
    }
}

#[test]
fn whatever_is_unusual_is_left_to_the_long_way() {
    let who = "0x".to_owned() + &"ab".repeat(20);
    for params in [
        r#"["0xab","latest"]"#.to_owned(),
        format!(r#"["{who}00","latest"]"#),
        format!(r#"["0x{who}","latest"]"#),
        format!(r#"["0x{}","latest"]"#, &who[..40]),
        format!(r#"["{who}","0x1"]"#),
        format!(r#"["{who}","lat\u0065st"]"#),
        format!(r#"["{who}"]"#),
        format!(r#"["{who}",true]"#),
        format!(r#"["{who}","latest",null]"#),
        format!(r#"["{who}","latest",]"#),
        format!(r#"["{who}" "latest"]"#),
        "[]".to_owned(),
        "null".to_owned(),
    ] {
        assert_eq!(one(&balance(&params)), None, "{params}");
    }
    let call = r#""method":"eth_getBlockByNumber","params":["latest",true]"#;
    for body in [
        format!(r#"{{"jsonrpc":"2.0",{call}}}"#),
        format!(r#"{{"jsonrpc":"1.0","id":1,{call}}}"#),
        format!(r#"{{"id":1,{call}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":1,"id":2,{call}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":1,"extra":2,{call}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":01,{call}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":null,{call}}}"#),
        format!("{{\"jsonrpc\":\"2.0\",\"id\":\"\n\",{call}}}"),
        format!(r#"{{"jsonrpc":"2.0","id":1,{call}}} x"#),
        format!(r#"{{"jsonrpc":"2.0","id":1,{call}"#),
        String::new(),
    ] {
        assert_eq!(one(&body), None, "{body}");
    }
}

#[test]
fn calls_are_recognised_by_who_calls_whom_with_what() {
    let [to, from] = [0xab, 0xcd].map(|byte| format!("0x{}", hex::encode([byte; 20])));
    for (object, sender, data) in [
        (format!(r#"{{"to":"{to}"}}"#), Address::ZERO, &[][..]),
        (format!(r#"{{ "data":"0x", "to" : "{to}" }}"#), Address::ZERO, &[]),
        (
            format!(r#"{{"input":"0x01aB","from":"{from}","to":"{to}"}}"#),
            Address::repeat_byte(0xcd),
            &[1, 0xab],
        ),
    ] {
        let body = with_params("eth_call", &format!(r#"[{object},"pending"]"#));
        let Some(Question::Call { call, at: Tag::Pending }) = one(&body) else {
            panic!("not recognised: {object}")
        };
        assert_eq!((call.to, call.from), (Some(WHO), sender));
        assert_eq!(call.data[..], *data);
    }
}

#[test]
fn calls_that_say_more_are_left_to_the_long_way() {
    let to = format!("0x{}", hex::encode(WHO));
    for params in [
        r#"[{},"latest"]"#.to_owned(),
        r#"[{"data":"0x"},"latest"]"#.to_owned(),
        format!(r#"[{{"to":"{to}","value":"0x1"}},"latest"]"#),
        format!(r#"[{{"to":"{to}","gas":"0x0"}},"latest"]"#),
        format!(r#"[{{"to":"{to}","nonce":"0x0"}},"latest"]"#),
        format!(r#"[{{"to":"{to}","data":"0x","input":"0x00"}},"latest"]"#),
        format!(r#"[{{"to":"{to}","data":"0x0"}},"latest"]"#),
        format!(r#"[{{"to":"{to}","data":"0xzz"}},"latest"]"#),
        r#"[{"to":null},"latest"]"#.to_owned(),
        format!(r#"[{{"to":"{to}"}},"latest",{{}}]"#),
        format!(r#"[{{"to":"{to}"}}]"#),
    ] {
        assert_eq!(one(&with_params("eth_call", &params)), None, "{params}");
    }
}

#[test]
fn receipts_are_recognised_by_a_hash_alone() {
    let hash = format!("0x{}", "aB".repeat(32));
    let body = |params: &str| with_params("eth_getTransactionReceipt", params);
    let transaction = B256::repeat_byte(0xab);
    assert_eq!(one(&body(&format!(r#"["{hash}"]"#))), Some(Question::Receipt { transaction }));
    for params in [
        "[]".to_owned(),
        format!(r#"["{hash}00"]"#),
        format!(r#"["{hash}",null]"#),
        format!(r#"["{hash}","latest"]"#),
        format!(r#"[{{"to":"{hash}"}}]"#),
    ] {
        assert_eq!(one(&body(&params)), None, "{params}");
    }
}

#[test]
fn simulations_are_recognised_with_their_payload() {
    let payload = br#"{"blockStateCalls": [{}]}"#;
    let body =
        |end| with_params("eth_simulateV1", &format!(r#"[{{"blockStateCalls": [{{}}]}}{end}]"#));
    for (text, at) in [("latest", Tag::Latest), ("pending", Tag::Pending)] {
        let body = body(format!(r#","{text}""#));
        assert_eq!(one(&body), Some(Question::Simulation { payload, at }));
    }
    for end in ["", r#","0x1""#, ",null", r#","latest","latest""#] {
        assert_eq!(one(&body(end.to_owned())), None, "{end}");
    }
}

#[test]
fn filters_are_recognised_if_they_have_only_strings_and_lists() {
    let (hash, address) = (format!("0x{}", "ab".repeat(32)), format!("0x{}", "ab".repeat(20)));
    let read = |filter: &str| {
        let body = with_params("eth_getLogs", &format!("[{filter}]"));
        one(&body).map(|question| question.method())
    };
    for filter in [
        "{}".to_owned(),
        r#"{"fromBlock":"0x0","toBlock":"latest"}"#.to_owned(),
        format!(r#"{{"blockHash":"{hash}"}}"#),
        format!(r#"{{"address":"{address}","topics":[null,"{hash}",["{hash}"],[]]}}"#),
        format!(r#"{{"address":["{address}","{address}"],"fromBlock":"latest"}}"#),
    ] {
        assert_eq!(read(&filter), Some(Method::Logs), "{filter}");
    }
    for filter in [
        r#"{"fromBlock":"pending"}"#.to_owned(),
        r#"{"fromBlock":"earliest"}"#.to_owned(),
        r#"{"fromBlock":"0x01"}"#.to_owned(),
        r#"{"fromBlock":null}"#.to_owned(),
        r#"{"fromBlock":"0x1","fromBlock":"0x1"}"#.to_owned(),
        format!(r#"{{"blockHash":"{hash}","toBlock":"0x1"}}"#),
        format!(r#"{{"address":["{address}",null]}}"#),
        format!(r#"{{"topics":[["{hash}",null]]}}"#),
        r#"{"topics":[null,null,null,null,null]}"#.to_owned(),
        r#"{"extra":1}"#.to_owned(),
        "null".to_owned(),
    ] {
        assert_eq!(read(&filter), None, "{filter}");
    }
}
