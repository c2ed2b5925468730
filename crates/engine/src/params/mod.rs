//! Parameters of requests, read from JSON into values of the engine.
//!
//! One reader for each shape, at any size. A reader takes all that the shape allows and refuses
//! everything else with the argument, the place in it and the reason, in words for the client.
//! Types are checked first, in the order of the text; then values, in the order of the fields.
//! A text is read once: what is wrong with a part that is judged later is kept until then.
//! Of equal names in an object the last one counts, and unknown names are ignored.

mod block_overrides;
mod call;
pub mod hex;
mod overrides;
pub mod parts;
mod simulate;
pub(crate) mod text;

use std::{borrow::Cow, collections::HashMap, fmt::Display};

pub use block_overrides::BlockOverrides;
pub(crate) use call::read_call;
pub use call::{Call, CallParams, Rest};
pub use overrides::Overrides;
pub use simulate::{Block, Calls, Limits, SimulateParams};

use text::{Kind, Malformed, Text};

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// An argument cannot be read.
    Argument { argument: usize, refusal: Refusal },
    /// The arguments as a whole are not what the method takes.
    Params(String),
    /// An override is well-formed and not for this method.
    Override(String),
    /// More is asked for than the service allows.
    Limit(String),
}

/// What is wrong with an argument, and where in it: `.to`, `[3].address`, or nowhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    place: String,
    pub why: String,
}

pub(crate) type Reading<T> = Result<T, Box<Refusal>>;

impl Refusal {
    /// The place from the top of the argument, `$.to`; empty where all of it is meant.
    pub fn path(&self) -> String {
        if self.place.is_empty() { String::new() } else { format!("${}", self.place) }
    }

    fn of(self, argument: usize) -> Refused {
        Refused::Argument { argument, refusal: self }
    }
}

/// The request was checked to be JSON before, but for its depth.
impl From<Malformed> for Box<Refusal> {
    fn from(_: Malformed) -> Self {
        refusal("nested too deeply")
    }
}

fn refusal(why: impl Into<String>) -> Box<Refusal> {
    Box::new(Refusal { place: String::new(), why: why.into() })
}

/// Puts a reading in its place.
trait At<T> {
    fn at(self, place: impl Display) -> Reading<T>;
}

impl<T> At<T> for Reading<T> {
    fn at(self, place: impl Display) -> Self {
        self.map_err(|mut refusal| {
            refusal.place.insert_str(0, &place.to_string());
            refusal
        })
    }
}

impl<T> At<T> for Result<T, String> {
    fn at(self, place: impl Display) -> Reading<T> {
        self.map_err(refusal).at(place)
    }
}

/// The arguments of a method that takes `most`; `read` is given each with its index.
///
/// Too many are refused before anything else. The number of arguments comes back.
fn arguments<'a>(
    params: &'a [u8],
    most: usize,
    mut read: impl FnMut(&mut Text<'a>, usize) -> Reading<()>,
) -> Result<usize, Refused> {
    let mut text = Text::new(params);
    match text.kind() {
        Ok(Kind::Array) => {}
        Ok(Kind::Null) => return Ok(0),
        _ => return Err(Refused::Params("non-array args".into())),
    }
    let (mut count, mut refused) = (0, None);
    let ended: Result<(), Malformed> = text.array(|text, index| {
        count = index + 1;
        if index >= most || refused.is_some() {
            return text.skip().map(drop);
        }
        refused = kept(text, |text| read(text, index))?.err().map(|refusal| refusal.of(index));
        Ok(())
    });
    match refused {
        _ if count > most => {
            Err(Refused::Params(format!("too many arguments, want at most {most}")))
        }
        Some(refused) => Err(refused),
        None if ended.is_err() => Err(refusal("nested too deeply").of(count.saturating_sub(1))),
        None => Ok(count),
    }
}

/// A reading whose refusal is for later: the text goes on behind the value in any case.
fn kept<'a, T>(
    text: &mut Text<'a>,
    read: impl FnOnce(&mut Text<'a>) -> Reading<T>,
) -> Result<Reading<T>, Malformed> {
    let mut value = *text;
    let read = read(&mut value);
    match &read {
        Ok(_) => *text = value,
        Err(_) => drop(text.skip()?),
    }
    Ok(read)
}

/// The first `required` arguments must be there and not null; `names` are those of all.
fn require(required: usize, count: usize, names: &[&str], is_null: &[bool]) -> Result<(), Refused> {
    for (argument, name) in names.iter().enumerate().take(required) {
        if argument >= count {
            let why = format!("missing value for required argument {argument} ({name})");
            return Err(Refused::Params(why));
        }
        if is_null[argument] {
            return Err(refusal(format!("{name} is required, found null")).of(argument));
        }
    }
    Ok(())
}

/// A block parameter whose types are right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockName<'a> {
    /// What a string without escapes says.
    Plain(&'a str),
    Json(&'a [u8]),
}

impl<'a> BlockName<'a> {
    fn new(json: &'a [u8]) -> Option<Self> {
        let plain = Text::new(json).plain_string().ok();
        match plain.and_then(|text| std::str::from_utf8(text).ok()) {
            Some(text) => Some(Self::Plain(text)),
            None if json == b"null" => None,
            None => Some(Self::Json(json)),
        }
    }
}

/// A block parameter; nothing for null.
fn block<'a>(text: &mut Text<'a>) -> Reading<Option<BlockName<'a>>> {
    let mut value = *text;
    match value.kind()? {
        Kind::String | Kind::Null => {}
        Kind::Object => value.object(|text, name| match name.as_ref() {
            b"blockNumber" | b"blockHash" | b"flashblockIndex" => {
                optional_string(text).at(Member(&name)).map(drop)
            }
            b"requireCanonical" => optional_boolean(text).at(Member(&name)).map(drop),
            _ => Ok(text.skip().map(drop)?),
        })?,
        found => return Err(mismatch("a string or an object", found)),
    }
    Ok(BlockName::new(text.skip()?))
}

/// A string; nothing for null.
fn optional_string<'a>(text: &mut Text<'a>) -> Reading<Option<Cow<'a, [u8]>>> {
    match text.kind()? {
        Kind::String => Ok(Some(text.string()?)),
        Kind::Null => Ok(text.skip().map(|_| None)?),
        found => Err(mismatch("a string", found)),
    }
}

fn string<'a>(text: &mut Text<'a>) -> Reading<Cow<'a, [u8]>> {
    match text.kind()? {
        Kind::String => Ok(text.string()?),
        found => Err(mismatch("a string", found)),
    }
}

fn optional_boolean(text: &mut Text<'_>) -> Reading<Option<bool>> {
    match text.kind()? {
        Kind::Bool => Ok(Some(text.boolean()?)),
        Kind::Null => Ok(text.skip().map(|_| None)?),
        found => Err(mismatch("true or false", found)),
    }
}

/// The items of an array, each in its place; nothing for null.
fn optional_array<'a, T>(
    text: &mut Text<'a>,
    mut item: impl FnMut(&mut Text<'a>) -> Reading<T>,
) -> Reading<Option<Vec<T>>> {
    match text.kind()? {
        Kind::Array => {}
        Kind::Null => return Ok(text.skip().map(|_| None)?),
        found => return Err(mismatch("an array", found)),
    }
    let mut items = Vec::new();
    text.array(|text, index| {
        items.push(item(text).at(Index(index))?);
        Ok::<(), Box<Refusal>>(())
    })?;
    Ok(Some(items))
}

/// The members of an object; false for null.
fn optional_object<'a>(
    text: &mut Text<'a>,
    member: impl FnMut(&mut Text<'a>, Cow<'a, [u8]>) -> Reading<()>,
) -> Reading<bool> {
    match text.kind()? {
        Kind::Object => text.object(member).map(|()| true),
        Kind::Null => Ok(text.skip().map(|_| false)?),
        found => Err(mismatch("an object", found)),
    }
}

/// Refuses null as well.
fn object<'a>(
    text: &mut Text<'a>,
    member: impl FnMut(&mut Text<'a>, Cow<'a, [u8]>) -> Reading<()>,
) -> Reading<()> {
    match text.kind()? {
        Kind::Object => text.object(member),
        found => Err(mismatch("an object", found)),
    }
}

fn mismatch(expected: &str, found: Kind) -> Box<Refusal> {
    let found = match found {
        Kind::String => "a string",
        Kind::Number => "a number",
        Kind::Bool => "true or false",
        Kind::Object => "an object",
        Kind::Array => "an array",
        Kind::Null => "null",
    };
    refusal(format!("expected {expected}, found {found}"))
}

/// A field of an object that must be there.
fn present<T>(field: Option<T>, name: &str) -> Reading<T> {
    field.ok_or_else(|| refusal(format!("object missing required field '{name}'")))
}

/// Keeps of equal names the last value, at the place of the first.
fn last_of_equals<'a, V>(members: &mut Vec<(Cow<'a, [u8]>, V)>) {
    let mut first: HashMap<_, usize> = HashMap::with_capacity(members.len());
    let mut kept: Vec<(Cow<'a, [u8]>, V)> = Vec::with_capacity(members.len());
    for (name, value) in members.drain(..) {
        match first.get(&name) {
            Some(place) => kept[*place].1 = value,
            None => {
                first.insert(name.clone(), kept.len());
                kept.push((name, value));
            }
        }
    }
    *members = kept;
}

/// The place of a member by its name.
struct Member<'a>(&'a [u8]);

impl Display for Member<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, ".{}", String::from_utf8_lossy(self.0))
    }
}

/// The place of a member by the first characters of its name, which the client chose.
struct Named<'a>(&'a [u8], usize);

impl Display for Named<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name: String = String::from_utf8_lossy(self.0).chars().take(self.1).collect();
        write!(out, ".{name}")
    }
}

/// The place of an item.
struct Index(usize);

impl Display for Index {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "[{}]", self.0)
    }
}

#[cfg(test)]
mod tests;
