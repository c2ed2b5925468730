//! The requests that are asked most, recognised in one pass over their bytes.
//!
//! A balance, a block or a call at `latest` or `pending`, alone or in a batch, written as
//! JSON writers write them: members in any order, spaces between tokens, no escapes. Of a
//! call, no more than who calls whom with what.
//! Whatever else a body holds is not recognised and no judgement on it: the long way reads
//! it anew, and answers it or says what is wrong. So this may be strict, and whatever it
//! recognises must mean to the long way what it means here.

use alloy_primitives::{Address, Bytes, hex};

use crate::json_text::Text;

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
        let mut bytes = vec![0; self.data.len() / 2];
        decode(self.data, &mut bytes)?;
        Some(bytes.into())
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
    let mut text = Text::new(body);
    let batch = text.next()? == b'[';
    let mut asked = Vec::new();
    if batch {
        asked.reserve(most.min(body.len() / SHORTEST));
        text.list(*b"[]", |text| {
            asked.push(request(text)?);
            (asked.len() <= most).then_some(())
        })?;
    } else {
        asked.push(request(&mut text)?);
    }
    text.end()?;
    (!asked.is_empty()).then_some((asked, batch))
}

/// No request that is recognised takes fewer bytes.
const SHORTEST: usize = 64;

/// Longer ids are not usual.
const LONGEST_ID: usize = 40;

fn request<'b>(text: &mut Text<'b>) -> Option<Asked<'b>> {
    let (mut version, mut id, mut method, mut params) = (None, None, None, None);
    text.object(|text, name| match name {
        b"jsonrpc" => once(&mut version, text.plain_string()?),
        b"id" => once(&mut id, text.scalar().filter(|id| id.len() <= LONGEST_ID)?),
        b"method" => once(&mut method, text.plain_string()?),
        b"params" => once(&mut params, Params::read(text)?),
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
    fn read(text: &mut Text<'b>) -> Option<Self> {
        let (mut first, mut second) = (None, None);
        text.list(*b"[]", |text| match first {
            None => once(&mut first, Argument::read(text)?),
            Some(_) => once(&mut second, Argument::read(text)?),
        })?;
        Some(Self(first?, second?))
    }
}

impl<'b> Argument<'b> {
    fn read(text: &mut Text<'b>) -> Option<Self> {
        match text.next()? {
            b'"' => text.plain_string().map(Self::Text),
            b'{' => call(text).map(Self::Call),
            b't' => text.word(b"true").map(|()| Self::Choice(true)),
            _ => text.word(b"false").map(|()| Self::Choice(false)),
        }
    }
}

fn call<'b>(text: &mut Text<'b>) -> Option<Call<'b>> {
    let (mut from, mut to, mut data) = (None, None, None);
    text.object(|text, name| match name {
        b"from" => once(&mut from, address(text.plain_string()?)?),
        b"to" => once(&mut to, address(text.plain_string()?)?),
        b"data" | b"input" => once(&mut data, text.plain_string()?.strip_prefix(b"0x")?),
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
    let mut bytes = [0; 20];
    decode(text.strip_prefix(b"0x")?, &mut bytes)?;
    Some(Address::new(bytes))
}

/// Exactly as many digits as fill the bytes: the decoder alone would take a prefix as well.
fn decode(digits: &[u8], bytes: &mut [u8]) -> Option<()> {
    (digits.len() == 2 * bytes.len()).then_some(())?;
    hex::decode_to_slice(digits, bytes).ok()
}

#[cfg(test)]
mod tests;
