//! Segment arithmetic.
