//! TypeScript becomes JavaScript that Node 20 runs: types go, enums and namespaces are lowered, the rest stays.

use std::path::Path;

use oxc::allocator::Allocator;
use oxc::codegen::{Codegen, CodegenOptions};
use oxc::semantic::SemanticBuilder;
use oxc::transformer::{TransformOptions, Transformer};

use super::{Dialect, Format, parse, refuse, shape, walk};
use crate::place::Lines;
use crate::{Cause, SyntaxError, deep};

/// JavaScript, and how it is loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stripped {
    pub text: String,
    pub format: Format,
}

/// Removes the types of a file. `name` is what its source map calls it. JavaScript stays as it is.
pub fn strip(text: &str, dialect: Dialect, name: &str) -> Result<Stripped, SyntaxError> {
    let measure = |text: &str| {
        shape::check(text, dialect.has_types())?;
        Ok(deep::tokens(text))
    };
    deep::read(text, measure, || {
        let lines = Lines::of(text);
        let arena = Allocator::default();
        let (mut program, format) = parse(&arena, text, dialect, &lines)?;
        if !dialect.has_types() {
            return Ok(Stripped {
                text: text.to_owned(),
                format,
            });
        }
        if let Some(offset) = walk::decorated(&program) {
            return Err(SyntaxError {
                cause: Cause::Language,
                message: "decorators can't be run here; call the function around the class or method instead"
                    .to_owned(),
                at: lines.at(offset),
            });
        }
        let checked = SemanticBuilder::new()
            .with_check_syntax_error(true)
            .with_excess_capacity(2.0)
            .with_enum_eval(true)
            .build(&program);
        refuse(checked.diagnostics.iter().next(), &lines)?;
        let scoping = checked.semantic.into_scoping();
        let path = Path::new(name);
        let options = TransformOptions::default();
        let done =
            Transformer::new(&arena, path, &options).build_with_scoping(scoping, &mut program);
        refuse(done.diagnostics.iter().next(), &lines)?;
        let options = CodegenOptions {
            source_map_path: Some(path.to_path_buf()),
            ..CodegenOptions::default()
        };
        let made = Codegen::new().with_options(options).build(&program);
        let mut text = made.code;
        if let Some(map) = made.map {
            text.push_str("//# sourceMappingURL=");
            text.push_str(&map.to_data_url());
            text.push('\n');
        }
        Ok(Stripped { text, format })
    })
}
