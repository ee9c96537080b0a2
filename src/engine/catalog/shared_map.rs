//! An ordered map that shares what did not change: a copy costs its spine, a change costs one shelf.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::sync::Arc;

/// A shelf that grows beyond this is split in two.
const SHELF_ENTRIES: usize = 128;

/// Sorted entries on shelves. A clone copies one pointer per shelf, so ten thousand topics cost some hundred pointers.
/// No shelf is empty, and the keys of one shelf are all smaller than those of the next.
#[derive(Debug, Clone)]
pub(super) struct SharedMap<K, V> {
    shelves: Vec<Arc<Vec<(K, V)>>>,
}

impl<K, V> Default for SharedMap<K, V> {
    fn default() -> Self {
        Self { shelves: Vec::new() }
    }
}

impl<K: Ord + Clone, V: Clone> SharedMap<K, V> {
    /// The only shelf that could hold `key`: the last one that does not start behind it.
    fn shelf_of<Q: Ord + ?Sized>(&self, key: &Q) -> usize
    where
        K: Borrow<Q>,
    {
        let starts_before = |shelf: &Arc<Vec<(K, V)>>| shelf.first().is_some_and(|(first, _)| first.borrow() <= key);
        self.shelves.partition_point(starts_before).saturating_sub(1)
    }

    pub(super) fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let shelf = self.shelves.get(self.shelf_of(key))?;
        let at = shelf.partition_point(|(k, _)| k.borrow() < key);
        shelf.get(at).filter(|(k, _)| k.borrow() == key).map(|(_, value)| value)
    }

    pub(super) fn insert(&mut self, key: K, value: V) {
        let index = self.shelf_of(&key);
        let Some(shelf) = self.shelves.get_mut(index) else {
            self.shelves.push(Arc::new(vec![(key, value)]));
            return;
        };
        let shelf = Arc::make_mut(shelf);
        let at = shelf.partition_point(|(k, _)| *k < key);
        match shelf.get_mut(at) {
            Some(entry) if entry.0.cmp(&key) == Ordering::Equal => entry.1 = value,
            Some(_) | None => shelf.insert(at, (key, value)),
        }
        if shelf.len() > SHELF_ENTRIES {
            let upper = shelf.split_off(shelf.len().div_euclid(2));
            self.shelves.insert(index.saturating_add(1), Arc::new(upper));
        }
    }

    pub(super) fn remove<Q: Ord + ?Sized>(&mut self, key: &Q)
    where
        K: Borrow<Q>,
    {
        if self.get(key).is_none() {
            return;
        }
        let index = self.shelf_of(key);
        if let Some(shelf) = self.shelves.get_mut(index) {
            let shelf = Arc::make_mut(shelf);
            shelf.retain(|(k, _)| k.borrow() != key);
            if shelf.is_empty() {
                self.shelves.remove(index);
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.shelves.iter().map(|shelf| shelf.len()).sum()
    }

    /// All entries in the order of their keys.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.shelves.iter().flat_map(|shelf| shelf.iter()).map(|(key, value)| (key, value))
    }

    /// The entries from `key` on, in the order of their keys.
    pub(super) fn iter_from<'a, Q: Ord + ?Sized>(
        &'a self,
        key: &Q,
    ) -> impl Iterator<Item = (&'a K, &'a V)> + use<'a, K, V, Q>
    where
        K: Borrow<Q>,
    {
        let index = self.shelf_of(key);
        let within = self.shelves.get(index).map_or(0, |shelf| shelf.partition_point(|(k, _)| k.borrow() < key));
        let shelves = self.shelves.iter().skip(index);
        shelves.flat_map(|shelf| shelf.iter()).skip(within).map(|(key, value)| (key, value))
    }
}
