//! Colour, which only repeats what the words already say.

/// Paints text, or leaves it alone when colour is off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    color: bool,
}

impl Style {
    /// A style with colour on or off.
    pub const fn new(color: bool) -> Self {
        Self { color }
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.color && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// Headings and heads of lines.
    pub fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    /// Rules, units and asides.
    pub fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    /// All is well.
    pub fn green(self, text: &str) -> String {
        self.paint("32", text)
    }

    /// Worth knowing.
    pub fn yellow(self, text: &str) -> String {
        self.paint("33", text)
    }

    /// Data is missing.
    pub fn red(self, text: &str) -> String {
        self.paint("31", text)
    }

    /// Bars.
    pub fn cyan(self, text: &str) -> String {
        self.paint("36", text)
    }
}
