//! Streaming reader of a dump in JSON lines: `{"root": …}`, then a line for each account.
//!
//! An account has `address` and `balance`, and may have `nonce`, `code` and `storage`, in any
//! order, as reth's `init-state` reads them. The additional keys of geth's `dump --iterative`
//! (`codeHash`, `key`, `root`) are checked. No line is held whole, so the storage of one account
//! may have any length. Every error names the line.

use std::io::{ErrorKind, Read};

use alloy_primitives::{Address, B256, U256, keccak256};

use super::slots::HeldSlots;
use crate::error::{Error, Result};

const BUFFER_BYTES: usize = 256 << 10;
const LONGEST_KEY: usize = 66;
const LONGEST_NUMBER: usize = 80;
/// In hex digits; far above the longest code of any chain.
const LONGEST_CODE: usize = 32 << 20;
const WORD_DIGITS: usize = 64;

/// The storage root that a dump states for an account.
pub type StatedRoot = Option<B256>;

pub struct DumpedAccount {
    pub line: u64,
    pub address: Address,
    pub nonce: u64,
    pub balance: U256,
    pub code: Vec<u8>,
    pub storage_root: StatedRoot,
}

pub struct DumpReader<R> {
    source: R,
    buffer: Vec<u8>,
    at: usize,
    end: usize,
    /// The number of bytes before the buffer.
    before: u64,
    line: u64,
    /// The last string or bare word.
    text: Vec<u8>,
}

/// The members of an account read so far.
#[derive(Default)]
struct Members {
    address: Option<Address>,
    nonce: Option<u64>,
    balance: Option<U256>,
    code: Option<Vec<u8>>,
    code_hash: Option<B256>,
    address_hash: Option<B256>,
    storage_root: Option<B256>,
    has_storage: bool,
}

#[derive(PartialEq, Eq)]
enum Scalar {
    Quoted,
    Bare,
}

impl<R: Read> DumpReader<R> {
    pub fn new(source: R) -> Self {
        let buffer = vec![0; BUFFER_BYTES];
        Self { source, buffer, at: 0, end: 0, before: 0, line: 1, text: Vec::new() }
    }

    /// The current line, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// The number of bytes read.
    pub fn position(&self) -> u64 {
        self.before + self.at as u64
    }

    /// Reads the root from the first line.
    pub fn root(&mut self) -> Result<B256> {
        if !self.begins_line()? {
            return Err(self.bad("the dump is empty"));
        }
        let mut root = None;
        self.object(|dump, key| {
            if key != b"root" {
                return Err(dump.bad("the first line is not {\"root\": \"0x…\"}"));
            }
            root = Some(dump.hash("root")?);
            Ok(())
        })?;
        self.end_line()?;
        root.ok_or_else(|| self.bad("the first line is not {\"root\": \"0x…\"}"))
    }

    /// The next account, with its slots in `slots`; `None` at the end.
    pub fn account(&mut self, slots: &mut HeldSlots) -> Result<Option<DumpedAccount>> {
        if !self.begins_line()? {
            return Ok(None);
        }
        let mut members = Members::default();
        self.object(|dump, key| dump.member(key, &mut members, slots))?;
        let account = self.checked(members)?;
        self.end_line()?;
        Ok(Some(account))
    }

    fn member(&mut self, key: &[u8], members: &mut Members, slots: &mut HeldSlots) -> Result<()> {
        match key {
            b"address" => {
                let address = self.bytes::<20>("address")?.into();
                self.once(&mut members.address, address, "address")
            }
            b"balance" => {
                let balance = self.number("balance")?;
                self.once(&mut members.balance, balance, "balance")
            }
            b"nonce" => {
                let nonce = self.number("nonce")?;
                let nonce = u64::try_from(nonce).map_err(|_| self.bad("nonce: above 64 bits"))?;
                self.once(&mut members.nonce, nonce, "nonce")
            }
            b"code" => {
                let code = self.code()?;
                self.once(&mut members.code, code, "code")
            }
            b"codeHash" => {
                let hash = self.hash("codeHash")?;
                self.once(&mut members.code_hash, hash, "codeHash")
            }
            b"key" => {
                let hash = self.hash("key")?;
                self.once(&mut members.address_hash, hash, "key")
            }
            b"root" => {
                let hash = self.hash("root")?;
                self.once(&mut members.storage_root, hash, "root")
            }
            b"storage" if members.has_storage => Err(self.bad("storage stands twice")),
            b"storage" => {
                members.has_storage = true;
                self.storage(slots)
            }
            other => {
                let other = String::from_utf8_lossy(other);
                Err(self.bad(&format!("\"{other}\" is not a key of an account")))
            }
        }
    }

    fn checked(&self, members: Members) -> Result<DumpedAccount> {
        let missing = |what: &str| self.bad(&format!("the account has no {what}"));
        let address = members.address.ok_or_else(|| missing("address"))?;
        let code = members.code.unwrap_or_default();
        if members.code_hash.is_some_and(|stated| stated != keccak256(&code)) {
            return Err(self.bad("codeHash is not the hash of the code"));
        }
        if members.address_hash.is_some_and(|stated| stated != keccak256(address)) {
            return Err(self.bad("key is not the hash of the address"));
        }
        Ok(DumpedAccount {
            line: self.line,
            address,
            nonce: members.nonce.unwrap_or_default(),
            balance: members.balance.ok_or_else(|| missing("balance"))?,
            code,
            storage_root: members.storage_root,
        })
    }

    fn storage(&mut self, slots: &mut HeldSlots) -> Result<()> {
        if self.blank()? != Some(b'{') {
            return self.null("storage: expected an object");
        }
        self.object(|dump, key| {
            let slot = word(key).ok_or_else(|| {
                let key = String::from_utf8_lossy(key);
                dump.bad(&format!("storage: \"{key}\" is not a slot"))
            })?;
            let value = match dump.scalar(LONGEST_NUMBER)? {
                Scalar::Quoted => word(&dump.text),
                Scalar::Bare => None,
            };
            let value = value.ok_or_else(|| {
                dump.bad(&format!("storage: slot {slot:#x} has no value of 32 bytes in hex"))
            })?;
            slots.push(slot, value)
        })
    }

    fn code(&mut self) -> Result<Vec<u8>> {
        if self.blank()? != Some(b'"') {
            self.null("code: expected hex digits")?;
            return Ok(Vec::new());
        }
        self.string(LONGEST_CODE)?;
        let digits = self.text.strip_prefix(b"0x").unwrap_or(&self.text);
        alloy_primitives::hex::decode(digits).map_err(|_| self.bad("code: not bytes in hex"))
    }

    fn number(&mut self, what: &str) -> Result<U256> {
        let kind = self.scalar(LONGEST_NUMBER)?;
        let read = match self.text.strip_prefix(b"0x") {
            Some(_) if kind == Scalar::Bare => None,
            Some(_) => word(&self.text),
            None if self.text.iter().all(u8::is_ascii_digit) => std::str::from_utf8(&self.text)
                .ok()
                .filter(|digits| !digits.is_empty())
                .and_then(|digits| U256::from_str_radix(digits, 10).ok()),
            None => None,
        };
        read.ok_or_else(|| self.bad(&format!("{what}: not a number of up to 256 bits")))
    }

    fn hash(&mut self, what: &str) -> Result<B256> {
        self.bytes::<32>(what).map(Into::into)
    }

    fn bytes<const N: usize>(&mut self, what: &str) -> Result<[u8; N]> {
        let kind = self.scalar(LONGEST_KEY)?;
        let digits = self.text.strip_prefix(b"0x").unwrap_or(&self.text);
        let mut bytes = [0; N];
        let read = kind == Scalar::Quoted
            && digits.len() == 2 * N
            && alloy_primitives::hex::decode_to_slice(digits, &mut bytes).is_ok();
        if read { Ok(bytes) } else { Err(self.bad(&format!("{what}: not {N} bytes in hex"))) }
    }

    fn null(&mut self, otherwise: &str) -> Result<()> {
        let is_null = self.scalar(LONGEST_NUMBER)? == Scalar::Bare && self.text == b"null";
        if is_null { Ok(()) } else { Err(self.bad(otherwise)) }
    }

    fn once<T>(&self, place: &mut Option<T>, value: T, what: &str) -> Result<()> {
        match place.replace(value) {
            None => Ok(()),
            Some(_) => Err(self.bad(&format!("{what} stands twice"))),
        }
    }

    /// Advances to the next line that is not blank; false at the end of the dump.
    fn begins_line(&mut self) -> Result<bool> {
        while self.blank()? == Some(b'\n') {
            self.at += 1;
            self.line += 1;
        }
        Ok(self.blank()?.is_some())
    }

    fn end_line(&mut self) -> Result<()> {
        match self.blank()? {
            None | Some(b'\n') => Ok(()),
            Some(_) => Err(self.bad("something follows the object")),
        }
    }

    /// Reads an object. `member` is called with each key and reads its value.
    fn object(&mut self, mut member: impl FnMut(&mut Self, &[u8]) -> Result<()>) -> Result<()> {
        self.expect(b'{')?;
        if self.blank()? == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.string(LONGEST_KEY)?;
            let key = std::mem::take(&mut self.text);
            self.expect(b':')?;
            member(self, &key)?;
            match self.blank()? {
                Some(b',') => self.at += 1,
                _ => return self.expect(b'}'),
            }
        }
    }

    /// Reads a string, a number or a literal into `text`.
    fn scalar(&mut self, longest: usize) -> Result<Scalar> {
        if self.blank()? == Some(b'"') {
            self.string(longest)?;
            return Ok(Scalar::Quoted);
        }
        self.text.clear();
        while let Some(byte) = self.peek()?.filter(|byte| byte.is_ascii_alphanumeric()) {
            self.text.push(byte);
            self.at += 1;
            if self.text.len() > longest {
                return Err(self.bad("a number is too long"));
            }
        }
        Ok(Scalar::Bare)
    }

    /// Reads a string without escapes into `text`: a dump contains only digits and names.
    fn string(&mut self, longest: usize) -> Result<()> {
        self.expect(b'"')?;
        self.text.clear();
        loop {
            if self.peek()?.is_none() {
                return Err(self.bad("the dump ends inside a string"));
            }
            let rest = &self.buffer[self.at..self.end];
            let ends = |byte: &u8| matches!(byte, b'"' | b'\\' | ..b' ');
            let length = rest.iter().position(ends).unwrap_or(rest.len());
            let last = rest.get(length).copied();
            self.text.extend_from_slice(&rest[..length]);
            self.at += length;
            if self.text.len() > longest {
                return Err(self.bad(&format!("a string is longer than {longest} characters")));
            }
            match last {
                None => {}
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\n') => return Err(self.bad("the line ends inside a string")),
                Some(_) => return Err(self.bad("a string has an escape or a control character")),
            }
        }
    }

    fn expect(&mut self, wanted: u8) -> Result<()> {
        let wanted_name = char::from(wanted);
        match self.blank()? {
            Some(found) if found == wanted => {
                self.at += 1;
                Ok(())
            }
            None => Err(self.bad(&format!("the dump ends where {wanted_name} is expected"))),
            Some(b'\n') => Err(self.bad(&format!("the line ends where {wanted_name} is expected"))),
            Some(found) => {
                let found = char::from(found).escape_default();
                Err(self.bad(&format!("expected {wanted_name}, found {found}")))
            }
        }
    }

    /// Skips blanks other than line ends and returns the next byte without consuming it.
    fn blank(&mut self) -> Result<Option<u8>> {
        while let Some(byte) = self.peek()? {
            if !matches!(byte, b' ' | b'\t' | b'\r') {
                return Ok(Some(byte));
            }
            self.at += 1;
        }
        Ok(None)
    }

    fn peek(&mut self) -> Result<Option<u8>> {
        if self.at == self.end {
            self.before += self.end as u64;
            (self.at, self.end) = (0, 0);
            self.end = loop {
                match self.source.read(&mut self.buffer) {
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(self.bad(&format!("cannot be read: {error}"))),
                    Ok(count) => break count,
                }
            };
        }
        Ok(self.buffer[..self.end].get(self.at).copied())
    }

    fn bad(&self, why: &str) -> Error {
        Error::BadState { line: self.line, why: why.into() }
    }
}

/// Parses up to 32 bytes in hex digits, with or without 0x.
fn word(text: &[u8]) -> Option<U256> {
    let digits = text.strip_prefix(b"0x").unwrap_or(text);
    if digits.is_empty() || digits.len() > WORD_DIGITS {
        return None;
    }
    let mut padded = [b'0'; WORD_DIGITS];
    padded[WORD_DIGITS - digits.len()..].copy_from_slice(digits);
    let mut bytes = [0; WORD_DIGITS / 2];
    alloy_primitives::hex::decode_to_slice(padded, &mut bytes).ok()?;
    Some(U256::from_be_bytes(bytes))
}
