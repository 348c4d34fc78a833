//! Token after token: the next step is launched before the last token is looked at, so the device never waits for the host.

use crate::error::Error;

/// Something that decodes. One token is under way when generation begins.
pub trait Decoder {
    /// Launches a step with the token chosen last.
    fn launch(&mut self) -> Result<(), Error>;
    /// Waits for the next of the tokens under way.
    fn take(&mut self) -> Result<u32, Error>;
}

/// Why a text ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The model ended it.
    ByModel,
    /// It has as many tokens as were asked for.
    ByCount,
}

/// Up to `count` tokens, each shown when it is there. A step is launched in vain when the model ends the text, since it was under way already.
pub fn generate(
    decoder: &mut dyn Decoder,
    count: usize,
    ends: &[u32],
    show: &mut dyn FnMut(u32) -> Result<(), Error>,
) -> Result<Ended, Error> {
    for at in 0..count {
        if at + 1 < count {
            decoder.launch()?;
        }
        let token = decoder.take()?;
        if ends.contains(&token) {
            return Ok(Ended::ByModel);
        }
        show(token)?;
    }
    Ok(Ended::ByCount)
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// Counts up from 10, and notes what is done in which order.
    struct Counting {
        under_way: VecDeque<u32>,
        next: u32,
        log: String,
    }

    impl Counting {
        fn new() -> Self {
            Self { under_way: VecDeque::from([10]), next: 11, log: String::new() }
        }
    }

    impl Decoder for Counting {
        fn launch(&mut self) -> Result<(), Error> {
            self.log.push('L');
            self.under_way.push_back(self.next);
            self.next += 1;
            assert!(self.under_way.len() <= 2);
            Ok(())
        }

        fn take(&mut self) -> Result<u32, Error> {
            self.log.push('t');
            self.under_way.pop_front().ok_or_else(|| Error::Asked("nothing".to_owned()))
        }
    }

    #[test]
    fn a_step_is_launched_before_a_token_is_taken() {
        let (mut decoder, mut shown) = (Counting::new(), Vec::new());
        let ended = generate(&mut decoder, 4, &[99], &mut |token| {
            shown.push(token);
            Ok(())
        });
        assert_eq!((ended.unwrap(), shown), (Ended::ByCount, vec![10, 11, 12, 13]));
        assert_eq!(decoder.log, "LtLtLtt");
        assert!(decoder.under_way.is_empty());
    }

    #[test]
    fn the_model_can_end_it() {
        let (mut decoder, mut shown) = (Counting::new(), Vec::new());
        let mut show = |token| {
            shown.push(token);
            Ok(())
        };
        assert_eq!(generate(&mut decoder, 9, &[12], &mut show).unwrap(), Ended::ByModel);
        assert_eq!(shown, [10, 11]);
        assert_eq!(generate(&mut Counting::new(), 0, &[], &mut |_| Ok(())).unwrap(), Ended::ByCount);
    }
}
