//! The directory's scripts. They always go by the server's clock.

use crate::script::{Script, TimeSource};

/// Every script of a directory.
#[derive(Debug)]
pub(crate) struct DirectoryScripts {
    pub(super) heartbeat: Script,
    pub(super) nodes: Script,
    pub(super) overrides: Script,
}

impl DirectoryScripts {
    pub(crate) fn new() -> Self {
        let of = |part: &str| {
            Script::of(&[TimeSource::Server.part(), include_str!("../../lua/arithmetic.lua"), part])
        };
        Self {
            heartbeat: of(include_str!("../../lua/heartbeat.lua")),
            nodes: of(include_str!("../../lua/nodes.lua")),
            overrides: of(include_str!("../../lua/overrides.lua")),
        }
    }
}
