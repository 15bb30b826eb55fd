//! The word by which both parts of the agent know each other: in a file that nobody else may read.

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

const FILE: &str = "token";
const BYTES: usize = 24;

/// What lies there already, or a new one.
pub(super) fn read_or_make(folder: &Path) -> io::Result<String> {
    fs::create_dir_all(folder)?;
    let path = folder.join(FILE);
    match fs::read_to_string(&path) {
        Ok(token) if !token.trim().is_empty() => return Ok(token.trim().to_owned()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let token = random()?;
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(token.as_bytes())?;
    Ok(token)
}

fn random() -> io::Result<String> {
    let mut bytes = [0; BYTES];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes everything");
        text
    }))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_token_stays_and_is_nobody_elses() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("agent");
        let token = read_or_make(&inner).unwrap();
        assert_eq!(token.len(), 2 * BYTES);
        assert_eq!(read_or_make(&inner).unwrap(), token);
        assert_eq!(fs::metadata(inner.join(FILE)).unwrap().permissions().mode() & 0o777, 0o600);
        assert_ne!(read_or_make(folder.path()).unwrap(), token);
    }
}
