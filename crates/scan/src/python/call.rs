//! What a call does and gives, by what is called.

use ruff_python_ast::{Expr, ExprCall};

use super::access::shown;
use super::expression::LIST;
use super::walk::Walk;
use super::{fold as own, rules, start};
use crate::findings::{CALL, TRICK};
use crate::value::Value;

impl<'a> Walk<'a> {
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
