//! What must hold at every moment, and what must hold in the end.
