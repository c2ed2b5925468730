//! JSON of a block's transactions, without the block hash.
//!
//! The block hash, which is the first member, and both braces are omitted: the hash of a pending
//! block changes with every flashblock, its transactions do not.

use alloy_eips::eip7702::SignedAuthorization;
use alloy_primitives::U256;

use crate::codec::header::Header;
use crate::codec::json::{array, data, member, optional, quantity, wide_quantity};
use crate::codec::transaction::{Envelope, Transaction};

/// The position of a transaction in its block, and the fields that only its receipt has.
pub struct Place<'a> {
    pub header: &'a Header,
    pub index: u64,
    /// Nonce and receipt version of a deposit, if stored.
    pub deposit: Option<(u64, u64)>,
}

/// Writes the members of a transaction object, without braces.
pub fn fragment(out: &mut Vec<u8>, transaction: &Transaction, place: &Place<'_>) {
    let (fields, header) = (transaction.fields(), place.header);
    let nonce = place.deposit.map_or_else(|| fields.nonce(), |(nonce, _)| nonce);
    let (r, s) =
        transaction.signature().map(|signature| (signature.r(), signature.s())).unwrap_or_default();
    member(out, b"\"blockNumber\":", |out| quantity(out, header.number));
    member(out, b",\"blockTimestamp\":", |out| quantity(out, header.timestamp));
    optional(out, b",\"blockTimestampMs\":", header.timestamp_ms(), quantity);
    member(out, b",\"transactionIndex\":", |out| quantity(out, place.index));
    member(out, b",\"type\":", |out| quantity(out, fields.ty().into()));
    member(out, b",\"hash\":", |out| data(out, transaction.hash));
    member(out, b",\"from\":", |out| data(out, transaction.sender));
    if transaction.post_exec().is_some() {
        member(out, b",\"gas\":", |out| quantity(out, 0));
        member(out, b",\"value\":", |out| quantity(out, 0));
        member(out, b",\"input\":", |out| data(out, fields.input()));
        return;
    }
    member(out, b",\"to\":", |out| match fields.to() {
        Some(to) => data(out, to),
        None => out.extend_from_slice(b"null"),
    });
    member(out, b",\"nonce\":", |out| quantity(out, nonce));
    member(out, b",\"gas\":", |out| quantity(out, fields.gas_limit()));
    member(out, b",\"gasPrice\":", |out| {
        wide_quantity(out, U256::from(fields.effective_gas_price(header.base_fee_per_gas)));
    });
    member(out, b",\"value\":", |out| wide_quantity(out, fields.value()));
    member(out, b",\"input\":", |out| data(out, fields.input()));
    member(out, b",\"v\":", |out| wide_quantity(out, U256::from(transaction.v())));
    member(out, b",\"r\":", |out| wide_quantity(out, r));
    member(out, b",\"s\":", |out| wide_quantity(out, s));
    match &transaction.envelope {
        Envelope::Deposit(_) => deposit_members(out, transaction, place.deposit),
        Envelope::Signed(_) | Envelope::Unsigned(_) if fields.ty() != 0 => {
            typed_members(out, transaction);
        }
        Envelope::Signed(_) | Envelope::PostExec(_) | Envelope::Unsigned(_) => (),
    }
    optional(out, b",\"chainId\":", fields.chain_id(), quantity);
}

fn typed_members(out: &mut Vec<u8>, transaction: &Transaction) {
    let fields = transaction.fields();
    let parity = transaction.signature().map_or(0, |signature| u64::from(signature.v()));
    member(out, b",\"yParity\":", |out| quantity(out, parity));
    member(out, b",\"accessList\":", |out| {
        let list = fields.access_list().map_or(&[][..], |list| &list.0);
        array(out, list, |out, item| {
            member(out, b"{\"address\":", |out| data(out, item.address));
            member(out, b",\"storageKeys\":", |out| array(out, &item.storage_keys, data));
            out.push(b'}');
        });
    });
    if fields.is_dynamic_fee() {
        member(out, b",\"maxFeePerGas\":", |out| {
            wide_quantity(out, U256::from(fields.max_fee_per_gas()));
        });
    }
    let wide = |out: &mut Vec<u8>, number: u128| wide_quantity(out, U256::from(number));
    optional(out, b",\"maxPriorityFeePerGas\":", fields.max_priority_fee_per_gas(), wide);
    optional(out, b",\"maxFeePerBlobGas\":", fields.max_fee_per_blob_gas(), wide);
    optional(out, b",\"blobVersionedHashes\":", fields.blob_versioned_hashes(), |out, hashes| {
        array(out, hashes, data);
    });
    optional(out, b",\"authorizationList\":", fields.authorization_list(), |out, list| {
        array(out, list, authorization);
    });
}

fn authorization(out: &mut Vec<u8>, signed: &SignedAuthorization) {
    member(out, b"{\"chainId\":", |out| wide_quantity(out, *signed.chain_id()));
    member(out, b",\"address\":", |out| data(out, signed.address()));
    member(out, b",\"nonce\":", |out| quantity(out, signed.nonce()));
    member(out, b",\"yParity\":", |out| quantity(out, signed.y_parity().into()));
    member(out, b",\"r\":", |out| wide_quantity(out, signed.r()));
    member(out, b",\"s\":", |out| wide_quantity(out, signed.s()));
    out.push(b'}');
}

fn deposit_members(out: &mut Vec<u8>, transaction: &Transaction, known: Option<(u64, u64)>) {
    let Some(deposit) = transaction.deposit() else { return };
    member(out, b",\"sourceHash\":", |out| data(out, deposit.source_hash));
    member(out, b",\"mint\":", |out| wide_quantity(out, U256::from(deposit.mint)));
    member(out, b",\"yParity\":", |out| quantity(out, 0));
    optional(out, b",\"depositReceiptVersion\":", known, |out, (_, version)| {
        quantity(out, version);
    });
    if deposit.is_system_transaction {
        out.extend_from_slice(b",\"isSystemTx\":true");
    }
}
