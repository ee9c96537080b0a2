//! Sockets: listeners and connections.
