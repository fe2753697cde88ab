//! The benchmark of growth.

use tollgate_bench::growth::draw;
use tollgate_bench::growth::panel::{Curve, Panel};
use tollgate_bench::growth::report::Report;
use tollgate_bench::rounds::Rounds;

use crate::fake_program::run_info;

/// Checks that elements are closed in order, and that texts contain no special characters.
fn assert_well_formed(image: &str) {
    let mut open = Vec::new();
    for part in image.split('<').skip(1) {
        let (tag, text) = part.split_once('>').unwrap();
        assert!(!text.contains('&') || text.contains("&amp;") || text.contains("&lt;"), "{text}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "{part}");
        } else if !tag.ends_with('/') {
            open.push(tag.split(' ').next().unwrap().to_owned());
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn quick_report_has_every_curve_in_table_and_image() {
    let report = Report::measure(true, run_info("growth")).unwrap();
    let (text, image) = (report.to_string(), report.image());
    assert_well_formed(&image);
    assert_eq!(report.panels().len(), 4);
    for panel in report.panels() {
        assert!(text.contains(&format!("### {}\n", panel.title)), "{text}");
        assert!(image.contains(&format!(">{}</text>", panel.title)), "{image}");
        for curve in &panel.curves {
            assert!(image.contains(&format!(">{}</text>", curve.name)), "{image}");
            assert!(curve.points.len() > 1, "{curve:?}");
            assert!(curve.points.iter().all(|(_, nanos)| nanos.min() > 0.0), "{curve:?}");
        }
    }
    let curves: usize = report.panels().iter().map(|panel| panel.curves.len()).sum();
    assert_eq!(image.matches("<polyline").count(), curves);
    assert!(!text.contains("NaN") && !image.contains("NaN"), "{text}\n{image}");
}

#[test]
fn names_are_escaped_and_empty_panels_are_skipped() {
    let point = |size, nanos: f64| (size, Rounds::from_iter([nanos]));
    let curve = |name, points| Curve { name, points };
    let panel = |curves| Panel { title: "<b>", axis: "\"&\"", note: String::new(), curves };
    let image = draw(&[
        panel(vec![curve("a & b", vec![point(1, 5.0), point(10, 50.0)])]),
        panel(vec![]),
        panel(vec![curve("one point", vec![point(1, 7.0)])]),
    ]);
    assert_well_formed(&image);
    assert!(image.contains(">a &amp; b</text>") && image.contains(">&lt;b&gt;</text>"), "{image}");
    assert!(image.contains("10 &quot;&amp;&quot;"), "{image}");
    assert!(!image.contains("NaN") && !image.contains("inf"), "{image}");
}
