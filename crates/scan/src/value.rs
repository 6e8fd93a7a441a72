//! What an expression is, as far as the text alone tells.

use std::rc::Rc;

/// A value that is known without running anything.
#[derive(Debug, Clone)]
pub enum Value {
    Unknown,
    /// A string; `assembled` when it was put together from pieces.
    Text {
        text: Rc<str>,
        assembled: bool,
    },
    Bytes(Rc<[u8]>),
    Int(i64),
    /// Something written down that is not followed: a long string, a dictionary, a fraction.
    Literal,
    /// A list, tuple or set.
    List(Rc<[Value]>),
    /// An object whose properties are written down.
    Object(Rc<[(Rc<str>, Value)]>),
    /// A module, or something below one: `os`, `os.system`, `builtins.eval`.
    Path(Rc<str>),
    /// What `__dict__`, `vars()` or `sys.modules` gives: names below this path.
    Namespace(Rc<str>),
    /// A built-in type, or a class reached through another one.
    Type,
    /// A function that is written down.
    Function,
    /// What `constructor` gives of something that is no function.
    Constructor,
    /// A tool, with its description if that is written out.
    Tool(Option<Rc<str>>),
    /// A method of something, not called yet.
    Method(Rc<(Value, Rc<str>)>),
}

/// The longest string that is followed. All work on strings is in proportion to it.
pub const LONGEST: usize = 4_096;

impl Value {
    /// A string that was put together.
    pub fn assembled(text: &str) -> Value {
        if text.len() > LONGEST {
            return Value::Unknown;
        }
        Value::Text {
            text: text.into(),
            assembled: true,
        }
    }

    pub fn bytes(bytes: &[u8]) -> Value {
        if bytes.len() > LONGEST {
            return Value::Unknown;
        }
        Value::Bytes(bytes.into())
    }

    pub fn text(&self) -> Option<&str> {
        match self {
            Value::Text { text, .. } => Some(text),
            _ => None,
        }
    }

    pub fn int(&self) -> Option<i64> {
        match self {
            Value::Int(int) => Some(*int),
            _ => None,
        }
    }

    pub fn path(&self) -> Option<&str> {
        match self {
            Value::Path(path) => Some(path),
            _ => None,
        }
    }

    pub fn is_assembled(&self) -> bool {
        matches!(
            self,
            Value::Text {
                assembled: true,
                ..
            }
        )
    }

    /// Bytes, be they given as such or as text.
    pub fn raw(&self) -> Option<&[u8]> {
        match self {
            Value::Text { text, .. } => Some(text.as_bytes()),
            Value::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The elements of a list; a string has its characters, bytes their numbers.
    pub fn elements(&self) -> Option<Vec<Value>> {
        match self {
            Value::List(list) => Some(list.to_vec()),
            Value::Text { text, .. } => {
                let mut buffer = [0; 4];
                let one = |c: char| Value::assembled(c.encode_utf8(&mut buffer));
                Some(text.chars().take(LONGEST).map(one).collect())
            }
            Value::Bytes(bytes) => Some(bytes.iter().map(|b| Value::Int((*b).into())).collect()),
            _ => None,
        }
    }

    /// How many steps it takes to do something with it: one for every few bytes that it holds.
    pub fn weight(&self) -> usize {
        let bytes = match self {
            Value::Text { text, .. } => text.len(),
            Value::Bytes(bytes) => bytes.len(),
            Value::Path(path) | Value::Namespace(path) => path.len(),
            Value::List(list) => 64 * list.len(),
            Value::Object(properties) => 64 * properties.len(),
            Value::Tool(description) => description.as_ref().map_or(0, |text| text.len()),
            Value::Method(bound) => bound.0.shallow(),
            _ => 0,
        };
        bytes / 16
    }

    /// The same in bytes, without what methods are bound to.
    fn shallow(&self) -> usize {
        match self {
            Value::Text { text, .. } => text.len(),
            Value::Bytes(bytes) => bytes.len(),
            Value::List(list) => 64 * list.len(),
            _ => 0,
        }
    }

    /// Is it written down as a value, rather than reached by a name?
    pub fn is_literal(&self) -> bool {
        matches!(
            self,
            Value::Text { .. } | Value::Bytes(_) | Value::Int(_) | Value::List(_) | Value::Literal
        )
    }
}
