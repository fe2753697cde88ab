//! The quick form of the core library's benchmarks, from end to end. Nothing here depends on speed.

use std::path::Path;

use tollgate_bench::Outcome;
use tollgate_bench::entrant::Entrant;
use tollgate_bench::machine::Given;
use tollgate_bench::report::Report;
use tollgate_bench::scale::Scale;

fn quick_report() -> Outcome<Report> {
    let given = Given {
        date: "today".to_owned(),
        rustc: "rustc".to_owned(),
        command: "scripts/bench core --quick".to_owned(),
    };
    Report::measure(Scale::QUICK, Path::new(env!("CARGO_BIN_EXE_core")), given)
}

#[test]
fn a_quick_report_is_complete_and_every_figure_in_it_is_one() {
    let report = quick_report().unwrap();
    for figure in report.figures() {
        assert!(figure.is_finite() && figure > 0.0, "{figure} in\n{report}");
    }

    let text = report.to_string();
    let starting = |start: &str| text.lines().filter(|line| line.starts_with(start)).count();
    for reading in [
        "1 key, hot",
        "1 k keys, in cache",
        "1 k keys, from an array",
        "10 k keys, in cache",
        "10 k keys, from an array",
        "10 k keys of 36 bytes, in cache",
    ] {
        for threads in ["1 thread", "2 threads"] {
            // Once among the figures, once among the ratios.
            assert_eq!(starting(&format!("| {reading}, {threads} |")), 2, "{reading}\n{text}");
        }
    }
    for share in ["75 % of the cap", "90 % of", "99 % of", "100 % of", "above the cap"] {
        assert_eq!(starting(&format!("| {share}")), 1, "{share}\n{text}");
    }
    for entrant in Entrant::ALL {
        assert_eq!(starting(&format!("| {} |", entrant.name())), 1, "{entrant:?}\n{text}");
    }
    for bytes in [13, 36] {
        assert_eq!(starting(&format!("| tollgate, keys of {bytes} bytes |")), 1, "{text}");
        assert_eq!(starting(&format!("| governor, keys of {bytes} bytes |")), 1, "{text}");
    }
    assert!(!text.contains("NaN"), "{text}");
}
