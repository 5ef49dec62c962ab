//! Frames as they pass by: what each is, not what it does (RFC 9113 4.1).

/// Bytes before a frame's payload.
const HEAD: usize = 9;

/// Bytes of a payload that are looked at, at most.
const SHOWN: usize = 8;

/// The types of frames that are told apart (RFC 9113 6).
pub(super) mod kind {
    pub(in super::super) const DATA: u8 = 0;
    pub(in super::super) const HEADERS: u8 = 1;
    pub(in super::super) const PRIORITY: u8 = 2;
    pub(in super::super) const RST_STREAM: u8 = 3;
    pub(in super::super) const SETTINGS: u8 = 4;
    pub(in super::super) const PING: u8 = 6;
    pub(in super::super) const GOAWAY: u8 = 7;
    pub(in super::super) const WINDOW_UPDATE: u8 = 8;
    pub(in super::super) const CONTINUATION: u8 = 9;
}

/// The flag of a frame that ends its stream, or acknowledges.
const END_STREAM_OR_ACK: u8 = 1;
/// The flag of a frame that ends a head.
const END_HEADERS: u8 = 4;
/// The flag of a frame whose first byte counts those that mean nothing.
const PADDED: u8 = 8;

/// One frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// Its type.
    pub(super) kind: u8,
    flags: u8,
    /// Bytes of its payload.
    pub(super) length: usize,
    shown: [u8; SHOWN],
}

impl Frame {
    /// Whether the first flag is set: END_STREAM, or ACK.
    pub(super) const fn is_last_or_ack(self) -> bool {
        self.flags & END_STREAM_OR_ACK != 0
    }

    /// Whether it is one of a head (RFC 9113 4.3).
    pub(super) const fn is_of_head(self) -> bool {
        matches!(self.kind, kind::HEADERS | kind::CONTINUATION)
    }

    /// Whether another frame of the same head follows.
    pub(super) const fn leaves_head_open(self) -> bool {
        self.is_of_head() && self.flags & END_HEADERS == 0
    }

    /// Bytes of DATA, its padding apart (RFC 9113 6.1).
    pub(super) fn content(self) -> usize {
        if self.flags & PADDED == 0 {
            return self.length;
        }
        let [padding, ..] = self.shown;
        self.length.saturating_sub(1 + usize::from(padding))
    }

    /// What a WINDOW_UPDATE adds, and the error code of RST_STREAM; nothing of
    /// another frame.
    pub(super) fn word(self) -> u32 {
        number(self.shown.iter().take(4))
    }

    /// The error code of GOAWAY.
    pub(super) fn second_word(self) -> u32 {
        number(self.shown.iter().skip(4))
    }
}

/// A number in the order of the network.
fn number<'b>(bytes: impl Iterator<Item = &'b u8>) -> u32 {
    bytes.fold(0, |number, byte| number << 8 | u32::from(*byte))
}

/// Finds the frames in a stream of bytes, however it is cut.
#[derive(Debug)]
pub(super) struct Scanner {
    /// Bytes to be passed over: of a payload, or before the first frame.
    skip: usize,
    held: [u8; HEAD + SHOWN],
    have: usize,
}

impl Scanner {
    /// For frames that begin after `skip` bytes.
    pub(super) const fn after(skip: usize) -> Self {
        Self {
            skip,
            held: [0; HEAD + SHOWN],
            have: 0,
        }
    }

    /// Looks at the next bytes, and tells `seen` each frame whose head is whole.
    pub(super) fn scan(&mut self, mut bytes: &[u8], mut seen: impl FnMut(Frame)) {
        loop {
            let passed = self.skip.min(bytes.len());
            self.skip -= passed;
            bytes = bytes.get(passed..).unwrap_or_default();
            if self.skip > 0 {
                return;
            }
            match self.next(&mut bytes) {
                Some(frame) => seen(frame),
                None => return,
            }
        }
    }

    /// Whether the payload of the frame last told is still coming.
    pub(super) const fn is_within(&self) -> bool {
        self.skip > 0
    }

    /// The next frame, if its head and what is shown of it are there.
    fn next(&mut self, bytes: &mut &[u8]) -> Option<Frame> {
        loop {
            let lacking = self.wanted().saturating_sub(self.have);
            if lacking == 0 {
                return Some(self.take());
            }
            let (now, rest) = bytes.split_at(lacking.min(bytes.len()));
            if now.is_empty() {
                return None;
            }
            let end = self.have + now.len();
            self.held.get_mut(self.have..end)?.copy_from_slice(now);
            self.have = end;
            *bytes = rest;
        }
    }

    /// Bytes to hold of the frame under way, as far as it is known.
    fn wanted(&self) -> usize {
        if self.have < HEAD {
            return HEAD;
        }
        let shown = match self.held[3] {
            kind::RST_STREAM | kind::WINDOW_UPDATE => 4,
            kind::GOAWAY => SHOWN,
            kind::DATA if self.held[4] & PADDED != 0 => 1,
            _ => 0,
        };
        HEAD + self.length().min(shown)
    }

    fn length(&self) -> usize {
        let [a, b, c, ..] = self.held.map(usize::from);
        a << 16 | b << 8 | c
    }

    fn take(&mut self) -> Frame {
        let mut shown = [0; SHOWN];
        let held = self.have - HEAD;
        for (to, from) in shown.iter_mut().zip(self.held.iter().skip(HEAD).take(held)) {
            *to = *from;
        }
        self.skip = self.length().saturating_sub(held);
        self.have = 0;
        Frame {
            kind: self.held[3],
            flags: self.held[4],
            length: self.length(),
            shown,
        }
    }
}

#[cfg(test)]
#[expect(clippy::big_endian_bytes, reason = "the order of the network")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let head = [&length[1..], &[kind, flags], &[0, 0, 0, 1]].concat();
        [&head, payload].concat()
    }

    fn all(scanner: &mut Scanner, parts: &[&[u8]]) -> Vec<Frame> {
        let mut frames = Vec::new();
        for part in parts {
            scanner.scan(part, |frame| frames.push(frame));
        }
        frames
    }

    #[test]
    fn frames_are_found_after_what_is_before_them() {
        let bytes = [
            b"preface".to_vec(),
            frame(kind::DATA, 1, b"abc"),
            frame(kind::PING, 0, &[7; 8]),
            frame(kind::WINDOW_UPDATE, 0, &[0, 0, 1, 2]),
            frame(kind::GOAWAY, 0, &[0, 0, 0, 3, 0, 0, 0, 11, b'x']),
            frame(kind::SETTINGS, 1, b""),
        ]
        .concat();
        let frames = all(&mut Scanner::after(7), &[&bytes]);
        let seen: Vec<_> = frames
            .iter()
            .map(|frame| (frame.kind, frame.length))
            .collect();
        assert_eq!(seen, [(0, 3), (6, 8), (8, 4), (7, 9), (4, 0)]);
        assert!(frames[0].is_last_or_ack() && !frames[1].is_last_or_ack());
        assert_eq!((frames[2].word(), frames[3].second_word()), (258, 11));
    }

    #[test]
    fn padding_is_no_content() {
        let bytes = [
            frame(kind::DATA, PADDED, &[3, 0, 0, 0]),
            frame(kind::DATA, PADDED, &[1, b'x', 0]),
            frame(kind::DATA, PADDED, b""),
            frame(kind::DATA, 0, &[3, 0, 0, 0]),
        ]
        .concat();
        let frames = all(&mut Scanner::after(0), &[&bytes]);
        let contents: Vec<_> = frames.iter().map(|frame| frame.content()).collect();
        assert_eq!(contents, [0, 1, 0, 4]);
    }

    proptest! {
        #[test]
        fn the_same_frames_are_found_however_the_bytes_are_cut(
            kinds in prop::collection::vec((0_u8..12, 0_usize..20), 1..8),
            cuts in prop::collection::vec(0_usize..200, 0..8),
        ) {
            let frames: Vec<_> = kinds.iter().map(|(kind, len)| frame(*kind, 0, &vec![9; *len])).collect();
            let bytes = frames.concat();
            let whole = all(&mut Scanner::after(0), &[&bytes]);
            prop_assert_eq!(whole.len(), kinds.len());
            let mut cuts: Vec<_> = cuts.into_iter().filter(|cut| *cut < bytes.len()).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let parts: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(all(&mut Scanner::after(0), &parts), whole);
        }
    }
}
