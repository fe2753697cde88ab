//! A maximum of memory for one node: a cgroup.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::atomic::{AtomicU32, Ordering};

/// A maximum of memory for the processes that are started in it.
#[derive(Debug)]
pub struct MemoryCap {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// A group of cgroup v2.
    V2(PathBuf),
    /// A group of the memory controller of cgroup v1.
    V1(PathBuf),
    /// No maximum: this process may not create a cgroup.
    None,
}

impl MemoryCap {
    /// Creates a cgroup with this maximum in the group of this process, or else in the root. Without the right to do that,
    /// there is no maximum; see [`is_enforced`](Self::is_enforced).
    pub fn new(bytes: u64) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tollgate-faults-{}-{number}", process::id());
        let v2 = parents("cgroup2", "").into_iter().find_map(|parent| {
            let files = [("memory.max", bytes.to_string()), ("memory.swap.max", "0".to_owned())];
            create(&parent.join(&name), &files).ok().map(Kind::V2)
        });
        let v1 = || {
            parents("cgroup", "memory").into_iter().find_map(|parent| {
                let limit = bytes.to_string();
                let files = [("memory.limit_in_bytes", limit.clone()), (V1_SWAP, limit)];
                create(&parent.join(&name), &files).ok().map(Kind::V1)
            })
        };
        Self { kind: v2.or_else(v1).unwrap_or(Kind::None) }
    }

    /// Returns whether the system enforces the maximum.
    pub fn is_enforced(&self) -> bool {
        !matches!(self.kind, Kind::None)
    }

    /// The kind of the cap, for results.
    pub fn kind(&self) -> &'static str {
        match self.kind {
            Kind::V2(_) => "cgroup v2",
            Kind::V1(_) => "cgroup v1",
            Kind::None => "no cgroup, peak only",
        }
    }

    /// A command that runs a program within the cap, with the process id of the command.
    pub(crate) fn command(&self, program: &Path) -> Command {
        match &self.kind {
            Kind::V2(group) | Kind::V1(group) => {
                let script = r#"echo $$ >"$1" && shift && exec "$@""#;
                let mut command = Command::new("sh");
                command.args(["-c", script, "sh"]).arg(group.join("cgroup.procs")).arg(program);
                command
            }
            Kind::None => Command::new(program),
        }
    }

    /// The number of processes that the system killed because of the maximum.
    pub fn kills(&self) -> u64 {
        match &self.kind {
            Kind::V2(group) => value(&group.join("memory.events"), "oom_kill"),
            Kind::V1(group) => value(&group.join("memory.oom_control"), "oom_kill"),
            Kind::None => 0,
        }
    }
}

/// The limit of memory and swap together; missing where the kernel does not account for swap.
const V1_SWAP: &str = "memory.memsw.limit_in_bytes";

/// The directories in which a group may be created: the group of this process, then the root of the hierarchy.
fn parents(filesystem: &str, controller: &str) -> Vec<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let root = mounts.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(' ').collect();
        let [_, path, kind, options, ..] = fields[..] else { return None };
        let has_controller = controller.is_empty() || options.split(',').any(|o| o == controller);
        (kind == filesystem && has_controller).then(|| PathBuf::from(path))
    });
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = groups.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let is_found = controllers.split(',').any(|name| name == controller);
        is_found.then(|| path.trim_start_matches('/').to_owned())
    });
    let Some(root) = root else { return Vec::new() };
    own.map(|own| root.join(own)).into_iter().chain([root]).collect()
}

/// Creates a group and writes its files. The first file must exist.
fn create(group: &Path, files: &[(&str, String)]) -> io::Result<PathBuf> {
    fs::create_dir(group)?;
    for (position, (name, text)) in files.iter().enumerate() {
        let written = fs::write(group.join(name), text);
        if position == 0 && written.is_err() {
            fs::remove_dir(group)?;
            written?;
        }
    }
    Ok(group.to_owned())
}

/// The value of a line `name value` in a file.
fn value(path: &Path, name: &str) -> u64 {
    let text = fs::read_to_string(path).expect("the group exists");
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    value.unwrap_or_else(|| panic!("{name} is not in {}: {text}", path.display()))
}

impl Drop for MemoryCap {
    fn drop(&mut self) {
        if let Kind::V2(group) | Kind::V1(group) = &self.kind {
            // Fails while a process runs in it.
            let _ = fs::remove_dir(group);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::MemoryCap;

    #[test]
    fn programs_run_within_the_cap() {
        let cap = MemoryCap::new(64 << 20);
        let output = cap.command("true".as_ref()).output().expect("it starts");
        assert!(output.status.success(), "{}: {output:?}", cap.kind());
        assert_eq!(cap.kills(), 0);
    }
}
