//! A `node_modules` folder, made by Bun where that runs the tool, else by npm.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::index::Installer;
use super::packages::Packages;
use super::{Install, Mode, NOT_FETCHED, Step};
use crate::Place;
use crate::script::interpreter::{Interpreter, on_path};

impl Install {
    /// `dependencies` are what `packages` was read from.
    pub fn node(
        packages: &Packages,
        dependencies: &Map<String, Value>,
        base: &Interpreter,
        mode: Mode,
        place: &Place,
    ) -> Install {
        let bun = base.name().contains("bun");
        let installer = match bun {
            true => Installer::Bun,
            false => Installer::Npm,
        };
        let mut install = Install::new("node", &base.identity, packages, installer, mode, place);
        let folder = install.folder.clone();
        let built = mode == Mode::Built;
        let unscripted = (!built).then_some("--ignore-scripts");
        let npm = || on_path("npm", place, false).unwrap_or_else(|| PathBuf::from("npm"));
        let step = match bun {
            true => Step::new(&base.program, NOT_FETCHED)
                .args(["install", "--production", "--silent", "--cwd"])
                .args([&folder])
                .args(unscripted)
                .var("BUN_INSTALL_CACHE_DIR", folder.join(".cache")),
            false => Step::new(&npm(), NOT_FETCHED)
                .args(["install", "--omit=dev", "--no-audit", "--no-fund"])
                .args(["--loglevel=error", "--no-update-notifier", "--prefix"])
                .args([&folder])
                .args(unscripted)
                .var("NPM_CONFIG_CACHE", folder.join(".cache")),
        };
        install.steps = vec![step.executes(built).fetches()];
        let package = json!({"private": true, "dependencies": dependencies});
        install.files = vec![("package.json", package.to_string())];
        install.waste = &[".cache"];
        install
    }
}
