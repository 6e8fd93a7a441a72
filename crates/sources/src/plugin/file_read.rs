//! Runs a file-read tool: one regular file beneath `basePath`, opened by the kernel, no larger than `maxSize`.

use std::io::Read;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;
use toolcrib_core::words::counted;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use toolcrib_core::{
    Attachment, AttachmentKind, BoxFuture, Call, CallError, CallResult, Outcome, Permit, Reads,
    Spec,
};

use crate::beneath::{self, Opened};
use crate::code::Code;
use crate::fields::{Fields, Report};
use crate::{Place, permits};

pub const FIELDS: [&str; 4] = ["type", "basePath", "maxSize", "timeout"];

const DEFAULT_MAX_SIZE: u64 = 1_024 * 1_024;
/// A file is held in memory while it is handed over.
const LARGEST_MAX_SIZE: u64 = 64 * 1_024 * 1_024;

pub struct FileRead {
    base: String,
    max_size: u64,
    place: Arc<Place>,
}

impl FileRead {
    pub fn read(
        fields: &Fields,
        spec: &Spec,
        place: &Arc<Place>,
        report: &mut Report,
    ) -> Option<FileRead> {
        let max_size = fields
            .count(report, "maxSize", LARGEST_MAX_SIZE)
            .unwrap_or(DEFAULT_MAX_SIZE);
        if !spec
            .input_schema
            .properties()
            .any(|(name, _)| name == "path")
        {
            let hint = "add \"path\": {\"type\": \"string\"} to `inputSchema.properties`";
            report.warn(
                &fields.at("type"),
                "is `file-read`, but `inputSchema` does not describe `path`",
                hint,
            );
        }
        let base = fields.required_text(
            report,
            "basePath",
            "write \"basePath\": \"docs\", a folder of the project",
        )?;
        if base.contains('\0') {
            report.invalid(
                &fields.at("basePath"),
                "contains a null byte",
                "write a folder's path",
            );
            return None;
        }
        Some(FileRead {
            base: base.to_owned(),
            max_size,
            place: place.clone(),
        })
    }

    /// What it asks for beyond its declared permissions: to read its folder.
    pub fn asks(&self) -> Permit {
        Permit {
            read: vec![self.base.clone()],
            ..Permit::default()
        }
    }

    async fn execute(&self, call: &Call) -> CallResult {
        let Some(path) = call
            .arguments
            .get("path")
            .and_then(serde_json::Value::as_str)
        else {
            return Err(CallError::invalid("`path` must be given as a string")
                .hint("name a file of the tool's folder"));
        };
        let place = self.place.clone();
        let tool = call.tool.clone();
        let (base, path, max_size) = (self.base.clone(), path.to_owned(), self.max_size);
        let work = move || {
            let may = May {
                project: place.project.as_deref(),
                permit: &tool.permit,
                reads: &tool.reads,
                code: &place.code,
            };
            read(&may, &base, &path, max_size)
        };
        tokio::task::spawn_blocking(work)
            .await
            .map_err(|error| CallError::internal(error.to_string()))?
    }
}

impl toolcrib_core::Run for FileRead {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, CallResult> {
        Box::pin(self.execute(call))
    }
}

/// What the tool may read.
struct May<'a> {
    project: Option<&'a Path>,
    /// What was granted.
    permit: &'a Permit,
    reads: &'a Reads,
    code: &'a Code,
}

/// Opens the file below the folder that `base` leads to now: one in the project, or one that was granted.
fn open(may: &May, base: &str, path: &str) -> Result<Opened, CallError> {
    let May {
        project, permit, ..
    } = *may;
    let Some(found) = permits::real(project, base) else {
        let message = format!("`{base}` starts at the project, but there is no project");
        return Err(
            CallError::unavailable(message).hint("run in a project, or pass `--project DIR`")
        );
    };
    if let (Some(project), false) = (project, found.starts_with('/')) {
        let inside = if found == "." { "" } else { &found };
        let opened = beneath::open_nested(project, Path::new(inside), path)?;
        may.code
            .check_read(&project.join(inside), &opened.file, path)?;
        return match may.reads.narrowed() {
            None => Ok(opened),
            Some(_) => narrowed(may, project, opened, path),
        };
    }
    if permit.covers(&to_read(&found)).is_err() {
        let message =
            format!("the tool's folder `{base}` leads to `{found}`, which it hasn't been granted");
        return Err(CallError::denied(message)
            .hint("check where it leads, then run `toolcrib reload` and `toolcrib grant`"));
    }
    let opened = beneath::open(Path::new(&found), path)?;
    may.code.check_read(Path::new(&found), &opened.file, path)?;
    Ok(opened)
}

fn to_read(path: &str) -> Permit {
    Permit {
        read: vec![path.to_owned()],
        ..Permit::default()
    }
}

/// The file, where the tool reads it though it reads a part of the project only. What is judged is the file that was
/// opened, by the path that the kernel has for it.
fn narrowed(may: &May, project: &Path, opened: Opened, path: &str) -> Result<Opened, CallError> {
    let link = format!("/proc/self/fd/{}", opened.file.as_raw_fd());
    let place = std::fs::read_link(link).ok();
    let place = place.as_deref().and_then(Path::to_str);
    let fits = |place: &str| {
        let relative = permits::real(Some(project), place).filter(|path| !path.starts_with('/'));
        let by_default = relative.is_some_and(|path| may.reads.gives(&path));
        by_default || may.permit.covers(&to_read(place)).is_ok()
    };
    match place.is_some_and(fits) {
        true => Ok(opened),
        false => Err(CallError::denied(format!(
            "`{path}` is not among the files of the project that this tool reads"
        ))
        .hint("its `permissions` and `sandbox.allowedPaths` say which; `toolcrib grant NAME --read PATH` gives more")),
    }
}

fn read(may: &May, base: &str, path: &str, max_size: u64) -> CallResult {
    let opened = open(may, base, path)?;
    let bytes = bounded(opened, path, max_size)?;
    let size = bytes.len();
    let outcome = match String::from_utf8(bytes) {
        Ok(text) => Outcome::text(text),
        Err(error) => {
            let mime = mime_of(path);
            let attachment = attachment(mime, error.as_bytes(), path.rsplit('/').next());
            let output = format!(
                "`{path}` is not text; {} attached as {mime}",
                counted(size, "byte")
            );
            Outcome {
                attachments: vec![attachment],
                ..Outcome::text(output)
            }
        }
    };
    Ok(outcome
        .title(format!("Read {path}"))
        .meta("path", path)
        .meta("bytes", size))
}

/// The bytes of the file, which may have grown since it was opened.
fn bounded(opened: Opened, path: &str, max_size: u64) -> Result<Vec<u8>, CallError> {
    let too_large = || {
        CallError::invalid(format!(
            "`{path}` is larger than the {max_size} bytes this tool reads"
        ))
        .hint("name a smaller file; the tool's author can raise `maxSize`")
    };
    if opened.size > max_size {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    opened
        .file
        .take(max_size + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| CallError::unavailable(format!("`{path}` could not be read: {error}")))?;
    if bytes.len() as u64 > max_size {
        Err(too_large())
    } else {
        Ok(bytes)
    }
}

/// Bytes that are not text, for an agent to look at.
pub fn attachment(mime: &str, bytes: &[u8], name: Option<&str>) -> Attachment {
    let kind = if mime.starts_with("image/") {
        AttachmentKind::Image
    } else {
        AttachmentKind::File
    };
    let data = Some(STANDARD.encode(bytes));
    Attachment {
        kind,
        mime_type: mime.to_owned(),
        text: None,
        data,
        name: name.map(str::to_owned),
    }
}

pub fn mime_of(path: &str) -> &'static str {
    let extension = path
        .rsplit_once('.')
        .map(|(_, extension)| extension.to_ascii_lowercase())
        .unwrap_or_default();
    match extension.as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "bmp" => "image/bmp",
        "pdf" => "application/pdf",
        "zip" => "application/zip",
        "gz" | "tgz" => "application/gzip",
        "wasm" => "application/wasm",
        "mp3" => "audio/mpeg",
        "mp4" => "video/mp4",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolcrib_core::ErrorCode;

    fn project() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("p/docs/sub")).unwrap();
        std::fs::write(root.path().join("p/secret"), "s").unwrap();
        std::fs::write(root.path().join("outer"), "o").unwrap();
        std::fs::write(root.path().join("p/docs/a.md"), "hällo").unwrap();
        std::fs::write(root.path().join("p/docs/b.png"), [0x89, b'P', 0xFF]).unwrap();
        std::os::unix::fs::symlink("../secret", root.path().join("p/docs/up")).unwrap();
        std::os::unix::fs::symlink("a.md", root.path().join("p/docs/same")).unwrap();
        std::os::unix::fs::symlink(root.path(), root.path().join("p/out")).unwrap();
        root
    }

    fn try_read(root: &std::path::Path, base: &str, path: &str, max: u64) -> CallResult {
        let may = May {
            project: Some(&root.join("p")),
            permit: &Permit::default(),
            reads: &Reads::Project,
            code: &Code::default(),
        };
        read(&may, base, path, max)
    }

    #[test]
    fn files_of_the_folder_are_read() {
        let root = project();
        for path in ["a.md", "sub/../a.md", "same", "./a.md"] {
            let outcome = try_read(root.path(), "docs", path, 6).unwrap();
            assert_eq!(outcome.output, "hällo", "{path}");
            assert_eq!(
                (&outcome.metadata["path"], &outcome.metadata["bytes"]),
                (&path.into(), &6.into())
            );
        }
        let image = try_read(root.path(), "docs", "b.png", 100).unwrap();
        assert_eq!(image.attachments[0].kind, AttachmentKind::Image);
        assert_eq!(image.attachments[0].data.as_deref(), Some("iVD/"));
        assert_eq!(image.attachments[0].name.as_deref(), Some("b.png"));
    }

    #[test]
    fn nothing_else_is_read() {
        let root = project();
        let absolute = root.path().join("p/docs/a.md");
        for path in [
            "../secret",
            "up",
            absolute.to_str().unwrap(),
            "/etc/passwd",
            "sub",
            "none",
            "",
            "a\0",
            "a.md/",
        ] {
            assert!(
                try_read(root.path(), "docs", path, 100).is_err(),
                "{path:?}"
            );
        }
        assert_eq!(
            try_read(root.path(), "docs", "../secret", 100)
                .unwrap_err()
                .code,
            ErrorCode::Denied
        );
        let large = try_read(root.path(), "docs", "a.md", 5).unwrap_err();
        assert_eq!(large.code, ErrorCode::InvalidArguments);
        assert!(large.message.contains("larger"));
    }

    #[test]
    fn what_the_tool_does_not_read_of_the_project_is_denied() {
        let root = project();
        let (inside, docs) = (root.path().join("p"), root.path().join("p/docs"));
        std::os::unix::fs::symlink("docs/a.md", inside.join("in")).unwrap();
        let granted = |path: &Path| to_read(path.canonicalize().unwrap().to_str().unwrap());
        let none = Permit::default();
        let only = Reads::Only(vec!["docs/sub".to_owned(), "docs/a.md".to_owned()]);
        let fits = |permit: &Permit, reads: &Reads, path: &str| {
            let may = May {
                project: Some(&inside),
                permit,
                reads,
                code: &Code::default(),
            };
            let code = read(&may, ".", path, 100).err().map(|error| error.code);
            assert!(
                matches!(code, None | Some(ErrorCode::Denied)),
                "{path}: {code:?}"
            );
            code.is_none()
        };
        for path in ["docs/a.md", "docs/same", "in"] {
            assert!(fits(&none, &only, path), "{path}");
        }
        for path in ["docs/b.png", "secret", "docs/up"] {
            assert!(!fits(&none, &only, path), "{path}");
            assert!(!fits(&none, &Reads::Itself, path), "{path}");
            assert!(fits(&granted(&inside), &Reads::Itself, path), "{path}");
        }
        assert!(fits(&granted(&docs), &Reads::Itself, "docs/b.png"));
        assert!(!fits(&granted(&docs), &Reads::Itself, "secret"));
    }

    #[test]
    fn a_base_that_became_a_link_out_of_the_project_is_refused() {
        let root = project();
        let error = try_read(root.path(), "out", "outer", 100).unwrap_err();
        assert_eq!(error.code, ErrorCode::Denied);
        let granted = Permit {
            read: vec![root.path().canonicalize().unwrap().display().to_string()],
            ..Permit::default()
        };
        let may = May {
            project: Some(&root.path().join("p")),
            permit: &granted,
            reads: &Reads::Project,
            code: &Code::default(),
        };
        let outcome = read(&may, "out", "outer", 100).unwrap();
        assert_eq!(outcome.output, "o");
        let missing = try_read(root.path(), "nowhere", "a.md", 100).unwrap_err();
        assert_eq!(missing.code, ErrorCode::Unavailable);
    }
}
