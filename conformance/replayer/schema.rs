//! The shapes of Kafka's messages, read from `messages.txt` beside this.
//!
//! A line names an API, its key and the first version with compact lengths and tags; the two below it list the fields of
//! request and response in the order of the wire: `Name type(versions; tag n; def value)`, `?` for what may be null,
//! `[…]` for arrays and `{…}` for structures.

use std::collections::BTreeMap;

use crate::tree::{Tree, Unreadable, parse};

/// A range of versions, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) first: i16,
    pub(crate) last: i16,
}

const ALWAYS: Range = Range { first: 0, last: i16::MAX };

impl Range {
    pub(crate) fn has(self, version: i16) -> bool {
        (self.first..=self.last).contains(&version)
    }
}

#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    Text,
    Bytes,
    Uuid,
    Records,
    List(Box<Kind>),
    Fields(Vec<Field>),
}

#[derive(Debug, Clone)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) versions: Range,
    pub(crate) nullable: Option<Range>,
    pub(crate) tag: Option<u32>,
    pub(crate) default: Tree,
}

#[derive(Debug, Clone)]
pub(crate) struct Api {
    pub(crate) name: String,
    pub(crate) key: i16,
    pub(crate) flexible: i16,
    pub(crate) request: Vec<Field>,
    pub(crate) response: Vec<Field>,
}

impl Api {
    pub(crate) fn is_flexible(&self, version: i16) -> bool {
        version >= self.flexible
    }

    /// Whether the answer's header ends in tags; that of ApiVersions never does (V-103).
    pub(crate) fn has_response_tags(&self, version: i16) -> bool {
        self.is_flexible(version) && self.name != "ApiVersions"
    }
}

/// Every API that scripts may ask.
#[derive(Debug)]
pub(crate) struct Schema {
    pub(crate) apis: BTreeMap<String, Api>,
}

impl Schema {
    pub(crate) fn built_in() -> Result<Self, Unreadable> {
        let mut apis = BTreeMap::new();
        let mut lines = include_str!("messages.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        while let Some(head) = lines.next() {
            let words: Vec<&str> = head.split_whitespace().collect();
            let [name, key, "flexible", flexible] = words.as_slice() else {
                return Err(Unreadable(format!("`{head}` does not begin an API")));
            };
            let number = |word: &str| word.parse().map_err(|_| Unreadable(format!("`{word}` in `{head}`")));
            let mut fields = |which: &str| {
                let line = lines.next().unwrap_or_default().trim().strip_prefix(which);
                let line = line.ok_or_else(|| Unreadable(format!("`{which}` is wanted below `{head}`")))?;
                fields_of(line).map_err(|wrong| Unreadable(format!("{name} {which}: {wrong}")))
            };
            let (request, response) = (fields("request")?, fields("response")?);
            let name = (*name).to_owned();
            let api = Api { name: name.clone(), key: number(key)?, flexible: number(flexible)?, request, response };
            apis.insert(name, api);
        }
        Ok(Self { apis })
    }

    pub(crate) fn api(&self, name: &str) -> Result<&Api, Unreadable> {
        self.apis.get(name).ok_or_else(|| Unreadable(format!("there is no API `{name}`")))
    }
}

fn fields_of(line: &str) -> Result<Vec<Field>, Unreadable> {
    let mut reader = Reader { rest: line };
    let fields = reader.fields()?;
    if reader.peek().is_none() { Ok(fields) } else { Err(reader.wrong("the end")) }
}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn peek(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start();
        self.rest.chars().next()
    }

    fn wrong(&self, wanted: &str) -> Unreadable {
        Unreadable(format!("{wanted} is wanted before `{}`", self.rest.chars().take(40).collect::<String>()))
    }

    fn eats(&mut self, c: char) -> bool {
        let is_next = self.peek() == Some(c);
        if is_next {
            self.rest = self.rest.get(c.len_utf8()..).unwrap_or_default();
        }
        is_next
    }

    fn must(&mut self, c: char) -> Result<(), Unreadable> {
        if self.eats(c) { Ok(()) } else { Err(self.wrong(&c.to_string())) }
    }

    fn word(&mut self) -> Result<String, Unreadable> {
        self.peek();
        let (word, rest) =
            self.rest.split_at(self.rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(self.rest.len()));
        if word.is_empty() {
            return Err(self.wrong("a word"));
        }
        self.rest = rest;
        Ok(word.to_owned())
    }

    /// Up to and without the next `end`.
    fn until(&mut self, end: char) -> Result<String, Unreadable> {
        let (inside, rest) = self.rest.split_once(end).ok_or_else(|| self.wrong("an end"))?;
        self.rest = rest;
        Ok(inside.to_owned())
    }

    fn fields(&mut self) -> Result<Vec<Field>, Unreadable> {
        let mut fields = Vec::new();
        while self.peek().is_some_and(char::is_alphanumeric) {
            fields.push(self.field()?);
            if !self.eats(',') {
                break;
            }
        }
        Ok(fields)
    }

    fn field(&mut self) -> Result<Field, Unreadable> {
        let name = self.word()?;
        let kind = self.kind()?;
        let nullable = match (self.eats('?'), self.rest.starts_with('{')) {
            (true, true) => {
                self.must('{')?;
                Some(range(&self.until('}')?)?)
            }
            (is_nullable, _) => is_nullable.then_some(ALWAYS),
        };
        let mut field = Field { name, kind, versions: ALWAYS, nullable, tag: None, default: Tree::Null };
        let mut default = None;
        if self.eats('(') {
            for part in self.until(')')?.split(';').map(str::trim) {
                if let Some(tag) = part.strip_prefix("tag ") {
                    field.tag = Some(tag.parse().map_err(|_| Unreadable(format!("`{tag}` is no tag")))?);
                } else if let Some(value) = part.strip_prefix("def ") {
                    default = Some(parse(value)?);
                } else {
                    field.versions = range(part)?;
                }
            }
        }
        let is_text = matches!(field.kind, Kind::Text) && field.nullable.is_some();
        field.default = default.unwrap_or_else(|| if is_text { Tree::Null } else { nothing(&field.kind) });
        Ok(field)
    }

    fn kind(&mut self) -> Result<Kind, Unreadable> {
        if self.eats('{') {
            let fields = self.fields()?;
            self.must('}')?;
            return Ok(Kind::Fields(fields));
        }
        if self.eats('[') {
            let before = self.rest;
            let alone = self.word().is_ok() && self.peek() == Some(']');
            self.rest = before;
            let item = if alone { self.kind()? } else { Kind::Fields(self.fields()?) };
            self.must(']')?;
            return Ok(Kind::List(Box::new(item)));
        }
        Ok(match self.word()?.as_str() {
            "bool" => Kind::Bool,
            "int8" => Kind::Int8,
            "int16" => Kind::Int16,
            "int32" => Kind::Int32,
            "int64" => Kind::Int64,
            "string" => Kind::Text,
            "bytes" => Kind::Bytes,
            "uuid" => Kind::Uuid,
            "records" => Kind::Records,
            other => return Err(Unreadable(format!("`{other}` is no type"))),
        })
    }
}

/// `3`, `3+` or `3-5`.
fn range(text: &str) -> Result<Range, Unreadable> {
    let number = |text: &str| text.parse::<i16>().map_err(|_| Unreadable(format!("`{text}` is no version")));
    if let Some(first) = text.strip_suffix('+') {
        return Ok(Range { first: number(first)?, last: i16::MAX });
    }
    match text.split_once('-') {
        Some((first, last)) => Ok(Range { first: number(first)?, last: number(last)? }),
        None => Ok(Range { first: number(text)?, last: number(text)? }),
    }
}

/// What stands for a field that is not given and has no default of its own (V-1401).
fn nothing(kind: &Kind) -> Tree {
    match kind {
        Kind::Bool => Tree::Bool(false),
        Kind::Int8 | Kind::Int16 | Kind::Int32 | Kind::Int64 => Tree::Int(0),
        Kind::Text | Kind::Bytes => Tree::text(""),
        Kind::Uuid => Tree::text("00000000-0000-0000-0000-000000000000"),
        Kind::Records => Tree::Null,
        Kind::List(_) => Tree::List(Vec::new()),
        Kind::Fields(_) => Tree::Fields(Vec::new()),
    }
}
