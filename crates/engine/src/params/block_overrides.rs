//! Block overrides, with the field names of geth and of other clients.

use std::borrow::Cow;

use alloy_primitives::{Address, B256, U256};

use super::{
    At, Index, Member, Named, Overrides, Reading, hex, last_of_equals, object, optional_object,
    optional_string,
    overrides::{NamedText, texts_by_name},
    refusal, string,
    text::{Kind, Text},
};
use crate::codec::block::Withdrawal;

/// The number of characters of a block number shown in the error for its hash.
const NUMBER_TEXT: usize = 18;

/// The overridden fields of a block. Overridden block hashes are in `Overrides`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BlockOverrides {
    pub number: Option<u64>,
    pub timestamp: Option<u64>,
    pub difficulty: Option<U256>,
    pub gas_limit: Option<u64>,
    pub beneficiary: Option<Address>,
    pub mix_hash: Option<B256>,
    pub base_fee_per_gas: Option<u64>,
    pub blob_base_fee: Option<U256>,
    pub parent_beacon_block_root: Option<B256>,
    pub withdrawals: Option<Vec<Withdrawal>>,
}

/// Fields of type string. Alternative names of the same field are adjacent.
const STRINGS: [&str; 13] = [
    "number",
    "blockNumber",
    "time",
    "timestamp",
    "difficulty",
    "gasLimit",
    "feeRecipient",
    "coinbase",
    "prevRandao",
    "random",
    "baseFeePerGas",
    "baseFee",
    "blobBaseFee",
];

/// Block overrides with checked types.
#[derive(Default)]
pub(super) struct Texts<'a> {
    strings: [Option<Cow<'a, [u8]>>; STRINGS.len()],
    block_hashes: Option<Vec<NamedText<'a>>>,
    /// Of any type, checked together with the values; null counts as absent.
    beacon_root: Option<&'a [u8]>,
    parent_beacon_block_root: Option<&'a [u8]>,
    withdrawals: Option<&'a [u8]>,
}

impl<'a> Texts<'a> {
    pub(super) fn read_optional(text: &mut Text<'a>) -> Reading<Option<Self>> {
        let mut texts = Self::default();
        let given = optional_object(text, |text, name| texts.member(text, &name))?;
        Ok(given.then_some(texts))
    }

    fn member(&mut self, text: &mut Text<'a>, name: &[u8]) -> Reading<()> {
        if let Some(at) = STRINGS.iter().position(|known| known.as_bytes() == name) {
            self.strings[at] = optional_string(text).at(Member(name))?;
            return Ok(());
        }
        if name == b"blockHash" {
            self.block_hashes = texts_by_name(text).at(".blockHash")?;
            return Ok(());
        }
        let value = Some(text.skip()?).filter(|text| text != b"null");
        match name {
            b"beaconRoot" => self.beacon_root = value,
            b"parentBeaconBlockRoot" => self.parent_beacon_block_root = value,
            b"withdrawals" => self.withdrawals = value,
            _ => {}
        }
        Ok(())
    }

    /// Rejects overrides that only apply to a whole block.
    pub(super) fn refuse_whole_blocks(&self) -> Result<(), String> {
        let name = match (self.beacon_root.or(self.parent_beacon_block_root), self.withdrawals) {
            (Some(_), _) => "beaconRoot",
            (None, Some(_)) => "withdrawals",
            (None, None) => return Ok(()),
        };
        Err(format!("block override \"{name}\" is not supported for this RPC method"))
    }

    /// The overrides, if any. Block hashes are added to `others`.
    pub(super) fn read(self, others: &mut Overrides) -> Reading<Option<BlockOverrides>> {
        let found = BlockOverrides {
            number: self.one(0..2, hex::number)?,
            timestamp: self.one(2..4, hex::number)?,
            difficulty: self.one(4..5, |text| hex::quantity(text, 256))?,
            gas_limit: self.one(5..6, hex::number)?,
            beneficiary: self.one(6..8, hex::address)?,
            mix_hash: self.one(8..10, hex::hash)?,
            base_fee_per_gas: self.one(10..12, hex::number)?,
            blob_base_fee: self.one(12..13, |text| hex::quantity(text, 128))?,
            ..BlockOverrides::default()
        };
        others.block_hashes = self.block_hashes.map_or(Ok(Vec::new()), block_hashes)?;
        let root = text_of(self.beacon_root).at(".beaconRoot")?;
        let parent_root = text_of(self.parent_beacon_block_root).at(".parentBeaconBlockRoot")?;
        let roots = [("beaconRoot", root), ("parentBeaconBlockRoot", parent_root)];
        let found = BlockOverrides {
            parent_beacon_block_root: one(roots, hex::hash)?,
            withdrawals: self.withdrawals.map(withdrawals).transpose().at(".withdrawals")?,
            ..found
        };
        Ok((found != BlockOverrides::default()).then_some(found))
    }

    fn one<T: PartialEq>(
        &self,
        names: std::ops::Range<usize>,
        read: impl Fn(&[u8]) -> Result<T, String>,
    ) -> Reading<Option<T>> {
        one(names.map(|at| (STRINGS[at], self.strings[at].clone())), read)
    }
}

/// The value under either name. Different values are rejected.
fn one<'a, T: PartialEq>(
    names: impl IntoIterator<Item = (&'static str, Option<Cow<'a, [u8]>>)>,
    read: impl Fn(&[u8]) -> Result<T, String>,
) -> Reading<Option<T>> {
    let mut found: Option<(&str, T)> = None;
    for (name, text) in names {
        let Some(text) = text else { continue };
        let value = read(&text).at(Member(name.as_bytes()))?;
        match &found {
            Some((first, other)) if *other != value => {
                let why = format!("{first} and {name} are two names of one field and differ");
                return Err(refusal(why));
            }
            Some(_) => {}
            None => found = Some((name, value)),
        }
    }
    Ok(found.map(|(_, value)| value))
}

fn block_hashes(mut members: Vec<NamedText<'_>>) -> Reading<Vec<(u64, B256)>> {
    last_of_equals(&mut members);
    let one = |(number, hash): NamedText<'_>| {
        let block = hex::number(&number).at(".blockHash")?;
        Ok((block, hex::hash(&hash).at(Named(&number, NUMBER_TEXT)).at(".blockHash")?))
    };
    members.into_iter().map(one).collect()
}

fn text_of(value: Option<&[u8]>) -> Reading<Option<Cow<'_, [u8]>>> {
    let Some(value) = value else { return Ok(None) };
    let mut text = Text::new(value);
    match text.kind()? {
        Kind::String => Ok(Some(text.string()?)),
        _ => Err(refusal("expected a string")),
    }
}

type Fields<'a> = (Cow<'a, [u8]>, Cow<'a, [u8]>, Cow<'a, [u8]>, Cow<'a, [u8]>);

/// The maximum number of withdrawals of one block: far more than the 16 of a real block (EIP-4895),
/// and few enough to be processed and encoded in half a millisecond.
const MOST_WITHDRAWALS: usize = 1024;

const WITHDRAWAL: [&str; 4] = ["index", "validatorIndex", "address", "amount"];

fn withdrawals(text: &[u8]) -> Reading<Vec<Withdrawal>> {
    let mut texts = Vec::new();
    let read: Reading<()> = Text::new(text).array(|text, _| {
        let mut fields = [const { None }; WITHDRAWAL.len()];
        object(text, |text, name| {
            match WITHDRAWAL.iter().position(|known| known.as_bytes() == name.as_ref()) {
                Some(at) => fields[at] = Some(string(text)?),
                None => drop(text.skip()?),
            }
            Ok(())
        })?;
        let [Some(index), Some(validator), Some(address), Some(amount)] = fields else {
            return Err(refusal("a field is missing"));
        };
        texts.push((index, validator, address, amount));
        Ok(())
    });
    if read.is_err() {
        return Err(refusal("expected index, validatorIndex, address and amount each"));
    }
    if texts.len() > MOST_WITHDRAWALS {
        let found = texts.len();
        return Err(refusal(format!("expected at most {MOST_WITHDRAWALS}, found {found}")));
    }
    let read = |(at, (index, validator, address, amount)): (usize, Fields<'_>)| {
        let place = Index(at);
        Ok(Withdrawal {
            index: hex::number(&index).at(".index").at(&place)?,
            validator_index: hex::number(&validator).at(".validatorIndex").at(&place)?,
            address: hex::address(&address).at(".address").at(&place)?,
            amount: hex::number(&amount).at(".amount").at(&place)?,
        })
    };
    texts.into_iter().enumerate().map(read).collect()
}
