//! Call objects, and the params of eth_call and eth_estimateGas.

use std::borrow::Cow;

use alloy_eips::{
    eip2930::{AccessList, AccessListItem},
    eip7702::{Authorization, SignedAuthorization},
};
use alloy_primitives::{Address, B256, Bytes, U256};

use super::{
    At, BlockName, BlockOverrides, Index, Member, Overrides, Reading, Refused, arguments, block,
    block_overrides, hex, object, optional_array, optional_object, optional_string,
    overrides::Accounts,
    present, refusal, require, string,
    text::{Malformed, Text},
};

/// A call as requested, without defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Call {
    pub from: Address,
    /// `None` creates a contract.
    pub to: Option<Address>,
    pub value: U256,
    pub data: Bytes,
    pub gas: Option<u64>,
    pub nonce: Option<u64>,
    /// `None` if the call has none of these fields and no nonce.
    pub rest: Option<Box<Rest>>,
}

/// The rarely used fields of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rest {
    pub chain_id: Option<U256>,
    pub gas_price: Option<U256>,
    pub max_fee_per_gas: Option<U256>,
    pub max_priority_fee_per_gas: Option<U256>,
    pub access_list: AccessList,
    pub blob_hashes: Option<Vec<B256>>,
    pub max_fee_per_blob_gas: Option<U256>,
    pub authorizations: Option<Vec<SignedAuthorization>>,
}

/// The arguments of eth_call and eth_estimateGas.
#[derive(Debug)]
pub struct CallParams<'a> {
    pub call: Call,
    pub block: Option<BlockName<'a>>,
    /// The arguments after the block. Their error is reported after that of the block.
    pub overrides: Result<(Overrides, Option<BlockOverrides>), Refused>,
}

const NAMES: [&str; 4] = ["transaction", "block", "stateOverrides", "blockOverrides"];

impl<'a> CallParams<'a> {
    /// Reads the params. The first `required` arguments must be present. A call without a recipient
    /// is rejected unless `creates`.
    ///
    /// # Errors
    /// The first error. An error in the overrides is returned in `overrides`.
    pub fn read(params: &'a [u8], required: usize, creates: bool) -> Result<Self, Refused> {
        let (mut call, mut named, mut accounts, mut changes) = (None, None, None, None);
        let count = arguments(params, NAMES.len(), |text, argument| {
            match argument {
                0 => call = CallTexts::read_optional(text)?,
                1 => named = block(text)?,
                2 => accounts = Accounts::read_optional(text)?,
                _ => changes = block_overrides::Texts::read_optional(text)?,
            }
            Ok(())
        })?;
        require(required, count, &NAMES, &[call.is_none(), named.is_none()])?;
        let Some(call) = call else { return Err(Refused::Params("no call".into())) };
        let call = call.read(creates).map_err(|refusal| refusal.of(0))?;
        let overrides = read_overrides(accounts, changes);
        Ok(Self { call, block: named, overrides })
    }
}

/// Reads a call object with a recipient.
pub(crate) fn read_call(text: &mut Text<'_>) -> Result<Call, Malformed> {
    CallTexts::read_object(text).and_then(|texts| texts.read(false)).map_err(|_| Malformed)
}

fn read_overrides(
    accounts: Option<Accounts<'_>>,
    changes: Option<block_overrides::Texts<'_>>,
) -> Result<(Overrides, Option<BlockOverrides>), Refused> {
    let mut overrides = match accounts {
        Some(accounts) => accounts.read().map_err(|refusal| refusal.of(2))?,
        None => Overrides::default(),
    };
    let Some(changes) = changes else { return Ok((overrides, None)) };
    changes.refuse_whole_blocks().map_err(Refused::Override)?;
    let changes = changes.read(&mut overrides).map_err(|refusal| refusal.of(3))?;
    Ok((overrides, changes))
}

type Word<'a> = Cow<'a, [u8]>;

/// A call object with checked types.
#[derive(Default)]
pub(super) struct CallTexts<'a> {
    from: Option<Word<'a>>,
    to: Option<Word<'a>>,
    gas: Option<Word<'a>>,
    value: Option<Word<'a>>,
    data: Option<Word<'a>>,
    input: Option<Word<'a>>,
    rest: Option<Box<RestTexts<'a>>>,
}

#[derive(Default)]
struct RestTexts<'a> {
    nonce: Option<Word<'a>>,
    chain_id: Option<Word<'a>>,
    gas_price: Option<Word<'a>>,
    max_fee_per_gas: Option<Word<'a>>,
    max_priority_fee_per_gas: Option<Word<'a>>,
    max_fee_per_blob_gas: Option<Word<'a>>,
    access_list: Option<Vec<(Word<'a>, Vec<Word<'a>>)>>,
    blob_hashes: Option<Vec<Word<'a>>>,
    authorizations: Option<Vec<[Word<'a>; 6]>>,
}

const AUTHORIZATION: [&str; 6] = ["chainId", "address", "nonce", "yParity", "r", "s"];

impl<'a> CallTexts<'a> {
    pub(super) fn read_optional(text: &mut Text<'a>) -> Reading<Option<Self>> {
        let mut texts = Self::default();
        let given = optional_object(text, |text, name| texts.member(text, &name))?;
        Ok(given.then_some(texts))
    }

    pub(super) fn read_object(text: &mut Text<'a>) -> Reading<Self> {
        let mut texts = Self::default();
        object(text, |text, name| texts.member(text, &name))?;
        Ok(texts)
    }

    fn member(&mut self, text: &mut Text<'a>, name: &[u8]) -> Reading<()> {
        let field = match name {
            b"from" => &mut self.from,
            b"to" => &mut self.to,
            b"gas" => &mut self.gas,
            b"value" => &mut self.value,
            b"data" => &mut self.data,
            b"input" => &mut self.input,
            _ => return self.further_member(text, name),
        };
        *field = optional_string(text).at(Member(name))?;
        Ok(())
    }

    fn further_member(&mut self, text: &mut Text<'a>, name: &[u8]) -> Reading<()> {
        let known: [&[u8]; 9] = [
            b"nonce",
            b"chainId",
            b"gasPrice",
            b"maxFeePerGas",
            b"maxPriorityFeePerGas",
            b"maxFeePerBlobGas",
            b"accessList",
            b"blobVersionedHashes",
            b"authorizationList",
        ];
        if !known.contains(&name) {
            return Ok(text.skip().map(drop)?);
        }
        self.rest.get_or_insert_default().member(text, name).at(Member(name))
    }

    pub(super) fn read(self, creates: bool) -> Reading<Call> {
        if self.to.is_none() && !creates {
            return Err(refusal("is required: a call goes to an address")).at(".to");
        }
        let to = optional(&self.to, hex::address).at(".to")?;
        let from = optional(&self.from, hex::address).at(".from")?.unwrap_or_default();
        let value = optional(&self.value, wide).at(".value")?.unwrap_or_default();
        let gas = optional(&self.gas, hex::number).at(".gas")?;
        let data = self.read_data()?.into();
        let mut call = Call { from, to, value, data, gas, nonce: None, rest: None };
        if let Some(rest) = self.rest.filter(|rest| rest.says_something()) {
            call.nonce = optional(&rest.nonce, hex::number).at(".nonce")?;
            call.rest = Some(Box::new(rest.read()?));
        }
        Ok(call)
    }

    /// `data` and `input` are two names for the same field.
    fn read_data(&self) -> Reading<Vec<u8>> {
        let data = || optional(&self.data, hex::data).at(".data");
        let Some(input) = optional(&self.input, hex::data).at(".input")? else {
            return Ok(data()?.unwrap_or_default());
        };
        if data()?.is_some_and(|data| data != input) {
            let why = "both \"data\" and \"input\" are set and not equal. \
                Please use \"input\" to pass transaction call data";
            return Err(refusal(why)).at(".data");
        }
        Ok(input)
    }
}

impl<'a> RestTexts<'a> {
    fn member(&mut self, text: &mut Text<'a>, name: &[u8]) -> Reading<()> {
        let field = match name {
            b"nonce" => &mut self.nonce,
            b"chainId" => &mut self.chain_id,
            b"gasPrice" => &mut self.gas_price,
            b"maxFeePerGas" => &mut self.max_fee_per_gas,
            b"maxPriorityFeePerGas" => &mut self.max_priority_fee_per_gas,
            b"maxFeePerBlobGas" => &mut self.max_fee_per_blob_gas,
            b"accessList" => {
                self.access_list = optional_array(text, access)?;
                return Ok(());
            }
            b"blobVersionedHashes" => {
                self.blob_hashes = optional_array(text, string)?;
                return Ok(());
            }
            _ => {
                self.authorizations = optional_array(text, authorization)?;
                return Ok(());
            }
        };
        *field = optional_string(text)?;
        Ok(())
    }

    /// True if any field is not null.
    fn says_something(&self) -> bool {
        self.nonce.is_some()
            || self.chain_id.is_some()
            || self.gas_price.is_some()
            || self.max_fee_per_gas.is_some()
            || self.max_priority_fee_per_gas.is_some()
            || self.max_fee_per_blob_gas.is_some()
            || self.access_list.is_some()
            || self.blob_hashes.is_some()
            || self.authorizations.is_some()
    }

    fn read(self) -> Reading<Rest> {
        Ok(Rest {
            chain_id: optional(&self.chain_id, wide).at(".chainId")?,
            gas_price: optional(&self.gas_price, wide).at(".gasPrice")?,
            max_fee_per_gas: optional(&self.max_fee_per_gas, wide).at(".maxFeePerGas")?,
            max_priority_fee_per_gas: optional(&self.max_priority_fee_per_gas, wide)
                .at(".maxPriorityFeePerGas")?,
            access_list: AccessList(
                each(self.access_list.unwrap_or_default(), read_access).at(".accessList")?,
            ),
            blob_hashes: self
                .blob_hashes
                .map(|hashes| each(hashes, |text| hex::hash(&text).map_err(refusal)))
                .transpose()
                .at(".blobVersionedHashes")?,
            max_fee_per_blob_gas: optional(&self.max_fee_per_blob_gas, wide)
                .at(".maxFeePerBlobGas")?,
            authorizations: self
                .authorizations
                .map(|entries| each(entries, read_authorization))
                .transpose()
                .at(".authorizationList")?,
        })
    }
}

fn access<'a>(text: &mut Text<'a>) -> Reading<(Word<'a>, Vec<Word<'a>>)> {
    let (mut address, mut keys) = (None, None);
    object(text, |text, name| {
        match name.as_ref() {
            b"address" => address = Some(string(text).at(".address")?),
            b"storageKeys" => keys = optional_array(text, string).at(".storageKeys")?,
            _ => drop(text.skip()?),
        }
        Ok(())
    })?;
    Ok((present(address, "address")?, keys.unwrap_or_default()))
}

fn read_access((address, keys): (Word<'_>, Vec<Word<'_>>)) -> Reading<AccessListItem> {
    let keys = each(keys, |key| hex::hash(&key).map_err(refusal)).at(".storageKeys")?;
    let address = hex::address(&address).at(".address")?;
    Ok(AccessListItem { address, storage_keys: keys })
}

fn authorization<'a>(text: &mut Text<'a>) -> Reading<[Word<'a>; 6]> {
    let mut fields = [const { None }; 6];
    object(text, |text, name| {
        match AUTHORIZATION.iter().position(|known| known.as_bytes() == name.as_ref()) {
            Some(field) => fields[field] = Some(string(text).at(Member(&name))?),
            None => drop(text.skip()?),
        }
        Ok(())
    })?;
    let mut found = [const { Cow::Borrowed(&[] as &[u8]) }; 6];
    for (index, field) in fields.into_iter().enumerate() {
        found[index] = present(field, AUTHORIZATION[index])?;
    }
    Ok(found)
}

fn read_authorization(fields: [Word<'_>; 6]) -> Reading<SignedAuthorization> {
    let [chain_id, address, nonce, y_parity, r, s] = fields;
    let inner = Authorization {
        chain_id: wide(&chain_id).at(".chainId")?,
        address: hex::address(&address).at(".address")?,
        nonce: hex::number(&nonce).at(".nonce")?,
    };
    let y_parity = hex::quantity(&y_parity, 8).at(".yParity")?.saturating_to();
    let (r, s) = (wide(&r).at(".r")?, wide(&s).at(".s")?);
    Ok(SignedAuthorization::new_unchecked(inner, y_parity, r, s))
}

fn wide(text: &[u8]) -> Result<U256, String> {
    hex::quantity(text, 256)
}

fn optional<T>(
    text: &Option<Word<'_>>,
    read: impl FnOnce(&[u8]) -> Result<T, String>,
) -> Result<Option<T>, String> {
    text.as_deref().map(read).transpose()
}

/// Reads all items and adds the index to errors.
fn each<T, U>(items: Vec<T>, mut read: impl FnMut(T) -> Reading<U>) -> Reading<Vec<U>> {
    items.into_iter().enumerate().map(|(at, item)| read(item).at(Index(at))).collect()
}
