//! The log on standard error, as text or JSON lines.

use std::io::{self, IsTerminal};

use tracing::Subscriber;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use crate::settings::args::LogArg;

/// Installs the logger. `TOLLGATE_LOG` is the filter; the default level is info.
pub(crate) fn log_to_stderr(format: LogArg) {
    let filter = EnvFilter::try_from_env("TOLLGATE_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    // An error means that the process has a logger already; it stays installed.
    let _ = tracing::subscriber::set_global_default(line_logger(format, filter, io::stderr));
}

fn line_logger<W>(
    format: LogArg,
    filter: EnvFilter,
    writer: W,
) -> Box<dyn Subscriber + Send + Sync + 'static>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(io::stderr().is_terminal())
        .with_writer(writer);
    match format {
        LogArg::Text => Box::new(builder.with_target(false).finish()),
        LogArg::Json => Box::new(builder.json().flatten_event(true).finish()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use serde_json::Value;
    use tracing::{info, warn};

    use super::*;

    #[derive(Clone, Default)]
    struct Buffer(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Buffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Buffer {
        fn objects(&self) -> Vec<Value> {
            let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
        }
    }

    #[test]
    fn each_line_is_one_json_object_for_any_value() {
        let hostile = [
            "\"},{\"level\":\"ERROR\"",
            "two\nlines\r\nand {\"more\":1}",
            "\0\u{1}\u{1b}[31m\u{7f}\u{85}\u{2028}\u{2029}",
            "back\\slash \\u0022 \u{fffd} \u{1f6a6}",
            "",
        ];
        let buffer = Buffer::default();
        let writer = buffer.clone();
        let log = line_logger(LogArg::Json, EnvFilter::new("info"), move || writer.clone());
        tracing::subscriber::with_default(log, || {
            for text in hostile {
                warn!(warning = %text, debug = ?text, plain = text, "policy");
                info!("{text}");
                let error = io::Error::other(text);
                warn!(error = &error as &dyn std::error::Error, number = f64::NAN, %error, "end");
            }
        });
        let objects = buffer.objects();
        assert_eq!(objects.len(), 3 * hostile.len());
        for (three, text) in objects.chunks(3).zip(hostile) {
            assert_eq!((&three[0]["warning"], &three[0]["plain"]), (&text.into(), &text.into()));
            assert_eq!(
                (&three[0]["level"], &three[0]["message"]),
                (&"WARN".into(), &"policy".into())
            );
            assert_eq!(three[1]["message"], text);
            assert_eq!(three[2]["error"], text);
        }
    }

    #[test]
    fn text_lines_have_a_level_and_no_target() {
        let buffer = Buffer::default();
        let writer = buffer.clone();
        let log = line_logger(LogArg::Text, EnvFilter::new("info"), move || writer.clone());
        tracing::subscriber::with_default(log, || info!(key = 1, "starting"));
        let text = String::from_utf8(buffer.0.lock().unwrap().clone()).unwrap();
        assert!(text.contains("INFO") && text.contains("starting"), "{text}");
        assert!(!text.contains("tollgate_server::"), "target in line: {text}");
    }
}
