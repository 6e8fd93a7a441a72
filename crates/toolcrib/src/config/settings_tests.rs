//! Which layer wins, and what a project may not say.

use toolcrib_core::Access;
use toolcrib_sources::SecretSource;

use super::*;
use crate::config::project::FoundBy;
use crate::config::trust_entries;

struct World {
    dir: tempfile::TempDir,
    project: Project,
}

fn world(user: &str, own: &str) -> World {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("project");
    let config = dir.path().join("config/toolcrib");
    std::fs::create_dir_all(root.join(".toolcrib")).unwrap();
    std::fs::create_dir_all(&config).unwrap();
    std::fs::write(config.join("config.toml"), user).unwrap();
    std::fs::write(root.join(".toolcrib/config.toml"), own).unwrap();
    World {
        dir,
        project: Project {
            root,
            found_by: FoundBy::Marker,
        },
    }
}

impl World {
    fn load(&self, vars: &[(&str, &str)], trusted: bool) -> Result<Settings, ConfigError> {
        let config = self.dir.path().join("config");
        let mut vars = vars.to_vec();
        vars.push(("XDG_CONFIG_HOME", config.to_str().unwrap()));
        vars.push(("HOME", "/nobody"));
        Settings::load(
            &Env::of(&vars, self.dir.path()),
            &Flags::default(),
            Some(&self.project),
            trusted,
        )
    }
}

#[test]
fn later_layers_win() {
    let world = world("port = 1000\ndefault_timeout = 5000\n", "");
    let settings = world.load(&[], true).unwrap();
    assert_eq!(
        (settings.port, settings.default_timeout.as_millis()),
        (1000, 5000)
    );
    let settings = world
        .load(
            &[("TOOLCRIB_PORT", "2000"), ("TOOLCRIB_DEFAULT_TIMEOUT", "7")],
            true,
        )
        .unwrap();
    assert_eq!(
        (settings.port, settings.default_timeout.as_millis()),
        (2000, 7)
    );
    let env = Env::of(&[("TOOLCRIB_PORT", "2000")], world.dir.path());
    let flags = Flags {
        port: Some(3000),
        host: None,
    };
    assert_eq!(
        Settings::load(&env, &flags, None, false).unwrap().port,
        3000
    );
}

#[test]
fn defaults_are_the_documented_ones() {
    let settings = world("", "").load(&[], true).unwrap();
    assert_eq!(
        (settings.host.to_string().as_str(), settings.port),
        ("127.0.0.1", 7717)
    );
    assert_eq!(settings.default_timeout.as_millis(), 30_000);
    assert_eq!(settings.outputs, OutputLimits::default());
    assert_eq!(settings.folders.len(), 2);
    assert_eq!(
        (settings.folders[0].scope, settings.folders[1].scope),
        (Scope::Local, Scope::Global)
    );
}

#[test]
fn a_project_may_tighten() {
    let world = world(
        "default_timeout = 5000\n",
        "default_timeout = 1000\n[outputs]\nmax_bytes = 10\n",
    );
    let settings = world.load(&[], true).unwrap();
    assert_eq!(
        (
            settings.default_timeout.as_millis(),
            settings.outputs.max_bytes
        ),
        (1000, 10)
    );
}

#[test]
fn a_project_may_not_loosen() {
    let settings = world("default_timeout = 5000\n", "default_timeout = 9000\n")
        .load(&[], true)
        .unwrap();
    assert_eq!(settings.default_timeout.as_millis(), 5000);
    for own in [
        "host = \"127.0.0.2\"",
        "port = 1",
        "tools_dir = \"x\"",
        "[outputs]\nquota_bytes = 1",
        "[secrets.a]\nenv = \"A\"",
        "tool_dirs = [\"/etc\"]",
        "tool_dirs = [\"../x\"]",
        "tool_dirs = [\"~/x\"]",
    ] {
        let error = world("", own).load(&[], true).unwrap_err();
        assert!(
            error.reason.contains("can't be set in a project's file"),
            "{own}: {error}"
        );
        assert!(
            error.place.contains(".toolcrib/config.toml"),
            "{own}: {error}"
        );
    }
}

#[test]
fn an_untrusted_projects_file_is_not_read() {
    let world = world("", "this is not even TOML");
    let settings = world.load(&[], false).unwrap();
    assert!(matches!(
        settings.folders[0].access,
        Access::Untrusted { .. }
    ));
    assert_eq!(settings.folders[1].access, Access::Open);
    assert!(world.load(&[], true).is_err());
}

#[test]
fn folders_stand_in_their_order() {
    let world = world(
        "tool_dirs = [\".opencode/tools\", \"/opt/tools\"]",
        "tool_dirs = [\"extra\"]",
    );
    let settings = world.load(&[], true).unwrap();
    let shown: Vec<(String, Scope)> = settings
        .folders
        .iter()
        .map(|f| (f.path.display().to_string(), f.scope))
        .collect();
    assert!(shown[0].0.ends_with("project/.toolcrib/tools"));
    assert!(shown[1].0.ends_with("config/toolcrib/tools"));
    assert!(shown[2].0.ends_with("project/.opencode/tools") && shown[2].1 == Scope::Local);
    assert_eq!(shown[3], ("/opt/tools".to_owned(), Scope::Global));
    assert!(shown[4].0.ends_with("project/extra"));
}

#[test]
fn one_folder_may_replace_the_default_ones() {
    let world = world("", "");
    let settings = world
        .load(&[("TOOLCRIB_TOOLS_DIR", "/only")], true)
        .unwrap();
    assert_eq!(settings.folders.len(), 1);
    assert_eq!(settings.folders[0].path, Path::new("/only"));
}

#[test]
fn a_relative_one_is_the_projects_and_waits_for_trust() {
    let world = world("tools_dir = \"own\"", "");
    for vars in [&[][..], &[("TOOLCRIB_TOOLS_DIR", "own")]] {
        let folder = world.load(vars, false).unwrap().folders.remove(0);
        assert_eq!(folder.path, world.project.root.join("own"));
        assert_eq!(folder.scope, Scope::Local);
        assert!(matches!(folder.access, Access::Untrusted { .. }));
    }
}

#[test]
fn the_crib_listens_on_addresses_not_names() {
    for (host, fine) in [
        ("127.0.0.1", true),
        ("::1", true),
        ("[::1]", true),
        ("localhost", true),
        ("0.0.0.0", true),
        ("192.168.1.5", true),
        ("", false),
    ] {
        assert_eq!(address(host).is_ok(), fine, "{host}");
    }
    assert!(
        address("example.org")
            .unwrap_err()
            .hint
            .contains("127.0.0.1")
    );
}

#[test]
fn a_bad_variable_is_named() {
    let error = world("", "")
        .load(&[("TOOLCRIB_PORT", "x")], true)
        .unwrap_err();
    assert!(error.to_string().contains("TOOLCRIB_PORT"), "{error}");
    assert!(
        world("", "")
            .load(&[("TOOLCRIB_PORT", "99999")], true)
            .is_err()
    );
}

#[test]
fn entries_are_trusted_singly_where_the_project_is_not() {
    let world = world("tool_dirs = [\"more\"]\n", "");
    let root = &world.project.root;
    let entries = [
        root.join(".toolcrib/tools/greet"),
        root.join(".toolcrib/tools/deep/er"),
        root.join("more/a.json"),
        root.join(".toolcrib/tools"),
    ];
    let mut folders = world.load(&[], false).unwrap().folders;
    assert!(folders.iter().all(|folder| folder.trusted.is_empty()));
    trust_entries(&mut folders, &entries);
    let trusted = |folders: &[Folder], end: &str| {
        let found = folders.iter().find(|folder| folder.path.ends_with(end));
        found.unwrap().trusted.clone()
    };
    assert_eq!(trusted(&folders, ".toolcrib/tools"), ["greet"]);
    assert_eq!(trusted(&folders, "more"), ["a.json"]);
    let before = folders.clone();
    trust_entries(&mut folders, &entries[2..]);
    assert!(trusted(&folders, ".toolcrib/tools").is_empty());
    assert_ne!(before, folders, "a change is noticed");
    // In a trusted project nothing needs to be trusted singly.
    let mut folders = world.load(&[], true).unwrap().folders;
    trust_entries(&mut folders, &entries);
    assert!(folders.iter().all(|folder| folder.trusted.is_empty()));
}

#[test]
fn programs_are_on_until_somebody_turns_them_off() {
    let off = |user: &str, own: &str, vars: &[(&str, &str)], trusted: bool| {
        let settings = world(user, own).load(vars, trusted).unwrap();
        let programs = settings.folders.iter().all(|folder| folder.programs);
        assert_eq!(programs, settings.custom_tools_enabled);
        !settings.custom_tools_enabled
    };
    let no = "custom_tools_enabled = false\n";
    let name = "TOOLCRIB_CUSTOM_TOOLS_ENABLED";
    assert!(!off("", "", &[], true));
    assert!(off(no, "", &[], true));
    assert!(off("", no, &[], true));
    assert!(
        !off("", no, &[], false),
        "an untrusted project says nothing"
    );
    assert!(off("", "", &[(name, "false")], true));
    assert!(
        !off(no, "", &[(name, "true")], true),
        "variables come later"
    );
    assert!(
        off("", no, &[(name, "true")], true),
        "a project may tighten"
    );
    let error = world("", "custom_tools_enabled = true\n").load(&[], true);
    assert!(error.unwrap_err().reason.contains("can't be set"));
    let error = world("", "").load(&[(name, "maybe")], true).unwrap_err();
    assert!(error.reason.contains("true or false"), "{error}");
}

#[test]
fn secrets_lie_in_one_place_each() {
    let home = |text: &str| world(text, "").load(&[], true);
    let text = "[secrets.a]\nenv = \"A_KEY\"\n[secrets.\"b.c\"]\nfile = \"/run/b\"\n[secrets.d]\nkeyring = true\n";
    let secrets = home(text).unwrap().secrets;
    assert_eq!(secrets["a"], SecretSource::Variable("A_KEY".into()));
    assert_eq!(secrets["b.c"], SecretSource::File("/run/b".into()));
    assert!(matches!(secrets["d"], SecretSource::Keyring(_)));
    for wrong in [
        "[secrets.a]\n",
        "[secrets.a]\nenv = \"A\"\nkeyring = true",
        "[secrets.a]\nkeyring = false",
        "[secrets.a]\nenv = \"secret://b\"",
        "[secrets.a]\nenv = \"A B\"",
        "[secrets.a]\nfile = \"here\"",
        "[secrets.\"a/b\"]\nenv = \"A\"",
        "[secrets.a]\nfiles = \"/x\"",
    ] {
        let error = home(wrong).unwrap_err();
        assert!(!error.hint.is_empty(), "{wrong}: {error}");
    }
}

/// Each key that the guide says needs a restart is named when it changes, and no other.
#[test]
fn settings_that_need_a_restart_are_named() {
    let load = |text: &str| world(text, "").load(&[], true).unwrap();
    let before = load("");
    for (text, key) in [
        ("host = \"::1\"", "host"),
        ("port = 1", "port"),
        ("store = \"sqlite:/elsewhere/toolcrib.db\"", "store"),
        ("max_pool_size = 1", "max_pool_size"),
        ("health_check_interval = 500", "health_check_interval"),
        ("python = \"python3.12\"", "python"),
        ("javascript = \"node\"", "javascript"),
        ("scan = \"strict\"", "scan"),
        ("sandbox_enabled = false", "sandbox_enabled, tools"),
        ("[tools.a]\nsandbox = \"off\"", "sandbox_enabled, tools"),
        ("[outputs]\nmax_bytes = 1", "outputs"),
        ("[outputs]\nquota_bytes = 1", "outputs"),
        ("[audit]\ndays = 1", "audit.days, audit.max_rows"),
        ("[audit]\nmax_rows = 1", "audit.days, audit.max_rows"),
    ] {
        let mut now = load(text);
        // Each world has folders of its own.
        if key != "store" {
            now.store = before.store.clone();
        }
        assert_eq!(before.changed_at_restart(&now), [key], "{text}");
    }
    for text in [
        "default_timeout = 1",
        "custom_tools_enabled = false",
        "tool_dirs = [\"more\"]",
        "tools_dir = \"only\"",
        "[secrets.a]\nenv = \"A_KEY\"",
        "[audit]\nmode = \"required\"",
    ] {
        let mut now = load(text);
        now.store = before.store.clone();
        assert!(before.changed_at_restart(&now).is_empty(), "{text}");
        assert_ne!(before, now, "{text}");
    }
}
