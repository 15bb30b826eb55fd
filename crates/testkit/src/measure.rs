//! What benchmarks need of the machine.

use std::path::PathBuf;

/// The folder of public traces: `METRONOME_DATA`, or `../shared/data` beside the project.
pub fn data_folder() -> PathBuf {
    match std::env::var_os("METRONOME_DATA") {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
    }
}

/// The most memory this process has held so far, where the system tells.
pub fn peak_memory_mib() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib / 1024.0)
}
