//! What a call does and gives, by what is called.

use oxc::ast::ast::{Argument, CallExpression, Expression};

use super::expression::{LIST, shown};
use super::walk::{Walk, start};
use super::{ImportKind, export, fold as own, rules};
use crate::findings::{CALL, TRICK, WRITE};
use crate::value::Value;

impl Walk<'_> {
    pub fn call(&mut self, node: &CallExpression<'_>) -> Value {
        let callee = self.expression(&node.callee);
        let args = self.arguments(&node.arguments);
        let place = match &node.callee {
            Expression::StaticMemberExpression(member) => start(&member.property),
            Expression::ComputedMemberExpression(member) => start(&member.expression),
            other => start(other),
        };
        let argument = node.arguments.first().map_or(place, start);
        match &callee {
            Value::Path(path) => self.call_path(path, &args, place, argument),
            Value::Method(bound) => {
                let (of, name) = bound.as_ref();
                own::method(of, name, &args).unwrap_or(Value::Unknown)
            }
            Value::Constructor if args.iter().any(|arg| arg.text().is_some()) => {
                self.tell(place, TRICK, || {
                    "calls a `constructor` with text".to_owned()
                });
                Value::Unknown
            }
            _ => Value::Unknown,
        }
    }

    pub(super) fn arguments(&mut self, arguments: &[Argument<'_>]) -> Vec<Value> {
        let mut values = Vec::new();
        for argument in arguments {
            let value = match argument {
                Argument::SpreadElement(spread) => {
                    // `f(...list)` is `f` with what the list has, when it comes first.
                    match self.expression(&spread.argument) {
                        Value::List(list) if values.is_empty() => {
                            values.extend(list.iter().cloned());
                            continue;
                        }
                        _ => Value::Unknown,
                    }
                }
                other => match other.as_expression() {
                    Some(expression) => self.expression(expression),
                    None => Value::Unknown,
                },
            };
            if values.len() < LIST {
                values.push(value);
            }
        }
        values
    }

    fn call_path(&mut self, path: &str, args: &[Value], place: usize, argument: usize) -> Value {
        if rules::makes_tool(path) {
            return export::made(args.first());
        }
        let reads = match args.get(1) {
            None | Some(Value::Function) => true,
            Some(flags) => matches!(flags.text(), Some("r" | "rs")),
        };
        if rules::opens(path) && !reads {
            self.tell(place, WRITE, || {
                format!("opens a file for writing with `{path}`")
            });
        }
        match (path, args) {
            ("require" | "global.process.getBuiltinModule", _) => {
                self.load_value(args.first(), ImportKind::Require, argument)
            }
            ("require.call", _) => self.load_value(args.get(1), ImportKind::Require, argument),
            ("require.resolve", _) => Value::Unknown,
            ("module.createRequire", _) => Value::Path("require".into()),
            ("module._load", [Value::Text { text, .. }, ..]) => {
                self.load(text, ImportKind::Require, argument)
            }
            ("global.Function" | "global.Function.call" | "global.Function.apply", _) => {
                self.tell(place, CALL, || "makes a function from text".to_owned());
                Value::Function
            }
            (
                "global.setTimeout" | "global.setInterval" | "global.setImmediate",
                [Value::Text { .. }, ..],
            ) => {
                self.tell(argument, CALL, || {
                    format!("runs a string with `{}`", shown(path))
                });
                Value::Unknown
            }
            ("global.Reflect.get", [of, key, ..])
            | ("global.Object.getOwnPropertyDescriptor", [of, key]) => self.item(of, key, argument),
            ("global.Reflect.construct" | "global.Reflect.apply", [Value::Path(of), ..])
                if of.as_ref() == "global.Function" =>
            {
                self.tell(place, CALL, || "makes a function from text".to_owned());
                Value::Function
            }
            (
                "global.Object.getPrototypeOf" | "global.Reflect.getPrototypeOf",
                [Value::Function],
            ) => Value::Function,
            _ => match path.strip_suffix(".bind") {
                Some(bound) => Value::Path(bound.into()),
                None => own::function(path, args).unwrap_or(Value::Unknown),
            },
        }
    }
}
