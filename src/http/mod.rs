//! The admin port.
