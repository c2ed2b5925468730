//! The requests that are asked most, recognised in one pass over their bytes.
//!
//! A balance, a block or a call at `latest` or `pending`, alone or in a batch, written as
//! JSON writers write them: members in any order, spaces between tokens, no escapes. Of a
//! call, no more than who calls whom with what.
//! Whatever else a body holds is not recognised and no judgement on it: the long way reads
//! it anew, and answers it or says what is wrong. So this may be strict, and whatever it
//! recognises must mean to the long way what it means here.

mod scan;

use alloy_primitives::{Address, Bytes, hex};
use scan::Scan;

/// A request, and its id as it was sent.
#[derive(Debug, PartialEq, Eq)]
pub struct Asked<'b> {
    pub id: &'b [u8],
    pub question: Question<'b>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question<'b> {
    Balance { address: Address, at: Tag },
    Block { at: Tag, full: bool },
    Call { call: Call<'b>, at: Tag },
}

/// Who calls whom, and the digits of what with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call<'b> {
    pub from: Address,
    pub to: Address,
    data: &'b [u8],
}

impl Call<'_> {
    /// The data, if these are digits.
    pub fn data(&self) -> Option<Bytes> {
        hex::decode(self.data).ok().map(Bytes::from)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    Latest,
    Pending,
}

impl Tag {
    pub fn read(text: &[u8]) -> Option<Self> {
        match text {
            b"latest" => Some(Self::Latest),
            b"pending" => Some(Self::Pending),
            _ => None,
        }
    }
}

/// The requests of a body, of which there may be so many, and whether they are a batch.
pub fn read(body: &[u8], most: usize) -> Option<(Vec<Asked<'_>>, bool)> {
    let mut scan = Scan(body);
    scan.space();
    let batch = scan.begins_with(b'[');
    let mut asked = Vec::with_capacity(if batch { most.min(body.len() / SHORTEST) } else { 1 });
    if batch {
        scan.array(|scan| {
            asked.push(request(scan)?);
            (asked.len() <= most).then_some(())
        })?;
    } else {
        asked.push(request(&mut scan)?);
    }
    scan.space();
    (scan.0.is_empty() && !asked.is_empty()).then_some((asked, batch))
}

/// No request that is recognised takes fewer bytes.
const SHORTEST: usize = 64;

fn request<'b>(scan: &mut Scan<'b>) -> Option<Asked<'b>> {
    let (mut version, mut id, mut method, mut params) = (None, None, None, None);
    scan.object(|scan, name| match name {
        b"jsonrpc" => once(&mut version, scan.text()?),
        b"id" => once(&mut id, scan.id()?),
        b"method" => once(&mut method, scan.text()?),
        b"params" => once(&mut params, Params::read(scan)?),
        _ => None,
    })?;
    if version? != b"2.0" {
        return None;
    }
    Some(Asked { id: id?, question: question(method?, params?)? })
}

/// Of equal names the last one counts on the long way; here they are not recognised.
fn once<T>(place: &mut Option<T>, value: T) -> Option<()> {
    place.replace(value).is_none().then_some(())
}

/// Two arguments.
struct Params<'b>(Argument<'b>, Argument<'b>);

enum Argument<'b> {
    Text(&'b [u8]),
    Choice(bool),
    Call(Call<'b>),
}

impl<'b> Params<'b> {
    fn read(scan: &mut Scan<'b>) -> Option<Self> {
        let (mut first, mut second) = (None, None);
        scan.array(|scan| match first {
            None => once(&mut first, Argument::read(scan)?),
            Some(_) => once(&mut second, Argument::read(scan)?),
        })?;
        Some(Self(first?, second?))
    }
}

impl<'b> Argument<'b> {
    fn read(scan: &mut Scan<'b>) -> Option<Self> {
        match scan.0.first()? {
            b'"' => scan.text().map(Self::Text),
            b'{' => call(scan).map(Self::Call),
            b't' => scan.word(b"true").map(|()| Self::Choice(true)),
            _ => scan.word(b"false").map(|()| Self::Choice(false)),
        }
    }
}

fn call<'b>(scan: &mut Scan<'b>) -> Option<Call<'b>> {
    let (mut from, mut to, mut data) = (None, None, None);
    scan.object(|scan, name| match name {
        b"from" => once(&mut from, address(scan.text()?)?),
        b"to" => once(&mut to, address(scan.text()?)?),
        b"data" | b"input" => once(&mut data, scan.text()?.strip_prefix(b"0x")?),
        _ => None,
    })?;
    Some(Call { from: from.unwrap_or_default(), to: to?, data: data.unwrap_or_default() })
}

fn question<'b>(method: &[u8], params: Params<'b>) -> Option<Question<'b>> {
    use Argument::{Call, Choice, Text};
    match (method, params) {
        (b"eth_getBalance", Params(Text(who), Text(at))) => {
            Some(Question::Balance { address: address(who)?, at: Tag::read(at)? })
        }
        (b"eth_getBlockByNumber", Params(Text(at), Choice(full))) => {
            Some(Question::Block { at: Tag::read(at)?, full })
        }
        (b"eth_call", Params(Call(call), Text(at))) => {
            Some(Question::Call { call, at: Tag::read(at)? })
        }
        _ => None,
    }
}

fn address(text: &[u8]) -> Option<Address> {
    let digits = text.strip_prefix(b"0x")?;
    let mut bytes = [0; 20];
    hex::decode_to_slice(digits, &mut bytes).ok()?;
    Some(Address::new(bytes))
}

#[cfg(test)]
mod tests;
