//! The walk over imports: what they bind, and which deserve a look.

use std::rc::Rc;

use ruff_python_ast::{Alias, StmtImportFrom};

use super::walk::Walk;
use super::{Import, rules, start, tool};
use crate::budget::BUDGET;
use crate::findings::{CALL, MODULE};
use crate::value::Value;

impl<'a> Walk<'a> {
    /// Counts what is imported: every part of a module's name, and every name taken from it.
    fn count(&mut self, offset: usize, module: &str, names: usize) {
        self.imported += module.split('.').count() + names;
        if module.len() > BUDGET.module {
            let most = BUDGET.module;
            let message =
                format!("the module's name has more than {most} bytes, and no more is read");
            self.meter.refuse(offset, message);
        } else if self.imported > BUDGET.imports {
            let most = BUDGET.imports;
            let message = format!(
                "up to here it imports more than {most} modules and names, and no more is read; split the file"
            );
            self.meter.refuse(offset, message);
        }
    }

    pub(super) fn import(&mut self, alias: &'a Alias) {
        let module = alias.name.as_str();
        self.count(start(alias), module, 0);
        if !self.meter.step(start(alias)) {
            return;
        }
        self.imports.push(Import {
            level: 0,
            module: module.to_owned(),
            names: Vec::new(),
            at: self.lines.at(start(alias)),
        });
        if rules::module(module).is_some() {
            self.tell(start(alias), MODULE, || format!("imports `{module}`"));
        }
        match &alias.asname {
            Some(name) => self.name(name.as_str(), Value::Path(module.into())),
            None => {
                let root = module.split('.').next().unwrap_or(module);
                self.name(root, Value::Path(root.into()));
            }
        }
    }

    pub(super) fn import_from(&mut self, node: &'a StmtImportFrom) {
        let module = node.module.as_ref().map_or("", |module| module.as_str());
        self.count(start(node), module, node.names.len());
        if !self.meter.step(start(node)) {
            return;
        }
        self.imports.push(Import {
            level: node.level,
            module: module.to_owned(),
            names: node
                .names
                .iter()
                .map(|alias| alias.name.to_string())
                .collect(),
            at: self.lines.at(start(node)),
        });
        let banned = node.level == 0 && rules::module(module).is_some();
        if banned {
            let names: Vec<&str> = node
                .names
                .iter()
                .take(4)
                .map(|alias| alias.name.as_str())
                .collect();
            let message = || format!("imports `{}` from `{module}`", names.join("`, `"));
            self.tell(start(node), MODULE, message);
        }
        for alias in &node.names {
            let name = alias.name.as_str();
            let bound = alias.asname.as_ref().map_or(name, |name| name.as_str());
            if node.level > 0 {
                self.name(bound, Value::Unknown);
            } else if name == "*" {
                if let Some((name, value)) = tool::star(module) {
                    self.name(name, value);
                }
            } else {
                let value = self.imported(module, alias, banned);
                self.name(bound, value);
            }
        }
    }

    /// What `from module import name` binds, reported where it deserves a look.
    fn imported(&mut self, module: &str, alias: &'a Alias, told: bool) -> Value {
        let name = alias.name.as_str();
        let path: Rc<str> = format!("{module}.{name}").into();
        self.meter.spend(start(alias), path.len() / 16);
        if let Some(meant) = rules::through(module, name).filter(|_| !told) {
            let message = || format!("reaches `{meant}` through `{module}`");
            self.tell(start(alias), MODULE, message);
            return Value::Path(meant.into());
        }
        if !told && rules::call(&path) {
            self.tell(start(alias), CALL, || {
                format!("imports `{name}` from `{module}`")
            });
        }
        Value::Path(path)
    }
}
