//! Is this batch acceptable.
