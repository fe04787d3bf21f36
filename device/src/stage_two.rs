//! Stage Two.
