//! What names, attributes and keys lead to: the places where hidden ways are reported.

use std::rc::Rc;

use super::walk::Walk;
use super::{MODULES, OWN, rules};
use crate::findings::{CALL, MODULE, TRICK};
use crate::fold;
use crate::value::Value;

/// The longest path that is followed.
const PATH: usize = 200;

impl<'a> Walk<'a> {
    pub(super) fn named(&mut self, name: &'a str, offset: usize) -> Value {
        if let Some(value) = self.lookup(name, offset) {
            return value;
        }
        if rules::door(name) {
            self.tell(offset, TRICK, || format!("uses `{name}`"));
            let opens = if name == "__builtins__" {
                "builtins"
            } else {
                name
            };
            return Value::Path(opens.into());
        }
        if name == "__spec__" {
            return Value::Path(name.into());
        }
        if !rules::builtin(name) {
            return Value::Unknown;
        }
        let path = format!("builtins.{name}");
        if rules::call(&path) {
            self.tell(offset, CALL, || format!("uses `{name}`"));
        }
        Value::Path(path.into())
    }

    /// `value.name`, however it is written.
    pub fn attribute(&mut self, value: &Value, name: &str, offset: usize) -> Value {
        if rules::trick(name) {
            self.tell(offset, TRICK, || format!("uses `{name}`"));
        }
        if matches!(name, "__base__" | "__bases__" | "__mro__" | "mro") {
            return Value::Type;
        }
        if name == "__getattribute__" {
            return Value::Method(Rc::new((value.clone(), name.into())));
        }
        match value {
            Value::Path(path) => self.below(path, name, offset),
            Value::Type if name == "__subclasses__" => {
                self.tell(offset, TRICK, || {
                    "lists all classes with `__subclasses__`".to_owned()
                });
                Value::Unknown
            }
            Value::Type if name == "__class__" => Value::Type,
            Value::Namespace(_) => Value::Method(Rc::new((value.clone(), name.into()))),
            literal if literal.is_literal() => match name {
                "__class__" => Value::Type,
                _ => Value::Method(Rc::new((value.clone(), name.into()))),
            },
            _ if name == "__globals__" || name == "f_globals" || name == "f_locals" => {
                self.namespace()
            }
            _ if name == "__builtins__" || name == "f_builtins" => Value::Path("builtins".into()),
            _ => Value::Unknown,
        }
    }

    /// What a module or something below it has under this name.
    fn below(&mut self, path: &str, name: &str, offset: usize) -> Value {
        let kind = path.strip_prefix("builtins.").is_some_and(rules::kind);
        match name {
            "__dict__" => return Value::Namespace(path.into()),
            "__self__" if path.starts_with("builtins.") => {
                self.tell(offset, TRICK, || {
                    "reaches the built-in functions through `__self__`".to_owned()
                });
                return Value::Path("builtins".into());
            }
            "__subclasses__" if kind => return self.attribute(&Value::Type, name, offset),
            "__class__" => return Value::Type,
            "__call__" => return Value::Path(path.into()),
            _ => {}
        }
        if path == "sys" && name == "modules" {
            return Value::Namespace(MODULES.into());
        }
        if let Some(meant) = rules::through(path, name) {
            self.tell(offset, MODULE, || {
                format!("reaches `{meant}` through `{path}`")
            });
            return Value::Path(meant.into());
        }
        if path.len() + name.len() > PATH {
            return Value::Unknown;
        }
        let path = format!("{path}.{name}");
        if rules::call(&path) {
            self.tell(offset, CALL, || format!("uses `{}`", shown(&path)));
        }
        Value::Path(path.into())
    }

    /// An attribute or key that is given as a string.
    pub(super) fn spelled(&mut self, value: &Value, word: &Value, offset: usize) -> Value {
        let Some(name) = word.text() else {
            return Value::Unknown;
        };
        let hidden = word.is_assembled() && rules::spelled(name);
        if hidden {
            self.tell(offset, TRICK, || {
                format!("puts `{name}` together from pieces")
            });
        } else if name == "__subclasses__" {
            self.tell(offset, TRICK, || {
                "lists all classes with `__subclasses__`".to_owned()
            });
        }
        self.attribute(value, name, offset)
    }

    /// `value[key]`, however it is written.
    pub(super) fn item(&mut self, value: &Value, key: &Value, offset: usize) -> Value {
        match (value, key) {
            (Value::Type, _) => Value::Type,
            (Value::Namespace(of), Value::Text { text, .. }) => match of.as_ref() {
                MODULES => self.loaded(text, offset),
                OWN if rules::door(text) || rules::call(&format!("builtins.{text}")) => {
                    self.tell(offset, TRICK, || format!("looks up `{text}`"));
                    self.named_again(text)
                }
                OWN => self.own(text),
                _ => self.spelled(&Value::Path(of.clone()), key, offset),
            },
            (Value::Path(path), Value::Text { .. }) if path.as_ref() == "builtins" => {
                self.spelled(value, key, offset)
            }
            (_, Value::Text { text, .. }) => {
                if rules::trick(text) {
                    self.tell(offset, TRICK, || format!("looks up `{text}`"));
                } else if key.is_assembled() && rules::spelled(text) {
                    self.tell(offset, TRICK, || {
                        format!("puts `{text}` together from pieces")
                    });
                }
                Value::Unknown
            }
            (_, Value::Int(index)) => fold::element(value, *index).unwrap_or(Value::Unknown),
            _ => Value::Unknown,
        }
    }

    fn named_again(&self, name: &str) -> Value {
        Value::Path(match name {
            "__builtins__" => "builtins".into(),
            other => format!("builtins.{other}").into(),
        })
    }

    /// A module from the table of loaded ones.
    fn loaded(&mut self, module: &str, offset: usize) -> Value {
        if rules::module(module).is_some() {
            self.tell(offset, MODULE, || {
                format!("takes `{module}` from the loaded modules")
            });
        }
        Value::Path(module.into())
    }
}

/// A path as people write it.
pub(super) fn shown(path: &str) -> &str {
    path.strip_prefix("builtins.").unwrap_or(path)
}
