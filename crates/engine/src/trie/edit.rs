//! Changes the value of one key by a single recursive descent.
//!
//! The return path restores the canonical form: no branch has fewer than two children, and the
//! child of an extension is always a branch. A row belongs to a path: a node that replaces another
//! keeps its row, and the row of a path that no longer has a node is recorded in `given_up`.

use std::mem;

use alloy_trie::{Nibbles, nodes::RlpNode};

use super::{
    Rows,
    node::{Body, Node, child_path, vacant_children},
};
use crate::error::{Error, Result};
use crate::node_key::MAX_NIBBLES;

pub(super) struct Edit<'a> {
    pub key: &'a Nibbles,
    pub rows: &'a Rows<'a>,
    pub given_up: &'a mut Vec<Nibbles>,
    pub assumed: &'a mut Option<Vec<Nibbles>>,
}

impl Edit<'_> {
    /// Sets the key's value in the subtree `node` to the result of `change`, which gets the current
    /// value. Returns true if the trie changed.
    pub fn update<F>(&mut self, node: &mut Node, depth: usize, change: F) -> Result<bool>
    where
        F: FnOnce(Option<&[u8]>) -> Result<Option<Vec<u8>>>,
    {
        let rest = self.key.slice(depth..);
        node.load(&self.path(depth), self.rows)?;
        let Node::Loaded(loaded) = node else {
            let Some(value) = change(None)? else { return Ok(false) };
            *node = Node::new(Body::Leaf { key: rest, value });
            return Ok(true);
        };
        match &mut loaded.body {
            Body::Leaf { key, value } if *key == rest => match change(Some(value))? {
                Some(new) if new == *value => return Ok(false),
                Some(new) => *value = new,
                None => {
                    self.vacate(node, depth);
                    return Ok(true);
                }
            },
            Body::Leaf { key, value: old } => {
                let Some(value) = change(None)? else { return Ok(false) };
                let fork =
                    Fork::between(key, &rest).ok_or_else(|| self.prefix_of_another(depth))?;
                let old = Body::Leaf { key: fork.old.1, value: mem::take(old) };
                loaded.body = fork.into_body(Node::new(old), value);
            }
            Body::Extension { key, child } if rest.starts_with(key) => {
                let below = depth + key.len();
                if !self.update(child, below, change)? {
                    return Ok(false);
                }
                let (key, child) = (*key, mem::take(child));
                let Some(body) = self.prepend(key, child, self.path(below)) else {
                    self.vacate(node, depth);
                    return Ok(true);
                };
                loaded.body = body;
            }
            Body::Extension { key, child } => {
                let Some(value) = change(None)? else { return Ok(false) };
                let fork =
                    Fork::between(key, &rest).ok_or_else(|| self.prefix_of_another(depth))?;
                let old = match (fork.old.1, mem::take(child)) {
                    (key, child) if key.is_empty() => child,
                    (key, child) => Node::new(Body::Extension { key, child }),
                };
                loaded.body = fork.into_body(old, value);
            }
            Body::Branch(children) => {
                let nibble = rest.first().ok_or_else(|| self.prefix_of_another(depth))?;
                let child = &mut children[usize::from(nibble)];
                if !self.update(child, depth + 1, change)? {
                    return Ok(false);
                }
                if child.is_vacant()
                    && let Some(body) = self.collapse(children, depth)?
                {
                    loaded.body = body;
                }
            }
        }
        loaded.reference = None;
        loaded.saved = false;
        Ok(true)
    }

    /// The replacement for a branch with only one child left, `None` if it has more. The child must
    /// be loaded, because it merges with its parent unless it is a branch. A child known to be a
    /// branch may be missing.
    fn collapse(&mut self, children: &mut [Node; 16], depth: usize) -> Result<Option<Body>> {
        let mut present = (0u8..).zip(children.iter_mut()).filter(|(_, child)| !child.is_vacant());
        let (Some((nibble, child)), None) = (present.next(), present.next()) else {
            return Ok(None);
        };
        let path = child_path(self.path(depth), nibble);
        let key = Nibbles::from_nibbles([nibble]);
        match child.load(&path, self.rows) {
            Err(Error::MissingNode(_)) if self.may_be_branch(child, path) => {
                return Ok(Some(Body::Extension { key, child: mem::take(child) }));
            }
            loaded => loaded?,
        }
        let child = mem::take(child);
        Ok(self.prepend(key, child, path))
    }

    /// True if a missing node is known to be a branch, or is assumed to be one (`assumed`).
    fn may_be_branch(&mut self, node: &Node, path: Nibbles) -> bool {
        let hash = node.reference().and_then(RlpNode::as_hash);
        if hash.is_some_and(|hash| self.rows.nodes.is_branch(&hash)) {
            return true;
        }
        match self.assumed {
            Some(paths) => {
                paths.push(path);
                true
            }
            None => false,
        }
    }

    /// Prepends `prefix` to the loaded child at `path`: merges it with a leaf or extension, adds an
    /// extension above a branch. `None` if the child is vacant.
    fn prepend(&mut self, prefix: Nibbles, child: Node, path: Nibbles) -> Option<Body> {
        let Node::Loaded(child) = child else { return None };
        let has_row = child.has_row;
        let body = match child.body {
            Body::Branch(_) => {
                return Some(Body::Extension { key: prefix, child: Node::Loaded(child) });
            }
            Body::Leaf { key, value } => Body::Leaf { key: prefix.join(&key), value },
            Body::Extension { key, child } => Body::Extension { key: prefix.join(&key), child },
        };
        if has_row {
            self.given_up.push(path);
        }
        Some(body)
    }

    fn vacate(&mut self, node: &mut Node, depth: usize) {
        if let Node::Loaded(loaded) = mem::take(node)
            && loaded.has_row
        {
            self.given_up.push(self.path(depth));
        }
    }

    fn path(&self, depth: usize) -> Nibbles {
        self.key.slice(..depth)
    }

    /// State keys all have the same length, so for them this means that the row is damaged.
    fn prefix_of_another(&self, depth: usize) -> Error {
        let why = "a trie key is a prefix of another";
        match self.key.len() {
            MAX_NIBBLES => self.rows.damaged(&self.path(depth), why),
            _ => Error::invalid(why),
        }
    }
}

/// The point where a new key diverges from that of a leaf or extension: the shared prefix, and for
/// each key the diverging nibble and the remainder.
struct Fork {
    shared: Nibbles,
    old: (u8, Nibbles),
    new: (u8, Nibbles),
}

impl Fork {
    /// `None` if one key is a prefix of the other.
    fn between(old: &Nibbles, new: &Nibbles) -> Option<Self> {
        let shared = old.common_prefix_length(new);
        let after = |key: &Nibbles| {
            let nibble = key.get(shared)?;
            Some((nibble, key.slice(shared + 1..)))
        };
        Some(Self { shared: old.slice(..shared), old: after(old)?, new: after(new)? })
    }

    /// A branch with the old node and a new leaf, below an extension if the shared prefix is not
    /// empty.
    fn into_body(self, old: Node, value: Vec<u8>) -> Body {
        let Self { shared, old: (old_nibble, _), new: (new_nibble, key) } = self;
        let mut children = vacant_children();
        children[usize::from(old_nibble)] = old;
        children[usize::from(new_nibble)] = Node::new(Body::Leaf { key, value });
        let branch = Body::Branch(children);
        if shared.is_empty() {
            return branch;
        }
        Body::Extension { key: shared, child: Node::new(branch) }
    }
}
