use alloy_primitives::{Address, B256, U256, address};

use super::*;
use crate::testing::{MemoryState, ethereum};

const TO: &str = r#""to":"0x00000000000000000000000000000000000000aa""#;
const LIMITS: Limits = Limits { blocks: 2, block_calls: 3, calls: 4 };

/// The error text that a client gets.
fn words(refused: Refused) -> String {
    match refused {
        Refused::Argument { argument, refusal } => {
            format!("{argument} {} {}", refusal.path(), refusal.why)
        }
        Refused::Params(why) | Refused::Override(why) | Refused::Limit(why) => why,
    }
}

fn call(params: &str) -> Result<CallParams<'_>, String> {
    let read = CallParams::read(params.as_bytes(), 1, false).map_err(words)?;
    match read.overrides {
        Err(refused) => Err(words(refused)),
        Ok(_) => Ok(read),
    }
}

fn refusal_of(params: &str) -> String {
    call(params).err().unwrap_or_default()
}

#[test]
fn a_call_is_read_with_all_it_says() {
    let word = format!("0x{:064x}", 7);
    let params = format!(
        r#"[{{{TO},"\u0066rom":"0x{:040x}","gas":"0x5208","value":null,"input":"0x0102","x":[{{}}],
            "nonce":"0x1","accessList":[{{"address":"0x{:040x}","storageKeys":["{word}"]}}]}},
            {{"blockNumber":"0x1","more":1}}]"#,
        1, 2
    );
    let CallParams { call, block, overrides } = call(&params).expect("a call");
    let (of, to) = (Address::with_last_byte(1), Address::with_last_byte(0xaa));
    assert_eq!((call.from, call.to, call.gas, call.nonce), (of, Some(to), Some(21_000), Some(1)));
    assert_eq!(call.data[..], [1, 2]);
    let listed = &call.rest.expect("more").access_list;
    assert_eq!(listed[0].storage_keys, [B256::with_last_byte(7)]);
    assert_eq!(block, Some(BlockName::Json(br#"{"blockNumber":"0x1","more":1}"#)));
    assert!(overrides.is_ok_and(|(overrides, changes)| overrides.is_empty() && changes.is_none()));
}

#[test]
fn refusals_name_the_argument_and_the_place() {
    for (params, expected) in [
        ("{}", "non-array args"),
        ("[]", "missing value for required argument 0 (transaction)"),
        ("[null]", "0  transaction is required, found null"),
        ("[5,2,3,4,5]", "too many arguments, want at most 4"),
        ("[[]]", "0  expected an object, found an array"),
        ("[{}]", "0 $.to is required: a call goes to an address"),
        (r#"[{"to":5}]"#, "0 $.to expected a string, found a number"),
        (r#"[{"to":"0x5"}]"#, "0 $.to hex string has length 1, want 40 for an address"),
        (r#"[{"accessList":[{}]}]"#, "0 $.accessList[0] object missing required field 'address'"),
        (r#"[{},5]"#, "1  expected a string or an object, found a number"),
    ] {
        assert_eq!(refusal_of(params), expected);
    }
    for (field, expected) in [
        (r#""gas":"0x00""#, "0 $.gas hex number with leading zero digits"),
        (r#""gas":"0x10000000000000000""#, "0 $.gas hex number > 64 bits"),
        (r#""value":"""#, "0 $.value empty hex string"),
        (r#""value":"0x""#, "0 $.value hex string \"0x\" without digits"),
        (r#""data":"0x1""#, "0 $.data hex string of odd length"),
        (r#""data":"1""#, "0 $.data hex string without 0x prefix"),
        (r#""data":"0x1g""#, "0 $.data invalid hex string"),
        (
            r#""blobVersionedHashes":["0x",1]"#,
            "0 $.blobVersionedHashes[1] expected a string, found a number",
        ),
    ] {
        assert_eq!(refusal_of(&format!("[{{{TO},{field}}}]")), expected);
    }
}

#[test]
fn overrides_are_refused_by_account() {
    let who = format!("0x{:040x}", 0xaa);
    for (accounts, expected) in [
        (r#"{"0x1":5}"#.to_owned(), "2 $.0x1 hex string has length 1, want 40 for an address"),
        (format!(r#"{{"{who}":5}}"#), "2 $.{who} expected an object, found a number"),
        (
            format!(r#"{{"{who}":{{"nonce":"0x00"}}}}"#),
            "2 $.{who}.nonce hex number with leading zero digits",
        ),
        (
            format!(r#"{{"{who}":{{"state":{{"0x1":5}}}}}}"#),
            "2 $.{who}.state[...] expected a string, found a number",
        ),
        (
            format!(r#"{{"{who}":{{"state":{{"0x1":"0x1"}}}}}}"#),
            "2 $.{who}.state.0x1 hex string has length 1, want 64 for a hash",
        ),
        (
            format!(
                r#"{{"{who}":{{"storage":{{}},"stateDiff":{{"0x{:064x}":"0x{:064x}"}}}}}}"#,
                1, 2
            ),
            "2 $.{who} stateDiff and storage are two names of one field and differ",
        ),
    ] {
        let params = format!(r#"[{{{TO}}},"latest",{accounts}]"#);
        assert_eq!(refusal_of(&params), expected.replace("{who}", &who));
    }
}

#[test]
fn of_equal_names_the_last_counts_and_what_is_wrong_with_others_is_ignored() {
    let who = format!("0x{:040x}", 0xaa);
    let (slot, value) = (format!("0x{:064x}", 1), format!("0x{:064x}", 2));
    let given = Overrides::of(&format!(
        r#"{{"{who}":{{"nonce":"bad"}},"{who}":{{"state":{{"{slot}":"bad","{slot}":"{value}"}}}}}}"#
    ));
    let mut overlay = MemoryState::default().overlay();
    given.apply_to(&mut overlay, ethereum("Cancun")).expect("applied");
    assert_eq!(overlay.storage(&Address::with_last_byte(0xaa), &U256::ONE), Ok(U256::from(2)));
}

#[test]
fn one_address_may_be_written_twice() {
    let (lower, upper) = ("ab".repeat(20), "AB".repeat(20));
    let given = Overrides::of(&format!(
        r#"{{"0x{lower}":{{"balance":"0x1"}},"0x{upper}":{{"balance":"0x2"}},"0X{upper}":null}}"#
    ));
    let mut overlay = MemoryState::default().overlay();
    assert_eq!(given.apply_to(&mut overlay, ethereum("Cancun")), Ok(None));
    let account = overlay.account(&Address::repeat_byte(0xab)).expect("read").expect("an account");
    assert_eq!(account.balance, U256::from(2));
}

#[test]
fn what_cannot_be_meant_is_refused_by_the_order_of_addresses() {
    let [low, high] = [0x11, 0x99].map(Address::repeat_byte);
    let identity = address!("0x0000000000000000000000000000000000000004");
    let apply_to = |accounts: String| {
        let mut overlay = MemoryState::default().overlay();
        let applied = Overrides::of(&accounts).apply_to(&mut overlay, ethereum("Cancun"));
        applied.map(|left| left.is_some()).map_err(|error| error.to_string())
    };
    let both = r#"{"state":{},"stateDiff":{}}"#;
    let moved = |to: Address| format!(r#"{{"movePrecompileToAddress":"{to}"}}"#);
    for (accounts, expected) in [
        (
            format!(r#"{{"{high}":{both},"{low}":{}}}"#, moved(high)),
            Err(format!("account {low} is not a precompile")),
        ),
        (
            format!(r#"{{"{high}":{both}}}"#),
            Err(format!("account {high} has both 'state' and 'stateDiff'")),
        ),
        (
            format!(r#"{{"{identity}":{},"{high}":{{}}}}"#, moved(high)),
            Err(format!("account {high} is already overridden")),
        ),
        (format!(r#"{{"{identity}":{}}}"#, moved(high)), Ok(true)),
        (format!(r#"{{"{low}":{{"balance":"0x1"}}}}"#), Ok(false)),
    ] {
        assert_eq!(apply_to(accounts.clone()), expected, "{accounts}");
    }
}

#[test]
fn block_overrides_have_two_names_and_some_are_for_whole_blocks() {
    let with = |changes: &str| format!(r#"[{{{TO}}},"latest",null,{changes}]"#);
    for (changes, expected) in [
        (
            r#"{"number":"0x1","blockNumber":"0x2"}"#,
            "3  number and blockNumber are two names of one field and differ",
        ),
        (
            r#"{"number":"0x1","blockNumber":"0x1","time":"x"}"#,
            "3 $.time hex string without 0x prefix",
        ),
        (
            r#"{"number":"x","beaconRoot":5}"#,
            "block override \"beaconRoot\" is not supported for this RPC method",
        ),
        (
            r#"{"withdrawals":[]}"#,
            "block override \"withdrawals\" is not supported for this RPC method",
        ),
        (
            r#"{"blockHash":{"0x1":"0x2"}}"#,
            "3 $.blockHash.0x1 hex string has length 1, want 64 for a hash",
        ),
    ] {
        assert_eq!(refusal_of(&with(changes)), expected);
    }
    let params = with(r#"{"gasLimit":"0x5","blobBaseFee":null,"more":[]}"#);
    let (overrides, changes) = call(&params).expect("a call").overrides.expect("overrides");
    assert!(overrides.is_empty());
    assert_eq!(changes, Some(BlockOverrides { gas_limit: Some(5), ..BlockOverrides::default() }));
}

fn simulation(payload: &str) -> Result<SimulateParams<'static>, String> {
    let params = format!(r#"[{payload},"latest"]"#).leak();
    SimulateParams::read(params.as_bytes(), 2, LIMITS).map_err(words)
}

#[test]
fn simulations_are_read_up_to_their_limits() {
    for (payload, expected) in [
        (r#"{"blockStateCalls":null}"#, "empty input"),
        (r#"{"blockStateCalls":[{},{},5]}"#, "too many blocks"),
        (r#"{"blockStateCalls":[{"calls":[{},{},{},{},5,6]}]}"#, "too many calls in block: 6 > 3"),
        (
            r#"{"blockStateCalls":[{"calls":[{},{},{}]},{"calls":[{},{}]}]}"#,
            "too many calls: 5 > 4",
        ),
        (
            r#"{"blockStateCalls":[{},{"calls":[{},{"to":"x"}]}]}"#,
            "0 $.blockStateCalls[1].calls[1].to hex string without 0x prefix",
        ),
        (
            r#"{"blockStateCalls":[{},5]}"#,
            "0 $.blockStateCalls[1] expected an object, found a number",
        ),
        (
            r#"{"blockStateCalls":[{"stateOverrides":{"x":{}}}]}"#,
            "0 $.blockStateCalls[0].stateOverrides.x hex string without 0x prefix",
        ),
        (
            r#"{"blockStateCalls":[{"blockOverrides":{"withdrawals":[{}]}}]}"#,
            "0 $.blockStateCalls[0].blockOverrides.withdrawals expected index, validatorIndex, address and amount each",
        ),
        (r#"{"validation":1}"#, "0 $.validation expected true or false, found a number"),
    ] {
        assert_eq!(simulation(payload).err().unwrap_or_default(), expected);
    }
}

#[test]
fn withdrawals_of_a_block_are_bounded() {
    let one = r#"{"index":"0x1","validatorIndex":"0x1","address":"0x0000000000000000000000000000000000000001","amount":"0x1"}"#;
    let payload = |count| {
        let all = vec![one; count].join(",");
        format!(r#"{{"blockStateCalls":[{{"blockOverrides":{{"withdrawals":[{all}]}}}}]}}"#)
    };
    assert!(simulation(&payload(1024)).is_ok());
    assert_eq!(
        simulation(&payload(1025)).err().unwrap_or_default(),
        "0 $.blockStateCalls[0].blockOverrides.withdrawals expected at most 1024, found 1025",
    );
}

#[test]
fn calls_are_plain_where_all_are() {
    let payload = r#"{"blockStateCalls":[{"calls":[{},{"gas":"0x1","nonce":null}]},
        {"calls":[{"nonce":"0x0"}],"blockOverrides":{}}],"traceTransfers":true}"#;
    let SimulateParams { blocks, trace_transfers, validation, .. } = simulation(payload).unwrap();
    assert_eq!((trace_transfers, validation), (true, false));
    assert!(matches!(&blocks[0].calls, Calls::Plain(calls) if calls[1].gas == Some(1)));
    assert!(matches!(&blocks[1].calls, Calls::Any(calls) if calls[0].nonce == Some(0)));
    assert_eq!(blocks[1].changes, None);
}
