//! Dev only: builders, text scenarios and oracles. Each is written as a reader would say it, so that a test is a
//! sentence.

pub mod build;
pub mod drive;
pub mod foresight;
pub mod lines;
pub mod measure;
pub mod pool;
pub mod text;
