//! The walk over a program: declarations, imports and exports. What names stand for is kept by symbol.

use oxc::ast::ast::*;
use oxc::ast_visit::{Visit, walk as over};
use oxc::semantic::{ScopeFlags, Scoping, SymbolId};
use oxc::span::GetSpan;

use super::{Import, ImportKind, rules};
use crate::Declared;
use crate::budget::{BUDGET, Meter};
use crate::findings::{CALL, DYNAMIC, Findings};
use crate::place::Lines;
use crate::value::Value;

pub struct Walk<'s> {
    pub lines: &'s Lines<'s>,
    /// In the first round names are learnt; in the second what was found is told.
    pub telling: bool,
    pub tools: Vec<Declared>,
    pub findings: Findings,
    pub imports: Vec<Import>,
    pub meter: Meter,
    pub bun: Option<usize>,
    pub decorators: Option<usize>,
    scoping: &'s Scoping,
    /// What each symbol stands for.
    values: Vec<Value>,
}

impl<'s> Walk<'s> {
    pub fn new(scoping: &'s Scoping, lines: &'s Lines<'s>) -> Walk<'s> {
        Walk {
            lines,
            telling: false,
            tools: Vec::new(),
            findings: Findings::default(),
            imports: Vec::new(),
            meter: Meter::new(),
            bun: None,
            decorators: None,
            scoping,
            values: vec![Value::Unknown; scoping.symbols_len()],
        }
    }

    pub fn tell(&mut self, offset: usize, rule: &'static str, message: impl FnOnce() -> String) {
        if self.telling {
            self.findings.tell(offset, rule, message);
        }
    }

    /// The symbol that a name refers to; a global has none.
    pub fn symbol(&self, name: &IdentifierReference<'_>) -> Option<SymbolId> {
        let reference = name.reference_id.get()?;
        self.scoping.get_reference(reference).symbol_id()
    }

    pub fn known(&self, symbol: SymbolId) -> Value {
        self.values
            .get(symbol.index())
            .cloned()
            .unwrap_or(Value::Unknown)
    }

    pub fn learn(&mut self, symbol: Option<SymbolId>, value: Value) {
        if let Some(place) = symbol.and_then(|symbol| self.values.get_mut(symbol.index()))
            && !matches!(value, Value::Unknown)
        {
            *place = value;
        }
    }

    /// Binds what stands on the left of a declaration.
    fn bind(&mut self, pattern: &BindingPattern<'_>, value: Value) {
        match pattern {
            BindingPattern::BindingIdentifier(name) => self.learn(name.symbol_id.get(), value),
            BindingPattern::ObjectPattern(object) => {
                for property in &object.properties {
                    let part = match (property.key.static_name(), property.computed) {
                        (Some(name), false) => self.peek(&value, &name),
                        _ => match property.key.as_expression() {
                            Some(key) => match self.expression(key).text() {
                                Some(name) => self.peek(&value, name),
                                None => Value::Unknown,
                            },
                            None => Value::Unknown,
                        },
                    };
                    self.bind(&property.value, part);
                }
                if let Some(rest) = &object.rest {
                    self.bind(&rest.argument, Value::Unknown);
                }
            }
            BindingPattern::ArrayPattern(array) => {
                let elements = match value {
                    Value::List(list) => list.to_vec(),
                    _ => Vec::new(),
                };
                for (at, element) in array.elements.iter().enumerate() {
                    if let Some(element) = element {
                        let part = elements.get(at).cloned();
                        self.bind(element, part.unwrap_or(Value::Unknown));
                    }
                }
                if let Some(rest) = &array.rest {
                    self.bind(&rest.argument, Value::Unknown);
                }
            }
            BindingPattern::AssignmentPattern(default) => {
                let otherwise = self.expression(&default.right);
                let value = match value {
                    Value::Unknown => otherwise,
                    value => value,
                };
                self.bind(&default.left, value);
            }
        }
    }

    /// What `value.name` is, without telling.
    pub fn peek(&mut self, value: &Value, name: &str) -> Value {
        let telling = std::mem::replace(&mut self.telling, false);
        let part = self.attribute(value, name, 0);
        self.telling = telling;
        part
    }

    /// Notes that a module is loaded under a name that is known; gives what it is.
    pub fn load(&mut self, specifier: &str, kind: ImportKind, offset: usize) -> Value {
        self.meter.spend(offset, 1 + specifier.len() / 16);
        if self.telling {
            if self.imports.len() >= BUDGET.imports {
                let most = BUDGET.imports;
                let message = format!(
                    "from here on it imports more than {most} modules, and no more is read; split the file"
                );
                self.meter.refuse(offset, message);
                return Value::Unknown;
            }
            self.imports.push(Import {
                specifier: specifier.to_owned(),
                kind,
                at: self.lines.at(offset),
            });
        }
        if let Some((rule, message)) = rules::module(specifier) {
            self.tell(offset, rule, || message);
        }
        if specifier == "bun" || specifier.starts_with("bun:") {
            self.bun.get_or_insert(offset);
        }
        Value::Path(rules::canonical(specifier).into())
    }

    /// A module under a name that may be made at run time.
    pub fn load_value(&mut self, name: Option<&Value>, kind: ImportKind, offset: usize) -> Value {
        match name.and_then(Value::text) {
            Some(specifier) => self.load(specifier, kind, offset),
            None => {
                self.tell(offset, DYNAMIC, || {
                    "loads a module whose name is made at run time".to_owned()
                });
                Value::Unknown
            }
        }
    }
}

impl<'a> Visit<'a> for Walk<'_> {
    fn visit_expression(&mut self, node: &Expression<'a>) {
        self.expression(node);
    }

    fn visit_member_expression(&mut self, node: &MemberExpression<'a>) {
        self.member(node);
    }

    fn visit_call_expression(&mut self, node: &CallExpression<'a>) {
        self.call(node);
    }

    fn visit_assignment_expression(&mut self, node: &AssignmentExpression<'a>) {
        self.assign(node);
    }

    fn visit_variable_declarator(&mut self, node: &VariableDeclarator<'a>) {
        let value = node.init.as_ref().map(|init| self.expression(init));
        self.bind(&node.id, value.unwrap_or(Value::Unknown));
    }

    fn visit_formal_parameter(&mut self, node: &FormalParameter<'a>) {
        self.visit_decorators(&node.decorators);
        let default = node
            .initializer
            .as_ref()
            .map(|default| self.expression(default));
        let value = default.filter(|value| value.path().is_some());
        self.bind(&node.pattern, value.unwrap_or(Value::Unknown));
    }

    fn visit_catch_parameter(&mut self, node: &CatchParameter<'a>) {
        self.bind(&node.pattern, Value::Unknown);
    }

    fn visit_function(&mut self, node: &Function<'a>, flags: ScopeFlags) {
        if let Some(name) = &node.id {
            self.learn(name.symbol_id.get(), Value::Function);
        }
        over::walk_function(self, node, flags);
    }

    fn visit_class_heritage(&mut self, node: &ClassHeritage<'a>) {
        let parent = self.expression(&node.expression);
        if parent.path() == Some("global.Function") {
            let message = || "makes a class of functions from text".to_owned();
            self.tell(start(&node.expression), CALL, message);
        }
    }

    fn visit_decorator(&mut self, node: &Decorator<'a>) {
        self.decorators.get_or_insert(start(node));
        over::walk_decorator(self, node);
    }

    fn visit_import_declaration(&mut self, node: &ImportDeclaration<'a>) {
        if node.import_kind.is_type() {
            return;
        }
        let module = self.load(
            node.source.value.as_str(),
            ImportKind::Static,
            start(&node.source),
        );
        for specifier in node.specifiers.iter().flatten() {
            let value = match specifier {
                ImportDeclarationSpecifier::ImportSpecifier(named)
                    if named.import_kind.is_type() =>
                {
                    continue;
                }
                ImportDeclarationSpecifier::ImportSpecifier(named) => {
                    self.peek(&module, named.imported.name().as_str())
                }
                _ => module.clone(),
            };
            self.learn(specifier.local().symbol_id.get(), value);
        }
    }

    fn visit_export_all_declaration(&mut self, node: &ExportAllDeclaration<'a>) {
        if !node.export_kind.is_type() {
            self.load(
                node.source.value.as_str(),
                ImportKind::Static,
                start(&node.source),
            );
        }
    }

    fn visit_export_from_declaration(&mut self, node: &ExportFromDeclaration<'a>) {
        if !node.export_kind.is_type() {
            self.load(
                node.source.value.as_str(),
                ImportKind::Static,
                start(&node.source),
            );
        }
    }

    fn visit_export_declaration(&mut self, node: &ExportDeclaration<'a>) {
        over::walk_export_declaration(self, node);
        self.export_declaration(node);
    }

    fn visit_export_named_declaration(&mut self, node: &ExportNamedDeclaration<'a>) {
        self.export_named(node);
    }

    fn visit_export_default_declaration(&mut self, node: &ExportDefaultDeclaration<'a>) {
        self.export_default(node);
    }

    fn visit_ts_export_assignment(&mut self, node: &TSExportAssignment<'a>) {
        let value = self.expression(&node.expression);
        self.export_common("commonjs.exports", &value, start(&node.expression));
    }

    fn visit_ts_import_equals_declaration(&mut self, node: &TSImportEqualsDeclaration<'a>) {
        if let TSModuleReference::ExternalModuleReference(module) = &node.module_reference
            && !node.import_kind.is_type()
        {
            let offset = start(&module.expression);
            let value = self.load(
                module.expression.value.as_str(),
                ImportKind::Require,
                offset,
            );
            self.learn(node.id.symbol_id.get(), value);
        }
    }

    // Types say nothing about what runs.
    fn visit_ts_type(&mut self, _: &TSType<'a>) {}
    fn visit_ts_type_annotation(&mut self, _: &TSTypeAnnotation<'a>) {}
    fn visit_ts_type_parameter_instantiation(&mut self, _: &TSTypeParameterInstantiation<'a>) {}
    fn visit_ts_type_parameter_declaration(&mut self, _: &TSTypeParameterDeclaration<'a>) {}
    fn visit_ts_type_alias_declaration(&mut self, _: &TSTypeAliasDeclaration<'a>) {}
    fn visit_ts_interface_declaration(&mut self, _: &TSInterfaceDeclaration<'a>) {}
    fn visit_ts_class_implements_list(
        &mut self,
        _: &oxc::allocator::Vec<'a, TSClassImplements<'a>>,
    ) {
    }
}

/// Where a node begins.
pub fn start(node: &impl GetSpan) -> usize {
    node.span().start as usize
}

/// Does the program wait at its own level, outside of functions?
pub fn awaits(program: &Program<'_>) -> bool {
    let mut look = Look::default();
    look.visit_program(program);
    look.awaits
}

/// Where the program first uses a decorator.
pub fn decorated(program: &Program<'_>) -> Option<usize> {
    let mut look = Look::default();
    look.visit_program(program);
    look.decorated
}

/// A look at a program before names are known.
#[derive(Default)]
struct Look {
    functions: usize,
    awaits: bool,
    decorated: Option<usize>,
}

impl<'a> Visit<'a> for Look {
    fn visit_await_expression(&mut self, node: &AwaitExpression<'a>) {
        self.awaits |= self.functions == 0;
        over::walk_await_expression(self, node);
    }

    fn visit_for_of_statement(&mut self, node: &ForOfStatement<'a>) {
        self.awaits |= node.r#await && self.functions == 0;
        over::walk_for_of_statement(self, node);
    }

    fn visit_function(&mut self, node: &Function<'a>, flags: ScopeFlags) {
        self.functions += 1;
        over::walk_function(self, node, flags);
        self.functions -= 1;
    }

    fn visit_arrow_function_expression(&mut self, node: &ArrowFunctionExpression<'a>) {
        self.functions += 1;
        over::walk_arrow_function_expression(self, node);
        self.functions -= 1;
    }

    fn visit_decorator(&mut self, node: &Decorator<'a>) {
        self.decorated.get_or_insert(start(node));
        over::walk_decorator(self, node);
    }

    fn visit_ts_type(&mut self, _: &TSType<'a>) {}
}
