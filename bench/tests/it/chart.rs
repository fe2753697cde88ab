//! The chart of the README.

use tollgate_bench::peer_chart;

const BENCHMARKS: &str = include_str!("../../../docs/BENCHMARKS.md");
const CHART: &str = include_str!("../../../docs/peers.svg");

#[test]
fn committed_chart_shows_the_committed_figures() {
    let chart = peer_chart::draw(BENCHMARKS).unwrap();
    assert!(chart == CHART, "docs/peers.svg is not up to date: run scripts/bench chart");
}

#[test]
fn every_peer_is_shown_also_where_it_is_faster() {
    let chart = peer_chart::draw(BENCHMARKS).unwrap();
    for peer in
        ["governor", "throttlecrab", "tower_governor", "limitador", "Redis INCR", "redis-cell"]
    {
        assert!(chart.contains(&format!(">{peer}</text>")), "{peer}");
    }
    let with_ratio = |ratio: &str| {
        let lines =
            BENCHMARKS.lines().map(|line| match line.strip_prefix("| × throttlecrab-server |") {
                Some(_) => {
                    format!("| × throttlecrab-server | {ratio} (0–9) | > 1 | met | 1.00 (0–9) |\n")
                }
                None => format!("{line}\n"),
            });
        peer_chart::draw(&lines.collect::<String>()).unwrap()
    };
    let (faster, slower) = (with_ratio("0.50"), with_ratio("2.00"));
    let count = |chart: &str| chart.matches(r#"<rect class="bar1""#).count();
    assert_eq!(count(&faster), count(&slower) + 1, "{faster}");
}

#[test]
fn missing_row_is_an_error_that_names_it() {
    let without = BENCHMARKS.replace("| × limitador, 1 stream |", "| other |");
    let error = peer_chart::draw(&without).unwrap_err().to_string();
    assert_eq!(
        error,
        "docs/BENCHMARKS.md: figure not found: section grpc, heading \"Checks over gRPC\", table \"tollgate\", \
         row \"× limitador, 1 stream\", column \"requests/s\""
    );
}
