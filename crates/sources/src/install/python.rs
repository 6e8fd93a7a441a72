//! An environment of Python packages, made by `uv` where there is one, else by the interpreter's own `venv` and `pip`.

use super::index::Installer;
use super::packages::Packages;
use super::{Install, Mode, NOT_FETCHED, NOT_MADE, Step};
use crate::Place;
use crate::script::interpreter::{Interpreter, on_path};

/// Runs the pip that came with the interpreter in an environment that has none: no program but this one is needed.
const PIP: &str = r#"
import glob, os, sys, sysconfig
places = [sysconfig.get_config_var("WHEEL_PKG_DIR"), "/usr/share/python-wheels"]
try:
    import ensurepip
    places.insert(0, os.path.join(os.path.dirname(ensurepip.__file__), "_bundled"))
except ImportError:
    pass
wheels = [wheel for place in places if place for wheel in sorted(glob.glob(os.path.join(place, "pip-*.whl")))]
if wheels:
    sys.path.insert(0, wheels[0])
else:
    name = "python%d.%d" % sys.version_info[:2]
    below = [(name, "site-packages"), ("python3", "dist-packages"), (name, "dist-packages")]
    places = [os.path.join(sys.base_prefix, "lib", *parts) for parts in below]
    sys.path.extend(place for place in places if os.path.isdir(os.path.join(place, "pip")))
try:
    from pip._internal.cli.main import main
except ImportError:
    sys.exit("this Python has no pip: install its packages `venv` and `pip`, or uv")
sys.exit(main(sys.argv[1:]))
"#;

impl Install {
    pub fn python(packages: &Packages, base: &Interpreter, mode: Mode, place: &Place) -> Install {
        let uv = on_path("uv", place, false);
        let installer = match uv {
            Some(_) => Installer::Uv,
            None => Installer::Pip,
        };
        let mut install = Install::new("python", &base.identity, packages, installer, mode, place);
        install.frame = &["pyvenv.cfg", "bin/python", "bin/python3"];
        let folder = install.folder.clone();
        let python = folder.join("bin/python");
        let built = mode == Mode::Built;
        install.steps = match uv {
            // It runs the interpreter to ask what that is.
            Some(uv) => {
                let add = Step::new(&uv, NOT_FETCHED)
                    .args(["pip", "install", "--quiet", "--no-cache", "--python"])
                    .args([&python])
                    .args((!built).then_some("--no-build"))
                    .args(["--"])
                    .args(packages.iter());
                vec![
                    Step::new(&uv, NOT_MADE)
                        .args(["venv", "--quiet", "--no-project", "--no-cache"])
                        .args(["--allow-existing", "--python"])
                        .args([&base.program, &folder])
                        .var("UV_PYTHON_DOWNLOADS", "never")
                        .executes(true),
                    add.var("UV_PYTHON_DOWNLOADS", "never")
                        .executes(true)
                        .fetches(),
                ]
            }
            None => vec![
                Step::new(&base.program, NOT_MADE)
                    .args(["-I", "-m", "venv", "--without-pip"])
                    .args([&folder]),
                Step::new(&python, NOT_FETCHED)
                    .args(["-I", "-X", "utf8", "-c", PIP, "install", "--quiet"])
                    .args([
                        "--no-input",
                        "--no-cache-dir",
                        "--disable-pip-version-check",
                    ])
                    .args(["--no-warn-script-location", "--ignore-installed"])
                    .args((!built).then_some("--only-binary=:all:"))
                    .args(["--"])
                    .args(packages.iter())
                    .executes(built)
                    .fetches(),
            ],
        };
        install
    }
}
