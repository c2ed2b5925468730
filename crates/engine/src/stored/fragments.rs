//! Transactions of a block as JSON, built from its rows.

use alloy_primitives::Address;

use crate::{
    codec::{
        header::Header,
        receipt::Receipt,
        transaction::{DEPOSIT_TYPE, decode_at, decode_known},
        transaction_json::{Place, fragment},
    },
    error::{Error, Result},
};

/// The context in which the transactions of one row are shown.
#[derive(Debug, Clone, Copy)]
pub struct TransactionView<'a> {
    pub header: &'a Header,
    /// The index in the block of the row's first transaction.
    pub first: u64,
    /// True if the signature rules of EIP-2 are active.
    pub homestead: bool,
    /// The senders of the row's transactions; if `None`, they are recovered.
    pub senders: Option<&'a [u8]>,
}

/// Each transaction as `transaction_json::fragment` writes it. `start` is the index in the row of
/// the first one; `receipts` has one receipt for each.
///
/// # Errors
///
/// `StoreDamaged` if a receipt or a sender is missing, `Undecodable` for malformed bytes.
pub fn fragments(
    raws: &[&[u8]],
    receipts: &[&[u8]],
    start: usize,
    shown: TransactionView<'_>,
) -> Result<Vec<Vec<u8>>> {
    if receipts.len() != raws.len() {
        return Err(damaged("a block lacks receipts"));
    }
    let write = |(index, (raw, receipt)): (usize, (&&[u8], &&[u8]))| {
        let transaction = match shown.senders {
            Some(senders) => decode_known(raw, sender(senders, index)?)?,
            None => decode_at(raw, shown.homestead)?,
        };
        let index = shown.first.saturating_add(index as u64);
        let place = Place { header: shown.header, index, deposit: deposit_fields(receipt)? };
        let mut out = Vec::with_capacity(900 + 2 * raw.len());
        fragment(&mut out, &transaction, &place);
        Ok(out)
    };
    (start..).zip(raws.iter().zip(receipts)).map(write).collect()
}

fn sender(senders: &[u8], index: usize) -> Result<Address> {
    let (senders, _) = senders.as_chunks();
    senders.get(index).map(Address::from).ok_or_else(|| damaged("a sender is missing"))
}

/// The nonce and the receipt version of a deposit, if both are stored.
///
/// # Errors
///
/// `Undecodable` if the bytes are not a receipt.
pub fn deposit_fields(receipt: &[u8]) -> Result<Option<(u64, u64)>> {
    if receipt.first() != Some(&DEPOSIT_TYPE) {
        return Ok(None);
    }
    let receipt = Receipt::decode(receipt)?;
    Ok(receipt.deposit_nonce.zip(receipt.deposit_receipt_version))
}

fn damaged(why: &str) -> Error {
    Error::StoreDamaged(why.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::header::Fields;
    use crate::codec::receipt::ReceiptOutcome;
    use crate::codec::transaction::{TxDeposit, deposit};

    fn shown<'a>(header: &'a Header, senders: Option<&'a [u8]>) -> TransactionView<'a> {
        TransactionView { header, first: 5, homestead: true, senders }
    }

    fn receipt(nonce: Option<u64>, version: Option<u64>) -> Vec<u8> {
        let receipt = Receipt {
            tx_type: DEPOSIT_TYPE,
            outcome: ReceiptOutcome::Status(true),
            cumulative_gas_used: 21_000,
            logs: Vec::new(),
            deposit_nonce: nonce,
            deposit_receipt_version: version,
        };
        receipt.encode()
    }

    #[test]
    fn a_deposit_has_the_nonce_of_its_receipt_and_its_place_in_the_block() {
        let header = Header::new(Fields::default()).unwrap();
        let raw = deposit(TxDeposit::default()).raw;
        let texts = |receipt: &[u8], senders| {
            let made = fragments(&[&raw], &[receipt], 1, shown(&header, senders)).unwrap();
            String::from_utf8(made.concat()).unwrap()
        };
        let known = texts(&receipt(Some(9), Some(1)), None);
        assert!(known.contains("\"transactionIndex\":\"0x6\""), "{known}");
        assert!(known.contains("\"nonce\":\"0x9\""), "{known}");
        assert!(known.contains("\"depositReceiptVersion\":\"0x1\""), "{known}");
        assert_eq!(known, texts(&receipt(Some(9), Some(1)), Some(&[0; 40])));
        for nonce in [None, Some(9)] {
            let before_canyon = texts(&receipt(nonce, None), None);
            assert!(before_canyon.contains("\"nonce\":\"0x0\""), "{before_canyon}");
            assert!(!before_canyon.contains("depositReceiptVersion"), "{before_canyon}");
        }
    }

    #[test]
    fn a_missing_sender_or_receipt_is_damage() {
        let header = Header::new(Fields::default()).unwrap();
        let (raw, receipt) = (deposit(TxDeposit::default()).raw, receipt(Some(9), Some(1)));
        let is_damage = |made| matches!(made, Err(Error::StoreDamaged(_)));
        assert!(is_damage(fragments(&[&raw], &[], 0, shown(&header, None))));
        assert!(is_damage(fragments(&[&raw], &[&receipt], 0, shown(&header, Some(&[0; 19])))));
        assert!(is_damage(fragments(&[&raw], &[&receipt], 1, shown(&header, Some(&[0; 20])))));
    }
}
