//! Generates the golden vectors with the oracle.

use std::{fs, io};

use tollgate_testkit::spec::Kind;
use tollgate_testkit::vectors;

fn main() -> io::Result<()> {
    for kind in Kind::ALL {
        let path = vectors::path(kind);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(path, vectors::render(&vectors::generate(kind)))?;
    }
    Ok(())
}
