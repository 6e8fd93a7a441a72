//! The body of a plain request: where it ends, so that nothing behind it passes for another request.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// How long a request's body is, as its head says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Body {
    Length(u64),
    Chunked,
}

/// Follows a body through the bytes that come.
#[derive(Debug)]
pub(super) struct Follower(State);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// This many bytes are left, and then it ends.
    Plain(u64),
    /// A chunk's size so far, and how many digits it has.
    Size(u64, u8),
    SizeEnd(u64),
    Data(u64),
    DataCr,
    DataLf,
    /// The empty line behind the last chunk.
    LastCr,
    LastLf,
    Done,
}

impl Follower {
    pub(super) fn new(body: Body) -> Follower {
        Follower(match body {
            Body::Length(0) => State::Done,
            Body::Length(length) => State::Plain(length),
            Body::Chunked => State::Size(0, 0),
        })
    }

    pub(super) fn is_done(&self) -> bool {
        self.0 == State::Done
    }

    /// How many of these bytes belong to the body; none at all where they are no body.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < bytes.len() && !self.is_done() {
            let byte = bytes[at];
            let left = (bytes.len() - at) as u64;
            let step = match self.0 {
                State::Plain(length) | State::Data(length) => length.min(left),
                _ => 1,
            };
            self.0 = match (self.0, byte) {
                (State::Plain(length), _) if length == step => State::Done,
                (State::Plain(length), _) => State::Plain(length - step),
                // Sixteen digits would do for more than anybody has; extensions are not passed on.
                (State::Size(size, digits), _) if byte.is_ascii_hexdigit() && digits < 15 => {
                    let digit = char::from(byte).to_digit(16)?;
                    State::Size(size * 16 + u64::from(digit), digits + 1)
                }
                (State::Size(size, 1..), b'\r') => State::SizeEnd(size),
                (State::SizeEnd(0), b'\n') => State::LastCr,
                (State::SizeEnd(size), b'\n') => State::Data(size),
                (State::Data(length), _) if length == step => State::DataCr,
                (State::Data(length), _) => State::Data(length - step),
                (State::DataCr, b'\r') => State::DataLf,
                (State::DataLf, b'\n') => State::Size(0, 0),
                (State::LastCr, b'\r') => State::LastLf,
                (State::LastLf, b'\n') => State::Done,
                _ => return None,
            };
            at += usize::try_from(step).ok()?;
        }
        Some(at)
    }
}

/// Passes a body on, and nothing else.
pub(super) async fn pass(
    body: Body,
    first: &[u8],
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
) -> io::Result<()> {
    let mut follower = Follower::new(body);
    let mut buffer = first.to_vec();
    loop {
        let Some(taken) = follower.take(&buffer) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        to.write_all(&buffer[..taken]).await?;
        if follower.is_done() {
            return Ok(());
        }
        buffer.clear();
        buffer.reserve(16 * 1_024);
        if from.read_buf(&mut buffer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_ends_where_its_head_says() {
        let whole = b"5\r\nhello\r\n0\r\n\r\nGET http://evil/ HTTP/1.1";
        for cut in 0..whole.len() {
            let mut follower = Follower::new(Body::Chunked);
            let first = follower.take(&whole[..cut]).unwrap();
            let second = match follower.is_done() {
                true => 0,
                false => follower.take(&whole[cut..]).unwrap(),
            };
            assert!(follower.is_done());
            assert_eq!(first + second, 15, "{cut}");
        }
        let mut follower = Follower::new(Body::Length(3));
        assert_eq!(follower.take(b"ab"), Some(2));
        assert_eq!(follower.take(b"cde"), Some(1));
        assert!(follower.is_done());
        assert_eq!(Follower::new(Body::Length(0)).take(b"x"), Some(0));
    }

    #[test]
    fn what_is_no_chunk_is_not_passed_on() {
        for text in [
            "\r\n",
            "x\r\n",
            "5\n",
            "5 \r\n",
            "5;a=b\r\n",
            "0x5\r\n",
            "-1\r\n",
            "+1\r\n",
            "1\r\nab",
            "1\r\na\n",
            "0\r\nTrailer: x",
            "0\r\n\n",
            "ffffffffffffffff\r\n",
        ] {
            assert_eq!(
                Follower::new(Body::Chunked).take(text.as_bytes()),
                None,
                "{text:?}"
            );
        }
    }
}
