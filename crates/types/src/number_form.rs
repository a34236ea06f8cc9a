//! Form in which the numbers of a column are written, so that an export of `1.10` is not the
//! `1.1` that a NUMBER keeps.

use crate::Number;
use serde::{Deserialize, Serialize};

/// Form in which the numbers of a column are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumberForm {
    /// Least digits after the point; a number with more keeps them.
    pub decimals: u8,
    /// True if a zero precedes the point of `0.5`.
    pub zero_before_point: bool,
}

impl Default for NumberForm {
    fn default() -> NumberForm {
        NumberForm::SHORTEST
    }
}

impl NumberForm {
    /// No padding: `10`, `2.5`, `0.5`.
    pub const SHORTEST: NumberForm = NumberForm { decimals: 0, zero_before_point: true };

    /// True for [`NumberForm::SHORTEST`], which needs no padding.
    pub fn is_shortest(&self) -> bool {
        *self == NumberForm::SHORTEST
    }

    /// Writes the number in this form.
    pub fn text(&self, number: &Number) -> String {
        let mut text = number.to_string();
        let decimals = text.find('.').map_or(0, |point| text.len() - point - 1);
        let missing = usize::from(self.decimals).saturating_sub(decimals);
        if missing > 0 && decimals == 0 {
            text.push('.');
        }
        text.extend(std::iter::repeat_n('0', missing));
        if !self.zero_before_point && text.trim_start_matches('-').starts_with("0.") {
            text = text.replacen("0.", ".", 1);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_number;

    #[test]
    fn a_number_comes_back_with_the_zeros_of_its_column() {
        let text = |decimals, zero_before_point, number: &str| {
            let mut bytes = Vec::new();
            parse_number(number.as_bytes(), &mut bytes).expect("a number");
            let number = Number::from_encoded(&bytes).expect("its bytes");
            NumberForm { decimals, zero_before_point }.text(&number)
        };
        let shown = ["0", "10", "-0.5", "2.25", "-30.001"]
            .map(|number| [text(0, true, number), text(1, true, number), text(2, false, number)].join(" "));
        assert_eq!(
            shown,
            ["0 0.0 .00", "10 10.0 10.00", "-0.5 -0.5 -.50", "2.25 2.25 2.25", "-30.001 -30.001 -30.001"]
        );
    }
}
