//! Files that a command writes beside what it prints. They are made before the work whose result they take: a wrong
//! path is better known early.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use crate::failure::Failure;
use crate::input;

#[derive(Debug)]
pub(crate) struct OutputFile<'a> {
    path: &'a Path,
    file: File,
}

impl<'a> OutputFile<'a> {
    pub(crate) fn create(path: &'a Path) -> Result<Self, Failure> {
        Ok(Self { path, file: input::create(path)? })
    }

    pub(crate) fn write(mut self, text: &str) -> Result<(), Failure> {
        self.file.write_all(text.as_bytes()).map_err(|error| input::cannot_write(self.path, &error))
    }
}
