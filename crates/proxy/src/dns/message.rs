//! DNS messages: parses queries and writes the few kinds of responses.

use std::net::Ipv4Addr;

use model::{Host, HostError};

/// One question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The name as text, for reports.
    pub text: String,
    /// The name.
    pub host: Result<Host, HostError>,
    /// The type of record that is asked for.
    pub kind: u16,
    id: [u8; 2],
    recursion: bool,
    /// The bytes of the question; the response repeats them.
    raw: Vec<u8>,
}

/// A message that is answered without looking at its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rejected {
    /// No answer at all: an answer to an answer could loop forever.
    Silent,
    /// This answer, without a question in it.
    Answer(Vec<u8>),
}

/// The supported record types.
pub(crate) const TYPE_A: u16 = 1;
const TYPE_AAAA: u16 = 28;
const TYPE_SVCB: u16 = 64;
const TYPE_HTTPS: u16 = 65;
const CLASS_IN: u16 = 1;

/// How many seconds an answer may be cached. The addresses never change, but the rules may.
const LIFETIME: u32 = 10;

/// A DNS response code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Code {
    /// The name exists, but perhaps has no record of that type.
    Fine = 0,
    /// The message is malformed.
    Malformed = 1,
    /// There is no such name.
    NoSuchName = 3,
    /// The query is not supported.
    NotImplemented = 4,
}

impl Question {
    /// Parses a message with one question.
    pub fn parse(bytes: &[u8]) -> Result<Self, Rejected> {
        let Some((header, rest)) = bytes.split_first_chunk::<12>() else {
            return Err(Rejected::Silent);
        };
        let [a, b, flags, more, counts @ ..] = *header;
        let (id, recursion) = ([a, b], flags & 1 != 0);
        if flags & 0x80 != 0 {
            return Err(Rejected::Silent);
        }
        let reject = |code| Rejected::Answer(reply_header(id, recursion, code, 0, 0));
        if flags & 0x78 != 0 {
            return Err(reject(Code::NotImplemented));
        }
        // One question, no answers, no authorities; additional records (EDNS) are ignored.
        if !matches!(counts, [0, 1, 0, 0, 0, 0, 0, 0..=2]) || flags & 0x02 != 0 || more & 0x80 != 0
        {
            return Err(reject(Code::Malformed));
        }
        let (labels, length) = labels(rest).ok_or_else(|| reject(Code::Malformed))?;
        let tail = rest.get(length..).and_then(<[u8]>::first_chunk::<4>);
        let [high, low, class @ ..] = *tail.ok_or_else(|| reject(Code::Malformed))?;
        if u16::from_be_bytes(class) != CLASS_IN {
            return Err(reject(Code::NotImplemented));
        }
        let (text, host) = host(&labels);
        let kind = u16::from_be_bytes([high, low]);
        let raw = rest.get(..length + 4).unwrap_or_default().to_vec();
        Ok(Self { text, host, kind, id, recursion, raw })
    }

    /// Whether the record type is one for which an empty answer is valid.
    pub fn is_about_addresses(&self) -> bool {
        matches!(self.kind, TYPE_A | TYPE_AAAA | TYPE_SVCB | TYPE_HTTPS)
    }

    /// The response with a code and perhaps an address.
    pub fn answer(&self, code: Code, address: Option<Ipv4Addr>) -> Vec<u8> {
        let count = u8::from(address.is_some());
        let mut bytes = reply_header(self.id, self.recursion, code, 1, count);
        bytes.extend_from_slice(&self.raw);
        if let Some(address) = address {
            // A pointer to the name in the question, then the record.
            bytes.extend_from_slice(&[0xc0, 12, 0, 1, 0, 1]);
            bytes.extend_from_slice(&LIFETIME.to_be_bytes());
            bytes.extend_from_slice(&[0, 4]);
            bytes.extend_from_slice(&address.octets());
        }
        bytes
    }
}

fn reply_header(id: [u8; 2], recursion: bool, code: Code, questions: u8, answers: u8) -> Vec<u8> {
    let [a, b] = id;
    let flags = 0x80 | u8::from(recursion);
    vec![a, b, flags, 0x80 | code as u8, 0, questions, 0, answers, 0, 0, 0, 0]
}

/// The labels of the name at the start, and its length. Pointers are not allowed in queries.
fn labels(bytes: &[u8]) -> Option<(Vec<&[u8]>, usize)> {
    let (mut labels, mut at) = (Vec::new(), 0);
    loop {
        let length = usize::from(*bytes.get(at)?);
        at += 1;
        match length {
            0 => return Some((labels, at)),
            1..=63 if at + length < 255 => {
                labels.push(bytes.get(at..at + length)?);
                at += length;
            }
            _ => return None,
        }
    }
}

fn host(labels: &[&[u8]]) -> (String, Result<Host, HostError>) {
    let shown: Vec<_> = labels.iter().map(|label| label.escape_ascii().to_string()).collect();
    let text = shown.join(".");
    // A dot within a label would look like a separator.
    let plain = labels.iter().all(|label| label.is_ascii() && !label.contains(&b'.'));
    let host = if plain {
        let name: Vec<_> = labels.iter().map(|label| String::from_utf8_lossy(label)).collect();
        Host::parse(&name.join("."))
    } else {
        Err(HostError::Character)
    };
    (text, host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn query(name: &[&[u8]], kind: u16) -> Vec<u8> {
        let mut bytes = vec![0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name {
            bytes.push(u8::try_from(label.len()).unwrap());
            bytes.extend_from_slice(label);
        }
        bytes.push(0);
        bytes.extend_from_slice(&kind.to_be_bytes());
        bytes.extend_from_slice(&[0, 1]);
        bytes
    }

    fn code(rejected: Result<Question, Rejected>) -> u8 {
        match rejected {
            Err(Rejected::Answer(bytes)) => bytes[3] & 0x0f,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_question_is_read_and_answered() {
        let bytes = query(&[b"WWW", b"example", b"org"], TYPE_A);
        let question = Question::parse(&bytes).unwrap();
        assert_eq!(question.host, Host::parse("www.example.org"));
        let answer = question.answer(Code::Fine, Some(Ipv4Addr::new(198, 18, 1, 0)));
        assert_eq!(&answer[..8], &[0xab, 0xcd, 0x81, 0x80, 0, 1, 0, 1]);
        assert!(answer.ends_with(&[0, 4, 198, 18, 1, 0]));
        let none = question.answer(Code::NoSuchName, None);
        assert_eq!((none[3], none[7], &none[12..]), (0x83, 0, &bytes[12..]));
    }

    #[test]
    fn odd_names_are_no_hosts() {
        for name in [
            &[&b"exam.ple"[..], b"org"][..],
            &[b"evil\0", b"example"],
            &[b"b\xc3\xbccher", b"example"],
            &[],
            &[b"*", b"example"],
        ] {
            let question = Question::parse(&query(name, TYPE_A)).unwrap();
            assert!(question.host.is_err(), "{name:?}");
        }
    }

    #[test]
    fn other_messages_are_rejected() {
        let good = query(&[b"example", b"org"], TYPE_A);
        let with = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            Question::parse(&bytes)
        };
        assert_eq!(with(2, 0x81), Err(Rejected::Silent));
        assert_eq!(Question::parse(&good[..11]), Err(Rejected::Silent));
        assert_eq!(code(with(2, 0x28)), 4);
        assert_eq!(code(with(5, 2)), 1);
        assert_eq!(code(with(5, 0)), 1);
        assert_eq!(code(with(7, 1)), 1);
        assert_eq!(code(with(12, 0xc0)), 1);
        assert_eq!(code(with(12, 60)), 1);
        assert_eq!(code(with(good.len() - 1, 3)), 4);
        let long = query(&[&[b'a'; 63][..]; 4], TYPE_A);
        assert_eq!(code(Question::parse(&long)), 1);
    }

    proptest! {
        #[test]
        fn any_bytes_get_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = Question::parse(&bytes);
            let header = [0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
            let _ = Question::parse(&[&header[..], &bytes].concat());
        }
    }
}
