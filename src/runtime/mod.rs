//! Acts: one owner per state, one mailbox per owner.
