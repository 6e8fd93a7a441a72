//! What the crib and the launcher say to each other over the control socket.
//!
//! The crib sends one [`Order`] with what is to be started, and the tool's stdin if it has one, then [`TERMINATE`] any number of times, and hangs
//! up. The launcher sends [`Report`]s: one about the start, one about the end.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use super::check;
use crate::Rung;

/// Asks the tool's own process to end.
pub(crate) const TERMINATE: u8 = b'.';

/// How the tool's processes are to be kept together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// In namespaces where the machine lets us make them, else in a group.
    Try,
    Namespaces,
    Group,
    /// As the plan says that comes with it.
    Confined,
}

impl Order {
    fn byte(self) -> u8 {
        match self {
            Order::Try => b't',
            Order::Namespaces => b'n',
            Order::Group => b'g',
            Order::Confined => b'c',
        }
    }

    fn from_byte(byte: u8) -> Option<Order> {
        [Order::Try, Order::Namespaces, Order::Group, Order::Confined]
            .into_iter()
            .find(|order| order.byte() == byte)
    }
}

/// What the launcher tells the crib.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Report {
    InNamespaces,
    /// The tool runs in a group of this number, which is its pid.
    InGroup(i32),
    /// The tool can't be executed.
    ExecFailed(i32),
    /// What should keep it together can't be made.
    Failed(i32),
    /// A wall can't be put up; the number is that of a `Trouble`.
    Walls(i32),
    Code(i32),
    Signal(i32),
}

impl Report {
    pub(crate) const SIZE: usize = 5;

    fn encode(self) -> [u8; Report::SIZE] {
        let (kind, number) = match self {
            Report::InNamespaces => (b'n', 0),
            Report::InGroup(tool) => (b'g', tool),
            Report::ExecFailed(errno) => (b'e', errno),
            Report::Failed(errno) => (b'f', errno),
            Report::Walls(code) => (b'w', code),
            Report::Code(code) => (b'x', code),
            Report::Signal(signal) => (b's', signal),
        };
        let [a, b, c, d] = number.to_le_bytes();
        [kind, a, b, c, d]
    }

    pub(crate) fn decode([kind, a, b, c, d]: [u8; Report::SIZE]) -> Option<Report> {
        let number = i32::from_le_bytes([a, b, c, d]);
        match kind {
            b'n' => Some(Report::InNamespaces),
            b'g' => Some(Report::InGroup(number)),
            b'e' => Some(Report::ExecFailed(number)),
            b'f' => Some(Report::Failed(number)),
            b'w' => Some(Report::Walls(number)),
            b'x' => Some(Report::Code(number)),
            b's' => Some(Report::Signal(number)),
            _ => None,
        }
    }

    /// The rung of a tool that was started.
    pub(crate) fn rung(self) -> Option<Rung> {
        match self {
            Report::InNamespaces => Some(Rung::Namespaces),
            Report::InGroup(_) => Some(Rung::Group),
            _ => None,
        }
    }
}

/// Sends bytes that fit the socket's empty buffer; nobody at the other end is an error, not a signal.
fn send(control: BorrowedFd, bytes: &[u8]) -> io::Result<()> {
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    // SAFETY: the buffer lives across the call.
    let sent = unsafe {
        let start = bytes.as_ptr().cast();
        libc::send(control.as_raw_fd(), start, bytes.len(), flags)
    };
    if sent == bytes.len() as isize {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

pub(super) fn report(control: BorrowedFd, report: Report) -> io::Result<()> {
    send(control, &report.encode())
}

pub(crate) fn send_terminate(control: BorrowedFd) -> io::Result<()> {
    send(control, &[TERMINATE])
}

/// Tells the launcher that the crib will say no more, and leaves the crib able to hear its last report.
pub(crate) fn hang_up(control: BorrowedFd) -> io::Result<()> {
    // SAFETY: no memory is touched.
    check(unsafe { libc::shutdown(control.as_raw_fd(), libc::SHUT_WR) }).map(|_| ())
}

/// Whether the launcher went without a last word.
pub(crate) fn is_gone(control: BorrowedFd) -> bool {
    let mut byte = 0_u8;
    let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT;
    // SAFETY: the byte lives across the call.
    unsafe {
        libc::recv(
            control.as_raw_fd(),
            ptr::from_mut(&mut byte).cast(),
            1,
            flags,
        ) == 0
    }
}

/// The most descriptors that one message carries.
const HANDED: usize = 3;

/// Room for them in a control message, aligned as its header wants it.
type Ancillary = [u64; 4];

fn size_of_descriptors(count: usize) -> libc::c_uint {
    (count * size_of::<libc::c_int>()) as libc::c_uint
}

/// A message of one byte, with room for `count` descriptors beside it.
///
/// # Safety
/// The message points at its arguments, and must not be used after them.
unsafe fn one_byte(
    byte: &mut u8,
    part: &mut libc::iovec,
    ancillary: &mut Ancillary,
    count: usize,
) -> libc::msghdr {
    part.iov_base = ptr::from_mut(byte).cast();
    part.iov_len = 1;
    // SAFETY: all zeros are an empty message; the macro only computes.
    unsafe {
        let mut message: libc::msghdr = mem::zeroed();
        message.msg_iov = part;
        message.msg_iovlen = 1;
        message.msg_control = ancillary.as_mut_ptr().cast();
        message.msg_controllen = libc::CMSG_SPACE(size_of_descriptors(count)) as _;
        message
    }
}

/// Sends one byte with up to three descriptors.
fn send_with(socket: BorrowedFd, mut byte: u8, handed: &[BorrowedFd]) -> io::Result<()> {
    if handed.is_empty() {
        return send(socket, &[byte]);
    }
    let mut ancillary: Ancillary = [0; 4];
    // SAFETY: everything the message points at lives until the call is over, and it has room for the descriptors.
    let sent = unsafe {
        let mut part: libc::iovec = mem::zeroed();
        let message = one_byte(&mut byte, &mut part, &mut ancillary, handed.len());
        let header = libc::CMSG_FIRSTHDR(&message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(size_of_descriptors(handed.len())) as _;
        let place = libc::CMSG_DATA(header).cast::<libc::c_int>();
        for (index, descriptor) in handed.iter().enumerate() {
            place.add(index).write_unaligned(descriptor.as_raw_fd());
        }
        libc::sendmsg(socket.as_raw_fd(), &message, libc::MSG_NOSIGNAL)
    };
    match sent {
        1 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Receives one byte and what was handed over with it; no byte at the end.
fn receive_with(socket: BorrowedFd) -> io::Result<(Option<u8>, VecDeque<OwnedFd>)> {
    let mut byte = 0;
    let mut ancillary: Ancillary = [0; 4];
    // SAFETY: everything the message points at lives until the end of the block; descriptors that the kernel put there
    // are ours and nobody else's.
    let (received, handed, flags) = unsafe {
        let mut part: libc::iovec = mem::zeroed();
        let mut message = one_byte(&mut byte, &mut part, &mut ancillary, HANDED);
        let received = check(
            libc::recvmsg(socket.as_raw_fd(), &mut message, libc::MSG_CMSG_CLOEXEC) as libc::c_int,
        )?;
        let mut handed = VecDeque::new();
        let header = libc::CMSG_FIRSTHDR(&message);
        if !header.is_null() && (*header).cmsg_type == libc::SCM_RIGHTS {
            let place = libc::CMSG_DATA(header).cast::<libc::c_int>();
            let length = (*header).cmsg_len as usize - libc::CMSG_LEN(0) as usize;
            for index in 0..length / size_of::<libc::c_int>() {
                handed.push_back(OwnedFd::from_raw_fd(place.add(index).read_unaligned()));
            }
        }
        (received, handed, message.msg_flags)
    };
    if flags & libc::MSG_CTRUNC != 0 {
        return Err(io::Error::from_raw_os_error(libc::EMFILE));
    }
    Ok(((received == 1).then_some(byte), handed))
}

/// The crib's first word. The socket keeps it until the launcher is there to read it. What is to be started comes first,
/// then a confined tool's door, then the tool's stdin if it has one.
pub(crate) fn send_order(
    control: BorrowedFd,
    order: Order,
    handed: &[BorrowedFd],
) -> io::Result<()> {
    send_with(control, order.byte(), handed)
}

/// Waits for the crib's first word.
pub(super) fn receive_order(control: BorrowedFd) -> io::Result<(Order, VecDeque<OwnedFd>)> {
    let (byte, handed) = receive_with(control)?;
    match byte.and_then(Order::from_byte) {
        Some(order) => Ok((order, handed)),
        None => Err(io::Error::from_raw_os_error(libc::EPROTO)),
    }
}

/// Hands a descriptor to the crib.
pub(super) fn hand_over(door: BorrowedFd, descriptor: BorrowedFd) -> io::Result<()> {
    send_with(door, b'd', &[descriptor])
}

/// What the launcher has handed over; nothing if it went without.
pub(crate) fn receive_handed(door: BorrowedFd) -> io::Result<Option<OwnedFd>> {
    Ok(receive_with(door)?.1.pop_front())
}

/// A file in memory with this text, to be read from its beginning.
pub(crate) fn file_of(text: &[u8]) -> io::Result<OwnedFd> {
    // SAFETY: the string lives across the call; the descriptor is new.
    let mut file = unsafe {
        let made = check(libc::memfd_create(c"start".as_ptr(), libc::MFD_CLOEXEC))?;
        File::from_raw_fd(made)
    };
    file.write_all(text)?;
    file.rewind()?;
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn reports_read_back() {
        for report in [
            Report::InNamespaces,
            Report::InGroup(7),
            Report::ExecFailed(2),
            Report::Failed(28),
            Report::Walls((3 << 16) | 13),
            Report::Code(-1),
            Report::Signal(9),
        ] {
            assert_eq!(Report::decode(report.encode()), Some(report));
        }
    }

    #[test]
    fn an_order_carries_stdin() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (reader, mut writer) = io::pipe().unwrap();
        send_order(ours.as_fd(), Order::Try, &[reader.as_fd()]).unwrap();
        send_order(ours.as_fd(), Order::Group, &[]).unwrap();
        let three = [reader.as_fd(), theirs.as_fd(), reader.as_fd()];
        send_order(ours.as_fd(), Order::Confined, &three).unwrap();
        drop(reader);
        let (order, mut handed) = receive_order(theirs.as_fd()).unwrap();
        let stdin = handed.pop_front();
        assert_eq!(order, Order::Try);
        writer.write_all(b"hello").unwrap();
        drop(writer);
        let mut text = String::new();
        let mut stdin = std::fs::File::from(stdin.unwrap());
        stdin.read_to_string(&mut text).unwrap();
        assert_eq!(text, "hello");
        let (order, handed) = receive_order(theirs.as_fd()).unwrap();
        assert!(order == Order::Group && handed.is_empty());
        let (order, handed) = receive_order(theirs.as_fd()).unwrap();
        assert_eq!((order, handed.len()), (Order::Confined, 3));
        drop(handed);
        drop(ours);
        assert!(receive_order(theirs.as_fd()).is_err());
    }
}
