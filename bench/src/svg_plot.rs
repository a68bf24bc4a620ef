//! Draws measurements as an SVG line chart with a logarithmic horizontal axis.

use std::fmt::Write;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 360.0;
/// Margins for axis labels and line names.
const LEFT: f64 = 80.0;
const RIGHT: f64 = 150.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 50.0;
/// Colours that colour-blind readers can distinguish (Okabe and Ito 2008).
const COLOURS: [&str; 6] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];
/// Horizontal grid lines.
const GRID_COLOUR: usize = 4;

/// ChartLine of a chart: its name, and its points from left to right.
#[derive(Debug, Clone, PartialEq)]
pub struct ChartLine {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}

/// Draws the lines as SVG: a horizontal axis in powers of two and a vertical one from zero.
#[must_use]
pub fn render_svg(title: &str, across: &str, up: &str, lines: &[ChartLine]) -> String {
    let points = || lines.iter().flat_map(|line| &line.points);
    let least = points().map(|point| point.0).fold(f64::INFINITY, f64::min).max(1.0);
    let most = points().map(|point| point.0).fold(least, f64::max);
    let top = points().map(|point| point.1).fold(1.0, f64::max) * 1.1;
    let span = (most / least).log2().max(1.0);
    let x = |value: f64| LEFT + (value.max(least) / least).log2() / span * (WIDTH - LEFT - RIGHT);
    let y = |value: f64| HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"22\" font-size=\"15\">{}</text>\n",
        escape_xml(title)
    );
    let mut put = |line: String| writeln!(text, "{line}").expect("strings grow");
    for step in 0..=GRID_COLOUR {
        #[expect(clippy::cast_precision_loss, reason = "a few steps")]
        let value = top * step as f64 / GRID_COLOUR as f64;
        let (at, end) = (y(value), WIDTH - RIGHT);
        put(format!("<line x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{end}\" y2=\"{at:.1}\" stroke=\"#ddd\"/>"));
        put(format!("<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{value:.0}</text>", LEFT - 6.0, at + 4.0));
    }
    let mut ticks: Vec<f64> = points().map(|point| point.0).collect();
    ticks.sort_by(f64::total_cmp);
    ticks.dedup();
    for tick in ticks {
        put(format!(
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{tick}</text>",
            x(tick),
            HEIGHT - BOTTOM + 18.0
        ));
    }
    let (middle, base) = ((LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 10.0);
    put(format!("<text x=\"{middle}\" y=\"{base}\" text-anchor=\"middle\">{}</text>", escape_xml(across)));
    let height = (HEIGHT + TOP - BOTTOM) / 2.0;
    put(format!(
        "<text x=\"16\" y=\"{height}\" text-anchor=\"middle\" transform=\"rotate(-90 16 {height})\">{}</text>",
        escape_xml(up)
    ));
    for (number, line) in lines.iter().enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        let path: Vec<String> =
            line.points.iter().map(|point| format!("{:.1},{:.1}", x(point.0), y(point.1))).collect();
        put(format!("<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>", path.join(" ")));
        if let Some((last_x, last_y)) = line.points.last() {
            let (at_x, at_y) = (x(*last_x) + 8.0, y(*last_y) + 4.0);
            put(format!("<text x=\"{at_x:.1}\" y=\"{at_y:.1}\" fill=\"{colour}\">{}</text>", escape_xml(&line.name)));
        }
    }
    text.push_str("</svg>\n");
    text
}

fn escape_xml(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_has_a_line_for_each_series_and_is_well_formed() {
        let line = |name: &str, up: f64| ChartLine {
            name: name.to_owned(),
            points: vec![(1.0, up), (2.0, up * 2.0), (64.0, up * 3.0)],
        };
        let picture =
            render_svg("a < b", "streams", "queries an hour", &[line("one", 100.0), line("two & more", 200.0)]);
        assert_eq!(picture.matches("<polyline").count(), 2);
        assert!(picture.contains("a &lt; b") && picture.contains("two &amp; more"));
        assert!(picture.ends_with("</svg>\n"));
        // The highest point is below the top edge and the first one at the left edge.
        assert!(picture.contains("80.0,"));
        for part in picture.split("y=\"").skip(1) {
            if let Some(Ok(at)) = part.split('"').next().map(str::parse::<f64>) {
                assert!((0.0..=HEIGHT).contains(&at), "{at}");
            }
        }
    }

    #[test]
    fn nothing_measured_is_an_empty_picture() {
        assert!(render_svg("none", "x", "y", &[]).contains("</svg>"));
    }
}
