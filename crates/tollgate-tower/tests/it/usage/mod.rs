//! Token usage of LLM responses. The fixtures have the documented shapes of each provider.

mod body;
mod early_end;
mod fixtures;
mod fuzz;
mod hostile;
mod splits;
