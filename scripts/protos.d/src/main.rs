//! Generates Rust code and the descriptor set from .proto files: `protos PROTO_DIR OUTPUT_DIR`.

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

use prost::Message;

/// The file of the service; its imports follow from it.
const SERVICE: &str = "envoy/service/ratelimit/v3/rls.proto";

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = env::args_os().skip(1).map(PathBuf::from);
    let (Some(protos), Some(output)) = (args.next(), args.next()) else {
        return Err("use protos PROTO_DIR OUTPUT_DIR".into());
    };
    let files = protox::compile([SERVICE], [&protos])?;
    fs::write(output.join("descriptors.bin"), files.encode_to_vec())?;
    // The file `mod.rs` nests the packages, because generated code refers to other packages by `super::`.
    let config = tonic_prost_build::configure().build_client(false).out_dir(output);
    config.include_file("mod.rs").compile_fds(files)?;
    Ok(())
}
