//! Shapes as SVG text. How they look is said in a style sheet, by class; where they lie, here.

use std::fmt::Write;

use super::text::{escape, number};

#[derive(Clone, Copy, Debug)]
pub struct Frame {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
}

/// A circle on which time goes round, clockwise from the top.
#[derive(Clone, Copy, Debug)]
pub struct Ring {
    pub centre: (f64, f64),
    pub radius: f64,
}

impl Ring {
    /// Where one is after so many rounds.
    pub fn at(self, rounds: f64) -> (f64, f64) {
        let (sin, cos) = (rounds * std::f64::consts::TAU).sin_cos();
        (self.centre.0 + self.radius * sin, self.centre.1 - self.radius * cos)
    }
}

#[derive(Clone, Copy, Debug)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// A picture in the making.
#[derive(Debug)]
pub struct Svg {
    width: f64,
    height: f64,
    body: String,
}

impl Svg {
    pub fn new(width: f64, height: f64) -> Self {
        Self { width, height, body: String::new() }
    }

    fn add(&mut self, element: std::fmt::Arguments) {
        self.body.write_fmt(element).expect("a string takes everything");
        self.body.push('\n');
    }

    pub fn rect(&mut self, class: &str, frame: Frame) {
        let Frame { x, y, width, height } = frame;
        let [x, y, width, height] = [x, y, width, height].map(at);
        self.add(format_args!(
            r#"<rect class="{class}" x="{x}" y="{y}" width="{width}" height="{height}"/>"#
        ));
    }

    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(at);
        self.add(format_args!(r#"<line class="{class}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>"#));
    }

    pub fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let (x, y, text) = (at(x), at(y), escape(text));
        self.add(format_args!(
            r#"<text class="{class}" x="{x}" y="{y}" text-anchor="{anchor}">{text}</text>"#
        ));
    }

    /// Text along the left edge, read upwards.
    pub fn text_up(&mut self, class: &str, (x, y): (f64, f64), text: &str) {
        let (x, y, text) = (at(x), at(y), escape(text));
        self.add(format_args!(
            r#"<text class="{class}" text-anchor="middle" transform="translate({x} {y}) rotate(-90)">{text}</text>"#
        ));
    }

    /// Nothing is drawn for nothing.
    pub fn path(&mut self, class: &str, path: &Path) {
        if !path.0.is_empty() {
            self.add(format_args!(r#"<path class="{class}" d="{}"/>"#, path.0));
        }
    }

    /// Lines of this width.
    pub fn stroke(&mut self, class: &str, width: f64, path: &Path) {
        if !path.0.is_empty() {
            self.add(format_args!(r#"<path class="{class}" stroke-width="{}" d="{}"/>"#, at(width), path.0));
        }
    }

    /// What `draw` draws, with a text that shows while the pointer is on it; `about` is an attribute to find it by.
    pub fn explained(&mut self, about: &str, tip: &str, draw: impl FnOnce(&mut Self)) {
        self.add(format_args!("<g {about}><title>{}</title>", escape(tip)));
        draw(self);
        self.add(format_args!("</g>"));
    }

    /// The picture with a text for those who do not see it.
    pub fn finish_described(mut self, says: &str, description: &str) -> String {
        self.body.insert_str(0, &format!("<desc>{}</desc>\n", escape(description)));
        self.finish(says)
    }

    /// The picture, to be put into a page.
    pub fn finish(self, says: &str) -> String {
        let (width, height) = (at(self.width), at(self.height));
        format!(
            "<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{}\">\n{}</svg>\n",
            escape(says),
            self.body
        )
    }

    /// The picture as a file of its own, with its style.
    pub fn finish_alone(self, says: &str, style: &str) -> String {
        let (width, height) = (at(self.width), at(self.height));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\">\n<title>{}</title>\n<style>\n{style}</style>\n{}</svg>\n",
            escape(says),
            self.body
        )
    }
}

/// Many shapes of one look, in one element.
#[derive(Debug, Default)]
pub struct Path(String);

impl Path {
    pub fn block(&mut self, frame: Frame) {
        let Frame { x, y, width, height } = frame;
        let [x, y, width, height] = [x, y, width, height].map(at);
        write!(self.0, "M{x} {y}h{width}v{height}h-{width}z").expect("a string takes everything");
    }

    pub fn to(&mut self, (x, y): (f64, f64)) {
        let letter = if self.0.is_empty() { 'M' } else { 'L' };
        write!(self.0, "{letter}{} {}", at(x), at(y)).expect("a string takes everything");
    }

    /// A shape of its own, from corner to corner and back to the first.
    pub fn shape(&mut self, corners: &[(f64, f64)]) {
        for (index, (x, y)) in corners.iter().enumerate() {
            let letter = if index == 0 { 'M' } else { 'L' };
            write!(self.0, "{letter}{} {}", at(*x), at(*y)).expect("a string takes everything");
        }
        self.0.push('z');
    }

    /// A part of a circle, clockwise, from and to in rounds since the top.
    pub fn arc(&mut self, ring: Ring, (from, to): (f64, f64)) {
        // A whole circle ends where it begins, and would be nothing.
        let to = to.min(from + 0.999);
        let ((x, y), (end_x, end_y)) = (ring.at(from), ring.at(to));
        let [x, y, end_x, end_y, radius] = [x, y, end_x, end_y, ring.radius].map(at);
        let large = u8::from(to - from > 0.5);
        write!(self.0, "M{x} {y}A{radius} {radius} 0 {large} 1 {end_x} {end_y}")
            .expect("a string takes everything");
    }
}

/// A tenth of a pixel is as fine as anybody sees.
fn at(value: f64) -> String {
    number(value, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_user_wrote_stays_text() {
        let mut svg = Svg::new(10.0, 10.0);
        svg.explained("data-job=\"1\"", "</title><script>", |svg| {
            svg.text("mark", (0.0, 0.0), Anchor::Start, "<b>");
        });
        let text = svg.finish("\"<x>");
        assert!(!text.contains("<script>") && !text.contains("<b>") && !text.contains("<x>"), "{text}");
    }

    #[test]
    fn arcs_go_clockwise_from_the_top() {
        let ring = Ring { centre: (100.0, 100.0), radius: 50.0 };
        let mut path = Path::default();
        path.arc(ring, (0.0, 0.25));
        path.arc(ring, (0.25, 1.0));
        assert_eq!(path.0, "M100 50A50 50 0 0 1 150 100M150 100A50 50 0 1 1 100 50");
        let mut whole = Path::default();
        whole.arc(ring, (0.0, 1.0));
        assert!(!whole.0.ends_with("100 50"), "it would be nothing: {}", whole.0);
    }

    #[test]
    fn blocks_of_one_look_are_one_element() {
        let mut path = Path::default();
        let block = Frame { x: 1.0, y: 2.0, width: 3.04, height: 4.0 };
        path.block(block);
        path.block(Frame { x: 9.0, ..block });
        let mut svg = Svg::new(10.0, 10.0);
        svg.path("training", &path);
        svg.path("holding", &Path::default());
        let text = svg.finish("two");
        assert!(text.contains(r#"<path class="training" d="M1 2h3v4h-3zM9 2h3v4h-3z"/>"#), "{text}");
        assert_eq!(text.matches("<path").count(), 1);
    }
}
