//! The walk over expressions: every one is read once, and what it is goes up to the one around it.

use std::rc::Rc;

use ruff_python_ast::{
    Comprehension, Expr, ExprCall, ExprSubscript, FStringPart, InterpolatedStringElement, Number,
    Operator,
};

use super::statement::Walk;
use super::{MODULES, OWN, fold as own, rules, start};
use crate::findings::{CALL, MODULE, TRICK};
use crate::fold;
use crate::value::{LONGEST, Value};

/// How many elements a list has that is followed.
const LIST: usize = 256;
/// How much of a file is evaluated again for lists that are put together.
const REPEATED: usize = 20_000;
/// The longest path that is followed.
const PATH: usize = 200;

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
            Expr::BoolOp(node) => {
                let mut known = Value::Unknown;
                for value in &node.values {
                    let value = self.expression(value);
                    if matches!(known, Value::Unknown) {
                        known = value;
                    }
                }
                known
            }
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
            Expr::Lambda(node) => {
                let scope = self.parameters(node.parameters.as_deref());
                let outside = self.come_back(scope);
                self.ignore(&node.body);
                self.come_back(outside);
                Value::Unknown
            }
            Expr::If(node) => {
                self.ignore(&node.test);
                let first = self.expression(&node.body);
                let second = self.expression(&node.orelse);
                if matches!(first, Value::Unknown) {
                    second
                } else {
                    first
                }
            }
            Expr::Dict(node) => {
                for item in &node.items {
                    if let Some(key) = &item.key {
                        self.ignore(key);
                    }
                    self.ignore(&item.value);
                }
                Value::Literal
            }
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
            Expr::FString(node) => {
                let mut text = Some(String::new());
                for part in &node.value {
                    match part {
                        FStringPart::Literal(literal) => {
                            fold::push(&mut text, Some(literal.as_str()))
                        }
                        FStringPart::FString(inner) => self.pieces(&inner.elements, &mut text),
                    }
                }
                text.map_or(Value::Unknown, |text| Value::assembled(&text))
            }
            Expr::TString(node) => {
                for part in &node.value {
                    self.pieces(&part.elements, &mut None);
                }
                Value::Unknown
            }
            Expr::StringLiteral(node) => match node.value.to_str() {
                long if long.len() > LONGEST => Value::Literal,
                text => Value::Text {
                    text: text.into(),
                    assembled: node.value.is_implicit_concatenated(),
                },
            },
            Expr::BytesLiteral(node) => {
                let bytes: Rc<[u8]> = node.value.bytes().take(LONGEST + 1).collect();
                if bytes.len() > LONGEST {
                    Value::Literal
                } else {
                    Value::Bytes(bytes)
                }
            }
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

    fn named(&mut self, name: &'a str, offset: usize) -> Value {
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
    fn spelled(&mut self, value: &Value, word: &Value, offset: usize) -> Value {
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

    /// `value[key]`, however it is written.
    fn item(&mut self, value: &Value, key: &Value, offset: usize) -> Value {
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

    /// A call of something that was evaluated before.
    pub fn call(&mut self, callee: Value, node: &'a ExprCall) -> Value {
        let mut args: Vec<Value> = Vec::new();
        for argument in &*node.arguments.args {
            let value = self.expression(argument);
            if args.len() < LIST {
                args.push(value);
            }
        }
        for keyword in &node.arguments.keywords {
            self.ignore(&keyword.value);
        }
        let place = match node.func.as_ref() {
            Expr::Attribute(attribute) => start(&attribute.attr),
            other => start(other),
        };
        let argument = |at: usize| node.arguments.args.get(at).map_or(place, start);
        match &callee {
            Value::Path(path) => self.call_path(path, &args, place, &argument),
            Value::Method(bound) => {
                let (of, name) = bound.as_ref();
                self.call_method(of, name, &args, place, &argument)
            }
            Value::Type => match args.first() {
                Some(value) if value.is_literal() => Value::Unknown,
                _ => Value::Type,
            },
            _ => Value::Unknown,
        }
    }

    fn call_path(
        &mut self,
        path: &str,
        args: &[Value],
        place: usize,
        argument: &dyn Fn(usize) -> usize,
    ) -> Value {
        if rules::call(path) || rules::makes_code(path) {
            self.tell(place, CALL, || format!("calls `{}`", shown(path)));
        }
        if rules::runs_text(path) && args.first().is_some_and(|first| first.text().is_some()) {
            self.tell(place, CALL, || format!("runs a string with `{path}`"));
        }
        match (path, args) {
            (
                "builtins.getattr"
                | "builtins.object.__getattribute__"
                | "builtins.type.__getattribute__",
                [of, name, ..],
            ) => {
                if let (Some(of), None) = (of.path(), name.text())
                    && rules::module(of).is_some()
                {
                    self.tell(argument(1), TRICK, || {
                        format!("takes something from `{of}` by a name made at run time")
                    });
                }
                self.spelled(of, name, argument(1))
            }
            ("operator.getitem", [of, key]) => self.item(of, key, argument(1)),
            ("operator.attrgetter" | "operator.methodcaller", names) => {
                for (at, name) in names.iter().enumerate() {
                    self.meter
                        .spend(argument(at), name.text().map_or(0, str::len));
                    for word in name.text().into_iter().flat_map(|text| text.split('.')) {
                        if rules::spelled(word) {
                            self.tell(argument(at), TRICK, || {
                                format!("takes `{word}` with `{path}`")
                            });
                        }
                    }
                }
                Value::Unknown
            }
            ("builtins.globals" | "builtins.locals", _) | ("builtins.vars", []) => self.namespace(),
            ("builtins.vars", [Value::Path(of)]) => Value::Namespace(of.clone()),
            ("builtins.type", [one]) if one.is_literal() => Value::Type,
            (
                "builtins.__import__" | "importlib.import_module" | "importlib.__import__",
                [Value::Text { text, .. }, ..],
            ) => Value::Path(text.clone()),
            ("builtins.setattr", [_, Value::Text { text, .. }, ..])
                if text.as_ref() == "TYPE_CHECKING" =>
            {
                self.tell(place, TRICK, || "changes `TYPE_CHECKING`".to_owned());
                Value::Unknown
            }
            ("typing.ForwardRef", [Value::Text { text, .. }, ..]) if text.contains('(') => {
                self.tell(argument(0), TRICK, || {
                    "hides a call in an annotation".to_owned()
                });
                Value::Unknown
            }
            _ => own::function(path, args).unwrap_or(Value::Unknown),
        }
    }

    fn call_method(
        &mut self,
        of: &Value,
        name: &str,
        args: &[Value],
        place: usize,
        argument: &dyn Fn(usize) -> usize,
    ) -> Value {
        match (name, args) {
            ("__getattribute__", [name]) => return self.spelled(of, name, argument(0)),
            ("__getattribute__", [of, name]) => return self.spelled(of, name, argument(1)),
            ("get" | "__getitem__" | "pop" | "setdefault", [key, ..])
                if matches!(of, Value::Namespace(_)) =>
            {
                return self.item(of, key, argument(0));
            }
            ("format" | "format_map", _) => {
                if let Some(word) = of.text().and_then(rules::in_format) {
                    self.tell(place, TRICK, || {
                        format!("reads `{word}` with a format string")
                    });
                }
            }
            _ => {}
        }
        own::method(of, name, args).unwrap_or(Value::Unknown)
    }
}

/// A path as people write it.
fn shown(path: &str) -> &str {
    path.strip_prefix("builtins.").unwrap_or(path)
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
