//! State overrides of a call: accounts and block hashes.
//!
//! They are applied to a state as if a transaction had just finished. Slots that are not named keep
//! their values, except with `state`, which replaces the whole storage. A precompile with any
//! override is disabled at its address; it can be moved to another address.

use std::{borrow::Cow, collections::BTreeMap};

use alloy_primitives::{Address, B256, U256, map::AddressMap};

use super::{
    At, Malformed, Member, Named, Reading, hex, kept, last_of_equals, optional_object,
    optional_string, refusal, string, text::Text,
};
use crate::{
    error::{Error, Result},
    evm::{
        overlay::{Overlay, Override},
        precompiles::PrecompileOverrides,
        rules::Rules,
    },
};

/// The number of accounts, or bytes of code, slots and hashes, that take a millisecond to apply.
const MANY_ACCOUNTS: usize = 256;
const MANY_BYTES: usize = 64 * 1024;

/// The number of characters of an address and of a word shown in errors.
const ADDRESS_TEXT: usize = 42;
const WORD_TEXT: usize = 66;

/// Up to this many bytes, the text of an account is kept instead of its parsed form.
const SHORT: usize = 256;

type Slots = Vec<(U256, U256)>;
/// A name and its string value.
pub(super) type NamedText<'a> = (Cow<'a, [u8]>, Cow<'a, [u8]>);

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    accounts: Vec<(Address, Account)>,
    pub(super) block_hashes: Vec<(u64, B256)>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Account {
    fields: Override,
    /// The address that this precompile is moved to.
    moved_to: Option<Address>,
}

impl Overrides {
    pub fn is_empty(&self) -> bool {
        self.accounts.is_empty() && self.block_hashes.is_empty()
    }

    /// True if applying them takes too long to be done inline.
    pub fn is_large(&self) -> bool {
        self.accounts.len() > MANY_ACCOUNTS || self.size() > MANY_BYTES
    }

    fn size(&self) -> usize {
        let hashes = self.block_hashes.len() * size_of::<B256>();
        self.accounts.iter().fold(hashes, |size, (_, Account { fields, .. })| {
            let slots: usize = fields.state.iter().chain(&fields.state_diff).map(Vec::len).sum();
            size + slots * size_of::<(U256, U256)>() + fields.code.as_ref().map_or(0, |it| it.len())
        })
    }

    /// Parses an object of accounts.
    #[cfg(test)]
    pub(crate) fn of(text: &str) -> Self {
        let accounts = Accounts::read_optional(&mut Text::new(text.as_bytes()));
        accounts.ok().flatten().and_then(|accounts| accounts.read().ok()).expect("overrides")
    }

    /// Applies the overrides to a state. Returns the remaining precompiles if any is affected.
    ///
    /// # Errors
    /// `RefusedOverride` for the lowest address with an invalid override; the overlay must then be
    /// discarded. Errors from reading the state.
    pub fn apply_to(
        &self,
        overlay: &mut Overlay,
        rules: Rules,
    ) -> Result<Option<PrecompileOverrides>> {
        let is_refused = |account: &Account, is_precompile: bool| {
            let both = account.fields.state.is_some() && account.fields.state_diff.is_some();
            both || account.moved_to.is_some() && !is_precompile
        };
        let (mut precompiles, mut moves, mut refused) = (Vec::new(), Vec::new(), false);
        for (address, account) in &self.accounts {
            let is_precompile = rules.precompiles().contains(address);
            if is_precompile {
                precompiles.push(*address);
            }
            moves.extend(account.moved_to.map(|to| (*address, to)));
            if is_refused(account, is_precompile) {
                refused = true;
            } else {
                overlay.apply(*address, &account.fields)?;
            }
        }
        if refused || !moves.is_empty() {
            self.check(rules)?;
        }
        for (number, hash) in &self.block_hashes {
            overlay.set_block_hash(*number, *hash);
        }
        if precompiles.is_empty() {
            return Ok(None);
        }
        PrecompileOverrides::new(rules, precompiles, moves).map(Some)
    }

    /// Rejects invalid overrides, in address order.
    fn check(&self, rules: Rules) -> Result<()> {
        let accounts: BTreeMap<_, _> = self.accounts.iter().map(|(at, it)| (at, it)).collect();
        let refuse = |address: &Address, why: &str| {
            Err(Error::RefusedOverride(format!("account {address} {why}")))
        };
        for (address, account) in &accounts {
            if let Some(to) = &account.moved_to {
                if !rules.precompiles().contains(address) {
                    return refuse(address, "is not a precompile");
                }
                if accounts.contains_key(to) {
                    return refuse(to, "is already overridden");
                }
            }
            if account.fields.state.is_some() && account.fields.state_diff.is_some() {
                return refuse(address, "has both 'state' and 'stateDiff'");
            }
        }
        Ok(())
    }
}

/// An object of accounts whose values are not checked yet.
pub(super) struct Accounts<'a>(Vec<(Cow<'a, [u8]>, Given<'a>)>);

enum Given<'a> {
    /// Parsed again when it is checked: the texts of many small accounts take less memory than the
    /// parsed form.
    Short(&'a [u8]),
    Long(Reading<Option<Box<AccountTexts<'a>>>>),
}

impl<'a> Accounts<'a> {
    /// `None` for null.
    pub(super) fn read_optional(text: &mut Text<'a>) -> Reading<Option<Self>> {
        let mut members = Vec::new();
        let given = optional_object(text, |text, name| {
            members.push((name, Given::read(text)?));
            Ok(())
        })?;
        Ok(given.then_some(Self(members)))
    }

    /// A null account changes nothing.
    pub(super) fn read(self) -> Reading<Overrides> {
        let mut members = self.0;
        if members.len() > 1 {
            last_of_equals(&mut members);
        }
        let count = members.len();
        let mut accounts: Vec<(Address, Account)> = Vec::with_capacity(count);
        let mut places = AddressMap::default();
        for (name, given) in members {
            let place = Named(&name, ADDRESS_TEXT);
            let address = hex::address(&name).at(&place)?;
            let Some(account) = given.account().at(&place)? else { continue };
            // One address may be written in two ways.
            let at = if count == 1 { 0 } else { *places.entry(address).or_insert(accounts.len()) };
            if at == accounts.len() {
                accounts.push((address, account));
            } else {
                accounts[at].1 = account;
            }
        }
        Ok(Overrides { accounts, block_hashes: Vec::new() })
    }
}

impl<'a> Given<'a> {
    fn read(text: &mut Text<'a>) -> Reading<Self> {
        let begun = *text;
        let read = kept(text, AccountTexts::read_optional)?;
        let short = begun.up_to(text);
        if short.len() < SHORT {
            return Ok(Self::Short(short));
        }
        Ok(Self::Long(read.map(|texts| texts.map(Box::new))))
    }

    fn account(self) -> Reading<Option<Account>> {
        match self {
            Self::Short(text) => AccountTexts::read_optional(&mut Text::new(text))?
                .map(AccountTexts::read)
                .transpose(),
            Self::Long(texts) => texts?.map(|texts| texts.read()).transpose(),
        }
    }
}

enum GivenSlots<'a> {
    /// All slots are valid.
    Read(Slots),
    Text(&'a [u8]),
}

impl<'a> GivenSlots<'a> {
    fn read(text: &mut Text<'a>) -> Reading<Self> {
        let mut value = *text;
        if let Some(slots) = plain_slots(&mut value) {
            *text = value;
            return Ok(Self::Read(slots));
        }
        Ok(Self::Text(text.skip()?))
    }

    fn slots(self) -> Reading<Option<Slots>> {
        match self {
            Self::Read(slots) => Ok(Some(slots)),
            Self::Text(text) => slots(text),
        }
    }
}

/// An account override with checked types. Slots are not checked yet.
#[derive(Default)]
struct AccountTexts<'a> {
    balance: Option<Cow<'a, [u8]>>,
    nonce: Option<Cow<'a, [u8]>>,
    code: Option<Cow<'a, [u8]>>,
    moved_to: Option<Cow<'a, [u8]>>,
    state: Option<GivenSlots<'a>>,
    state_diff: Option<GivenSlots<'a>>,
    /// Another name for `stateDiff`.
    storage: Option<GivenSlots<'a>>,
}

impl<'a> AccountTexts<'a> {
    fn read_optional(text: &mut Text<'a>) -> Reading<Option<Self>> {
        let mut texts = Self::default();
        let given = optional_object(text, |text, name| texts.member(text, &name))?;
        Ok(given.then_some(texts))
    }

    fn member(&mut self, text: &mut Text<'a>, name: &[u8]) -> Reading<()> {
        let field = match name {
            b"balance" => &mut self.balance,
            b"nonce" => &mut self.nonce,
            b"code" => &mut self.code,
            b"movePrecompileToAddress" => &mut self.moved_to,
            _ => return self.slots_member(text, name),
        };
        *field = optional_string(text).at(Member(name))?;
        Ok(())
    }

    fn slots_member(&mut self, text: &mut Text<'a>, name: &[u8]) -> Reading<()> {
        let field = match name {
            b"state" => &mut self.state,
            b"stateDiff" => &mut self.state_diff,
            b"storage" => &mut self.storage,
            _ => return Ok(text.skip().map(drop)?),
        };
        *field = Some(GivenSlots::read(text)?);
        Ok(())
    }

    fn read(self) -> Reading<Account> {
        let slots_of = |given: Option<GivenSlots<'_>>| given.map_or(Ok(None), GivenSlots::slots);
        let state = slots_of(self.state).at(".state")?;
        let diff = slots_of(self.state_diff).at(".stateDiff")?;
        let alias = slots_of(self.storage).at(".storage")?;
        if let (Some(diff), Some(alias)) = (&diff, &alias)
            && map(diff) != map(alias)
        {
            return Err(refusal("stateDiff and storage are two names of one field and differ"));
        }
        let wide = |text: &[u8]| hex::quantity(text, 256);
        let fields = Override {
            balance: self.balance.as_deref().map(wide).transpose().at(".balance")?,
            nonce: self.nonce.as_deref().map(hex::number).transpose().at(".nonce")?,
            code: self.code.as_deref().map(hex::data).transpose().at(".code")?.map(Into::into),
            state,
            state_diff: diff.or(alias),
        };
        let moved_to = self.moved_to.as_deref().map(hex::address).transpose();
        Ok(Account { fields, moved_to: moved_to.at(".movePrecompileToAddress")? })
    }
}

fn map(slots: &Slots) -> BTreeMap<U256, U256> {
    slots.iter().copied().collect()
}

/// Reads slots and their values, 32 bytes each. `None` for null.
fn slots(text: &[u8]) -> Reading<Option<Slots>> {
    let Some(mut members) = texts_by_name(&mut Text::new(text))? else { return Ok(None) };
    last_of_equals(&mut members);
    let word = |text: &[u8]| hex::hash(text).map(|word| U256::from_be_bytes(word.0));
    members
        .iter()
        .map(|(slot, value)| {
            let place = Named(slot, WORD_TEXT);
            Ok((word(slot).at(&place)?, word(value).at(&place)?))
        })
        .collect::<Reading<_>>()
        .map(Some)
}

/// Like `slots`, but `None` if anything is invalid.
fn plain_slots(text: &mut Text<'_>) -> Option<Slots> {
    let size = text.until(b'}').len();
    let mut slots = Vec::with_capacity(size / (2 * WORD_TEXT));
    let word = |text: &[u8]| hex::fixed::<32>(text).map(U256::from_be_bytes).ok_or(Malformed);
    text.object(|text, name| {
        slots.push((word(&name)?, word(&text.string()?)?));
        Ok::<(), Malformed>(())
    })
    .ok()?;
    Some(slots)
}

/// Reads an object of strings, `None` for null.
pub(super) fn texts_by_name<'a>(text: &mut Text<'a>) -> Reading<Option<Vec<NamedText<'a>>>> {
    let mut members = Vec::new();
    let given = optional_object(text, |text, name| {
        members.push((name, string(text).at("[...]")?));
        Ok(())
    })?;
    Ok(given.then_some(members))
}
