//! Recognizes the most frequent requests in one pass over their bytes.
//!
//! These are a balance, a block, a call or a simulation at `latest` or `pending`, a receipt and logs,
//! single or in a batch. A call may only have a sender, a recipient and data. Anything else is not
//! recognized, which is not an error: the general path then parses the body and answers or rejects
//! it. The parser may therefore be strict, but the meaning of a recognized request must be the same
//! as on the general path.

use alloy_primitives::{Address, B256};

use super::logs::LogQuery;
use crate::params::{
    Call, hex, read_call,
    text::{Kind, Malformed, Text},
};

/// A request and its id as sent.
#[derive(Debug, PartialEq, Eq)]
pub struct Asked<'b> {
    pub id: &'b [u8],
    pub question: Question<'b>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question<'b> {
    Balance {
        address: Address,
        at: Tag,
    },
    Block {
        at: Tag,
        full: bool,
    },
    Call {
        call: Box<Call>,
        at: Tag,
    },
    /// The payload is not read yet.
    Simulation {
        payload: &'b [u8],
        at: Tag,
    },
    Receipt {
        transaction: B256,
    },
    Logs {
        query: Box<LogQuery>,
    },
}

impl Question<'_> {
    pub fn method(&self) -> Method {
        match self {
            Self::Balance { .. } => Method::Balance,
            Self::Block { .. } => Method::Block,
            Self::Call { .. } => Method::Call,
            Self::Simulation { .. } => Method::Simulation,
            Self::Receipt { .. } => Method::Receipt,
            Self::Logs { .. } => Method::Logs,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Balance,
    Block,
    Call,
    Receipt,
    Logs,
    Simulation,
}

impl Method {
    pub fn name(self) -> &'static str {
        match self {
            Self::Balance => "eth_getBalance",
            Self::Block => "eth_getBlockByNumber",
            Self::Call => "eth_call",
            Self::Receipt => "eth_getTransactionReceipt",
            Self::Logs => "eth_getLogs",
            Self::Simulation => "eth_simulateV1",
        }
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

/// The maximum length of a single request in bytes. Longer ones are mostly simulations that exceed
/// other limits, and would be read twice.
const LONGEST: usize = 16 * 1024;

/// Reads the requests of a body, at most `most`. The second value is true for a batch. `None` if
/// anything is not recognized.
pub fn read(body: &[u8], most: usize) -> Option<(Vec<Asked<'_>>, bool)> {
    let mut text = Text::new(body);
    let batch = text.kind().ok()? == Kind::Array;
    if !batch && body.len() > LONGEST {
        return None;
    }
    let mut asked = Vec::new();
    if batch {
        asked.reserve(most.min(body.len() / SHORTEST));
        text.array(|text, index| {
            asked.push(request(text)?);
            recognised(index < most)
        })
        .ok()?;
    } else {
        asked.push(request(&mut text).ok()?);
    }
    text.end().ok()?;
    (!asked.is_empty()).then_some((asked, batch))
}

type Result<T> = std::result::Result<T, Malformed>;

/// The minimum length of a recognized request in bytes.
const SHORTEST: usize = 64;

/// Longer ids are not recognized.
const LONGEST_ID: usize = 40;

fn request<'b>(text: &mut Text<'b>) -> Result<Asked<'b>> {
    let (mut version, mut id, mut method, mut params) = (None, None, None, None);
    text.object(|text, name| match name.as_ref() {
        b"jsonrpc" => once(&mut version, text.plain_string()?),
        b"id" => once(&mut id, scalar(text)?),
        b"method" => once(&mut method, text.plain_string()?),
        b"params" => once(&mut params, Params::read(text)?),
        _ => Err(Malformed),
    })?;
    recognised(version == Some(b"2.0"))?;
    match (id, method, params) {
        (Some(id), Some(method), Some(params)) => {
            Ok(Asked { id, question: question(method, params)? })
        }
        _ => Err(Malformed),
    }
}

fn recognised(is: bool) -> Result<()> {
    if is { Ok(()) } else { Err(Malformed) }
}

/// On the general path the last of duplicate names counts; here duplicates are not recognized.
fn once<T>(place: &mut Option<T>, value: T) -> Result<()> {
    recognised(place.replace(value).is_none())
}

/// The text of a short number or string.
fn scalar<'b>(text: &mut Text<'b>) -> Result<&'b [u8]> {
    recognised(matches!(text.kind()?, Kind::Number | Kind::String))?;
    text.skip().and_then(|id| recognised(id.len() <= LONGEST_ID).map(|()| id))
}

struct Params<'b>(Argument<'b>, Option<Argument<'b>>);

enum Argument<'b> {
    Text(&'b [u8]),
    Choice(bool),
    Object(&'b [u8]),
}

impl<'b> Params<'b> {
    fn read(text: &mut Text<'b>) -> Result<Self> {
        let (mut first, mut second) = (None, None);
        text.array(|text, _| match first {
            None => once(&mut first, Argument::read(text)?),
            Some(_) => once(&mut second, Argument::read(text)?),
        })?;
        first.map(|first| Self(first, second)).ok_or(Malformed)
    }
}

impl<'b> Argument<'b> {
    fn read(text: &mut Text<'b>) -> Result<Self> {
        match text.kind()? {
            Kind::String => text.plain_string().map(Self::Text),
            Kind::Object => text.skip().map(Self::Object),
            _ => text.boolean().map(Self::Choice),
        }
    }
}

/// Reads a call with only a sender, a recipient and data.
fn call(object: &[u8]) -> Result<Box<Call>> {
    let call = read_call(&mut Text::new(object))?;
    recognised(call.rest.is_none() && call.gas.is_none() && call.value.is_zero())?;
    Ok(Box::new(call))
}

fn question<'b>(method: &[u8], params: Params<'b>) -> Result<Question<'b>> {
    use Argument::{Choice, Object, Text};
    let tag = |text| Tag::read(text).ok_or(Malformed);
    match (method, params) {
        (b"eth_getBalance", Params(Text(who), Some(Text(at)))) => {
            let address = hex::fixed(who).map(Address::new).ok_or(Malformed)?;
            Ok(Question::Balance { address, at: tag(at)? })
        }
        (b"eth_getBlockByNumber", Params(Text(at), Some(Choice(full)))) => {
            Ok(Question::Block { at: tag(at)?, full })
        }
        (b"eth_call", Params(Object(object), Some(Text(at)))) => {
            Ok(Question::Call { call: call(object)?, at: tag(at)? })
        }
        (b"eth_simulateV1", Params(Object(payload), Some(Text(at)))) => {
            Ok(Question::Simulation { payload, at: tag(at)? })
        }
        (b"eth_getTransactionReceipt", Params(Text(hash), None)) => {
            let transaction = hex::fixed(hash).map(B256::new).ok_or(Malformed)?;
            Ok(Question::Receipt { transaction })
        }
        (b"eth_getLogs", Params(Object(filter), None)) => {
            LogQuery::read(filter).map(|query| Question::Logs { query: Box::new(query) })
        }
        _ => Err(Malformed),
    }
}

#[cfg(test)]
mod tests;
