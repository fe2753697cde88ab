//! Runs the quick core benchmarks end to end. No test depends on speed.

use std::path::Path;

use tollgate_bench::Outcome;
use tollgate_bench::candidate::Candidate;
use tollgate_bench::machine::RunInfo;
use tollgate_bench::report::Report;
use tollgate_bench::scale::Scale;

fn quick_report() -> Outcome<Report> {
    let run_info = RunInfo {
        date: "today".to_owned(),
        rustc: "rustc".to_owned(),
        command: "scripts/bench core --quick".to_owned(),
    };
    Report::measure(Scale::QUICK, Path::new(env!("CARGO_BIN_EXE_core")), run_info)
}

#[test]
fn quick_report_is_complete_with_valid_figures() {
    let report = quick_report().unwrap();
    for figure in report.figures() {
        assert!(figure.is_finite() && figure > 0.0, "{figure} in\n{report}");
    }

    let text = report.to_string();
    let starting = |start: &str| text.lines().filter(|line| line.starts_with(start)).count();
    for workload in [
        "1 key, hot",
        "1 k keys, in cache",
        "1 k keys, from an array",
        "10 k keys, in cache",
        "10 k keys, from an array",
        "1 k keys of 36 bytes, in cache",
        "10 k keys of 36 bytes, in cache",
    ] {
        for threads in ["1 thread", "2 threads"] {
            // Once in the figures, once in the ratios.
            assert_eq!(starting(&format!("| {workload}, {threads} |")), 2, "{workload}\n{text}");
        }
    }
    for fill_level in ["75 % of the cap", "90 % of", "99 % of", "100 % of", "above the cap"] {
        assert_eq!(starting(&format!("| {fill_level}")), 1, "{fill_level}\n{text}");
    }
    for candidate in Candidate::ALL {
        assert_eq!(starting(&format!("| {} |", candidate.name())), 1, "{candidate:?}\n{text}");
    }
    for bytes in [13, 36] {
        assert_eq!(starting(&format!("| tollgate, keys of {bytes} bytes |")), 1, "{text}");
        assert_eq!(starting(&format!("| governor, keys of {bytes} bytes |")), 1, "{text}");
    }
    assert!(!text.contains("NaN"), "{text}");
}
