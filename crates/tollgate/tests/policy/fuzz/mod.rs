//! Fuzz targets of policies and of the facts that they match. `scripts/fuzz` runs each for longer.

mod descriptor;
mod forwarded;
mod yaml;
