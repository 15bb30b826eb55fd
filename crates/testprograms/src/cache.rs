//! Where programs are kept. The name of a folder holds a hash of everything that determines the programs in it.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::program::Source;
use crate::{Program, Unavailable, debian, go};

/// The program among those that the developer brings, or in the cache.
pub(crate) fn find(program: Program) -> Result<Option<PathBuf>, Unavailable> {
    let assets = env::var_os("KUBEBUILDER_ASSETS").map(|folder| Path::new(&folder).join(program.command()));
    if let Some(asset) = assets.filter(|path| path.is_file()) {
        return Ok(Some(asset));
    }
    let cached = folder(program)?.join(program.command());
    Ok(cached.is_file().then_some(cached))
}

/// The folder of the programs that are built from the same source.
pub(crate) fn folder(program: Program) -> Result<PathBuf, Unavailable> {
    let (name, inputs) = match program.source() {
        Source::Go(module) => (module.to_string(), go::inputs(program)?),
        Source::Debian(package) => (format!("debian-{package}"), debian::inputs(package)),
    };
    Ok(cache_folder()?.join(format!("{name}-{:016x}", fingerprint(inputs.as_bytes()))))
}

/// `METRONOME_CACHE`, or `metronome` in the user's folder for caches.
pub fn cache_folder() -> Result<PathBuf, Unavailable> {
    let named = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    named("METRONOME_CACHE")
        .or_else(|| named("XDG_CACHE_HOME").map(|folder| folder.join("metronome")))
        .or_else(|| named("HOME").map(|folder| folder.join(".cache/metronome")))
        .ok_or(Unavailable::NoCache)
}

pub(crate) fn read(path: &Path) -> Result<String, Unavailable> {
    fs::read_to_string(path).map_err(|source| Unavailable::File { path: path.to_owned(), source })
}

/// FNV-1a: the standard library's hasher may change with the compiler, and then every program would be built again.
pub fn fingerprint(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_inputs_are_another_folder_of_the_cache() {
        assert_ne!(fingerprint(b"k8s.io/api v0.37.1"), fingerprint(b"k8s.io/api v0.37.2"));
    }
}
