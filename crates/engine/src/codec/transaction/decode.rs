//! Decodes transactions, one or many at a time.
//!
//! The underlying crates are lenient in places (wrong lengths, trailing bytes), so every decoded
//! transaction is re-encoded and compared with the input.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use alloy_consensus::crypto::SECP256K1N_HALF;
use alloy_consensus::crypto::secp256k1::{recover_signer, recover_signer_unchecked};
use alloy_consensus::transaction::RlpEcdsaDecodableTx;
use alloy_consensus::{TxEip1559, TxEip2930, TxEip4844, TxEip7702, TxLegacy};
use alloy_eips::eip2718::Encodable2718;
use alloy_primitives::{Address, B256, Bytes, keccak256};

use super::{
    DEPOSIT_TYPE, Envelope, POST_EXEC_TYPE, Signed, Transaction, TxDeposit, named::named_sender,
};
use crate::error::{Error, Result};

/// The number of transactions that a thread recovers before it takes more. One recovery takes about
/// 45 µs, so a chunk far outweighs the cost of starting a thread.
const CHUNK: usize = 32;

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
    let sender = sender(&envelope, homestead)?;
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

pub fn deposit(deposit: TxDeposit) -> Transaction {
    let raw: Bytes = deposit.encoded_2718().into();
    let (hash, sender) = (keccak256(&raw), deposit.from);
    Transaction { envelope: Envelope::Deposit(deposit), hash, sender, raw }
}

/// Checks that the bytes are the canonical encoding of a transaction, without checking its
/// signature. This is a hundred times cheaper than `decode`. The content of a post-execution
/// transaction is not checked: its block can be hashed, but not executed.
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

/// Decodes many transactions on up to `threads` threads including this one, at most one per core. 0
/// means one per core. The results are in input order.
pub fn decode_all<T>(raws: &[T], homestead: bool, threads: usize) -> Vec<Result<Transaction>>
where
    T: AsRef<[u8]> + Sync,
{
    let chunks: Vec<&[T]> = raws.chunks(CHUNK).collect();
    let cores = thread::available_parallelism().map_or(1, Into::into);
    let threads = if threads == 0 { cores } else { threads.min(cores) };
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some((index, chunk)) = take(&chunks, &next) {
            let decoded: Vec<_> =
                chunk.iter().map(|raw| decode_at(raw.as_ref(), homestead)).collect();
            done.push((index, decoded));
        }
        done
    };
    let mut done = thread::scope(|scope| {
        let helpers = threads.min(chunks.len()).saturating_sub(1);
        // If a thread cannot be started, the others process its chunks.
        let helpers: Vec<_> = (0..helpers)
            .map_while(|_| thread::Builder::new().spawn_scoped(scope, work).ok())
            .collect();
        let mut done = work();
        for helper in helpers {
            done.extend(helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        done
    });
    done.sort_unstable_by_key(|(index, _)| *index);
    done.into_iter().flat_map(|(_, decoded)| decoded).collect()
}

/// The next unclaimed chunk and its index.
fn take<'a, T>(chunks: &[&'a [T]], next: &AtomicUsize) -> Option<(usize, &'a [T])> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    chunks.get(index).map(|chunk| (index, *chunk))
}

pub(super) fn parse(raw: &[u8]) -> Result<(Envelope, B256)> {
    let hash = keccak256(raw);
    let envelope = match raw {
        [] => return Err(undecodable("no bytes")),
        [0xc0..=0xff, ..] => Envelope::Signed(Signed::Legacy(signed::<TxLegacy>(raw, hash)?)),
        [0x01, rest @ ..] => Envelope::Signed(Signed::Eip2930(signed::<TxEip2930>(rest, hash)?)),
        [0x02, rest @ ..] => signed_or_named(Signed::Eip1559(signed::<TxEip1559>(rest, hash)?)),
        [0x03, rest @ ..] => Envelope::Signed(Signed::Eip4844(signed::<TxEip4844>(rest, hash)?)),
        [0x04, rest @ ..] => Envelope::Signed(Signed::Eip7702(signed::<TxEip7702>(rest, hash)?)),
        [DEPOSIT_TYPE, rest @ ..] => Envelope::Deposit(deposit_fields(rest)?),
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
    }
}

fn sender(envelope: &Envelope, homestead: bool) -> Result<Address> {
    let signed = match envelope {
        Envelope::Signed(signed) | Envelope::Unsigned(signed) => signed,
        Envelope::Deposit(deposit) => return Ok(deposit.from),
    };
    // Typed transactions were introduced after Homestead.
    let low_s = homestead || !signed.is_legacy();
    if low_s && signed.signature().s() > SECP256K1N_HALF {
        return Err(undecodable("the signature's s is above half the curve order"));
    }
    let recover = if low_s { recover_signer } else { recover_signer_unchecked };
    recover(signed.signature(), signed.signature_hash())
        .map_err(|_| undecodable("no sender can be recovered from the signature"))
}

fn undecodable(why: impl Into<String>) -> Error {
    Error::Undecodable { what: "transaction", why: why.into() }
}
