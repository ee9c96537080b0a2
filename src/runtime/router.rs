//! Carries posts. Knows every address and decides nothing.

use std::sync::mpsc::Sender;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::engine::catalog::Catalog;
use crate::metrics::Metrics;
use crate::runtime::mailroom::Mailroom;
use crate::runtime::partitions::Partitions;
use crate::runtime::post::{CatalogNews, LedgerLetter, Post};
use crate::store::StoreError;

/// How a start builds the source of a partition that a topic's creation made.
pub type SourceOf = Box<dyn Fn(&CatalogNews, &Partitions) + Send + Sync>;

/// What happens when it is not known any more what is on disk. Does not come back in the shipped program.
pub type OnBroken = Box<dyn Fn(&StoreError) + Send + Sync>;

/// Every address.
pub struct Router {
    /// Who waits.
    pub mailroom: Mailroom,
    ledger: Sender<LedgerLetter>,
    /// Partitions.
    pub partitions: Arc<Partitions>,
    catalog: watch::Sender<Arc<Catalog>>,
    metrics: Arc<Metrics>,
    add_partitions: SourceOf,
    on_broken: OnBroken,
    broken: OnceLock<String>,
    refusing: Mutex<Option<String>>,
}

/// What a router is made of, besides its partitions.
pub struct Addresses {
    /// The ledger's inbox.
    pub ledger: Sender<LedgerLetter>,
    /// Topics, as everyone sees them.
    pub catalog: watch::Sender<Arc<Catalog>>,
    /// Figures.
    pub metrics: Arc<Metrics>,
    /// Adds the partitions of new topics.
    pub add_partitions: SourceOf,
    /// Starts the process over.
    pub on_broken: OnBroken,
}

impl Router {
    /// A router over these addresses.
    #[must_use]
    pub fn new(partitions: Arc<Partitions>, addresses: Addresses) -> Self {
        let Addresses { ledger, catalog, metrics, add_partitions, on_broken } = addresses;
        let mailroom = Mailroom::default();
        Self {
            mailroom,
            ledger,
            partitions,
            catalog,
            metrics,
            add_partitions,
            on_broken,
            broken: OnceLock::new(),
            refusing: Mutex::new(None),
        }
    }

    /// Delivers one post. Once storage has failed nothing is delivered any more: an answer could be a lie.
    pub fn deliver(&self, post: Post) {
        if self.broken.get().is_some() {
            return;
        }
        match post {
            Post::Answer(to, answer) => self.mailroom.deliver(to, answer),
            Post::Ledger(letter) => self.to_ledger(letter),
            Post::Part(part, letter) => self.partitions.send(part, letter, self),
            Post::Catalog(news) => {
                (self.add_partitions)(&news, &self.partitions);
                self.partitions.remove(&news.deleted);
                self.catalog.send_replace(news.catalog);
            }
        }
    }

    /// Sends a letter to the ledger. When its owner has stopped nobody is left to read it: the process ends.
    pub fn to_ledger(&self, letter: LedgerLetter) {
        drop(self.ledger.send(letter));
    }

    /// Topics, as they are on disk.
    #[must_use]
    pub fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalog.borrow())
    }

    /// Figures.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// It is not known any more what is on disk: nothing leaves from here on, and the process starts over.
    pub fn broken(&self, error: &StoreError) {
        if self.broken.set(error.to_string()).is_ok() {
            (self.on_broken)(error);
        }
    }

    /// Nothing leaves from here on, as if the process had been killed. For tests.
    pub fn go_dead(&self) {
        drop(self.broken.set("abandoned".to_owned()));
    }

    /// The ledger says whether it refuses to store, and why.
    pub fn set_refusing(&self, why: Option<&str>) {
        let mut refusing = self.refusing.lock();
        if refusing.as_deref() != why {
            *refusing = why.map(str::to_owned);
        }
    }

    /// Why the ledger refuses to store, while it does.
    #[must_use]
    pub fn why_refusing(&self) -> Option<String> {
        self.refusing.lock().clone()
    }

    /// Why nothing is delivered any more.
    #[must_use]
    pub fn why_broken(&self) -> Option<&str> {
        self.broken.get().map(String::as_str)
    }
}
