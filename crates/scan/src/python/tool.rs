//! Functions that are tools: which decorators make one, and what they are called.

use ruff_python_ast::{Expr, ExprCall, Operator, Stmt, StmtFunctionDef};

use super::start;
use super::walk::Walk;
use crate::Declared;
use crate::budget::BUDGET;
use crate::value::Value;

/// Does this path name the decorator that makes a tool?
pub fn makes_one(path: &str) -> bool {
    matches!(
        path,
        "toolcrib.tool"
            | "langchain_core.tools.tool"
            | "langchain_core.tools.convert.tool"
            | "langchain.tools.tool"
            | "langchain.agents.tool"
    )
}

impl<'a> Walk<'a> {
    /// Walks over a function's decorators, and notes the tool that one of them makes.
    pub fn decorators(&mut self, function: &'a StmtFunctionDef) {
        let mut made = None;
        for decorator in &function.decorator_list {
            let (callee, call) = match &decorator.expression {
                Expr::Call(call) => (self.expression(&call.func), Some(call)),
                other => (self.expression(other), None),
            };
            if callee.path().is_some_and(makes_one) {
                made = Some(call);
            }
            if let Some(call) = call {
                self.call(callee, call);
            }
        }
        if let Some(call) = made
            && self.at_top()
        {
            if self.tools.len() >= BUDGET.tools {
                let most = BUDGET.tools;
                let message = format!(
                    "from here on it has more than {most} tools, and no more is read; split the file"
                );
                self.meter.refuse(start(&function.name), message);
                return;
            }
            let name = call.and_then(named);
            let described = call.and_then(|call| argument(call, "description"));
            self.tools.push(Declared {
                name: name.unwrap_or_else(|| function.name.to_string()),
                description: described.or_else(|| first_paragraph(&function.body)),
                at: self.lines.at(start(&function.name)),
            });
        }
    }
}

/// The name that a decorator gives: `name=`, or a string that comes first.
fn named(call: &ExprCall) -> Option<String> {
    let first = || {
        call.arguments
            .args
            .first()
            .and_then(|first| literal(first, 0))
    };
    argument(call, "name").or_else(first)
}

fn argument(call: &ExprCall, name: &str) -> Option<String> {
    literal(&call.arguments.find_keyword(name)?.value, 0)
}

/// A string that is written out, in one piece or several.
fn literal(expression: &Expr, depth: u32) -> Option<String> {
    match expression {
        Expr::StringLiteral(string) => Some(string.value.to_str().to_owned()),
        Expr::BinOp(sum) if sum.op == Operator::Add && depth < 64 => {
            let mut text = literal(&sum.left, depth + 1)?;
            text.push_str(&literal(&sum.right, depth + 1)?);
            Some(text)
        }
        _ => None,
    }
}

/// The first paragraph of a docstring, on one line.
fn first_paragraph(body: &[Stmt]) -> Option<String> {
    let Stmt::Expr(first) = body.first()? else {
        return None;
    };
    let Expr::StringLiteral(string) = first.value.as_ref() else {
        return None;
    };
    let lines = string.value.to_str().lines().map(str::trim);
    let paragraph: Vec<&str> = lines
        .skip_while(|line| line.is_empty())
        .take_while(|line| !line.is_empty())
        .flat_map(str::split_whitespace)
        .collect();
    (!paragraph.is_empty()).then(|| paragraph.join(" "))
}

/// What a star import of this module brings.
pub fn star(module: &str) -> Option<(&'static str, Value)> {
    let path = format!("{module}.tool");
    makes_one(&path).then(|| ("tool", Value::Path(path.into())))
}
