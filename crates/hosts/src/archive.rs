//! Archives as bytes: a zip file, which a wheel is, and a gzipped tar file, which npm installs. The same files give the same
//! bytes, on every machine: no times, no owners, nothing compressed.

/// In both archives, where their formats have room for a remark. Whoever finds it knows that Toolcrib wrote the file.
pub const MARK: &str = "written by `toolcrib sdk`";

/// Name in the archive, and content.
pub type Entry<'a> = (String, &'a [u8]);

/// The first day that a zip file can name: 1980-01-01.
const ZIP_DAY: u16 = 1 << 5 | 1;
/// The longest name that the old form of a tar header has room for.
const TAR_NAME: usize = 100;
const TAR_BLOCK: usize = 512;
/// The longest piece of a gzip file that is not compressed.
const GZIP_PIECE: usize = 0xFFFF;

/// A zip file; `MARK` is its comment.
pub fn zip(entries: &[Entry]) -> Vec<u8> {
    let (mut file, mut directory) = (Vec::new(), Vec::new());
    for (name, content) in entries {
        let at = length(file.len());
        let mut about = Vec::new();
        // Version 2.0, names in UTF-8, stored as it is, at midnight.
        for half in [20, 1 << 11, 0, 0, ZIP_DAY] {
            about.extend(u16::to_le_bytes(half));
        }
        let size = length(content.len());
        for word in [crc32(content), size, size] {
            about.extend(word.to_le_bytes());
        }
        about.extend((name.len() as u16).to_le_bytes());
        about.extend([0, 0]);
        file.extend(b"PK\x03\x04");
        file.extend(&about);
        file.extend(name.as_bytes());
        file.extend(*content);
        // Made by Unix, so that the mode below counts.
        directory.extend(b"PK\x01\x02\x14\x03");
        directory.extend(&about);
        directory.extend([0; 6]);
        directory.extend((0o100_644_u32 << 16).to_le_bytes());
        directory.extend(at.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let at = length(file.len());
    let count = (entries.len() as u16).to_le_bytes();
    file.extend(&directory);
    file.extend(b"PK\x05\x06\0\0\0\0");
    file.extend([count, count].concat());
    file.extend(length(directory.len()).to_le_bytes());
    file.extend(at.to_le_bytes());
    file.extend((MARK.len() as u16).to_le_bytes());
    file.extend(MARK.as_bytes());
    file
}

/// A gzipped tar file; `MARK` is the comment in its head.
pub fn tar_gz(entries: &[Entry]) -> Vec<u8> {
    let tar = tar(entries);
    // A comment follows; no time; written on Unix.
    let mut file = b"\x1f\x8b\x08\x10\0\0\0\0\0\x03".to_vec();
    file.extend(MARK.as_bytes());
    file.push(0);
    let mut pieces = tar.chunks(GZIP_PIECE).peekable();
    while let Some(piece) = pieces.next() {
        let size = piece.len() as u16;
        file.push(u8::from(pieces.peek().is_none()));
        file.extend(size.to_le_bytes());
        file.extend((!size).to_le_bytes());
        file.extend(piece);
    }
    file.extend(crc32(&tar).to_le_bytes());
    file.extend(length(tar.len()).to_le_bytes());
    file
}

fn tar(entries: &[Entry]) -> Vec<u8> {
    let mut file = Vec::new();
    for (name, content) in entries {
        assert!(name.len() <= TAR_NAME, "{name} is too long for a tar file");
        let mut head = [0; TAR_BLOCK];
        let size = format!("{:011o}\0", content.len());
        for (at, field) in [
            (0, name.as_str()),
            (100, "0000644\0"),
            (108, "0000000\0"),
            (116, "0000000\0"),
            (124, &size),
            // npm's own day, 1985-10-26: some tools refuse files from 1970.
            (136, "03560116604\0"),
            // The checksum is counted with blanks in its own place.
            (148, "        "),
            (156, "0"),
            (257, "ustar\x0000"),
        ] {
            head[at..at + field.len()].copy_from_slice(field.as_bytes());
        }
        let sum: u32 = head.iter().map(|byte| u32::from(*byte)).sum();
        head[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        file.extend(head);
        file.extend(*content);
        file.resize(file.len().next_multiple_of(TAR_BLOCK), 0);
    }
    file.resize(file.len() + 2 * TAR_BLOCK, 0);
    file
}

/// A length as both formats have it. What the binary carries is far below their limit.
fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("an SDK is smaller than 4 GB")
}

/// The checksum of zip and gzip.
fn crc32(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut at = 0;
        while at < table.len() {
            let (mut value, mut bit) = (at as u32, 0);
            while bit < 8 {
                value = (value >> 1) ^ (0xEDB8_8320 * (value & 1));
                bit += 1;
            }
            table[at] = value;
            at += 1;
        }
        table
    };
    !bytes.iter().fold(!0, |sum: u32, byte| {
        (sum >> 8) ^ TABLE[usize::from(sum as u8 ^ byte)]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_usual_one() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        assert_eq!(crc32(b""), 0);
    }

    #[test]
    fn the_same_files_give_the_same_bytes() {
        let large = vec![b'x'; 3 * GZIP_PIECE];
        let entries = [("a".to_owned(), &b"one"[..]), ("b/c".to_owned(), &large)];
        assert_eq!(zip(&entries), zip(&entries));
        assert_eq!(tar_gz(&entries), tar_gz(&entries));
        assert_eq!(tar(&entries).len() % TAR_BLOCK, 0);
    }
}
