//! A small private disk that a row can fill.

use std::fs::{self, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The file that fills the disk.
const BALLAST: &str = "ballast";

/// Space is allocated in pages.
const PAGE: [u8; 4096] = [0; 4096];

/// A tmpfs in a private mount namespace that one process holds open. No other process sees it, and it disappears
/// with that process, which exits together with the harness.
#[derive(Debug)]
pub struct Disk {
    holder: Child,
    path: PathBuf,
}

impl Disk {
    /// Creates a directory and mounts a disk of `bytes` there. Needs root, or the right to be root in a user
    /// namespace.
    pub fn mount(at: &Path, bytes: usize) -> Self {
        fs::create_dir_all(at).expect("create the mount point");
        let is_root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
        let options: &[&str] = if is_root { &[] } else { &["--map-root-user"] };
        let script = r#"mount -t tmpfs -o "size=$2" tmpfs "$1" && echo mounted && exec cat"#;
        let mut command = Command::new("unshare");
        command.args(options).args(["--mount", "sh", "-c", script, "sh"]).arg(at);
        command.arg(bytes.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut holder = command.spawn().expect("unshare is missing; install util-linux");
        let (id, mut output) = (holder.id(), String::new());
        let stdout = holder.stdout.as_mut().expect("stdout is piped");
        BufReader::new(stdout).read_line(&mut output).expect("read its output");
        let at = at.strip_prefix("/").expect("an absolute path");
        let disk = Self { holder, path: Path::new(&format!("/proc/{id}/root")).join(at) };
        assert_eq!(
            output, "mounted\n",
            "mounting needs root, or the right to be root in a user namespace"
        );
        disk
    }

    /// The path of the disk as the harness sees it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Fills the disk.
    pub fn fill(&self) {
        let ballast = OpenOptions::new().create(true).append(true).open(self.path.join(BALLAST));
        let mut ballast = ballast.expect("create the ballast file");
        let full = loop {
            if let Err(error) = ballast.write_all(&PAGE) {
                break error;
            }
        };
        assert_eq!(full.kind(), io::ErrorKind::StorageFull, "{full}");
    }

    /// Frees the space again.
    pub fn free(&self) {
        fs::remove_file(self.path.join(BALLAST)).expect("the disk was filled");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::Disk;
    use crate::scratch::Scratch;

    #[test]
    fn disk_fills_frees_and_disappears_on_drop() {
        let scratch = Scratch::new();
        let at = scratch.path().join("disk");
        let disk = Disk::mount(&at, 64 << 10);
        let file = disk.path().join("file");
        fs::write(&file, "some").unwrap();
        disk.fill();
        assert!(fs::write(disk.path().join("more"), "more").is_err());
        assert_eq!(fs::read_dir(&at).unwrap().count(), 0, "other processes do not see it");
        disk.free();
        fs::write(disk.path().join("more"), "more").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"some");
        drop(disk);
        assert!(!file.exists());
    }
}
