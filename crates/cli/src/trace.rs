//! A run of a local world as it was on the wire: recorded by an observer beside the world, and drawn as one page.
//!
//! The recorder trusts nothing that the scheduler or the agent says of links. Bytes come from counters of interfaces and of
//! HTB leaves, priorities from the kernel's classes, holds from the freezer. Names, directives and reasons come from
//! the agent's roster, the outcome of the run and its journal.

pub(crate) mod assemble;
pub(crate) mod decisions;
pub(crate) mod document;
mod figures;
mod link_end;
pub(crate) mod page;
pub(crate) mod recorder;
mod samples;
mod sources;
mod words;

pub(crate) use document::Trace;
