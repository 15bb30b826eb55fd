//! A journal in memory.

use std::sync::{Arc, Mutex};

use metronome_core::journal::{Journal, Record};

/// Lines as they would be written to a file; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Lines(Arc<Mutex<String>>);

impl Lines {
    pub fn text(&self) -> String {
        self.0.lock().expect("nobody panics while writing").clone()
    }
}

impl Journal for Lines {
    fn record(&mut self, record: &Record) {
        let mut text = self.0.lock().expect("nobody panics while writing");
        text.push_str(&record.to_line());
        text.push('\n');
    }
}
