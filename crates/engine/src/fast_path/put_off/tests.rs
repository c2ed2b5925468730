use std::{fs, path::PathBuf};

use alloy_primitives::{address, b256};
use tempfile::TempDir;

use super::*;

const ADDRESS: &str = "0x00000000000000000000000000000000000000aa";
const WORD: &str = "0x0000000000000000000000000000000000000000000000000000000000000007";

struct Served {
    _folder: TempDir,
    path: PathBuf,
    queue: Queue,
}

impl Served {
    fn new(window: Window) -> Self {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("commands");
        let mut queue = Queue::new(&path).expect("a file");
        queue.open(window);
        Self { _folder: folder, path, queue }
    }

    fn ask(&mut self, method: &str, params: &[&str]) -> Option<String> {
        let params = params.iter().map(|each| format!("\"{each}\"")).collect::<Vec<_>>().join(",");
        self.send(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":[{params}]}}"#))
    }

    fn send(&mut self, body: &str) -> Option<String> {
        let mut out = Vec::new();
        self.queue.answer(body.as_bytes(), &mut out)?;
        let text = String::from_utf8(out).expect("text");
        let result = text.strip_prefix(r#"{"jsonrpc":"2.0","id":1,"result":"#);
        Some(result.and_then(|it| it.strip_suffix('}')).expect("an answer").to_owned())
    }
}

fn wide() -> Window {
    Window {
        batch: 9,
        commands: 100,
        snapshots: 100,
        accounts: true,
        next_snapshot: 5,
        waiting: vec![],
    }
}

#[test]
fn commands_are_answered_with_what_they_will_give() {
    let mut served = Served::new(wide());
    assert_eq!(served.ask("anvil_setStorageAt", &[ADDRESS, "0x1", WORD]).as_deref(), Some("true"));
    assert_eq!(served.ask("hardhat_setBalance", &[ADDRESS, "0x10"]).as_deref(), Some("null"));
    assert_eq!(served.ask("evm_snapshot", &[]).as_deref(), Some("\"0x5\""));
    assert_eq!(served.ask("anvil_snapshot", &[]).as_deref(), Some("\"0x6\""));
    assert_eq!(served.ask("evm_revert", &["0x5"]).as_deref(), Some("true"));
    assert_eq!(served.ask("evm_revert", &["0x6"]), None, "it went with the one before it");
    let taken = served.queue.take();
    assert_eq!(taken.commands.len(), 5);
    let names: Vec<_> = taken.names.iter().map(|&(name, times)| (NAMES[name], times)).collect();
    assert_eq!(
        names,
        [
            ("anvil_setStorageAt", 1),
            ("hardhat_setBalance", 1),
            ("evm_snapshot", 1),
            ("anvil_snapshot", 1),
            ("evm_revert", 1)
        ]
    );
    assert_eq!(served.queue.count(), 0, "they are taken once");
}

#[test]
fn a_name_that_comes_again_is_counted() {
    let mut served = Served::new(wide());
    for _ in 0..3 {
        served.ask("anvil_setBalance", &[ADDRESS, "0x1"]).expect("an answer");
    }
    assert_eq!(served.queue.take().names, [(0, 3)]);
}

#[test]
fn nothing_is_answered_beyond_the_window() {
    let slot = |served: &mut Served| served.ask("anvil_setStorageAt", &[ADDRESS, "0x1", WORD]);
    let mut few = Served::new(Window { commands: 1, ..wide() });
    assert!(slot(&mut few).is_some() && slot(&mut few).is_none());
    let mut no_accounts = Served::new(Window { accounts: false, ..wide() });
    assert!(slot(&mut no_accounts).is_none());
    let mut one = Served::new(Window { snapshots: 1, ..wide() });
    assert!(one.ask("evm_snapshot", &[]).is_some());
    assert!(one.ask("evm_snapshot", &[]).is_none());
    assert!(one.ask("evm_revert", &["0x5"]).is_some(), "which makes room for another");
    assert_eq!(one.ask("evm_snapshot", &[]).as_deref(), Some("\"0x6\""));
    one.queue.close();
    assert!(one.ask("evm_revert", &["0x6"]).is_none());
}

#[test]
fn a_snapshot_that_waits_can_be_gone_back_to() {
    let mut served = Served::new(Window { waiting: vec![2, 3], ..wide() });
    assert_eq!(served.ask("evm_revert", &["0x2"]).as_deref(), Some("true"));
    assert_eq!(served.ask("evm_revert", &["0x3"]), None);
}

#[test]
fn what_is_not_usual_is_not_recognised() {
    let mut served = Served::new(wide());
    for (method, params) in [
        ("anvil_setStorageAt", vec![ADDRESS, "0x1"]),
        ("anvil_setStorageAt", vec![ADDRESS, "0x1", "0x7"]),
        ("anvil_setStorageAt", vec![ADDRESS, "0x01", WORD]),
        ("anvil_setStorageAt", vec![ADDRESS, "1", WORD]),
        ("anvil_setBalance", vec!["0xaa", "0x1"]),
        ("anvil_setBalance", vec![ADDRESS, "0x1", "0x2"]),
        ("anvil_setBalance", vec![ADDRESS, "0x1", "0x2", "0x3"]),
        ("evm_snapshot", vec!["0x1"]),
        ("evm_revert", vec![]),
        ("evm_mine", vec![]),
    ] {
        assert_eq!(served.ask(method, &params), None, "{method} {params:?}");
    }
    for body in [
        r#"{"jsonrpc":"2.0","method":"evm_snapshot","params":[]}"#,
        r#"{"jsonrpc":"1.0","id":1,"method":"evm_snapshot"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"evm_snapshot","method":"evm_snapshot"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"evm_snapshot"} x"#,
        r#"[{"jsonrpc":"2.0","id":1,"method":"evm_snapshot"}]"#,
    ] {
        assert_eq!(served.send(body), None, "{body}");
    }
    let without_params = r#"{"jsonrpc":"2.0","id":1,"method":"evm_snapshot"}"#;
    assert_eq!(served.send(without_params).as_deref(), Some("\"0x5\""));
}

#[test]
fn a_number_may_have_leading_zeros_where_it_has_all_digits() {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"anvil_setStorageAt","params":["{ADDRESS}","{WORD}","{WORD}"]}}"#
    );
    let word = b256!("0000000000000000000000000000000000000000000000000000000000000007");
    let address = address!("00000000000000000000000000000000000000aa");
    let expected = Command::SetSlot { address, slot: word, value: word };
    assert_eq!(read(body.as_bytes()).expect("a request").command, expected);
}

#[test]
fn the_journal_has_each_command_of_the_batch_and_is_begun_anew() {
    let mut served = Served::new(wide());
    served.ask("evm_snapshot", &[]).expect("an answer");
    served.queue.add(9, b"another").expect("written");
    let written = fs::read(&served.path).expect("a file");
    let mut left = written.as_slice();
    let mut commands = Vec::new();
    while let Some((head, rest)) = left.split_at_checked(8) {
        let length = u32::from_be_bytes(head[..4].try_into().expect("four")) as usize;
        let (body, rest) = rest.split_at(length);
        assert_eq!(head[4..], crc32fast::hash(body).to_be_bytes());
        assert_eq!(body[..8], 9_u64.to_be_bytes());
        commands.push(body[8..].to_vec());
        left = rest;
    }
    assert_eq!(commands, [b"\x92\x91\xacTakeSnapshot\x05".to_vec(), b"another".to_vec()]);
    served.queue.begin();
    assert!(!served.queue.is_open(), "until who carries commands out opens it again");
    served.queue.add(10, b"next").expect("written");
    assert_eq!(fs::read(&served.path).expect("a file").len(), written.len(), "from the beginning");
}

#[test]
fn what_cannot_be_written_is_not_answered() {
    let mut queue = Queue::new(Path::new("/dev/full")).expect("a file");
    queue.open(wide());
    let body = br#"{"jsonrpc":"2.0","id":1,"method":"evm_snapshot"}"#;
    assert_eq!(queue.answer(body, &mut Vec::new()), None);
    assert_eq!((queue.count(), queue.window.map(|it| it.next_snapshot)), (0, Some(5)));
}
