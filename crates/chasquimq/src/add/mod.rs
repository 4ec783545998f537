//! 1. new -> waiting | prioritized | delayed.

pub mod producer;
