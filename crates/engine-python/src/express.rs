//! Whole answers to the requests that are asked most, from bytes to bytes in one call.
//!
//! Nothing is decided here. Which heads are accepted, what the snapshot of a commit is and
//! how a block reads are handed in; this finds the request in what arrived, opens a view,
//! and puts the answer together if all that was handed in is of that view's commit. In
//! every other case it has no answer, and the long way has.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use foreblock_engine::error::Result;
use foreblock_engine::express::{self, Asked, Question, Tag};
use foreblock_engine::json;
use foreblock_engine::state::StateReader;
use foreblock_engine::store;
use memchr::memmem;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::convert::{Arg, invalid};
use crate::store::{Heads, Store};

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Express>()
}

const HEAD_END: &[u8] = b"\r\n\r\n";

#[pyclass(frozen, module = "foreblock._engine")]
pub struct Express {
    store: Py<Store>,
    batch_items: usize,
    batch_bytes: usize,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    heads: HashMap<Box<[u8]>, Accepted, alloy_primitives::map::DefaultHashBuilder>,
    snapshot: Option<Snapshot>,
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
}

#[pymethods]
impl Express {
    #[new]
    #[pyo3(signature = (store, *, batch_items, batch_bytes))]
    fn new(store: Py<Store>, batch_items: Arg<usize>, batch_bytes: Arg<usize>) -> Self {
        let (batch_items, batch_bytes) = (batch_items.0, batch_bytes.0);
        Self { store, batch_items, batch_bytes, known: Mutex::default() }
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
        let tag = Tag::read(tag.as_bytes()).ok_or_else(|| invalid("tag: latest or pending"))?;
        if let Some(snapshot) = &mut self.known().snapshot
            && Arc::ptr_eq(&snapshot.heads, &heads.0)
            && snapshot.pending == pending.map(|number| number.0)
        {
            snapshot.blocks[tag as usize][usize::from(full)] = Some(text);
        }
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
        let Known { heads, snapshot, body } = &mut *known;
        let Some(accepted) = heads.get(&data[..end]) else { return Ok(None) };
        let asked = &data[end + HEAD_END.len()..];
        let Some(snapshot) = snapshot.as_ref().filter(|_| asked.len() == accepted.length) else {
            return Ok(None);
        };
        match self.write(py, snapshot, asked, body) {
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
    fn write(&self, py: Python<'_>, is: &Snapshot, body: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let (asked, batch) = express::read(body, self.batch_items)?;
        if is.until.is_some_and(|until| Instant::now() >= until) {
            return None;
        }
        let view = self.store.get().opened().ok()?.view().ok()?;
        if !Arc::ptr_eq(view.heads(), &is.heads) {
            return None;
        }
        let mut reader = Reader { view: &view, snapshot: is, states: [None, None] };
        out.clear();
        if !batch {
            return reader.answer(py, &asked[0], out);
        }
        out.push(b'[');
        for (place, asked) in asked.iter().enumerate() {
            if place > 0 {
                out.push(b',');
            }
            // Blocks are long, and nobody else has a turn before all are written.
            if matches!(asked.question, Question::Block { .. }) || out.len() > self.batch_bytes {
                return None;
            }
            reader.answer(py, asked, out)?;
        }
        out.push(b']');
        (out.len() <= self.batch_bytes).then_some(())
    }
}

/// Reads what one body asks for, all of it in one view.
struct Reader<'v> {
    view: &'v store::View,
    snapshot: &'v Snapshot,
    /// After the latest block and after the pending one, once somebody asked.
    states: [Option<store::State>; 2],
}

impl Reader<'_> {
    fn answer(&mut self, py: Python<'_>, asked: &Asked<'_>, out: &mut Vec<u8>) -> Option<()> {
        out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
        out.extend_from_slice(asked.id);
        out.extend_from_slice(b",\"result\":");
        match asked.question {
            Question::Balance { address, at } => {
                let account = self.state(at).ok()?.account(&address).ok()?;
                json::wide_quantity(out, account.map(|it| it.balance).unwrap_or_default());
            }
            Question::Block { at, full } => {
                let text = self.snapshot.blocks[at as usize][usize::from(full)].as_ref()?;
                out.extend_from_slice(text.as_bytes(py));
            }
        }
        out.push(b'}');
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
