//! Asks a script's host what tools the script has, and makes tools of its answer.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use toolcrib_core::{
    BoxFuture, Call, CallError, CallResult, ErrorType, Mask, Pending, Permit, Problem, Retries,
    Run, Scope,
};

use super::language::Launching;
use super::unasked;
use super::{Around, Script};
use crate::confine::Workshop;
use crate::description::{Afterwards, Undescribed};
use crate::executable::Home;
use crate::executable::definition::Definition;
use crate::fields::Report;
use crate::install::packages::Packages;
use crate::install::{Install, Mode, Progress};
use crate::origin::Loaded;
use crate::worker::{Blueprint, Fault, Greeting, Keep, Key, NOT_LOADED, said as said_by_tool};
use crate::{Place, put_off};

/// A script that may still have to be asked what it has.
pub struct UndescribedScript {
    script: Arc<Script>,
    home: Home,
    place: Arc<Place>,
    workshop: Workshop,
    program: PathBuf,
    /// The copy of the host that it runs in.
    host: PathBuf,
    key: Key,
    environment: Option<Install>,
    /// May its packages be installed?
    granted: bool,
}

/// A tool whose packages are not there yet.
struct Waiting {
    why: String,
    hint: &'static str,
}

impl Run for Waiting {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, CallResult> {
        let name = call.tool.name();
        let error = CallError::unavailable(format!("`{name}` can't be called yet: {}", self.why));
        Box::pin(std::future::ready(Err(error.hint(self.hint))))
    }
}

impl Undescribed for UndescribedScript {
    fn file(&self) -> Option<&Path> {
        Some(&self.script.file)
    }

    fn describe(&self, afterwards: Afterwards) -> BoxFuture<'_, Loaded> {
        Box::pin(self.ask(afterwards))
    }

    fn meanwhile(&self) -> Loaded {
        let mut loaded = unasked(&self.script, &self.home, &self.place);
        let why = "it is being loaded".to_owned();
        pend(
            &mut loaded,
            Pending::Description,
            why,
            "call it again in a moment",
        );
        loaded
    }

    fn put_off(&self, why: &Problem) {
        put_off::keep(self.place.descriptions.as_ref(), &self.key, why);
    }
}

/// None of these tools can be called yet, for this reason.
pub fn pend(loaded: &mut Loaded, pending: Pending, why: String, hint: &'static str) {
    for tool in &mut loaded.tools {
        let why = why.clone();
        let tool = Arc::make_mut(tool);
        tool.run = Arc::new(Waiting { why, hint });
        tool.pending = Some(pending);
    }
}

/// Why a tool can't be called while its packages are being installed, or before that, and what to do.
pub fn not_there_yet(progress: &Progress, packages: &str) -> (String, &'static str) {
    match progress {
        Progress::NotBegun => (
            format!("its packages are not installed yet: {packages}"),
            "`toolcrib call` of its tool installs them, and so does a crib that serves",
        ),
        _ => (
            format!("installing packages: {packages}"),
            "call it again when that is done, in a moment or a few minutes; the list of tools then changes",
        ),
    }
}

impl UndescribedScript {
    /// `start` is the folder in which its process starts, `project` whether all of its folder is trusted.
    pub fn new(
        script: Script,
        home: Home,
        packages: Option<Packages>,
        place: &Arc<Place>,
        start: &Path,
        project: bool,
    ) -> Result<UndescribedScript, Box<Problem>> {
        let problem = |kind, message: String, hint: &str| {
            let problem = Problem::error(home.source, kind, message).hint(hint);
            Box::new(problem.file(&script.file))
        };
        let language = script.language;
        if let Some(project) = place.project.as_deref() {
            place.code.hold(project.join(language.packages_folder()));
        }
        let scope = home.scope.unwrap_or(Scope::Global);
        let granted = home.granted(place);
        let mode = match granted.install && granted.exec {
            true => Mode::Built,
            false => Mode::Unpacked,
        };
        let launch = language.launch(&Launching {
            script: &script,
            packages: packages.as_ref(),
            mode,
            // A project's interpreter runs what is trusted with the project, and no tool of another place.
            own: project && scope == Scope::Local,
            place,
        });
        let launch = launch.map_err(|why| problem(why.kind, why.message, why.hint))?;
        let host = place.scripts.host(language, language.owner(&launch));
        let host = host.map_err(|missing| {
            let message = format!("its host is not there: {}", missing.why);
            problem(ErrorType::Io, message, missing.hint)
        })?;
        let key = key(&script, &home, &launch.identity, &host, start);
        let script = Arc::new(script);
        let environment = launch.environment;
        let mut args = launch.flags;
        args.push(host.join(language.host_program()).into());
        let blueprint = Blueprint {
            name: home.stem.clone(),
            program: launch.program.into_os_string(),
            args,
            dir: start.to_path_buf(),
            // Its program is no stand-in: that was looked through when it was found.
            versions: None,
            vars: Vec::new(),
            size: 1,
            keep: Keep::Warm,
            retries: Retries::default(),
            secrets: Vec::new(),
            mask: Mask::default(),
            greeting: Some(greeting(script.clone(), environment.as_ref(), place)),
        };
        let program = PathBuf::from(&blueprint.program);
        let mut own = vec![host.clone()];
        match start == place.directory() {
            true => own.extend(script.files().map(Path::to_path_buf)),
            false => own.push(start.to_path_buf()),
        }
        own.extend(
            environment
                .as_ref()
                .map(|environment| environment.folder.clone()),
        );
        let workshop = Workshop::new(blueprint, place.scripts.current(&key), own);
        Ok(UndescribedScript {
            script,
            home,
            place: place.clone(),
            workshop,
            program,
            host,
            key,
            environment,
            granted: granted.install,
        })
    }

    /// May its packages be installed, if it needs any?
    pub fn may_install(&self) -> bool {
        self.environment.is_none() || self.granted
    }

    /// Its tools as far as the text tells, or at least one to be granted something.
    pub fn as_text_tells(&self) -> Loaded {
        let mut loaded = unasked(&self.script, &self.home, &self.place);
        if loaded.tools.is_empty() {
            let mut report = Report::new(&self.script.file, self.home.source);
            let stem = Definition::declared(&self.home, &self.home.stem, None);
            let shown = self.script.shown();
            let tool = stem.tool(&shown, Retries::default(), None, &self.place, &mut report);
            loaded.tools.extend(tool);
            loaded.problems.extend(report.finish());
        }
        loaded
    }

    /// The same while its packages are not there.
    fn waiting(&self, why: String, hint: &'static str) -> Loaded {
        let mut loaded = self.as_text_tells();
        pend(&mut loaded, Pending::Preparation, why.clone(), hint);
        let problem = Problem::error(self.home.source, ErrorType::Import, why).warning();
        loaded
            .problems
            .push(problem.file(&self.script.file).hint(hint));
        Loaded {
            waits: true,
            ..loaded
        }
    }

    /// What there is to say as long as the packages are not there that it needs. Begins to install them; never waits.
    fn unready(&self) -> Option<Loaded> {
        let install = self.environment.as_ref()?;
        let installs = &self.place.installs;
        let packages = install.packages();
        match installs.want(install, &self.script.file, &self.home.hash, &self.place) {
            Progress::Ready => {
                self.place.scripts.in_use.hold(&install.folder);
                None
            }
            Progress::Failed(why) => {
                let problem = Problem::error(self.home.source, ErrorType::Import, why.message);
                Some(self.waiting_for_another_try(problem.hint(why.hint)))
            }
            progress => {
                let (why, hint) = not_there_yet(&progress, packages);
                Some(self.waiting(why, hint))
            }
        }
    }

    /// What there is to say as long as it is not asked again, because that failed and took long.
    pub fn put_off(&self) -> Option<Loaded> {
        let Place {
            descriptions,
            forgiven,
            installs,
            ..
        } = &*self.place;
        if installs.is_wanted(&self.script.file) {
            return None;
        }
        let why = put_off::read(descriptions.as_ref(), &self.key, forgiven, self.home.source)?;
        Some(self.waiting_for_another_try(why))
    }

    /// Its tools as far as the text tells, and why they can't be called before somebody has tried again.
    fn waiting_for_another_try(&self, problem: Problem) -> Loaded {
        let mut loaded = self.as_text_tells();
        let hint = "`toolcrib errors` says what to do; `toolcrib reload` tries again";
        pend(
            &mut loaded,
            Pending::Preparation,
            problem.message.clone(),
            hint,
        );
        loaded.problems.push(problem.file(&self.script.file));
        Loaded {
            waits: true,
            ..loaded
        }
    }

    /// The same script with workers of its own, because those there are may say what was true when they started.
    pub fn renewed(self) -> UndescribedScript {
        let key = self.place.scripts.renewed(&self.key);
        let workshop = self.workshop.renamed(key);
        UndescribedScript { workshop, ..self }
    }

    /// Are the packages there that it needs? From then on they are in use.
    fn is_ready(&self) -> bool {
        let Some(environment) = &self.environment else {
            return true;
        };
        // Before they are looked at, so that nobody removes them in between.
        if environment.folder.is_dir() {
            self.place.scripts.in_use.hold(&environment.folder);
        }
        environment.is_ready()
    }

    /// The tools as they were described before, if everything is as it was then.
    pub fn remembered(&self) -> Option<Loaded> {
        let hello = self
            .is_ready()
            .then(|| self.place.descriptions.read(&self.key.0))??;
        Some(self.finish(&hello))
    }

    /// Asks the host, once the packages are there that the script needs.
    async fn ask(&self, afterwards: Afterwards) -> Loaded {
        if let Some(loaded) = self.unready() {
            return loaded;
        }
        self.script
            .language
            .warm_up(&self.program, &self.host, &self.place)
            .await;
        // Held until its tools are made: a tool that was granted nothing goes on with the worker that answered.
        let first = self.workshop.first_pool(&Permit::default(), &self.place);
        let hello = match afterwards {
            Afterwards::Stay => first.hello().await,
            Afterwards::End => {
                let recipe = self.workshop.unproved(&Permit::default(), &self.place);
                self.place.workers.try_out(&recipe).await
            }
        };
        let hello = match hello {
            Ok(hello) => hello,
            Err(fault) => return self.refused(self.problem(fault)),
        };
        let loaded = self.finish(&hello);
        if !loaded.is_broken() {
            let (memory, key) = (self.place.descriptions.clone(), self.key.clone());
            let kept = tokio::task::spawn_blocking(move || memory.keep(&key.0, &hello));
            let _ = kept.await;
        }
        loaded
    }

    fn refused(&self, problem: Problem) -> Loaded {
        let problem = match problem.file {
            Some(_) => problem,
            None => problem.file(&self.script.file),
        };
        Loaded {
            problems: vec![problem],
            ..Loaded::default()
        }
    }

    /// Why the host did not describe the script.
    fn problem(&self, fault: Fault) -> Problem {
        let source = self.home.source;
        let told = fault.message();
        match fault {
            Fault::Refused(error) if error.code == NOT_LOADED => {
                let mut said = error.data.unwrap_or_default();
                said["message"] = error.message.into();
                self.said(&said)
            }
            Fault::Handshake { ms, .. } => {
                let message = format!("it was not loaded within {ms} ms");
                Problem::error(source, ErrorType::Timeout, message)
                    .hint("do slow work inside the tool's function, not where the file is loaded")
            }
            Fault::Unready(how) => {
                let message = format!("while it was loaded its process {}", how.message());
                Problem::error(source, ErrorType::Import, message)
                    .hint("fix what the file does outside of its functions, and save")
            }
            fault => {
                let hint = fault.into_call_error(&self.home.stem).hint;
                Problem::error(
                    source,
                    ErrorType::Io,
                    format!("it could not be loaded: {told}"),
                )
                .hint(hint.unwrap_or_default())
            }
        }
    }

    /// A problem that the host reported.
    fn said(&self, said: &Value) -> Problem {
        let text = |key: &str| said.get(key).and_then(Value::as_str);
        let number = |key: &str| said.get(key).and_then(Value::as_u64).unwrap_or(0);
        let kind = text("errorType").and_then(ErrorType::parse);
        let message = text("message").unwrap_or("it could not be loaded");
        let kind = kind.unwrap_or(ErrorType::Validation);
        let mut problem = Problem::error(self.home.source, kind, message)
            .file(text("file").map_or(self.script.file.as_path(), Path::new))
            .hint(text("hint").map_or_else(|| "fix it and save".to_owned(), said_by_tool));
        let (line, column) = (number("line"), number("column"));
        if line > 0 {
            problem = problem.at(line as usize, column as usize);
            problem.column = problem.column.filter(|column| *column > 0);
        }
        if let Some(name) = text("toolName") {
            problem = problem.tool(name);
        }
        match text("severity") {
            Some("warning") => problem.warning(),
            _ => problem,
        }
    }

    /// Makes tools of what the host said.
    fn finish(&self, hello: &Value) -> Loaded {
        let mut report = Report::new(&self.script.file, self.home.source);
        let definitions = Definition::all(&self.home, &Map::new(), hello, &mut report);
        let shown = self.script.shown();
        let mut tools = Vec::new();
        for one in &definitions {
            report.failed = false;
            let retries = Retries::default();
            // Only the processes of the very tool that names them get its variables and secrets.
            let (vars, secrets) = one.variables(&mut report);
            let workshop = self.workshop.clone().with_variables(vars);
            let workshop = Some(workshop.with_secrets(secrets));
            let tool = one.tool(&shown, retries, workshop.as_ref(), &self.place, &mut report);
            tools.extend(tool.map(|mut tool| {
                Arc::make_mut(&mut tool).interpreter = Some(self.program.clone());
                tool
            }));
        }
        report.tool = None;
        let mut problems = report.finish();
        let said = hello.get("problems").and_then(Value::as_array);
        problems.extend(said.into_iter().flatten().map(|one| self.said(one)));
        let list = hello.get("tools").and_then(Value::as_array);
        let afresh = |one: &Value| one.get("dynamic") == Some(&Value::Bool(true));
        let without_tools = match tools.is_empty() && problems.is_empty() {
            true => self.script.without_tools(),
            false => None,
        };
        Loaded {
            tools,
            problems,
            without_tools,
            afresh: list.into_iter().flatten().any(afresh),
            waits: false,
        }
    }
}

/// Differs wherever the same script would have another process.
fn key(script: &Script, home: &Home, identity: &str, host: &Path, start: &Path) -> Key {
    let digest = Sha256::new()
        .chain_update(&home.hash)
        .chain_update([0])
        .chain_update(identity)
        .chain_update([0])
        .chain_update(host.as_os_str().as_encoded_bytes())
        .chain_update([0])
        .chain_update(start.as_os_str().as_encoded_bytes())
        .chain_update(format!("{:?}", script.around))
        .finalize();
    Key(format!("script-{}", crate::hex(&digest)).into())
}

/// What the host gets of the script.
fn greeting(script: Arc<Script>, environment: Option<&Install>, place: &Place) -> Greeting {
    let directory = place.directory().to_path_buf();
    let environment = environment.map(|environment| environment.folder.clone());
    Greeting(Arc::new(move || {
        let mut told = script
            .language
            .load_request(&script, environment.as_deref());
        told.insert("file".to_owned(), json!(script.file));
        told.insert("stem".to_owned(), json!(script.stem));
        told.insert("directory".to_owned(), json!(directory));
        if script.around != Around::Trusted {
            told.insert("alone".to_owned(), json!(true));
        }
        if let Around::Folder(folder) = &script.around {
            told.insert("own".to_owned(), json!(folder));
        }
        Map::from_iter([("script".to_owned(), Value::Object(told))])
    }))
}
