//! What a partition knows of its producers and transactions.
