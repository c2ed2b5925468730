use super::*;

const WHO: Address = Address::repeat_byte(0xab);

fn one(body: &str) -> Option<Question> {
    read(body.as_bytes(), 10).map(|(asked, _)| asked[0].question)
}

fn with_params(method: &str, params: &str) -> Option<Question> {
    one(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#))
}

fn balance(params: &str) -> Option<Question> {
    with_params("eth_getBalance", params)
}

#[test]
fn balances_and_blocks_are_recognised_at_both_tags() {
    let who = "0x".to_owned() + &"aB".repeat(20);
    for (text, at) in [("latest", Tag::Latest), ("pending", Tag::Pending)] {
        let found = balance(&format!(r#"["{who}","{text}"]"#));
        assert_eq!(found, Some(Question::Balance { address: WHO, at }));
        for full in [true, false] {
            let found = with_params("eth_getBlockByNumber", &format!(r#"["{text}",{full}]"#));
            assert_eq!(found, Some(Question::Block { at, full }));
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
    for id in ["0", "12345678901234567890123", r#""a b""#, r#""""#] {
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
fn whatever_is_unusual_is_left_to_the_long_way() {
    let who = "0x".to_owned() + &"ab".repeat(20);
    for params in [
        r#"["0xab","latest"]"#.to_owned(),
        format!(r#"["{}","latest"]"#, who.replace("0x", "0X")),
        format!(r#"["{who}00","latest"]"#),
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
        assert_eq!(balance(&params), None, "{params}");
    }
    let call = r#""method":"eth_getBlockByNumber","params":["latest",true]"#;
    for body in [
        format!(r#"{{"jsonrpc":"2.0",{call}}}"#),
        format!(r#"{{"jsonrpc":"1.0","id":1,{call}}}"#),
        format!(r#"{{"id":1,{call}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":1,"id":2,{call}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":1,"extra":2,{call}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":01,{call}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":1.5,{call}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":-1,{call}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":null,{call}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":"\n",{call}}}"#),
        format!("{{\"jsonrpc\":\"2.0\",\"id\":\"\u{e9}\",{call}}}"),
        format!("{{\"jsonrpc\":\"2.0\",\"id\":\"\n\",{call}}}"),
        format!(r#"{{"jsonrpc":"2.0","id":1,{call}}} x"#),
        format!(r#"{{"jsonrpc":"2.0","id":1,{call}"#),
        String::new(),
    ] {
        assert_eq!(one(&body), None, "{body}");
    }
}
