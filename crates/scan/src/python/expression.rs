//! The walk over expressions: every one is read once, and what it is goes up to the one around it.

use std::rc::Rc;

use ruff_python_ast::{
    Comprehension, Expr, ExprBoolOp, ExprBytesLiteral, ExprDict, ExprFString, ExprIf, ExprLambda,
    ExprStringLiteral, ExprSubscript, FStringPart, InterpolatedStringElement, Number, Operator,
};

use super::walk::Walk;
use super::{fold as own, start};
use crate::fold;
use crate::value::{LONGEST, Value};

/// How many elements a list has that is followed.
pub(super) const LIST: usize = 256;
/// How much of a file is evaluated again for lists that are put together.
const REPEATED: usize = 20_000;

impl<'a> Walk<'a> {
    /// What an expression is. Where the budget is used up, nothing is known any more.
    pub fn expression(&mut self, expression: &'a Expr) -> Value {
        if !self.meter.step(start(expression)) {
            return Value::Unknown;
        }
        let value = self.evaluated(expression);
        self.meter.spend(start(expression), value.weight());
        value
    }

    fn evaluated(&mut self, expression: &'a Expr) -> Value {
        match expression {
            Expr::BoolOp(node) => self.either(node),
            Expr::Named(node) => {
                let value = self.expression(&node.value);
                self.bind(&node.target, value.clone());
                value
            }
            Expr::BinOp(node) => {
                let left = self.expression(&node.left);
                let right = self.expression(&node.right);
                binary(&left, node.op, &right)
            }
            Expr::UnaryOp(node) => match (self.expression(&node.operand), node.op.as_str()) {
                (Value::Int(int), "-") => Value::Int(int.wrapping_neg()),
                _ => Value::Unknown,
            },
            Expr::Lambda(node) => self.lambda(node),
            Expr::If(node) => self.conditional(node),
            Expr::Dict(node) => self.dict(node),
            Expr::Set(node) => self.list(&node.elts),
            Expr::List(node) => self.list(&node.elts),
            Expr::Tuple(node) => self.list(&node.elts),
            Expr::ListComp(node) => self.comprehension(&node.generators, None, &node.elt),
            Expr::SetComp(node) => self.comprehension(&node.generators, None, &node.elt),
            Expr::Generator(node) => self.comprehension(&node.generators, None, &node.elt),
            Expr::DictComp(node) => {
                self.comprehension(&node.generators, node.key.as_deref(), &node.value);
                Value::Literal
            }
            Expr::Await(node) => self.expression(&node.value),
            Expr::Yield(node) => {
                if let Some(value) = &node.value {
                    self.ignore(value);
                }
                Value::Unknown
            }
            Expr::YieldFrom(node) => {
                self.ignore(&node.value);
                Value::Unknown
            }
            Expr::Compare(node) => {
                self.ignore(&node.left);
                for other in &node.comparators {
                    self.ignore(other);
                }
                Value::Unknown
            }
            Expr::Call(node) => {
                let callee = self.expression(&node.func);
                self.call(callee, node)
            }
            Expr::FString(node) => self.f_string(node),
            Expr::TString(node) => {
                for part in &node.value {
                    self.pieces(&part.elements, &mut None);
                }
                Value::Unknown
            }
            Expr::StringLiteral(node) => string(node),
            Expr::BytesLiteral(node) => bytes(node),
            Expr::NumberLiteral(node) => match &node.value {
                Number::Int(int) => int.as_i64().map_or(Value::Literal, Value::Int),
                _ => Value::Literal,
            },
            Expr::Attribute(node) => {
                let value = self.expression(&node.value);
                self.attribute(&value, node.attr.as_str(), start(&node.attr))
            }
            Expr::Subscript(node) => self.subscript(node),
            Expr::Starred(node) => {
                self.ignore(&node.value);
                Value::Unknown
            }
            Expr::Name(node) => self.named(node.id.as_str(), start(node)),
            Expr::Slice(node) => {
                for bound in [&node.lower, &node.upper, &node.step].into_iter().flatten() {
                    self.ignore(bound);
                }
                Value::Unknown
            }
            Expr::BooleanLiteral(_)
            | Expr::NoneLiteral(_)
            | Expr::EllipsisLiteral(_)
            | Expr::IpyEscapeCommand(_) => Value::Unknown,
        }
    }

    /// `a or b` is the first of them that is known.
    fn either(&mut self, node: &'a ExprBoolOp) -> Value {
        let mut known = Value::Unknown;
        for value in &node.values {
            let value = self.expression(value);
            if matches!(known, Value::Unknown) {
                known = value;
            }
        }
        known
    }

    fn lambda(&mut self, node: &'a ExprLambda) -> Value {
        let scope = self.parameters(node.parameters.as_deref());
        let outside = self.come_back(scope);
        self.ignore(&node.body);
        self.come_back(outside);
        Value::Unknown
    }

    /// `a if b else c`
    fn conditional(&mut self, node: &'a ExprIf) -> Value {
        self.ignore(&node.test);
        let first = self.expression(&node.body);
        let second = self.expression(&node.orelse);
        if matches!(first, Value::Unknown) {
            second
        } else {
            first
        }
    }

    fn dict(&mut self, node: &'a ExprDict) -> Value {
        for item in &node.items {
            if let Some(key) = &item.key {
                self.ignore(key);
            }
            self.ignore(&item.value);
        }
        Value::Literal
    }

    fn f_string(&mut self, node: &'a ExprFString) -> Value {
        let mut text = Some(String::new());
        for part in &node.value {
            match part {
                FStringPart::Literal(literal) => fold::push(&mut text, Some(literal.as_str())),
                FStringPart::FString(inner) => self.pieces(&inner.elements, &mut text),
            }
        }
        text.map_or(Value::Unknown, |text| Value::assembled(&text))
    }

    /// The pieces of an f-string, put together as long as all are known.
    fn pieces(
        &mut self,
        pieces: impl IntoIterator<Item = &'a InterpolatedStringElement>,
        text: &mut Option<String>,
    ) {
        for piece in pieces {
            match piece {
                InterpolatedStringElement::Literal(literal) => {
                    fold::push(text, Some(&literal.value))
                }
                InterpolatedStringElement::Interpolation(inner) => {
                    let value = self.expression(&inner.expression);
                    let plain = inner.format_spec.is_none();
                    fold::push(text, fold::text_of(&value).filter(|_| plain).as_deref());
                    if let Some(format) = &inner.format_spec {
                        self.pieces(&format.elements, &mut None);
                    }
                }
            }
        }
    }

    fn list(&mut self, elements: &'a [Expr]) -> Value {
        let mut list = Vec::new();
        for element in elements {
            let value = self.expression(element);
            if elements.len() <= LIST {
                list.push(value);
            }
        }
        if list.len() == elements.len() {
            Value::List(list.into())
        } else {
            Value::Literal
        }
    }

    fn comprehension(
        &mut self,
        generators: &'a [Comprehension],
        key: Option<&'a Expr>,
        element: &'a Expr,
    ) -> Value {
        let outside = self.enter(false);
        let mut over = None;
        for generator in generators {
            let iterated = self.expression(&generator.iter);
            self.bind(&generator.target, Value::Unknown);
            for test in &generator.ifs {
                self.ignore(test);
            }
            over = Some(iterated);
        }
        if let Some(key) = key {
            self.ignore(key);
        }
        // One plain loop over a list that is known can be run here.
        let elements = match (generators, over) {
            ([only], Some(over)) if only.ifs.is_empty() && self.repeated < REPEATED => {
                over.elements()
            }
            _ => None,
        };
        let mut made = Value::Unknown;
        match elements.filter(|list| list.len() <= LIST) {
            Some(list) if self.repeated < REPEATED => {
                let mut results = Vec::new();
                let size = usize::from(ruff_text_size::Ranged::range(element).len());
                let wanted = list.len();
                for one in list {
                    self.repeated += size;
                    if self.repeated > REPEATED {
                        break;
                    }
                    self.bind(&generators[0].target, one);
                    results.push(self.expression(element));
                }
                if results.is_empty() {
                    self.ignore(element);
                }
                if results.len() == wanted {
                    made = Value::List(results.into());
                }
            }
            _ => self.ignore(element),
        }
        self.come_back(outside);
        made
    }

    fn subscript(&mut self, node: &'a ExprSubscript) -> Value {
        let value = self.expression(&node.value);
        let offset = start(node.slice.as_ref());
        if let Expr::Slice(slice) = node.slice.as_ref() {
            let mut bound = |expression: &'a Option<Box<Expr>>| {
                let value = expression
                    .as_deref()
                    .map(|expression| self.expression(expression));
                value.map(|value| value.int())
            };
            let (lower, upper, step) =
                (bound(&slice.lower), bound(&slice.upper), bound(&slice.step));
            if [lower, upper, step].contains(&Some(None)) {
                return Value::Unknown;
            }
            let step = step.flatten().unwrap_or(1);
            return fold::slice(&value, lower.flatten(), upper.flatten(), step)
                .unwrap_or(Value::Unknown);
        }
        let key = self.expression(&node.slice);
        self.item(&value, &key, offset)
    }
}

fn binary(left: &Value, op: Operator, right: &Value) -> Value {
    let result = match (op, left, right) {
        (Operator::Add, ..) => fold::add(left, right),
        (Operator::Mod, Value::Text { text, .. }, values) => own::percent(text, values),
        (_, Value::Int(left), Value::Int(right)) => own::number(*left, op.as_str(), *right),
        _ => None,
    };
    result.unwrap_or(Value::Unknown)
}

fn string(node: &ExprStringLiteral) -> Value {
    match node.value.to_str() {
        long if long.len() > LONGEST => Value::Literal,
        text => Value::Text {
            text: text.into(),
            assembled: node.value.is_implicit_concatenated(),
        },
    }
}

fn bytes(node: &ExprBytesLiteral) -> Value {
    let bytes: Rc<[u8]> = node.value.bytes().take(LONGEST + 1).collect();
    if bytes.len() > LONGEST {
        Value::Literal
    } else {
        Value::Bytes(bytes)
    }
}
