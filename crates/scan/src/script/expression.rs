//! The walk over expressions: every one is read once a round, and what it is goes up to the one around it.

use std::rc::Rc;

use oxc::ast::ast::*;
use oxc::ast_visit::{Visit, walk as over};
use oxc::syntax::operator::{AssignmentOperator, BinaryOperator, UnaryOperator};

use super::walk::{Walk, start};
use super::{ImportKind, rules};
use crate::findings::{CALL, TRICK};
use crate::fold;
use crate::value::{LONGEST, Value};

/// How many elements a list has that is followed.
pub(super) const LIST: usize = 256;
/// The longest path that is followed.
const PATH: usize = 200;

impl Walk<'_> {
    /// What an expression is. Where the budget is used up, nothing is known any more.
    pub fn expression(&mut self, expression: &Expression<'_>) -> Value {
        let offset = start(expression);
        if !self.meter.step(offset) {
            return Value::Unknown;
        }
        let value = self.evaluated(expression);
        self.meter.spend(offset, value.weight());
        value
    }

    fn evaluated(&mut self, expression: &Expression<'_>) -> Value {
        match expression {
            Expression::StringLiteral(node) => text(node.value.as_str(), false),
            Expression::NumericLiteral(node) => whole(node.value),
            Expression::TemplateLiteral(node) => self.template(node),
            Expression::Identifier(node) => self.identifier(node),
            Expression::ParenthesizedExpression(node) => self.expression(&node.expression),
            Expression::TSAsExpression(node) => self.expression(&node.expression),
            Expression::TSSatisfiesExpression(node) => self.expression(&node.expression),
            Expression::TSTypeAssertion(node) => self.expression(&node.expression),
            Expression::TSNonNullExpression(node) => self.expression(&node.expression),
            Expression::TSInstantiationExpression(node) => self.expression(&node.expression),
            Expression::AwaitExpression(node) => self.expression(&node.argument),
            Expression::ArrayExpression(node) => self.array(node),
            Expression::ObjectExpression(node) => self.object(node),
            Expression::ArrowFunctionExpression(node) => {
                self.visit_arrow_function_expression(node);
                Value::Function
            }
            Expression::FunctionExpression(node) => {
                self.visit_function(node, oxc::semantic::ScopeFlags::Function);
                Value::Function
            }
            Expression::AssignmentExpression(node) => self.assign(node),
            Expression::BinaryExpression(node) => {
                let left = self.expression(&node.left);
                let right = self.expression(&node.right);
                binary(&left, node.operator, &right)
            }
            Expression::LogicalExpression(node) => {
                let left = self.expression(&node.left);
                let right = self.expression(&node.right);
                either(left, right)
            }
            Expression::ConditionalExpression(node) => {
                self.expression(&node.test);
                let first = self.expression(&node.consequent);
                let second = self.expression(&node.alternate);
                either(first, second)
            }
            Expression::SequenceExpression(node) => {
                let mut last = Value::Unknown;
                for one in &node.expressions {
                    last = self.expression(one);
                }
                last
            }
            Expression::UnaryExpression(node) => {
                // Asking whether something is there uses nothing of it.
                let asks = node.operator == UnaryOperator::Typeof;
                if let (true, Expression::Identifier(_)) = (asks, &node.argument) {
                    return Value::Unknown;
                }
                match (node.operator, self.expression(&node.argument)) {
                    (UnaryOperator::UnaryNegation, Value::Int(int)) => {
                        Value::Int(int.wrapping_neg())
                    }
                    _ => Value::Unknown,
                }
            }
            Expression::CallExpression(node) => self.call(node),
            Expression::NewExpression(node) => {
                let callee = self.expression(&node.callee);
                self.arguments(&node.arguments);
                if callee.path() == Some("global.Function") {
                    self.tell(start(&node.callee), CALL, || {
                        "makes a function from text".to_owned()
                    });
                }
                Value::Unknown
            }
            Expression::ImportExpression(node) => {
                let name = self.expression(&node.source);
                if let Some(options) = &node.options {
                    self.expression(options);
                }
                self.load_value(Some(&name), ImportKind::Dynamic, start(&node.source))
            }
            Expression::TaggedTemplateExpression(node) => {
                let tag = self.expression(&node.tag);
                let value = self.template(&node.quasi);
                match tag.path() {
                    Some("global.String.raw") => value,
                    _ => Value::Unknown,
                }
            }
            Expression::ImportMeta(_) => Value::Path("import.meta".into()),
            Expression::ChainExpression(node) => match &node.expression {
                ChainElement::CallExpression(call) => self.call(call),
                ChainElement::TSNonNullExpression(inner) => self.expression(&inner.expression),
                element => match element.as_member_expression() {
                    Some(member) => self.member(member),
                    None => Value::Unknown,
                },
            },
            other => match other.as_member_expression() {
                Some(member) => self.member(member),
                None => {
                    over::walk_expression(self, other);
                    Value::Unknown
                }
            },
        }
    }

    fn template(&mut self, node: &TemplateLiteral<'_>) -> Value {
        let mut whole = Some(String::new());
        let mut expressions = node.expressions.iter();
        for quasi in &node.quasis {
            let piece = quasi.value.cooked.as_ref().map(|cooked| cooked.as_str());
            fold::push(&mut whole, piece);
            if let Some(expression) = expressions.next() {
                let value = self.expression(expression);
                fold::push(&mut whole, fold::text_of(&value).as_deref());
            }
        }
        whole.map_or(Value::Literal, |whole| {
            text(&whole, !node.expressions.is_empty())
        })
    }

    fn array(&mut self, node: &ArrayExpression<'_>) -> Value {
        let mut list = Vec::new();
        for element in &node.elements {
            let value = match element {
                ArrayExpressionElement::SpreadElement(spread) => {
                    self.expression(&spread.argument);
                    Value::Unknown
                }
                ArrayExpressionElement::Elision(_) => Value::Unknown,
                element => match element.as_expression() {
                    Some(expression) => self.expression(expression),
                    None => Value::Unknown,
                },
            };
            if node.elements.len() <= LIST {
                list.push(value);
            }
        }
        if list.len() == node.elements.len() {
            Value::List(list.into())
        } else {
            Value::Literal
        }
    }

    fn identifier(&mut self, node: &IdentifierReference<'_>) -> Value {
        let offset = start(node);
        if let Some(symbol) = self.symbol(node) {
            let value = self.known(symbol);
            if let Value::Path(path) = &value {
                self.used(path, offset);
            }
            return value;
        }
        let path = match node.name.as_str() {
            "undefined" => return Value::Unknown,
            "globalThis" | "global" | "self" | "window" => "global".to_owned(),
            "require" => "require".to_owned(),
            "module" => "commonjs".to_owned(),
            "exports" => "commonjs.exports".to_owned(),
            name if name.len() > PATH => return Value::Unknown,
            name => format!("global.{name}"),
        };
        if path == "global.Bun" {
            self.bun.get_or_insert(offset);
        }
        self.used(&path, offset);
        Value::Path(path.into())
    }

    fn used(&mut self, path: &str, offset: usize) {
        if self.telling
            && let Some((rule, message)) = rules::used(path)
        {
            self.tell(offset, rule, || message);
        }
    }

    pub fn member(&mut self, node: &MemberExpression<'_>) -> Value {
        match node {
            MemberExpression::StaticMemberExpression(member) => {
                let value = self.expression(&member.object);
                self.attribute(
                    &value,
                    member.property.name.as_str(),
                    start(&member.property),
                )
            }
            MemberExpression::ComputedMemberExpression(member) => {
                let value = self.expression(&member.object);
                let key = self.expression(&member.expression);
                self.item(&value, &key, start(&member.expression))
            }
            MemberExpression::PrivateFieldExpression(member) => {
                self.expression(&member.object);
                Value::Unknown
            }
        }
    }

    /// `value[key]`
    pub(super) fn item(&mut self, value: &Value, key: &Value, offset: usize) -> Value {
        match (value, key) {
            (_, Value::Text { text, assembled }) => {
                if *assembled && rules::spelled(text) {
                    self.tell(offset, TRICK, || {
                        format!("puts `{text}` together from pieces")
                    });
                }
                self.attribute(value, text, offset)
            }
            (_, Value::Int(index)) => fold::element(value, *index).unwrap_or(Value::Unknown),
            (Value::Path(path), _) if rules::closed(path) => {
                let path = shown(path);
                self.tell(offset, TRICK, || {
                    format!("takes something from `{path}` by a name made at run time")
                });
                Value::Unknown
            }
            _ => Value::Unknown,
        }
    }

    /// `value.name`
    pub fn attribute(&mut self, value: &Value, name: &str, offset: usize) -> Value {
        match value {
            Value::Path(path) => self.below(path, name, offset),
            Value::Object(properties) => {
                let found = properties.iter().find(|(own, _)| own.as_ref() == name);
                match found {
                    Some((_, value)) => value.clone(),
                    None if name == "constructor" => Value::Constructor,
                    None => Value::Unknown,
                }
            }
            Value::Function | Value::Constructor | Value::Method(_) if name == "constructor" => {
                self.tell(offset, TRICK, || {
                    "reaches `Function` through `constructor`".to_owned()
                });
                Value::Path("global.Function".into())
            }
            Value::Unknown | Value::Tool(_) if name == "constructor" => Value::Constructor,
            literal if literal.is_literal() || matches!(literal, Value::Bytes(_)) => match name {
                "constructor" => Value::Constructor,
                "length" => Value::Unknown,
                _ => Value::Method(Rc::new((value.clone(), name.into()))),
            },
            _ => Value::Unknown,
        }
    }

    /// What a module or a global has under this name.
    fn below(&mut self, path: &str, name: &str, offset: usize) -> Value {
        let module = !path.contains('.') || path.starts_with("pkg:") || path == "fs.promises";
        if name == "default" && (module || path == "global.process" || path == "global.Bun") {
            return Value::Path(path.into());
        }
        if name == "constructor" {
            if path.starts_with("commonjs") {
                self.tell(offset, TRICK, || {
                    "reaches the module loader through `constructor`".to_owned()
                });
                return Value::Path("module".into());
            }
            if path.starts_with("global.") || path == "require" {
                self.tell(offset, TRICK, || {
                    "reaches `Function` through `constructor`".to_owned()
                });
                return Value::Path("global.Function".into());
            }
            return Value::Constructor;
        }
        if path.len() + name.len() > PATH {
            return Value::Unknown;
        }
        let joined = format!("{path}.{name}");
        let joined = match joined.as_str() {
            "global.globalThis" | "global.global" | "global.self" | "global.window" => "global",
            "global.require"
            | "commonjs.require"
            | "require.main.require"
            | "import.meta.require"
            | "global.process.mainModule.require"
            | "commonjs.parent.require" => "require",
            "global.process.mainModule.constructor" | "module.Module" => "module",
            other => other,
        };
        self.used(joined, offset);
        Value::Path(joined.into())
    }

    pub fn assign(&mut self, node: &AssignmentExpression<'_>) -> Value {
        let value = self.expression(&node.right);
        match &node.left {
            AssignmentTarget::AssignmentTargetIdentifier(name) => {
                let symbol = self.symbol(name);
                let value = match node.operator {
                    AssignmentOperator::Addition => {
                        let old = symbol.map_or(Value::Unknown, |symbol| self.known(symbol));
                        fold::add(&old, &value).unwrap_or(Value::Unknown)
                    }
                    _ => value.clone(),
                };
                // Added up once: the second round would add again.
                if node.operator != AssignmentOperator::Addition || !self.telling {
                    self.learn(symbol, value);
                }
            }
            AssignmentTarget::ObjectAssignmentTarget(object) => {
                for property in &object.properties {
                    if let AssignmentTargetProperty::AssignmentTargetPropertyIdentifier(name) =
                        property
                    {
                        let part = self.peek(&value, name.binding.name.as_str());
                        let symbol = self.symbol(&name.binding);
                        self.learn(symbol, part);
                    }
                    if let AssignmentTargetProperty::AssignmentTargetPropertyProperty(renamed) =
                        property
                        && let (Some(key), Some(name)) =
                            (renamed.name.static_name(), target(&renamed.binding))
                    {
                        let part = self.peek(&value, &key);
                        let symbol = self.symbol(name);
                        self.learn(symbol, part);
                    }
                }
                over::walk_object_assignment_target(self, object);
            }
            other => match other.as_member_expression() {
                Some(member) => {
                    if let Value::Path(path) = self.member(member) {
                        self.export_common(&path, &value, start(member));
                    }
                }
                None => over::walk_assignment_target(self, other),
            },
        }
        value
    }
}

/// The name that a part of a pattern is put into.
fn target<'b, 'a>(
    binding: &'b AssignmentTargetMaybeDefault<'a>,
) -> Option<&'b IdentifierReference<'a>> {
    match binding {
        AssignmentTargetMaybeDefault::AssignmentTargetIdentifier(name) => Some(name),
        _ => None,
    }
}

/// A path as people write it.
pub(super) fn shown(path: &str) -> String {
    match path {
        "global" => "globalThis".to_owned(),
        path => path.strip_prefix("global.").unwrap_or(path).to_owned(),
    }
}

fn text(text: &str, assembled: bool) -> Value {
    if text.len() > LONGEST {
        return Value::Literal;
    }
    Value::Text {
        text: text.into(),
        assembled,
    }
}

fn whole(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() < 1e15 {
        Value::Int(number as i64)
    } else {
        Value::Literal
    }
}

fn either(first: Value, second: Value) -> Value {
    match first {
        Value::Unknown => second,
        first => first,
    }
}

fn binary(left: &Value, operator: BinaryOperator, right: &Value) -> Value {
    let made = match (operator, left, right) {
        (BinaryOperator::Addition, ..) => fold::add(left, right),
        (BinaryOperator::Subtraction, Value::Int(a), Value::Int(b)) => {
            a.checked_sub(*b).map(Value::Int)
        }
        (BinaryOperator::BitwiseXOR, Value::Int(a), Value::Int(b)) => Some(Value::Int(a ^ b)),
        _ => None,
    };
    made.unwrap_or(Value::Unknown)
}
