//! Answers for `connect` where no network namespace keeps a tool in: the kernel holds the call until the crib has said
//! what comes of it.
//!
//! The address is copied once, and only the copy counts. If it is the proxy's, the crib connects itself and puts its own
//! connection in the place of the tool's, so nothing that the tool changes meanwhile matters.

#![expect(unsafe_code, reason = "the kernel's questions have no safe interface")]

use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::PoisonError;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::TcpSocket;
use tokio::sync::mpsc;

use crate::proxy::{Denial, Guests};

const RECEIVE: libc::c_ulong = 0xc050_2100;
const SEND: libc::c_ulong = 0xc018_2101;
const IS_VALID: libc::c_ulong = 0x4008_2102;
const ADD_DESCRIPTOR: libc::c_ulong = 0x4018_2103;

#[repr(C)]
#[derive(Default)]
struct Question {
    id: u64,
    pid: u32,
    flags: u32,
    number: i32,
    arch: u32,
    pointer: u64,
    args: [u64; 6],
}

#[repr(C)]
struct Answer {
    id: u64,
    value: i64,
    error: i32,
    flags: u32,
}

#[repr(C)]
struct Addition {
    id: u64,
    flags: u32,
    source: u32,
    target: u32,
    target_flags: u32,
}

/// Who is asked about one tool's connections.
pub(crate) struct ConnectFilter {
    /// Where the tool's proxy listens.
    pub proxy: SocketAddr,
    pub guests: Guests,
    pub denied: Option<mpsc::Sender<Denial>>,
}

impl ConnectFilter {
    /// Answers until nobody is left to ask.
    pub(crate) async fn attend(self, listener: OwnedFd) -> io::Result<()> {
        // SAFETY: the descriptor is owned, and stays open until the object that is made here lets go of it.
        let listener = unsafe { AsyncFd::register_with_interest(listener, Interest::READABLE) };
        let listener = listener.map_err(io::Error::from)?;
        loop {
            let mut ready = listener.readable().await?;
            match waiting(ready.get_inner())? {
                Waiting::Question => self.answer(ready.get_inner()).await?,
                Waiting::Nobody => return Ok(()),
                Waiting::Nothing => ready.clear_ready(),
            }
        }
    }

    async fn answer(&self, listener: &OwnedFd) -> io::Result<()> {
        let mut question = Question::default();
        match control(listener, RECEIVE, &raw mut question) {
            Ok(()) => {}
            // Whoever asked was killed meanwhile.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINTR)) => {
                return Ok(());
            }
            Err(error) => return Err(error),
        }
        let error = match self.connect(listener, &question).await {
            Ok(()) => 0,
            Err(error) => -error.raw_os_error().unwrap_or(libc::EACCES),
        };
        let mut answer = Answer {
            id: question.id,
            value: 0,
            error,
            flags: 0,
        };
        // Whoever asked may be gone.
        let _ = control(listener, SEND, &raw mut answer);
        Ok(())
    }

    async fn connect(&self, listener: &OwnedFd, question: &Question) -> io::Result<()> {
        let no = || io::Error::from_raw_os_error(libc::EACCES);
        let address = asked_address(question)?;
        let mut id = question.id;
        // The number may be that of another process by now; then what was read is not the tool's.
        control(listener, IS_VALID, &raw mut id)?;
        let address = address.ok_or_else(no)?;
        if address != self.proxy {
            self.tell(address);
            return Err(no());
        }
        let flags = descriptor_flags(question);
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
        let own = socket.local_addr()?;
        self.guests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(own);
        let stream = socket.connect(self.proxy).await?.into_std()?;
        stream.set_nonblocking(flags & libc::O_NONBLOCK != 0)?;
        const IN_PLACE: u32 = 1;
        let mut addition = Addition {
            id: question.id,
            flags: IN_PLACE,
            source: stream.as_raw_fd() as u32,
            target: question.args[0] as u32,
            target_flags: (flags & libc::O_CLOEXEC) as u32,
        };
        control(listener, ADD_DESCRIPTOR, &raw mut addition)
    }

    fn tell(&self, address: SocketAddr) {
        if let Some(denied) = &self.denied {
            // Whoever does not listen has heard enough of them.
            let _ = denied.try_send(Denial {
                host: address.ip().to_string(),
                port: address.port(),
                reason: "it was not asked for through the proxy that HTTPS_PROXY names".to_owned(),
            });
        }
    }
}

enum Waiting {
    Question,
    Nothing,
    Nobody,
}

/// What there is to be heard. Asking for a question when there is none could wait without end.
fn waiting(listener: &OwnedFd) -> io::Result<Waiting> {
    let mut polled = libc::pollfd {
        fd: listener.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: the structure lives across the call.
    if unsafe { libc::poll(&mut polled, 1, 0) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(match polled.revents {
        events if events & libc::POLLIN != 0 => Waiting::Question,
        0 => Waiting::Nothing,
        _ => Waiting::Nobody,
    })
}

fn control<T>(listener: &OwnedFd, request: libc::c_ulong, argument: *mut T) -> io::Result<()> {
    // SAFETY: the argument is the structure that the request takes, and lives across the call.
    if unsafe { libc::ioctl(listener.as_raw_fd(), request as _, argument) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// The address in the tool's memory; nothing where it is none of the internet's.
fn asked_address(question: &Question) -> io::Result<Option<SocketAddr>> {
    let mut bytes = [0_u8; 28];
    let length = (question.args[2] as usize).min(bytes.len());
    let memory = File::open(format!("/proc/{}/mem", question.pid))?;
    memory.read_exact_at(&mut bytes[..length], question.args[1])?;
    Ok(read_address(&bytes[..length]))
}

fn read_address(bytes: &[u8]) -> Option<SocketAddr> {
    let family = i32::from(u16::from_ne_bytes([*bytes.first()?, *bytes.get(1)?]));
    let port = u16::from_be_bytes([*bytes.get(2)?, *bytes.get(3)?]);
    let ip = match family {
        libc::AF_INET => {
            let ip: [u8; 4] = bytes.get(4..8)?.try_into().ok()?;
            IpAddr::from(Ipv4Addr::from(ip))
        }
        libc::AF_INET6 => {
            let ip: [u8; 16] = bytes.get(8..24)?.try_into().ok()?;
            IpAddr::from(Ipv6Addr::from(ip))
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

/// How the tool has opened the descriptor that it connects.
fn descriptor_flags(question: &Question) -> i32 {
    let path = format!("/proc/{}/fdinfo/{}", question.pid, question.args[0] as u32);
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    flags
        .and_then(|flags| i32::from_str_radix(flags.trim(), 8).ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_the_kernel_reads_them() {
        let mut fourth = vec![libc::AF_INET as u8, 0, 0x1f, 0x90, 127, 0, 0, 1];
        assert_eq!(
            read_address(&fourth),
            Some("127.0.0.1:8080".parse().unwrap())
        );
        fourth.truncate(6);
        assert_eq!(read_address(&fourth), None);
        let mut sixth = vec![0; 28];
        sixth[0] = libc::AF_INET6 as u8;
        sixth[3] = 80;
        sixth[23] = 1;
        assert_eq!(read_address(&sixth), Some("[::1]:80".parse().unwrap()));
        assert_eq!(read_address(&[libc::AF_UNIX as u8, 0, b'/', b'x']), None);
        assert_eq!(read_address(&[]), None);
    }

    #[test]
    fn structures_are_as_large_as_the_kernels() {
        assert_eq!(
            (
                size_of::<Question>(),
                size_of::<Answer>(),
                size_of::<Addition>()
            ),
            (80, 24, 24)
        );
    }
}
