//! A table with uncommitted rows on top.
//!
//! Steps of one turn read and write the upper layer; it becomes the state only once the store has it (`commit`), or
//! vanishes without a trace (`discard`). Nobody outside the turn sees the upper layer.

use std::borrow::Borrow;
use std::collections::BTreeMap;

/// Rows by key, with the rows of the turn under way above them.
#[derive(Debug, Clone)]
pub struct Layered<K, V> {
    base: BTreeMap<K, V>,
    over: BTreeMap<K, Option<V>>,
}

impl<K: Ord + Clone, V: Clone> Default for Layered<K, V> {
    fn default() -> Self {
        Self { base: BTreeMap::new(), over: BTreeMap::new() }
    }
}

/// One row's change, as `commit` reports it: the key, what stood before, what stands now.
#[derive(Debug)]
pub struct Changed<K, V> {
    /// The row's key.
    pub key: K,
    /// The committed row before this turn.
    pub before: Option<V>,
    /// Whether a row stands now.
    pub stands: bool,
}

impl<K: Ord + Clone, V: Clone> Layered<K, V> {
    /// The row as the turn under way sees it.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        match self.over.get(key) {
            Some(row) => row.as_ref(),
            None => self.base.get(key),
        }
    }

    /// Writes a row into the upper layer.
    pub fn put(&mut self, key: K, row: V) {
        self.over.insert(key, Some(row));
    }

    /// Removes a row in the upper layer.
    pub fn remove(&mut self, key: K) {
        self.over.insert(key, None);
    }

    /// Every row as the turn under way sees it, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let lower = self.base.iter().filter(|(key, _)| !self.over.contains_key(*key));
        let upper = self.over.iter().filter_map(|(key, row)| row.as_ref().map(|row| (key, row)));
        lower.chain(upper)
    }

    /// Rows with keys from `from` on, upper layer included, while `within` holds; in no promised order of layers.
    pub fn range<'a>(
        &'a self,
        from: K,
        within: impl Fn(&K) -> bool + Copy + 'a,
    ) -> impl Iterator<Item = (&'a K, &'a V)> {
        let lower = self.base.range(from.clone()..).take_while(move |(key, _)| within(key));
        let lower = lower.filter(|(key, _)| !self.over.contains_key(*key));
        let upper = self.over.range(from..).take_while(move |(key, _)| within(key));
        lower.chain(upper.filter_map(|(key, row)| row.as_ref().map(|row| (key, row))))
    }

    /// How many rows stand in the committed layer.
    #[must_use]
    pub fn len(&self) -> usize {
        self.base.len()
    }

    /// Whether no row is committed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.base.is_empty()
    }

    /// The store has the upper layer: it becomes the state. Tells what changed.
    pub fn commit(&mut self) -> Vec<Changed<K, V>> {
        let mut changes = Vec::with_capacity(self.over.len());
        for (key, row) in std::mem::take(&mut self.over) {
            let stands = row.is_some();
            let before = match row {
                Some(row) => self.base.insert(key.clone(), row),
                None => self.base.remove(&key),
            };
            changes.push(Changed { key, before, stands });
        }
        changes
    }

    /// The store refused the upper layer: it never was.
    pub fn discard(&mut self) {
        self.over.clear();
    }
}
