//! Exports that are tools.

use oxc::ast::ast::{
    BindingPattern, Declaration, ExportDeclaration, ExportDefaultDeclaration,
    ExportDefaultDeclarationKind, ExportNamedDeclaration, Expression, ModuleExportName,
    ObjectExpression, ObjectPropertyKind,
};
use oxc::ast_visit::walk as over;

use super::walk::{Walk, start};
use crate::Declared;
use crate::budget::BUDGET;
use crate::value::Value;

/// How many properties an object has that is followed.
const PROPERTIES: usize = 64;

impl Walk<'_> {
    pub fn export(&mut self, name: &str, value: &Value, offset: usize) {
        if let (true, Value::Tool(description)) = (self.telling, value) {
            self.meter.spend(offset, 1 + value.weight());
            if self.tools.len() >= BUDGET.tools {
                let most = BUDGET.tools;
                let message = format!(
                    "from here on it has more than {most} tools, and no more is read; split the file"
                );
                self.meter.refuse(offset, message);
                return;
            }
            self.tools.push(Declared {
                name: name.to_owned(),
                description: description.as_ref().map(|text| text.to_string()),
                at: self.lines.at(offset),
            });
        }
    }

    pub fn export_declaration(&mut self, node: &ExportDeclaration<'_>) {
        if let Declaration::VariableDeclaration(variables) = &node.declaration {
            for variable in &variables.declarations {
                if let BindingPattern::BindingIdentifier(name) = &variable.id {
                    let value = name
                        .symbol_id
                        .get()
                        .map_or(Value::Unknown, |symbol| self.known(symbol));
                    self.export(name.name.as_str(), &value, start(name.as_ref()));
                }
            }
        }
    }

    pub fn export_named(&mut self, node: &ExportNamedDeclaration<'_>) {
        for specifier in &node.specifiers {
            let value = match &specifier.local {
                ModuleExportName::IdentifierReference(local) => {
                    self.symbol(local).map(|symbol| self.known(symbol))
                }
                _ => None,
            };
            let exported = specifier.exported.name();
            self.export(
                exported.as_str(),
                &value.unwrap_or(Value::Unknown),
                start(&specifier.exported),
            );
        }
    }

    pub fn export_default<'a>(&mut self, node: &ExportDefaultDeclaration<'a>) {
        match &node.declaration {
            kind @ (ExportDefaultDeclarationKind::FunctionDeclaration(_)
            | ExportDefaultDeclarationKind::ClassDeclaration(_)
            | ExportDefaultDeclarationKind::TSInterfaceDeclaration(_)) => {
                over::walk_export_default_declaration_kind(self, kind);
            }
            kind => {
                if let Some(expression) = kind.as_expression() {
                    let value = self.expression(expression);
                    self.export("default", &value, start(expression));
                }
            }
        }
    }

    /// What is put into `module.exports` or below it.
    pub fn export_common(&mut self, path: &str, value: &Value, offset: usize) {
        match (path.strip_prefix("commonjs.exports"), value) {
            (Some(""), Value::Object(properties)) => {
                for (name, value) in properties.iter() {
                    self.export(name, value, offset);
                }
            }
            (Some(""), value) => self.export("default", value, offset),
            (Some(rest), value) => {
                if let Some(name) = rest.strip_prefix('.').filter(|name| !name.contains('.')) {
                    self.export(name, value, offset);
                }
            }
            (None, _) => {}
        }
    }

    /// An object that is written down: its properties, or a tool.
    pub fn object<'a>(&mut self, node: &ObjectExpression<'a>) -> Value {
        let mut properties = Vec::new();
        let mut description = None;
        for property in &node.properties {
            match property {
                ObjectPropertyKind::ObjectProperty(property) => {
                    if property.computed
                        && let Some(key) = property.key.as_expression()
                    {
                        self.expression(key);
                    }
                    let value = self.expression(&property.value);
                    let Some(name) = property.key.static_name() else {
                        continue;
                    };
                    if name == "description" {
                        description =
                            written(&property.value, 0).or_else(|| value.text().map(str::to_owned));
                    }
                    if properties.len() < PROPERTIES {
                        properties.push((name.as_ref().into(), value));
                    }
                }
                ObjectPropertyKind::SpreadProperty(spread) => {
                    self.expression(&spread.argument);
                }
            }
        }
        let has = |wanted: &str| {
            properties
                .iter()
                .any(|(name, _): &(std::rc::Rc<str>, _)| name.as_ref() == wanted)
        };
        if has("description") && has("args") && has("execute") {
            Value::Tool(description.map(Into::into))
        } else {
            Value::Object(properties.into())
        }
    }
}

/// What `tool(…)` gives for this argument.
pub fn made(argument: Option<&Value>) -> Value {
    match argument {
        Some(Value::Tool(description)) => Value::Tool(description.clone()),
        Some(Value::Object(properties)) => {
            let description = properties
                .iter()
                .find(|(name, _)| name.as_ref() == "description");
            Value::Tool(description.and_then(|(_, value)| value.text().map(Into::into)))
        }
        _ => Value::Tool(None),
    }
}

/// A string that is written out, in one piece or several.
fn written(expression: &Expression<'_>, depth: u32) -> Option<String> {
    match expression {
        Expression::StringLiteral(string) => Some(string.value.to_string()),
        Expression::TemplateLiteral(template) if template.expressions.is_empty() => {
            let cooked = template.quasis.first()?.value.cooked?;
            Some(cooked.to_string())
        }
        Expression::BinaryExpression(sum) if sum.operator.as_str() == "+" && depth < 64 => {
            let mut text = written(&sum.left, depth + 1)?;
            text.push_str(&written(&sum.right, depth + 1)?);
            Some(text)
        }
        Expression::ParenthesizedExpression(inner) if depth < 64 => {
            written(&inner.expression, depth + 1)
        }
        _ => None,
    }
}
