//! Requests and answers of rtnetlink about classes and filters, as far as leaves of HTB need it.
//!
//! All numbers have the byte order of the machine, but for addresses. A message is a header of 16 bytes, a `tcmsg` of 20,
//! and attributes, each with its length and type in 4 bytes, padded to 4.

use std::io;
use std::net::Ipv4Addr;

/// What is asked for, of one device.
#[derive(Clone, Copy, Debug)]
pub(super) enum Dump {
    Classes,
    Filters,
}

const HEADER: usize = 16;
const TCMSG: usize = 20;

const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const RTM_NEWTCLASS: u16 = 40;
const RTM_GETTCLASS: u16 = 42;
const RTM_NEWTFILTER: u16 = 44;
const RTM_GETTFILTER: u16 = 46;
/// `NLM_F_REQUEST | NLM_F_DUMP`.
const DUMP_REQUEST: u16 = 0x301;

/// The handle of the HTB that links have: `1:`.
const ROOT: u32 = 0x1_0000;

const TCA_OPTIONS: u16 = 2;
const TCA_STATS2: u16 = 7;
const TCA_STATS_BASIC: u16 = 1;
const TCA_HTB_PARMS: u16 = 1;
const TCA_U32_CLASSID: u16 = 1;
const TCA_U32_SEL: u16 = 5;

/// Offsets in `tc_htb_opt`.
const HTB_QUANTUM: usize = 32;
const HTB_LEVEL: usize = 36;
const HTB_PRIO: usize = 40;

/// `tc_u32_sel` before its keys, and the offset of a packet's source address in its IP header.
const U32_SEL: usize = 16;
const SOURCE_ADDRESS: u32 = 12;

pub(super) fn request(what: Dump, index: u32, sequence: u32) -> [u8; HEADER + TCMSG] {
    let (kind, parent) = match what {
        Dump::Classes => (RTM_GETTCLASS, 0),
        Dump::Filters => (RTM_GETTFILTER, ROOT),
    };
    let mut bytes = [0; HEADER + TCMSG];
    let mut put = |at: usize, number: &[u8]| bytes[at..at + number.len()].copy_from_slice(number);
    put(0, &((HEADER + TCMSG) as u32).to_ne_bytes());
    put(4, &kind.to_ne_bytes());
    put(6, &DUMP_REQUEST.to_ne_bytes());
    put(8, &sequence.to_ne_bytes());
    put(HEADER + 4, &index.to_ne_bytes());
    put(HEADER + 12, &parent.to_ne_bytes());
    bytes
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Message<'a> {
    kind: u16,
    pub(super) sequence: u32,
    body: &'a [u8],
}

/// The messages of a datagram. A message that is cut off ends it.
pub(super) fn messages(mut bytes: &[u8]) -> impl Iterator<Item = Message<'_>> {
    std::iter::from_fn(move || {
        let length = number(bytes, 0)? as usize;
        let body = bytes.get(HEADER..length)?;
        let message = Message { kind: short(bytes, 4)?, sequence: number(bytes, 8)?, body };
        bytes = bytes.get(padded(length)..).unwrap_or_default();
        Some(message)
    })
}

impl<'a> Message<'a> {
    /// Whether it ends an answer, and how.
    pub(super) fn end(&self) -> Option<io::Result<()>> {
        match self.kind {
            NLMSG_DONE => Some(Ok(())),
            NLMSG_ERROR => Some(match number(self.body, 0).unwrap_or(0) as i32 {
                0 => Ok(()),
                error => Err(io::Error::from_raw_os_error(-error)),
            }),
            _ => None,
        }
    }

    /// A class that is a leaf of the link's HTB.
    pub(super) fn leaf(&self) -> Option<super::Leaf> {
        let handle = number(self.body, 8).filter(|_| self.kind == RTM_NEWTCLASS)?;
        let htb = attribute(attribute(self.attributes(), TCA_OPTIONS)?, TCA_HTB_PARMS)?;
        if handle & 0xffff_0000 != ROOT || number(htb, HTB_LEVEL)? != 0 {
            return None;
        }
        let basic = attribute(attribute(self.attributes(), TCA_STATS2)?, TCA_STATS_BASIC)?;
        Some(super::Leaf {
            number: handle as u16,
            bytes: u64::from_ne_bytes(basic.get(..8)?.try_into().ok()?),
            prio: number(htb, HTB_PRIO)? as u8,
            quantum: number(htb, HTB_QUANTUM)?,
        })
    }

    /// The leaf into which a filter puts packets, and their source address, where the filter looks at nothing else.
    pub(super) fn source(&self) -> Option<(u16, Ipv4Addr)> {
        let options = attribute(self.attributes(), TCA_OPTIONS).filter(|_| self.kind == RTM_NEWTFILTER)?;
        let class = number(attribute(options, TCA_U32_CLASSID)?, 0)?;
        let selector = attribute(options, TCA_U32_SEL)?;
        let key = selector.get(U32_SEL..U32_SEL + 16).filter(|_| selector[2] == 1)?;
        let is_source = key[..4] == [0xff; 4] && number(key, 8)? == SOURCE_ADDRESS;
        let address: [u8; 4] = key[4..8].try_into().ok()?;
        is_source.then(|| (class as u16, Ipv4Addr::from(address)))
    }

    fn attributes(&self) -> &'a [u8] {
        self.body.get(TCMSG..).unwrap_or_default()
    }
}

/// The value of the first attribute of a type.
fn attribute(mut attributes: &[u8], kind: u16) -> Option<&[u8]> {
    loop {
        let length = usize::from(short(attributes, 0)?);
        let value = attributes.get(4..length)?;
        // The highest two bits of a type are flags.
        if short(attributes, 2)? & 0x3fff == kind {
            return Some(value);
        }
        attributes = attributes.get(padded(length)..)?;
    }
}

fn padded(length: usize) -> usize {
    length.next_multiple_of(4)
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::super::Leaf;
    use super::*;

    fn attribute_of(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = ((value.len() + 4) as u16).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(padded(bytes.len()), 0);
        bytes
    }

    fn message_of(kind: u16, handle: u32, attributes: &[Vec<u8>]) -> Vec<u8> {
        let attributes = attributes.concat();
        let mut bytes = ((HEADER + TCMSG + attributes.len()) as u32).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([0; 2]);
        bytes.extend(7_u32.to_ne_bytes());
        bytes.extend([0; 4 + 8]);
        bytes.extend(handle.to_ne_bytes());
        bytes.extend([0; 8]);
        bytes.extend(attributes);
        bytes
    }

    fn class(handle: u32, level: u32, bytes: u64) -> Vec<u8> {
        let mut htb = vec![0; 48];
        for (at, number) in [(HTB_QUANTUM, 9014_u32), (HTB_LEVEL, level), (HTB_PRIO, 3)] {
            htb[at..at + 4].copy_from_slice(&number.to_ne_bytes());
        }
        let basic = [&bytes.to_ne_bytes()[..], &5_u32.to_ne_bytes()[..]].concat();
        let options = attribute_of(TCA_OPTIONS, &attribute_of(TCA_HTB_PARMS, &htb));
        let stats = attribute_of(TCA_STATS2, &attribute_of(TCA_STATS_BASIC, &basic));
        message_of(RTM_NEWTCLASS, handle, &[attribute_of(1, b"htb\0"), options, stats])
    }

    #[test]
    fn leaves_are_told_with_bytes_and_priority_and_inner_classes_are_not() {
        let datagram =
            [class(ROOT | 1, 7, 999), class(ROOT | 0x1003, 0, 1 << 40), class(0x2_0001, 0, 1)].concat();
        let leaves: Vec<Leaf> = messages(&datagram).filter_map(|message| message.leaf()).collect();
        assert_eq!(leaves, [Leaf { number: 0x1003, bytes: 1 << 40, prio: 3, quantum: 9014 }]);
        assert!(messages(&datagram).all(|message| message.sequence == 7 && message.end().is_none()));
    }

    #[test]
    fn a_filter_by_source_address_tells_its_leaf() {
        let filter = |offset: u32| {
            let mut selector = vec![0; U32_SEL];
            selector[2] = 1;
            selector.extend([0xff; 4]);
            selector.extend([10, 77, 0, 3]);
            selector.extend(offset.to_ne_bytes());
            selector.extend([0; 4]);
            let class = attribute_of(TCA_U32_CLASSID, &(ROOT | 0x11).to_ne_bytes());
            let options = [class, attribute_of(TCA_U32_SEL, &selector)].concat();
            message_of(RTM_NEWTFILTER, 0, &[attribute_of(TCA_OPTIONS, &options)])
        };
        let source = |datagram: &[u8]| messages(datagram).find_map(|message| message.source());
        assert_eq!(source(&filter(SOURCE_ADDRESS)), Some((0x11, Ipv4Addr::new(10, 77, 0, 3))));
        assert_eq!(source(&filter(16)), None, "by destination");
    }

    #[test]
    fn an_answer_ends_with_done_or_with_an_error_and_nothing_that_is_cut_off_breaks() {
        let done = message_of(NLMSG_DONE, 0, &[]);
        assert!(matches!(messages(&done).next().unwrap().end(), Some(Ok(()))));
        let mut refused = message_of(NLMSG_ERROR, 0, &[]);
        refused[HEADER..HEADER + 4].copy_from_slice(&(-19_i32).to_ne_bytes());
        let error = messages(&refused).next().unwrap().end().unwrap().unwrap_err();
        assert_eq!(error.raw_os_error(), Some(19));
        let whole = class(ROOT | 0x1003, 0, 1);
        for length in 0..whole.len() {
            assert_eq!(messages(&whole[..length]).filter_map(|message| message.leaf()).count(), 0);
        }
    }
}
