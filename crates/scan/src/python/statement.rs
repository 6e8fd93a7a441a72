//! The walk over statements. Functions are read after the module, as Python runs them.

use std::collections::{HashMap, HashSet};

use ruff_python_ast::{
    ExceptHandler, Expr, Parameters, Pattern, Stmt, StmtAugAssign, StmtClassDef, StmtDelete,
    StmtFor, StmtFunctionDef, StmtIf, StmtMatch, StmtTry, StmtWith, TypeParam, TypeParams,
};

use super::start;
use super::walk::{Later, Scope, Walk};
use crate::findings::TRICK;
use crate::fold;
use crate::value::Value;

impl<'a> Walk<'a> {
    pub(super) fn body(&mut self, body: &'a [Stmt]) {
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
            Stmt::Delete(node) => self.delete(node),
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
            Stmt::AugAssign(node) => self.add(node),
            Stmt::AnnAssign(node) => {
                self.annotation(&node.annotation);
                if let Some(value) = &node.value {
                    let value = self.expression(value);
                    self.bind(&node.target, value);
                }
            }
            Stmt::For(node) => self.repeat(node),
            Stmt::While(node) => {
                self.ignore(&node.test);
                self.branch(&node.body);
                self.branch(&node.orelse);
            }
            Stmt::If(node) => self.condition(node),
            Stmt::With(node) => self.with(node),
            Stmt::Match(node) => self.choice(node),
            Stmt::Raise(node) => {
                self.optional(node.exc.as_deref());
                self.optional(node.cause.as_deref());
            }
            Stmt::Try(node) => self.attempt(node),
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

    fn delete(&mut self, node: &'a StmtDelete) {
        for target in &node.targets {
            match target {
                Expr::Name(name) => {
                    self.scopes[self.scope].names.remove(name.id.as_str());
                }
                other => self.ignore(other),
            }
        }
    }

    /// `a += b`
    fn add(&mut self, node: &'a StmtAugAssign) {
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

    fn repeat(&mut self, node: &'a StmtFor) {
        self.ignore(&node.iter);
        self.branches += 1;
        self.bind(&node.target, Value::Unknown);
        self.branches -= 1;
        self.branch(&node.body);
        self.branch(&node.orelse);
    }

    fn with(&mut self, node: &'a StmtWith) {
        for item in &node.items {
            self.ignore(&item.context_expr);
            if let Some(target) = &item.optional_vars {
                self.bind(target, Value::Unknown);
            }
        }
        self.body(&node.body);
    }

    fn attempt(&mut self, node: &'a StmtTry) {
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

    pub fn ignore(&mut self, expression: &'a Expr) {
        self.expression(expression);
    }

    fn optional(&mut self, expression: Option<&'a Expr>) {
        if let Some(expression) = expression {
            self.ignore(expression);
        }
    }
}
