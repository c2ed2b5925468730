//! The contract ABI: encodes calls from text, decodes outputs and revert reasons.
//!
//! Decoding is lenient, as in wallets and other nodes: padding may be missing or non-zero, and
//! trailing bytes are ignored. Invalid UTF-8 is decoded with replacement characters.

use alloy_dyn_abi::{DynSolType, Specifier};
use alloy_json_abi::{Function, Param};
use alloy_primitives::keccak256;

use crate::error::{Error, Result};

pub use alloy_dyn_abi::DynSolValue as Value;

const ERROR: [u8; 4] = [0x08, 0xc3, 0x79, 0xa0]; // Error(string)
const PANIC: [u8; 4] = [0x4e, 0x48, 0x7b, 0x71]; // Panic(uint256)

/// Encodes call data: the selector of a signature such as `balanceOf(address)(uint256)`, and the
/// arguments.
///
/// Arrays are written `[1, 2]` and tuples `(1, true)`; strings in them may be quoted.
///
/// # Errors
/// `InvalidArgument` for an invalid signature or an argument of the wrong type.
pub fn encode_call<S: AsRef<str>>(signature: &str, arguments: &[S]) -> Result<Vec<u8>> {
    let (name, inputs, _) = parse_signature(signature)?;
    if arguments.len() != inputs.len() {
        return Err(Error::invalid(format!(
            "{name} takes {}, {} given",
            counted(inputs.len()),
            arguments.len()
        )));
    }
    let values: Result<Vec<_>> =
        inputs.iter().zip(arguments).map(|(kind, text)| coerce(kind, text.as_ref())).collect();
    let mut data =
        keccak256(format!("{name}{}", canonical(&DynSolType::Tuple(inputs))))[..4].to_vec();
    data.extend(Value::Tuple(values?).abi_encode_params());
    Ok(data)
}

/// Decodes the output of a function. Empty if its signature has no outputs.
///
/// # Errors
/// `InvalidArgument` for an invalid signature, `Undecodable` for output that is too short.
pub fn decode_output(signature: &str, output: &[u8]) -> Result<Vec<Value>> {
    let (_, _, outputs) = parse_signature(signature)?;
    let kind = DynSolType::Tuple(outputs);
    match kind.abi_decode_params(output) {
        Ok(Value::Tuple(values)) => Ok(values),
        Ok(other) => Ok(vec![other]),
        Err(error) => {
            let why = format!("{} bytes are not {}: {error}", output.len(), canonical(&kind));
            Err(Error::Undecodable { what: "output", why })
        }
    }
}

/// The reason in revert data: the string of `Error(string)`, or geth's text for the code of
/// `Panic(uint256)`.
#[must_use]
pub fn revert_reason(output: &[u8]) -> Option<String> {
    let (selector, arguments) = output.split_first_chunk::<4>()?;
    match *selector {
        ERROR => match DynSolType::String.abi_decode(arguments).ok()? {
            Value::String(text) => Some(text),
            _ => None,
        },
        PANIC => {
            let (code, _) = DynSolType::Uint(256).abi_decode(arguments).ok()?.as_uint()?;
            let known = u8::try_from(code).ok().and_then(panic_text);
            Some(known.map_or_else(|| format!("unknown panic code: {code:#x}"), str::to_owned))
        }
        _ => None,
    }
}

fn parse_signature(text: &str) -> Result<(String, Vec<DynSolType>, Vec<DynSolType>)> {
    let bad = |why: &dyn std::fmt::Display| {
        Error::invalid(format!("{text:?} is not a signature such as balanceOf(address): {why}"))
    };
    let parsed = Function::parse(text).map_err(|error| bad(&reason(&error)))?;
    let resolve = |params: &[Param]| {
        let types = params.iter().map(|each| each.resolve().map_err(|error| bad(&reason(&error))));
        types.collect::<Result<Vec<_>>>()
    };
    Ok((parsed.name.clone(), resolve(&parsed.inputs)?, resolve(&parsed.outputs)?))
}

/// Parses an argument. Strings are taken verbatim.
fn coerce(kind: &DynSolType, text: &str) -> Result<Value> {
    if *kind == DynSolType::String {
        return Ok(Value::String(text.to_owned()));
    }
    kind.coerce_str(text).map_err(|error| {
        Error::invalid(format!("{text:?} is not a valid {}: {}", canonical(kind), reason(&error)))
    })
}

/// The name of a type in a signature; alloy writes a tuple of one as `(bool,)`.
fn canonical(kind: &DynSolType) -> String {
    kind.sol_type_name().replace(",)", ")")
}

/// A parser error in one line. The parsers print the text and a caret above the message.
fn reason(error: &impl std::fmt::Display) -> String {
    match error.to_string().lines().map(str::trim).next_back() {
        None | Some("" | "^") => "syntax error".to_owned(),
        Some(message) => message.to_owned(),
    }
}

fn counted(arguments: usize) -> String {
    format!("{arguments} argument{}", if arguments == 1 { "" } else { "s" })
}

fn panic_text(code: u8) -> Option<&'static str> {
    Some(match code {
        0x00 => "generic panic",
        0x01 => "assert(false)",
        0x11 => "arithmetic underflow or overflow",
        0x12 => "division or modulo by zero",
        0x21 => "enum overflow",
        0x22 => "invalid encoded storage byte array accessed",
        0x31 => "out-of-bounds array access; popping on an empty array",
        0x32 => "out-of-bounds access of an array or bytesN",
        0x41 => "out of memory",
        0x51 => "uninitialized function",
        _ => return None,
    })
}
