//! The walk over a module: its scopes, and what names are bound to in them.

use std::collections::{HashMap, HashSet, VecDeque};

use ruff_python_ast::{Expr, Stmt};

use super::{Import, OWN, rules, start};
use crate::Declared;
use crate::budget::Meter;
use crate::findings::{Findings, TRICK};
use crate::place::Lines;
use crate::value::Value;

/// The names of a module, a class or a function.
pub(super) struct Scope<'a> {
    pub(super) parent: Option<usize>,
    pub(super) is_class: bool,
    pub(super) names: HashMap<&'a str, Value>,
    /// Names that a function declares to be the module's.
    pub(super) globals: HashSet<&'a str>,
}

/// A function whose body is yet to be read, and the scope that it has.
pub(super) struct Later<'a> {
    pub(super) body: &'a [Stmt],
    pub(super) scope: usize,
}

pub struct Walk<'a> {
    pub lines: &'a Lines<'a>,
    pub tools: Vec<Declared>,
    pub findings: Findings,
    pub imports: Vec<Import>,
    pub meter: Meter,
    /// How many modules and names were imported.
    pub(super) imported: usize,
    /// How much was evaluated more than once, for lists that are put together.
    pub repeated: usize,
    pub(super) scopes: Vec<Scope<'a>>,
    pub(super) scope: usize,
    pub(super) later: VecDeque<Later<'a>>,
    /// In how many branches we are that may not run.
    pub(super) branches: usize,
    /// In how many branches we are that only type checkers read.
    pub(super) unread: usize,
}

impl<'a> Walk<'a> {
    pub fn new(lines: &'a Lines<'a>) -> Walk<'a> {
        let module = Scope {
            parent: None,
            is_class: false,
            names: HashMap::new(),
            globals: HashSet::new(),
        };
        Walk {
            lines,
            tools: Vec::new(),
            findings: Findings::default(),
            imports: Vec::new(),
            meter: Meter::new(),
            imported: 0,
            repeated: 0,
            scopes: vec![module],
            scope: 0,
            later: VecDeque::new(),
            branches: 0,
            unread: 0,
        }
    }

    pub fn module(&mut self, body: &'a [Stmt]) {
        self.body(body);
        while let Some(Later { body, scope }) = self.later.pop_front() {
            self.scope = scope;
            self.branches = 0;
            self.body(body);
        }
    }

    /// Are we at the module's own level?
    pub fn at_top(&self) -> bool {
        self.scope == 0
    }

    pub fn tell(&mut self, offset: usize, rule: &'static str, message: impl FnOnce() -> String) {
        if self.unread == 0 {
            self.findings.tell(offset, rule, message);
        }
    }

    /// The nearest scope that functions inside of this one see: never a class.
    pub(super) fn visible(&self) -> usize {
        let mut scope = self.scope;
        while let (true, Some(parent)) = (self.scopes[scope].is_class, self.scopes[scope].parent) {
            scope = parent;
        }
        scope
    }

    /// Goes into a new scope; gives the one to come back to.
    pub fn enter(&mut self, is_class: bool) -> usize {
        let parent = Some(self.visible());
        self.scopes.push(Scope {
            parent,
            is_class,
            names: HashMap::new(),
            globals: HashSet::new(),
        });
        self.come_back(self.scopes.len() - 1)
    }

    /// Goes to a scope; gives the one that we were in.
    pub fn come_back(&mut self, scope: usize) -> usize {
        std::mem::replace(&mut self.scope, scope)
    }

    /// What a name is bound to, in the nearest scope that has it.
    pub fn lookup(&mut self, name: &str, offset: usize) -> Option<Value> {
        let mut scope = Some(self.scope);
        while let Some(at) = scope {
            if !self.meter.step(offset) {
                return None;
            }
            let here = &self.scopes[at];
            if let Some(value) = here.names.get(name) {
                return Some(value.clone());
            }
            scope = here.parent;
        }
        None
    }

    /// What the module itself binds a name to.
    pub fn own(&self, name: &str) -> Value {
        self.scopes[0]
            .names
            .get(name)
            .cloned()
            .unwrap_or(Value::Unknown)
    }

    pub fn name(&mut self, name: &'a str, value: Value) {
        let here = &self.scopes[self.scope];
        let elsewhere = here.globals.contains(name);
        let function = self.scope > 0 && !here.is_class && !elsewhere;
        // A definition that may not run does not hide the real one. In a function it does: the name is its own.
        let weak = (self.branches > 0 || elsewhere) && !function;
        if !(weak && value.path().is_none() && rules::guarded(name)) {
            let scope = if elsewhere { 0 } else { self.scope };
            self.scopes[scope].names.insert(name, value);
        }
    }

    /// Binds what stands on the left of an assignment.
    pub fn bind(&mut self, target: &'a Expr, value: Value) {
        match target {
            Expr::Name(name) => self.name(name.id.as_str(), value),
            Expr::Tuple(node) => self.unpack(&node.elts, &value),
            Expr::List(node) => self.unpack(&node.elts, &value),
            Expr::Starred(node) => self.bind(&node.value, Value::Unknown),
            Expr::Attribute(node) => {
                self.ignore(&node.value);
                let name = node.attr.as_str();
                if matches!(name, "__code__" | "TYPE_CHECKING") {
                    self.tell(start(&node.attr), TRICK, || format!("changes `{name}`"));
                }
            }
            other => self.ignore(other),
        }
    }

    fn unpack(&mut self, targets: &'a [Expr], value: &Value) {
        let starred = targets.iter().any(Expr::is_starred_expr);
        for (at, target) in targets.iter().enumerate() {
            let part = match value {
                Value::List(list) if !starred => list.get(at).cloned(),
                _ => None,
            };
            self.bind(target, part.unwrap_or(Value::Unknown));
        }
    }

    /// The names of the file itself.
    pub fn namespace(&self) -> Value {
        Value::Namespace(OWN.into())
    }
}
