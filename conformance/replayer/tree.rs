//! What scripts, recordings and reasons are written in: JSON whose fields keep their order, read leniently. A word needs
//! no quotes, so `{Name: a~, Partitions: [0]}` is text too.

use std::fmt::Write;

/// A value of JSON. Fractions are not needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Tree {
    Null,
    Bool(bool),
    Int(i64),
    Text(String),
    List(Vec<Tree>),
    Fields(Vec<(String, Tree)>),
}

/// What cannot be read, and where it stands.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Unreadable(pub(crate) String);

impl Tree {
    pub(crate) fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    pub(crate) fn as_int(&self) -> Option<i64> {
        if let Self::Int(number) = self { Some(*number) } else { None }
    }

    pub(crate) fn as_text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    pub(crate) fn as_list(&self) -> Option<&[Self]> {
        if let Self::List(list) = self { Some(list) } else { None }
    }

    pub(crate) fn as_fields(&self) -> Option<&[(String, Self)]> {
        if let Self::Fields(fields) = self { Some(fields) } else { None }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Self> {
        self.as_fields()?.iter().find(|(own, _)| own == name).map(|(_, value)| value)
    }

    /// What a path such as `/Topics/0/Name` leads to.
    pub(crate) fn at(&self, path: &str) -> Option<&Self> {
        path.split('/').skip(1).try_fold(self, |inside, step| match inside {
            Self::List(list) => list.get(step.parse::<usize>().unwrap_or(usize::MAX)),
            Self::Fields(_) => inside.get(step),
            Self::Null | Self::Bool(_) | Self::Int(_) | Self::Text(_) => None,
        })
    }

    /// Takes out what the path leads to.
    pub(crate) fn remove(&mut self, path: &str) {
        let Some((parent, last)) = path.rsplit_once('/') else { return };
        let inside = parent.split('/').skip(1).try_fold(&mut *self, |inside, step| match inside {
            Self::List(list) => list.get_mut(step.parse::<usize>().unwrap_or(usize::MAX)),
            Self::Fields(fields) => fields.iter_mut().find(|(own, _)| own == step).map(|(_, value)| value),
            Self::Null | Self::Bool(_) | Self::Int(_) | Self::Text(_) => None,
        });
        if let Some(Self::Fields(fields)) = inside {
            fields.retain(|(own, _)| own != last);
        }
    }

    /// On one line.
    pub(crate) fn compact(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(value) => write!(out, "{value}").unwrap(),
            Self::Int(value) => write!(out, "{value}").unwrap(),
            Self::Text(value) => quote(value, out),
            Self::List(list) => {
                out.push('[');
                for (n, item) in list.iter().enumerate() {
                    out.push_str(if n == 0 { "" } else { ", " });
                    item.write(out);
                }
                out.push(']');
            }
            Self::Fields(fields) => {
                out.push('{');
                for (n, (name, value)) in fields.iter().enumerate() {
                    out.push_str(if n == 0 { "" } else { ", " });
                    quote(name, out);
                    out.push_str(": ");
                    value.write(out);
                }
                out.push('}');
            }
        }
    }

    /// Over as many lines as it takes to be read.
    pub(crate) fn pretty(&self) -> String {
        let mut out = String::new();
        self.spread(0, 0, &mut out);
        out.push('\n');
        out
    }

    fn spread(&self, indent: usize, used: usize, out: &mut String) {
        let short = self.compact();
        if indent > 0 && indent + used + short.chars().count() <= WIDTH {
            out.push_str(&short);
            return;
        }
        let pad = " ".repeat(indent + 1);
        let end = " ".repeat(indent);
        match self {
            Self::List(list) => {
                out.push('[');
                for (n, item) in list.iter().enumerate() {
                    write!(out, "{}\n{pad}", if n == 0 { "" } else { "," }).unwrap();
                    item.spread(indent + 1, 1, out);
                }
                write!(out, "\n{end}]").unwrap();
            }
            Self::Fields(fields) => {
                out.push('{');
                for (n, (name, value)) in fields.iter().enumerate() {
                    write!(out, "{}\n{pad}", if n == 0 { "" } else { "," }).unwrap();
                    quote(name, out);
                    out.push_str(": ");
                    value.spread(indent + 1, name.len() + 5, out);
                }
                write!(out, "\n{end}}}").unwrap();
            }
            Self::Null | Self::Bool(_) | Self::Int(_) | Self::Text(_) => out.push_str(&short),
        }
    }
}

/// The longest line of a recording, where it can be helped.
const WIDTH: usize = 150;

fn quote(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if u32::from(c) < 0x20 => write!(out, "\\u{:04x}", u32::from(c)).unwrap(),
            c => out.push(c),
        }
    }
    out.push('"');
}

/// Reads all of `text` as one value.
pub(crate) fn parse(text: &str) -> Result<Tree, Unreadable> {
    let mut reader = Reader { rest: text };
    let tree = reader.value()?;
    reader.skip();
    if reader.rest.is_empty() { Ok(tree) } else { Err(reader.wrong("the end")) }
}

/// Reads one value from the front of `text` and gives what is behind it.
pub(crate) fn parse_front(text: &str) -> Result<(Tree, &str), Unreadable> {
    let mut reader = Reader { rest: text };
    let tree = reader.value()?;
    Ok((tree, reader.rest))
}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn skip(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn wrong(&self, wanted: &str) -> Unreadable {
        Unreadable(format!("{wanted} is wanted before `{}`", self.rest.chars().take(40).collect::<String>()))
    }

    fn eats(&mut self, c: char) -> bool {
        self.skip();
        let rest = self.rest.strip_prefix(c);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn value(&mut self) -> Result<Tree, Unreadable> {
        if self.eats('{') {
            return self.fields();
        }
        if self.eats('[') {
            return self.list();
        }
        if self.rest.starts_with('"') {
            return self.quoted().map(Tree::Text);
        }
        let word = self.word()?;
        Ok(match word.as_str() {
            "null" => Tree::Null,
            "true" => Tree::Bool(true),
            "false" => Tree::Bool(false),
            _ => word.parse().map_or(Tree::Text(word), Tree::Int),
        })
    }

    fn fields(&mut self) -> Result<Tree, Unreadable> {
        let mut fields = Vec::new();
        while !self.eats('}') {
            if !fields.is_empty() && !self.eats(',') {
                return Err(self.wrong("a comma or `}`"));
            }
            self.skip();
            let name = if self.rest.starts_with('"') { self.quoted()? } else { self.word()? };
            if !self.eats(':') {
                return Err(self.wrong("a colon"));
            }
            fields.push((name, self.value()?));
        }
        Ok(Tree::Fields(fields))
    }

    fn list(&mut self) -> Result<Tree, Unreadable> {
        let mut list = Vec::new();
        while !self.eats(']') {
            if !list.is_empty() && !self.eats(',') {
                return Err(self.wrong("a comma or `]`"));
            }
            list.push(self.value()?);
        }
        Ok(Tree::List(list))
    }

    fn word(&mut self) -> Result<String, Unreadable> {
        let ends = |c: char| c.is_whitespace() || "{}[],:\"".contains(c);
        let (word, rest) = self.rest.split_at(self.rest.find(ends).unwrap_or(self.rest.len()));
        if word.is_empty() {
            return Err(self.wrong("a value"));
        }
        self.rest = rest;
        Ok(word.to_owned())
    }

    fn quoted(&mut self) -> Result<String, Unreadable> {
        let mut text = String::new();
        let mut chars = self.rest.char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.rest = self.rest.get(at + 1..).unwrap_or_default();
                    return Ok(text);
                }
                '\\' => match chars.next().map(|(_, c)| c) {
                    Some('n') => text.push('\n'),
                    Some('u') => {
                        let digits: String = chars.by_ref().take(4).map(|(_, c)| c).collect();
                        let code = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
                        text.push(code.ok_or_else(|| self.wrong("four hexadecimal digits"))?);
                    }
                    Some(c) => text.push(c),
                    None => break,
                },
                c => text.push(c),
            }
        }
        Err(self.wrong("an end of the quotes"))
    }
}
