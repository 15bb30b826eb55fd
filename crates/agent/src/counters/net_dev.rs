//! The text of `/proc/net/dev`, taken apart where it lies.

/// One interface: its name, and its numbers as they stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    pub(super) interface: &'a [u8],
    numbers: &'a [u8],
}

/// After eight numbers about what was received come those about what was sent; bytes are the first of each.
const SENT: usize = 8;

/// Every interface. The two lines of the header have no colon after a name.
pub(super) fn lines(text: &[u8]) -> impl Iterator<Item = Line<'_>> {
    text.split(|byte| *byte == b'\n').filter_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        Some(Line { interface: line[..colon].trim_ascii(), numbers: &line[colon + 1..] })
    })
}

impl Line<'_> {
    pub(super) fn received(&self) -> Option<u64> {
        self.number(0)
    }

    pub(super) fn sent(&self) -> Option<u64> {
        self.number(SENT)
    }

    fn number(&self, at: usize) -> Option<u64> {
        let mut fields = self.numbers.split(|byte| *byte == b' ').filter(|field| !field.is_empty());
        let digits = fields.nth(at)?;
        digits.iter().try_fold(0_u64, |sum, digit| {
            let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
            sum.checked_mul(10)?.checked_add(digit)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 7 1 0 0 0 0 0 0 9 1 0 0 0 0 0 0
 m1234:18446744073709551615 1    0    0    0     0          0         0  77 1    0    0    0     0       0          0
 bad: 5
";

    #[test]
    fn every_interface_has_its_numbers() {
        let found: Vec<_> = lines(TEXT).map(|line| (line.interface, line.received(), line.sent())).collect();
        let wanted: [(&[u8], _, _); 3] =
            [(b"lo", Some(7), Some(9)), (b"m1234", Some(u64::MAX), Some(77)), (b"bad", Some(5), None)];
        assert_eq!(found, wanted);
    }

    #[test]
    fn what_is_no_number_is_none() {
        let line = lines(b"x: 12a 99999999999999999999\n").next().unwrap();
        assert_eq!((line.received(), line.number(1)), (None, None));
    }
}
