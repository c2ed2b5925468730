//! Whole answers to the requests that are asked most, from bytes to bytes in one call.
//!
//! Nothing is decided here. Which heads are accepted, what the snapshot of a commit is, how
//! a block reads and which calls are short is handed in; this finds the request in what
//! arrived, opens a view, and puts the answer together if all that was handed in is of that
//! view's commit. In every other case it has no answer, and the long way has.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use alloy_primitives::Address;
use alloy_primitives::map::{DefaultHashBuilder, HashSet};
use foreblock_engine::codec::json;
use foreblock_engine::error::{Error, Result};
use foreblock_engine::evm::env::Env as EngineEnv;
use foreblock_engine::evm::execute::{self, Options};
use foreblock_engine::evm::message::Message;
use foreblock_engine::evm::overlay::Overlay;
use foreblock_engine::express::{self, Asked, Question, Tag};
use foreblock_engine::params::Call;
use foreblock_engine::state::StateReader;
use foreblock_engine::store;
use memchr::memmem;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::convert::{Arg, invalid};
use crate::env::{Env, limits};
use crate::store::{Heads, Store};

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Express>()
}

const HEAD_END: &[u8] = b"\r\n\r\n";

#[pyclass(frozen, module = "foreblock._engine")]
pub struct Express {
    store: Py<Store>,
    bounds: Bounds,
    known: Mutex<Known>,
}

/// What is answered here at most, and how far a call may go.
struct Bounds {
    batch_items: usize,
    batch_bytes: usize,
    batch_time: Duration,
    call_gas: u64,
    call_us: u64,
    step_us: u64,
}

#[derive(Default)]
struct Known {
    heads: HashMap<Box<[u8]>, Accepted, DefaultHashBuilder>,
    snapshot: Option<Snapshot>,
    light: HashSet<Kind>,
    /// The body of the answer that is being written; kept for its memory.
    body: Vec<u8>,
}

/// A head after which so many bytes of body follow, and the lines of its answer.
struct Accepted {
    length: usize,
    opening: Box<[u8]>,
    headers: Box<[u8]>,
}

/// What Python made of a commit.
struct Snapshot {
    heads: Arc<store::Heads>,
    headers: Box<[u8]>,
    latest: u64,
    pending: Option<u64>,
    until: Option<Instant>,
    /// Of the latest block and of the pending one, with hashes and with full transactions.
    blocks: [[Option<Py<PyBytes>>; 2]; 2],
    /// What calls see in them.
    envs: [Option<Arc<EngineEnv>>; 2],
}

/// A contract, and as much of the data as tells functions apart, with the length of that.
type Kind = (Address, [u8; 4], usize);

fn kind(to: Address, data: &[u8]) -> Kind {
    let mut selector = [0; 4];
    let length = data.len().min(selector.len());
    selector[..length].copy_from_slice(&data[..length]);
    (to, selector, length)
}

/// A run that ended so long after its time was not short, whatever it was made of.
const LONG: Duration = Duration::from_millis(1);

/// So many kinds of calls are known to be short; then all are forgotten.
const KINDS: usize = 4096;

#[pymethods]
impl Express {
    #[new]
    #[pyo3(signature = (
        store, *, batch_items, batch_bytes, batch_us, call_gas, call_us, step_us
    ))]
    fn new(
        store: Py<Store>,
        batch_items: Arg<usize>,
        batch_bytes: Arg<usize>,
        batch_us: Arg<u64>,
        call_gas: Arg<u64>,
        call_us: Arg<u64>,
        step_us: Arg<u64>,
    ) -> Self {
        let bounds = Bounds {
            batch_items: batch_items.0,
            batch_bytes: batch_bytes.0,
            batch_time: Duration::from_micros(batch_us.0),
            call_gas: call_gas.0,
            call_us: call_us.0,
            step_us: step_us.0,
        };
        Self { store, bounds, known: Mutex::default() }
    }

    #[pyo3(signature = (head, length, opening, headers, /))]
    fn know(&self, head: &[u8], length: Arg<usize>, opening: &[u8], headers: &[u8]) {
        let (opening, headers) = (opening.into(), headers.into());
        let accepted = Accepted { length: length.0, opening, headers };
        self.known().heads.insert(head.into(), accepted);
    }

    fn forget(&self) {
        self.known().heads.clear();
    }

    #[pyo3(signature = (heads, headers, latest, pending = None, remaining_ns = None))]
    fn prepare(
        &self,
        heads: &Heads,
        headers: &[u8],
        latest: Arg<u64>,
        pending: Option<Arg<u64>>,
        remaining_ns: Option<Arg<u64>>,
    ) {
        let until = remaining_ns.map(|left| Instant::now() + Duration::from_nanos(left.0));
        self.known().snapshot = Some(Snapshot {
            heads: heads.0.clone(),
            headers: headers.into(),
            latest: latest.0,
            pending: pending.map(|number| number.0),
            until,
            blocks: Default::default(),
            envs: Default::default(),
        });
    }

    #[pyo3(signature = (heads, pending, tag, full, text))]
    fn keep_block(
        &self,
        heads: &Heads,
        pending: Option<Arg<u64>>,
        tag: &str,
        full: bool,
        text: Py<PyBytes>,
    ) -> PyResult<()> {
        let tag = tag_argument(tag)?;
        if let Some(snapshot) = self.known().same(heads, pending) {
            snapshot.blocks[tag as usize][usize::from(full)] = Some(text);
        }
        Ok(())
    }

    #[pyo3(signature = (heads, pending, tag, env, to, data))]
    fn keep_call(
        &self,
        heads: &Heads,
        pending: Option<Arg<u64>>,
        tag: &str,
        env: &Env,
        to: Arg<Address>,
        data: &[u8],
    ) -> PyResult<()> {
        let tag = tag_argument(tag)?;
        let mut known = self.known();
        if let Some(snapshot) = known.same(heads, pending) {
            snapshot.envs[tag as usize] = Some(env.0.clone());
        }
        if known.light.len() >= KINDS {
            known.light.clear();
        }
        known.light.insert(kind(to.0, data));
        Ok(())
    }

    #[pyo3(signature = (data, date, /))]
    fn answer<'py>(
        &self,
        py: Python<'py>,
        data: &[u8],
        date: &[u8],
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let Some(end) = memmem::find(data, HEAD_END) else { return Ok(None) };
        let mut known = self.known();
        let Known { heads, snapshot, light, body } = &mut *known;
        let Some(accepted) = heads.get(&data[..end]) else { return Ok(None) };
        let asked = &data[end + HEAD_END.len()..];
        let Some(snapshot) = snapshot.as_ref().filter(|_| asked.len() == accepted.length) else {
            return Ok(None);
        };
        match self.write(py, snapshot, light, asked, body) {
            Some(()) => framed(py, accepted, date, snapshot, body).map(Some),
            None => Ok(None),
        }
    }
}

impl Express {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The body of the answer, if the long way would give the same.
    fn write(
        &self,
        py: Python<'_>,
        snapshot: &Snapshot,
        light: &mut HashSet<Kind>,
        body: &[u8],
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let (asked, batch) = express::read(body, self.bounds.batch_items)?;
        if snapshot.until.is_some_and(|until| Instant::now() >= until) {
            return None;
        }
        let view = self.store.get().opened().ok()?.view().ok()?;
        if !Arc::ptr_eq(view.heads(), &snapshot.heads) {
            return None;
        }
        let bounds = &self.bounds;
        let mut reader = Reader { view: &view, snapshot, light, bounds, states: [None, None] };
        out.clear();
        if batch { reader.answer_all(py, &asked, out) } else { reader.answer(py, &asked[0], out) }
    }
}

impl Known {
    /// The snapshot, if it is this one.
    fn same(&mut self, heads: &Heads, pending: Option<Arg<u64>>) -> Option<&mut Snapshot> {
        let pending = pending.map(|number| number.0);
        let same = |is: &&mut Snapshot| Arc::ptr_eq(&is.heads, &heads.0) && is.pending == pending;
        self.snapshot.as_mut().filter(same)
    }
}

fn tag_argument(tag: &str) -> PyResult<Tag> {
    Tag::read(tag.as_bytes()).ok_or_else(|| invalid("tag: latest or pending"))
}

/// Reads what one body asks for, all of it in one view.
struct Reader<'v> {
    view: &'v store::View,
    snapshot: &'v Snapshot,
    light: &'v mut HashSet<Kind>,
    bounds: &'v Bounds,
    /// After the latest block and after the pending one, once somebody asked.
    states: [Option<store::State>; 2],
}

impl Reader<'_> {
    fn answer_all(&mut self, py: Python<'_>, asked: &[Asked<'_>], out: &mut Vec<u8>) -> Option<()> {
        let until = Instant::now() + self.bounds.batch_time;
        for (place, asked) in asked.iter().enumerate() {
            out.push(if place == 0 { b'[' } else { b',' });
            // Blocks are long, and nobody else has a turn before all is written.
            if matches!(asked.question, Question::Block { .. }) || Instant::now() >= until {
                return None;
            }
            self.answer(py, asked, out)?;
            if out.len() >= self.bounds.batch_bytes {
                return None;
            }
        }
        out.push(b']');
        Some(())
    }

    fn answer(&mut self, py: Python<'_>, asked: &Asked<'_>, out: &mut Vec<u8>) -> Option<()> {
        out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
        out.extend_from_slice(asked.id);
        out.extend_from_slice(b",\"result\":");
        match &asked.question {
            Question::Balance { address, at } => {
                let account = self.state(*at).ok()?.account(address).ok()?;
                json::wide_quantity(out, account.map(|it| it.balance).unwrap_or_default());
            }
            Question::Block { at, full } => {
                let text = self.snapshot.blocks[*at as usize][usize::from(*full)].as_ref()?;
                out.extend_from_slice(text.as_bytes(py));
            }
            Question::Call { call, at } => self.call(call, *at, out)?,
        }
        out.push(b'}');
        Some(())
    }

    /// A call of a kind that is short and that ends well, with what it returns.
    fn call(&mut self, call: &Call, at: Tag, out: &mut Vec<u8>) -> Option<()> {
        let env = self.snapshot.envs[at as usize].as_ref()?;
        let (from, to, data) = (call.from, call.to, call.data.clone());
        let kind = kind(to?, &data);
        if !self.light.contains(&kind) {
            return None;
        }
        let &Bounds { call_gas: gas, call_us, step_us, .. } = self.bounds;
        let message = Message { from, to, data, gas, ..Message::default() };
        let limits = limits(Some(Arg(call_us)), Some(Arg(step_us)));
        let long_after = limits.deadline.map(|deadline| deadline + LONG);
        let mut overlay = Overlay::new(Box::new(self.state(at).ok()?.clone()));
        let options = Options { limits, ..Options::default() };
        match execute::call(&mut overlay, env, &message, options) {
            Ok(outcome) if outcome.is_success() => {
                json::data(out, &outcome.output);
                if long_after.is_some_and(|after| Instant::now() >= after) {
                    self.light.remove(&kind);
                }
            }
            Err(Error::DeadlineExceeded) => {
                self.light.remove(&kind);
                return None;
            }
            _ => return None,
        }
        Some(())
    }

    fn state(&mut self, at: Tag) -> Result<&store::State> {
        match &mut self.states[at as usize] {
            Some(state) => Ok(state),
            none => Ok(none.insert(match (at, self.snapshot.pending) {
                (Tag::Pending, Some(number)) => self.view.state_of_partial(number)?,
                _ => self.view.state(self.snapshot.latest)?,
            })),
        }
    }
}

/// The body with its head before it.
fn framed<'py>(
    py: Python<'py>,
    accepted: &Accepted,
    date: &[u8],
    snapshot: &Snapshot,
    body: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let mut digits = [0; 20];
    let length = decimal(body.len(), &mut digits);
    let parts: [&[u8]; 8] = [
        &accepted.opening,
        date,
        &snapshot.headers,
        &accepted.headers,
        b"Content-Length: ",
        length,
        HEAD_END,
        body,
    ];
    PyBytes::new_with(py, parts.iter().map(|part| part.len()).sum(), |mut out| {
        for part in parts {
            let (here, rest) = out.split_at_mut(part.len());
            here.copy_from_slice(part);
            out = rest;
        }
        Ok(())
    })
}

/// A number in decimal digits, without asking for memory.
fn decimal(mut number: usize, digits: &mut [u8; 20]) -> &[u8] {
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &digits[first..];
        }
    }
}
