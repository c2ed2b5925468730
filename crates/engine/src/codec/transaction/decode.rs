//! Decodes single transactions.
//!
//! The underlying crates are lenient in places (wrong lengths, trailing bytes), so every decoded
//! transaction is re-encoded and compared with the input.
//!
//! Recovering a sender takes thirty times as long as the rest. A transaction is decoded again when
//! another message or block contains it, or when it waits for state, so recovered senders are kept
//! by transaction hash, for all threads of the process. The hash covers the signature, so they cannot
//! become stale.

use std::sync::{LazyLock, Mutex, PoisonError};

use alloy_consensus::crypto::SECP256K1N_HALF;
use alloy_consensus::crypto::secp256k1::{recover_signer, recover_signer_unchecked};
use alloy_consensus::transaction::RlpEcdsaDecodableTx;
use alloy_consensus::{TxEip1559, TxEip2930, TxEip4844, TxEip7702, TxLegacy};
use alloy_eips::eip2718::Encodable2718;
use alloy_primitives::{Address, B256, Bytes, keccak256};
use alloy_rlp::{Decodable, Header};
use op_alloy_consensus::{
    POST_EXEC_PAYLOAD_VERSION, PostExecPayload, SDMGasEntry, TxDeposit, TxPostExec,
    build_post_exec_tx,
};

use super::envelope::{DEPOSIT_TYPE, Envelope, POST_EXEC_TYPE, Signed, Transaction, named_sender};
use crate::error::{Error, Result};
use crate::generations::Generations;

/// The size of each generation: the transactions of four seconds of a busy chain.
const MAX_SENDERS: usize = 8_192;

static SENDERS: LazyLock<Mutex<Generations<Address>>> =
    LazyLock::new(|| Mutex::new(Generations::new(MAX_SENDERS, usize::MAX)));

/// Decodes one EIP-2718 encoding and recovers its sender, with the rules since Homestead.
///
/// # Errors
///
/// `Undecodable` with the reason.
pub fn decode(raw: &[u8]) -> Result<Transaction> {
    decode_at(raw, true)
}

/// Like `decode`. Without `homestead`, a signature with a high `s` is accepted, as in Frontier
/// blocks (EIP-2 forbids it).
///
/// # Errors
///
/// `Undecodable` with the reason.
pub fn decode_at(raw: &[u8], homestead: bool) -> Result<Transaction> {
    let (envelope, hash) = parse(raw)?;
    let sender = sender(&envelope, hash, homestead)?;
    Ok(Transaction { envelope, hash, sender, raw: Bytes::copy_from_slice(raw) })
}

/// Like `decode`, but uses a `sender` recovered earlier.
///
/// # Errors
///
/// `Undecodable` with the reason.
pub fn decode_known(raw: &[u8], sender: Address) -> Result<Transaction> {
    let (envelope, hash) = parse(raw)?;
    Ok(Transaction { envelope, hash, sender, raw: Bytes::copy_from_slice(raw) })
}

/// The transaction that ends a block with these refunds: the index of a transaction, and its gas.
pub fn post_exec_of(block_number: u64, refunds: &[(u64, u64)]) -> Transaction {
    let entries = refunds.iter().map(|&(index, gas_refund)| SDMGasEntry { index, gas_refund });
    let post_exec = build_post_exec_tx(block_number, entries.collect());
    let raw: Bytes = post_exec.encoded_2718().into();
    let (hash, sender) = (keccak256(&raw), post_exec.signer_address());
    Transaction { envelope: Envelope::PostExec(post_exec), hash, sender, raw }
}

pub fn deposit(deposit: TxDeposit) -> Transaction {
    let raw: Bytes = deposit.encoded_2718().into();
    let (hash, sender) = (keccak256(&raw), deposit.from);
    Transaction { envelope: Envelope::Deposit(deposit), hash, sender, raw }
}

/// Checks that the bytes are the canonical encoding of a transaction, without checking its
/// signature. This is a hundred times cheaper than `decode`. The content of a post-execution
/// transaction is not checked: a block of a later fork can be hashed, but not executed.
///
/// # Errors
///
/// `Undecodable` with the reason.
pub fn check(raw: &[u8]) -> Result<()> {
    match raw {
        [POST_EXEC_TYPE, _, ..] => Ok(()),
        _ => parse(raw).map(drop),
    }
}

/// Decodes a named transaction. Rejects all others.
///
/// # Errors
///
/// `Undecodable` with the reason.
pub fn decode_named(raw: &[u8]) -> Result<Transaction> {
    let (envelope, hash) = parse(raw)?;
    let sender = match &envelope {
        Envelope::Unsigned(signed) => named_sender(signed),
        Envelope::Signed(_) | Envelope::Deposit(_) | Envelope::PostExec(_) => None,
    };
    let sender = sender.ok_or_else(|| Error::Undecodable {
        what: "transaction",
        why: "it names no sender".into(),
    })?;
    Ok(Transaction { envelope, hash, sender, raw: Bytes::copy_from_slice(raw) })
}

/// Decodes a transaction as `decode_at`, and with `named` also one that names its sender.
///
/// # Errors
///
/// `Undecodable` with the reason of `decode_at`.
pub fn decode_one(raw: &[u8], homestead: bool, named: bool) -> Result<Transaction> {
    decode_at(raw, homestead).or_else(|error| match named {
        true => decode_named(raw).map_err(|_| error),
        false => Err(error),
    })
}

fn parse(raw: &[u8]) -> Result<(Envelope, B256)> {
    let hash = keccak256(raw);
    let envelope = match raw {
        [] => return Err(undecodable("no bytes")),
        [0xc0..=0xff, ..] => Envelope::Signed(Signed::Legacy(signed::<TxLegacy>(raw, hash)?)),
        [0x01, rest @ ..] => Envelope::Signed(Signed::Eip2930(signed::<TxEip2930>(rest, hash)?)),
        [0x02, rest @ ..] => signed_or_named(Signed::Eip1559(signed::<TxEip1559>(rest, hash)?)),
        [0x03, rest @ ..] => Envelope::Signed(Signed::Eip4844(signed::<TxEip4844>(rest, hash)?)),
        [0x04, rest @ ..] => Envelope::Signed(Signed::Eip7702(signed::<TxEip7702>(rest, hash)?)),
        [DEPOSIT_TYPE, rest @ ..] => Envelope::Deposit(deposit_fields(rest)?),
        [POST_EXEC_TYPE, rest @ ..] => Envelope::PostExec(post_exec(rest)?),
        [kind @ 0x80..=0xbf, ..] => {
            return Err(undecodable(format!("{kind:#04x} starts neither a list nor a type")));
        }
        [kind, ..] => return Err(undecodable(format!("type {kind:#04x} is not supported"))),
    };
    if encode(&envelope) != raw {
        return Err(undecodable("not the canonical encoding"));
    }
    Ok((envelope, hash))
}

fn signed<T: RlpEcdsaDecodableTx>(
    mut rest: &[u8],
    hash: B256,
) -> Result<alloy_consensus::Signed<T>> {
    let (transaction, signature) =
        T::rlp_decode_with_signature(&mut rest).map_err(|why| undecodable(why.to_string()))?;
    no_bytes_left(rest)?;
    Ok(alloy_consensus::Signed::new_unchecked(transaction, signature, hash))
}

fn signed_or_named(signed: Signed) -> Envelope {
    match named_sender(&signed) {
        Some(_) => Envelope::Unsigned(signed),
        None => Envelope::Signed(signed),
    }
}

fn deposit_fields(mut rest: &[u8]) -> Result<TxDeposit> {
    let deposit = TxDeposit::rlp_decode(&mut rest).map_err(|why| undecodable(why.to_string()))?;
    no_bytes_left(rest)?;
    Ok(deposit)
}

/// The fields after the block number are those of version 1. A transaction of another version has
/// no refunds here, and no block that is executed may contain it.
fn post_exec(rest: &[u8]) -> Result<TxPostExec> {
    let broken = |why: alloy_rlp::Error| undecodable(why.to_string());
    let mut fields = rest;
    let mut fields = Header::decode_bytes(&mut fields, true).map_err(broken)?;
    let version = u8::decode(&mut fields).map_err(broken)?;
    let block_number = u64::decode(&mut fields).map_err(broken)?;
    if version == POST_EXEC_PAYLOAD_VERSION {
        return PostExecPayload::from_rlp_bytes(rest).map(TxPostExec::new).map_err(broken);
    }
    let payload = PostExecPayload { version, block_number, gas_refund_entries: Vec::new() };
    Ok(TxPostExec { payload, input: Bytes::copy_from_slice(rest) })
}

fn no_bytes_left(rest: &[u8]) -> Result<()> {
    match rest.len() {
        0 => Ok(()),
        left => Err(undecodable(format!("{left} bytes left over after it"))),
    }
}

fn encode(envelope: &Envelope) -> Vec<u8> {
    match envelope {
        Envelope::Signed(signed) | Envelope::Unsigned(signed) => signed.encoded_2718(),
        Envelope::Deposit(deposit) => deposit.encoded_2718(),
        Envelope::PostExec(post_exec) => post_exec.encoded_2718(),
    }
}

fn sender(envelope: &Envelope, hash: B256, homestead: bool) -> Result<Address> {
    let signed = match envelope {
        Envelope::Signed(signed) | Envelope::Unsigned(signed) => signed,
        Envelope::Deposit(deposit) => return Ok(deposit.from),
        Envelope::PostExec(post_exec) => return Ok(post_exec.signer_address()),
    };
    // Typed transactions were introduced after Homestead.
    let low_s = homestead || !signed.is_legacy();
    if low_s && signed.signature().s() > SECP256K1N_HALF {
        return Err(undecodable("the signature's s is above half the curve order"));
    }
    let recover = if low_s { recover_signer } else { recover_signer_unchecked };
    recovered(hash, || {
        recover(signed.signature(), signed.signature_hash())
            .map_err(|_| undecodable("no sender can be recovered from the signature"))
    })
}

/// Returns the sender of the transaction with this hash. Calls `recover` if it is not known.
fn recovered(hash: B256, recover: impl FnOnce() -> Result<Address>) -> Result<Address> {
    // The maps are consistent at every step, so a poisoned lock can still be used.
    let cache = || SENDERS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(sender) = cache().get(&hash, |_| 0) {
        return Ok(sender);
    }
    let sender = recover()?;
    cache().insert(hash, sender, 0);
    Ok(sender)
}

fn undecodable(why: impl Into<String>) -> Error {
    Error::Undecodable { what: "transaction", why: why.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_is_recovered_once_and_a_failure_is_not_kept() {
        let (hash, sender) = (B256::repeat_byte(0x5e), Address::repeat_byte(1));
        let failed = || Error::invalid("no sender");
        assert_eq!(recovered(hash, || Err(failed())), Err(failed()));
        assert_eq!(recovered(hash, || Ok(sender)), Ok(sender));
        assert_eq!(recovered(hash, || panic!("it is kept")), Ok(sender));
        let other = B256::repeat_byte(0x5f);
        assert_eq!(recovered(other, || Ok(Address::ZERO)), Ok(Address::ZERO));
    }
}
