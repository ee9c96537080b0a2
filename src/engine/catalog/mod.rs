//! Topics and partitions.
