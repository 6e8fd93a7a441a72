//! The walk over statements: scopes, bindings, imports. Functions are read after the module, as Python runs them.

use std::collections::{HashMap, HashSet, VecDeque};
use std::rc::Rc;

use ruff_python_ast::{
    Alias, ExceptHandler, Expr, Parameters, Pattern, Stmt, StmtClassDef, StmtFunctionDef, StmtIf,
    StmtImportFrom, StmtMatch, TypeParam, TypeParams,
};

use super::{Import, OWN, rules, start, tool};
use crate::Declared;
use crate::budget::{BUDGET, Meter};
use crate::findings::{CALL, Findings, MODULE, TRICK};
use crate::fold;
use crate::place::Lines;
use crate::value::Value;

/// The names of a module, a class or a function.
struct Scope<'a> {
    parent: Option<usize>,
    is_class: bool,
    names: HashMap<&'a str, Value>,
    /// Names that a function declares to be the module's.
    globals: HashSet<&'a str>,
}

/// A function whose body is yet to be read, and the scope that it has.
struct Later<'a> {
    body: &'a [Stmt],
    scope: usize,
}

pub struct Walk<'a> {
    pub lines: &'a Lines<'a>,
    pub tools: Vec<Declared>,
    pub findings: Findings,
    pub imports: Vec<Import>,
    pub meter: Meter,
    /// How many modules and names were imported.
    imported: usize,
    /// How much was evaluated more than once, for lists that are put together.
    pub repeated: usize,
    scopes: Vec<Scope<'a>>,
    scope: usize,
    later: VecDeque<Later<'a>>,
    /// In how many branches we are that may not run.
    branches: usize,
    /// In how many branches we are that only type checkers read.
    unread: usize,
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

    fn body(&mut self, body: &'a [Stmt]) {
        for statement in body {
            self.statement(statement);
        }
    }

    /// A body that may not run.
    fn branch(&mut self, body: &'a [Stmt]) {
        self.branches += 1;
        self.body(body);
        self.branches -= 1;
    }

    fn statement(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::FunctionDef(function) => self.function(function),
            Stmt::ClassDef(class) => self.class(class),
            Stmt::Return(node) => self.optional(node.value.as_deref()),
            Stmt::Delete(node) => {
                for target in &node.targets {
                    match target {
                        Expr::Name(name) => {
                            self.scopes[self.scope].names.remove(name.id.as_str());
                        }
                        other => self.ignore(other),
                    }
                }
            }
            Stmt::TypeAlias(node) => {
                self.type_parameters(node.type_params.as_deref());
                self.ignore(&node.value);
                self.bind(&node.name, Value::Unknown);
            }
            Stmt::Assign(node) => {
                let value = self.expression(&node.value);
                for target in &node.targets {
                    self.bind(target, value.clone());
                }
            }
            Stmt::AugAssign(node) => {
                let value = self.expression(&node.value);
                if let Expr::Name(name) = node.target.as_ref() {
                    let sum = self
                        .lookup(name.id.as_str(), start(name))
                        .and_then(|old| fold::add(&old, &value));
                    self.bind(&node.target, sum.unwrap_or(Value::Unknown));
                } else {
                    self.ignore(&node.target);
                }
            }
            Stmt::AnnAssign(node) => {
                self.annotation(&node.annotation);
                if let Some(value) = &node.value {
                    let value = self.expression(value);
                    self.bind(&node.target, value);
                }
            }
            Stmt::For(node) => {
                self.ignore(&node.iter);
                self.branches += 1;
                self.bind(&node.target, Value::Unknown);
                self.branches -= 1;
                self.branch(&node.body);
                self.branch(&node.orelse);
            }
            Stmt::While(node) => {
                self.ignore(&node.test);
                self.branch(&node.body);
                self.branch(&node.orelse);
            }
            Stmt::If(node) => self.condition(node),
            Stmt::With(node) => {
                for item in &node.items {
                    self.ignore(&item.context_expr);
                    if let Some(target) = &item.optional_vars {
                        self.bind(target, Value::Unknown);
                    }
                }
                self.body(&node.body);
            }
            Stmt::Match(node) => self.choice(node),
            Stmt::Raise(node) => {
                self.optional(node.exc.as_deref());
                self.optional(node.cause.as_deref());
            }
            Stmt::Try(node) => {
                self.branch(&node.body);
                for ExceptHandler::ExceptHandler(handler) in &node.handlers {
                    self.optional(handler.type_.as_deref());
                    self.branches += 1;
                    if let Some(name) = &handler.name {
                        self.name(name.as_str(), Value::Unknown);
                    }
                    self.body(&handler.body);
                    self.branches -= 1;
                }
                self.branch(&node.orelse);
                self.body(&node.finalbody);
            }
            Stmt::Assert(node) => {
                self.ignore(&node.test);
                self.optional(node.msg.as_deref());
            }
            Stmt::Import(node) => {
                for alias in &node.names {
                    self.import(alias);
                }
            }
            Stmt::ImportFrom(node) => self.import_from(node),
            Stmt::Expr(node) => self.ignore(&node.value),
            Stmt::Global(node) => {
                let names = node.names.iter().map(|name| name.as_str());
                self.scopes[self.scope].globals.extend(names);
            }
            Stmt::Nonlocal(_) | Stmt::Pass(_) | Stmt::Break(_) | Stmt::Continue(_) => {}
            Stmt::IpyEscapeCommand(_) => {}
        }
    }

    fn condition(&mut self, node: &'a StmtIf) {
        let test = self.expression(&node.test);
        let unread = matches!(
            test.path(),
            Some("typing.TYPE_CHECKING" | "typing_extensions.TYPE_CHECKING")
        );
        self.unread += usize::from(unread);
        self.branch(&node.body);
        self.unread -= usize::from(unread);
        for clause in &node.elif_else_clauses {
            self.optional(clause.test.as_ref());
            self.branch(&clause.body);
        }
    }

    fn choice(&mut self, node: &'a StmtMatch) {
        self.ignore(&node.subject);
        for case in &node.cases {
            self.branches += 1;
            self.pattern(&case.pattern);
            self.optional(case.guard.as_deref());
            self.body(&case.body);
            self.branches -= 1;
        }
    }

    fn pattern(&mut self, pattern: &'a Pattern) {
        match pattern {
            Pattern::MatchValue(node) => self.ignore(&node.value),
            Pattern::MatchSingleton(_) => {}
            Pattern::MatchSequence(node) => self.patterns(&node.patterns),
            Pattern::MatchMapping(node) => {
                for key in &node.keys {
                    self.ignore(key);
                }
                self.patterns(&node.patterns);
                if let Some(rest) = &node.rest {
                    self.name(rest.as_str(), Value::Unknown);
                }
            }
            Pattern::MatchClass(node) => {
                self.ignore(&node.cls);
                self.patterns(&node.arguments.patterns);
                for keyword in &node.arguments.keywords {
                    self.pattern(&keyword.pattern);
                }
            }
            Pattern::MatchStar(node) => {
                if let Some(name) = &node.name {
                    self.name(name.as_str(), Value::Unknown);
                }
            }
            Pattern::MatchAs(node) => {
                if let Some(inner) = &node.pattern {
                    self.pattern(inner);
                }
                if let Some(name) = &node.name {
                    self.name(name.as_str(), Value::Unknown);
                }
            }
            Pattern::MatchOr(node) => self.patterns(&node.patterns),
        }
    }

    fn patterns(&mut self, patterns: &'a [Pattern]) {
        for pattern in patterns {
            self.pattern(pattern);
        }
    }

    fn function(&mut self, function: &'a StmtFunctionDef) {
        self.decorators(function);
        self.type_parameters(function.type_params.as_deref());
        let scope = self.parameters(Some(&function.parameters));
        if let Some(returns) = &function.returns {
            self.annotation(returns);
        }
        self.name(function.name.as_str(), Value::Unknown);
        if self.unread == 0 {
            self.later.push_back(Later {
                body: &function.body,
                scope,
            });
        }
    }

    fn class(&mut self, class: &'a StmtClassDef) {
        for decorator in &class.decorator_list {
            self.ignore(&decorator.expression);
        }
        self.type_parameters(class.type_params.as_deref());
        if let Some(arguments) = &class.arguments {
            for argument in &*arguments.args {
                self.ignore(argument);
            }
            for keyword in &arguments.keywords {
                self.ignore(&keyword.value);
            }
        }
        let outside = self.enter(true);
        self.body(&class.body);
        self.scope = outside;
        self.name(class.name.as_str(), Value::Unknown);
    }

    /// Evaluates defaults and annotations, and makes the scope that has the parameters.
    pub fn parameters(&mut self, parameters: Option<&'a Parameters>) -> usize {
        let mut names = HashMap::new();
        for parameter in parameters.into_iter().flat_map(Parameters::iter) {
            if let Some(annotation) = parameter.annotation() {
                self.annotation(annotation);
            }
            let default = parameter.default().map(|default| self.expression(default));
            let value = default.filter(|value| value.path().is_some());
            names.insert(parameter.name().as_str(), value.unwrap_or(Value::Unknown));
        }
        self.scopes.push(Scope {
            parent: Some(self.visible()),
            is_class: false,
            names,
            globals: HashSet::new(),
        });
        self.scopes.len() - 1
    }

    fn type_parameters(&mut self, parameters: Option<&'a TypeParams>) {
        for parameter in parameters.into_iter().flat_map(|list| &list.type_params) {
            match parameter {
                TypeParam::TypeVar(node) => {
                    self.optional(node.bound.as_deref());
                    self.optional(node.default.as_deref());
                }
                TypeParam::TypeVarTuple(node) => self.optional(node.default.as_deref()),
                TypeParam::ParamSpec(node) => self.optional(node.default.as_deref()),
            }
        }
    }

    /// An annotation is an expression; a string in it may be evaluated later.
    fn annotation(&mut self, annotation: &'a Expr) {
        let value = self.expression(annotation);
        if value
            .text()
            .is_some_and(|text| text.contains("__import__") || text.contains("eval("))
        {
            self.tell(start(annotation), TRICK, || {
                "hides a call in an annotation".to_owned()
            });
        }
    }

    /// The nearest scope that functions inside of this one see: never a class.
    fn visible(&self) -> usize {
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

    fn optional(&mut self, expression: Option<&'a Expr>) {
        if let Some(expression) = expression {
            self.ignore(expression);
        }
    }

    pub fn ignore(&mut self, expression: &'a Expr) {
        self.expression(expression);
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

    fn import(&mut self, alias: &'a Alias) {
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

    fn import_from(&mut self, node: &'a StmtImportFrom) {
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

    /// What `from module import name` binds, told of where it deserves a look.
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

    /// The names of the file itself.
    pub fn namespace(&self) -> Value {
        Value::Namespace(OWN.into())
    }
}
