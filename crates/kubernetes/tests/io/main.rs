//! What watches, acts and leads, against a real API server and through lines as bad as a test wants them.

mod binds;
mod evictions;
mod freezes;
mod intents;
mod leads;
mod serving;
mod stage;
mod watches;
mod words;
