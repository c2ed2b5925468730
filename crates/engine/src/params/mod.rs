//! Parses request parameters from JSON into engine types.
//!
//! There is one reader for each shape, for any size. Errors name the argument, the position in it
//! and the reason, and are suitable for the client. Types are checked first, in the order of the
//! text, then values, in the order of the fields. A text is parsed once; errors in parts that are
//! checked later are kept until then. If an object has duplicate names, the last one counts.
//! Unknown names are ignored.

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
pub use simulate::{Block, Calls, Limits, PlainBlock, PlainCall, SimulateParams, read_plain};

use text::{Kind, Malformed, Text};

/// The reason for rejecting a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// An argument is invalid.
    Argument { argument: usize, refusal: Refusal },
    /// The arguments as a whole do not match the method.
    Params(String),
    /// An override is well-formed but not supported by this method.
    Override(String),
    /// The request exceeds a limit of the service.
    Limit(String),
}

/// The error in an argument and its position, such as `.to` or `[3].address`; empty for the whole
/// argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    place: String,
    pub why: String,
}

pub(crate) type Reading<T> = Result<T, Box<Refusal>>;

impl Refusal {
    /// The position from the top of the argument, such as `$.to`; empty for the whole argument.
    pub fn path(&self) -> String {
        if self.place.is_empty() { String::new() } else { format!("${}", self.place) }
    }

    fn of(self, argument: usize) -> Refused {
        Refused::Argument { argument, refusal: self }
    }
}

/// The request was checked to be valid JSON before, except for its depth.
impl From<Malformed> for Box<Refusal> {
    fn from(_: Malformed) -> Self {
        refusal("nested too deeply")
    }
}

fn refusal(why: impl Into<String>) -> Box<Refusal> {
    Box::new(Refusal { place: String::new(), why: why.into() })
}

/// Adds the position to an error.
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

/// Reads the arguments of a method that takes up to `most`. `read` gets each argument with its
/// index.
///
/// Too many arguments are reported before any other error. Returns the number of arguments.
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

/// Returns the reader's error instead of failing. The text advances past the value in any case.
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

/// Checks that the first `required` arguments are present and not null. `names` are the names of
/// all arguments.
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

/// A block parameter with checked types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockName<'a> {
    /// The content of a string without escapes.
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

/// Reads a block parameter, `None` for null.
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

/// Reads a string, `None` for null.
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

/// Reads an array and adds the index to errors. `None` for null.
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

/// Reads an object. Returns false for null.
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

/// Reads an object. Rejects null.
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

/// Fails if a required field is missing.
fn present<T>(field: Option<T>, name: &str) -> Reading<T> {
    field.ok_or_else(|| refusal(format!("object missing required field '{name}'")))
}

/// Keeps the last value of duplicate names, at the position of the first.
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

/// The position of a member by name.
struct Member<'a>(&'a [u8]);

impl Display for Member<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, ".{}", String::from_utf8_lossy(self.0))
    }
}

/// The position of a member by a prefix of its name, because the client chose the name.
struct Named<'a>(&'a [u8], usize);

impl Display for Named<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name: String = String::from_utf8_lossy(self.0).chars().take(self.1).collect();
        write!(out, ".{name}")
    }
}

/// The position of an array item.
struct Index(usize);

impl Display for Index {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "[{}]", self.0)
    }
}

#[cfg(test)]
mod tests;
