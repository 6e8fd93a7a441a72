//! `[secrets.NAME]`: where each secret lies. Only the user's own file says so.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;
use toolcrib_core::permit::{is_secret, secret_name};
use toolcrib_sandbox::Consent;
use toolcrib_sources::{SecretSource, SecretSources, permits};

use super::ConfigError;

/// Where one secret lies: one of these.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SecretSection {
    /// The variable of Toolcrib's own environment that holds it.
    pub env: Option<String>,
    /// The file that holds it: your own, with mode 0600 or stricter. A newline at its end is dropped.
    pub file: Option<String>,
    /// true: the keyring of your session holds it. It is read with `secret-tool lookup toolcrib NAME`.
    pub keyring: Option<bool>,
}

/// The secrets as they hold; `place` is the path of a written one.
pub fn sources(
    written: &BTreeMap<String, SecretSection>,
    place: impl Fn(&str) -> PathBuf,
) -> Result<SecretSources, ConfigError> {
    let each = written.iter().map(|(name, section)| {
        let source = source(name, section, &place)?;
        Ok((name.clone(), source))
    });
    each.collect()
}

fn source(
    name: &str,
    section: &SecretSection,
    place: impl Fn(&str) -> PathBuf,
) -> Result<SecretSource, ConfigError> {
    let shown: String = name.chars().take(64).collect();
    let refuse = |reason: &str, hint: &str| {
        Err(ConfigError::new(
            format!("setting `secrets.{shown}`"),
            reason,
            hint,
        ))
    };
    if !is_secret(name) {
        return refuse(
            "can't be a secret's name",
            "take up to 64 letters, digits, `_`, `-` and `.`",
        );
    }
    let SecretSection { env, file, keyring } = section;
    match (env, file, keyring) {
        (Some(variable), None, None) => {
            // A secret is no place for another.
            match permits::is_variable(variable) && secret_name(variable).is_none() {
                true => Ok(SecretSource::Variable(variable.clone())),
                false => refuse(
                    "`env` can't be a variable's name",
                    "write the name alone, such as env = \"API_TOKEN\"",
                ),
            }
        }
        (None, Some(file), None) => {
            let path = place(file);
            match path.is_absolute() {
                true => Ok(SecretSource::File(path)),
                false => refuse(
                    "`file` is a relative path",
                    "write it in full, or from `~/` on",
                ),
            }
        }
        (None, None, Some(true)) => {
            #[expect(
                clippy::disallowed_methods,
                reason = "secrets are read from the user's own file only"
            )]
            let consent = Consent::from_user_settings();
            Ok(SecretSource::Keyring(consent))
        }
        _ => refuse(
            "does not say where the secret is stored",
            "write one of `env = \"VARIABLE\"`, `file = \"/path\"` and `keyring = true`",
        ),
    }
}
