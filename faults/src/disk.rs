//! A disk so small that it can be filled.

use std::fs::{self, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// What takes all the room that is left.
const BALLAST: &str = "ballast";

/// Room is given out in pages.
const PAGE: [u8; 4096] = [0; 4096];

/// A file system in memory, in a room of its own that one process holds open: nobody else sees it mounted, and
/// it is gone with that process, which ends when we do, however we end.
#[derive(Debug)]
pub struct Disk {
    holder: Child,
    path: PathBuf,
}

impl Disk {
    /// Mounts one of so many bytes at a directory, which is made. Who is not root must be allowed to be it in a
    /// namespace.
    pub fn mount(at: &Path, bytes: usize) -> Self {
        fs::create_dir_all(at).expect("directories can be made");
        let is_root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
        let own: &[&str] = if is_root { &[] } else { &["--map-root-user"] };
        let script = r#"mount -t tmpfs -o "size=$2" tmpfs "$1" && echo mounted && exec cat"#;
        let mut command = Command::new("unshare");
        command.args(own).args(["--mount", "sh", "-c", script, "sh"]).arg(at);
        command.arg(bytes.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut holder = command.spawn().expect("there is unshare, of util-linux");
        let (id, mut told) = (holder.id(), String::new());
        let stdout = holder.stdout.as_mut().expect("it is piped");
        BufReader::new(stdout).read_line(&mut told).expect("it is text");
        let at = at.strip_prefix("/").expect("an absolute path");
        let disk = Self { holder, path: Path::new(&format!("/proc/{id}/root")).join(at) };
        assert_eq!(told, "mounted\n", "only root may mount, or who may be root in a namespace");
        disk
    }

    /// Where it is seen from here.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes whatever room is left.
    pub fn fill(&self) {
        let ballast = OpenOptions::new().create(true).append(true).open(self.path.join(BALLAST));
        let mut ballast = ballast.expect("a file needs no room yet");
        let full = loop {
            if let Err(error) = ballast.write_all(&PAGE) {
                break error;
            }
        };
        assert_eq!(full.kind(), io::ErrorKind::StorageFull, "{full}");
    }

    /// Gives it back.
    pub fn make_room(&self) {
        fs::remove_file(self.path.join(BALLAST)).expect("it was filled");
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
    fn a_disk_is_full_until_there_is_room_and_gone_when_it_is_dropped() {
        let scratch = Scratch::new();
        let at = scratch.path().join("disk");
        let disk = Disk::mount(&at, 64 << 10);
        let file = disk.path().join("file");
        fs::write(&file, "some").unwrap();
        disk.fill();
        assert!(fs::write(disk.path().join("more"), "more").is_err());
        assert_eq!(fs::read_dir(&at).unwrap().count(), 0, "nobody else sees it");
        disk.make_room();
        fs::write(disk.path().join("more"), "more").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"some");
        drop(disk);
        assert!(!file.exists());
    }
}
